"""`auto_embed`: what is tried, what is shared, what is chosen, the budget, and inputs that cannot be used."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fishergraph import (
    Differences,
    FisherClassifier,
    FisherEmbedding,
    GraphProbe,
    LogisticProbe,
    Neighbourhood,
    PageRank,
    as_graph,
    auto_embed,
)
from fishergraph._errors import FishergraphWarning, InputError, InputTypeError, NotEnoughMemory
from fishergraph.auto import search
from fishergraph.auto.choice import Tried, choose, in_words, standard_error
from fishergraph.auto.settings import default_settings, has_directions
from fishergraph.auto.shared import SharedEmbeddings
from fishergraph.presets import PRESETS
from fishergraph.published import PublishedMixture, PublishedNystrom

SMALL = {"n_anchors": 2, "dim": 8, "n_jobs": 1}
N = 90


def planted(seed=0, n=N, n_classes=3, features=True):
    """A graph whose edges mostly join equal classes, features that tell the classes a little, and the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    same = y[:, None] == y[None, :]
    A = np.triu(rng.random((n, n)) < np.where(same, 0.15, 0.02), 1).astype(np.float32)
    X = (rng.normal(size=(n, 6)) + features * np.eye(6)[y]).astype(np.float32)
    return X, sp.csr_array(A + A.T), y


X, A, Y = planted()
TRAIN, VAL = np.arange(30), np.arange(30, 60)


def tuned(y=Y, **options):
    """The result for the planted graph, with few columns."""
    options = {"train": TRAIN, "val": VAL, "random_state": 0, "heads": None, **SMALL, **options}
    return auto_embed(X, A, y, **options)


@pytest.fixture
def fits(monkeypatch):
    """The parameters of every embedding that is fitted."""
    calls: list[dict] = []
    fit_transform = FisherEmbedding.fit_transform

    def counted(self, *args, **kwargs):
        calls.append(self.get_params(deep=False))
        return fit_transform(self, *args, **kwargs)

    monkeypatch.setattr(FisherEmbedding, "fit_transform", counted)
    return calls


