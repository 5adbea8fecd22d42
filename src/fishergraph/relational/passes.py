"""One pass of a relational stack: input maps of the types, layers of the relations, columns of all nodes together.

A layer of a relation is that of a plain stack, over the points of the source type and the multisets of the targets. So
one relation over one type of nodes has the bits of a plain embedding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._progress import costing
from fishergraph._typing import Array, Rows, Sets, Write
from fishergraph.costs import layer_costs
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.graphs.relations import Key
from fishergraph.kernel_map import KernelMap
from fishergraph.layer import Blocks, Layer, Run
from fishergraph.passes import Pass, Stage
from fishergraph.relational.stack import Mix, RelationalStack, part_width, principal_columns

# Rows that the principal axes of a part are learned from.
_SAMPLE = 2**14


@dataclass(frozen=True)
class RelationalData:
    """What a pass reads.

    X : the features of every type.
    sets : of every relation, the multiset of each target over the points of the source type.
    whole_X, whole_sets : the nodes of all types in one list, and their multisets over all edges.
    starts : the first row of every type in that list.
    structural : structural columns of the whole list, by kind.
    """

    X: Mapping[str, Rows]
    sets: Mapping[Key, Sets]
    whole_X: Rows
    whole_sets: Sets
    starts: Mapping[str, int]
    structural: Mapping[str, Array]

    @property
    def dtype(self) -> Any:
        return self.whole_X.dtype

    def n_rows(self, node_type: str) -> int:
        """The number of nodes of a type."""
        return self.X[node_type].shape[0]


class _Output:
    """The output of a type: √weight · ψ of its blocks side by side, written while each block is in cache."""

    def __init__(self, n_rows: int, width: int, dtype: Any):
        self.array, self.used = np.empty((n_rows, width), dtype), 0

    def take(self, width: int, weight: float) -> Write | None:
        """What writes the next block; None if its weight is zero."""
        if weight == 0:
            return None
        columns, scale = self.array[:, self.used : self.used + width], math.sqrt(weight)
        self.used += width

        def write(rows: slice, block: Array) -> None:
            columns[rows] = block if scale == 1 else block * scale

        return write

    def result(self) -> np.ndarray:
        return self.array if self.used == self.array.shape[1] else self.array[:, : self.used].copy()


class RelationalPass:
    """One pass of a relational stack; it learns what the stack has not learned.

    Parameters
    ----------
    stack : RelationalStack
        The settings, and if there are no seeds also what was learned.
    data : RelationalData
        Features, multisets and structural columns.
    run : Run
        Threads and progress.
    seeds : sequence of SeedSequence, optional
        One for the input maps, one for each layer, one for each stage of columns. All types and relations of a stage
        begin with the same stream, so that the order and the names of relations change nothing.
    want_output : bool, default=True
        Whether the values of the last stages are wanted.
    """

    def __init__(
        self,
        stack: RelationalStack,
        data: RelationalData,
        run: Run,
        *,
        seeds: Sequence[Any] = (),
        want_output: bool = True,
    ):
        self.stack, self.data, self.run, self.seeds, self.want_output = stack, data, run, seeds, want_output
        self.layout = stack.layout
        self._weights = stack.weights
        self._memory: Array | None = None  # φ of the layer before, whose memory the next one uses
        self.outputs: dict[str, _Output] = {}

    def embed(self) -> dict[str, np.ndarray]:
        """Run all stages; returns the embedding of every type, if it is wanted."""
        if self.want_output:
            widths = self.output_widths()
            self.outputs = {
                name: _Output(self.data.n_rows(name), widths[name], self.data.dtype) for name in self.layout.names
            }
        points = self._input_stages()
        if self.seeds:
            none: tuple[tuple[Any, ...], ...] = ((),) * len(self.layout.types)
            self.stack = replace(self.stack, relation_layers=((),) * len(self.layout.relations), mixes=none)
        for t in range(1, self.stack.n_layers + 1):
            points = self._layer_stages(t, points)
        self._column_stages()
        return {name: output.result() for name, output in self.outputs.items()}

    def output_widths(self) -> dict[str, int]:
        """The columns of the output of every type; the most there can be, if they are not learned yet."""
        if not self.seeds:
            return {name: sum(width for _, width in self.stack.blocks_of(name)) for name in self.layout.names}
        stack, data, totals, points = self.stack, self.data, {}, {}
        for name in self.layout.names:
            n_rows, n_features = data.X[name].shape
            points[name] = stack.input_kernel.width(min(stack.layer.dim, max(n_rows, 1)), n_features)
            totals[name] = points[name] * (self._weights["psi0"] != 0)
        for t in range(1, stack.n_layers + 1):
            layer, widths = stack.layer_at(t), {}
            for key in self.layout.relations:
                sets = data.sets[key]
                dim, members = min(layer.dim, max(sets.n_sets, 1)), max(sets.n_entries, sets.n_points, 1)
                phi = layer.phi_width(min(layer.n_anchors, members), sets.slots * points[key[0]])
                widths[key] = layer.kernel.width(dim, phi)
                totals[key[2]] += widths[key] * (self._weights[self._name(t, key)] != 0)
            points = {name: self._points_width(name, widths, points[name]) for name in self.layout.names}
        columns, asked = stack.of_columns(), 0
        for name, width in zip(
            columns.names, columns.asked_widths(data.whole_X.shape[1], data.whole_sets), strict=True
        ):
            asked += width * (name != "psi0" and self._weights[name] != 0)
        return {name: total + asked for name, total in totals.items()}

    def costs(self) -> dict[str, float]:
        """About how many multiplications the layers take, by title."""
        costs: dict[str, float] = {}
        for t in range(1, self.stack.n_layers + 1):
            for key in self.layout.relations:
                options: dict[str, Any] = {"fitting": bool(self.seeds)}
                title = self._title(t, key)
                costs |= layer_costs(
                    self.stack.layer_at(t), self.data.sets[key], self.stack.layer.dim, title, **options
                )
        return costs

    def _points_width(self, name: str, widths: Mapping[Key, int], before: int) -> int:
        """The columns of the points of a type, for parts of these widths."""
        parts = [widths[key] for key in self.layout.into(name)]
        parts += [before] if self.layout.keeps_points(name) else []
        if len(parts) == 1:
            return parts[0]
        return sum(part_width(self.stack.layer.dim, len(parts), width) for width in parts)

    def _name(self, t: int, key: Key) -> str:
        return f"psi{t}:{self.layout.labels[key]}"

    def _title(self, t: int, key: Key) -> str:
        return f"layer {t}/{self.stack.n_layers} {self.layout.labels[key]}"

    def _stream(self, number: int) -> Any:
        return self.run.workspace.stream(self.seeds[number])

    def _write(self, name: str, block: str, width: int) -> Write | None:
        """What writes a block of a type to the output, if it is wanted."""
        return self.outputs[name].take(width, self._weights[block]) if self.want_output else None

    # --- ψ_0 ---------------------------------------------------------------------------------------------

    def _input_stages(self) -> dict[str, Array | None]:
        """Run the input map of every type; returns their points."""
        stack, points, learned = self.stack, {}, []
        for number, name in enumerate(self.layout.names):
            fitted: KernelMap | None = stack.inputs[number] if stack.inputs else None
            streams = [self._stream(0)] if self.seeds else None
            single = Pass(stack.of_type(fitted), self.data.X[name], self.data.whole_sets, self.run, streams=streams)
            stage = single.stage("psi0")
            stage.run(self.run, self._write(name, "psi0", stage.blocks.kernel_map.n_outputs))
            points[name] = stage.points
            assert single.stack.input_map is not None
            learned.append(single.stack.input_map)
        self.stack = replace(stack, inputs=tuple(learned))
        return points

    # --- layers ------------------------------------------------------------------------------------------

    def _layer_stages(self, t: int, points: Mapping[str, Any]) -> dict[str, Any]:
        """Run layer t of every relation; returns the points of every type after it."""
        last, learned, mixes, after = t == self.stack.n_layers, {}, [], {}
        for name in self.layout.names:
            mixed = not last and self.layout.n_parts(name) > 1
            parts: dict[Key, Any] = {}
            for key in self.layout.relations:
                if key[2] != name:
                    continue
                learned[key], blocks = self._layer(t, key, points[key[0]])
                stage = self._stage(t, key, blocks, last=last, mixed=mixed)
                stage.run(self.run, self._write(name, stage.name, blocks.kernel_map.n_outputs))
                parts[key] = stage.points
            mix: Mix | None = None
            if mixed:
                arrays = [parts[key] for key in self.layout.into(name)]
                arrays += [points[name]] if self.layout.keeps_points(name) else []
                mix = self._mix(t, name, arrays)
                after[name] = self._mixed(arrays, mix)
            else:
                after[name] = next(iter(parts.values()), points[name])
            mixes.append(mix)
        if self.seeds:
            before = zip(self.stack.relation_layers, self.layout.relations, strict=True)
            layers = tuple((*one, learned[key]) for one, key in before)
            made = tuple((*one, mix) for one, mix in zip(self.stack.mixes, mixes, strict=True))
            self.stack = replace(self.stack, relation_layers=layers, mixes=self.stack.mixes if last else made)
        return after

    def _layer(self, t: int, key: Key, points: Any) -> tuple[Layer, Blocks]:
        """Layer t of a relation, learned if there are seeds, with φ and ψ of its targets."""
        stack, sets, run, title = self.stack, self.data.sets[key], self.run, self._title(t, key)
        if not self.seeds:
            layer = stack.relation_layers[self.layout.relations.index(key)][t - 1]
            return layer, layer.over(points, sets, run)
        runs = t < stack.n_layers or self.want_output
        with costing(run.progress, f"learning {title}", run.costs.get(f"learning {title}", 1.0)):
            layer, blocks = stack.layer_at(t).fit(points, sets, run, self._stream(t), runs=runs, memory=self._memory)
        self._memory = blocks.all_phi
        return layer, blocks

    def _stage(self, t: int, key: Key, blocks: Blocks, *, last: bool, mixed: bool) -> Stage:
        """The stage of a relation, with memory for its values, which are points unless they are mixed first."""
        workspace, values = self.run.workspace, None
        if not last:
            shape = (self.data.sets[key].n_sets, blocks.kernel_map.n_outputs)
            values = workspace.empty(shape, workspace.storage(self.data.dtype))
        noise = NOISE if self.stack.unit_points and not mixed else None
        return Stage(self._name(t, key), self._title(t, key), blocks, values, noise)

    def _mix(self, t: int, name: str, arrays: Sequence[Any]) -> Mix:
        """How the points of a type are made of their parts."""
        if not self.seeds:
            mix = self.stack.mixes[self.layout.names.index(name)][t - 1]
            assert mix is not None
            return mix
        rows = np.sort(self._stream(t).permutation(len(arrays[0]))[:_SAMPLE])
        widths = [part_width(self.stack.layer.dim, len(arrays), array.shape[1]) for array in arrays]
        return Mix(tuple(principal_columns(array[rows], width) for array, width in zip(arrays, widths, strict=True)))

    def _mixed(self, arrays: Sequence[Any], mix: Mix) -> Any:
        """The points of a type: its parts on their axes, side by side."""
        points = self.run.workspace.empty(
            (len(arrays[0]), sum(axes.shape[1] for axes in mix.axes)), self.run.workspace.storage(self.data.dtype)
        )

        def fill(rows: slice) -> None:
            block = np.concatenate([array[rows] @ axes for array, axes in zip(arrays, mix.axes, strict=True)], axis=1)
            points[rows] = unit_rows(block, noise=NOISE) if self.stack.unit_points else block

        map_blocks(fill, row_blocks(len(points)), n_jobs=self.run.n_jobs)
        return points

    # --- columns -----------------------------------------------------------------------------------------

    def _column_stages(self) -> None:
        """Run the stages of columns, over the nodes of all types together."""
        settings, data, n_layers = self.stack.of_columns(), self.data, self.stack.n_layers
        streams = None
        if self.seeds:
            streams = [self._stream(0), *map(self._stream, range(n_layers + 1, len(self.seeds)))]
        options: dict[str, Any] = {"structural": data.structural, "streams": streams, "want_last": self.want_output}
        whole = Pass(settings, data.whole_X, data.whole_sets, self.run, **options)
        for name in settings.names[1:]:
            stage = whole.stage(name)
            width = stage.blocks.kernel_map.n_outputs
            writers = {one: self._write(one, name, width) for one in self.layout.names}
            if self._weights[name] != 0 and self.want_output:
                stage.run(self.run, partial(self._scatter, writers))
        self.stack = replace(self.stack, axes=whole.stack.axes, columns=whole.stack.columns)

    def _scatter(self, writers: Mapping[str, Write | None], rows: slice, block: Array) -> None:
        """Hand the rows of a block to the outputs of their types."""
        for name, write in writers.items():
            start = self.data.starts[name]
            first, last = max(rows.start, start), min(rows.stop, start + self.data.n_rows(name))
            if write is not None and first < last:
                write(slice(first - start, last - start), block[first - rows.start : last - rows.start])
