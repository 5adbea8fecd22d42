"""What every engine of `em_means` owes. An engine's test is a subclass that sets its name, and nothing else.

An engine that takes tensors inherits from `TensorContract`: the same problems, sent to a device and fetched.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from fishergraph.config import config_context
from fishergraph.em.means import EMMeans, block_means, em_means, first_responsibilities
from fishergraph.multiset import Multisets
from fishergraph.ops import choose_engine


@dataclass(frozen=True, eq=False)
class Problem:
    """One call of `em_means`: multisets over points, anchors, and the numbers that go with them."""

    points: np.ndarray
    sets: Multisets
    anchors: np.ndarray
    variance: float = 1.0
    prior: float = 0.0

    def as_type(self, dtype):
        """The problem in another precision; float32 values are exact in float64."""
        weights = None if self.sets.weights is None else self.sets.weights.astype(dtype)
        return replace(
            self,
            points=self.points.astype(dtype),
            anchors=self.anchors.astype(dtype),
            sets=replace(self.sets, weights=weights),
        )


def members_of(sets):
    """The multisets as plain lists of (point, weight), as the reference takes them."""
    lists = []
    for start, stop in zip(sets.indptr[:-1], sets.indptr[1:], strict=True):
        weights = np.ones(stop - start) if sets.weights is None else sets.weights[start:stop]
        lists.append([(int(u), float(a)) for u, a in zip(sets.indices[start:stop], weights, strict=True)])
    return lists


def from_lists(lists, n_points):
    """The `Multisets` of plain lists of (point, weight)."""
    pairs = [pair for members in lists for pair in members]
    indptr = np.cumsum([0, *(len(members) for members in lists)])
    indices = np.array([u for u, _ in pairs], dtype=np.int32)
    return Multisets(indptr.astype(np.int64), indices, np.array([a for _, a in pairs], dtype=np.float64), n_points)


def random_problem(*, d=3, p=4, n=40, n_sets=12, scale=1.0, variance=None, prior=0.0, weighted=True, seed=0):
    """Sets of 0, 1, 2, … members with weights, at the given scale; by default α is neither flat nor hard."""
    rng = np.random.default_rng([seed, d, p, n])
    sizes = np.resize([0, 1, 2, 3, 5, 8, 13], n_sets)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = rng.integers(n, size=indptr[-1]).astype(np.int32)
    weights = rng.uniform(0.2, 3.0, size=len(indices)) if weighted else None
    points, anchors = scale * rng.normal(size=(n, d)), scale * rng.normal(size=(p, d))
    if variance is None:
        variance = scale**2 * np.sqrt(d)
    # Values that float32 holds exactly: both precisions then solve the same problem.
    weights = None if weights is None else weights.astype(np.float32).astype(np.float64)
    points, anchors = points.astype(np.float32).astype(np.float64), anchors.astype(np.float32).astype(np.float64)
    return Problem(points, Multisets(indptr, indices, weights, n), anchors, float(variance), prior)


# Scales at which float32 responsibilities underflow: a mass computed from them would be zero over zero.
EXTREMES = {
    "3√d": {"d": 16, "p": 5, "scale": 12.0, "variance": 1.0},
    "30": {"d": 7, "p": 4, "scale": 30.0, "variance": 0.5},
    "30, one feature": {"d": 1, "p": 3, "scale": 30.0, "variance": 0.05},
}


@cache
def extreme_problem(name, prior, seed):
    return random_problem(**EXTREMES[name], prior=prior, seed=seed)


@cache
def shaped_problems(d, p):
    return [random_problem(d=d, p=p, n=20, n_sets=7, seed=seed) for seed in range(3)]


@cache
def hub_problem(degree):
    """One set of very many members among small ones."""
    rng = np.random.default_rng(3)
    n = min(500, degree)
    indptr = np.array([0, 2, 2 + degree, 5 + degree])
    points = rng.normal(size=(n, 2)).astype(np.float32).astype(np.float64)
    anchors = points[:3] + 0.5
    return Problem(points, Multisets(indptr, rng.integers(n, size=indptr[-1], dtype=np.int32), None, n), anchors, 0.7)


_KNOWN = {}


def reference_means(problem, n_iter):
    """`ref.em_means`, computed once for all engines and precisions."""
    key = (id(problem), n_iter)
    if key not in _KNOWN:
        result = ref.em_means(
            problem.points,
            members_of(problem.sets),
            problem.anchors,
            problem.variance,
            problem.prior,
            n_iter,
        )
        _KNOWN[key] = (problem, result)  # the problem is kept, so that its id stays its own
    return _KNOWN[key][1]


def plain_means(problem, n_iter):
    """The plain version in the dtype of the points: squared distances, log-softmax, softmax over the multiset."""
    points, anchors, dtype = problem.points, problem.anchors, problem.points.dtype
    variance = dtype.type(problem.variance)
    means = np.repeat(anchors[None], problem.sets.n_sets, axis=0)
    mass = np.zeros(means.shape[:2], dtype)
    for v, members in enumerate(members_of(problem.sets)):
        x = points[[u for u, _ in members]]
        weights = np.array([a for _, a in members], dtype)
        if len(x) == 0:
            continue
        for _ in range(n_iter):
            logs = -np.sum((x[:, None] - means[v]) ** 2, axis=-1) / (2 * variance)
            logs = logs - logs.max(axis=1, keepdims=True)
            logs = logs - np.log(np.sum(np.exp(logs), axis=1, keepdims=True))
            mass[v] = weights @ np.exp(logs)
            if problem.prior > 0:
                logs = np.concatenate([logs, np.zeros((1, len(anchors)), dtype)])
            highest = logs.max(axis=0)
            shares = np.exp(logs - highest)
            shares[: len(x)] *= weights[:, None]
            shares[len(x) :] *= dtype.type(problem.prior)
            total = shares.sum(axis=0)
            means[v] = (shares[: len(x)].T @ x + shares[len(x) :].sum(axis=0)[:, None] * anchors) / total[:, None]
    return means, mass


def assert_measured(problems, results, n_iter, *, factor=2.0):
    """Rule 9: at most `factor` times as far from the float64 reference as the plain version in the same dtype.

    Where two members are nearly tied, one rounding decides an error a hundred times the usual one, in the plain
    version as in the fast one; so the errors of several problems are compared by their geometric mean.
    """
    for name, part in (("means", 0), ("mass", 1)):
        fast, plain = [], []
        for problem, got in zip(problems, results, strict=True):
            dtype = got[part].dtype
            exact = reference_means(problem, n_iter)[part]
            scale = np.abs(problem.points).max() if name == "means" else max(1.0, exact.max())
            floor = np.finfo(dtype).eps * scale
            fast.append(np.abs(got[part] - exact).max() + floor)
            plain.append(np.abs(plain_means(problem.as_type(dtype), n_iter)[part] - exact).max() + floor)
        ratio = np.exp(np.mean(np.log(fast)) - np.mean(np.log(plain)))
        assert ratio <= factor, f"{name}: {ratio:.2g} times as far from the reference as the plain version"
        assert np.max(fast) <= 10 * factor * np.max(plain), f"{name}: off by {np.max(fast):.2e}"


def long_problem(n_members: int, weighted: bool) -> Problem:
    """One multiset in float32: few points, the first of them most of the time."""
    rng = np.random.default_rng(0)
    points = rng.uniform(0.1, 1.0, (50, 3)).astype(np.float32)
    indices = np.where(rng.random(n_members) < 0.9, 0, rng.integers(0, 50, n_members)).astype(np.int32)
    weights = np.full(n_members, 0.7, np.float32) if weighted else None
    sets = Multisets(np.array([0, n_members]), indices, weights, len(points))
    return Problem(points, sets, points[1:3].copy(), 1.0)


def counted_means(problem: Problem, n_iter: int) -> tuple[np.ndarray, np.ndarray]:
    """(means, mass) of the only set of a problem, in float64, with one member per point: as often as it is there."""
    counts = np.bincount(problem.sets.indices, weights=problem.sets.weights, minlength=len(problem.points))
    points, means, mass = problem.points.astype(np.float64), problem.anchors.astype(np.float64), np.zeros(1)
    for _ in range(n_iter):
        shares = counts[:, None] * ref.responsibilities(points, means, problem.variance)
        mass = shares.sum(axis=0)
        means = shares.T @ points / mass[:, None]
    return means, mass


class EMContract:
    """What `em_means` with the engine `self.engine` returns, whatever the engine."""

    engine: str
    # What tests are run over; a slow machine, such as an interpreter, may take fewer.
    n_iter = (1, 2, 5)
    d = (1, 7, 128)
    p = (1, 3, 8, 33)
    name = tuple(EXTREMES)
    seeds = range(10)
    degree = 10_000
    long = 300_000
    many: ClassVar = {"n": 6000, "n_sets": 1700}
    jobs: ClassVar = (1, 2, 3)

    def pytest_generate_tests(self, metafunc):
        marks = metafunc.definition.iter_markers("parametrize")
        given = {name for mark in marks for name in mark.args[0].replace(" ", "").split(",")}
        for name in ("n_iter", "d", "p", "name"):
            if name in metafunc.fixturenames and name not in given:
                metafunc.parametrize(name, getattr(self, name))

    def means(self, problem, *, n_iter=1, **options):
        """(means, mass) of the problem, or a skip if the engine refuses several iterations."""
        if n_iter > 1 and not self.record.several_iterations:
            pytest.skip(f"{self.engine} runs one iteration")
        with config_context(engine=self.engine):
            return em_means(
                problem.points,
                problem.sets,
                problem.anchors,
                variance=problem.variance,
                prior=problem.prior,
                n_iter=n_iter,
                **{"n_jobs": 1, **options},
            )

    @property
    def record(self):
        return choose_engine(self.engine)

    def send(self, array):
        """The array as `record.em_block` takes it."""
        return array

    def send_sets(self, sets):
        return sets

    def fetch(self, array):
        return array

    # -------------------------------------------------------------------------------------- agreement

    @pytest.mark.parametrize("prior", [0.0, 0.3])
    def test_agrees_with_the_reference_in_float64(self, n_iter, prior):
        problem = random_problem(prior=prior)
        means, mass = self.means(problem, n_iter=n_iter)
        known_means, known_mass = reference_means(problem, n_iter)
        assert means.dtype == mass.dtype == np.float64
        assert_allclose(means, known_means, rtol=0, atol=1e-10)
        assert_allclose(mass, known_mass, rtol=0, atol=1e-10)

    def test_agrees_at_every_shape(self, d, p, n_iter):
        problems = shaped_problems(d, p)
        known_means, known_mass = reference_means(problems[0], n_iter)
        means, mass = self.means(problems[0], n_iter=n_iter)
        assert_allclose(means, known_means, rtol=0, atol=1e-10)
        assert_allclose(mass, known_mass, rtol=0, atol=1e-10)
        results = [self.means(problem.as_type(np.float32), n_iter=n_iter) for problem in problems]
        assert results[0].means.dtype == results[0].mass.dtype == np.float32
        assert_measured(problems, results, n_iter)

    @pytest.mark.parametrize("prior", [0.0, 1e-3])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_agrees_where_responsibilities_underflow(self, name, prior, dtype, n_iter):
        problems = [extreme_problem(name, prior, seed) for seed in self.seeds]
        for problem in problems:
            alpha = ref.responsibilities(problem.points, problem.anchors, problem.variance)
            assert (alpha.min(axis=0) < 1e-46).all(), "the case has to be one that underflows in float32"
        results = [self.means(problem.as_type(dtype), n_iter=n_iter) for problem in problems]
        if dtype == np.float32:
            assert_measured(problems, results, n_iter)
            return
        for problem, got in zip(problems, results, strict=True):
            # The rounding of a log of 10^5, times the spread of the points.
            known_means, known_mass = reference_means(problem, n_iter)
            assert_allclose(got.means, known_means, rtol=0, atol=1e-8)
            assert_allclose(got.mass, known_mass, rtol=0, atol=1e-9)

    def test_a_mean_survives_a_mass_of_zero(self):
        """Three members at one side, an anchor at the other: its α are zero in float32, its mean is the nearest one."""
        points = np.array([[0.0], [1.0], [2.0]], np.float32)
        problem = Problem(points, from_lists([[(0, 1), (1, 1), (2, 1)]], 3), np.array([[0.0], [60.0]], np.float32), 0.1)
        means, mass = self.means(problem)
        assert mass[0, 1] == 0
        assert_allclose(means[0, 1], 2.0, rtol=1e-6)

    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_hub(self, dtype, n_iter):
        problem = hub_problem(self.degree)
        got = self.means(problem.as_type(dtype), n_iter=n_iter)
        known_means, known_mass = reference_means(problem, n_iter)
        # A sum of 10^4 terms, in whatever order, is off by √10^4 roundings; 20 of them are let through.
        eps = np.finfo(dtype).eps
        assert_allclose(got.means, known_means, rtol=0, atol=2000 * eps)
        assert_allclose(got.mass, known_mass, rtol=2000 * eps)

    @pytest.mark.slow
    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_long_multiset_in_float32(self, weighted, n_iter):
        """Equal members are the worst case of a chain of additions: every rounding goes the same way."""
        problem = long_problem(self.long, weighted)
        means, mass = self.means(problem, n_iter=n_iter)
        known_means, known_mass = counted_means(problem, n_iter)
        # A second E-step adds its own rounding, whatever the length: 1.4e-6 on an H200, 2.8e-6 for 1,000 members.
        assert_allclose(means[0], known_means, rtol=n_iter * 1e-6)
        assert_allclose(mass[0], known_mass, rtol=1e-6)

    # ------------------------------------------------------------------------------------ invariances

    def test_order_of_the_members_does_not_matter(self, n_iter):
        problem = random_problem()
        lists = members_of(problem.sets)
        rng = np.random.default_rng(1)
        shuffled = from_lists([[members[i] for i in rng.permutation(len(members))] for members in lists], 40)
        expected = self.means(problem, n_iter=n_iter)
        got = self.means(replace(problem, sets=shuffled), n_iter=n_iter)
        assert_allclose(got.means, expected.means, rtol=0, atol=1e-12)
        assert_allclose(got.mass, expected.mass, rtol=0, atol=1e-12)

    def test_order_of_the_sets_does_not_matter(self, n_iter):
        problem = random_problem()
        order = np.random.default_rng(2).permutation(problem.sets.n_sets)
        expected = self.means(problem, n_iter=n_iter)
        got = self.means(replace(problem, sets=problem.sets.take(order)), n_iter=n_iter)
        assert_array_equal(got.means, expected.means[order])
        assert_array_equal(got.mass, expected.mass[order])

    def test_every_member_twice_leaves_the_means_and_doubles_the_mass(self, n_iter):
        problem = random_problem(weighted=False)
        lists = members_of(problem.sets)
        once = self.means(problem, n_iter=n_iter)
        twice = self.means(
            replace(problem, sets=from_lists([[*members, *members] for members in lists], 40)), n_iter=n_iter
        )
        assert_allclose(twice.means, once.means, rtol=0, atol=1e-12)
        assert_allclose(twice.mass, 2 * once.mass, rtol=0, atol=1e-12)

    # ---------------------------------------------------------------------------------------- weights

    @pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
    def test_scaled_weights_leave_the_means_and_scale_the_mass(self, factor, n_iter):
        problem = random_problem()
        scaled = replace(problem.sets, weights=factor * problem.sets.weights)
        expected = self.means(problem, n_iter=n_iter)
        got = self.means(replace(problem, sets=scaled), n_iter=n_iter)
        assert_allclose(got.means, expected.means, rtol=0, atol=1e-12)
        assert_allclose(got.mass, factor * expected.mass, rtol=1e-12)

    def test_weight_two_is_a_member_twice_and_weight_zero_is_absent(self, n_iter):
        problem = random_problem(prior=0.2)
        lists = [[(3, 1.0), (7, 2.0), (9, 0.0)], [(9, 0.0)], [(7, 0.0), (5, 1.0)]]
        plain = [[(3, 1.0), (7, 1.0), (7, 1.0)], [], [(5, 1.0)]]
        for prior in (0.0, 0.2):
            ours = replace(problem, prior=prior, sets=from_lists(lists, 40))
            theirs = replace(problem, prior=prior, sets=from_lists(plain, 40))
            got, expected = self.means(ours, n_iter=n_iter), self.means(theirs, n_iter=n_iter)
            assert_allclose(got.means, expected.means, rtol=0, atol=1e-13)
            assert_allclose(got.mass, expected.mass, rtol=0, atol=1e-13)

    def test_a_weight_of_zero_hides_even_a_member_that_decides_the_maximum(self):
        """Underflow again: the absent member sits at the second anchor, the present one is far from it."""
        points = np.array([[0.0], [80.0]], np.float32)
        problem = Problem(points, from_lists([[(1, 0.0), (0, 1.0)]], 2), points + 1, 0.5)
        assert_allclose(self.means(problem).means[0], [[0.0], [0.0]], rtol=0, atol=1e-6)

    def test_weights_of_another_precision(self):
        problem = random_problem().as_type(np.float32)
        wide = replace(problem, sets=replace(problem.sets, weights=problem.sets.weights.astype(np.float64)))
        got, expected = self.means(wide), self.means(problem)
        assert got.means.dtype == got.mass.dtype == np.float32
        assert_allclose(got.means, expected.means, rtol=0, atol=1e-6)

    # ------------------------------------------------------------------------------------- edge cases

    @pytest.mark.parametrize("prior", [0.0, 2.0])
    def test_an_empty_set_gives_the_anchors_and_no_mass(self, prior, n_iter):
        problem = replace(random_problem(prior=prior), sets=from_lists([[], [(0, 1.0)], []], 40))
        means, mass = self.means(problem, n_iter=n_iter)
        assert_allclose(means[[0, 2]], np.stack([problem.anchors] * 2), rtol=1e-15)
        assert_array_equal(mass[[0, 2]], 0)
        assert (mass[1] > 0).all()

    def test_no_set_at_all(self):
        means, mass = self.means(replace(random_problem(), sets=from_lists([], 40)))
        assert means.shape == (0, 4, 3)
        assert mass.shape == (0, 4)

    def test_no_iteration_gives_the_anchors_and_no_mass(self):
        problem = random_problem()
        means, mass = self.means(problem, n_iter=0)
        assert_array_equal(means, np.broadcast_to(problem.anchors, means.shape))
        assert_array_equal(mass, 0)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_one_anchor_is_the_weighted_mean(self, dtype, n_iter):
        problem = random_problem(p=1, d=7).as_type(dtype)
        means, mass = self.means(problem, n_iter=n_iter)
        eps = np.finfo(dtype).eps
        for v, members in enumerate(members_of(problem.sets)):
            if members:
                weights = [a for _, a in members]
                expected = np.average(problem.points[[u for u, _ in members]].astype(float), axis=0, weights=weights)
                assert_allclose(means[v, 0], expected, rtol=0, atol=16 * eps)
                assert_allclose(mass[v, 0], np.sum(weights), rtol=16 * eps)

    def test_the_prior_pulls_towards_the_anchors(self, n_iter):
        base = random_problem()
        means = {k: self.means(replace(base, prior=k), n_iter=n_iter).means for k in (0.0, 1e-12, 1.0, 1e12)}
        full = np.diff(base.sets.indptr) > 0
        assert_allclose(means[1e-12], means[0.0], rtol=0, atol=1e-8)
        assert_allclose(means[1e12], np.broadcast_to(base.anchors, means[0.0].shape), rtol=0, atol=1e-9)
        distance = {k: np.linalg.norm(m[full] - base.anchors) for k, m in means.items()}
        assert distance[1e12] < distance[1.0] < distance[0.0]

    # -------------------------------------------------------------------------------------- machinery

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_index_types_do_not_change_a_bit(self, dtype, n_iter):
        problem = random_problem().as_type(dtype)
        wide = replace(problem, sets=replace(problem.sets, indices=problem.sets.indices.astype(np.int64)))
        got, expected = self.means(wide, n_iter=n_iter), self.means(problem, n_iter=n_iter)
        assert_array_equal(got.means, expected.means)
        assert_array_equal(got.mass, expected.mass)

    def test_read_only_input_is_read_and_left_alone(self, n_iter):
        problem = random_problem()
        expected = self.means(problem, n_iter=n_iter)
        sets = problem.sets
        arrays = [problem.points, problem.anchors, sets.indptr, sets.indices, sets.weights]
        copies = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        got = self.means(problem, n_iter=n_iter)
        assert_array_equal(got.means, expected.means)
        for array, copy in zip(arrays, copies, strict=True):
            assert_array_equal(array, copy)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_row_block_is_a_view_with_the_same_bits(self, weighted, n_iter):
        problem = random_problem(weighted=weighted)
        block = problem.sets.block(slice(4, 9))
        assert block.indptr[0] > 0
        assert block.indices is problem.sets.indices
        expected = self.means(problem, n_iter=n_iter)
        got = self.means(replace(problem, sets=block), n_iter=n_iter)
        assert_array_equal(got.means, expected.means[4:9])
        assert_array_equal(got.mass, expected.mass[4:9])

    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_same_bits_again_and_at_any_number_of_threads(self, dtype, n_iter):
        problem = random_problem(**self.many, d=5).as_type(dtype)
        expected = self.means(problem, n_iter=n_iter)
        for n_jobs in self.jobs:
            got = self.means(problem, n_iter=n_iter, n_jobs=n_jobs)
            assert_array_equal(got.means, expected.means)
            assert_array_equal(got.mass, expected.mass)

    def test_the_record_fills_what_it_is_given(self):
        """`em_block` is called on a row block with arrays to fill: no entry of them may stay as it was."""
        problem = random_problem()
        points, anchors = self.send(problem.points), self.send(problem.anchors)
        sets = self.send_sets(problem.sets).block(slice(2, 7))
        filled, mass = self.send(np.full((5, 4, 3), np.nan)), self.send(np.full((5, 4), np.nan))
        alpha = first_responsibilities(points, anchors, problem.variance)
        self.record.em_block(
            points, alpha, sets, anchors, variance=problem.variance, prior=0.0, n_iter=1, means=filled, mass=mass
        )
        expected = block_means(self.record, points, alpha, sets, anchors, variance=problem.variance)
        assert_array_equal(self.fetch(filled), self.fetch(expected.means))
        assert_array_equal(self.fetch(mass), self.fetch(expected.mass))
        known_means, known_mass = reference_means(problem, 1)
        assert_allclose(self.fetch(filled), known_means[2:7], rtol=0, atol=1e-10)
        assert_allclose(self.fetch(mass), known_mass[2:7], rtol=0, atol=1e-10)

    def test_several_iterations_or_a_clear_refusal(self):
        problem = random_problem()
        if self.record.several_iterations:
            assert not np.array_equal(self.means(problem, n_iter=2).means, self.means(problem).means)
            return
        with config_context(engine=self.engine), pytest.raises(ValueError, match="n_iter=2"):
            em_means(problem.points, problem.sets, problem.anchors, n_iter=2)


class TensorContract(EMContract):
    """The same of an engine that takes tensors: every problem goes to the device, every result comes back."""

    device = "cpu"

    @property
    def record(self):
        return choose_engine(self.engine, device=self.device)

    def send(self, array):
        torch = pytest.importorskip("torch")
        return torch.tensor(array, device=self.device)  # a copy, for an array may be read-only

    def send_sets(self, sets):
        pytest.importorskip("torch")
        from fishergraph.ops.tensor_edges import tensor_sets

        return tensor_sets(sets).to(self.device)

    def fetch(self, array):
        return array.cpu().numpy()

    def means(self, problem, *, n_iter=1, **options):
        with config_context(engine=self.engine):
            found = em_means(
                self.send(problem.points),
                self.send_sets(problem.sets),
                self.send(problem.anchors),
                variance=problem.variance,
                prior=problem.prior,
                n_iter=n_iter,
            )
        return EMMeans(*map(self.fetch, found))
