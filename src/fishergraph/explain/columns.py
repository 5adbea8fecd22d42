"""The blocks that are functions of columns, asked about pairs of rows: features, averaged features, structure.

Where a block is linear in the columns of X up to a length, r_v = L x̄_v − c with x̄_v an average of the rows of X, a
product is a sum over columns, and over the nodes that are averaged:

    ⟨r_v, r_w⟩ = Σ_i ½ (d_vi (Lᵀ r_w)_i + d_wi (Lᵀ r_v)_i) = Σ_u ½ (a_vu ⟨L x_u − c, r_w⟩ + a_wu ⟨L x_u − c, r_v⟩)

with d_v = x̄_v − c̃ and L c̃ = c: what is more there than usual. A product of two columns, or of two nodes, is shared
equally by the two, which is their Shapley value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._parallel import cached_attribute, row_blocks
from fishergraph.axes import Axes, ScaledMap, Sharpening
from fishergraph.em.unit import row_lengths, unit_rows
from fishergraph.explain.parts import Parts, split_kernel
from fishergraph.explain.walks import WalkRows
from fishergraph.kernel_map import IdentityMap, KernelMap

_ROWS = 4096  # of a dense matrix that are float64 at once


class InputView:
    """ψ_0: rows of X, divided by their lengths, through the input map."""

    def __init__(self, name: str, rows: Any, kernel_map: KernelMap, *, unit: bool):
        self.name, self.rows, self.kernel_map, self.unit = name, rows, kernel_map, unit

    def phi(self, v: int) -> np.ndarray:
        """The row as the input map sees it."""
        row = self.rows[[v]]
        dense = (row.toarray() if sp.issparse(row) else np.asarray(row)).astype(np.float64)
        return unit_rows(dense)[0] if self.unit else dense[0]

    def compare(self, v: int, w: int) -> Parts:
        """The parts of the similarity of two rows."""
        return compare_columns(self.phi(v), self.phi(w), self.kernel_map)


class LocalView:
    """Structural columns through a kernel map."""

    def __init__(self, name: str, columns: np.ndarray, scaled: ScaledMap, noise: float):
        self.name, self.columns, self.scaled, self.noise = name, columns, scaled, noise

    @property
    def kernel_map(self) -> KernelMap:
        """ψ of the block."""
        return self.scaled.kernel_map

    def phi(self, v: int) -> np.ndarray:
        """The row that enters the kernel map."""
        row = self.columns[v].astype(np.float64) * self.scaled.scale - self.scaled.centre[0]
        return direction(row, self.noise if self.scaled.unit else None)

    def compare(self, v: int, w: int) -> Parts:
        """The parts of the similarity of two rows."""
        return compare_columns(self.phi(v), self.phi(w), self.kernel_map)


def compare_columns(phi: np.ndarray, other: np.ndarray, kernel_map: KernelMap) -> Parts:
    """The parts of the similarity of two vectors of columns."""
    products = phi * other
    columns = {"column": np.arange(len(products)), "value": products}
    return Parts(split_kernel(phi, other, kernel_map), float(products.sum()), columns=columns)


class Averaged:
    """Rows that are averaged: x̄ = Σ_u a_u x_u, and ⟨x_u, q⟩ of all rows, in float64 a block of rows at a time.

    rows : (node, column), dense or CSR.
    weights : one for each column, or None.
    unit : whether weighted rows are divided by their lengths.
    """

    def __init__(self, rows: Any, weights: np.ndarray | None = None, *, unit: bool = False):
        self.rows = rows
        self.weights = np.ones(rows.shape[1]) if weights is None else weights
        self.scales = np.ones(rows.shape[0])
        if unit:
            lengths = np.concatenate([self._lengths(block) for block in self._blocks()] or [self.scales])
            self.scales = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)

    def _blocks(self) -> list[slice]:
        return row_blocks(self.rows.shape[0], _ROWS) if self.rows.shape[0] else []

    def _lengths(self, rows: slice) -> np.ndarray:
        block: Any = self.rows[rows]
        wide = block.astype(np.float64)
        weighted = wide @ sp.diags_array(self.weights) if sp.issparse(block) else wide * self.weights
        return row_lengths(sp.csr_array(weighted) if sp.issparse(block) else weighted)

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """Σ_u a_u x_u, (column,)."""
        scaled = weights * self.scales
        if sp.issparse(self.rows):
            return self.weights * (self.rows.T @ scaled)
        total = np.zeros(self.rows.shape[1])
        for rows in self._blocks():
            if scaled[rows].any():
                total += scaled[rows] @ self.rows[rows].astype(np.float64)
        return self.weights * total

    def products(self, query: np.ndarray) -> np.ndarray:
        """⟨x_u, q⟩ of every row, (node,)."""
        weighted = self.weights * query
        if sp.issparse(self.rows):
            return self.scales * (self.rows @ weighted)
        blocks = [self.rows[rows].astype(np.float64) @ weighted for rows in self._blocks()]
        return self.scales * np.concatenate([*blocks, np.zeros(0)])


@dataclass(frozen=True, eq=False)
class Linear:
    """x → r = Rᵀ (D x − c).

    axes : D, (axis, column), or None for the columns themselves.
    centre : c, (axis,).
    rotation : R, (axis, output), or None.
    """

    axes: np.ndarray | None
    centre: np.ndarray
    rotation: np.ndarray | None

    @cached_attribute
    def column_centre(self) -> np.ndarray:
        """c̃ with D c̃ = c, (column,)."""
        return self.centre if self.axes is None else np.linalg.lstsq(self.axes, self.centre, rcond=None)[0]

    def image(self, columns: np.ndarray) -> np.ndarray:
        """Rᵀ D of a vector of columns."""
        on_axes = columns if self.axes is None else self.axes @ columns
        return on_axes if self.rotation is None else self.rotation.T @ on_axes

    def back(self, outputs: np.ndarray) -> np.ndarray:
        """Dᵀ R of a vector of outputs."""
        on_axes = outputs if self.rotation is None else self.rotation @ outputs
        return on_axes if self.axes is None else self.axes.T @ on_axes


@dataclass(frozen=True, eq=False)
class AveragedView:
    """A block of averaged columns: "walk", "smooth", "factors".

    averaged : the rows.
    weigh : a row → the weights of all nodes in its average.
    linear : x̄ → r.
    noise : the largest entry of r that counts as zero; None if rows are not divided by their lengths.
    """

    name: str
    averaged: Averaged
    weigh: Callable[[int], np.ndarray]
    linear: Linear
    kernel_map: KernelMap
    noise: float | None

    def _row(self, v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(weights of the nodes, x̄_v − c̃, r_v)."""
        weights = self.weigh(v)
        gaps = self.averaged.mean(weights) - self.linear.column_centre
        return weights, gaps, self.linear.image(gaps)

    def phi(self, v: int) -> np.ndarray:
        """The row that enters the kernel map."""
        return direction(self._row(v)[2], self.noise)

    def compare(self, v: int, w: int) -> Parts:
        """The parts of the similarity of two rows."""
        weights, gaps, row = self._row(v)
        other_weights, other_gaps, other = self._row(w) if v != w else (weights, gaps, row)
        phi, other_phi = direction(row, self.noise), direction(other, self.noise)
        towards = _factor(row, phi) * self.linear.back(other_phi)
        back = _factor(other, other_phi) * self.linear.back(phi)
        nodes = {
            "node": np.arange(len(weights)),
            "value": 0.5 * (self._shares(weights, towards) + self._shares(other_weights, back)),
        }
        columns = {"column": np.arange(len(gaps)), "value": 0.5 * (gaps * towards + other_gaps * back)}
        kernel = split_kernel(phi, other_phi, self.kernel_map)
        named = columns if self.linear.axes is not None else {}
        return Parts(kernel, float(phi @ other_phi), columns=named, nodes=nodes)

    def _shares(self, weights: np.ndarray, query: np.ndarray) -> np.ndarray:
        """a_vu (⟨x_u, q⟩ − ⟨c̃, q⟩ / Σ_u a_vu) of every node."""
        return weights * (self.averaged.products(query) - (self.linear.column_centre @ query) / weights.sum())


