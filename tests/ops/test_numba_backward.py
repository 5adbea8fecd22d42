"""The compiled M-step of a whole graph and its gradients, against loops in float64 and finite differences."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fishergraph.multiset import Multisets
from fishergraph.ops._numba import tasks
from fishergraph.ops._numba.tasks import Transpose, cut_rows
from fishergraph.ops.attend.numba import attend, attend_backward
from fishergraph.ops.iterate.numba import score, score_backward

WAYS = pytest.mark.parametrize("by_entry", [False, True], ids=["by point", "by entry"])
SIZES = (0, 1, 2, 3, 5, 8, 13, 40)


@dataclass(frozen=True, eq=False)
class Case:
    """One call of `attend` and the gradients that come back to it."""

    x: np.ndarray
    logs: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    anchors: np.ndarray
    prior: float
    by_entry: bool
    grad_means: np.ndarray
    grad_mass: np.ndarray | None

    def as_type(self, dtype):
        floats = ("x", "logs", "weights", "anchors", "grad_means", "grad_mass")
        given = {name: getattr(self, name) for name in floats}
        return replace(self, **{name: None if a is None else a.astype(dtype) for name, a in given.items()})

    @property
    def rows(self):
        """The set of every entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def transpose(self):
        order = np.argsort(self.indices, kind="stable")
        indptr = np.zeros(len(self.x) + 1, np.int64)
        np.cumsum(np.bincount(self.indices, minlength=len(self.x)), out=indptr[1:])
        return Transpose(indptr, self.rows[order].astype(np.int32), order)

    @property
    def sets(self):
        return Multisets(self.indptr, self.indices, self.weights, len(self.x))

    def forward(self, n_jobs=1):
        return attend(self.x, self.logs, self.sets, self.anchors, self.prior, self.by_entry, n_jobs=n_jobs)

    def backward(self, n_jobs=1, *, again=False):
        """(points, logs, weights, anchors); with `again` the means are not handed over."""
        means, _, log_total = self.forward(n_jobs)
        inputs = (self.x, self.logs, self.sets, self.transpose(), self.anchors, self.prior, self.by_entry)
        gradients = (None if again else means, log_total, self.grad_means, self.grad_mass, self.weights is not None)
        return attend_backward(*inputs, *gradients, n_jobs=n_jobs)


def make(*, p=3, d=7, n=30, sizes=SIZES, weighted=True, prior=0.0, by_entry=False, scale=1.0, mass=True, seed=0):
    """Sets with repeated members and weights of zero; values that float32 holds exactly."""
    rng = np.random.default_rng([seed, p, d, n])
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_entries, n_sets = int(indptr[-1]), len(sizes)
    weights = np.where(rng.random(n_entries) < 0.2, 0.0, rng.uniform(0.2, 3, n_entries)) if weighted else None
    case = Case(
        rng.normal(size=(n, d)),
        -scale * np.abs(rng.normal(size=(n_entries if by_entry else n, p))),
        indptr,
        rng.integers(n, size=n_entries).astype(np.int32),
        weights,
        rng.normal(size=(p, d)),
        prior,
        by_entry,
        rng.normal(size=(n_sets, p, d)),
        rng.normal(size=(n_sets, p)) if mass else None,
    )
    return case.as_type(np.float32).as_type(np.float64)


