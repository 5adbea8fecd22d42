"""Every baseline: one interface, the same answer for the same seed, and no hidden label is used."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from fishergraph import FisherEmbedding
from fishergraph.datasets.records import undirected_graph
from fishergraph.lab.baselines import BASELINES, baseline

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

SMALL = {
    "netmf": {"dim": 8, "window": 3},
    "node2vec": {"dim": 8, "walk_length": 10, "n_walks": 4, "window": 3, "epochs": 5},
    "fie": {"n_layers": 1, "n_anchors": 2, "dim": 16},
    "fie-reference": {"n_layers": 1, "n_anchors": 2, "dim": 16},
    "mlp": {"epochs": 30, "lr": 0.05},
    "gcn": {"epochs": 20, "lr": 0.05},
    "sage": {"epochs": 20, "hidden": 16},
    "gat": {"epochs": 20, "hidden": 8, "heads": 2, "dropout": 0.2, "lr": 0.05},
    "gatv2": {"epochs": 20, "hidden": 8, "heads": 2, "dropout": 0.2, "lr": 0.05},
    "fie-supervised": {"epochs": 20, "hidden": 8, "heads": 2, "lr": 0.05},
}
each_baseline = pytest.mark.parametrize("name", list(BASELINES))


class Problem:
    """A graph whose classes prefer their own members and their own words; labels are strings."""

    def __init__(self, n_nodes=150, n_features=30, n_classes=3, seed=0):
        rng = np.random.default_rng(seed)
        codes = rng.integers(n_classes, size=n_nodes)
        same = codes[:, None] == codes[None, :]
        ends = np.nonzero(np.triu(rng.random((n_nodes, n_nodes)) < np.where(same, 0.2, 0.01), 1))
        self.graph = undirected_graph(*ends, n_nodes)
        typical = np.arange(n_features) % n_classes == codes[:, None]
        self.X = sp.csr_array((rng.random((n_nodes, n_features)) < np.where(typical, 0.5, 0.1)).astype(np.float32))
        self.y = np.array(["ant", "bee", "cat"])[codes]
        self.train, self.val, self.test = np.arange(60), np.arange(60, 100), np.arange(100, n_nodes)

    def fit(self, name, seed=0, y=None, **settings):
        if name == "node2vec":
            pytest.importorskip("gensim")
        model = baseline(name, **{**SMALL.get(name, {}), **settings})
        y = self.y if y is None else y
        return model.fit(self.X, y, graph=self.graph, train=self.train, val=self.val, seed=seed)


PROBLEM = Problem()


@each_baseline
def test_it_learns_and_answers(name):
    model = PROBLEM.fit(name)
    proba = model.predict_proba()
    assert proba.shape == (150, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert list(model.classes_) == ["ant", "bee", "cat"]
    np.testing.assert_array_equal(model.predict(PROBLEM.test), model.predict()[PROBLEM.test])
    assert model.val_score_ == pytest.approx(model.score(PROBLEM.y, PROBLEM.val))
    assert model.score(PROBLEM.y, PROBLEM.test) > 0.8


@each_baseline
def test_labels_of_other_nodes_are_never_seen(name):
    y = PROBLEM.y.copy()
    y[PROBLEM.test] = "a name that is no class"
    np.testing.assert_array_equal(PROBLEM.fit(name, y=y).predict_proba(), PROBLEM.fit(name).predict_proba())


@each_baseline
def test_a_seed_decides_and_the_global_state_is_left_alone(name):
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = PROBLEM.fit(name, seed=3).predict_proba()
    second = PROBLEM.fit(name, seed=3).predict_proba()
    np.testing.assert_array_equal(first, second)
    assert torch.equal(before[0], torch.random.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    if name not in ("wwl", "sgc", "s2gc", "sign", "label-propagation"):
        assert not np.array_equal(first, PROBLEM.fit(name, seed=4).predict_proba())


@each_baseline
def test_it_travels_before_and_after_fit(name):
    model = PROBLEM.fit(name)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(), model.predict_proba())
    assert clone(model).get_params() == model.get_params()


@each_baseline
def test_a_class_that_only_validation_nodes_have_counts_as_wrong(name):
    y = PROBLEM.y.astype("<U8")
    y[PROBLEM.val[:10]] = "dog"
    model = PROBLEM.fit(name, y=y)
    assert list(model.classes_) == ["ant", "bee", "cat", "dog"]
    assert "dog" not in model.predict()
    assert model.val_score_ <= 0.75


def test_unknown_names_and_settings_list_the_known_ones():
    with pytest.raises(ValueError, match=r"'wwl', .*'gta'"):
        baseline("gta")
    with pytest.raises(ValueError, match=r"SGC .*'n_steps', .*'steps'"):
        baseline("sgc", steps=3)
    with pytest.raises(ValueError, match="got 'kind'"):
        baseline("gcn", kind="gat")
    with pytest.raises(ValueError, match="'mlp', got 'logitsic'"):
        PROBLEM.fit("sgc", probe="logitsic")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "X .*SGC"),
        ({"graph": None}, "graph .*SGC"),
        ({"X": np.ones((7, 2))}, "7 rows"),
        ({"X": np.full((150, 2), np.nan)}, "X"),
        ({"y": np.zeros(7)}, r"y .*\(7,\)"),
        ({"val": np.arange(50, 100)}, "disjoint"),
        ({"train": []}, "train"),
        ({"train": [0], "val": [1]}, "two classes"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input(change, message):
    arguments = {"X": PROBLEM.X, "y": PROBLEM.y, "graph": PROBLEM.graph, "train": PROBLEM.train, "val": PROBLEM.val}
    arguments |= change
    X, y = arguments.pop("X"), arguments.pop("y")
    with pytest.raises(ValueError, match=message):
        baseline("sgc").fit(X, y, **arguments)


def test_graph_or_features_alone_are_enough_where_no_more_is_read():
    problem, split = PROBLEM, {"train": PROBLEM.train, "val": PROBLEM.val}
    alone = baseline("label-propagation").fit(None, problem.y, graph=problem.graph, **split)
    np.testing.assert_array_equal(alone.predict_proba(), problem.fit("label-propagation").predict_proba())
    alone = baseline("mlp", **SMALL["mlp"]).fit(problem.X, problem.y, **split)
    np.testing.assert_array_equal(alone.predict_proba(), problem.fit("mlp").predict_proba())


@pytest.mark.parametrize("probe", ["mlp", "lightgbm"])
def test_other_probes(probe):
    options = {"epochs": 20, "hidden": 16} if probe == "mlp" else {"time_budget": None, "n_trials": 5}
    if probe == "lightgbm":
        pytest.importorskip("flaml")
    first, second = (PROBLEM.fit("sign", probe=probe, probe_options=options, seed=1) for _ in range(2))
    assert first.score(PROBLEM.y, PROBLEM.test) > 0.8
    np.testing.assert_array_equal(first.predict_proba(), second.predict_proba())


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_norms_and_sampled_batches(norm):
    model = PROBLEM.fit("sage", norm=norm, batch_size=20, fan_out=5, n_layers=2)
    assert model.score(PROBLEM.y, PROBLEM.test) > 0.8
    with pytest.raises(ValueError, match=r"norm .*'bach'"):
        PROBLEM.fit("sage", norm="bach")


def test_a_missing_package_is_named_with_the_line_to_type(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "gensim"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(ImportError, match=r"gensim.*fishergraph\[baselines\]"):
        baseline("node2vec").fit(None, PROBLEM.y, graph=PROBLEM.graph, train=PROBLEM.train, val=PROBLEM.val)


def test_the_table_needs_no_extra():
    code = "import sys; from fishergraph.lab.baselines import baseline; baseline('sgc'); baseline('node2vec'); print("
    code += "[m for m in ('torch', 'gensim', 'lightgbm', 'flaml', 'optuna') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["gcn", "gat", "gatv2", "sage", "mlp"])
def test_sparse_features_are_as_good_as_dense_ones(name):
    settings = {**SMALL[name], "epochs": 3, "dropout": 0.0}  # dropout draws for other entries
    split = {"train": PROBLEM.train, "val": PROBLEM.val, "graph": PROBLEM.graph}
    dense = baseline(name, **settings).fit(PROBLEM.X.toarray(), PROBLEM.y, **split)
    sparse = baseline(name, **settings).fit(PROBLEM.X, PROBLEM.y, **split)
    np.testing.assert_allclose(sparse.predict_proba(), dense.predict_proba(), atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "gcn", "sage", "gat", "gatv2", "fie-supervised"])
def test_the_last_hidden_rows_are_what_the_last_layer_sees(name):
    model = PROBLEM.fit(name)
    rows = model.last_hidden(PROBLEM.X, PROBLEM.graph)
    assert rows.shape == (PROBLEM.X.shape[0], model.hidden)
    last, seen = model._last_layer(), torch.from_numpy(rows)
    if name == "fie-supervised":
        block = last.weight[:, -model.hidden :]
        assert block.shape[1] == seen.shape[1]
        assert rows.std(axis=0).max() > 0
        return
    targets = np.repeat(np.arange(len(rows)), np.diff(PROBLEM.graph.indptr))
    edges = torch.from_numpy(np.stack([PROBLEM.graph.indices.astype(np.int64), targets]))
    with torch.no_grad():
        logits = last(seen) if name == "mlp" else last(seen, edges)
    np.testing.assert_allclose(torch.softmax(logits, 1).numpy(), model.predict_proba(), atol=1e-5)


def test_a_network_without_a_hidden_layer_says_so():
    model = PROBLEM.fit("gcn", n_layers=1)
    with pytest.raises(ValueError, match="n_layers"):
        model.last_hidden(PROBLEM.X, PROBLEM.graph)


def test_fie_is_the_paper_s_and_walks_on_request():
    assert baseline("fie").embedding(0).settings().names == ["psi0", "psi1", "psi2", "psi3"]
    assert baseline("fie", options={"walk": 0.2}).embedding(0).walk == 0.2
    assert baseline("fie-reference").embedding(0).get_params() == (
        FisherEmbedding.published_code(n_layers=3, random_state=0).set_params(kernel__bandwidth=1.0).get_params()
    )
