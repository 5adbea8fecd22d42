"""Functions that the array API lacks: Bessel functions of large order in logs, log-factorials, packed matrices.

NumPy arrays and torch tensors, with their gradients, pass through the same lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._typing import Array

# The order from which the expansion of Debye has ten digits; lower ones are reached by recurrence.
_LARGE_ORDER = 24.0
_NEWTON_STEPS = 6
# The factorial's series has all digits from here on.
_LARGE_COUNT = 16


def _series(order: float, kappa: Array) -> Any:
    """The corrections Σ_{k≥1} U_k(t) / ν^k of Debye's expansion (DLMF 10.41.10)."""
    xp = array_namespace(kappa)
    s = 1 / xp.sqrt(order**2 + kappa**2)
    t2 = (order * s) ** 2
    u1 = (3 - 5 * t2) / 24
    u2 = (81 - 462 * t2 + 385 * t2**2) / 1152
    u3 = (30375 - 369603 * t2 + 765765 * t2**2 - 425425 * t2**3) / 414720
    u4 = (4465125 - 94121676 * t2 + 349922430 * t2**2 - 446185740 * t2**3 + 185910725 * t2**4) / 39813120
    return s * (u1 + s * (u2 + s * (u3 + s * u4)))


def _debye(order: float, kappa: Array) -> tuple[Any, Any]:
    """log (I_ν(κ) / κ^ν) for a large ν, uniformly in κ ≥ 0 (Debye's expansion, DLMF 10.41.3), and I_{ν+1} / (κ I_ν).

    The ratio is not the difference of two such logs, which would lose the digits of a large κ.
    """
    xp = array_namespace(kappa)
    root, next_root = xp.sqrt(order**2 + kappa**2), xp.sqrt((order + 1) ** 2 + kappa**2)
    first, second = xp.log1p(_series(order, kappa)), xp.log1p(_series(order + 1, kappa))
    log = root - order * xp.log(order + root) - 0.5 * xp.log(root) - 0.5 * math.log(2 * math.pi) + first
    gap = (2 * order + 1) / (next_root + root)  # of the roots
    step = gap - order * xp.log1p((1 + gap) / (order + root)) - 0.25 * xp.log1p((2 * order + 1) / root**2)
    return log, xp.exp(step + second - first) / (order + 1 + next_root)


def bessel(order: float, kappa: Array) -> tuple[Any, Any]:
    """log (I_ν(κ) / κ^ν), and I_{ν+1} / (κ I_ν), which stays finite at κ = 0, for κ ≥ 0 and any ν ≥ −1/2."""
    return _descent(order, kappa, logs=True)[:2]


def _descent(order: float, kappa: Array, *, logs: bool) -> tuple[Any, Any, Any]:
    """(log g_ν, or None without `logs`; g_{ν+1} / g_ν; g_{ν+2} / g_{ν+1}) with g_ν = I_ν(κ) / κ^ν, from a large order.

    The recurrence is g_{ν−1} = 2ν g_ν + κ² g_{ν+1}: nothing is subtracted, nothing overflows.
    """
    xp = array_namespace(kappa)
    n_steps = max(0, math.ceil(_LARGE_ORDER - order)) + 1
    log, ratio = _debye(order + n_steps, kappa)
    square, above = kappa**2, ratio
    for k in range(n_steps):
        step = 2 * (order + n_steps - k) + square * ratio
        log = log + xp.log(step) if logs else None
        ratio, above = 1 / step, ratio
    return log, ratio, above


def mean_length(n_features: int, kappa: Array) -> tuple[Any, Any, Any]:
    """A(κ) = I_{d/2}(κ) / I_{d/2−1}(κ), the length of the mean of a von Mises–Fisher density; A(κ)/κ; and A'(κ)."""
    _, ratio, above = _descent(0.5 * n_features - 1, kappa, logs=False)
    return kappa * ratio, ratio, ratio * (1 - kappa**2 * (ratio - above))


def concentration(n_features: int, length: Array) -> Any:
    """κ with A(κ) = `length` in [0, 1): Newton's steps from the guess of Banerjee et al. (2005)."""
    xp = array_namespace(length)
    kappa = length * (n_features - length**2) / (1 - length**2)
    for _ in range(_NEWTON_STEPS):
        reached, ratio, slope = mean_length(n_features, kappa)
        # A is concave: far to the right Newton could step below zero, and half of κ is a safe step there.
        kappa = xp.maximum(kappa - (reached - length) / xp.maximum(slope, 1e-12 * ratio), 0.5 * kappa)
    return kappa


