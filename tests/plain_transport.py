"""A plain version of the transport E-steps of one multiset, on any array (see `ops.transport.rules`)."""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace

from fishergraph.family.base import log_softmax
from fishergraph.ops.transport.rules import FAR, GAP, GROWTH, MAX_ITER, NONE, default_tolerance, warn_unmet


def balanced(scores: Any, weights: Any = None, *, tolerance: float | None = None, max_iter: int = MAX_ITER) -> Any:
    """log α_ij of the balanced E-step of one multiset: every anchor takes the same part of its weight (Appendix C).

        max_α Σ_ij a_i α_ij (s_ij − log α_ij)   with   Σ_j α_ij = 1 for every i,   Σ_i a_i α_ij = A/p for every j

    where A = Σ_i a_i. A set of fewer members than anchors has a solution too: members are divided.

    Parameters
    ----------
    scores : s, (point, anchor), the log-joint up to a constant of the point; finite.
    weights : a ≥ 0, (point,), or None where every member weighs one. Who weighs nothing has a row but no say; where
        nobody weighs anything the posterior is returned.
    tolerance : on the violation of the marginals (`default_tolerance`), which is p/A · max_j |Σ_i a_i α_ij − A/p| here;
        by default 1e-10, and 1e-6 in float32.
    max_iter : steps of the solver at most; a marginal that is not met by then is warned of, with its residual.

    Returns
    -------
    log α, (point, anchor); rows sum to one. Differentiable in scores and weights.
    """
    return transport(scores, weights, 0.0, tolerance, max_iter)


def unbalanced(
    scores: Any,
    weights: Any = None,
    *,
    column_penalty: float = 1.0,
    tolerance: float | None = None,
    max_iter: int = MAX_ITER,
) -> Any:
    """log α_ij of the unbalanced E-step of one multiset: anchors are drawn towards the same part (Appendix C).

        max_α Σ_ij a_i α_ij (s_ij − log α_ij) − τ Σ_j m_j log(m_j / (A/p))   with   Σ_j α_ij = 1 for every i

    where m_j = Σ_i a_i α_ij and A = Σ_i a_i; the last sum is KL(m ‖ A/p), for both sum to A. τ = `column_penalty` ≥ 0
    is in units of the scores whatever the scale of the weights: 0 is the posterior, ∞ is `balanced`. At the solution
    m_j ∝ exp(−g_j / τ), where log α_ij = s_ij + f_i + g_j.

    The other parameters, and what is returned, are those of `balanced`.
    """
    slack = math.inf if column_penalty < 1e-15 else 1.0 / column_penalty  # below it no digit of α changes
    return transport(scores, weights, slack, tolerance, max_iter)


def transport(scores: Any, weights: Any, slack: float, tolerance: float | None = None, max_iter: int = MAX_ITER) -> Any:
    """log α_ij (point, anchor) of one multiset whose column marginal meets its target; slack = 1/τ, 0 is balanced.

    Gradients of tensors run through the steps and are exact: one more step is taken at the solution, and Newton's step
    does not depend on where it started.
    """
    xp = array_namespace(scores)
    weights = xp.ones_like(scores[:, 0]) if weights is None else weights
    total = xp.sum(weights)
    if not total > 0 or math.isinf(slack):
        return log_softmax(scores)
    shares = weights / total
    if tolerance is None:
        tolerance = default_tolerance(8 if scores.dtype == xp.float64 else 4)
    stage = _first_stage(scores, shares)
    logs, potentials = log_softmax(scores / stage), 0 * scores[0, :]
    for _ in range(max_iter):
        shift, violation, close = newton_step(logs, shares, potentials, slack * stage)
        met = bool(violation <= tolerance)
        grow = GROWTH if stage > 1 and (close or met) else 1.0
        logs, potentials = log_softmax(grow * (logs + shift)), grow * (potentials + shift)
        if met and stage == 1:
            break
        stage /= grow
    else:
        _, residual, _ = newton_step(logs, shares, potentials, slack * stage)
        if not (residual <= tolerance and stage == 1):
            warn_unmet(float(residual), tolerance, max_iter)
    return logs


def newton_step(logs: Any, shares: Any, potentials: Any, slack: float) -> tuple[Any, Any, bool]:
    """The step of the potentials, (anchor,), the violation before it, and whether the step was short."""
    xp = array_namespace(logs)
    alpha = xp.exp(logs)
    shared = shares[:, None] * alpha
    mass = xp.sum(shared, axis=0)  # (anchor,)
    target = xp.exp(log_softmax(-slack * potentials))
    least = float(xp.finfo(logs.dtype).smallest_normal)
    goal = xp.clip(target, min=NONE * least)
    digits = 1 + xp.clip(-xp.log(mass.shape[0] * goal), min=0.0)
    violation = xp.max(xp.abs(xp.clip(mass, min=NONE * least) - goal) / (goal * digits))
    ratio = xp.log(xp.clip(target, min=least)) - xp.log(xp.clip(mass, min=least))
    far = bool(xp.max(xp.abs(ratio)) > FAR)
    ratio = ratio - xp.sum(mass * ratio)
    # Far away the logs of the marginals are the better guide, close by the marginals themselves.
    currents = mass * ratio if far else target - mass
    sinkhorn = ratio / (1 + slack)
    rest = solve_network(shared.T @ alpha, slack * mass, currents, sinkhorn, NONE * least) - sinkhorn
    reach = xp.max(rest) - xp.min(rest)
    if not reach < math.inf:
        return sinkhorn, violation, False
    damping = xp.log1p(reach) / reach if reach > 0 else 1.0
    return sinkhorn + damping * rest, violation, not far and bool(reach <= FAR)


def solve_network(conductances: Any, leaks: Any, currents: Any, fallback: Any, least: float) -> Any:
    """The potentials y of Σ_k W_jk (y_j − y_k) + leak_j y_j = current_j, (node,).

    Nodes are eliminated from the last to the first; the conductances of each spread over the others (star–mesh): no
    subtraction, so that all digits of y survive where every conductance is tiny. A node that is left without any takes
    its fallback; in a network without leaks that is one node at least.
    """
    xp = array_namespace(conductances)
    nodes = []
    for k in range(currents.shape[0] - 1, -1, -1):
        row, own, leak = conductances[k, :k], currents[k], leaks[k]
        pivot = leak + xp.sum(row)
        joined = bool(pivot > least)
        nodes.append((joined, row, own, pivot, fallback[k]))
        conductances, leaks, currents = conductances[:k, :k], leaks[:k], currents[:k]
        if joined:
            part = row / pivot
            conductances = conductances + part[:, None] * row[None, :]
            leaks, currents = leaks + part * leak, currents + part * own
    potentials = []
    for joined, row, own, pivot, other in reversed(nodes):
        known = xp.stack(potentials) if potentials else row
        potentials.append((own + xp.sum(row * known)) / pivot if joined else other)
    return xp.stack(potentials)


def _first_stage(scores: Any, shares: Any) -> float:
    """The power of `GROWTH` by which the scores are divided at first."""
    xp = array_namespace(scores)
    reach = xp.max(scores, axis=1) - xp.min(scores, axis=1)
    widest = xp.max(xp.where(shares > 0, reach, xp.zeros_like(reach)))
    stage = 1.0
    while widest > GAP * stage:
        stage *= GROWTH
    return stage
