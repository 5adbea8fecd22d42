"""The transport E-steps of all multisets: what the plain, compiled and tensor versions owe, and gradients."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from fishergraph.multiset import Multisets
from fishergraph.ops import Responsibilities
from fishergraph.ops.iterate.numba import em_block
from fishergraph.ops.transport.numba import scratch, transport_row
from fishergraph.ops.transport.rules import MAX_ITER, default_tolerance
from plain_transport import transport as plain_transport

torch = pytest.importorskip("torch")
tensors = pytest.importorskip("fishergraph.ops.transport.torch")

SIZES = (0, 1, 2, 3, 5, 8, 13, 0, 1)


def example(p=4, *, sizes=SIZES, scale=2.0, weighted=True, seed=0):
    """scores (entry, anchor), indptr and weights of several sets, in numbers that float32 holds exactly."""
    rng = np.random.default_rng([seed, p, len(sizes)])
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = (scale * rng.normal(size=(indptr[-1], p))).astype(np.float32).astype(np.float64)
    weights = rng.uniform(0.2, 3.0, size=indptr[-1]).astype(np.float32).astype(np.float64)
    return scores, indptr, weights if weighted else None


def plain(scores, indptr, weights, slack):
    out = np.empty_like(scores)
    for start, stop in pairwise(indptr):
        out[start:stop] = plain_transport(scores[start:stop], None if weights is None else weights[start:stop], slack)
    return out


def compiled(scores, indptr, weights, slack, counts=None):
    out, network, dtype = scores.copy(), scratch(scores.shape[1]), scores.dtype
    given = np.ones(1, dtype) if weights is None else weights
    for start, stop in pairwise(indptr):
        # The row's scratch is longer than the row, as it is in a block.
        logs = np.full((stop - start + 2, scores.shape[1]), np.nan, dtype)
        logs[: stop - start] = scores[start:stop]
        count, left = transport_row(
            logs,
            given,
            0 if weights is None else 1,
            start,
            stop - start,
            slack,
            default_tolerance(dtype.itemsize),
            MAX_ITER,
            network,
        )
        assert left == 0
        out[start:stop] = logs[: stop - start]
        if counts is not None:
            counts.append(count)
    return out


def on_tensors(scores, indptr, weights, slack, device="cpu"):
    arrays = [None if array is None else torch.tensor(array, device=device) for array in (scores, indptr, weights)]
    return tensors.transport(*arrays, slack=slack).cpu().numpy()


VERSIONS = {"plain": plain, "numba": compiled, "torch": on_tensors}
FAST = {name: VERSIONS[name] for name in ("numba", "torch")}
each_version = pytest.mark.parametrize("solve", VERSIONS.values(), ids=VERSIONS)
each_fast = pytest.mark.parametrize("solve", FAST.values(), ids=FAST)
SLACKS = pytest.mark.parametrize("slack", [0.0, 0.01, 1.0, 30.0])


def reference(scores, indptr, weights, slack):
    out = np.empty(scores.shape)
    penalty = math.inf if slack == 0 else 1 / slack
    for start, stop in pairwise(indptr):
        out[start:stop] = ref.transport(scores[start:stop], None if weights is None else weights[start:stop], penalty)
    return out


@each_version
@pytest.mark.parametrize("seed", [25, 40, 60, 191])
def test_a_light_anchor_is_met_as_closely_as_the_others(solve, seed):
    """Weights of 1 to 10⁶: the mass of an anchor that light members choose is right relative to itself."""
    rng = np.random.default_rng([seed, 4])
    scores = rng.choice([2, 6, 20]) * rng.normal(size=(12, 4))
    weights = np.exp(rng.uniform(0, np.log(1e6), 12))
    weights[0] = 1e6
    scores, weights, indptr = scores.astype(np.float32), weights.astype(np.float32), np.array([0, 12])
    exact = plain(np.float64(scores), indptr, np.float64(weights), 1.0)
    got = solve(scores, indptr, weights, 1.0)
    masses = [weights @ np.exp(np.float64(logs)) for logs in (got, exact)]
    assert_allclose(*masses, rtol=1e-5)


def marginals(logs, indptr, weights):
    """(set, anchor): the column marginals over A/p."""
    parts = []
    for start, stop in pairwise(indptr):
        own = np.ones(stop - start) if weights is None else weights[start:stop]
        parts.append(logs.shape[1] * own @ np.exp(logs[start:stop].astype(float)) / own.sum())
    return np.array(parts)


# ------------------------------------------------------------------------------------------ agreement


@SLACKS
@pytest.mark.parametrize("p", [1, 2, 4, 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_references(slack, p, weighted):
    problem = example(p, weighted=weighted)
    expected = reference(*problem, slack)
    for name, solve in VERSIONS.items():
        assert_allclose(solve(*problem, slack), expected, rtol=0, atol=2e-9, err_msg=name)


@each_fast
@SLACKS
@pytest.mark.parametrize("scale", [100.0, 1e3])
def test_large_scores_agree_with_the_plain_version(solve, slack, scale):
    problem = example(4, scale=scale)
    got, expected = solve(*problem, slack), plain(*problem, slack)
    assert np.isfinite(got).all()
    assert_allclose(np.exp(got), np.exp(expected), rtol=0, atol=2e-9)


@each_version
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_rows_sum_to_one_and_columns_are_balanced(solve, dtype, scale):
    scores, indptr, weights = example(5, sizes=(1, 2, 3, 5, 8, 40), scale=scale)
    logs = solve(scores.astype(dtype), indptr, weights.astype(dtype), 0.0)
    assert logs.dtype == dtype
    eps = np.finfo(dtype).eps
    assert_allclose(np.exp(logs.astype(float)).sum(axis=1), 1, rtol=8 * eps)
    # A log of −10 holds 16 times less than one of −1.
    assert_allclose(marginals(logs, indptr, weights), 1, rtol=3 * default_tolerance(np.dtype(dtype).itemsize))


@each_fast
@SLACKS
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_float32_is_at_most_twice_as_far_as_the_plain_version(solve, slack, scale):
    fast, known = [], []
    for seed in range(10):
        scores, indptr, weights = example(4, scale=scale, seed=seed)
        exact = np.exp(plain(scores, indptr, weights, slack))
        narrow = scores.astype(np.float32), indptr, weights.astype(np.float32)
        floor = np.finfo(np.float32).eps
        fast.append(np.abs(np.exp(solve(*narrow, slack).astype(float)) - exact).max() + floor)
        known.append(np.abs(np.exp(plain(*narrow, slack).astype(float)) - exact).max() + floor)
    assert np.exp(np.mean(np.log(fast)) - np.mean(np.log(known))) <= 2
    assert np.max(fast) <= 20 * np.max(known)


@each_fast
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_a_hub_of_thirty_thousand_members(solve, dtype, slack):
    scores, indptr, weights = example(3, sizes=(2, 30_000, 1), scale=3.0)
    got = solve(scores.astype(dtype), indptr, weights.astype(dtype), slack)
    expected = plain(scores, indptr, weights, slack)
    assert_allclose(got, expected, rtol=0, atol=1e-9 if dtype == np.float64 else 1e-4)


# ---------------------------------------------------------------------------------------- invariances


@each_version
@SLACKS
def test_order_of_the_members_does_not_matter(solve, slack):
    scores, indptr, weights = example()
    rng = np.random.default_rng(1)
    order = np.concatenate([start + rng.permutation(stop - start) for start, stop in pairwise(indptr)]).astype(int)
    expected = solve(scores, indptr, weights, slack)[order]
    assert_allclose(solve(scores[order], indptr, weights[order], slack), expected, rtol=0, atol=1e-9)


@each_version
@SLACKS
def test_order_of_the_anchors_does_not_matter(solve, slack):
    scores, indptr, weights = example()
    order = [2, 0, 3, 1]
    expected = solve(scores, indptr, weights, slack)[:, order]
    assert_allclose(solve(scores[:, order], indptr, weights, slack), expected, rtol=0, atol=1e-9)


@each_version
@SLACKS
def test_weight_two_is_a_member_twice_and_scale_does_not_matter(solve, slack):
    scores, _, _ = example(3, sizes=(4,))
    twice = solve(scores[[0, 1, 1, 2, 3]], np.array([0, 5]), None, slack)
    weighted = solve(scores, np.array([0, 4]), np.array([1.0, 2.0, 1.0, 1.0]), slack)
    assert_allclose(weighted, twice[[0, 1, 3, 4]], rtol=0, atol=1e-9)
    for factor in (1e-6, 1e6):
        scaled = solve(scores, np.array([0, 4]), factor * np.array([1.0, 2.0, 1.0, 1.0]), slack)
        assert_allclose(scaled, weighted, rtol=0, atol=1e-9)


@each_version
@SLACKS
def test_a_member_of_weight_zero_does_not_change_the_others(solve, slack):
    scores, _, _ = example(3, sizes=(4,))
    scores[1] = [900.0, 0.0, -900.0]
    kept = [0, 2, 3]
    got = solve(scores, np.array([0, 4]), np.array([1.0, 0.0, 2.0, 0.5]), slack)
    expected = solve(scores[kept], np.array([0, 3]), np.array([1.0, 2.0, 0.5]), slack)
    assert_allclose(got[kept], expected, rtol=0, atol=1e-9)
    potentials = (expected - scores[kept])[0]
    row = scores[1] + potentials
    assert_allclose(got[1], row - row.max(), rtol=0, atol=1e-8)


@each_version
def test_sets_without_weight_keep_the_posterior(solve):
    scores, indptr, _ = example(3, sizes=(0, 2, 0, 3))
    got = solve(scores, indptr, np.array([0.0, 0.0, 1.0, 2.0, 1.0]), 0.0)
    assert_allclose(got[:2], ref.transport(scores[:2], column_penalty=0.0), rtol=0, atol=1e-14)
    assert_allclose(got[2:], ref.transport(scores[2:], [1.0, 2.0, 1.0]), rtol=0, atol=1e-9)
    empty = solve(scores[:0], np.zeros(4, np.int64), None, 0.0)
    assert empty.shape == (0, 3)


@each_version
def test_no_penalty_is_the_posterior(solve):
    scores, indptr, weights = example()
    assert_allclose(
        solve(scores, indptr, weights, math.inf), reference(scores, indptr, weights, 1e300), rtol=0, atol=1e-13
    )


@each_version
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_member_is_divided_evenly_and_one_anchor_takes_all(solve, dtype):
    logs = solve(np.array([[3.0, -2.0, 100.0, 0.0]], dtype), np.array([0, 1]), None, 0.0)
    assert_allclose(logs, -math.log(4), rtol=1e-6 if dtype == np.float32 else 1e-10)
    assert_array_equal(solve(np.array([[3.0], [1e3]], dtype), np.array([0, 2]), None, 0.0), 0)


@each_version
def test_hard_assignments_are_found(solve):
    """As many members as anchors and scores of 10³: the best permutation, which greedy choice misses."""
    scores = np.array([[0.0, -1000.0, -3000.0], [0.0, -500.0, -5000.0], [-10.0, -400.0, -2000.0]])
    logs = solve(scores, np.array([0, 3]), None, 0.0)
    best = max(
        ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)), key=lambda q: scores[range(3), q].sum()
    )
    assert_allclose(np.exp(logs), np.eye(3)[list(best)], rtol=0, atol=1e-9)


# ------------------------------------------------------------------------------------------ machinery


@each_fast
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_set_has_the_same_bits_in_any_company(solve, dtype, weighted):
    scores, indptr, weights = example(weighted=weighted, scale=20.0)
    scores = scores.astype(dtype)
    weights = None if weights is None else weights.astype(dtype)
    expected = solve(scores, indptr, weights, 0.1)
    for start, stop in pairwise(indptr):
        own = None if weights is None else weights[start:stop]
        assert_array_equal(solve(scores[start:stop], np.array([0, stop - start]), own, 0.1), expected[start:stop])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@SLACKS
def test_sweeps_are_few(dtype, slack):
    most = {1.0: 8, 10.0: 16, 100.0: 35, 1e3: 55}
    for scale, bound in most.items():
        counts = []
        for seed in range(5):
            scores, indptr, weights = example(8, sizes=(1, 2, 5, 8, 30, 100), scale=scale, seed=seed)
            compiled(scores.astype(dtype), indptr, weights.astype(dtype), slack, counts)
        assert max(counts) <= bound


def test_indptr_of_a_row_block_need_not_start_at_zero():
    scores, indptr, weights = example()
    got = on_tensors(scores, indptr + 17, weights, 0.0)
    assert_array_equal(got, on_tensors(scores, indptr, weights, 0.0))


def test_small_chunks_do_not_change_a_bit(monkeypatch):
    scores, indptr, weights = example(scale=20.0)
    expected = on_tensors(scores, indptr, weights, 0.1)
    for size in (1, 40, 100):
        monkeypatch.setattr(tensors, "_CHUNK", size)
        assert_array_equal(on_tensors(scores, indptr, weights, 0.1), expected)


def test_the_operator_is_registered_correctly():
    scores, indptr, weights = (torch.tensor(array) for array in example(3))
    for own in (None, weights.requires_grad_()):
        torch.library.opcheck(
            torch.ops.fishergraph.transport.default, (scores.clone().requires_grad_(), indptr, own, 0.5, 1e-10, 200)
        )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_a_gpu_gives_the_same(slack):
    scores, indptr, weights = example(8, sizes=SIZES * 40, scale=10.0)
    expected = compiled(scores, indptr, weights, slack)
    assert_allclose(on_tensors(scores, indptr, weights, slack, "cuda"), expected, rtol=0, atol=1e-8)
    torch.use_deterministic_algorithms(True)
    try:
        runs = [on_tensors(scores, indptr, weights, slack, "cuda") for _ in range(3)]
    finally:
        torch.use_deterministic_algorithms(False)
    for run in runs[1:]:
        assert_array_equal(run, runs[0])


# ------------------------------------------------------------------------------------------ gradients


def tensor_gradients(problem, slack, upstream):
    scores, indptr, weights = problem
    given = torch.tensor(scores, requires_grad=True)
    own = None if weights is None else torch.tensor(weights, requires_grad=True)
    logs = tensors.transport(given, torch.tensor(indptr), own, slack=slack)
    inputs = [given] if own is None else [given, own]
    found = torch.autograd.grad(logs, inputs, torch.tensor(upstream))
    return logs.detach().numpy(), [gradient.numpy() for gradient in found]


@SLACKS
@pytest.mark.parametrize("scale", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("p", [1, 3])
def test_gradients_are_those_of_differences(slack, scale, p):
    scores, indptr, weights = (torch.tensor(array) for array in example(p, sizes=(2, 0, 1, 4), scale=scale))
    arguments = scores.requires_grad_(), weights.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s, a: tensors.transport(s, indptr, a, slack=slack, tolerance=1e-12), arguments
    )
    assert torch.autograd.gradcheck(lambda s: tensors.transport(s, indptr, slack=slack, tolerance=1e-12), arguments[:1])


@SLACKS
def test_the_gradient_of_a_weight_of_zero(slack):
    """The derivative from the right: a member that begins to weigh."""
    scores, indptr, weights = example(3, sizes=(4,))
    weights[1] = 0.0
    upstream = np.random.default_rng(2).normal(size=scores.shape)
    _, (_, found) = tensor_gradients((scores, indptr, weights), slack, upstream)
    values = []
    for weight in (0.0, 1e-5, 2e-5):
        weights[1] = weight
        values.append(np.sum(upstream * ref.transport(scores, weights, math.inf if slack == 0 else 1 / slack)))
    assert_allclose(found[1], (4 * values[1] - values[2] - 3 * values[0]) / 2e-5, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("slack", [0.0, 1.0])
def test_gradients_stay_finite_where_assignments_are_hard(dtype, slack):
    """What comes back from an M-step is α times something, and α is zero or one here: so is what goes on."""
    scores, indptr, weights = example(4, scale=1e3)
    scores, weights = scores.astype(dtype), weights.astype(dtype)
    logs = on_tensors(scores, indptr, weights, slack)
    slope = np.random.default_rng(3).normal(size=scores.shape).astype(dtype)
    _, found = tensor_gradients((scores, indptr, weights), slack, np.exp(logs) * slope)
    for gradient in found:
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() < 100


def test_no_gradient_where_nobody_weighs_anything():
    scores, indptr, _ = example(3, sizes=(2,))
    upstream = np.ones((2, 3))
    upstream[0, 0] = 5
    _, (by_score, by_weight) = tensor_gradients((scores, indptr, np.zeros(2)), 0.0, upstream)
    alpha = np.exp(ref.transport(scores, column_penalty=0.0))
    assert_allclose(by_score, upstream - alpha * upstream.sum(axis=1, keepdims=True), rtol=0, atol=1e-12)
    assert_array_equal(by_weight, 0)


def test_a_second_derivative_says_that_there_is_none():
    scores = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    logs = torch.ops.fishergraph.transport(scores, torch.tensor([0, 2, 5]), None, 0.5, 1e-10, 200)
    (slopes,) = torch.autograd.grad((logs**2).sum(), scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated"):
        slopes.sum().backward()


def rows_with_few_steps(scores, indptr, weights, slack):
    """One EM iteration of the compiled rows with one step of the solver."""
    n, p = scores.shape
    sets = Multisets(indptr, np.arange(n), weights, n)
    means, mass = np.empty((sets.n_sets, p, 2)), np.empty((sets.n_sets, p))
    points, logs = np.ones((n, 2)), scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    options = {"prior": 0.0, "means": means, "mass": mass, "slack": slack, "max_iter": 1}
    em_block(points, Responsibilities(logs, np.exp(logs)), sets, np.zeros((p, 2)), **options)
    return mass


def plain_with_few_steps(scores, indptr, weights, slack):
    parts = [
        plain_transport(scores[a:b], None if weights is None else weights[a:b], slack, None, 1)
        for a, b in pairwise(indptr)
    ]
    return np.array([own.sum(axis=0) for own in map(np.exp, parts)])


def tensors_with_few_steps(scores, indptr, weights, slack):
    logs = tensors.transport(torch.tensor(scores), torch.tensor(indptr), slack=slack, max_iter=1)
    return np.array([logs[a:b].exp().sum(0).numpy() for a, b in pairwise(indptr)])


@SLACKS
@pytest.mark.parametrize("few", [plain_with_few_steps, rows_with_few_steps, tensors_with_few_steps])
def test_a_marginal_that_is_not_met_is_warned_of(few, slack):
    """The result is defined all the same: what every member has shared out is its weight."""
    scores, indptr, _ = example(3, scale=30.0, weighted=False)
    with pytest.warns(UserWarning, match="converge"):
        mass = few(scores, indptr, None, slack)
    np.testing.assert_allclose(mass.sum(axis=1), np.diff(indptr), rtol=1e-12)


@each_version
def test_a_solution_is_not_warned_of(solve):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(*example(3, scale=100.0), 0.0)


@each_version
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [math.inf, 2.0])
def test_ragged_sets_have_pots_plans(solve, seed, penalty):
    """Random sizes, weights and numbers of anchors; every set's plan is that of another solver."""
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 7))
    scores, indptr, weights = example(p, sizes=tuple(rng.integers(1, 30, size=12)), scale=1.5, seed=seed)
    logs = solve(scores, indptr, weights, 1 / penalty)
    for a, b in pairwise(indptr):
        share, target = weights[a:b] / weights[a:b].sum(), np.full(p, 1 / p)
        if penalty == math.inf:
            options = {"method": "sinkhorn_log", "stopThr": 1e-13, "numItermax": 100_000}
            plan = ot.sinkhorn(share, target, -scores[a:b], 1.0, **options)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # POT computes ∞/∞ for the constrained side
                plan = ot.unbalanced.sinkhorn_unbalanced(
                    share, target, -scores[a:b], 1.0, (math.inf, penalty), stopThr=1e-14, numItermax=100_000
                )
        assert_allclose(share[:, None] * np.exp(logs[a:b]), plan, rtol=0, atol=1e-8)
