"""The stack ψ_0, ψ_1, …, ψ_T: fitted and run in one pass, block by block (Eq. 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fishergraph.blocks import block_rows, map_blocks, row_blocks
from fishergraph.em.anchors import sample_size
from fishergraph.em.unit import unit_rows
from fishergraph.family import GaussianMixture
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap, fit_and_map, fit_nystrom
from fishergraph.layer import Known, Layer, LayerSpec, fit_layer, phi_blocks, phi_width, run_layer
from fishergraph.ops import choose_backend
from fishergraph.ops.place import NUMPY, Place

# A block of rows that the input map sees at once: bag-of-words rows are never dense beyond it.
_INPUT_ROWS = 1024


@dataclass(frozen=True)
class Stack:
    """The fitted state: the input map ψ_0 and the layers."""

    input_map: KernelMap
    layers: tuple[Layer, ...]

    @property
    def widths(self) -> list[int]:
        """The number of columns of ψ_0, …, ψ_T."""
        return [self.input_map.n_outputs, *(layer.kernel_map.n_outputs for layer in self.layers)]

    def moved(self, move: Callable[[Any], Any]) -> Stack:
        """The stack with its arrays somewhere else."""
        return Stack(self.input_map.moved(move), tuple(layer.moved(move) for layer in self.layers))


@dataclass(frozen=True)
class StackSpec:
    """What is asked of the stack: the layers' spec, their number, the block weights, and how work is run and shown."""

    layer: LayerSpec
    n_layers: int
    normalize: bool
    block_weights: tuple[float, ...]  # one per block; zero leaves the block out
    fit_input: Callable[..., KernelMap]  # ψ_0
    n_jobs: int | None
    progress: Callable[[str, int], Any]  # (title, steps) → a context manager whose value has update(n)
    place: Place = NUMPY

    @property
    def reads_counts(self) -> bool:
        """Whether the first layer sees X itself: counts live there, not in ψ_0."""
        return self.layer.family.support == "counts"

    def layer_at(self, t: int) -> LayerSpec:
        """What is asked of layer t; behind a layer of counts stand Gaussian mixtures."""
        return replace(self.layer, family=GaussianMixture()) if self.reads_counts and t > 1 else self.layer

    def input_width(self, n_features: int) -> int:
        """The most columns that ψ_0 can have."""
        return self.layer.dim if self.fit_input is fit_nystrom else n_features

    def at(self, place: Place) -> StackSpec:
        """The same work somewhere else; a device is fed by one thread."""
        if not place.tensors:
            return replace(self, place=place)
        name = self.layer.backend or ("torch" if place.device == "cpu" else None)
        backend = choose_backend(name, device=place.device, n_em_iter=self.layer.n_em_iter)
        if not backend.tensors:
            raise ValueError(
                f"backend={name!r} takes NumPy arrays, got tensors; leave backend=None, or pass X as a NumPy array."
            )
        layer = replace(self.layer, device=place.device, backend=backend.name)
        return replace(self, place=place, n_jobs=1, layer=layer)


def fit_stack(
    spec: StackSpec, X: Any, sets: Any, seed: np.random.SeedSequence, *, want_output: bool
) -> tuple[Stack, Any]:
    """The stack fitted to the rows of X, and its output on them (None when it is not wanted).

    The stack holds NumPy arrays wherever it was fitted.
    """
    streams = [spec.place.stream(child) for child in seed.spawn(spec.n_layers + 1)]
    input_map, first = fit_input_map(spec, X, streams[0], runs=True)
    fitting = _Fitting(spec, sets, streams[1:], want_output)
    stack, output = _run(spec, input_map, X, sets, fitting, want_output, first)
    return stack.moved(spec.place.fetch), output


def fit_input_map(spec: StackSpec, X: Any, rng: Any, *, runs: bool = False) -> tuple[KernelMap, Any]:
    """ψ_0, learned from a sample of the rows of X, and its values where they came with it and `runs` says that all of
    them come next, else None."""
    rows = rng.permutation(X.shape[0])[: sample_size(spec.layer.dim, spec.layer.max_samples, X.shape[0])]
    sample = _input_rows(spec, X, array_namespace(rows).sort(rows))
    given: dict[str, Any] = {
        "bandwidth": spec.layer.bandwidth, "shrinkage": spec.layer.attention.shrinkage, "rng": rng,
        "n_jobs": spec.n_jobs,
    }  # fmt: skip
    blocks = _input_blocks(spec, X) if runs and len(rows) == X.shape[0] else None
    return fit_and_map(spec.fit_input, sample, spec.layer.dim, blocks, **given)