def log_factorial(counts: Array) -> Any:
    """log Γ(x + 1) of every entry, x ≥ 0: Stirling's series, after a few factors are taken out of small entries."""
    xp = array_namespace(counts)
    x, taken = counts + 1.0, xp.zeros_like(counts)
    for _ in range(_LARGE_COUNT):
        small = x < _LARGE_COUNT
        taken = taken + xp.where(small, xp.log(x), xp.zeros_like(x))
        x = xp.where(small, x + 1, x)
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return (x - 0.5) * xp.log(x) - x + 0.5 * math.log(2 * math.pi) + series - taken


def pack(matrices: Array) -> Any:
    """The lower triangle of symmetric matrices (…, d, d) → (…, d(d+1)/2), off the diagonal times √2: an isometry."""
    xp = array_namespace(matrices)
    d = matrices.shape[-1]
    rows, columns = _triangle(d)
    flat = xp.reshape(matrices, (*matrices.shape[:-2], d * d))
    picks = xp.asarray([i * d + j for i, j in zip(rows, columns, strict=True)], device=device_of(flat))
    return xp.take(flat, picks, axis=-1) * _scale(rows, columns, flat)


def pack_products(vectors: Array) -> Any:
    """xxᵀ of every vector, packed, (…, d(d+1)/2), without the matrices."""
    xp = array_namespace(vectors)
    rows, columns = _triangle(vectors.shape[-1])
    left, right = (xp.asarray(picks, device=device_of(vectors)) for picks in (rows, columns))
    packed = xp.take(vectors, left, axis=-1) * xp.take(vectors, right, axis=-1)
    return packed * _scale(rows, columns, vectors)


def unpack(packed: Array, d: int) -> Any:
    """The symmetric matrices (…, d, d) of their packed form."""
    xp = array_namespace(packed)
    rows, columns = _triangle(d)
    position = {(i, j): k for k, (i, j) in enumerate(zip(rows, columns, strict=True))}
    picks = [position[max(i, j), min(i, j)] for i in range(d) for j in range(d)]
    flat = xp.take(packed / _scale(rows, columns, packed), xp.asarray(picks, device=device_of(packed)), axis=-1)
    return xp.reshape(flat, (*packed.shape[:-1], d, d))


def _triangle(d: int) -> tuple[list[int], list[int]]:
    return [i for i in range(d) for _ in range(i + 1)], [j for i in range(d) for j in range(i + 1)]


def _scale(rows: list[int], columns: list[int], like: Array) -> Any:
    xp = array_namespace(like)
    values = [1.0 if i == j else math.sqrt(2) for i, j in zip(rows, columns, strict=True)]
    return xp.asarray(values, dtype=like.dtype, device=device_of(like))


def symmetric_power(matrices: Array, exponent: float, *, least: float = 0.0) -> Any:
    """M^exponent of symmetric positive semidefinite matrices; eigenvalues up to least · the largest count as zero."""
    xp = array_namespace(matrices)
    values, vectors = xp.linalg.eigh(matrices)
    kept = values > least * values[..., -1:]
    powers = xp.where(kept, xp.where(kept, values, xp.ones_like(values)) ** exponent, xp.zeros_like(values))
    return (vectors * powers[..., None, :]) @ xp.matrix_transpose(vectors)


def symmetric_floor(matrices: Array, least: float) -> Any:
    """The symmetric matrices with their eigenvalues raised to at least `least`, and to what rounding can tell from zero
    beside the largest: they have an inverse."""
    xp = array_namespace(matrices)
    values, vectors = xp.linalg.eigh(matrices)
    raised = xp.maximum(xp.clip(values, min=least), 4 * float(xp.finfo(values.dtype).eps) * values[..., -1:])
    return (vectors * raised[..., None, :]) @ xp.matrix_transpose(vectors)


class Spectral(NamedTuple):
    """Functions of symmetric matrices: M^exponent, and M with no eigenvalue below a number."""

    power: Callable[[Any, float], Any]
    floor: Callable[[Any, float], Any]
