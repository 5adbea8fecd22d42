"""The M-step of one multiset: a softmax of log-responsibilities over the multiset, then a weighted mean."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def m_step(points: Any, log_responsibilities: Any) -> Any:
    """μ_j = Σ_i α_ij x_i / Σ_i α_ij (Eq. 17), (anchor, feature).

    The quotient α_ij / Σ_i α_ij is softmax_i(log α_ij): an anchor that is responsible for next to nothing still
    has a mean, with no denominator that could vanish.
    """
    xp = array_namespace(points, log_responsibilities)
    shifted = xp.exp(log_responsibilities - xp.max(log_responsibilities, axis=0, keepdims=True))
    attention = shifted / xp.sum(shifted, axis=0, keepdims=True)  # (point, anchor), columns sum to one
    return attention.T @ points