@pytest.mark.parametrize("by_entry", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_that_are_not_handed_over_are_computed_again(weighted, by_entry):
    case = make(weighted=weighted, by_entry=by_entry, prior=0.4)
    for ours, theirs in zip(case.backward(again=True), case.backward(), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def reference(case):
    """Loops over sets, anchors and members: (means, mass, log_total), (points, logs, weights, anchors)."""
    n_sets, (p, d) = len(case.indptr) - 1, case.anchors.shape
    means, mass, log_total = np.zeros((n_sets, p, d)), np.zeros((n_sets, p)), np.full((n_sets, p), -np.inf)
    gradients = np.zeros_like(case.x), np.zeros_like(case.logs), np.zeros(len(case.indices)), np.zeros((p, d))
    weights = np.ones(len(case.indices)) if case.weights is None else case.weights
    for v in range(n_sets):
        entries = np.arange(case.indptr[v], case.indptr[v + 1])
        members, a = case.indices[entries], weights[entries]
        rows = entries if case.by_entry else members
        for j in range(p):
            log, big, own = case.logs[rows, j], case.grad_means[v, j], case.anchors[j]
            small = 0.0 if case.grad_mass is None else case.grad_mass[v, j]
            mass[v, j] = a @ np.exp(log)
            gradients[2][entries] += np.exp(log) * small
            np.add.at(gradients[1][:, j], rows, a * np.exp(log) * small)
            candidates = [*log[a > 0], *([np.log(case.prior)] if case.prior > 0 else [])]
            if not candidates:
                means[v, j] = own
                gradients[3][j] += big
                continue
            top = max(candidates)
            prior = np.exp(np.log(case.prior) - top) if case.prior > 0 else 0.0
            total = prior + a[a > 0] @ np.exp(log[a > 0] - top)
            log_total[v, j] = top + np.log(total)
            share = np.exp(np.minimum(log - log_total[v, j], 700))
            means[v, j] = (a * np.where(a > 0, share, 0)) @ case.x[members] + prior / total * own
            moment = (case.x[members] - means[v, j]) @ big
            gradients[2][entries] += share * moment
            t = np.where(a > 0, a * share, 0)
            np.add.at(gradients[1][:, j], rows, t * moment)
            np.add.at(gradients[0], members, t[:, None] * big)
            gradients[3][j] += prior / total * big
    return (means, mass, log_total), gradients


def assert_gradients(got, known, *, rtol=1e-10, zero_weights=None):
    for name, ours, theirs in zip(("points", "logs", "weights", "anchors"), got, known, strict=True):
        if ours is None:
            continue
        scale = max(1.0, np.abs(theirs).max(initial=0))
        assert_allclose(ours, theirs, rtol=rtol, atol=rtol * scale, err_msg=name)


# ------------------------------------------------------------------------------------------- agreement


@WAYS
@pytest.mark.parametrize("prior", [0.0, 0.3])
def test_the_reference_has_the_gradients_of_finite_differences(prior, by_entry):
    case = make(p=2, d=2, n=5, sizes=(0, 1, 3, 4), prior=prior, by_entry=by_entry)
    case = replace(case, weights=case.weights + 0.5)  # at a weight of zero the set changes its rule
    _, gradients = reference(case)

    def loss(**changes):
        (means, mass, _), _ = reference(replace(case, **changes))
        return (means * case.grad_means).sum() + (mass * case.grad_mass).sum()

    for name, gradient in zip(("x", "logs", "weights", "anchors"), gradients, strict=True):
        value = getattr(case, name)
        for place in np.ndindex(value.shape):
            step = np.zeros_like(value)
            step[place] = 1e-6
            slope = (loss(**{name: value + step}) - loss(**{name: value - step})) / 2e-6
            assert_allclose(gradient[place], slope, rtol=1e-6, atol=1e-7, err_msg=f"{name}{place}")


@WAYS
@pytest.mark.parametrize("prior", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mass", [False, True])
def test_agrees_with_the_reference(weighted, prior, mass, by_entry):
    case = make(weighted=weighted, prior=prior, mass=mass, by_entry=by_entry)
    known, gradients = reference(case)
    for ours, theirs in zip(case.forward(), known, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert_gradients(case.backward(), gradients)


SHAPES = [(p, d) for p in (1, 3, 8, 33) for d in (1, 7, 128)] + [(3, 513), (4, 50)]


@WAYS
@pytest.mark.parametrize(("p", "d"), SHAPES)
def test_agrees_at_every_shape(p, d, by_entry):
    case = make(p=p, d=d, prior=0.1, by_entry=by_entry, sizes=SIZES if d < 500 else (0, 1, 3))
    known, gradients = reference(case)
    assert_allclose(case.forward()[0], known[0], rtol=1e-12, atol=1e-12)
    assert_gradients(case.backward(), gradients)


@WAYS
@pytest.mark.parametrize("prior", [0.0, 1e-3])
@pytest.mark.parametrize("scale", [30.0, 300.0])
def test_agrees_where_responsibilities_underflow(scale, prior, by_entry):
    case = replace(make(scale=scale, prior=prior, by_entry=by_entry, sizes=(0, 1, 1, 2, 2, 3)), weights=None)
    if scale == 300:
        assert (np.exp(case.logs) < 1e-46).any(), "the case has to be one that underflows in float32"
    known, gradients = reference(case)
    for ours, theirs in zip(case.forward(), known, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert_gradients(case.backward(), gradients)
    # In float32 a log of some hundreds is off by 1e-5, and the attention with it.
    assert_gradients(case.as_type(np.float32).backward(), gradients, rtol=1e-3)


@WAYS
def test_a_weight_of_zero_hides_even_a_member_that_decides_the_maximum(by_entry):
    """Beside a log of −2000 a hidden log of −1 would be an infinite share."""
    case = make(p=1, d=2, n=2, sizes=(2, 1), by_entry=by_entry)
    logs = np.array([[-1.0], [-2000.0]])
    case = replace(
        case,
        indices=np.array([0, 1, 0], np.int32),
        logs=np.concatenate([logs, logs[:1]]) if by_entry else logs,
        weights=np.array([0.0, 1.0, 0.0]),
    )
    means, mass, log_total = case.forward()
    assert_allclose(means[0, 0], case.x[1], rtol=1e-15)
    assert_array_equal(means[1], case.anchors)  # nothing weighs anything
    assert_array_equal(log_total, [[-2000.0], [-np.inf]])
    assert_array_equal(mass, 0)
    points, logs, _, anchors = case.backward()
    assert_allclose(points, [[0, 0], case.grad_means[0, 0]], rtol=1e-15)
    assert_allclose(logs, 0, atol=1e-15)
    assert_allclose(anchors[0], case.grad_means[1, 0], rtol=1e-15)


@WAYS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_set_and_a_point_of_ten_thousand_entries(dtype, by_entry):
    case = make(p=2, d=3, n=4, sizes=(2, 10_000, 3), by_entry=by_entry, mass=False)
    known, gradients = reference(case)
    narrow = case.as_type(dtype)
    assert_allclose(narrow.forward()[0], known[0], rtol=0, atol=2000 * np.finfo(dtype).eps)
    assert_gradients(narrow.backward(), gradients, rtol=2000 * np.finfo(dtype).eps)


# -------------------------------------------------------------------------- precision and bookkeeping


@cache
def plain_errors(by_entry):
    """Errors of float32 gradients, of the compiled loops and of plain NumPy in float32, relative to their scale."""
    fast, plain = [], []
    for seed in range(5):
        case = make(p=4, d=32, n=40, prior=0.1, by_entry=by_entry, seed=seed)
        _, exact = reference(case)
        narrow = case.as_type(np.float32)
        for ours, simple, known in zip(narrow.backward(), _plain_float32(narrow), exact, strict=True):
            scale = np.abs(known).max()
            fast.append(np.abs(ours - known).max() / scale)
            plain.append(np.abs(simple - known).max() / scale)
    return fast, plain


def _plain_float32(case):
    """The formulas of the gradients with every array in float32, messages and all."""
    entry_logs = case.logs if case.by_entry else case.logs[case.indices]
    a, rows, members = case.weights[:, None], case.rows, case.x[case.indices]
    alpha = np.exp(entry_logs)
    total = np.full((len(case.indptr) - 1, case.logs.shape[1]), np.float32(case.prior))
    np.add.at(total, rows, a * alpha)
    sums = np.zeros_like(case.grad_means)
    np.add.at(sums, rows, (a * alpha)[:, :, None] * members[:, None])
    means = (sums + np.float32(case.prior) * case.anchors) / total[:, :, None]
    moment = np.sum((members[:, None] - means[rows]) * case.grad_means[rows], axis=2)
    per_weight = alpha / total[rows] * moment + alpha * case.grad_mass[rows]
    points, logs = np.zeros_like(case.x), np.zeros_like(case.logs)
    np.add.at(points, case.indices, np.sum((a * alpha / total[rows])[:, :, None] * case.grad_means[rows], axis=1))
    np.add.at(logs, np.arange(len(rows)) if case.by_entry else case.indices, a * per_weight)
    anchors = np.sum((np.float32(case.prior) / total)[:, :, None] * case.grad_means, axis=0)
    return points, logs, per_weight.sum(axis=1), anchors


@WAYS
def test_float32_is_at_most_twice_as_far_off_as_the_plain_version(by_entry):
    fast, plain = plain_errors(by_entry)
    ratio = np.exp(np.mean(np.log(fast)) - np.mean(np.log(plain)))
    assert ratio <= 2, f"{ratio:.2g} times as far from the reference as the plain version"


@WAYS
def test_index_types_do_not_change_a_bit(by_entry):
    case = make(by_entry=by_entry).as_type(np.float32)
    wide = replace(case, indices=case.indices.astype(np.int64))
    for ours, theirs in zip(wide.backward(), case.backward(), strict=True):
        assert_array_equal(ours, theirs)


@WAYS
def test_read_only_input_is_read_and_left_alone(by_entry):
    case = make(by_entry=by_entry)
    expected = case.backward()
    arrays = [a for a in vars(case).values() if isinstance(a, np.ndarray)]
    copies = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    for ours, theirs in zip(case.backward(), expected, strict=True):
        assert_array_equal(ours, theirs)
    for array, copy in zip(arrays, copies, strict=True):
        assert_array_equal(array, copy)


@pytest.fixture
def small_tasks(monkeypatch):
    """Tasks of twenty entries, and parts of seven."""
    monkeypatch.setattr(tasks, "TASK_ENTRIES", 20)
    monkeypatch.setattr(tasks, "HUB_ENTRIES", 7)


@WAYS
@pytest.mark.parametrize("prior", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_large_rows_are_cut_and_put_together(small_tasks, scale, prior, by_entry):
    case = make(n=9, prior=prior, by_entry=by_entry, scale=scale, weighted=scale == 1)
    runs, large = cut_rows(case.indptr)
    assert large == [5, 6, 7]
    assert len(runs) > 1
    assert sorted([v for run in runs for v in range(run.start, run.stop)] + large) == list(range(len(SIZES)))
    known, gradients = reference(case)
    for ours, theirs in zip(case.forward(), known, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert_gradients(case.backward(), gradients)


def test_a_part_without_weight_does_not_hide_tiny_responsibilities(small_tasks):
    rng = np.random.default_rng(0)
    points, anchors = rng.standard_normal((14, 3)), rng.standard_normal((2, 3))
    weights = np.r_[np.zeros(7), np.ones(7)]  # the first part of the set has no member that counts
    sets = Multisets(np.array([0, 14]), np.arange(14, dtype=np.int32), weights, 14)
    means, _, logs = attend(points, np.full((14, 2), -1000.0), sets, anchors, 0.0, False)
    assert_allclose(means[0], np.tile(points[7:].mean(axis=0), (2, 1)), rtol=1e-12)
    assert_allclose(logs[0], np.log(7) - 1000)


@WAYS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_at_any_number_of_threads(small_tasks, dtype, by_entry):
    case = make(n=50, sizes=SIZES * 8, by_entry=by_entry).as_type(dtype)
    forward, backward = case.forward(), case.backward()
    for n_jobs in (1, 2, 3):
        for ours, theirs in zip(case.forward(n_jobs), forward, strict=True):
            assert_array_equal(ours, theirs)
        for ours, theirs in zip(case.backward(n_jobs), backward, strict=True):
            assert_array_equal(ours, theirs)


def test_no_set_at_all():
    case = make(sizes=())
    assert case.forward()[0].shape == (0, 3, 7)
    points, logs, weights, anchors = case.backward()
    for gradient, like in ((points, case.x), (logs, case.logs), (weights, case.weights), (anchors, case.anchors)):
        assert_array_equal(gradient, np.zeros_like(like))


# -------------------------------------------------------------------------------------------- the score


def score_reference(case, means, grad):
    difference = case.x[case.indices][:, None] - means[case.rows]  # (entry, anchor, feature)
    weighted = grad[:, :, None] * difference
    points, grad_means = np.zeros_like(case.x), np.zeros_like(means)
    np.add.at(points, case.indices, -weighted.sum(axis=1))
    np.add.at(grad_means, case.rows, weighted)
    return -np.sum(difference**2, axis=2) / 2, points, grad_means


def score_results(case, means, grad, n_jobs=1):
    scores = score(case.x, means, case.sets, n_jobs=n_jobs)
    return scores, *score_backward(case.x, means, case.sets, case.transpose(), grad, n_jobs=n_jobs)


@pytest.mark.parametrize(("p", "d"), SHAPES)
def test_the_score_and_its_gradients_agree(p, d):
    case = make(p=p, d=d, sizes=SIZES if d < 500 else (0, 1, 3))
    means, grad = case.grad_means, np.random.default_rng(1).normal(size=(len(case.indices), p))
    for ours, theirs in zip(score_results(case, means, grad), score_reference(case, means, grad), strict=True):
        assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11 * d)


def test_the_score_keeps_its_digits_far_from_the_origin():
    """In float32 at an offset of 1000: differences first, products after."""
    case = make(p=4, d=16)
    x, means = (case.x + 1000).astype(np.float32), (case.grad_means + 1000).astype(np.float32)
    grad = np.random.default_rng(1).normal(size=(len(case.indices), 4)).astype(np.float32)
    exact = score_reference(replace(case, x=x.astype(float)), means.astype(float), grad.astype(float))
    for ours, theirs in zip(score_results(replace(case, x=x), means, grad), exact, strict=True):
        assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.abs(theirs).max())


def test_the_score_has_the_same_bits_at_any_number_of_threads_and_cut(small_tasks):
    case = make(n=9, sizes=SIZES * 3)
    means, grad = case.grad_means, np.random.default_rng(1).normal(size=(len(case.indices), 3))
    exact, first = score_reference(case, means, grad), score_results(case, means, grad)
    for n_jobs in (1, 2, 3):
        for ours, theirs, known in zip(score_results(case, means, grad, n_jobs), first, exact, strict=True):
            assert_array_equal(ours, theirs)
            assert_allclose(ours, known, rtol=1e-11, atol=1e-11)
