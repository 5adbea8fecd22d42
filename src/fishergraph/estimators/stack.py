"""The stack ψ_0, ψ_1, …, ψ_T: fitted and run in one pass, block by block (Eq. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph.blocks import map_blocks, row_blocks
from fishergraph.em.anchors import sample_size
from fishergraph.em.kmeans import unit_rows
from fishergraph.kernel_map import KernelMap
from fishergraph.layer import Layer, LayerSpec, fit_layer, run_layer
from fishergraph.multiset import Multisets

# A block of rows that the input map sees at once: bag-of-words rows are never dense beyond it.
_INPUT_ROWS = 4096


@dataclass(frozen=True)
class Stack:
    """The fitted state: the input map ψ_0 and the layers."""

    input_map: KernelMap
    layers: tuple[Layer, ...]

    @property
    def widths(self) -> list[int]:
        """The number of columns of ψ_0, …, ψ_T."""
        return [self.input_map.n_outputs, *(layer.kernel_map.n_outputs for layer in self.layers)]


@dataclass(frozen=True)
class StackSpec:
    """What is asked of the stack: the layers' spec, their number, the block weights, and how work is run and shown."""

    layer: LayerSpec
    n_layers: int
    normalize: bool
    block_weights: tuple[float, ...]  # one per block; zero leaves the block out
    n_jobs: int | None
    progress: Callable[[str, int], Any]  # (title, steps) → a context manager whose value has update(n)


def fit_stack(
    spec: StackSpec, X: Any, sets: Multisets, seed: np.random.SeedSequence, *, want_output: bool
) -> tuple[Stack, np.ndarray | None]:
    """The stack fitted to the rows of X, and its output on them (None when it is not wanted)."""
    streams = [np.random.default_rng(child) for child in seed.spawn(spec.n_layers + 1)]
    rows = np.sort(streams[0].permutation(X.shape[0])[: _landmark_rows(spec, X.shape[0])])
    input_map = spec.layer.fit_map(
        _input_rows(spec, X, rows),
        spec.layer.dim,
        bandwidth=spec.layer.bandwidth,
        shrinkage=spec.layer.attention.shrinkage,
        rng=streams[0],
        n_jobs=spec.n_jobs,
    )
    return _run(spec, input_map, X, sets, _Fitting(spec, sets, streams[1:]), want_output)


def run_stack(spec: StackSpec, stack: Stack, X: Any, sets: Multisets) -> np.ndarray:
    """The output of a fitted stack, (row, sum of the kept blocks' widths)."""
    _, output = _run(spec, stack.input_map, X, sets, lambda t, points: (stack.layers[t - 1], None), True)
    assert output is not None
    return output


class _Fitting:
    """The source of layers while fitting: layer t is learned from the points that enter it."""

    def __init__(self, spec: StackSpec, sets: Multisets, streams: list[np.random.Generator]):
        self.spec, self.sets, self.streams = spec, sets, streams

    def __call__(self, t: int, points: np.ndarray):
        return fit_layer(
            self.spec.layer,
            points,
            self.sets,
            last=t == self.spec.n_layers,
            rng=self.streams[t - 1],
            n_jobs=self.spec.n_jobs,
        )


def _input_rows(spec: StackSpec, X: Any, rows: Any) -> Any:
    """Rows of X as the input map sees them."""
    return unit_rows(X[rows]) if spec.normalize else X[rows]


def _landmark_rows(spec: StackSpec, n_rows: int) -> int:
    return sample_size(spec.layer.dim, spec.layer.max_samples, n_rows)


def _run(
    spec: StackSpec, input_map: KernelMap, X: Any, sets: Multisets, next_layer: Callable, want_output: bool
) -> tuple[Stack, np.ndarray | None]:
    """One pass over ψ_0 … ψ_T. A layer is run once, right after it is known; the last one only if it is wanted."""
    blocks = _Output(spec, sets.n_sets, want_output)
    points = _run_input(spec, input_map, X, blocks)
    layers: list[Layer] = []
    for t in range(1, spec.n_layers + 1):
        layer, alpha = next_layer(t, points)
        layers.append(layer)
        if t < spec.n_layers or want_output:
            write, result = blocks.writer(t, layer.kernel_map.n_outputs, points.dtype)
            with spec.progress(f"layer {t}/{spec.n_layers}", len(row_blocks(sets.n_sets))) as bar:
                run = {"alpha": alpha, "n_jobs": spec.n_jobs, "advance": bar.update}
                run_layer(spec.layer, layer, points, sets, write, **run)
            points = result
    return Stack(input_map, tuple(layers)), blocks.joined()


def _run_input(spec: StackSpec, input_map: KernelMap, X: Any, blocks: _Output) -> np.ndarray:
    """ψ_0 of all rows."""
    write, points = blocks.writer(0, input_map.n_outputs, X.dtype)
    rows = row_blocks(X.shape[0], _INPUT_ROWS)

    def block(part: slice) -> None:
        write(part, input_map(_input_rows(spec, X, part)))

    with spec.progress("input map", len(rows)) as bar:
        map_blocks(block, rows, n_jobs=spec.n_jobs, advance=bar.update)
    return points


class _Output:
    """The concatenation of the kept blocks, √weight · ψ_t, written while each block of rows is in cache (Eq. 2).

    It is allocated at the width that was asked for; where the data gave fewer landmarks it is cut at the end.
    """

    def __init__(self, spec: StackSpec, n_rows: int, wanted: bool):
        self.spec, self.n_rows, self.wanted = spec, n_rows, wanted
        self.array: np.ndarray | None = None
        self.used = 0

    def writer(self, t: int, width: int, dtype: np.dtype) -> tuple[Callable[[slice, np.ndarray], None], np.ndarray]:
        """(write(rows, block), points): where block t goes, and the points it is for the next layer, if any."""
        keep = t < self.spec.n_layers
        points = np.empty((self.n_rows if keep else 0, width), dtype)
        weight = self.spec.block_weights[t] if self.wanted else 0.0
        target = self._columns(t, width, dtype) if weight > 0 else None
        scale = points.dtype.type(np.sqrt(weight))
        unit = self.spec.normalize and self.spec.layer.attention.unit_points

        def write(rows: slice, block: np.ndarray) -> None:
            if keep:
                points[rows] = unit_rows(block) if unit else block
            if target is not None:
                np.multiply(block, scale, out=target[rows])

        return write, points

    def _columns(self, t: int, width: int, dtype: np.dtype) -> np.ndarray:
        """The next `width` columns of the output."""
        if self.array is None:
            self.array = np.empty((self.n_rows, _widest(self.spec, t, width)), dtype)
        self.used += width
        return self.array[:, self.used - width : self.used]

    def joined(self) -> np.ndarray | None:
        """The output, or None where none was wanted."""
        if self.array is None or self.used == self.array.shape[1]:
            return self.array
        return np.ascontiguousarray(self.array[:, : self.used])


def _widest(spec: StackSpec, first: int, width: int) -> int:
    """The most columns the kept blocks first … T can take, when block `first` takes `width`."""
    total = 0
    for t in range(first, spec.n_layers + 1):
        if t > first:
            identity = spec.layer.keeps_phi or (t == spec.n_layers and not spec.layer.attention.maps_last)
            width = spec.layer.n_anchors * (width + spec.layer.counts) if identity else spec.layer.dim
        total += width if spec.block_weights[t] > 0 else 0
    return total
