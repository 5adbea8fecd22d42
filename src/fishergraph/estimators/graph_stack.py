"""The stages of graphs: node layers ψ_0 … ψ_T over the union, and after each of them a readout over the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fishergraph.em.unit import noise_of, unit_rows
from fishergraph.estimators.costs import input_learning, layer_learning, size_of
from fishergraph.estimators.progress import costing
from fishergraph.estimators.readout import fit_readout, run_readout
from fishergraph.estimators.stack import check_same, check_same_layer, fit_input_map, input_points, map_inputs
from fishergraph.estimators.stack_spec import Stack, StackSpec
from fishergraph.family.base import unit_normalize
from fishergraph.layer import Known, Layer, fit_layer, phi_blocks, run_layer


@dataclass(frozen=True)
class GraphSpec:
    """What is asked of the stages: the stack over the nodes, the readouts' spec, and whether their blocks are unit."""

    nodes: StackSpec
    readout: StackSpec
    unit_blocks: bool

    def at(self, place: Any) -> GraphSpec:
        """The same work somewhere else."""
        return GraphSpec(self.nodes.at(place), self.readout.at(place), self.unit_blocks)

    @property
    def weights(self) -> tuple[float, ...]:
        """One weight per stage."""
        return self.nodes.block_weights


def fit_stages(
    spec: GraphSpec, X: Any, sets: Any, members: Any, seed: np.random.SeedSequence, *, want_output: bool
) -> tuple[Stack, tuple[Layer | None, ...], Any]:
    """(node stack, readouts, output (graph, column) or None): each stage is learned from the one before, in one pass.

    `sets` are the multisets of the nodes, `members` those of the graphs. A stage of weight zero has no readout.
    """
    place, n_stages = spec.nodes.place, spec.nodes.n_layers + 1
    streams = [place.stream(child) for child in seed.spawn(2 * n_stages)]
    readouts: list[Layer | None] = []
    layers: list[Layer] = []

    def next_layer(t: int, points: Any) -> tuple[Layer, Known]:
        asked, title = spec.nodes.layer_at(t), f"learning {spec.nodes.title(t)}"
        with costing(spec.nodes.progress, title, layer_learning(asked, size_of(sets), points.shape[1])):
            layer, known = fit_layer(asked, points, sets, last=False, rng=streams[2 * t], n_jobs=spec.nodes.n_jobs)
        layers.append(layer)
        return layer, known

    def read(t: int, points: Any) -> Any:
        layer, block = fit_readout(
            spec.readout,
            points,
            members,
            streams[2 * t + 1],
            dtype=X.dtype,
            title=f"graphs, stage {t}",
            want_output=want_output,
        )
        readouts.append(layer.moved(place.fetch))
        return block

    with costing(spec.nodes.progress, "learning input map", input_learning(spec.nodes, X)):
        input_map, _ = fit_input_map(spec.nodes, X, streams[0])
    output = _run(spec, input_map, X, sets, next_layer, _skipping(spec, read, readouts))
    return Stack(input_map, tuple(layers)).moved(place.fetch), tuple(readouts), output if want_output else None


def run_stages(spec: GraphSpec, stack: Stack, readouts: tuple, X: Any, sets: Any, members: Any) -> Any:
    """The output of fitted stages, (graph, column)."""
    check_stages(spec, stack, readouts, X.shape[1])

    def put(array: Any) -> Any:
        return spec.nodes.place.put(array, X.dtype)

    def read(t: int, points: Any) -> Any:
        return run_readout(
            spec.readout, readouts[t].moved(put), points, members, dtype=X.dtype, title=f"graphs, stage {t}"
        )

    stack = stack.moved(put)
    return _run(spec, stack.input_map, X, sets, lambda t, _: (stack.layers[t - 1], Known()), _skipping(spec, read))


def check_stages(spec: GraphSpec, stack: Stack, readouts: tuple, width: int) -> None:
    """Raise where stages were fitted with other parameters than these, as far as they shape them."""
    check_same(spec.nodes, stack)
    if width != map_inputs(stack.input_map):
        raise ValueError(
            f"multiset must be that of the fit, for rows of {map_inputs(stack.input_map)} columns, got rows of "
            f"{width}; set it back, or fit again."
        )
    kept = [t for t, readout in enumerate(readouts) if readout is not None]
    if len(readouts) != len(spec.weights):
        raise ValueError(f"there must be {len(spec.weights)} readouts, one per stage, got {len(readouts)}; fit again.")
    asked = [t for t, weight in enumerate(spec.weights) if weight > 0]
    if kept != asked:
        raise ValueError(
            f"block_weights must keep the stages of the fit, {kept}, got {asked}; set it back, or fit again."
        )
    for t in kept:
        check_same_layer(spec.readout.layer, readouts[t], ("graph_family", "graph_family", "readout"))


def _skipping(spec: GraphSpec, read: Callable[[int, Any], Any], readouts: list | None = None) -> Callable:
    """`read` for the stages that count."""

    def read_if_kept(t: int, points: Any) -> Any:
        if spec.weights[t] > 0:
            return read(t, points)
        if readouts is not None:
            readouts.append(None)
        return None

    return read_if_kept


def _run(spec: GraphSpec, input_map: Any, X: Any, sets: Any, next_layer: Callable, read: Callable) -> Any:
    """The blocks √weight · readout of ψ_0 … ψ_T side by side; the points of two stages are there at a time."""
    # To the stack ψ_0 without a layer after it is no layer's input; here a readout follows.
    points = input_points(replace(spec.nodes, n_layers=spec.nodes.n_layers + 1), input_map, X)
    blocks = [read(0, points)]
    for t in range(1, spec.nodes.n_layers + 1):
        layer, known = next_layer(t, points)
        points = _next_points(spec.nodes, layer, known, points, sets, t, X.dtype)
        blocks.append(read(t, points))
    kept = [(block, weight) for block, weight in zip(blocks, spec.weights, strict=True) if block is not None]
    if not kept:
        return None
    unit = unit_normalize if spec.unit_blocks else lambda block: block
    return array_namespace(kept[0][0]).concat([unit(block) * math.sqrt(weight) for block, weight in kept], axis=1)


def _next_points(spec: StackSpec, layer: Layer, known: Known, points: Any, sets: Any, t: int, dtype: Any) -> Any:
    """ψ_t of all nodes, as the points of the next layer and of the readout."""
    place = spec.place
    result = place.empty((sets.n_sets, layer.kernel_map.n_outputs), place.storage(dtype))

    def write(rows: slice, block: Any) -> None:
        result[rows] = unit_rows(block, least=noise_of(block)) if spec.normalize else block

    asked = spec.layer_at(t)
    with spec.progress(f"layer {t}/{spec.n_layers}", len(phi_blocks(asked, sets, points.shape[1]))) as bar:
        run_layer(asked, layer, points, sets, write, known=known, n_jobs=spec.n_jobs, advance=bar.update)
    return result
