"""`GraphProbe`: each piece against a slow float64 version, and what the estimator promises."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from fishergraph import GraphProbe, LogisticProbe, as_graph
from fishergraph._errors import FishergraphWarning, InputError, InputTypeError
from fishergraph.probes import expected_calibration_error
from fishergraph.probes.blocks import read_blocks
from fishergraph.probes.calibrate import at_temperature, fit_temperature, log_loss
from fishergraph.probes.mlp import mlp_gradient
from fishergraph.probes.self_training import row_weights, self_train, soft_targets
from fishergraph.probes.sharpen import leading_eigenvectors, sharpenings
from fishergraph.probes.smooth import pagerank_smooth, spread_labels, spread_residuals, symmetric_operator
from fishergraph.probes.soft import fit_soft, soft_objective, soft_proba
from probe_problem import problem


def dense_operator(A):
    loops = np.maximum(A, A.T) + np.eye(len(A))
    return loops / np.sqrt(np.outer(loops.sum(axis=1), loops.sum(axis=1)))


def random_rows(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), n)


def test_smoothing_is_that_of_the_dense_operator():
    A = np.random.default_rng(0).random((9, 9)) * (np.random.default_rng(1).random((9, 9)) < 0.3)
    np.fill_diagonal(A, 0)
    S, P = symmetric_operator(as_graph(sp.csr_array(A))), random_rows(9, 3)
    assert_allclose(S.toarray(), dense_operator(A), atol=1e-6)
    M = 0.9 * dense_operator(A)
    slow = sum(0.1 * np.linalg.matrix_power(M, k) @ P for k in range(4)) + np.linalg.matrix_power(M, 4) @ P
    assert_allclose(pagerank_smooth(S, P, 0.1, 4), slow, atol=1e-6)


def test_soft_targets_are_squared_and_labelled_rows_fixed():
    *_, A, train, _ = problem(n=40)
    train, Y, P = train[:5], np.eye(3)[[0, 1, 2, 0, 1]], random_rows(40, 3)
    start = P.copy()
    start[:5] = Y
    Q = start.copy()
    for _ in range(10):
        Q = 0.9 * dense_operator(A.toarray()) @ Q + 0.1 * start
    slow = np.array([row**2 / sum(row**2) for row in Q])
    slow[:5] = Y
    assert_allclose(soft_targets(symmetric_operator(as_graph(A)), P, Y, train), slow, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_soft_objective_and_its_minimiser(n_classes):
    rng = np.random.default_rng(0)
    X, T, w = rng.normal(size=(30, 5)), random_rows(30, n_classes), rng.random(30) + 0.1
    theta = rng.normal(size=(6, n_classes))

    def slow(flat):
        t = flat.reshape(6, n_classes)
        P = np.exp(X @ t[:-1] + t[-1])
        losses = -np.sum(T * np.log(P / P.sum(axis=1, keepdims=True)), axis=1)
        return (w @ losses + np.sum(t[:-1] ** 2) / (2 * 3.0)) / w.sum()

    objective = soft_objective(X, T, w, 3.0)
    value, gradient = objective(theta)
    assert value == pytest.approx(slow(theta.ravel()))
    assert_allclose(gradient.ravel(), approx_fprime(theta.ravel(), slow, 1e-7), atol=1e-5)
    exponentials = np.exp(X @ theta[:-1] + theta[-1])
    assert_allclose(soft_proba(X, theta), exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-12)
    C = 6.0 if n_classes == 2 else 3.0
    found = fit_soft(X, T, w, C, np.zeros_like(theta))
    assert np.abs(objective(found)[1]).max() < 3e-3 < np.abs(gradient).max()


def test_rows_without_a_label_have_the_weight_of_the_labelled_share():
    rows, weights = row_weights(50, np.array([7, 3]), np.random.default_rng(0))
    assert sorted(rows) == list(range(50))
    assert_allclose(weights, [1, 1, *[2 / 50] * 48])
    rows, weights = row_weights(30_000, np.arange(10), np.random.default_rng(0))
    assert len(np.unique(rows)) == 20_010
    assert weights[10:].sum() == pytest.approx(10 / 30_000 * 29_990)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_sharpening_is_that_of_the_eigenvectors(power):
    Z = np.random.default_rng(0).normal(size=(50, 6)) * [5, 3, 2, 1, 0.5, 0.1] + 4
    values, vectors = np.linalg.eigh(np.cov(Z.T, bias=True))
    slow = (Z - Z.mean(axis=0)) @ vectors[:, -4:] * values[-4:] ** (power / 2)
    slow /= np.linalg.norm(slow, axis=1, keepdims=True)
    fast = sharpenings(Z, (power,), np.random.default_rng(0), n_axes=4)[power].rows(Z)
    assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-10)


def test_leading_eigenvectors_of_a_large_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 200)) * 0.95 ** np.arange(200)
    M = X.T @ X
    values, vectors = leading_eigenvectors(M, 20, rng)
    slow = np.linalg.eigvalsh(M)[::-1][:20]
    assert_allclose(values, slow, rtol=1e-3)
    assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-10)
    assert_allclose(M @ vectors[:, :5], vectors[:, :5] * values[:5], atol=1e-2 * slow[0])


def test_correct_and_smooth_is_the_dense_one():
    *_, A, _, _ = problem(n=40)
    S, M, P = symmetric_operator(as_graph(A)), dense_operator(A.toarray()), random_rows(40, 3)
    train, Y = np.arange(6), np.eye(3)[[0, 1, 2, 0, 1, 2]]
    E = np.zeros_like(P)
    E[train] = Y - P[train]
    spread = E.copy()
    for _ in range(20):
        spread = 0.8 * M @ spread + 0.2 * E
    size = np.mean([sum(abs(E[v])) for v in train])
    slow = P.copy()
    for v in range(40):
        length = sum(abs(spread[v]))
        factor = size / length if length > 0 and size / length <= 1000 else 1.0
        slow[v] += E[v] if v in train else factor * spread[v]
    assert_allclose(spread_residuals(S, P, Y, train, 0.8), slow, atol=1e-5)
    slow[train] = Y
    G = slow.copy()
    for _ in range(20):
        G = 0.5 * M @ G + 0.5 * slow
    G = np.maximum(G, 0)
    assert_allclose(spread_labels(S, slow, Y, train, 0.5), G / G.sum(axis=1, keepdims=True), atol=1e-5)


def test_the_temperature_is_the_best_of_a_grid():
    P, codes = random_rows(300, 3) ** 4, np.random.default_rng(1).integers(3, size=300)
    P /= P.sum(axis=1, keepdims=True)
    grid = np.exp(np.linspace(-2.9, 2.9, 400))
    best = min(log_loss(at_temperature(P, t), codes) for t in grid)
    assert log_loss(at_temperature(P, fit_temperature(P, codes)), codes) <= best + 1e-6 < log_loss(P, codes)
    assert fit_temperature(P, np.full(300, -1)) == 1.0


def test_the_calibration_error_by_hand():
    P = [[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.35, 0.65]]
    assert expected_calibration_error(P, ["a", "b", "b", "b"], ["a", "b"], n_bins=2) == pytest.approx(0.0125)
    assert expected_calibration_error(P, [0, 1, 1, 1], n_bins=10) == pytest.approx((0.8 + 0.75) / 4)
    with pytest.raises(InputError, match="shapes"):
        expected_calibration_error(P, [0, 1])


def test_the_gradient_of_the_network():
    rng = np.random.default_rng(0)
    X, T, mask = rng.normal(size=(8, 4)), np.eye(3)[rng.integers(3, size=8)], (rng.random((8, 5)) < 0.5) * 2.0
    weights = [rng.normal(size=s) for s in ((4, 5), (5,), (5, 3), (3,))]
    gradients = mlp_gradient(weights, X, T, mask)[1]
    for k, gradient in enumerate(gradients):

        def loss(flat, k=k):
            changed = [*weights[:k], flat.reshape(weights[k].shape), *weights[k + 1 :]]
            return mlp_gradient(changed, X, T, mask)[0]

        assert_allclose(gradient.ravel(), approx_fprime(weights[k].ravel(), loss, 1e-7), atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_never_less_accurate_on_validation_rows_than_the_logistic_probe(seed):
    Z, y, A, train, val = problem(seed=seed, noise=1 + seed)
    probe = GraphProbe(A, blocks=[6, 6], random_state=0).fit(Z, y, train, val)
    plain = LogisticProbe(tol=1e-3).fit(Z, y, train, val)
    assert probe.val_score_ >= plain.val_score_
    assert probe.val_score_ == np.mean(probe.predict()[val] == y[val]) == probe.score(Z[val], y[val])
    assert probe.report_[0]["head"] == "logistic"
    assert probe.report_[0]["val_accuracy"] == plain.val_score_
    assert {record["head"] for record in probe.report_} == {"logistic", "blocks", "sharpen", "self-training"}


def test_what_a_person_is_told_of_the_mixture():
    Z, y, A, train, val = problem(n=1500, noise=3.0)
    train, val = np.arange(1000), np.arange(1000, 1200)
    probe = GraphProbe(A, blocks=[("own", 6), ("near", 6)], random_state=0).fit(Z, y, train, val)
    weights = list(probe.chosen_.values())
    assert sum(weights) == pytest.approx(1)
    assert weights == sorted(weights, reverse=True)
    for head, weight in probe.chosen_.items():
        assert weight == pytest.approx(sum(r["weight"] for r in probe.report_ if r["head"] == head))
    alone = [r["options"] for r in probe.report_ if r["head"] == "blocks" and list(r["options"]["blocks"]) == ["own"]]
    assert alone
    assert all(options["blocks"]["own"] == 1.0 for options in alone)
    raised = {"own": 1.0, "near": 3.0}
    assert any(r["options"]["blocks"] == raised for r in probe.report_ if r["head"] == "blocks")
    assert set(probe.seconds_) == {"logistic", "blocks", "sharpen", "mlp"}
    P = probe.predict_proba()[val]
    assert probe.val_ece_ == pytest.approx(expected_calibration_error(P, y[val], probe.classes_))


def test_a_block_that_is_all_one_needs_does_not_drown_in_the_others():
    """Labels are in four small columns of sixty-four; plain regression weighs all columns alike."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    own = 0.1 * (np.eye(4)[y] + 0.7 * rng.normal(size=(600, 4)))
    Z = np.hstack([own, rng.normal(size=(600, 60))])
    train, val, rest = np.arange(60), np.arange(60, 200), np.arange(200, 600)
    probe = GraphProbe(blocks=[("own", 4), ("noise", 60)], random_state=0).fit(Z, y, train, val)
    plain = LogisticProbe().fit(Z, y, train, val)
    only = LogisticProbe().fit(own, y, train, val)
    assert probe.score(Z[rest], y[rest]) > plain.score(Z[rest], y[rest]) + 0.1
    assert probe.score(Z[rest], y[rest]) > only.score(own[rest], y[rest]) - 0.03


