"""The E-step: who is responsible for which point. Responsibilities are carried as logs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fishergraph._validation import check_number, look_up
from fishergraph.family import relative_log_joint
from fishergraph.family.base import log_softmax


def posterior(points: Any, anchors: Any, variance: float = 1.0) -> Any:
    """log α_ij = log p(z_i = j | x_i): the log-joint normalised over the anchors (Section 4.4), (point, anchor)."""
    return log_softmax(relative_log_joint(points, anchors, variance))


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
