"""One contract per operation: every engine that has it agrees with the float64 reference.

`ENGINES` is the table. A new engine adds its name and device; its record in `fishergraph.ops` says which operations it
has. Gradients and further properties of `em_means` are in `test_gradients.py` and `test_backends.py`.
"""

import math
import os
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference as ref
from contracts import members_of
from fishergraph.em.means import block_means, first_responsibilities
from fishergraph.multiset import Multisets
from fishergraph.ops import ENGINES as RECORDS
from fishergraph.ops import choose_engine

torch = pytest.importorskip("torch")

from fishergraph.ops.iterate.torch import Steps, em_means  # noqa: E402
from fishergraph.ops.linear_head.torch import fisher_linear  # noqa: E402
from fishergraph.ops.posterior.torch import posterior  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.unit_rows.torch import unit_rows  # noqa: E402

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
interpreted = pytest.mark.skipif(not INTERPRETED, reason="needs TRITON_INTERPRET=1")

ENGINES = [
    pytest.param("numba", "cpu"),
    pytest.param("scipy", "cpu"),
    pytest.param("torch", "cpu"),
    pytest.param("triton", "cpu", marks=interpreted),
    pytest.param("torch", "cuda", marks=pytest.mark.gpu),
    pytest.param("triton", "cuda", marks=pytest.mark.gpu),
]
# More members than one chain of additions has on the CPU; the interpreter of Triton is slow, and has smaller hubs.
HUB, INTERPRETED_HUB = 4100, 30


def engines(has):
    """The engines whose records have an operation."""
    return pytest.mark.parametrize(("engine", "device"), [row for row in ENGINES if has(RECORDS[row.values[0]])])


every_engine = engines(lambda record: True)
on_tensors = engines(lambda record: record.tensor_module is not None)
with_iterations = engines(lambda record: record.several_iterations)
with_transport = engines(lambda record: record.transports)


@dataclass(frozen=True)
class Case:
    """What varies between problems."""

    scale: float = 1.0
    weighted: bool = False
    hub: bool = False
    index: str = "int32"


CASES = {
    "plain": Case(),
    "weighted": Case(weighted=True),
    "1e25": Case(scale=1e25, weighted=True),
    "1e-25": Case(scale=1e-25),
    "hub": Case(hub=True),
    "weighted hub": Case(hub=True, weighted=True),
    **{index: Case(index=index, weighted=True) for index in ("int64", "uint8", "uint16")},
}
each_case = pytest.mark.parametrize("name", CASES)
each_scale = pytest.mark.parametrize("scale", [1.0, 1e25, 1e-25])


@cache
def problem(name, hub=HUB):
    """(points, multisets, anchors, variance); among the sets empty ones, and values that float32 holds exactly."""
    case, rng = CASES[name], np.random.default_rng(0)
    indptr = np.cumsum([0, 0, 1, 3, 0, hub if case.hub else 5, 2, 0])
    indices = rng.integers(20, size=indptr[-1]).astype(case.index)
    weights = np.where(rng.random(indptr[-1]) < 0.2, 0.0, rng.uniform(0.2, 3.0, indptr[-1])) if case.weighted else None
    points, anchors = (rng.normal(size=(rows, 5)).astype(np.float32).astype(float) for rows in (20, 3))
    sets = Multisets(indptr, indices, weights, 20)
    return case.scale * points, sets, case.scale * anchors, 2.0 * case.scale**2


@cache
def expected_means(name, hub, n_iter, prior):
    points, sets, anchors, variance = problem(name, hub)
    return ref.em_means(points, members_of(sets), anchors, variance, prior, n_iter)


@pytest.fixture(autouse=True)
def hub(request, monkeypatch):
    """The size of a hub; on the GPU engine a set is one from nine members on, so that small ones are cut too."""
    monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 8)
    parameters = getattr(request.node, "callspec", None)
    slow = parameters is not None and (parameters.params.get("engine"), parameters.params.get("device"))
    return INTERPRETED_HUB if slow == ("triton", "cpu") else HUB


