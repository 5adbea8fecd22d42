"""The simulations: the paper's settings, the numbers against slow references, and what their tables are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from fishergraph import Multisets, em_means, fisher_embedding, learn_anchors
from fishergraph.em.settings import posterior
from fishergraph.family import GaussianMixture, kl_bound
from fishergraph.lab.rows import Cell, new_row
from fishergraph.lab.studies import STUDIES, choose_study
from fishergraph.lab.studies.attention import concentration
from fishergraph.lab.studies.simulations import distances, distributions, divergences, theta_of
from fishergraph.lab.studies.study import band

QUICK = {name: study.quick() for name, study in STUDIES.items()}


def rows_of(study):
    return [new_row(cell, study.work(cell), 0.0) for cell in {cell.key: cell for cell in study.cells()}.values()]


# --- the settings of Appendix D ----------------------------------------------------------------------------


def test_the_distributions_are_those_of_the_appendix():
    p, q = distributions()
    assert p.tolist() == [[-5, -2], [-5, 0], [-5, 2]]
    assert q.tolist() == [[5, -2], [5, 0], [5, 2]]
    assert distributions(shift=1)[1].tolist() == [[-4, -2], [-4, 0], [-4, 2]]
    assert distributions(spread=0.1)[1].tolist() == [[5, -0.1], [5, 0], [5, 0.1]]
    assert distributions(spread=0.1)[0].tolist() == [[-5, -0.1], [-5, 0], [-5, 0.1]]
    assert distributions(modes=1)[1].tolist() == [[5, 0]]
    assert distributions(modes=5)[1].tolist() == [[5, -2], [5, -1], [5, 0], [5, 1], [5, 2]]


def test_the_studies_vary_what_the_paper_varies():
    ranges = {name: (min(STUDIES[name].values), max(STUDIES[name].values)) for name in list(STUDIES)[:5]}  # pyright: ignore
    assert ranges == {
        "modes": (1, 10),
        "shift": (1, 100),
        "spread": (0.1, 10),
        "iterations": (0, 10),
        "anchors": (1, 100),
    }
    for name in ("modes", "shift", "spread"):
        assert {(c.parameters["n_anchors"], c.parameters["n_em_iter"]) for c in STUDIES[name].cells() if c.seed} == {
            (10, 10)
        }
    moved = {c.parameters["n_em_iter"] for c in STUDIES["iterations"].cells() if c.study == "iterations"}
    assert moved == set(range(11))


# --- the numbers -------------------------------------------------------------------------------------------


def test_the_distances_are_those_of_slow_loops():
    p, q = distributions(shift=3)
    arguments = {"p": p.tolist(), "q": q.tolist(), "n_anchors": 4, "n_em_iter": 2, "n_samples": 40, "exact": True}
    result = distances(Cell("shift", arguments, 3))
    rng = np.random.default_rng(3)
    points = np.concatenate([GaussianMixture().sample(theta_of(means), 40, rng) for means in (p, q)])
    anchors = learn_anchors(points, 4, rng=rng)
    sets = [[(u, 1.0) for u in members] for members in (range(40), range(40, 80))]
    means, _ = reference.em_means(points, sets, anchors, n_iter=2)
    fisher = reference.fisher_matrix_quadrature(anchors)
    gap = (means[0] - means[1]).ravel()
    assert_allclose(result["approximate"], gap @ gap / 4, rtol=1e-9)
    assert_allclose(result["exact"], gap @ fisher @ gap, rtol=1e-5)


def test_a_shift_alone_has_the_divergence_of_one_gaussian():
    """The mixtures are products of a normal in x and one mixture in y: KL is d²/2, in both directions."""
    for shift, spread in ((1.0, 2.0), (3.0, 0.5)):
        p, q = distributions(shift=shift, spread=spread)
        result = divergences(Cell("divergence", {"p": p, "q": q, "n_samples": 50_000}, 0))
        for name in ("forward", "backward"):
            assert_allclose(result[f"goldberger_{name}"], shift**2 / 2)
            assert abs(result[f"monte_carlo_{name}"] - shift**2 / 2) < 4 * result[f"error_{name}"]


def test_the_divergences_of_other_numbers_of_components():
    p, q = distributions(modes=2, shift=0.5)
    result = divergences(Cell("divergence", {"p": p, "q": q, "n_samples": 100_000}, 0))
    for name, one, other in (("forward", p, q), ("backward", q, p)):
        exact = reference.kl_divergence_quadrature(one, other)
        assert abs(result[f"monte_carlo_{name}"] - exact) < 4 * result[f"error_{name}"]
        pairs = 0.5 * ((one[:, None, :] - other) ** 2).sum(axis=2)
        assert_allclose(result[f"matched_{name}"], pairs.min(axis=1).mean())
        assert_allclose(result[f"goldberger_{name}"], pairs.min(axis=1).mean() + np.log(len(other) / len(one)))


def test_with_id_over_p_the_distance_is_the_divergence_with_the_components_known():
    """The reason for ratios of one far from θ_0: Id/p is the Fisher matrix of (x, z), whose divergence is quadratic."""
    rng = np.random.default_rng(0)
    points = np.concatenate([GaussianMixture().sample(theta_of(means), 200, rng) for means in distributions()])
    anchors = learn_anchors(points, 5, rng=rng)
    sets = Multisets(np.array([0, 200, 400]), np.arange(400), None, 400)
    means = em_means(points, sets, anchors, n_iter=4).means
    phi = fisher_embedding(means, anchors)
    assert_allclose(((phi[0] - phi[1]) ** 2).sum() / 2, kl_bound(theta_of(means[0]), theta_of(means[1])))


def test_no_iteration_gives_no_distance_and_ten_give_the_divergence():
    study = replace(STUDIES["iterations"], values=(0, 1, 3, 10), seeds=3)
    table = {(r["value"], r["curve"]): r["median"] for r in study.summarize(rows_of(study))}
    assert table[0, "paper"] == table[0, "exact"] == 0
    assert table[1, "paper"] < table[3, "paper"] < table[10, "paper"]
    assert 0.97 < table[10, "paper"] < 1.05


def test_close_densities_need_the_exact_matrix():
    study = replace(STUDIES["closeness"], values=(0.5, 10), seeds=5, kl_samples=100_000)
    table = {(r["value"], r["curve"]): r["median"] for r in study.summarize(rows_of(study))}
    assert table[0.5, "forward"] > 2
    assert table[0.5, "backward"] > 2
    assert 0.9 < table[0.5, "exact"] < 1.15
    assert_allclose([table[10, curve] for curve in ("forward", "backward", "exact")], 1, atol=0.03)


# --- the attention -----------------------------------------------------------------------------------------


def test_the_concentration_is_that_of_loops():
    rng = np.random.default_rng(0)
    logs = posterior(rng.standard_normal((12, 3)), rng.standard_normal((2, 3)), 0.3)
    members = [[0, 1, 2, 5], [3], [4, 6, 7], [8, 9, 10, 11, 0]]
    sets = Multisets(np.cumsum([0, *map(len, members)]), np.concatenate(members), None, 12)
    parts = []
    for rows in members:
        for j in range(2):
            weights = np.exp(logs[rows, j]) / np.exp(logs[rows, j]).sum()
            if len(rows) > 1:
                parts.append(1 + (weights * np.log(weights)).sum() / np.log(len(rows)))
    assert_allclose(concentration(logs, sets), np.mean(parts))
    assert concentration(np.zeros((12, 2)), sets) == pytest.approx(0, abs=1e-15)
    assert concentration(-1e3 * np.arange(12.0)[:, None], sets) == pytest.approx(1)


def test_the_published_code_sits_at_a_variance_of_anchors_times_features():
    study = replace(STUDIES["attention"], variances=(4.0 * 256,), seeds=2)
    table = {r["curve"]: r["median"] for r in study.summarize(rows_of(study))}
    assert_allclose(table["published"], table["posterior"], rtol=0.3)
    assert table["published"] < 1e-10 < 1e-6 < table["paper"] < 1e-4 < 1e-2 < table["auto"]


# --- the tables --------------------------------------------------------------------------------------------


def test_a_cell_gives_the_same_values_again():
    cell = QUICK["shift"].cells()[2]
    assert distances(cell) == distances(cell)
    assert distances(cell) != distances(replace(cell, seed=99))


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_runs_and_has_its_records(name):
    study = QUICK[name]
    rows = rows_of(study)
    table = study.summarize(rows)
    assert {record["study"] for record in table} == {name}
    assert all(record["low"] <= record["median"] <= record["high"] for record in table)
    keys = [(record["value"], record["curve"]) for record in table]
    assert len(keys) == len(set(keys)) > 2
    # What is not all there is left out, and what is not of this study changes nothing.
    assert len(study.summarize(rows[:-1])) < len(table)
    assert study.summarize([*rows_of(QUICK["modes"]), *rows]) == table
    assert STUDIES[name].summarize(rows) == []


def test_the_band_is_of_the_repeats():
    result = band(range(11))
    assert result == {"repeats": 11, "low": 1.0, "median": 5.0, "high": 9.0}


def test_an_unknown_study_lists_the_known():
    with pytest.raises(ValueError, match=r"'modes', .*'shfit'"):
        choose_study("shfit")
