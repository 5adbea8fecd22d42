"""A pass over some rows: every stage has the rows that are asked for, and those that the next one reads.

Which rows these are is found backwards: layer T has the rows that are asked for, layer t the members of the multisets
of layer t + 1 too. A walk of K steps reads the rows within K steps.

The results have the bits of a pass over all rows. A product of matrices may give a row other bits at another place of
its block, or in a block of another height, but the other rows of the block do not matter. So rows from many blocks are
gathered into few, each at the place it has among all rows. Blocks whose borders depend on their members are computed
whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph._typing import Array, Rows, Sets
from fishergraph._validation import check_host_memory
from fishergraph.em.means import SCORED_ROWS, Scored, held_statistics, score_points
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.kernel_map import KernelMap
from fishergraph.layer import Layer, Run
from fishergraph.ops.engine import Responsibilities
from fishergraph.part.blocks import NONE, gathered, padded, whole_blocks
from fishergraph.part.sets import index_like, members_of, part_sets, rows_within
from fishergraph.passes import INPUT_ROWS, ONE_STEP, Pass, side_by_side
from fishergraph.stack import Stack
from fishergraph.structural import TELLING_APART
from fishergraph.walk import member_weights, walked

# take(positions, change): `change` brings the values of a whole block to those of these rows
Take = Callable[[np.ndarray, Array, Callable[[Array], Any]], None]


class PartPass(Pass):
    """A pass of a fitted stack over some rows.

    Parameters
    ----------
    stack, X, sets, run, structural : options
        See `Pass`. The columns of the structure are those of all rows.
    rows : array of int
        The rows that are wanted, ascending and each once.
    """

    def __init__(self, stack: Stack, X: Rows, sets: Sets, run: Run, *, structural: Any, rows: np.ndarray):
        super().__init__(stack, X, sets, run, structural=structural)
        self.rows = rows
        self._needed = self._plan()
        self._walked: Any = None

    def output(self, widths: Sequence[int]) -> Any:
        """√weight · ψ of the kept stages side by side (Eq. 2), of the wanted rows."""
        stack, workspace, used = self.stack, self.run.workspace, 0
        self._check_memory(widths)
        columns = sum(stack.kept(widths))
        output = workspace.empty_output((len(self.rows), columns), self.X.dtype)
        points: Any = None
        for t, (name, weight) in enumerate(zip(stack.names, stack.block_weights, strict=True)):
            part = None
            if weight:
                part, used = output[:, used : used + widths[t]], used + widths[t]
            if t <= stack.n_layers:
                points = self._layer_rows(t, points, part, math.sqrt(weight))
            elif weight:
                self._column_rows(name, part, math.sqrt(weight))
        return workspace.result(output)

    def _plan(self) -> list[np.ndarray]:
        """The rows of the stages ψ_0 … ψ_T that are computed, found backwards."""
        stack, none = self.stack, self.rows[:0]
        needed: list[np.ndarray] = [none] * (stack.n_layers + 1)
        for t in range(stack.n_layers, -1, -1):
            asked = self.rows if stack.block_weights[t] else none
            if t < stack.n_layers and len(needed[t + 1]):
                # Without a member the first row tells the type of the points.
                read = members_of(self.sets, needed[t + 1])
                asked = np.union1d(asked, read if len(read) else [0])
            if t > 0 and len(asked) and self._is_cut(t):
                asked = whole_blocks(self._blocks(t), asked)
            needed[t] = asked.astype(np.int64)
        return needed

    def _check_memory(self, widths: Sequence[int]) -> None:
        sizes = [len(rows) * width for rows, width in zip(self._needed, widths, strict=False)]
        numbers = max([*sizes, len(self.rows) * sum(self.stack.kept(widths))])
        what, advice = f"{len(self.rows)} rows need", "ask for fewer of them at once"
        check_host_memory(numbers * self.X.dtype.itemsize, what, "for one layer or the result", advice)

    # --- rows of a stage ---------------------------------------------------------------------------------

    def _compute(
        self,
        title: str,
        groups: list[np.ndarray],
        phi: Callable[[int], Any],
        kernel_map: KernelMap,
        take: Take,
    ) -> None:
        """Hand ψ of groups of rows to `take`; `phi(k)` is that of the k-th group."""

        def block(k: int) -> None:
            places = np.flatnonzero(groups[k] >= 0)
            values = kernel_map(phi(k))
            index = index_like(values, places)
            take(groups[k][places], values, lambda values: values[index])

        with self.run.progress(title, len(groups)) as bar:
            map_blocks(block, range(len(groups)), n_jobs=self.run.n_jobs, advance=bar.update)

    def _writer(
        self, rows: np.ndarray, part: Any, scale: float, points: Any = None, noise: float | None = None
    ) -> Take:
        """A function that writes values of some rows to the output, and as points for the next layer."""
        place = np.full(len(rows), NONE)
        place[np.searchsorted(rows, self.rows)] = np.arange(len(self.rows))

        def take(positions: np.ndarray, values: Array, chosen: Callable[[Array], Any]) -> None:
            if points is not None:
                points[index_like(points, positions)] = chosen(
                    values if noise is None else unit_rows(values, noise=noise)
                )
            if part is not None:
                found, wanted = chosen(values if scale == 1 else values * scale), place[positions]
                part[index_like(part, wanted[wanted >= 0])] = _on(part, found[index_like(found, wanted >= 0)])

        return take

    def _taken(self, numbers: np.ndarray) -> Any:
        """Row numbers that the rows of X take."""
        return index_like(self.sets.indptr, numbers)

    # --- the input map and the layers --------------------------------------------------------------------

    def _layer_rows(self, t: int, points: Any, part: Any, scale: float) -> Any:
        """Compute the rows of stage t ≤ T, and return the points that they leave for the next layer."""
        stack, rows, workspace = self.stack, self._needed[t], self.run.workspace
        if not len(rows):
            return None
        counts = t == 0 and stack.reads_counts
        after = None
        if t < stack.n_layers and len(self._needed[t + 1]):
            if counts:
                after = self._dense_rows(rows, lambda x: x.toarray() if hasattr(x, "toarray") else x, self.X.shape[1])
            else:
                shape = (len(rows), stack.widths[t])
                after = workspace.empty(shape, workspace.storage(self.X.dtype))
        if part is None and (after is None or counts):
            return after
        noise = (0.0 if t == 0 else NOISE) if stack.unit_points else None
        take = self._writer(rows, part, scale, None if counts else after, noise)
        if t == 0:
            groups = gathered(self._row_blocks(self.X.shape[0], self.X.shape[1], INPUT_ROWS), rows)
            assert stack.input_map is not None
            self._compute(
                "input map", groups, lambda k: self._rows(self._taken(padded(groups[k], rows))), stack.input_map, take
            )
        else:
            self._layer(t, points, rows, take)
        return after

    def _layer(self, t: int, points: Any, rows: np.ndarray, take: Take) -> None:
        """Compute the rows of layer t from the points of their members."""
        layer, run, members = self.stack.layers[t - 1], self.run, self._needed[t - 1]
        groups = self._groups(t, rows)
        ends = np.cumsum([len(group) for group in groups]).tolist()
        slices = [slice(end - len(group), end) for end, group in zip(ends, groups, strict=True)]
        order = np.concatenate(groups)
        own = part_sets(self.sets, np.where(order < 0, NONE, rows[order]), members)
        scored = self._scored(layer, points, members)
        blocks = layer.over_scored(points, scored, own, run)
        self._compute(
            f"layer {t}/{self.stack.n_layers}", groups, lambda k: blocks.phi(slices[k]), blocks.kernel_map, take
        )

    def _groups(self, t: int, rows: np.ndarray) -> list[np.ndarray]:
        """Groups of the rows of layer t: as they are among all rows if blocks are computed whole."""
        blocks = self._blocks(t)
        if not self._is_cut(t):
            return gathered(blocks, rows)
        starts = np.array([block.start for block in blocks])
        number = np.searchsorted(starts, rows, side="right") - 1
        return np.split(np.arange(len(rows)), np.flatnonzero(np.diff(number)) + 1)

    def _width(self, t: int) -> int:
        """The columns of the points of layer t."""
        stack = self.stack
        return self.X.shape[1] if t == 1 and stack.reads_counts else stack.widths[t - 1]

    def _gathers(self, t: int) -> bool:
        """Whether the members of a block are scored one by one in a pass over all rows."""
        family, sets = self.stack.layers[t - 1].family, self.sets
        return sets.lifted or not (family.fused or held_statistics(family, sets.n_points, self._width(t)))

    def _is_cut(self, t: int) -> bool:
        """Whether the borders of blocks depend on their members."""
        layer = self.stack.layers[t - 1]
        return self._gathers(t) or (layer.em.n_iter > 1 and not layer.family.fused)

    def _blocks(self, t: int) -> list[slice]:
        """The row blocks of layer t in a pass over all rows."""
        layer, device = self.stack.layers[t - 1], self.run.workspace.device
        return layer._row_blocks(self.sets, self._width(t), device, gathers=self._gathers(t))

    def _scored(self, layer: Layer, points: Any, members: np.ndarray) -> Scored | None:
        """Statistics and responsibilities of some points, as a pass over all rows has them."""
        family, theta, n_jobs = layer.family, layer.theta, self.run.n_jobs
        width = points.shape[1]
        if self.sets.lifted or not (family.fused or held_statistics(family, self.sets.n_points, width)):
            return None
        if family.fused and family.is_posterior and not is_torch_array(points):
            return score_points(family, points, theta, n_jobs=n_jobs)  # compiled: a row's bits are its own
        n_statistics = family.mean_statistics(theta).shape[1]
        size = block_rows(self.run.workspace.device, 4 * n_statistics, SCORED_ROWS)
        groups, all_rows = gathered(row_blocks(self.sets.n_points, size), members), np.arange(len(members))

        def score(k: int) -> Scored:
            places = np.flatnonzero(groups[k] >= 0)
            block = points[index_like(points, padded(groups[k], all_rows))]
            scored = score_points(family, block, theta, n_jobs=1)
            statistics, alpha = scored.statistics, scored.alpha
            chosen = index_like(statistics, places)
            kept = statistics[chosen] if not family.fused else statistics[:0]
            return Scored(kept, Responsibilities(alpha.log[chosen], alpha.plain[chosen]))

        found = map_blocks(score, range(len(groups)), n_jobs=n_jobs)
        back = np.empty(len(members), np.int64)
        back[np.concatenate([group[group >= 0] for group in groups])] = all_rows
        xp, order = array_namespace(points), index_like(points, back)

        def joined(parts: list[Any]) -> Any:
            return xp.concat(parts)[order]

        alpha = Responsibilities(joined([one.alpha.log for one in found]), joined([one.alpha.plain for one in found]))
        return Scored(points if family.fused else joined([one.statistics for one in found]), alpha)

    # --- columns -----------------------------------------------------------------------------------------

    def _column_rows(self, name: str, part: Any, scale: float) -> None:
        """Compute the wanted rows of a stage of columns."""
        stack, rows = self.stack, self.rows
        learned: Any = stack.columns[stack.names.index(name) - stack.n_layers - 1]
        if name in ("walk", "smooth"):
            if self._walked is None:
                axes: Any = stack.axes
                self._walked = self._averages(partial(self._dense_rows, change=axes, width=axes.n_outputs))
            sums, ratio, near = self._walked
        elif name in TELLING_APART and stack.walk is not None:
            sums, ratio, near = self._averages(lambda near: self.structural[name][self._taken(near)])
        else:
            sums, near = self.structural[name], np.arange(self.sets.n_sets)
            ratio: Any = None
        where = np.searchsorted(near, rows)
        sharpened = name == "smooth" or name in TELLING_APART

        def columns(filled: np.ndarray) -> Any:
            chosen = self._taken(padded(filled, where))
            if sharpened:
                return sums[chosen]
            return learned.phi(sums[chosen] * ratio[chosen] if name == "walk" else sums[chosen])

        width = sums.shape[1] if sharpened else len(learned.scale)
        groups = gathered(self._row_blocks(self.sets.n_sets, width), rows)
        kernel_map = learned if sharpened else learned.kernel_map
        self._compute(name, groups, lambda k: columns(groups[k]), kernel_map, self._writer(rows, part, scale))

    def _averages(self, make: Callable[[np.ndarray], Any]) -> tuple[Any, Any, np.ndarray]:
        """The sums and ratios of `walk_averages` for the rows near the wanted ones, and the numbers of these rows.

        Those of the wanted rows are exact; a walk that leaves the rows that are near ends outside of them.
        """
        walk, run = self.stack.walk, self.run
        assert walk is not None
        near, inner = rows_within(self.sets, self.rows, walk.n_steps)
        points = make(near)
        sets: Any = part_sets(self.sets, np.where(inner, near, NONE), near)
        # A walk has the steps of one that sees all rows, and tiles of the same columns.
        weights = member_weights(points, self.sets)[self._taken(near)]
        engine = run.engine(ONE_STEP)

        def walk_on(start: Any, advance: Callable[[int], Any]) -> Any:
            return walked(start, sets, walk, engine, run.n_jobs, advance)

        tiles = walk.tiles(self.sets.n_sets, points.shape[1])
        with run.progress("walking", (1 + len(tiles)) * walk.n_steps) as bar:
            mass = walk_on(weights, bar.update)
            for columns in tiles:
                points[:, columns] = walk_on(points[:, columns] * weights, bar.update) / weights
        return points, weights / mass, near

    def _dense_rows(self, rows: np.ndarray, change: Callable[[Any], Any], width: int) -> Any:
        """Rows of X through a map: dense points."""
        points = self.run.workspace.empty((len(rows), width), self.X.dtype)
        groups = gathered(self._row_blocks(self.X.shape[0], self.X.shape[1], INPUT_ROWS), rows)

        def fill(k: int) -> None:
            places = np.flatnonzero(groups[k] >= 0)
            values = change(self.X[self._taken(padded(groups[k], rows))])
            points[index_like(points, groups[k][places])] = values[index_like(values, places)]

        map_blocks(fill, range(len(groups)), n_jobs=self.run.n_jobs)
        return points


def _on(like: Any, values: Any) -> Any:
    """Values where another array lives: the result of a device may be in host memory."""
    return values.to(like.device) if is_torch_array(values) else values


def transform_part(model: Stack, X: Rows, sets: Any, run: Run, structural: Any, rows: np.ndarray) -> Any:
    """The embedding of some rows, in any order; a row may be there twice."""
    if getattr(sets, "pool", None) is not None:  # a node is the mean of tuples, of which there are few
        Z = sets.pooled(side_by_side(Pass(model, X, sets, run, structural=structural), model.widths))
        return Z[index_like(Z, rows)]
    wanted, back = np.unique(rows, return_inverse=True)
    Z = PartPass(model, X, sets, run, structural=structural, rows=wanted).output(model.widths)
    return Z if np.array_equal(wanted, rows) else Z[index_like(Z, back)]