def test_self_training_is_four_rounds_of_targets_and_fits():
    Z, y, A, train, _ = problem(n=60)
    S, Y, start = symmetric_operator(as_graph(A)), np.eye(3)[y[train]], np.zeros((13, 3))
    sample, theta = row_weights(60, train, np.random.default_rng(0)), start
    for _ in range(4):
        P = np.exp(Z @ theta[:-1] + theta[-1])
        Q = soft_targets(S, P / P.sum(axis=1, keepdims=True), Y, train)
        theta = fit_soft(Z, Q, np.where(np.arange(60) < 30, 1, 30 / 60), 1.0, theta)
    assert_allclose(self_train(Z, S, Y, train, 1.0, start, sample), theta, atol=1e-6)
    assert np.abs(theta).max() > 0.1


@pytest.mark.parametrize("head", ["blocks", "sharpen", "self-training", "mlp"])
def test_inductive_heads_predict_rows_by_themselves(head):
    Z, y, A, train, val = problem()
    probe = GraphProbe(A, blocks=[6, 6], heads=(head,), random_state=0).fit(Z, y, train, val)
    assert {record["head"] for record in probe.report_} == {"logistic", head}
    assert_allclose(probe.predict_proba(Z[150:160]), probe.predict_proba()[150:160], atol=1e-5)
    assert_allclose(probe.predict_proba().sum(axis=1), 1)


