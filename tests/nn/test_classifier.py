"""FisherClassifier is a scikit-learn classifier: its contract, a graph, labels of all kinds, and files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import fishergraph
from fishergraph import EM, FisherClassifier, FisherEmbedding, GaussianMixture, PageRank, Structure, as_graph
from fishergraph._errors import InputError, InputTypeError, MissingDevice
from fishergraph.estimators.labels import hold_out, read_labels
from fishergraph.nn import Network, Training, WeightedMixture

NETWORK, TRAINING = Network(head="linear", dropout=0.0), Training(lr=0.05, max_epochs=15)
SMALL = {"n_layers": 1, "n_anchors": 2, "dim": 8, "network": NETWORK, "training": TRAINING, "random_state": 0}


def small(**changes) -> FisherClassifier:
    """A classifier with other values of some options of the network, of the training, or of its own."""
    network = {name: changes.pop(name) for name in NETWORK.get_params() if name in changes}
    training = {name: changes.pop(name) for name in TRAINING.get_params() if name in changes}
    params = {**SMALL, "network": NETWORK.set_params(**network), "training": TRAINING.set_params(**training)}
    return FisherClassifier(**{**params, **changes})


def community_graph(n=60, seed=0):
    """Features, labels and a matrix of three communities; the features alone tell little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    chance = np.where(y[:, None] == y[None, :], 0.25, 0.01)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    X = rng.normal(size=(n, 5)) + 0.7 * np.eye(5)[y]
    return X.astype(np.float32), y, sp.csr_array((upper + upper.T).astype(np.float32))


X, Y, A = community_graph()
COUNTS = np.random.default_rng(0).poisson(1 + 1.5 * np.eye(5)[Y]).astype(np.float32)
TRAIN, VAL, TEST = np.arange(0, 24), np.arange(24, 36), np.arange(36, 60)
HIDDEN = np.where(np.isin(np.arange(60), TEST), -1, Y)  # what a user knows


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [
        small(max_epochs=10, lr=0.1, head="nystrom"),
        small(max_epochs=10, lr=0.1, head="relu", init="random", em=EM(n_iter=2), n_layers=2),
        small(max_epochs=30, lr=0.1, family="multinomial"),
    ]
)
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


# --- learning -------------------------------------------------------------------------------------------


def test_the_graph_helps():
    model = small(max_epochs=60).fit(X, HIDDEN, graph=A, val=VAL)
    alone = small(max_epochs=60).fit(X, HIDDEN, val=VAL)
    right = (model.predict(X, graph=A) == Y)[TEST].mean()
    assert right > 0.85
    assert right > (alone.predict(X) == Y)[TEST].mean() + 0.1


def test_every_spelling_is_the_same_fit():
    reference = small().fit(X, HIDDEN, graph=A, val=VAL).predict_proba(X, graph=A)
    mask = np.isin(np.arange(60), VAL)
    for data, labels, graph, val in (
        (X, HIDDEN, A, mask),
        (X, HIDDEN.tolist(), as_graph(A), VAL.tolist()),
        (X, np.where(HIDDEN < 0, np.nan, HIDDEN), A, VAL),
        (pd.DataFrame(X), pd.Series(HIDDEN), A.tocoo(), VAL),
        (X, HIDDEN, np.stack(A.nonzero()[::-1]), VAL),
    ):
        found = small().fit(np.asarray(data), labels, graph=graph, val=val).predict_proba(X, graph=A)
        np.testing.assert_array_equal(found, reference)
    # k-means draws otherwise from sparse rows
    reference = small(init="random").fit(X, HIDDEN, graph=A, val=VAL).predict_proba(X, graph=A)
    for kind in (sp.csr_array, sp.csc_matrix):
        found = small(init="random").fit(kind(X), HIDDEN, graph=A, val=VAL).predict_proba(kind(X), graph=A)
        np.testing.assert_allclose(found, reference, atol=1e-4)


