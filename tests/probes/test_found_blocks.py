"""The blocks of a plain array: those of an embedding are found, and no other array is cut."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fishergraph import FisherEmbedding, GraphProbe, load_graph
from fishergraph.probes.found_blocks import find_blocks

CORA = load_graph("cora")


def planted(n, seed, *, words=True):
    """Words, or six numbers, that depend on the class, and a graph that joins classes at random."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    X = np.eye(6)[y] + rng.normal(size=(n, 6))
    if words:
        X = rng.random((n, 300)) < np.where(np.arange(300) % 4 == y[:, None], 0.1, 0.03)
    return X.astype(np.float32), sp.csr_array(nx.to_scipy_sparse_array(nx.gnm_random_graph(n, 3 * n, seed=seed)))


def ends(model):
    return np.cumsum([width for _, width in model.blocks_]).tolist()


def found(Z):
    return [part.stop for part in find_blocks(Z)]


def embedded(X, A, **options):
    model = FisherEmbedding(random_state=0, n_jobs=1, **options)
    return model, model.fit_transform(X, graph=A)


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"dim": 32}, {"dim": 64, "n_layers": 3}, {"structure": None}, {"walk": None}, {"n_anchors": 1}),
        *({"walk": None, "structure": None}, {"block_weights": {"walk": 0.0, "local": 1.0, "psi0": 4.0}}),
    ],
    ids=str,
)
def test_the_blocks_of_cora(options):
    model, Z = embedded(CORA.X, CORA.graph, **options)
    assert found(Z) == ends(model)


def test_the_blocks_of_other_graphs_and_inputs():
    model, Z = embedded(None, CORA.graph)
    assert found(Z) == ends(model)
    for n, words in ((90, True), (600, True), (600, False)):
        model, Z = embedded(*planted(n, n, words=words))
        assert found(Z) == ends(model)


def test_isolated_nodes_give_no_wrong_border():
    X, A = planted(600, 3)
    kept = np.arange(600) < 300
    A = sp.csr_array(A.multiply(kept[:, None] & kept))
    model, Z = embedded(X, A)
    assert set(found(Z)) <= set(ends(model))
    assert len(found(Z)) >= 5


def test_some_rows_and_other_types_have_the_same_blocks():
    model, Z = embedded(CORA.X, CORA.graph)
    rows = np.random.default_rng(0).choice(len(Z), 140, replace=False)
    for part in (Z[rows], Z[CORA.val], Z.astype(np.float64), 1e6 * Z, 1e-20 * Z.astype(np.float64), Z[::-1]):
        assert found(part) == ends(model)


def arrays():
    rng, phases = np.random.default_rng(0), np.random.default_rng(1).random((500, 8))
    kinds = [np.eye(k)[rng.integers(k, size=500)] for k in (3, 5, 8, 12)]
    yield from (load(return_X_y=True)[0] for load in (load_digits, load_wine, load_breast_cancer))
    yield CORA.X.toarray()
    yield from (rng.normal(size=(500, 60)), rng.random((500, 60)), rng.lognormal(size=(500, 60)))
    yield from (np.sign(rng.normal(size=(500, 60))), np.hstack(kinds), rng.dirichlet(np.ones(60), size=500))
    yield np.stack([np.sin(6 * phases), np.cos(6 * phases)], axis=2).reshape(500, -1)
    yield np.exp(0.1 * np.cumsum(rng.normal(size=(500, 60)), axis=1))
    yield from (np.ones((500, 60)), np.zeros((500, 60)), np.tile(rng.normal(size=60), (500, 1)))
    yield np.hstack([rng.random((500, 20)), 10 + rng.random((500, 30))])
    yield from (np.ones((1, 1)), rng.random((31, 500)), rng.random((500, 1)))


@pytest.mark.parametrize("scaler", [None, StandardScaler, MinMaxScaler])
def test_other_arrays_are_one_block(scaler):
    for Z in arrays():
        Z = Z if scaler is None else scaler().fit_transform(Z)
        assert found(Z) == [Z.shape[1]]


def test_columns_that_were_changed_are_not_cut_wrongly():
    model, Z = embedded(CORA.X, CORA.graph, dim=64)
    mixed = Z[:, np.random.default_rng(0).permutation(Z.shape[1])]
    for changed in (StandardScaler().fit_transform(Z), MinMaxScaler().fit_transform(Z), mixed, sp.csr_array(Z)):
        assert found(changed) == [Z.shape[1]]
    beside = np.hstack([Z, CORA.X.toarray()])
    assert set(found(beside)) <= {*ends(model), beside.shape[1]}


def test_the_probe_of_a_plain_array_is_the_one_that_knows_the_blocks():
    X, A = planted(600, 5)
    y = (X @ np.arange(300) % 3).astype(int) % 3
    model, Z = embedded(X, A, dim=64)
    train, val = np.arange(200), np.arange(200, 400)
    plain, told = (GraphProbe(A, blocks=b, random_state=0).fit(Z, y, train, val) for b in (None, model.blocks_))
    assert [part for _, part in plain.blocks_] == [part for _, part in told.blocks_]
    assert plain.blocks_[0][0] == "block0"
    np.testing.assert_array_equal(plain.predict_proba(), told.predict_proba())
    assert "block6" in plain._repr_html_()
    table = pd.DataFrame(Z)  # whose columns are numbers
    assert GraphProbe(A, random_state=0).fit(table, y, train, val).blocks_ == plain.blocks_
    assert GraphProbe(A, blocks=[Z.shape[1]]).fit(Z, y, train, val).blocks_ == (("block0", slice(0, Z.shape[1])),)