def test_the_order_of_nodes_and_another_run_change_nothing():
    Z, y, A, train, val = problem()
    first, again = (GraphProbe(A, random_state=0).fit(Z, y, train, val) for _ in range(2))
    assert_array_equal(first.predict_proba(), again.predict_proba())
    order = np.random.default_rng(0).permutation(len(y))
    place = np.argsort(order)
    moved = GraphProbe(A[order][:, order], random_state=0).fit(Z[order], y[order], place[train], place[val])
    assert moved.val_score_ == pytest.approx(first.val_score_, abs=0.02)
    assert_allclose(moved.predict_proba()[place], first.predict_proba(), atol=0.05)


@pytest.mark.parametrize("heads", [("blocks", "sharpen", "self-training"), ("blocks", "mlp")])
def test_the_same_bits_at_any_number_of_threads(heads, monkeypatch):
    Z, y, A, train, val = problem()
    settings = {"blocks": [6, 4, 2], "heads": heads, "random_state": 0}
    one = GraphProbe(A, n_jobs=1, **settings).fit(Z, y, train, val)
    monkeypatch.setattr("fishergraph.probes.heads._LARGE", 0)
    two = GraphProbe(A, n_jobs=2, **settings).fit(Z, y, train, val)
    assert two.report_ == one.report_
    assert_array_equal(two.predict_proba(), one.predict_proba())
    with pytest.raises(InputError, match="n_jobs"):
        GraphProbe(A, n_jobs=0).fit(Z, y, train, val)