def test_labels_of_strings_and_none():
    names = np.array(["ape", "bee", "cat"], dtype=object)[Y]
    names[TEST] = None
    named = small().fit(X, names, graph=A, val=VAL)
    numbered = small().fit(X, HIDDEN, graph=A, val=VAL)
    assert named.classes_.tolist() == ["ape", "bee", "cat"]
    np.testing.assert_array_equal(named.predict(X, graph=A), named.classes_[numbered.predict(X, graph=A)])
    scored = np.array(["ape", "bee", "cat"], dtype=object)[Y]
    scored[VAL] = None
    rows = np.r_[TRAIN, TEST]
    expected = (named.predict(X, graph=A) == scored)[rows].mean()
    assert named.score(X, scored, graph=A) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([0, 2, -1, 2], [0, 2], [0, 1, -1, 1]),
        ([-1, 1, 1, -1], [-1, 1], [0, 1, 1, 0]),
        ([-1, 1, 0, -1], [0, 1], [-1, 1, 0, -1]),
        ([1.0, float("nan"), 0.0, -1.0], [0, 1], [1, -1, 0, -1]),
        (["b", None, "a", float("nan")], ["a", "b"], [1, -1, 0, -1]),
        ([3, None, 5, -1], [3, 5], [0, -1, 1, -1]),
        ([True, False, False, True], [False, True], [1, 0, 0, 1]),
        (pd.array([4, None, 6, 4], dtype="Int64"), [4, 6], [0, -1, 1, 0]),
        (["b", "", "a", "  "], ["a", "b"], [1, -1, 0, -1]),
        (["b", "", "a", None], ["a", "b"], [1, -1, 0, -1]),
        (pd.array(["b", "", "a", None], dtype="string"), ["a", "b"], [1, -1, 0, -1]),
        (["-1", "1", "1", "-1"], ["-1", "1"], [0, 1, 1, 0]),
        (["-1", "a", "b", "a"], ["-1", "a", "b"], [0, 1, 2, 1]),
    ],
    ids=[
        "numbers",
        "minus one and one",
        "semi-supervised",
        "floats",
        "strings",
        "objects",
        "flags",
        "pandas",
        "empty texts",
        "empty texts and None",
        "pandas texts",
        "signs as texts",
        "a class of that name",
    ],
)
@pytest.mark.filterwarnings("error")
def test_labels_and_what_is_none(y, classes, codes):
    found, numbers = read_labels(y, 4)
    assert found.tolist() == classes
    assert numbers.tolist() == codes


def test_the_text_of_minus_one_among_texts_of_integers_marks_a_row_without_a_label():
    with pytest.warns(UserWarning, match="-1") as said:
        model = small(max_epochs=2).fit(X, HIDDEN.astype(str), graph=A)
    assert len(said) == 1
    assert model.classes_.tolist() == ["0", "1", "2"]
    numbers = small(max_epochs=2).fit(X, HIDDEN, graph=A)
    np.testing.assert_array_equal(model.predict_proba(X, graph=A), numbers.predict_proba(X, graph=A))
    with pytest.warns(UserWarning, match="-1"):
        assert model.score(X, HIDDEN.astype(str), graph=A) == numbers.score(X, HIDDEN, graph=A)
    signs = small(max_epochs=2).fit(X, np.where(Y == 1, "1", "-1"), graph=A)
    assert signs.score(X, np.full(60, "-1"), graph=A) == (signs.predict(X, graph=A) == "-1").mean()


