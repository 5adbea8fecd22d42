"""Columns as blocks of the output: principal axes of X, and maps of columns that were averaged over the graph.

    X̂ = unit rows of X diag(w),    X̂ ≈ U S Vᵀ,    F = X̂ V S^-κ = U S^(1 − κ)

w_i is the root of the inverse document frequency of a column whose entries are 0 or one other value, and 1 of any other
column. κ is the whitening. `Axes` maps X to F. Its averages become two blocks: `ScaledMap` undoes the whitening,
subtracts the mean and applies a kernel map; `Sharpening` turns them to their own principal axes and scales these by
their spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rng, Rows
from fishergraph.em.learn import mean_anchor
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.kernel_map import IdentityMap, KernelMap, fit_standard, random_signs
from fishergraph.structural.factors import first_signs

EXTRA_AXES = 64  # directions beyond those asked for, which make the last of them accurate
_POWER_STEPS = 3
_EQUAL = 1e-5  # the relative variance of the entries of a column up to which they are one value
_FLAT = 1e-12  # spread below this share of the largest is not scaled up


@dataclass(frozen=True)
class Axes:
    """The map x → coordinates on partly whitened principal axes.

    column_weights : w, (feature,).
    directions : the rows of (V S^-κ)ᵀ, (axis, feature), scaled so that F has rows of length one on average.
    spread : what the columns of F are multiplied by to be X̂ V again, (axis,).
    unit : whether rows are divided by their lengths.
    """

    column_weights: Array
    directions: Array
    spread: Array
    unit: bool

    __repr__ = short_repr

    @property
    def n_inputs(self) -> int:
        return self.directions.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.directions.shape[0]

    def __call__(self, x: Rows, /) -> Any:
        """F of the rows of a dense or CSR block, or of a tensor."""
        return weighted_rows(x, self.column_weights, unit=self.unit) @ self.directions.T


@dataclass(frozen=True)
class Sharpening:
    """The map of PageRank means to unit rows along their own principal axes.

    centre : the mean of the means, (1, axis).
    rotation : principal axes as columns, each times its spread to a power, (axis, output).
    unit : whether rows are divided by their lengths.
    """

    centre: Array
    rotation: Array
    unit: bool

    __repr__ = short_repr

    @property
    def n_inputs(self) -> int:
        return self.rotation.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.rotation.shape[1]

    def __call__(self, x: Rows, /) -> Any:
        """The sharpened rows; rounding errors of a constant stay zero."""
        rows = (cast(Any, x) - self.centre) @ self.rotation
        return unit_rows(rows, noise=8 * NOISE) if self.unit else rows  # every step of a walk rounds


@dataclass(frozen=True)
class ScaledMap:
    """The map of columns, each times a scale, about their centre and as unit vectors, through a kernel map.

    scale, centre : (column,) and (1, column).
    unit : whether rows are divided by their lengths before the kernel map.
    """

    scale: Array
    centre: Array
    unit: bool
    kernel_map: KernelMap

    __repr__ = short_repr

    @property
    def n_inputs(self) -> int:
        return self.centre.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.kernel_map.n_outputs

    def phi(self, columns: Array) -> Any:
        """The rows that enter the kernel map: φ of Eq. 18 with one component, if the columns are means."""
        rows = columns * self.scale - self.centre
        return unit_rows(rows, noise=8 * NOISE) if self.unit else rows  # every step of a walk rounds

    def __call__(self, x: Rows, /) -> Any:
        return self.kernel_map(self.phi(cast(Any, x)))


def weighted_rows(rows: Rows, column_weights: Array, *, unit: bool) -> Any:
    """The rows times a weight for each column, divided by their lengths if `unit`."""
    if sp.issparse(rows):
        data: Any = rows
        weighted: Any = sp.csr_array((data.data * column_weights[data.indices], data.indices, data.indptr), data.shape)
    else:
        weighted = cast(Any, rows) * column_weights
    return unit_rows(weighted) if unit else weighted


def frequency_weights(sample: Any) -> Any:
    """√log(n / n_i) of every column i with n_i entries of one value and zeros, and 1 of every other column."""
    n_rows = sample.shape[0]
    if sp.issparse(sample):
        xp: Any = np
        present = np.bincount(sample.indices[sample.data != 0], minlength=sample.shape[1]).astype(np.float64)
        totals = np.bincount(sample.indices, sample.data, minlength=sample.shape[1])
        squares = np.bincount(sample.indices, np.square(sample.data, dtype=np.float64), minlength=sample.shape[1])
    else:
        xp = array_namespace(sample)
        present = xp.sum(xp.astype(sample != 0, xp.float64), axis=0)
        totals, squares = (xp.sum(xp.astype(sample, xp.float64) ** power, axis=0) for power in (1, 2))
    varies = present * squares - totals**2  # present² times the variance of the entries
    binary = (present > 0) & (present < n_rows) & (varies <= _EQUAL * totals**2)
    ones = xp.ones_like(present)
    return xp.astype(xp.where(binary, xp.sqrt(xp.log(n_rows / xp.where(binary, present, ones))), ones), sample.dtype)


def fit_axes(sample: Any, n_axes: int, whitening: float, rng: Rng, *, unit: bool) -> Axes:
    """Learn the leading axes of a sample of rows of X; fewer if the sample has a lower rank.

    F has rows of length one on average, in the root mean square.
    """
    weights = frequency_weights(sample)
    values, directions = principal_axes(weighted_rows(sample, weights, unit=unit), n_axes, rng)
    xp = array_namespace(directions)
    powers = xp.sum(values ** (2 * (1 - whitening)))
    scale = xp.sqrt(sample.shape[0] / xp.where(powers > 0, powers, xp.ones_like(powers)))
    safe = xp.where(values > 0, values, xp.ones_like(values))
    factors = xp.astype(scale * safe**-whitening, directions.dtype)
    return Axes(weights, factors[:, None] * directions, 1 / factors, unit)


def principal_axes(rows: Any, n_axes: int, rng: Rng) -> tuple[Any, Any]:
    """The leading singular values (axis,), in float64, and right singular vectors (axis, feature) of rows.

    A randomised range of (XᵀX)³ is found on the smaller side of the matrix, and turned to the axes there.
    """
    n_rows, n_features = rows.shape
    small, other = (rows.T, rows) if n_features <= n_rows else (rows, rows.T)
    n_axes = min(n_axes, *rows.shape)
    basis = random_signs(small.shape[0], min(n_axes + EXTRA_AXES, small.shape[0]), rows, rng)
    xp = array_namespace(basis)
    for _ in range(_POWER_STEPS):
        basis = xp.linalg.qr(small @ (other @ basis))[0]
    image = other @ basis  # (other side, direction)
    wide = xp.astype(image, xp.float64)
    squares, vectors = xp.linalg.eigh(wide.T @ wide)
    # Rounding of the products leaves no axis below this.
    kept = squares > 16 * float(xp.finfo(basis.dtype).eps) * squares[-1]
    kept[-1] = True  # a matrix of zeros has one axis, of length zero
    squares, vectors = xp.flip(squares[kept])[:n_axes], xp.flip(vectors[:, kept], axis=1)[:, :n_axes]
    values = xp.sqrt(xp.where(squares > 0, squares, xp.zeros_like(squares)))
    if n_features <= n_rows:
        axes = basis @ xp.astype(vectors, basis.dtype)
    else:
        safe = xp.where(values > 0, values, xp.ones_like(values))
        axes = image @ xp.astype(vectors / safe, basis.dtype)
    return values, _contiguous((axes * first_signs(axes)).T)


def fit_scaled(sample: Any, scale: Any, *, unit: bool) -> ScaledMap:
    """Learn the centre of columns in this scale; if it is None they are standardised, and constant ones stay.

    Standardised columns have a mean square length of one together.
    """
    xp, width = array_namespace(sample), sample.shape[1]
    if scale is None:
        standard = fit_standard(sample)
        varies = xp.any(sample != sample[:1], axis=0)
        scale = xp.where(varies, 1 / (width**0.5 * standard.scale), xp.ones_like(standard.scale))
        centre = xp.where(varies, standard.centre * scale, xp.zeros_like(scale))[None, :]
    else:
        centre = mean_anchor(sample * scale)
    return ScaledMap(scale, centre, unit, IdentityMap(width))


def fit_sharpening(means: Any, most_outputs: int, power: float, *, unit: bool) -> Sharpening:
    """Learn the leading principal axes of a sample, each scaled by its spread to a power, relative to the largest."""
    xp, centre = array_namespace(means), mean_anchor(means)
    centred = xp.astype(means - centre, xp.float64)
    variances, vectors = xp.linalg.eigh(centred.T @ centred / max(means.shape[0], 1))
    variances, vectors = xp.flip(variances), xp.flip(vectors, axis=1)
    largest = float(variances[0])
    if largest <= 0:
        scales = xp.ones_like(variances)
    else:
        scales = xp.where(variances > _FLAT * largest, variances, xp.full_like(variances, _FLAT * largest)) / largest
    leading = (vectors * (first_signs(vectors) * scales ** (power / 2)))[:, :most_outputs]
    return Sharpening(centre, _contiguous(xp.asarray(leading, dtype=means.dtype, device=device_of(means))), unit)


def _contiguous(matrix: Any) -> Any:
    """The matrix in row order, as a model file has it: products then have the same bits."""
    xp = array_namespace(matrix)
    return xp.reshape(xp.reshape(matrix, (-1,)), matrix.shape)