def input_points(spec: StackSpec, input_map: KernelMap, X: Any) -> Any:
    """ψ_0 of all rows of X, as the points of a layer; X itself for counts."""
    if spec.reads_counts:
        return _count_points(spec, X)
    return _run_input(spec, input_map, X, _Output(spec, X.shape[0], wanted=False), None)


def _count_points(spec: StackSpec, X: Any) -> Any:
    """X as the dense points of a layer."""
    points, as_is = spec.place.empty(X.shape, X.dtype), IdentityMap(X.shape[1])

    def fill(rows: slice) -> None:
        points[rows] = as_is(X[rows])

    map_blocks(fill, row_blocks(X.shape[0], _INPUT_ROWS), n_jobs=spec.n_jobs)
    return points


def run_stack(spec: StackSpec, stack: Stack, X: Any, sets: Any) -> Any:
    """The output of a fitted stack, (row, sum of the kept blocks' widths)."""
    check_same(spec, stack)
    widths = asked_widths(spec, 0, stack.widths[0], sets.slots)
    if any(found > asked for found, asked in zip(stack.widths, widths, strict=True)):
        raise ValueError("dim must be that of the fit, got a smaller one; set it back, or fit again.")
    stack = stack.moved(lambda array: spec.place.put(array, X.dtype))
    _, output = _run(spec, stack.input_map, X, sets, lambda t, points: (stack.layers[t - 1], Known()), True)
    assert output is not None
    return output


def check_same(spec: StackSpec, stack: Stack) -> None:
    """Raise where a stack was fitted with other parameters than these, as far as they shape it."""
    if len(stack.layers) != spec.n_layers:
        raise ValueError(f"n_layers must be that of the fit, {len(stack.layers)}, got {spec.n_layers}; fit again.")
    for t, layer in enumerate(stack.layers, 1):
        check_same_layer(spec.layer_at(t), layer, ("family", "fisher", "counts"))


def check_same_layer(spec: LayerSpec, layer: Layer, names: tuple[str, str, str]) -> None:
    """Raise where a layer has another θ, Fisher matrix or φ than these parameters ask for; `names` are theirs."""
    known = isinstance(layer.theta, spec.family.theta)
    same = [known, (layer.root is None) == (spec.family.fisher != "exact")]
    same.append(known and phi_width(spec, layer.theta) == map_inputs(layer.kernel_map))
    if not all(same):
        wrong = names[same.index(False)]
        raise ValueError(f"{wrong} must be that of the fit, got another one; set it back, or fit again.")


def map_inputs(kernel_map: KernelMap) -> int:
    """The width of the rows that a map takes."""
    return kernel_map.landmarks.shape[1] if isinstance(kernel_map, NystromMap) else kernel_map.n_outputs


class _Fitting:
    """The source of layers while fitting: layer t is learned from the points that enter it."""

    def __init__(self, spec: StackSpec, sets: Any, streams: list[Any], want_output: bool):
        self.spec, self.sets, self.streams, self.want_output = spec, sets, streams, want_output
        self.phi: Any = None  # of the layer before, which has been run by then

    def __call__(self, t: int, points: Any):
        layer, known = fit_layer(
            self.spec.layer_at(t),
            points,
            self.sets,
            last=t == self.spec.n_layers,
            rng=self.streams[t - 1],
            n_jobs=self.spec.n_jobs,
            reuse=self.phi,
            runs=t < self.spec.n_layers or self.want_output,
        )
        self.phi = known.phi
        return layer, known


def _input_rows(spec: StackSpec, X: Any, rows: Any) -> Any:
    """Rows of X as the input map sees them."""
    return unit_rows(X[rows]) if spec.normalize else X[rows]


def _run(
    spec: StackSpec, input_map: KernelMap, X: Any, sets: Any, next_layer: Callable, want_output: bool, first: Any = None
) -> tuple[Stack, Any]:
    """One pass over ψ_0 … ψ_T. A layer is run once, right after it is known; the last one only if it is wanted."""
    blocks = _Output(spec, sets.n_sets, want_output, sets.slots)
    points = _run_input(spec, input_map, X, blocks, first)
    points = _count_points(spec, X) if spec.reads_counts and spec.n_layers > 0 else points
    layers: list[Layer] = []
    for t in range(1, spec.n_layers + 1):
        layer, known = next_layer(t, points)
        layers.append(layer)
        if t < spec.n_layers or want_output:
            write, result = blocks.writer(t, layer.kernel_map.n_outputs, X.dtype)
            asked = spec.layer_at(t)
            steps = len(phi_blocks(asked, sets, points.shape[1]))
            with spec.progress(f"layer {t}/{spec.n_layers}", steps) as bar:
                run = {"known": known, "n_jobs": spec.n_jobs, "advance": bar.update}
                run_layer(asked, layer, points, sets, write, **run)
            points = result
    return Stack(input_map, tuple(layers)), blocks.joined()