def test_labels_meet_rows_by_name_or_are_refused():
    names = [f"n{v:02d}" for v in range(60)]
    frame, y = pd.DataFrame(X, index=names), pd.Series(HIDDEN, index=names)
    known = small(max_epochs=2).fit(frame, y, graph=A).predict_proba(frame, graph=A)
    for wrong in (y[::-1], y[:40]):
        with pytest.raises(ValueError, match=r"y\.reindex"):
            small(max_epochs=2).fit(frame, wrong, graph=A)
    again = small(max_epochs=2).fit(frame, y[::-1].reindex(frame.index), graph=A)
    np.testing.assert_array_equal(again.predict_proba(frame, graph=A), known)
    with pytest.raises(ValueError, match="y must"):
        again.score(frame, y[::-1], graph=A)
    with pytest.raises(TypeError, match="dict"):
        small(max_epochs=2).fit(frame, y.to_dict(), graph=A)
    by_position = small(max_epochs=2).fit(frame, pd.Series(HIDDEN), graph=A)  # an index that only counts
    np.testing.assert_array_equal(by_position.predict_proba(frame, graph=A), known)
    edges = sp.coo_array(A)
    table = pd.DataFrame({"source": np.array(names)[edges.col], "target": np.array(names)[edges.row]})
    ids = as_graph(table).ids
    with pytest.raises(ValueError, match=r"as_graph\(graph\)\.ids"):
        small(max_epochs=2).fit(y=y[::-1], graph=table)
    assert small(max_epochs=2).fit(y=y[::-1].reindex(ids), graph=table).predict(graph=table).shape == (len(ids),)


def test_a_graph_is_asked_for_as_in_the_fit(tmp_path):
    model = small(max_epochs=2).fit(X, HIDDEN, graph=A)
    model.save(tmp_path / "model.safetensors")
    for known in (model, FisherClassifier.load(tmp_path / "model.safetensors")):
        for call in (known.predict, known.predict_proba, lambda rows, known=known: known.score(rows, Y)):
            with pytest.raises(ValueError, match="given"):
                call(X)
    with pytest.raises(ValueError, match="left out"):
        small(max_epochs=2).fit(X, HIDDEN).predict(X, graph=A)


def test_a_graph_in_the_place_of_features():
    graph = as_graph(A)
    expected = small(max_epochs=2).fit(None, HIDDEN, graph=graph).predict_proba(None, graph=graph)
    found = small(max_epochs=2).fit(graph, HIDDEN)
    np.testing.assert_array_equal(found.predict_proba(graph), expected)
    np.testing.assert_array_equal(found.predict_proba(graph=graph), expected)


def test_a_score_of_one_class_knows_which_labels_there_are():
    """−1 and 1 are all there is: the first marks rows without a label where it is no class of the model."""
    model = small(max_epochs=2).fit(X, Y, graph=A)
    only = np.where(Y == 1, 1, -1)
    assert model.score(X, only, graph=A) == pytest.approx((model.predict(X, graph=A) == 1)[Y == 1].mean())
    signs = small(max_epochs=2).fit(X, only, graph=A)
    below = np.full(len(Y), -1)
    assert signs.score(X, below, graph=A) == pytest.approx((signs.predict(X, graph=A) == -1).mean())


def test_nobody_held_out_and_labels_of_two_kinds():
    assert small(max_epochs=2).fit(X, Y, graph=A, val=[]).n_iter_ == 2
    mixed = np.where(Y == 1, "one", Y.astype(object))
    for y in (mixed, mixed[::-1]):
        with pytest.raises(ValueError, match="strings"):
            small().fit(X, y, graph=A)


def test_score_counts_labelled_rows_and_their_weights():
    model = small().fit(X, HIDDEN, graph=A, val=VAL)
    right = model.predict(X, graph=A) == Y
    weight = np.arange(60.0)
    only_test = np.where(np.isin(np.arange(60), TEST), Y, -1)
    assert model.score(X, only_test, graph=A) == pytest.approx(right[TEST].mean())
    expected = (weight * right)[TEST].sum() / weight[TEST].sum()
    assert model.score(X, only_test, weight, graph=A) == pytest.approx(expected)


def test_a_share_of_every_class_is_held_out():
    codes = np.repeat([0, 1, 2, -1], [40, 20, 4, 10])
    held = hold_out(codes, 0.2, seed=0)
    assert np.bincount(codes[held], minlength=3).tolist() == [8, 4, 0]
    assert held.tolist() != hold_out(codes, 0.2, seed=1).tolist()
    history = small(validation_fraction=0, max_epochs=4).fit(X, HIDDEN, graph=A).history_
    assert history.column("val_accuracy") == [None] * 4


