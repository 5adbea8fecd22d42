"""FisherClassifier(mode="probe"): the embedding and GraphProbe on it, without torch."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from fishergraph import FisherClassifier, FisherEmbedding, GraphProbe, as_graph, load_graph
from fishergraph._errors import FileFormatError, InputError
from fishergraph.estimators.labels import hold_out, read_rows
from fishergraph.io.array_file import read_file

SMALL = {"mode": "probe", "n_layers": 1, "n_anchors": 2, "dim": 16, "random_state": 0}


def small(**changes) -> FisherClassifier:
    return FisherClassifier(**{**SMALL, **changes})


def community_graph(n=150, seed=0):
    """Features, labels and a matrix of three communities; the features alone tell little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    chance = np.where(y[:, None] == y[None, :], 0.15, 0.01)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    X = rng.normal(size=(n, 5)) + 0.7 * np.eye(5)[y]
    return X.astype(np.float32), y, sp.csr_array((upper + upper.T).astype(np.float32))


X, Y, A = community_graph()
VAL, TEST = np.arange(30, 75), np.arange(75, 150)
HIDDEN = np.where(np.isin(np.arange(150), TEST), -1, Y)  # what a user knows


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([small(), small(family="multinomial", normalize=False)])
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


def test_it_is_the_default_embedding_and_the_probe():
    cora = load_graph("cora")
    y = np.where(np.isin(np.arange(cora.n_nodes), np.r_[cora.train, cora.val]), cora.y, -1)
    mask = np.isin(np.arange(cora.n_nodes), cora.val)
    model = FisherClassifier(mode="probe", random_state=0).fit(cora.X, y, graph=cora.graph, val=mask)
    embedding = FisherEmbedding(random_state=0)
    Z = embedding.fit_transform(cora.X, graph=cora.graph)
    probe = GraphProbe(cora.graph, blocks=embedding.get_feature_names_out(), random_state=0)
    probe.fit(Z, cora.y, cora.train, cora.val)
    P = model.predict_proba(cora.X, graph=cora.graph)
    np.testing.assert_allclose(P, probe.predict_proba(), atol=1e-6)
    assert model.probe_.chosen_ == probe.chosen_
    rest = np.setdiff1d(np.arange(cora.n_nodes), np.r_[cora.train, cora.val, cora.test])
    assert np.mean(model.predict(cora.X, graph=cora.graph)[rest] == cora.y[rest]) > 0.8