def send(device, *arrays):
    return [torch.tensor(array, device=device) for array in arrays]


def fetch(*results):
    return [result.cpu().numpy() if isinstance(result, torch.Tensor) else result for result in results]


def by_block(engine, device, name, hub, *, prior=0.0, n_iter=1, slack=math.inf):
    """(means, mass) of the problem by `em_block` of an engine."""
    points, sets, anchors, variance = problem(name, hub)
    record = choose_engine(engine, device=device, n_iter=n_iter, slack=slack)
    if record.tensors:
        (points, anchors), sets = send(device, points, anchors), tensor_sets(sets).to(device)
    alpha = first_responsibilities(points, anchors, variance)
    steps = {"variance": variance, "prior": prior, "n_iter": n_iter, "slack": slack}
    return fetch(*block_means(record, points, alpha, sets, anchors, **steps))


def assert_means(results, expected, scale, tolerance=1e-10):
    assert_allclose(results[0], expected[0], rtol=0, atol=tolerance * scale)
    assert_allclose(results[1], expected[1], rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------------------------------------- unit_rows


@on_tensors
@each_scale
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7)])
def test_unit_rows(engine, device, shape, dtype, scale):
    x = torch.tensor(scale * np.random.default_rng(0).normal(size=shape)).to(device, dtype)
    x[1:2] = 0
    expected = np.array([ref.unit(row) for row in x.cpu().double().numpy()]).reshape(shape)
    (units,) = fetch(unit_rows(engine, x))
    assert_allclose(units, expected, rtol=0, atol=1e-6 if dtype == torch.float32 else 1e-14)


# ---------------------------------------------------------------------------------------------- posterior