def test_another_graph_needs_no_fit():
    model = small(max_epochs=60).fit(X, HIDDEN, graph=A, val=VAL)
    new_X, new_y, new_A = community_graph(90, seed=5)
    assert model.score(new_X, new_y, graph=new_A) > 0.6
    # A node's logits depend on its own neighbourhood only: a union of two graphs changes nothing.
    both = model.predict_proba(np.vstack([X, new_X]), graph=sp.block_diag([A, new_A], format="csr"))
    np.testing.assert_allclose(both[60:], model.predict_proba(new_X, graph=new_A), atol=1e-5)


@pytest.mark.parametrize("multiset", ["open-neighbourhood", "ppr", PageRank(members=4)])
def test_other_multisets_in_both_modes(multiset):
    for mode in ({}, {"batch_size": 8, "fan_out": 100}):
        model = small(multiset=multiset, max_epochs=30, **mode).set_params(multiset__weights="symmetric")
        model.fit(X, HIDDEN, graph=A, val=VAL)
        assert model.score(X, Y, graph=A) > 0.7
    plain = small(max_epochs=30).fit(X, HIDDEN, graph=A, val=VAL)
    assert np.abs(model.predict_proba(X, graph=A) - plain.predict_proba(X, graph=A)).max() > 1e-3


def test_mini_batches_of_everything_train_on_what_the_whole_graph_trains_on():
    """With all neighbours and one batch, an epoch is the same step, loops and weights included."""
    options = {"multiset": "ppr", "max_epochs": 3, "n_layers": 2}
    whole = small(**options).fit(X, HIDDEN, graph=A, val=VAL)
    batch = small(**options, batch_size=100, fan_out=-1).fit(sp.csr_array(X), HIDDEN, graph=A, val=VAL)
    for one, two in zip(whole.history_.rows, batch.history_.rows, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)


@pytest.mark.parametrize("family", ["diagonal-mixture", "von-mises-fisher", "multinomial", "gaussian"])
def test_other_families(family, tmp_path):
    x = COUNTS if family == "multinomial" else X
    model = small(family=family, max_epochs=40).fit(x, HIDDEN, graph=A, val=VAL)
    assert type(model.net_.convs[0].mixture).__name__ == "FamilyMixture"
    assert (model.predict(x, graph=A)[TEST] == Y[TEST]).mean() > 0.6
    model.save(tmp_path / "m.safetensors")
    again = FisherClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(x, graph=A), model.predict_proba(x, graph=A))


def test_counts_of_documents():
    """Sparse counts, deeper stacks, mini-batches; the first layer sees X and not its unit rows."""
    x = sp.csr_array(COUNTS)
    for options in ({}, {"n_layers": 2, "head": "relu"}, {"batch_size": 16, "n_layers": 2}):
        model = small(family="multinomial", **options).fit(x, HIDDEN, graph=A, val=VAL)
        sparse, dense = (model.predict_proba(points, graph=A) for points in (x, COUNTS))
        np.testing.assert_allclose(sparse, dense, atol=1e-5)
    assert model.net_.convs[0].mixture.trials == pytest.approx(float(x.sum()) / 60, rel=0.3)
    assert not np.allclose(model.predict_proba(2 * x, graph=A), model.predict_proba(x, graph=A), atol=1e-3)


def test_families_that_do_not_fit():
    with pytest.raises(ValueError, match="family"):
        small(family="normal").fit(X, Y)
    with pytest.raises(ValueError, match="counts"):
        small(family="multinomial").fit(X, Y)
    with pytest.raises(ValueError, match="128"):
        small(family="gaussian", dim=200).fit(X, Y)


def test_structural_features():
    model = small(max_epochs=40, structure="spectral", dim=4).fit(None, HIDDEN, graph=A, val=VAL)
    assert model.score(None, Y, graph=A) > 0.6


