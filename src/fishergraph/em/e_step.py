"""The E-step: who is responsible for which point. Responsibilities are carried as logs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from fishergraph._validation import check_number, look_up
from fishergraph.family import relative_log_joint


def log_softmax(scores: Any) -> Any:
    """log softmax over the last axis, shifted by its maximum."""
    xp = array_namespace(scores)
    shifted = scores - xp.max(scores, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


def posterior(points: Any, anchors: Any, variance: float = 1.0) -> Any:
    """log α_ij = log p(z_i = j | x_i): the log-joint normalised over the anchors (Section 4.4), (point, anchor)."""
    return log_softmax(relative_log_joint(points, anchors, variance))


def entropy(log_responsibilities: Any) -> Any:
    """H(α_i) = −Σ_j α_ij log α_ij of each point, in nats, (point,)."""
    xp = array_namespace(log_responsibilities)
    alpha = xp.exp(log_responsibilities)
    # α log α → 0 as α → 0: where α has underflowed its log is finite, so the product is an exact zero.
    return -xp.sum(alpha * log_responsibilities, axis=-1)


def published_code(points: Any, anchors: Any, variance: float = 1.0) -> Any:
    """softmax_j(⟨x_i/‖x_i‖, w_j⟩ / d), (point, anchor), in the place where the posterior puts log α_ij.

    This is the rule of the authors' code: the M-step's softmax over the multiset then runs over probabilities
    instead of their logs, which leaves the attention nearly flat (docs/deviations.md). It has no variance.
    """
    xp = array_namespace(points, anchors)
    squares = xp.sum(points * points, axis=1, keepdims=True)
    unit = points / xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))
    return xp.exp(log_softmax(unit @ anchors.T / points.shape[1]))


# 1/τ of the penalty on the anchors' masses in a set: none at all, infinite, or a number.
E_STEPS: dict[str, Callable[[float], float]] = {
    "posterior": lambda penalty: math.inf,
    "balanced": lambda penalty: 0.0,
    "unbalanced": lambda penalty: 1 / penalty if penalty > 1e-15 else math.inf,
}


def e_step_slack(e_step: str, column_penalty: float) -> float:
    """1/τ of the named E-step: ∞ is the posterior, 0 is balanced."""
    slack = look_up(E_STEPS, e_step, "e_step")
    return slack(check_number(column_penalty, "column_penalty"))