class Clock:
    """A clock that moves on when an embedding is fitted, by one second for each of its layers and its input map.

    A probe takes `probing` seconds.
    """

    def __init__(self, monkeypatch):
        self.now, self.probing = 100.0, 0.0
        fit_transform, fit = FisherEmbedding.fit_transform, LogisticProbe.fit

        def probed(probe, *args, **kwargs):
            self.now += self.probing
            return fit(probe, *args, **kwargs)

        monkeypatch.setattr(LogisticProbe, "fit", probed)

        def slow(embedding, *args, **kwargs):
            self.now += 1.0 + embedding.n_layers
            return fit_transform(embedding, *args, **kwargs)

        monkeypatch.setattr(FisherEmbedding, "fit_transform", slow)
        monkeypatch.setattr(search, "perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


# --- the result -----------------------------------------------------------------------------------------


def test_the_first_setting_is_the_plain_default():
    result = tuned(settings=[{}])
    Z = FisherEmbedding(random_state=0, **SMALL).fit_transform(X, graph=A)
    assert np.array_equal(result.Z, Z)
    assert result.setting == {}
    (record,) = result.report
    assert record["chosen"]
    assert record["skipped"] is None
    assert 0 <= record["val_accuracy"] <= 1
    assert record["val_accuracy"] == result.val_accuracy


@pytest.mark.parametrize("chosen", [{"n_layers": 1}, {"block_weights": {"walk": 0.0, "psi0": 4.0}}, {"n_layers": 0}])
def test_a_part_of_an_embedding_is_an_embedding(chosen, tmp_path, monkeypatch):
    monkeypatch.setattr("fishergraph.auto.trials.choose", lambda tried, n_rows: tried[-1])
    result = tuned(settings=[{}, chosen])
    assert result.setting == chosen
    assert result.embedding.get_params()["n_layers"] == chosen.get("n_layers", 2)
    np.testing.assert_allclose(result.embedding.transform(X, graph=A), result.Z, atol=1e-6)
    assert result.Z.shape[1] == len(result.embedding.get_feature_names_out())
    result.embedding.save(tmp_path / "m")
    loaded = FisherEmbedding.load(tmp_path / "m")
    assert np.array_equal(loaded.transform(X, graph=A), result.embedding.transform(X, graph=A))


def test_block_weights_of_a_shared_embedding_have_the_bits_of_their_own(monkeypatch):
    monkeypatch.setattr("fishergraph.auto.trials.choose", lambda tried, n_rows: tried[-1])
    weights = {"psi1": 0.0, "smooth": 3.0, "local": 0.0}
    result = tuned(settings=[{}, {"block_weights": weights}])
    own = FisherEmbedding(random_state=0, block_weights=weights, **SMALL).fit_transform(X, graph=A)
    assert np.array_equal(result.Z, own)


def test_the_probe_predicts_labels():
    names = np.array(["ape", "bee", "cat"], dtype=object)[Y]
    result = tuned(names, heads="inductive", settings=[{}])
    assert isinstance(result.probe, GraphProbe)
    assert set(result.probe.predict(result.Z)) <= {"ape", "bee", "cat"}
    assert np.mean(result.probe.predict() == names) > 0.7
    assert result.probe.blocks_[0][0] == "psi0"
    assert isinstance(tuned(names, settings=[{}]).probe, LogisticProbe)


def test_the_same_seed_gives_the_same_bits():
    one, two = tuned(budget=1000, heads="auto"), tuned(budget=1000, heads="auto")
    assert np.array_equal(one.Z, two.Z)
    assert np.array_equal(one.probe.predict_proba(), two.probe.predict_proba())
    for first, second in zip(one.report, two.report, strict=True):
        assert {k: v for k, v in first.items() if k != "seconds"} == {k: v for k, v in second.items() if k != "seconds"}


def test_a_generator_gives_all_settings_one_seed(fits):
    first = tuned(random_state=np.random.RandomState(3), settings=[{}, {"dim": 6}])
    assert len({call["random_state"] for call in fits}) == 1
    assert np.array_equal(first.Z, tuned(random_state=np.random.RandomState(3), settings=[{}]).Z)


def test_without_val_rows_are_held_out_as_by_the_classifier():
    y = np.where(np.arange(N) < 60, Y, -1)
    result = auto_embed(X, A, y, settings=[{}], random_state=5, **SMALL)
    assert len(result.val) == 18  # a third of 20, rounded down, of three classes
    assert np.array_equal(np.sort(np.concatenate([result.train, result.val])), np.arange(60))
    model = FisherClassifier(mode="probe", n_anchors=2, dim=8, random_state=5).fit(X, y, graph=A)
    assert np.array_equal(model.predict_proba(X, graph=A), result.probe.predict_proba())


def test_labels_outside_train_and_val_are_not_used():
    other = Y.copy()
    other[60:] = 7
    one, two = tuned(settings=[{}, {"n_layers": 1}]), tuned(other, settings=[{}, {"n_layers": 1}])
    assert one.report[1]["val_log_loss"] == two.report[1]["val_log_loss"]
    assert two.probe.classes_.tolist() == [0, 1, 2]


def test_print_and_repr():
    result = tuned(settings=[{}, {"block_weights": {"walk": 0}}])
    assert len(repr(result).splitlines()) == 1
    assert "2 settings tried" in repr(result)
    lines = str(result).splitlines()
    assert lines[1].startswith("default")
    assert "block_weights={walk: 0}" in lines[2]
    assert "optimistic" in lines[-1]
    assert sum("*" in line for line in lines) == 1
    assert in_words({"multiset": Neighbourhood(undirected=True)}) == "multiset=Neighbourhood(undirected=True)"


# --- what is tried --------------------------------------------------------------------------------------


OF_ALL_GRAPHS = [Neighbourhood(weights="symmetric"), Neighbourhood(closed=False), Differences()]


def handful(X, graph, **params):
    graph = None if graph is None else as_graph(graph)
    return default_settings(SharedEmbeddings(X, graph, N), params)


def test_the_handful_begins_with_the_default():
    settings = handful(X, A)
    assert settings[0] == {}
    assert PRESETS["best"] in settings
    assert [setting["multiset"] for setting in settings if "multiset" in setting] == OF_ALL_GRAPHS
    assert not any("multiset" in setting for setting in handful(X, None))
    assert settings.index(PRESETS["best"]) == len(settings) - 1


def test_directions_are_tried_if_there_are_some():
    directed = sp.csr_array(sp.triu(A))
    assert has_directions(as_graph(directed))
    assert not has_directions(as_graph(A))
    multisets = [setting["multiset"] for setting in handful(X, directed) if "multiset" in setting]
    assert multisets == [*OF_ALL_GRAPHS, Neighbourhood(undirected=True), Neighbourhood(direction="both")]


def test_a_parameter_that_is_given_is_not_tried():
    assert not any("multiset" in setting for setting in handful(X, sp.csr_array(sp.triu(A)), multiset=PageRank()))
    settings = handful(X, sp.csr_array(sp.triu(A)), multiset__undirected=True, block_weights={"walk": 0})
    assert not any("multiset" in setting or "block_weights" in setting for setting in settings)
    assert tuned(settings=[{}], walk=None).embedding.walk is None


def test_weights_of_blocks_that_do_not_exist_are_not_tried():
    for features, graph, walk in ((X, None, 0.1), (None, A, 0.1), (X, A, None)):
        for setting in handful(features, graph, walk=walk):
            FisherEmbedding(walk=walk, **setting).settings(features=features is not None, graph=graph is not None)
    assert {"block_weights": {"factors": 1.0, "local": 1.0}} not in handful(X, None)


def test_features_alone_and_edges_alone():
    assert auto_embed(X, None, Y, random_state=0, heads=None, **SMALL).Z.shape[0] == N
    assert auto_embed(None, A, Y, random_state=0, heads=None, **SMALL).Z.shape[0] == N
    assert auto_embed(pd.DataFrame(X), None, Y, settings=[{}], heads=None, **SMALL).Z.shape[0] == N


# --- what is shared -------------------------------------------------------------------------------------


def test_depths_and_block_weights_share_one_embedding(fits):
    weights = {"block_weights": {"walk": 0.0}}
    result = tuned(settings=[{}, {"n_layers": 1}, weights, {"n_layers": 0}, {"dim": 6}, {"dim": 6, "n_layers": 1}])
    assert [(call["dim"], call["n_layers"]) for call in fits] == [(8, 2), (6, 2)]
    assert len({record["val_log_loss"] for record in result.report}) == 6


def test_a_deeper_embedding_is_fitted_once_more(fits):
    tuned(settings=[{}, {"n_layers": 3}, {"n_layers": 1}])
    assert [call["n_layers"] for call in fits] == [2, 3]


def test_a_last_layer_without_a_map_is_not_shared(fits):
    published = {"family": PublishedMixture(), "kernel": PublishedNystrom(), "walk": None, "structure": None}
    tuned(settings=[published, {**published, "n_layers": 1}])
    assert [call["n_layers"] for call in fits] == [2, 1]


def test_heads_share_the_embedding(fits):
    tuned(heads="auto", settings=[{}])
    assert len(fits) == 1


def test_embeddings_that_nothing_needs_are_forgotten():
    shared = SharedEmbeddings(X, as_graph(A), N)
    one, two, three = (FisherEmbedding(2, 2, dim, random_state=0) for dim in (4, 5, 6))
    for model in (one, two, three):
        shared.embed(model)
    shared.keep(one, FisherEmbedding(1, 2, 6, random_state=0))
    assert [fit.model.dim for fit in shared.fits] == [4, 6]
    assert shared.work(one) == 0
    assert shared.work(two) > 0


# --- the rule -------------------------------------------------------------------------------------------


def scores(*values, loss=1.0):
    return [Tried(number, value, loss, 0.0, LogisticProbe()) for number, value in enumerate(values)]


def test_the_first_setting_is_left_only_for_a_standard_error():
    error = standard_error(0.8, 400)
    assert 0.019 < error < 0.021
    assert choose(scores(0.8, 0.8 + 0.9 * error, 0.7), 400).number == 0
    assert choose(scores(0.8, 0.8 + 1.1 * error, 0.7), 400).number == 1
    assert choose(scores(0.8, 0.85, 0.9), 400).number == 2


def test_ties_go_to_the_smaller_loss_and_then_to_the_first():
    tied = [*scores(0.5, 0.9), Tried(2, 0.9, 0.8, 0.0, LogisticProbe()), Tried(3, 0.9, 0.8, 0.0, LogisticProbe())]
    assert choose(tied, 400).number == 2


def test_an_accuracy_of_one_has_an_error_too():
    assert standard_error(1.0, 10) > 0
    assert choose(scores(0.0, 1.0), 1).number == 1
    assert choose(scores(1.0, 1.0), 10).number == 0


def test_a_setting_that_helps_is_chosen():
    """Classes that the edges contradict: neighbours say nothing, and the features of the node everything."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    features = (np.eye(3)[y] + 0.3 * rng.normal(size=(300, 3))).astype(np.float32)
    edges = sp.csr_array((rng.random((300, 300)) < 0.05).astype(np.float32))
    alone = {"block_weights": {"psi1": 0, "psi2": 0, "walk": 0, "smooth": 0, "factors": 0, "local": 0}}
    poor = {"block_weights": {"psi0": 0, "psi1": 0, "walk": 0, "smooth": 0, "factors": 0, "local": 0}}
    options = {"train": np.arange(60), "val": np.arange(60, 300), "heads": None, "random_state": 0, **SMALL}
    assert auto_embed(features, edges, y, settings=[poor, alone], **options).setting == alone
    assert auto_embed(features, edges, y, settings=[alone, poor], **options).setting == alone


def test_unequal_classes_do_not_end_the_search_of_a_penalty():
    """The smallest values of C all predict the largest class: none of them is better than the one before."""
    y = np.where(Y == 0, 1, 0)
    result = tuned(np.where(np.arange(N) % 5 == 0, y, 0), settings=[{}])
    first = result.probe.val_scores_
    assert np.ptp(first[:3]) == 0
    assert len(result.probe.Cs_) == 9


def test_labels_choose_differences_if_they_say_who_is_among_its_own_kind():
    """Nodes of two kinds have neighbours of one kind; labels tell whether that is their own."""
    rng = np.random.default_rng(0)
    kind, y = rng.integers(2, size=(2, 300))
    ends = np.concatenate([rng.choice(np.flatnonzero(kind == near), 5) for near in kind ^ y])
    graph = sp.csr_array((np.ones(1500, dtype=np.float32), (np.repeat(np.arange(300), 5), ends)), (300, 300))
    features = (np.eye(4)[kind] + 0.5 * rng.normal(size=(300, 4))).astype(np.float32)
    options = {"train": np.arange(150), "val": np.arange(150, 300), "heads": None, "random_state": 0, **SMALL}
    result = auto_embed(features, graph, y, budget=1000, **options)
    assert result.setting == {"multiset": Differences()}
    assert result.val_accuracy > result.report[0]["val_accuracy"] + 0.05


# --- the budget -----------------------------------------------------------------------------------------


def test_a_setting_that_does_not_fit_is_skipped(clock, fits):
    """Each embedding of two layers takes three seconds, and one that shares it takes none."""
    settings = [{}, {"dim": 9}, {"n_layers": 1}, {"dim": 10}, {"n_layers": 1, "dim": 9}]
    result = tuned(settings=settings, budget=8)
    assert [record["skipped"] for record in result.report] == [None, None, None, "budget", None]
    assert [record["seconds"] for record in result.report] == [3, 3, 0, 0, 0]
    assert result.report[3]["val_accuracy"] is None
    assert "skipped (budget)" in str(result)
    assert (result.budget, result.seconds["settings"]) == (8, 6)
    assert len(fits) == 2


def test_the_time_is_predicted_from_the_work(clock):
    """Twice the time is left, but the third setting is many times the work of the first."""
    result = tuned(settings=[{}, {"dim": 9}, {"dim": 64, "n_anchors": 32}], budget=13)
    assert [record["skipped"] for record in result.report] == [None, None, "budget"]


def test_the_time_of_the_probe_counts(clock):
    """Each probe takes two seconds. After the first two settings less than that is left."""
    clock.probing = 2.0
    result = tuned(settings=[{}, {"n_layers": 1}, {"n_layers": 0}], budget=8.5)
    assert [record["skipped"] for record in result.report] == [None, None, "budget"]
    assert [record["seconds"] for record in result.report] == [5, 2, 0]


def test_a_large_setting_keeps_no_small_one_out(clock):
    """A setting that is too large does not keep a smaller one from being tried."""
    result = tuned(settings=[{}, {"dim": 64, "n_anchors": 32}, {"n_layers": 1}], budget=4)
    assert [record["skipped"] for record in result.report] == [None, "budget", None]


def test_a_budget_for_one_setting_returns_it_with_a_warning(clock):
    with pytest.warns(FishergraphWarning, match="budget=0.5"):
        result = tuned(settings=[{}, {"dim": 9}], budget=0.5)
    assert result.setting == {}
    assert result.report[1]["skipped"] == "budget"


def test_the_first_setting_runs_whatever_the_budget():
    with pytest.warns(FishergraphWarning, match="raise budget"):
        assert tuned(settings=[{}, {"dim": 9}], budget=1e-9).setting == {}


def test_one_setting_needs_no_comparison(clock):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned(settings=[{}], budget=0.5)


def test_a_setting_without_memory_is_skipped(monkeypatch):
    fit_transform = FisherEmbedding.fit_transform

    def limited(self, *args, **kwargs):
        if self.dim != 8:
            raise NotEnoughMemory(needed=2e9, available=1e9)
        return fit_transform(self, *args, **kwargs)

    monkeypatch.setattr(FisherEmbedding, "fit_transform", limited)
    result = tuned(settings=[{}, {"dim": 9}, {"n_layers": 1}])
    assert [record["skipped"] for record in result.report] == [None, "memory", None]
    with pytest.raises(NotEnoughMemory):
        tuned(settings=[{"dim": 9}, {}])


def test_progress_is_reported():
    events: list = []

    class Bar:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, n):
            events.append(n)

        def set_postfix(self, **values):
            events.append(set(values))

    def progress(title, steps):
        events.append((title, steps))
        return Bar()

    result = tuned(settings=[{}, {"n_layers": 1}], verbose=progress)
    assert events == [("trying settings", 2), {"accuracy"}, 1, {"accuracy"}, 1]
    assert result.embedding.verbose is progress


# --- inputs that cannot be used -------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, -1, np.nan, np.inf, "60", None, True])
def test_a_budget_is_a_positive_number(budget):
    with pytest.raises(InputError) as error:
        tuned(budget=budget)
    assert error.value.parameter == "budget"


@pytest.mark.parametrize(
    ("y", "options", "parameter"),
    [
        (None, {}, "y"),
        (np.full(N, -1), {"train": None, "val": None}, "y"),
        (np.zeros(N, dtype=int), {}, "y"),
        (np.where(Y == 0, 0, -1), {"train": None, "val": None}, "y"),
        (Y[:-1], {}, "y"),
        (np.where(np.arange(N) < 3, Y, -1), {"train": None, "val": None}, "y"),
        (Y, {"val": []}, "val"),
        (Y, {"val": np.zeros(N, dtype=bool)}, "val"),
        (Y, {"val": [N]}, "val"),
        (Y, {"train": []}, "train"),
        (Y, {"train": np.arange(40)}, "train and val"),
        (np.where(np.arange(N) == 3, -1, Y), {}, "train"),
        (np.where(np.arange(N) == 40, -1, Y), {}, "val"),
        (Y, {"train": np.flatnonzero(Y[:30] < 2)}, "val"),
        (Y, {"settings": []}, "settings"),
        (Y, {"dim": 0}, "dim"),
        (Y, {"settings": [{}, {"dim": 0}]}, "dim"),
        (Y, {"settings": [{}, {"block_weights": {"psi7": 1}}]}, "a block in block_weights"),
        (Y, {"random_state": -1}, "random_state"),
        (Y, {"heads": "all", "settings": [{}]}, "heads"),
    ],
)
def test_bad_input_is_named(y, options, parameter):
    with pytest.raises(InputError) as error:
        tuned(y, **options)
    assert error.value.parameter == parameter


@pytest.mark.parametrize("settings", [{}, "fast", 3, [{}, "fast"]])
def test_settings_are_a_list_of_dicts(settings):
    with pytest.raises(InputTypeError) as error:
        tuned(settings=settings)
    assert error.value.parameter == "settings"


def test_bad_labels_and_settings_are_refused_before_any_work(fits):
    with pytest.raises(InputError):
        tuned(np.zeros(N, dtype=int))
    for bad in ({"settings": [{}, {"dim": 0}]}, {"heads": "all"}, {"heads": ("mlp", "trees")}):
        with pytest.raises(InputError):
            tuned(**bad)
    with pytest.raises(ValueError, match="n_layer"):
        tuned(settings=[{}, {"n_layer": 3}])
    assert not fits


def test_neither_features_nor_a_graph():
    with pytest.raises(InputTypeError, match="X or graph"):
        auto_embed(None, None, Y)


def test_a_validation_set_without_a_class():
    result = tuned(val=np.flatnonzero(Y[:60] < 2)[20:], settings=[{}, {"n_layers": 1}])
    assert result.probe.classes_.tolist() == [0, 1, 2]
    with pytest.warns(FishergraphWarning, match="no validation row has the class 2"):
        tuned(val=np.flatnonzero(Y[:60] < 2)[20:], settings=[{}], heads="inductive")


def test_labels_of_a_series_are_in_the_order_of_the_rows():
    frame = pd.DataFrame(X, index=[f"node {k}" for k in range(N)])
    y = pd.Series(Y, index=frame.index)
    assert auto_embed(frame, None, y, settings=[{}], heads=None, **SMALL).Z.shape[0] == N
    with pytest.raises(InputError, match="order"):
        auto_embed(frame, None, y[::-1], settings=[{}], heads=None, **SMALL)
