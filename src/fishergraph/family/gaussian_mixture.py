"""The mixture of p Gaussians with equal weights and covariance σ² Id; its parameters are the means (Eq. 16).

The axes are named point, anchor, feature throughout. NumPy arrays and torch tensors pass through the same lines.
"""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace


def relative_log_joint(points: Any, anchors: Any, variance: float = 1.0) -> Any:
    """log p(x_i, z_i = j) up to a constant of the point: (⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2) / σ², (point, anchor).

    The constant is all that the responsibilities cancel. c, the mean anchor, keeps the products small where the
    data lie far from the origin.
    """
    xp = array_namespace(points, anchors)
    centre = xp.mean(anchors, axis=0, keepdims=True)  # (1, feature)
    shifted = anchors - centre
    products = (points - centre) @ shifted.T  # (point, anchor)
    return (products - 0.5 * xp.sum(shifted * shifted, axis=1)) / variance


def log_joint(points: Any, anchors: Any, variance: float = 1.0) -> Any:
    """log p(x_i, z_i = j) = log 1/p − ‖x_i − w_j‖² / 2σ² − (d/2) log 2πσ² (Eq. 16), (point, anchor)."""
    xp = array_namespace(points, anchors)
    n_anchors, n_features = anchors.shape
    from_centre = points - xp.mean(anchors, axis=0, keepdims=True)
    base = -xp.sum(from_centre * from_centre, axis=1, keepdims=True) / (2 * variance)
    constant = -math.log(n_anchors) - 0.5 * n_features * math.log(2 * math.pi * variance)
    return relative_log_joint(points, anchors, variance) + base + constant


def log_likelihood(points: Any, means: Any, variance: float = 1.0) -> Any:
    """log p_θ(x_i) = log Σ_j p(x_i, z_i = j) (Eq. 16), (point,)."""
    xp = array_namespace(points, means)
    joint = log_joint(points, means, variance)
    highest = xp.max(joint, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(joint - highest), axis=1)) + highest[:, 0]


def fisher_root(n_anchors: int) -> float:
    """I(θ_0)^{1/2} ≈ p^{-1/2} (a multiple of the identity, for well separated components), the scalar of Eq. 18.

    It is measured in units of σ: the factor 1/σ is the same for every set and is left out, so that stacked
    layers keep their scale whatever the variance.
    """
    return n_anchors**-0.5
