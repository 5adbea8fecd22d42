"""How sure the estimates of nodes are: effective sizes and standard errors.

    n_v = (Σ_u a_vu)² / Σ_u a_vu²,        s_v² = n_v/(n_v − 1) · (1/p) Σ_j Σ_u (a_vu α_uj / D_vj)² ‖x_u − μ_vj‖²

s_v estimates √E ‖φ_v − E φ_v‖² for members that are drawn again: the delta method for quotients of sums, for the
mixture of Eq. 16. `members` has it for every family.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from fishergraph._listing import Listing
from fishergraph._parallel import cut_blocks, map_blocks, row_blocks
from fishergraph.explain.attention import part_attention
from fishergraph.explain.binding import Binding
from fishergraph.explain.layers import LayerView
from fishergraph.explain.members import scalar_root
from fishergraph.explain.surprise import effective_sizes
from fishergraph.family.gaussian_mixture import CentreMixture

_ROWS, _ENTRIES = 512, 16_384  # of a block


def standard_errors(view: LayerView, binding: Binding, rows: np.ndarray) -> Listing:
    """A row per node: its members, their effective number, and the standard error of φ."""
    sets, layer = view.sets.take(rows), view.layer
    blocks = cut_blocks(sets.indptr, row_blocks(len(rows), _ROWS), _ENTRIES)
    plain = isinstance(layer.family, CentreMixture) and layer.family.tangent == "estimate" and layer.root is None
    in_blocks = plain and view.point_wise and not sets.lifted
    errors = _in_blocks(view, sets, binding) if in_blocks else _one_by_one(view, rows)
    with binding.progress("standard errors", len(blocks)) as bar:
        found = map_blocks(errors, blocks, n_jobs=binding.n_jobs, advance=bar.update)
    columns = {"node": binding.names[rows], "row": rows, "n_members": np.diff(sets.indptr)}
    listed = np.concatenate([*found, np.zeros(0)])
    return Listing({**columns, "effective_size": effective_sizes(sets), "standard_error": listed})


def _one_by_one(view: LayerView, rows: np.ndarray) -> Callable[[slice], np.ndarray]:
    """Row block → the standard errors of its rows."""

    def errors(block: slice) -> np.ndarray:
        return np.array([view.row(v).standard_error for v in rows[block].tolist()])

    return errors


def _in_blocks(view: LayerView, sets: Any, binding: Binding) -> Callable[[slice], np.ndarray]:
    """The same for mixtures of centres, from log α of the points."""
    layer, logs, kinds = view.layer, view.point_logs(binding.n_jobs), sets.kinds
    root = scalar_root(cast(Any, layer.family), logs.shape[1])

    def errors(block: slice) -> np.ndarray:
        parts = sets.block(block).apart()
        attention, mass = part_attention(parts, logs)
        points, own = parts.gather(view.points)
        spread = root**2 * _spreads(points.astype(np.float64), attention, own.indptr)
        sizes = effective_sizes(parts)
        some = (np.diff(parts.indptr) if parts.weights is None else _weighed(parts)) >= 2
        correction = np.divide(sizes, sizes - 1, out=np.full_like(sizes, math.nan), where=some)
        reached = (mass / (layer.em.prior + mass)) ** 2 if layer.em.prior > 0 else np.ones_like(mass)
        squares = correction * np.sum(reached * spread, axis=1)
        return np.sqrt(squares.reshape(-1, kinds).sum(axis=1))

    return errors


def _weighed(parts: Any) -> np.ndarray:
    """How many members of every set have a weight."""
    start, stop = int(parts.indptr[0]), int(parts.indptr[-1])
    rows = np.repeat(np.arange(parts.n_sets), np.diff(parts.indptr))
    return np.bincount(rows[parts.weights[start:stop] > 0], minlength=parts.n_sets)


def _spreads(points: np.ndarray, attention: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Σ_u c_uj² ‖x_u − Σ_u c_uj x_u‖² of every set and anchor, for coefficients c that sum to one."""
    sizes, n_sets = np.diff(indptr), len(indptr) - 1
    some, out = sizes > 0, np.zeros((n_sets, attention.shape[1]))
    starts = indptr[:-1][some]
    for anchor in range(attention.shape[1] if some.any() else 0):
        c = attention[:, anchor]
        means = np.add.reduceat(c[:, None] * points, starts, axis=0)
        gaps = points - np.repeat(means, sizes[some], axis=0)
        out[some, anchor] = np.add.reduceat(c**2 * np.einsum("ed,ed->e", gaps, gaps), starts)
    return out