def test_smoothing_is_for_the_nodes_of_the_fit():
    Z, y, A, train, val = problem(noise=4.0)
    probe = GraphProbe(A, heads=("smooth",), random_state=0).fit(Z, y, train, val)
    assert probe.chosen_["smooth"] > 0.5
    assert probe.val_score_ == np.mean(probe.predict()[val] == y[val])
    plain = GraphProbe(A, heads=("logistic",), random_state=0).fit(Z, y, train, val)
    assert_allclose(probe.predict_proba(Z[:5]), plain.predict_proba(Z[:5]))
    assert_allclose(plain.predict_proba(Z), plain.predict_proba())
    assert np.mean(probe.predict() == y) > np.mean(plain.predict() == y) + 0.1


@pytest.mark.parametrize("heads", [("blocks",), ("sharpen", "self-training"), ("mlp", "smooth")])
def test_a_last_fit_on_all_labels(heads):
    Z, y, A, *_ = problem(n=400, noise=2.0)
    train, val, rest = np.arange(15), np.arange(15, 200), np.arange(200, 400)
    probes = [
        GraphProbe(A, blocks=[6, 6], heads=heads, fit_on=fit_on, random_state=0).fit(Z, y, train, val)
        for fit_on in ("train", "train+val")
    ]
    assert probes[0].chosen_ == probes[1].chosen_
    assert probes[0].val_score_ == probes[1].val_score_
    right = [np.mean(probe.predict()[rest] == y[rest]) for probe in probes]
    assert right[1] > right[0] + 0.02
    with pytest.raises(InputError, match="fit_on"):
        GraphProbe(A, fit_on="all").fit(Z, y, train, val)


def test_a_network_is_tried_if_there_are_many_labels():
    Z, y, A, *_ = problem(n=1500)
    train, val = np.arange(1000), np.arange(1000, 1200)
    probe = GraphProbe(A, heads="inductive", random_state=0).fit(Z, y, train, val)
    assert {record["head"] for record in probe.report_} == {"logistic", "blocks", "sharpen", "mlp"}
    only = [GraphProbe(heads=("mlp",), random_state=1).fit(Z, y, train, val).report_[1] for _ in range(2)]
    assert only[0]["val_log_loss"] == only[1]["val_log_loss"]
    assert only[0]["val_accuracy"] > 0.4


def test_blocks_from_names_widths_and_slices():
    pairs = (("walk", slice(0, 2)), ("psi0", slice(2, 5)))
    names = ["walk_0", "walk_1", "psi0_0", "psi0_1", "psi0_2"]
    assert read_blocks(None, pd.DataFrame(np.ones((1, 5)), columns=names), 5) == pairs
    assert read_blocks(names, None, 5) == read_blocks([("walk", 2), ("psi0", 3)], None, 5) == pairs
    assert read_blocks({"walk": 2, "psi0": 3}, None, 5) == pairs
    widths = (("block0", slice(0, 2)), ("block1", slice(2, 5)))
    assert read_blocks([2, 3], None, 5) == read_blocks([slice(0, 2), slice(2, 5)], None, 5) == widths
    assert read_blocks(None, np.ones((1, 5)), 5) == (("all", slice(0, 5)),)


@pytest.mark.parametrize(
    ("blocks", "kind"),
    [
        *(([2, 2], InputError), (["a_0"], InputError), ([0, 5], InputError), ("psi0", InputTypeError)),
        *(([2.5, 2.5], InputTypeError), ([slice(0, 2), slice(3, 5)], InputError), ([("a", 2), ("a", 3)], InputError)),
        ({"a": 2}, InputError),
    ],
)
def test_blocks_that_do_not_match(blocks, kind):
    with pytest.raises(kind, match="blocks"):
        read_blocks(blocks, None, 5)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        *(({"blocks": [3]}, "columns"), ({"heads": "linear"}, "heads"), ({"heads": ("linear",)}, "head")),
        *(({"heads": ("smooth",), "graph": None}, "graph"), ({"graph": sp.eye_array(7, format="csr")}, "7 nodes")),
    ],
)
def test_bad_settings(options, word):
    Z, y, A, train, val = problem()
    with pytest.raises(InputError, match=word):
        GraphProbe(**{"graph": A, **options}).fit(Z, y, train, val)


def test_one_class_and_validation_rows_without_a_class():
    Z, y, A, train, val = problem()
    with pytest.raises(InputError, match="two classes"):
        GraphProbe(A).fit(Z, np.zeros(len(y)), train, val)
    with pytest.warns(FishergraphWarning, match="class 2"):
        GraphProbe(A).fit(Z, y, train, val[y[val] != 2])
    new = np.where(np.arange(len(y)) == val[0], 9, y)  # a label that no training row has
    assert GraphProbe(A).fit(Z, new, train, val).val_score_ < 1