def test_the_type_of_x_is_kept_on_the_cpu():
    for dtype in (np.float32, np.float64):
        model = small(max_epochs=2).fit(X.astype(dtype), HIDDEN, graph=A)
        assert model.predict_proba(X, graph=A).dtype == dtype


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there():
    with pytest.raises(MissingDevice, match="cuda"):
        small(device="cuda").fit(X, HIDDEN, graph=A)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", [{}, {"batch_size": 10, "fan_out": 5}])
def test_a_gpu(tmp_path, mode):
    for data in (X.astype(np.float64), sp.csr_array(X)):
        model = small(device="cuda", max_epochs=40, **mode).fit(data, HIDDEN, graph=A, val=VAL)
        assert model.score(data, Y, graph=A) > 0.7
        chances = model.predict_proba(data, graph=A)
        assert chances.dtype == np.float32
        model.save(tmp_path / "m")
        there = FisherClassifier.load(tmp_path / "m", device="cpu").predict_proba(data, graph=A)
        np.testing.assert_allclose(there, chances, atol=1e-4)


def test_a_seed_decides_everything_and_nothing_else_is_touched():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, two, three = (small(random_state=seed).fit(X, HIDDEN, graph=A) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    np.testing.assert_array_equal(one.predict_proba(X, graph=A), two.predict_proba(X, graph=A))
    assert np.abs(one.predict_proba(X, graph=A) - three.predict_proba(X, graph=A)).max() > 1e-3


# --- scikit-learn's tools -------------------------------------------------------------------------------


def test_grid_search_routes_the_graph():
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_fit_request(graph=True).set_score_request(graph=True)
        grid = {"n_layers": [0, 2], "network__dropout": [0.0, 0.1]}
        search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y, graph=as_graph(A))
        assert set(search.cv_results_["param_n_layers"]) == {0, 2}
        assert search.score(X, Y, graph=as_graph(A)) > 0.5


def test_clone_and_pickle():
    model = small(multiset=PageRank(members=3)).fit(X, HIDDEN, graph=A)
    assert clone(model).get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X, graph=A), model.predict_proba(X, graph=A))


def test_it_is_a_lazy_name_of_the_package():
    assert fishergraph.FisherClassifier is FisherClassifier


# --- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numbers", "strings", "objects", "flags"])
def test_save_and_load(tmp_path, kind):
    path = tmp_path / "model.safetensors"
    names = {"numbers": [5, 7, 9], "strings": ["a", "b", "c"], "flags": [False, True, True]}
    y = np.array(names.get(kind, ["a", "b", "c"]), dtype=object if kind == "objects" else None)[Y]
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(5)])
    model = small(head="relu", multiset=PageRank(members=3)).fit(frame, y, graph=A, val=VAL)
    model.save(path)
    copy = FisherClassifier.load(path)
    assert copy.get_params() == model.get_params()
    assert copy.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(copy.predict_proba(frame, graph=A), model.predict_proba(frame, graph=A))
    np.testing.assert_array_equal(copy.predict(frame, graph=A), model.predict(frame, graph=A))
    assert copy.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3", "f4"]
    assert copy.history_ == model.history_
    assert FisherClassifier.load(path, device="cpu").device == "cpu"


def test_files_of_other_things(tmp_path):
    FisherEmbedding(n_layers=1, dim=4, random_state=0).fit(X, graph=A).save(tmp_path / "e")
    small(max_epochs=1).fit(X, Y).save(tmp_path / "c")
    with pytest.raises(ValueError, match="FisherEmbedding"):
        FisherClassifier.load(tmp_path / "e")
    with pytest.raises(ValueError, match="FisherClassifier"):
        FisherEmbedding.load(tmp_path / "c")
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:200])
    with pytest.raises(ValueError, match="foreign"):
        FisherClassifier.load(tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="expected"):
        FisherClassifier.load(tmp_path / "absent")