def direction(row: np.ndarray, noise: float | None) -> np.ndarray:
    """The row divided by its length, zero if that is rounding noise; the row itself for noise=None."""
    if noise is None:
        return row
    largest = np.abs(row).max(initial=0.0)
    if largest <= noise:
        return np.zeros_like(row)
    scaled = row / largest
    return scaled / np.linalg.norm(scaled)


def _factor(row: np.ndarray, phi: np.ndarray) -> float:
    """‖φ‖ / ‖r‖."""
    length = np.linalg.norm(row)
    return float(np.linalg.norm(phi) / length) if length > 0 else 0.0


def walk_view(averaged: Averaged, walks: WalkRows, axes: Axes, scaled: ScaledMap, noise: float) -> AveragedView:
    """The block "walk": means on principal axes whose whitening is undone, about their centre."""
    linear = Linear(axes.directions * scaled.scale[:, None], scaled.centre[0], None)
    limit = noise if scaled.unit else None
    return AveragedView("walk", averaged, walks.means, linear, scaled.kernel_map, limit)


def sharpened_view(
    name: str,
    averaged: Averaged,
    weigh: Callable[[int], np.ndarray],
    axes: Axes | None,
    sharpening: Sharpening,
    noise: float,
) -> AveragedView:
    """The block "smooth", or one of structural columns: sums on their own principal axes."""
    directions, rotation = None if axes is None else np.asarray(axes.directions), np.asarray(sharpening.rotation)
    linear = Linear(directions, sharpening.centre[0], rotation)
    limit = noise if sharpening.unit else None
    return AveragedView(name, averaged, weigh, linear, IdentityMap(sharpening.n_outputs), limit)