def test_no_torch_is_imported(tmp_path):
    code = """
import sys
class NoTorch:  # as if it were not installed
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "torch_geometric"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
import numpy as np, scipy.sparse as sp
from fishergraph import FisherClassifier
rng = np.random.default_rng(0)
y = np.arange(60) % 2
X, A = rng.normal(size=(60, 4)) + y[:, None], sp.csr_array((rng.random((60, 60)) < 0.1).astype(float))
model = FisherClassifier(mode="probe", dim=8, random_state=0)
model.get_params(deep=True), repr(model), model.set_params(family__sharpness=0.5)
model.fit(X, y, graph=A).save(sys.argv[1])
again = FisherClassifier.load(sys.argv[1])
assert (again.predict(X, graph=A) == model.predict(X, graph=A)).all()
try:
    FisherClassifier().fit(X, y, graph=A)
except ImportError as error:
    print("torch" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "True\n"


def test_the_graph_helps():
    model = small().fit(X, HIDDEN, graph=A, val=VAL)
    alone = small().fit(X, HIDDEN, val=VAL)
    right = (model.predict(X, graph=A) == Y)[TEST].mean()
    assert right > 0.85
    assert right > (alone.predict(X) == Y)[TEST].mean() + 0.1
    assert model.score(X, np.where(HIDDEN < 0, Y, -1), graph=A) == pytest.approx(right)


def test_labels_of_strings_and_ids_of_tables():
    names = np.array(["ape", "bee", "cat"], dtype=object)[Y]
    names[TEST] = None
    ids = [f"n{v:03d}" for v in range(150)]
    frame = pd.DataFrame(X, index=ids, columns=list("abcde"))
    edges = sp.coo_array(A)
    table = pd.DataFrame({"source": np.array(ids)[edges.row], "target": np.array(ids)[edges.col]})
    plain = small().fit(X, HIDDEN, graph=A, val=VAL)
    model = small().fit(frame, pd.Series(names, index=ids), graph=table, val=VAL)
    assert model.classes_.tolist() == ["ape", "bee", "cat"]
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(model.predict_proba(frame, graph=table), plain.predict_proba(X, graph=A), atol=1e-4)
    with pytest.raises(InputError, match="reindex"):
        small().fit(frame, pd.Series(names, index=ids)[::-1], graph=table)


def test_without_validation_rows_a_third_is_held_out_and_all_labels_are_used():
    model = small().fit(X, HIDDEN, graph=A)
    assert model.probe_.fit_on == "train+val"
    assert (model.predict(X, graph=A) == Y)[TEST].mean() > 0.85
    again = small().fit(X, HIDDEN, graph=A)
    np.testing.assert_array_equal(model.predict_proba(X, graph=A), again.predict_proba(X, graph=A))
    codes = np.repeat([0, 1, 2, -1], [40, 2, 1, 10])
    assert np.bincount(codes[hold_out(codes, 1 / 3, 0, least=1)], minlength=3).tolist() == [13, 1, 0]
    assert np.bincount(codes[hold_out(codes, 1 / 3, 0)], minlength=3).tolist() == [13, 0, 0]


def test_other_graphs_and_new_nodes():
    model = small().fit(X, HIDDEN, graph=A, val=VAL)
    new_X, new_y, new_A = community_graph(120, seed=5)
    assert model.score(new_X, new_y, graph=new_A) > 0.6
    more = sp.block_diag([A, new_A], format="csr")
    both = model.predict_proba(np.vstack([X, new_X]), graph=more)
    assert both.shape == (270, 3)
    np.testing.assert_allclose(both[:150], model.predict_proba(X, graph=A), atol=0.05)


def test_smoothing_is_for_the_graph_of_the_fit():
    """With a thousand labels Correct & Smooth is tried; another graph has the heads of rows alone."""
    many, y, graph = community_graph(1500, seed=1)
    graph = sp.csr_array(graph.multiply(np.random.default_rng(0).random(graph.shape) < 0.1).maximum(0))
    graph = sp.csr_array(graph.maximum(graph.T))
    known = np.where(np.arange(1500) < 1300, y, -1)
    model = small().fit(many, known, graph=graph, val=np.arange(1050, 1300))
    assert "smooth" in {record["head"] for record in model.probe_.report_}
    np.testing.assert_array_equal(model.predict_proba(many, graph=graph), model.probe_.predict_proba())
    other = model.predict_proba(many[:1499], graph=graph[:1499][:, :1499])
    assert other.shape == (1499, 3)


@pytest.mark.parametrize("kind", ["numbers", "strings", "flags"])
def test_save_and_load(tmp_path, kind):
    names = {"numbers": [5, 7, 9], "strings": ["a", "b", "c"], "flags": [False, True, True]}[kind]
    y = np.array(names)[Y]
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(5)])
    model = small().fit(frame, y, graph=A, val=VAL)
    model.save(tmp_path / "m")
    copy = FisherClassifier.load(tmp_path / "m")
    assert copy.get_params() == model.get_params()
    assert copy.classes_.dtype == model.classes_.dtype
    assert copy.probe_.chosen_ == model.probe_.chosen_
    np.testing.assert_array_equal(copy.predict_proba(frame, graph=A), model.predict_proba(frame, graph=A))
    new_X, _, new_A = community_graph(90, seed=2)
    new = pd.DataFrame(new_X, columns=frame.columns)
    np.testing.assert_array_equal(copy.predict_proba(new, graph=new_A), model.predict_proba(new, graph=new_A))
    copy.save(tmp_path / "again")
    (header, arrays), (other, others) = (read_file(tmp_path / name) for name in ("m", "again"))
    assert header == other
    assert arrays.keys() == others.keys()
    assert all(np.array_equal(arrays[name], others[name]) for name in arrays)
    with pytest.raises(FileFormatError, match="FisherClassifier"):
        GraphProbe.load(tmp_path / "m")


def test_clone_pickle_and_another_mode():
    model = small().fit(X, HIDDEN, graph=A, val=VAL)
    assert clone(model).get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X, graph=A), model.predict_proba(X, graph=A))
    with pytest.raises(InputError, match="mode"):
        model.set_params(mode="network").predict(X, graph=A)
    with pytest.raises(InputError, match="dim"):
        model.set_params(mode="probe", dim=8).predict(X, graph=A)
    with pytest.raises(NotFittedError):
        small().predict(X)


@pytest.mark.parametrize("structure", ["auto", "local", None])
def test_the_structure_is_that_of_the_embedding(tmp_path, structure):
    model = small(structure=structure).fit(X, Y, graph=A)
    assert model.structure_ is model.embedding_.structure_
    model.save(tmp_path / "m")
    loaded = FisherClassifier.load(tmp_path / "m")
    assert loaded.structure_ is loaded.embedding_.structure_
    assert (loaded.structure_ is None) == (structure is None)


def test_structural_features():
    model = small(structure="factors").fit(None, HIDDEN, graph=A, val=VAL)
    assert (model.predict(graph=A) == Y)[TEST].mean() > 0.8
    by_argument = small(structure="factors").fit(as_graph(A), HIDDEN, val=VAL)
    np.testing.assert_array_equal(by_argument.predict_proba(as_graph(A)), model.predict_proba(graph=A))


ONLY_IN_VAL = np.where(np.isin(np.arange(150), VAL[:2]), 9, HIDDEN)


@pytest.mark.parametrize(
    ("params", "y", "options", "word"),
    [
        ({"mode": "forest"}, HIDDEN, {}, "mode"),
        ({}, HIDDEN, {"val": []}, "val"),
        ({}, HIDDEN, {"val": [0, 149]}, "row 149"),
        ({}, HIDDEN, {"val": [150]}, "150"),
        ({}, HIDDEN, {"val": np.ones(3, dtype=bool)}, "mask"),
        ({}, HIDDEN, {"val": np.flatnonzero(HIDDEN == 1)}, "class 1"),
        ({}, ONLY_IN_VAL, {"val": VAL}, "class 9"),
        ({}, np.zeros(150), {}, "classes"),
        ({}, np.where(np.arange(150) < 3, Y, -1), {}, "one label per class"),
        ({}, HIDDEN, {"checkpoint": "c"}, "checkpoint"),
        ({}, HIDDEN, {"log": "rows.csv"}, "log"),
        ({"walk": 1}, HIDDEN, {}, "walk"),
    ],
    ids=str,
)
def test_bad_input(params, y, options, word):
    with pytest.raises((InputError, TypeError), match=word):
        small(**params).fit(X, y, graph=A, **options)


def test_labels_are_refused_before_the_embedding(monkeypatch):
    monkeypatch.setattr(FisherEmbedding, "fit_transform", lambda *args, **kwargs: pytest.fail("embedded"))
    with pytest.raises(InputError, match="two classes"):
        small().fit(X, np.zeros(150), graph=A)


def test_options_of_a_network_belong_to_the_other_mode():
    from fishergraph.nn import Network

    with pytest.raises(InputError, match="network"):
        small(network=Network()).fit(X, HIDDEN, graph=A)
    with pytest.raises(InputError, match="given"):
        small().fit(X, HIDDEN, graph=A, val=VAL).predict(X)


@pytest.mark.parametrize("val", [[5, 3, 3], np.isin(np.arange(8), [3, 5]), pd.Series([3, 5])])
def test_rows_by_number_and_by_mask(val):
    assert read_rows(val, 8, "val").tolist() == [3, 5]