def test_a_checkpoint_of_a_fit_is_resumed(tmp_path):
    whole = small(max_epochs=8, patience=None).fit(X, HIDDEN, graph=A)
    small(max_epochs=4, patience=None).fit(X, HIDDEN, graph=A, checkpoint=tmp_path / "c")
    resumed = small(max_epochs=8, patience=None).fit(
        X, HIDDEN, graph=A, checkpoint=tmp_path / "c", resume=True, log=tmp_path / "l.csv"
    )
    np.testing.assert_array_equal(resumed.predict_proba(X, graph=A), whole.predict_proba(X, graph=A))
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 9


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X, HIDDEN, graph=A, val=VAL)


# --- bad input ------------------------------------------------------------------------------------------

ONLY_VAL = np.where(np.isin(np.arange(60), np.r_[TRAIN[Y[TRAIN] == 2], TEST]), -1, Y)
BAD = {
    "no labels": ({"y": np.full(60, -1)}, "at least one row"),
    "length": ({"y": Y[:50]}, "60 rows"),
    "continuous": ({"y": np.linspace(0, 1, 60)}, "continuous"),
    "two columns": ({"y": np.stack([Y, Y], 1)}, "60, 2"),
    "lists of several lengths": ({"y": [[1, 2], [3]]}, "^y"),
    "a number": ({"y": 3}, "^y"),
    "nested objects": ({"y": np.array([[1, 2], [3]] * 30, dtype=object)}, "y"),
    "complex numbers": ({"y": 1j * Y}, "^y"),
    "bytes": ({"y": np.where(Y > 0, b"a", b"b")}, "y"),
    "dates": ({"y": Y.astype("M8[D]")}, "y"),
    "val of several lengths": ({"val": [[1, 2], [3]]}, "val"),
    "val without labels": ({"val": TEST}, "36"),
    "val out of range": ({"val": [3, 60]}, "val"),
    "short mask": ({"val": np.ones(9, dtype=bool)}, "mask"),
    "val of floats": ({"val": [0.5]}, "float64"),
    "class only in val": ({"y": ONLY_VAL}, "class 2"),
    "class by name": (
        {"y": np.where(ONLY_VAL < 0, None, np.array(["a", "b", "c"], dtype=object)[ONLY_VAL])},
        "class 'c'",
    ),
    "NaN": ({"X": np.where(np.arange(60)[:, None] == 4, np.nan, X)}, "row 4"),
    "nodes": ({"graph": A[:50, :50]}, "50 nodes"),
    "edges of floats": ({"graph": np.array([[0.5, 1.0], [1.0, 2.0]])}, "edge_index"),
    "nothing": ({"X": None, "graph": None}, "X or graph"),
}
PARAMS = {
    "n_layers": -1,
    "n_anchors": 0,
    "dim": 2.5,
    "normalize": 1,
    "max_epochs": 0,
    "head": "tanh",
    "jk": "max",
    "init": "zeros",
    "multiset": "pagerank",
    "family": "normal",
    "structure": "none",
    "schedule": "step",
    "validation_fraction": 1.0,
    "dropout": 1.5,
    "input_dropout": 1.5,
    "heads": 0,
    "device": "gpu",
    "lr": 0,
    "weight_decay": -1,
    "patience": 0,
    "amp": "int8",
    "batch_size": 0,
    "fan_out": [3, 0],
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    changes, pattern = BAD[case]
    given = {"X": X, "y": HIDDEN, "graph": A, "val": VAL, **changes}
    with pytest.raises((InputError, InputTypeError), match=pattern):
        small().fit(given.pop("X"), given.pop("y"), **given)


@pytest.mark.parametrize("weights", [[[1, 2], [3]], {1: 2}, 3, ["a"] * 60, [1.0] * 59, [np.nan] * 60, [object()] * 60])
def test_weights_of_another_kind_in_a_score(weights, fitted):
    with pytest.raises(InputError, match="sample_weight"):
        fitted.score(X, Y, weights, graph=A)


def test_labels_of_another_kind_in_a_score(fitted):
    for y in ([[1, 2], [3]], 3, [object()] * 60):
        with pytest.raises(InputError, match="y"):
            fitted.score(X, y, graph=A)


@pytest.mark.parametrize("name", PARAMS)
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=name):
        small(**{name: PARAMS[name]}).fit(X, HIDDEN, graph=A, val=VAL)


