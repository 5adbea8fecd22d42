"""Attention, parts of similarities and features on a page, against what they are by definition."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import unpacked_page as unpack
from fishergraph import EM, Explainer, FisherEmbedding, Neighbourhood, PageRank, as_graph
from fishergraph._progress import silent
from fishergraph.explore import alike, explore
from fishergraph.explore.alike import page_features, similarity_parts
from fishergraph.explore.attention import page_attention
from fishergraph.explore.edges import page_edges
from fishergraph.explore.neighbours import nearest, unit
from fishergraph.explore.pack import Parts


def example(multiset="neighbourhood", n=40, **parameters):
    graph = as_graph(nx.connected_watts_strogatz_graph(n, 4, 0.3, seed=0))
    X = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
    model = FisherEmbedding(1, 3, 8, multiset=multiset, structure=None, random_state=0, **parameters)
    Z = model.fit_transform(X, graph=graph)
    return graph, X, model, Z


def attention_on_page(found, edges, n):
    """Node → member → share per anchor, as the browser multiplies it: c_vuj = a_vu α_uj / D_vj."""
    parts = Parts()
    about = {"edges": edges.packed(parts), "attention": found.packed(parts)}
    page = type("Page", (), {"about": about, "parts": parts.texts})
    p = about["attention"]["anchors"]
    alpha = np.array(unpack.array(parts.texts, about["attention"]["responsibilities"])).reshape(-1, p) / 255
    members: dict[int, dict[int, float]] = {v: {} for v in range(n)}
    listed = about["attention"]["members"]
    if listed is None:
        weights = about["attention"]["weight"] and unpack.numbers(parts.texts, about["attention"]["weight"])
        for e, (v, u) in enumerate(unpack.edges(page)):
            weight = weights[e] if weights else 1.0
            if v != u:
                members[v][u] = weight
                if not about["edges"]["directed"]:
                    members[u][v] = weight
        own = about["attention"]["self"] and unpack.numbers(parts.texts, about["attention"]["self"])
        for v in range(n):
            members[v][v] = own[v] if own else 1.0
    else:
        inner = type("Page", (), {"about": {"edges": listed}, "parts": parts.texts})
        weights = unpack.numbers(parts.texts, listed["weight"])
        for (v, u), weight in zip(unpack.edges(inner), weights, strict=True):
            members[v][u] = weight
    mass = about["attention"]["mass"]
    total = np.array(unpack.numbers(parts.texts, mass)).reshape(-1, p) if mass else None
    shares = {}
    for v, own in members.items():
        sums = sum(weight * alpha[u] for u, weight in own.items()) if own else np.zeros(p)
        whole = sums if total is None else np.maximum(total[v], sums)
        shares[v] = {u: weight * alpha[u] / np.where(whole > 0, whole, 1) for u, weight in own.items()}
    return shares


@pytest.mark.parametrize(
    "multiset",
    [
        "neighbourhood",
        Neighbourhood(weights="symmetric"),
        Neighbourhood(closed=False),
        PageRank(teleport=0.2, members=8),
    ],
    ids=["closed", "symmetric", "open", "pagerank"],
)
def test_attention_is_that_of_the_explainer(multiset):
    graph, X, model, _ = example(multiset)
    explainer = Explainer(model, X, graph=graph)
    order = np.random.default_rng(1).permutation(40)
    edges = page_edges(graph, order)
    notes: list[str] = []
    found = page_attention(explainer.attention_all(blocks=["psi1"])["psi1"], order, edges, None, notes)
    shares = attention_on_page(found, edges, 40)
    assert notes == []
    assert (found.members is None) == (not isinstance(multiset, PageRank))
    for v in range(40):
        expected = explainer.explain(int(order[v]))
        by_row = dict(zip(expected.rows.tolist(), expected.attention, strict=True))
        assert {int(order[u]) for u, row in shares[v].items() if row.any()} <= set(by_row)
        for row, attention in by_row.items():
            u = int(np.flatnonzero(order == row)[0])
            assert np.abs(shares[v].get(u, 0) - attention).max() < 0.01


def test_attention_to_members_that_are_not_on_the_page():
    graph, X, model, _ = example()
    explainer = Explainer(model, X, graph=graph)
    rows = np.arange(0, 40, 2)
    edges = page_edges(graph, rows)
    found = page_attention(explainer.attention_all(blocks=["psi1"])["psi1"], rows, edges, None, [])
    assert found.mass is not None
    shares = attention_on_page(found, edges, 20)
    for v in range(20):
        expected = explainer.explain(int(rows[v]))
        by_row = dict(zip(expected.rows.tolist(), expected.attention, strict=True))
        for u, row in shares[v].items():
            assert np.abs(row - by_row[int(rows[u])]).max() < 0.01


def test_attention_of_pairs_is_left_out_and_said():
    graph, X, model, _ = example(em=EM(n_iter=3))
    found = Explainer(model, X, graph=graph).attention_all(blocks=["psi1"])["psi1"]
    notes: list[str] = []
    assert page_attention(found, np.arange(40), page_edges(graph, np.arange(40)), None, notes) is None
    assert "attention" in notes[0]


def test_parts_add_up_to_the_cosine(monkeypatch):
    _, _, model, Z = example()
    graph = as_graph(nx.connected_watts_strogatz_graph(40, 4, 0.3, seed=0))
    U = unit(Z)
    near, edges = nearest(U, 4, silent, 0), page_edges(graph, np.arange(40))
    found = similarity_parts(U, model.blocks_, near, edges)
    assert found.blocks == [name for name, _ in model.blocks_]
    start, slices = 0, []
    for _, width in model.blocks_:
        slices.append(slice(start, start + width))
        start += width
    for v in range(40):
        for rank, w in enumerate(near.rows[v]):
            expected = [float(U[v, part].astype(np.float64) @ U[w, part]) for part in slices]
            assert np.allclose(found.nearest[v, rank], expected, atol=1e-5)
    assert np.allclose(found.nearest.sum(axis=2), near.similarities, atol=1e-5)
    for e, (v, w) in enumerate(zip(*edges.ends(), strict=True)):
        assert found.edges[e].sum() == pytest.approx(float(U[v] @ U[w]), abs=1e-5)
    parts = Parts()
    about = found.packed(parts)
    read = np.array(unpack.array(parts.texts, about["nearest"])).reshape(found.nearest.shape) * about["scale"]
    assert np.abs(read - found.nearest).max() <= 0.5 * about["scale"] + 1e-7
    # Of too many pairs those of the nearest are kept.
    monkeypatch.setattr(alike, "MOST_PARTS", 40 * 3 * len(slices) + 10)
    fewer = similarity_parts(U, model.blocks_, near, edges)
    assert fewer.nearest.shape[1] == 3
    assert fewer.edges is None


def test_one_block_has_no_parts():
    U = unit(np.random.default_rng(0).normal(size=(10, 4)))
    assert similarity_parts(U, [("embedding", 4)], nearest(U, 2, silent, 0), None) is None


def test_features_survive_the_page():
    X = sp.random_array((30, 12), density=0.2, rng=np.random.default_rng(0), format="csr", dtype=np.float32)
    rows, parts = np.array([3, 1, 29, 0]), Parts()
    found = page_features(X, [f"word {j}" for j in range(12)], rows, [])
    about = found.packed(parts)
    counts = unpack.array(parts.texts, about["counts"])
    index, value = (unpack.array(parts.texts, about[name]) for name in ("index", "value"))
    dense = np.zeros((4, 12))
    at = 0
    for v, count in enumerate(counts):
        for e in range(at, at + count):
            dense[v, index[e]] = value[e] * about["scale"]
        at += count
    assert np.abs(dense - X[rows].toarray()).max() <= 0.5 * about["scale"] + 1e-6
    assert np.allclose(unpack.array(parts.texts, about["mean"]), X.toarray().mean(axis=0), atol=1e-6)


def test_dense_features_are_standardised():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 100, 0] + 7
    found = page_features(X, list("abc"), np.arange(50), [])
    assert found.dense
    assert np.allclose(found.X.toarray().std(axis=0), [1, 1, 0])


def test_very_many_features_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr(alike, "MOST_FEATURES", 10)
    notes: list[str] = []
    assert page_features(np.ones((5, 3)), list("abc"), np.arange(5), notes) is None
    assert "features" in notes[0]


def test_a_rare_value_tells_and_a_common_one_does_not():
    rare, common = np.zeros(20), np.ones(20)
    rare[[2, 5]], common[3] = 1, 0
    X = np.stack([rare, common, np.arange(20.0), np.tile([0.0, 1.0], 10), np.full(20, 7.0)], axis=1)
    found = page_features(X, list("abcde"), np.arange(20), [])
    assert found.tells.tolist() == [1, -1, 0, 0, 0]
    assert page_features(sp.csr_array(X), list("abcde"), np.arange(20), []).tells.tolist() == [1] * 5


def test_a_model_of_a_table_with_names():
    graph, X, _, _ = example()
    names = [f"node {k}" for k in range(40)]
    table = pd.DataFrame(X, index=names, columns=list("uvwxyz")).assign(team=["a", "b"] * 20)
    model = FisherEmbedding(1, 3, 8, structure=None, random_state=0)
    Z = model.fit_transform(table, graph=graph)
    page = explore(Z, graph, ids=names, model=model, X=table, maps="pca")
    about = unpack.Unpacked(page.html).about
    assert about["attention"]["anchors"] == 3
    assert "team=a" in about["features"]["names"]
