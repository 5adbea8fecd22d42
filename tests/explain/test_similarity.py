"""A similarity is the sum of its parts: for every family, E-step, multiset and block."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

import reference as ref
import reference_explain as slow
from directed_graph import directed_graph
from fishergraph import Differences, Explainer, FisherEmbedding, Neighbourhood, Nystrom, PageRank, Structure
from fishergraph.explain import layers
from fishergraph.explain.columns import Averaged, AveragedView, Linear
from fishergraph.explain.parts import slope, split_kernel
from fishergraph.kernel_map import IdentityMap, NystromMap
from models import PUBLISHED, node_model

N = 40
PAIRS = [(0, 1), (3, 3), (5, 17), (22, 9), (30, 31)]

VARIANTS = [
    {},
    {"structure": "auto"},
    {"structure": Structure(("spectral", "projection", "degree")), "walk": None},
    {"kernel": "identity"},
    {"kernel": Nystrom(bandwidth=0.2)},
    PUBLISHED,
    {"normalize": False, "family__variance": 0.5},
    {"family__tangent": "score"},
    {"family__fisher": "exact", "n_layers": 1},
    {"family__power": 0.5, "family__unit": True},
    {"em__n_iter": 3, "counts": True, "em__prior": 0.5},
    {"em__e_step": "balanced"},
    {"em__e_step": "unbalanced", "em__n_iter": 2},
    {"em__n_iter": 0},
    {"family": "diagonal-mixture", "em__n_iter": 2},
    {"family": "diagonal-mixture"},
    {"family": "diagonal-mixture", "em__prior": 0.5},
    {"family": "diagonal-mixture", "family__tangent": "score", "em__prior": 0.5},
    {"family": "gaussian"},
    {"family": "gaussian", "family__tangent": "score"},
    {"family": "von-mises-fisher"},
    {"family": "von-mises-fisher", "family__tangent": "score"},
    {"family": "multinomial"},
    {"family": "multinomial", "family__tangent": "score", "counts": True},
    {"multiset": Neighbourhood(direction="both")},
    {"multiset": PageRank(members=8)},
    {"multiset": "open-neighbourhood"},
    {"multiset": "pairs"},
    {"multiset": "paths"},
    {"multiset": Differences(direction="both")},
    {"n_layers": 0},
    {"block_weights": [0, 1, 0, 2, 0.5]},
]
# Families whose estimates are not linear in the members: a bounded variance, or a prior, belongs to none of them.
NOT_LINEAR = ("gaussian", "diagonal-mixture", "multinomial", "von-mises-fisher")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.abs(np.random.default_rng(1).normal(size=(N, 5)))


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return directed_graph(N, density=0.1)


def fitted(X, A, **variant) -> FisherEmbedding:
    return node_model(**{"n_layers": 2, "n_anchors": 3, "dim": 6, "random_state": 0, **variant}).fit(X, graph=A)


def parts_of(why, block: str, name: str) -> float | None:
    """The sum of a listing over one block, or None if the block has no such parts."""
    listing = getattr(why, name)
    own = listing["block"] == block
    return float(listing["value"][own].sum()) if own.any() else None


@pytest.mark.filterwarnings("ignore:asked for:UserWarning", "ignore:a transport:UserWarning")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_parts_add_up_to_the_kernel(X, A, variant):
    model = fitted(X, A, **variant)
    Z = model.transform(X, graph=A)
    explainer = Explainer(model, X, graph=A)
    for v, w in PAIRS:
        why, scale = explainer.explain(v, w), np.linalg.norm(Z[v]) * np.linalg.norm(Z[w])
        assert why.value == pytest.approx(Z[v] @ Z[w], abs=1e-9 * scale)
        blocks, linear = why.blocks, not str(variant.get("family", "")).startswith(NOT_LINEAR)
        linear = linear or variant.get("family__tangent") == "score"
        np.testing.assert_allclose(blocks["value"], blocks["lengths"] + blocks["product"] + blocks["remainder"])
        assert blocks["value"].sum() == pytest.approx(why.value, rel=1e-12)
        for block, product, unlisted in zip(blocks["block"], blocks["product"], blocks["unlisted"], strict=True):
            tolerance = {"rel": 1e-9, "abs": 1e-13 * scale}
            found = {name: parts_of(why, block, name) for name in ("pairs", "members", "columns", "nodes")}
            for name in ("columns", "nodes"):
                assert found[name] is None or found[name] == pytest.approx(product, **tolerance)
            if linear and block.startswith("psi") and block != "psi0":
                assert abs(unlisted) <= 1e-13 * scale
                assert (found["pairs"] or 0.0) == pytest.approx(product, **tolerance)
                assert (found["members"] or 0.0) == pytest.approx(2 * product, **tolerance)
            elif block.startswith("psi") and block != "psi0":
                assert (found["pairs"] or 0.0) + unlisted == pytest.approx(product, **tolerance)


@pytest.mark.parametrize("variant", [{"structure": "auto"}, {"multiset": PageRank(members=8)}], ids=str)
def test_the_value_is_that_of_the_float32_embedding(X, A, variant):
    X = X.astype(np.float32)
    model = fitted(X, A, **variant)
    Z = model.transform(X, graph=A).astype(np.float64)
    explainer = Explainer(model, X, graph=A)
    for v, w in PAIRS:
        bound = 8.8e-7 * np.linalg.norm(Z[v]) * np.linalg.norm(Z[w])
        assert explainer.explain(v, w).value == pytest.approx(Z[v] @ Z[w], abs=bound)


def listed(sets, v: int) -> list[tuple[int, float]]:
    """A multiset as the reference takes it."""
    rows = slice(sets.indptr[v], sets.indptr[v + 1])
    weights = np.ones(len(sets.indices)) if sets.weights is None else sets.weights
    return list(zip(sets.indices[rows].tolist(), weights[rows].tolist(), strict=True))


@pytest.mark.parametrize("prior", [0.0, 0.5])
def test_pairs_are_those_of_the_equation(X, A, prior):
    model = fitted(X, A, em__prior=prior, n_layers=1)
    psi0 = model.transform(X, graph=A)[:, : model.blocks_[0][1]]
    points = np.array([ref.unit(row) for row in psi0])
    sets, theta = Neighbourhood()(A), model.stack_.layers[0].theta
    explainer = Explainer(model, X, graph=A)
    for v, w in PAIRS:
        first, second = listed(sets, v), listed(sets, w)
        why = explainer.explain(v, w)
        expected = slow.pair_products(points, first, second, theta.anchors, theta.variance, prior)
        block = why.blocks.take(why.blocks["block"] == "psi1")
        factor = block["product"][0] / expected.sum()
        own = why.pairs.take(why.pairs["block"] == "psi1")
        found = np.zeros(expected.shape)
        places = [{u: i for i, (u, _) in enumerate(members)} for members in (first, second)]
        for j, u, other, value in zip(*(own[key] for key in ("anchor", "first", "second", "value")), strict=True):
            found[j, places[0][u], places[1][other]] = value
        np.testing.assert_allclose(found, factor * expected, rtol=1e-9, atol=1e-12)
        mu, _ = ref.em_means(points, [first, second], theta.anchors, theta.variance, prior)
        phi = ref.fisher_embedding(mu, theta.anchors)
        kernel_map = model.stack_.layers[0].kernel_map
        split = slow.kernel_split(*phi, kernel_map.landmarks, kernel_map.bandwidth)
        np.testing.assert_allclose([block[key][0] for key in ("lengths", "product", "remainder")], split, atol=1e-9)


def test_columns_of_points_that_are_rows_of_x(X, A):
    """With kernel="identity" the members are unit rows of X, and so is psi0."""
    model = fitted(X, A, kernel="identity", n_layers=1, walk=None)
    points = np.array([ref.unit(row) for row in X])
    theta, sets = model.stack_.layers[0].theta, Neighbourhood()(A)
    why = Explainer(model, X, graph=A, feature_names=list("abcde")).explain(0, 1)
    means, _ = ref.em_means(points, [listed(sets, v) for v in (0, 1)], theta.anchors, theta.variance)
    expected = {
        "psi0": points[0] * points[1],
        "psi1": ((means[0] - theta.anchors) * (means[1] - theta.anchors)).sum(0) / 3,
    }
    for block, values in expected.items():
        own = why.columns.take(why.columns["block"] == block)
        assert dict(zip(own["name"], own["value"], strict=True)) == pytest.approx(
            dict(zip("abcde", values, strict=True))
        )


def test_a_pair_of_large_multisets_lists_the_heaviest_members(X, A, monkeypatch):
    model = fitted(X, A)
    v, w = np.argsort(-np.diff(A.indptr))[:2].tolist()
    whole = Explainer(model, X, graph=A).explain(v, w)
    monkeypatch.setattr(layers, "MOST_PAIRED", 2)
    cut = Explainer(model, X, graph=A).explain(v, w)
    for block in ("psi1", "psi2"):
        row = cut.blocks.take(cut.blocks["block"] == block)
        assert parts_of(cut, block, "pairs") + row["unlisted"][0] == pytest.approx(row["product"][0])
        own = cut.pairs.take(cut.pairs["block"] == block)
        assert len(np.unique(own["first"])) == len(np.unique(own["second"])) == 2
        shares = whole.members.take((whole.members["block"] == block) & (whole.members["of"] == 1))
        totals = {u: abs(shares["value"][shares["member"] == u].sum()) for u in np.unique(shares["member"])}
        assert set(own["first"]) == set(sorted(totals, key=totals.get)[-2:])
    np.testing.assert_allclose(cut.blocks["value"], whole.blocks["value"], rtol=1e-12)


def test_averaged_columns_are_shared_equally():
    """Columns and nodes of a product of averages, beside the loops over all pairs of columns."""
    rng = np.random.default_rng(0)
    rows, axes, rotation, centre = (
        rng.normal(size=(6, 4)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(3, 2)),
        rng.normal(size=3),
    )
    weights, other = rng.random((2, 6))
    for matrix in (rows, sp.csr_array(rows)):
        linear = Linear(axes, centre, rotation)
        view = AveragedView("smooth", Averaged(matrix), [weights, other].__getitem__, linear, IdentityMap(2), 1e-12)
        parts = view.compare(0, 1)
        centred = np.linalg.pinv(axes) @ centre
        images = [rotation.T @ (axes @ (a @ rows) - centre) for a in (weights, other)]
        form = axes.T @ rotation @ rotation.T @ axes / np.prod([np.linalg.norm(image) for image in images])
        gaps = [a @ rows - centred for a in (weights, other)]
        np.testing.assert_allclose(parts.columns["value"], slow.shared_equally(form, *gaps))
        per_node = [rows - centred / a.sum() for a in (weights, other)]
        by_node = slow.shared_equally(per_node[0] @ form @ per_node[1].T, weights, other)
        np.testing.assert_allclose(parts.nodes["value"], by_node)
        assert parts.inner == pytest.approx(by_node.sum())


def test_a_walk_ends_where_the_powers_of_its_steps_say(X, A):
    model = fitted(X, A, n_layers=0)
    view = Explainer(model, X, graph=A)._views["walk"]
    sets = Neighbourhood()(A)
    walk, lists = model.stack_.walk, [listed(sets, v) for v in range(N)]
    ends = slow.walk_ends(lists, walk.teleport, walk.n_steps)
    received = np.array([sum(a for members in lists for u, a in members if u == node) for node in range(N)])
    for v in (0, 7, 21):
        shares = ends[v] * received**-0.5
        np.testing.assert_allclose(view.weigh(v), shares / shares.sum(), rtol=1e-6)


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 1.0, 1.5, 1e3])
def test_the_slope_of_the_kernel_is_exact_and_stable(bandwidth):
    sharpness = bandwidth**-2
    for cosine in (-1.0, -0.3, -1e-12, 0.0, 1e-300, 1e-9, 0.5, 1.0):
        with localcontext(prec=700):  # the difference of two equal numbers keeps its digits
            b, c = Decimal(sharpness), Decimal(cosine)
            exact = b * (-b).exp() if c == 0 else ((b * (c - 1)).exp() - (-b).exp()) / c
        assert slope(cosine, sharpness) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)


def test_a_zero_vector_has_no_similarity():
    landmarks = np.eye(3)
    kernel_map = NystromMap(landmarks, np.eye(3), 1.0)
    assert split_kernel(np.zeros(3), np.ones(3), kernel_map)[:3] == (0.0, 0.0, 0.0)


def test_a_cosine_divides_everything_by_the_lengths(X, A):
    model = fitted(X, A, structure="auto")
    Z = model.transform(X, graph=A)
    explainer = Explainer(model, X, graph=A)
    plain, cosine = explainer.explain(0, 1), explainer.explain(0, 1, cosine=True)
    scale = np.linalg.norm(Z[0]) * np.linalg.norm(Z[1])
    assert cosine.value == pytest.approx(plain.value / scale)
    for name in ("blocks", "pairs", "members", "columns", "nodes"):
        np.testing.assert_allclose(getattr(cosine, name)["value"], getattr(plain, name)["value"] / scale, atol=1e-15)
    assert explainer.explain(3, 3, cosine=True).value == pytest.approx(1.0)


def test_one_block_alone(X, A):
    explainer = Explainer(fitted(X, A), X, graph=A)
    whole, one = explainer.explain(0, 1), explainer.explain(0, 1, block="psi2")
    assert one.blocks["block"].tolist() == ["psi2"]
    assert one.value == whole.blocks["value"][whole.blocks["block"] == "psi2"][0]


@pytest.mark.parametrize("structure", ["factors", "local", "degree"])
def test_models_without_features_or_without_a_graph(X, A, structure):
    model = node_model(1, 2, 6, structure=structure, random_state=0).fit(graph=A)
    why = Explainer(model, graph=A).explain(0, 1)
    Z = model.transform(graph=A)
    assert why.value == pytest.approx(Z[0] @ Z[1], rel=1e-5)
    assert {"in-degree", "factors_0", "degree_1"} & set(why.columns["name"]) or structure == "degree"
    alone = node_model(1, 2, 6, random_state=0).fit(X)
    Z = alone.transform(X)
    assert Explainer(alone, X).explain(0, 1).value == pytest.approx(Z[0] @ Z[1])
