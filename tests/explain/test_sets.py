"""Explanations of sets of vectors: the same records, with members in the place of neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fishergraph import Explainer, FisherSetEmbedding, GaussianMixture
from fishergraph._errors import InputError, InputTypeError

RNG = np.random.default_rng(0)
SETS = [RNG.normal(size=(n, 3)) + (k % 2) for k, n in enumerate([5, 2, 7, 4, 1, 6, 3, 5, 8, 4])]
WEIGHTS = [RNG.random(len(entry)) + 0.1 for entry in SETS]


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"kernel": "identity"},
        {"input_map": "exp", "dim": 6},
        {"input_map": "identity", "normalize": True},
        {"counts": True},
        {"family": "diagonal-mixture", "kernel": "identity", "family__tangent": "score"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
def test_parts_add_up_to_the_kernel(variant, weights):
    model = FisherSetEmbedding(3, 8, random_state=0).set_params(**variant)
    Z = model.fit_transform(SETS, weights=weights)
    explainer = Explainer(model, SETS, weights=weights)
    for v, w in [(0, 1), (2, 2), (4, 9)]:
        why = explainer.explain(v, w)
        assert why.value == pytest.approx(Z[v] @ Z[w], abs=1e-9 * np.linalg.norm(Z[v]) * np.linalg.norm(Z[w]))
        assert why.pairs["value"].sum() == pytest.approx(why.blocks["product"][0])
        if len(why.columns):
            assert why.columns["value"].sum() == pytest.approx(why.blocks["product"][0])


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
def test_members_and_sets_have_names():
    model = FisherSetEmbedding(2, 8, random_state=0).fit(SETS)
    plain = Explainer(model, SETS)
    assert plain.explain(2).members.tolist() == [f"set 2, member {k}" for k in range(7)]
    named = Explainer(model, SETS, ids=[f"bag {k}" for k in range(10)], feature_names=["a", "b", "c"])
    assert named.explain("bag 2").members[6] == "bag 2, member 6"
    assert set(named.explain("bag 0", "bag 1").columns["name"]) == {"a", "b", "c"}
    described = named.describe_anchors()
    assert described.anchors["n_nodes"].sum() == pytest.approx(sum(map(len, SETS)))
    assert described.nodes["node"][0].startswith("bag ")
    assert repr(named) == "Explainer(10 sets, psi1)"
    rows = plain.attention_all()["psi1"]
    np.testing.assert_allclose(rows.attention[rows.indptr[2] : rows.indptr[3]], plain.explain(2).attention, rtol=1e-5)
    assert plain.standard_errors()["n_members"].tolist() == [len(entry) for entry in SETS]


def test_ordinary_sets_have_uniform_p_values_and_odd_ones_small_ones():
    rng = np.random.default_rng(1)
    sets = [rng.normal(size=(rng.integers(3, 12), 4)) for _ in range(200)]
    model = FisherSetEmbedding(3, 16, family=GaussianMixture(sharpness=0.5), random_state=0).fit(sets)
    found = Explainer(model, sets).neighbourhood_scores(n_permutations=99)
    assert stats.kstest(found.p_values, "uniform").pvalue > 0.05
    shifted = [entry + 2 * (k < 5) for k, entry in enumerate(sets)]
    found = Explainer(model, shifted).neighbourhood_scores(n_permutations=99, tail="gamma")
    assert found.p_values[:5].max() < 0.05
    assert found.z[:5].min() > np.median(found.z[5:]) + 2


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
def test_what_belongs_to_nodes_is_refused():
    model = FisherSetEmbedding(2, 8, random_state=0).fit(SETS)
    with pytest.raises(InputError, match="nodes"):
        Explainer(model, SETS).anomaly_scores()
    with pytest.raises(InputTypeError, match="graph"):
        Explainer(model, SETS, graph=[(0, 1)])
    with pytest.raises(ValueError, match="features"):
        Explainer(model, [entry[:, :2] for entry in SETS])