@pytest.mark.parametrize(("name", "value"), [("network", "relu"), ("training", 3), ("em", 3)])
def test_components_of_another_kind(name, value):
    with pytest.raises(TypeError, match=name):
        small().set_params(**{name: value}).fit(X, HIDDEN, graph=A)


def test_more_hops_than_layers():
    for mode in ({"fan_out": [3, 3, 3]}, {"fan_out": [3, 3, 3], "batch_size": 8}):
        with pytest.raises(ValueError, match="num_neighbors"):
            small(**mode).fit(X, HIDDEN, graph=A)


def test_it_has_at_most_16_parameters():
    names = FisherClassifier().get_params(deep=False)
    assert len(names) <= 16
    nested = FisherClassifier().get_params()
    assert {"network__dropout", "training__lr", "family__sharpness", "em__prior", "multiset__weights"} <= set(nested)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"dim": 9}, "dim"),
        ({"n_layers": 2}, "n_layers"),
        ({"network__head": "relu"}, "network"),
        ({"family": GaussianMixture(sharpness=0.2)}, "family"),
        ({"multiset": "ppr"}, "multiset"),
        ({"em": EM(prior=1.0)}, "em"),
        ({"normalize": False}, "normalize"),
    ],
    ids=str,
)
def test_a_parameter_that_was_changed_after_the_fit(change, name, tmp_path):
    model = small(max_epochs=1).fit(X, HIDDEN, graph=A)
    expected = model.predict_proba(X, graph=A)
    model.set_params(n_jobs=1, family="gaussian-mixture", em=EM(), training=Training())  # the same model
    np.testing.assert_array_equal(model.predict_proba(X, graph=A), expected)
    model.set_params(**change)
    for call in (lambda: model.predict(X, graph=A), lambda: model.save(tmp_path / "m")):
        with pytest.raises(ValueError, match=name) as error:
            call()
        assert error.value.parameter == name


def test_trained_weights_of_components_are_kept(tmp_path):
    model = small(family=WeightedMixture(sharpness=0.5)).fit(X, HIDDEN, graph=A, val=VAL)
    assert model.net_.convs[0].mixture.bias.abs().max() > 0
    model.save(tmp_path / "m")
    again = FisherClassifier.load(tmp_path / "m")
    assert again.family == WeightedMixture(sharpness=0.5)
    np.testing.assert_array_equal(again.predict_proba(X, graph=A), model.predict_proba(X, graph=A))


def test_another_width_at_prediction():
    model = small(max_epochs=1).fit(X, HIDDEN, graph=A)
    with pytest.raises(ValueError, match="5 features"):
        model.predict(X[:, :4], graph=A)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = small(max_epochs=3).fit(X, Y, graph=A)
    known = model.predict_proba(X, graph=A)
    words = np.array(["a", "b", "c", "d"])
    for changes in ({"val": [1, 2, 99]}, {"val": np.arange(60)}):
        with pytest.raises(ValueError, match=r"val|train"):
            model.fit(X[:, :4], words[np.arange(60) % 4], graph=A, **changes)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(X, graph=A), known)
    fresh = small()
    with pytest.raises(ValueError, match="val"):
        fresh.fit(X, Y, graph=A, val=[99])
    with pytest.raises(NotFittedError):
        fresh.predict(X, graph=A)


@pytest.mark.parametrize("dim", [2, 8])
def test_the_structure_of_a_network_has_its_own_width(dim):
    """`n_factors`, or the width of a layer, and at least the four columns that a projection needs."""
    for structure, width in (("projection", max(dim, 4)), (Structure("factors", n_factors=5), 5)):
        options = {"structure": structure, "training": Training(max_epochs=1), "random_state": 0}
        model = FisherClassifier(1, 2, dim, **options).fit(None, Y, graph=A)
        assert (model.structure_.width, model.n_features_in_) == (width, width)