def _input_blocks(spec: StackSpec, X: Any) -> list[slice]:
    """The row blocks of X."""
    return row_blocks(X.shape[0], block_rows(spec.place.device, 4 * X.shape[1], _INPUT_ROWS))


def _run_input(spec: StackSpec, input_map: KernelMap, X: Any, blocks: _Output, known: Any) -> Any:
    """ψ_0 of all rows, known or not."""
    write, points = blocks.writer(0, input_map.n_outputs, X.dtype)
    rows = _input_blocks(spec, X)

    def block(part: slice) -> None:
        write(part, input_map(_input_rows(spec, X, part)) if known is None else known[part])

    with spec.progress("input map", len(rows)) as bar:
        map_blocks(block, rows, n_jobs=spec.n_jobs, advance=bar.update)
    return points


class _Output:
    """The concatenation of the kept blocks, √weight · ψ_t, written while each block of rows is in cache (Eq. 2).

    It is allocated at the width that was asked for; where the data gave fewer landmarks it is cut at the end.
    """

    def __init__(self, spec: StackSpec, n_rows: int, wanted: bool, slots: int = 1):
        self.spec, self.n_rows, self.slots, self.wanted = spec, n_rows, slots, wanted
        self.array: Any = None
        self.used = 0

    def writer(self, t: int, width: int, dtype: Any) -> tuple[Callable[[slice, Any], None], Any]:
        """(write(rows, block), points): where block t goes, and the points it is for the next layer, if any."""
        keep, place = t < self.spec.n_layers and not (t == 0 and self.spec.reads_counts), self.spec.place
        points = place.empty((self.n_rows if keep else 0, width), place.storage(dtype))
        weight = self.spec.block_weights[t] if self.wanted else 0.0
        target = self._columns(t, width, dtype) if weight > 0 else None
        scale = math.sqrt(weight)
        unit = self.spec.normalize and self.spec.layer.attention.unit_points

        def write(rows: slice, block: Any) -> None:
            if keep:
                points[rows] = unit_rows(block, least=noise_of(block) if t > 0 else 0.0) if unit else block
            if target is not None:
                target[rows] = block if scale == 1 else block * scale

        return write, points

    def _columns(self, t: int, width: int, dtype: Any) -> Any:
        """The next `width` columns of the output."""
        if self.array is None:
            columns = sum(kept_widths(self.spec, t, width, self.slots))
            self.array = self.spec.place.empty_output((self.n_rows, columns), dtype)
        self.used += width
        return self.array[:, self.used - width : self.used]

    def joined(self) -> Any:
        """The output, or None where none was wanted."""
        if self.array is None:
            return None
        result = self.spec.place.result(self.array)
        if self.used == result.shape[1]:
            return result
        cut = result[:, : self.used]
        return array_namespace(cut).asarray(cut, copy=True)


def noise_of(block: Any) -> float:
    """What rounding leaves of a φ that is zero, beside points of length one: it must not become a direction."""
    return 16 * float(array_namespace(block).finfo(block.dtype).eps)


def asked_widths(spec: StackSpec, first: int, width: int, slots: int = 1) -> list[int]:
    """The most columns that ψ_first … ψ_T can have, when ψ_first has `width` and a member is `slots` points wide."""
    widths = [width]
    for t in range(first + 1, spec.n_layers + 1):
        identity = spec.layer.keeps_phi or (t == spec.n_layers and not spec.layer.attention.maps_last)
        layer = spec.layer_at(t)
        grown = layer.family.width(layer.n_anchors, slots * widths[-1]) + layer.n_anchors * layer.counts
        widths.append(grown if identity else spec.layer.dim)
    return widths


def kept_widths(spec: StackSpec, first: int, width: int, slots: int = 1) -> list[int]:
    """Those of the blocks that are kept."""
    weights = spec.block_weights[first:]
    widths = asked_widths(spec, first, width, slots)
    return [width for width, weight in zip(widths, weights, strict=True) if weight > 0]
