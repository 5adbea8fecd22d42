"""The transport E-steps in PyTorch, all multisets at once, on any device, with the gradient of the solution.

The steps are those of `rules`. Sums over the members of a set and the p × p networks are float64, so that a
set of 10⁵ members meets the float32 tolerance too. Sets that have converged are removed from the working arrays. Bytes
per step and entry: about 20·p² (the networks are built anchor by anchor).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fishergraph.ops.tensor_ops import once_only, wide_type
from fishergraph.ops.transport.rules import FAR, GAP, GROWTH, MAX_ITER, NONE, default_tolerance, warn_unmet

# Entries × anchors plus sets × anchors² of a chunk: 128 MB for each of a handful of arrays.
_CHUNK = 1 << 24


def transport(
    scores: Tensor,
    indptr: Tensor,
    weights: Tensor | None = None,
    *,
    slack: float = 0.0,
    tolerance: float | None = None,
    max_iter: int = MAX_ITER,
) -> Tensor:
    """log α_ej, (entry, anchor), of the balanced (slack = 0) or unbalanced E-step of every multiset.

    max_α Σ_ej a_e α_ej (s_ej − log α_ej) − τ KL(m ‖ A/p), Σ_j α_ej = 1, in each set, with slack = 1/τ (`rules`).

    Parameters
    ----------
    scores : s, (entry, anchor), the log-joint of every member up to a constant of the entry.
    indptr : int64, (set + 1,); set v has the rows indptr[v] − indptr[0] … indptr[v + 1] − indptr[0] − 1 of the scores.
    weights : a ≥ 0, (entry,), or None if every member weighs one.
    tolerance : on the violation of the marginals (`default_tolerance`); by default 1e-10, and 1e-6 in float32.

    Gradients with respect to scores and weights are those of the solution (implicit differentiation).
    """
    if tolerance is None:
        tolerance = default_tolerance(scores.itemsize)
    return torch.ops.fishergraph.transport(scores, indptr, weights, slack, tolerance, max_iter)


def _chunks(indptr: Tensor, n_anchors: int) -> Iterator[tuple[slice, Tensor, int]]:
    """(entries, the set of every entry, number of sets) of runs of sets that fit into a chunk."""
    indptr = indptr - indptr[0]
    n_sets = len(indptr) - 1
    cost = n_anchors * indptr + n_anchors**2 * torch.arange(n_sets + 1, device=indptr.device)
    marks = torch.arange(_CHUNK, int(cost[-1]) + _CHUNK, _CHUNK, device=indptr.device)
    stops = (torch.searchsorted(cost, marks, right=True) - 1).tolist()
    first = 0
    for stop in stops:
        last = min(max(stop, first + 1), n_sets)
        if last > first:
            start, end = int(indptr[first]), int(indptr[last])
            numbers = torch.arange(last - first, device=indptr.device)
            rows = torch.repeat_interleave(numbers, torch.diff(indptr[first : last + 1]), output_size=end - start)
            yield slice(start, end), rows, last - first
            first = last


def _mixture_weights(weights: Tensor | None, entries: slice, rows: Tensor, n_sets: int) -> tuple[Tensor, Tensor]:
    """b_e = a_e / A, (entry,), zero if the set has no weight; and A, (set,)."""
    a = torch.ones(len(rows), device=rows.device) if weights is None else weights[entries]
    a = a.to(wide_type(rows.device))
    total = a.new_zeros(n_sets).index_add_(0, rows, a)
    return torch.where(a > 0, a / total[rows], 0.0), total


def _network(alpha: Tensor, b: Tensor, rows: Tensor, n_sets: int) -> tuple[Tensor, Tensor]:
    """m_j = Σ_e b_e α_ej, (set, anchor), and W_jk = Σ_e b_e α_ej α_ek for k ≤ j, (set, anchor, anchor)."""
    p = alpha.shape[1]
    weighted = b[:, None] * alpha
    conductances = alpha.new_zeros(n_sets, p, p)
    for j in range(p):
        products = weighted[:, j, None] * alpha[:, : j + 1]
        conductances[:, j, : j + 1] = products.new_zeros(n_sets, j + 1).index_add_(0, rows, products)
    return alpha.new_zeros(n_sets, p).index_add_(0, rows, weighted), conductances


def _solve(conductances: Tensor, leaks: Tensor, currents: Tensor, fallback: Tensor, least: float) -> Tensor:
    """The solution of the network of every set, (set, anchor); only conductances below the diagonal are read."""
    leaks, currents = leaks.clone(), currents.clone()
    pivots = torch.empty_like(leaks)
    for k in range(leaks.shape[1] - 1, -1, -1):
        row = conductances[:, k, :k]
        pivots[:, k] = leaks[:, k] + row.sum(dim=1)
        factors = torch.where(pivots[:, k, None] > least, row / pivots[:, k, None], 0.0)
        conductances[:, :k, :k] += factors[:, :, None] * row[:, None, :]
        leaks[:, :k] += factors * leaks[:, k, None]
        currents[:, :k] += factors * currents[:, k, None]
    for k in range(leaks.shape[1]):
        total = currents[:, k] + (conductances[:, k, :k] * currents[:, :k]).sum(dim=1)
        currents[:, k] = torch.where(pivots[:, k] > least, total / pivots[:, k], fallback[:, k])
    return currents


def _newton_step(mass: Tensor, target: Tensor, conductances: Tensor, slack: Tensor, least: float):
    """The step of the potentials, (set, anchor), and whether it was short, (set,); see `rules`."""
    ratio = target.clamp(min=least).log() - mass.clamp(min=least).log()
    far = ratio.abs().amax(dim=1)
    ratio = ratio - (mass * ratio).sum(dim=1, keepdim=True)
    currents = torch.where(far[:, None] > FAR, mass * ratio, target - mass)
    sinkhorn = ratio / (1 + slack)
    rest = _solve(conductances, slack * mass, currents, sinkhorn, NONE * least) - sinkhorn
    reach = (rest.amax(dim=1) - rest.amin(dim=1))[:, None]
    damping = torch.where(reach > 0, reach.log1p() / reach, 1.0)
    step = torch.where(reach < torch.inf, sinkhorn + damping * rest, sinkhorn)
    return step, torch.maximum(far, reach[:, 0]) <= FAR


def _violation(mass: Tensor, target: Tensor, least: float) -> Tensor:
    """How far the masses are from their targets, (set,); see `default_tolerance`."""
    goal = target.clamp(min=least)
    digits = 1 + (-torch.log(mass.shape[1] * goal)).clamp(min=0.0)
    return ((mass.clamp(min=least) - goal).abs() / (goal * digits)).amax(dim=1)


def _first_stage(scores: Tensor, b: Tensor, rows: Tensor, n_sets: int) -> Tensor:
    """The power of `GROWTH` that divides the scores of every set in the first stage, (set, 1)."""
    reach = torch.where(b > 0, scores.amax(dim=1) - scores.amin(dim=1), 0.0)
    widest = scores.new_zeros(n_sets).scatter_reduce_(0, rows, reach, "amax")
    stage = torch.ones(n_sets, dtype=wide_type(scores.device), device=scores.device)
    while bool((high := widest > GAP * stage).any()):
        stage = torch.where(high, GROWTH * stage, stage)
    return stage[:, None]


def _solve_chunk(
    scores: Tensor, b: Tensor, rows: Tensor, n_sets: int, slack: float, tolerance: float, max_iter: int
) -> Tensor:
    """log α of the entries of a chunk; the working arrays hold the sets that have not converged."""
    out = scores.log_softmax(dim=1)
    n_anchors, least = scores.shape[1], torch.finfo(scores.dtype).tiny
    stage = _first_stage(scores, b, rows, n_sets)
    logs = (scores / stage[rows].to(scores.dtype)).log_softmax(dim=1)
    potentials = stage.new_zeros(n_sets, n_anchors)
    entries = torch.arange(len(rows), device=rows.device)
    # A set without members or without weight has no marginal to meet.
    weight = stage.new_zeros(n_sets).index_add_(0, rows, b)
    alive = weight > 0
    violation = weight
    for _ in range(max_iter + 1):
        if not bool(alive.all()):
            member = alive[rows]
            rows = (torch.cumsum(alive, 0) - 1)[rows[member]]
            logs, b, entries = logs[member], b[member], entries[member]
            stage, potentials = stage[alive], potentials[alive]
        if len(stage) == 0:
            break
        mass, conductances = _network(logs.to(stage.dtype).exp(), b, rows, len(stage))
        target = (-slack * stage * potentials).softmax(dim=1)
        violation = _violation(mass, target, NONE * least)
        met = violation <= tolerance
        alive = ~(met & (stage[:, 0] == 1))
        done = ~alive[rows]
        out[entries[done]] = logs[done]
        step, close = _newton_step(mass, target, conductances, slack * stage, least)
        grow = torch.where((close | met)[:, None] & (stage > 1), GROWTH, 1.0)
        stage, potentials = stage / grow, grow * (potentials + step)
        logs = (grow[rows].to(logs.dtype) * (logs + step[rows].to(logs.dtype))).log_softmax(dim=1)
    out[entries] = logs
    if len(stage) and bool(alive.any()):
        warn_unmet(float(violation[alive].max()), tolerance, max_iter)
    return out


@torch.library.custom_op(
    "fishergraph::transport",
    mutates_args=(),
    schema="(Tensor scores, Tensor indptr, Tensor? weights, float slack, float tolerance, int max_iter) -> Tensor",
)
def _transport(scores, indptr, weights, slack, tolerance, max_iter):
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    for entries, rows, n_sets in _chunks(indptr, scores.shape[1]):
        b, _ = _mixture_weights(weights, entries, rows, n_sets)
        if slack == torch.inf:
            out[entries] = scores[entries].log_softmax(dim=1)
        else:
            out[entries] = _solve_chunk(scores[entries], b, rows, n_sets, slack, tolerance, max_iter)
    return out


@_transport.register_fake
def _(scores, indptr, weights, slack, tolerance, max_iter):
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _centre(values: Tensor, alpha: Tensor) -> Tensor:
    """values_j − α_j Σ_k values_k. Rows sum to zero: that gives the entry of the largest α with all digits."""
    top = alpha.argmax(dim=1, keepdim=True)
    values = (values - alpha * values.sum(dim=1, keepdim=True)).scatter(1, top, 0.0)
    return values.scatter(1, top, -values.sum(dim=1, keepdim=True))


@torch.library.custom_op(
    "fishergraph::transport_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor logs, Tensor indptr, Tensor? weights, float slack) -> (Tensor, Tensor)",
)
def _transport_backward(gradient, logs, indptr, weights, slack):
    """∂L/∂s, (entry, anchor), and ∂L/∂a, (entry,), from L_ij = ∂L/∂log α_ij of every multiset.

    With E_ij = L_ij − α_ij Σ_k L_ik, c_j = Σ_i E_ij and Σ_k W_jk (y_j − y_k) + slack m_j y_j = c_j, where
    W_jk = Σ_i b_i α_ij α_ik and b_i = a_i / A: ∂L/∂s_ij = E_ij − b_i α_ij (y_j − ⟨α_i, y⟩) and
    ∂L/∂a_i = (⟨m, y⟩ − ⟨α_i, y⟩) / A.
    """
    scores = torch.empty_like(logs)
    grad_weights = logs.new_empty(logs.shape[0])
    for entries, rows, n_sets in _chunks(indptr, logs.shape[1]):
        b, total = _mixture_weights(weights, entries, rows, n_sets)
        alpha = logs[entries].to(b.dtype).exp()
        direct = _centre(gradient[entries].to(alpha.dtype), alpha)
        currents = alpha.new_zeros(n_sets, alpha.shape[1]).index_add_(0, rows, direct)
        mass, conductances = _network(alpha, b, rows, n_sets)
        least = NONE * torch.finfo(logs.dtype).tiny
        if slack == torch.inf:
            potentials = torch.zeros_like(mass)
        else:
            potentials = _solve(conductances, slack * mass, currents, torch.zeros_like(mass), least)
        potentials = potentials - (mass * potentials).sum(dim=1, keepdim=True)
        by_entry = potentials[rows]
        scores[entries] = _centre(direct - b[:, None] * alpha * by_entry, alpha).to(logs.dtype)
        divisor = torch.where(total > 0, total, torch.inf)[rows]
        grad_weights[entries] = (-(alpha * by_entry).sum(dim=1) / divisor).to(logs.dtype)
    return scores, grad_weights


@_transport_backward.register_fake
def _(gradient, logs, indptr, weights, slack):
    return torch.empty_like(logs), logs.new_empty(logs.shape[0])


def _save(ctx, inputs, output):
    _, indptr, weights, ctx.slack, _, _ = inputs
    ctx.save_for_backward(output, indptr, weights)


def _backward(ctx, gradient):
    logs, indptr, weights = ctx.saved_tensors
    scores, by_weight = torch.ops.fishergraph.transport_backward(gradient, logs, indptr, weights, ctx.slack)
    by_weight = by_weight.to(weights.dtype) if weights is not None and ctx.needs_input_grad[2] else None
    return scores, None, by_weight, None, None, None


_transport.register_autograd(_backward, setup_context=_save)
_transport_backward.register_autograd(
    once_only("a balanced or unbalanced E-step", advice="use e_step='posterior'"),
    setup_context=lambda ctx, inputs, output: None,
)
