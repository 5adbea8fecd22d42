"""The exact Fisher matrix of a mixture, in the coordinates that the closed form whitens.

With W the closed form's root, I = Wᵀ J W where J = E[s sᵀ] and s is the whitened score of one point. J is the identity
where components are well separated, and φ of fisher="exact" is J^{1/2} times that of the closed form (J^{-1/2} for the
score). For the mixture of Eq. 16 the responsibilities depend on x only through the span of the anchors, so the integral
has p − 1 dimensions at most, whatever the number of features: by quadrature up to two, by Monte Carlo beyond. The other
families are sampled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread, row_blocks
from fishergraph._typing import ThetaT
from fishergraph.family.base import Family, map_arrays
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
from fishergraph.family.special import symmetric_power

# The root is a matrix over φ: beyond this width it would be larger than the data.
MOST_WIDTH = 4096
_SAMPLES_PER_COLUMN = 16
_LEAST_SAMPLES = 65_536
# Spacing and reach of the quadrature, in units of σ; the responsibilities of far components are steep.
_STEP, _REACH = 0.1, 10.0
# Nodes of the grid with less than this chance are left out: ten thousand of them, ten σ away, are below float64.
_NEGLIGIBLE = 1e-22
_BLOCK = 4096
# Eigenvalues of J up to this part of the largest are noise, or the direction in which weights cannot move.
_CUTOFF = 1e-9


@one_blas_thread()
def exact_root(family: Family[ThetaT], theta: ThetaT, rng: Generator) -> np.ndarray:
    """J^{1/2}, or J^{-1/2} for the score, (width, width), float64: what φ of the closed form is multiplied by."""
    exponent = -0.5 if family.tangent == "score" else 0.5
    return symmetric_power(fisher_ratio(family, theta, rng), exponent, least=_CUTOFF)


@one_blas_thread()
def fisher_ratio(family: Family[ThetaT], theta: ThetaT, rng: Generator, n_samples: int | None = None) -> np.ndarray:
    """J = E[s sᵀ] of the whitened scores s of single points at θ, (width, width), float64 (Eq. 7)."""
    theta = map_arrays(theta, lambda array: np.asarray(array, dtype=np.float64))
    if isinstance(theta, GaussianMixtureTheta):
        return _mixture_ratio(theta, rng, n_samples or _LEAST_SAMPLES)
    width = _point_scores(family, theta, family.sample(theta, 1, rng)).shape[1]
    check_width(width)
    n_samples = n_samples or max(_LEAST_SAMPLES, _SAMPLES_PER_COLUMN * width)
    total = np.zeros((width, width))
    for rows in row_blocks(n_samples, _BLOCK):
        scores = _point_scores(family, theta, family.sample(theta, rows.stop - rows.start, rng))
        total += scores.T @ scores
    return total / n_samples


def check_width(width: int) -> None:
    """Raise if φ is too wide for a matrix over it."""
    if width > MOST_WIDTH:
        raise InputError(
            f"fisher='exact' is a matrix over φ, at most {MOST_WIDTH} wide, got {width}; lower dim or n_anchors, "
            "or leave fisher='approximate'."
        )


def _point_scores(family: Family[ThetaT], theta: ThetaT, points: np.ndarray) -> np.ndarray:
    """The whitened score of every point as a set of its own, (point, width)."""
    statistics = family.statistics(points, theta)
    joint = family.scores(statistics, theta)
    alpha = np.exp(joint - joint.max(axis=1, keepdims=True))
    alpha /= alpha.sum(axis=1, keepdims=True)
    means = np.broadcast_to(statistics[:, None, :], (len(points), alpha.shape[1], statistics.shape[1]))
    return family.score(means, alpha, theta)


def _mixture_ratio(theta: GaussianMixtureTheta, rng: Generator, n_samples: int) -> np.ndarray:
    """J of Eq. 16: p E[α_j α_k (x − w_j)(x − w_k)ᵀ]/σ² in the span of the anchors, p E[α_j α_k] Id across it."""
    anchors = np.asarray(theta.anchors)
    p, d = anchors.shape
    check_width(p * d)
    centred = (anchors - anchors.mean(axis=0)) / math.sqrt(theta.variance)
    _, values, basis = np.linalg.svd(centred, full_matrices=False)
    basis = basis[values > 1e-12 * max(values[0], 1e-300)] if p > 1 else basis[:0]  # (span, feature)
    inside = centred @ basis.T  # (anchor, span)
    along, across = np.zeros((p, len(basis), p, len(basis))), np.zeros((p, p))
    for points, chances in _mixture_rule(inside, rng, n_samples):
        for rows in row_blocks(len(points), _BLOCK):
            gaps = points[rows, None, :] - inside  # (point, anchor, span)
            alpha = np.exp(-0.5 * (gaps**2).sum(axis=2) + 0.5 * (gaps**2).sum(axis=2).min(axis=1, keepdims=True))
            alpha /= alpha.sum(axis=1, keepdims=True)
            shared = alpha * chances[rows, None]
            across += shared.T @ alpha
            along += np.tensordot(shared[:, :, None] * gaps, alpha[:, :, None] * gaps, axes=(0, 0))
    full = np.einsum("rf,jrks,sg->jfkg", basis, along, basis, optimize=True)
    full += np.einsum("jk,fg->jfkg", across, np.eye(d) - basis.T @ basis)
    return full.reshape(p * d, p * d)  # p from the whitening, 1/p from the component


def _mixture_rule(means: np.ndarray, rng: Generator, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Points and their chances for p times expectations under the mixture of N(mean_j, Id).

    Up to two dimensions a trapezoid grid: one over all components where they lie close, else one per component. Beyond,
    pairs x and −x of a sample per component.
    """
    p, span = means.shape
    if span == 0:
        yield np.zeros((1, 0)), np.full(1, float(p))
    elif span > 2:
        for mean in means:
            half = rng.standard_normal((max(1, n // p // 2), span))
            yield mean + np.concatenate([half, -half]), np.full(2 * len(half), 0.5 / len(half))
    else:
        low, high = np.floor((means.min(axis=0) - _REACH) / _STEP), np.ceil((means.max(axis=0) + _REACH) / _STEP)
        together = np.prod(high - low) < p * (2 * _REACH / _STEP) ** span
        for group in [means] if together else means[:, None, :]:
            yield _grid_rule(group)


def _grid_rule(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The grid around some of the components, and the sum of their densities there times the area of a cell."""
    low, high = np.floor((means.min(axis=0) - _REACH) / _STEP), np.ceil((means.max(axis=0) + _REACH) / _STEP)
    axes = [_STEP * np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    densities = [
        _STEP * np.exp(-0.5 * (axis - means[:, k, None]) ** 2) / math.sqrt(2 * math.pi) for k, axis in enumerate(axes)
    ]  # (component, node) each
    chances = densities[0].sum(axis=0) if len(axes) == 1 else (densities[0].T @ densities[1]).ravel()
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    kept = chances > _NEGLIGIBLE
    return points[kept], chances[kept]