@on_tensors
@each_scale
@pytest.mark.parametrize("n_points", [0, 1, 20])
def test_posterior(engine, device, n_points, scale):
    points, _, anchors, _ = problem("plain")
    expected = ref.log_responsibilities(points[:n_points], anchors, 2.0)
    x, w = send(device, scale * points[:n_points], scale * anchors)
    (logs,) = fetch(posterior(engine, x, w, 2.0 * scale**2))
    assert_allclose(logs, expected.reshape(n_points, 3), rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------- attend and iterate


@every_engine
@each_case
@pytest.mark.parametrize("prior", [0.0, 0.3])
def test_attend(engine, device, name, prior, hub):
    results = by_block(engine, device, name, hub, prior=prior)
    assert_means(results, expected_means(name, hub, 1, prior), CASES[name].scale)


@on_tensors
@each_case
@pytest.mark.parametrize("n_iter", [1, 3])
def test_attend_and_iterate_on_whole_tensors(engine, device, name, n_iter, hub):
    points, sets, anchors, variance = problem(name, hub)
    x, w = send(device, points, anchors)
    steps = Steps(variance, 0.3, n_iter)
    results = fetch(*em_means(x, tensor_sets(sets).to(device), w, steps, engine=engine))
    assert_means(results, expected_means(name, hub, n_iter, 0.3), CASES[name].scale)


@with_iterations
@each_case
def test_iterate(engine, device, name, hub):
    results = by_block(engine, device, name, hub, n_iter=3)
    assert_means(results, expected_means(name, hub, 3, 0.0), CASES[name].scale, 1e-9)


# ---------------------------------------------------------------------------------------------- transport


@cache
def expected_transport(name, hub, slack):
    points, sets, anchors, variance = problem(name, hub)
    means, mass = np.zeros((sets.n_sets, *anchors.shape)), np.zeros((sets.n_sets, len(anchors)))
    for v, members in enumerate(members_of(sets)):
        x, weights = points[[u for u, _ in members]].reshape(-1, points.shape[1]), [a for _, a in members]
        scores = ref.log_responsibilities(x, anchors, variance).reshape(-1, len(anchors))
        logs = ref.transport(scores, weights, math.inf if slack == 0 else 1 / slack)
        means[v] = ref.m_step(x, weights, logs, anchors)
        mass[v] = np.asarray(weights) @ np.exp(logs)
    return means, mass


@with_transport
@pytest.mark.parametrize("slack", [0.0, 0.5])
@pytest.mark.parametrize("name", [name for name in CASES if name != "weighted hub"])
def test_transport(engine, device, name, slack, hub):
    results = by_block(engine, device, name, hub, slack=slack)
    assert_means(results, expected_transport(name, hub, slack), CASES[name].scale, 1e-7)


# -------------------------------------------------------------------------------------------- linear_head


@on_tensors
@each_case
def test_linear_head(engine, device, name, hub):
    """Computed in float32, which its kernels are for."""
    points, sets, anchors, variance = problem(name, hub)
    scale, weight = CASES[name].scale, np.random.default_rng(1).normal(size=(4, anchors.size))
    logs = ref.log_responsibilities(points, anchors, variance)
    tensors = [tensor.float() for tensor in send(device, points, logs, anchors, weight)]
    x, log_alpha, w, matrix = tensors
    z = fisher_linear(engine, x, log_alpha, tensor_sets(sets).to(device), w, matrix, fisher_root=0.5, prior=0.3)
    phi = ref.fisher_embedding(expected_means(name, hub, 1, 0.3)[0] / scale, anchors / scale, 0.5)
    assert_allclose(fetch(z)[0].astype(float) / scale, phi @ weight.T, rtol=0, atol=2e-5)


# ------------------------------------------------------------------------------------------- segment_sums


def _numba_sums(points, sets, device):
    from fishergraph.ops._numba.tasks import Transpose, as_weights
    from fishergraph.ops.segment_sums.numba import add_scaled_segments, add_segments, sum_over_sets

    n_entries = len(sets.indices)
    weights = np.ones(n_entries) if sets.weights is None else sets.weights
    labels, rows = np.repeat(np.arange(sets.n_sets), np.diff(sets.indptr)), points[sets.indices]
    sums, scaled = np.zeros((2, sets.n_sets, points.shape[1]))
    add_segments(weights[:, None] * rows, labels, sums)
    add_scaled_segments(rows, weights, labels, scaled)
    # The sets in the place of points: the sum over the sets of a point is then one over the members of a set.
    transpose = Transpose(sets.indptr, sets.indices, np.arange(n_entries))
    values = np.ones((n_entries, 1))
    yield from (sums, scaled)
    yield sum_over_sets(None, points[:, None], values, as_weights(sets.weights, points.dtype), transpose, 1)


def _scipy_sums(points, sets, device):
    from fishergraph.ops.attend.scipy import _sum_rows

    weights = np.ones(len(sets.indices)) if sets.weights is None else sets.weights
    yield _sum_rows(weights, sets.indices, sets.indptr, points)


def _torch_sums(points, sets, device):
    from fishergraph.ops.segment_sums.torch import sum_segments, sum_sets

    (x,), sets = send(device, points), tensor_sets(sets).to(device)
    rows = x[sets.indices.long()]
    rows = rows if sets.weights is None else sets.weights[:, None] * rows
    yield from (sum_sets(rows, sets), sum_segments(rows, sets.indptr))


def _triton_sums(points, sets, device):
    from fishergraph.ops.segment_sums.triton import Pull

    (x,) = send(device, points)
    yield Pull(x, torch.ones_like(x[:, :1]), tensor_sets(sets).to(device)).all()[:, 0]


SUMS = {"numba": _numba_sums, "scipy": _scipy_sums, "torch": _torch_sums, "triton": _triton_sums}


@every_engine
@each_case
def test_segment_sums(engine, device, name, hub):
    points, sets, _, _ = problem(name, hub)
    columns = range(points.shape[1])
    expected = [[math.fsum(a * points[u, k] for u, a in members) for k in columns] for members in members_of(sets)]
    for sums in SUMS[engine](points, sets, device):
        assert_allclose(fetch(sums)[0], expected, rtol=0, atol=1e-10 * CASES[name].scale)


def test_every_engine_and_operation_is_in_the_tables():
    assert {row.values[0] for row in ENGINES} == set(RECORDS) == set(SUMS)
