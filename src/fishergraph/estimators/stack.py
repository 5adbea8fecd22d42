"""The stack ψ_0, ψ_1, …, ψ_T: fitted and run in one pass, block by block (Eq. 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph.em.anchors import sample_size
from fishergraph.em.unit import noise_of, unit_rows
from fishergraph.em.walks import walk_means, walk_passes
from fishergraph.estimators.costs import input_learning, layer_learning, size_of
from fishergraph.estimators.progress import costing
from fishergraph.estimators.stack_spec import Most, Stack, StackSpec, asked_widths
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap, fit_and_map, fit_projection
from fishergraph.layer import Known, Layer, LayerSpec, fit_layer, phi_blocks, phi_width, run_layer
from fishergraph.multiset import singletons
from fishergraph.ops import choose_backend

# A block of rows that the input map sees at once: bag-of-words rows are never dense beyond it.
_INPUT_ROWS = 1024


def fit_stack(
    spec: StackSpec, X: Any, sets: Any, seed: np.random.SeedSequence, *, want_output: bool
) -> tuple[Stack, Any]:
    """The stack fitted to the rows of X, and its output on them (None when it is not wanted).

    The stack holds NumPy arrays wherever it was fitted.
    """
    streams = [spec.place.stream(child) for child in seed.spawn(spec.n_layers + 1)]
    with costing(spec.progress, "learning input map", input_learning(spec, X)):
        input_map, first = fit_input_map(spec, X, streams[0], runs=True)
    walk_map = _fit_walk_map(spec, X, streams[0]) if spec.walks else None
    most = Most.of(sets)
    stack, output = _run(
        spec, (input_map, walk_map), X, sets, _Fitting(spec, streams[1:], want_output), want_output,
        lambda t, width: asked_widths(spec, t, width, sets.slots, most), first,
    )  # fmt: skip
    return stack.moved(spec.place.fetch), output


def fit_input_map(spec: StackSpec, X: Any, rng: Any, *, runs: bool = False) -> tuple[KernelMap, Any]:
    """ψ_0, learned from a sample of the rows of X, and its values where they came with it and `runs` says that all of
    them come next, else None."""
    sample = _input_sample(spec, X, rng)
    given: dict[str, Any] = {
        "bandwidth": spec.layer.bandwidth, "shrinkage": spec.layer.attention.shrinkage, "rng": rng,
        "n_jobs": spec.n_jobs,
    }  # fmt: skip
    blocks = _input_blocks(spec, X) if runs and sample.shape[0] == X.shape[0] else None
    return fit_and_map(spec.fit_input, sample, spec.layer.dim, blocks, **given)


def _fit_walk_map(spec: StackSpec, X: Any, rng: Any) -> KernelMap:
    """What the features go through before they are walked: the leading directions of wide ones."""
    width = spec.walk_width(X.shape[1])
    return IdentityMap(width) if width == X.shape[1] else fit_projection(_input_sample(spec, X, rng), width, rng)


def _input_sample(spec: StackSpec, X: Any, rng: Any) -> Any:
    """Rows of X that maps of X are learned from."""
    rows = rng.permutation(X.shape[0])[: sample_size(spec.layer.dim, spec.layer.max_samples, X.shape[0])]
    return _input_rows(spec, X, array_namespace(rows).sort(rows))


def input_points(spec: StackSpec, input_map: KernelMap, X: Any) -> Any:
    """ψ_0 of all rows of X, as the points of a layer; X itself for counts."""
    if spec.reads_counts:
        return _dense_points(spec, X, IdentityMap(X.shape[1]))
    return _run_input(spec, input_map, X, _Output(spec, X.shape[0], False, lambda t, width: [width]), None)


def _dense_points(spec: StackSpec, X: Any, as_points: KernelMap, *, unit: bool = False) -> Any:
    """The rows of X, unit vectors or as they are, through a map: the dense points of a layer."""
    points = spec.place.empty((X.shape[0], as_points.n_outputs), X.dtype)

    def fill(rows: slice) -> None:
        points[rows] = as_points(unit_rows(X[rows]) if unit else X[rows])

    map_blocks(fill, _input_blocks(spec, X), n_jobs=spec.n_jobs)
    return points


def _walked_points(spec: StackSpec, walk_map: KernelMap, X: Any, sets: Any) -> Any:
    """The means of all multisets of the whole graph, (row, direction)."""
    assert spec.teleport is not None
    points = _dense_points(spec, X, walk_map, unit=spec.normalize)
    backend = choose_backend(spec.layer.backend, device=spec.layer.device, n_em_iter=1)
    with spec.progress("walking", walk_passes(points.shape[1], spec.teleport)) as bar:
        return walk_means(points, sets, spec.teleport, backend=backend, n_jobs=spec.n_jobs, advance=bar.update)


def _alone(spec: StackSpec, sets: Any) -> Any:
    """As many multisets of one member each."""
    alone = singletons(sets.n_sets)
    if not spec.place.tensors:
        return alone
    from fishergraph.ops.torch_graph import moved_sets

    return moved_sets(alone, sets.device)


def run_stack(spec: StackSpec, stack: Stack, X: Any, sets: Any) -> Any:
    """The output of a fitted stack, (row, sum of the kept blocks' widths)."""
    check_same(spec, stack)
    widths = asked_widths(spec, 0, stack.widths[0], sets.slots)
    if any(found > asked for found, asked in zip(stack.widths, widths, strict=True)):
        raise ValueError("dim must be that of the fit, got a smaller one; set it back, or fit again.")
    stack = stack.moved(lambda array: spec.place.put(array, X.dtype))
    maps = stack.input_map, stack.walk_map
    known = stack.widths
    _, output = _run(
        spec, maps, X, sets, lambda t, points, sets: (stack.layers[t - 1], Known()), True, lambda t, _: known[t:]
    )
    assert output is not None
    return output


def check_same(spec: StackSpec, stack: Stack) -> None:
    """Raise where a stack was fitted with other parameters than these, as far as they shape it."""
    if spec.walks != (stack.walk_map is not None):
        raise ValueError(
            "features must be walked or not as in the fit, got the other, which teleport, multiset, attention and "
            "family decide; set these back, or fit again."
        )
    fitted, asked = len(stack.layers) - spec.walks, spec.n_layers - spec.walks
    if fitted != asked:
        raise ValueError(f"n_layers must be that of the fit, {fitted}, got {asked}; fit again.")
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

    def __init__(self, spec: StackSpec, streams: list[Any], want_output: bool):
        self.spec, self.streams, self.want_output = spec, streams, want_output
        self.phi: Any = None  # of the layer before, which has been run by then

    def __call__(self, t: int, points: Any, sets: Any):
        spec, asked = self.spec, self.spec.layer_at(t)
        with costing(spec.progress, f"learning {spec.title(t)}", layer_learning(asked, size_of(sets), points.shape[1])):
            layer, known = fit_layer(
                asked,
                points,
                sets,
                last=t == spec.n_layers,
                rng=self.streams[t - 1],
                n_jobs=spec.n_jobs,
                reuse=self.phi,
                runs=t < spec.n_layers or self.want_output,
            )
        self.phi = known.phi
        return layer, known


def _input_rows(spec: StackSpec, X: Any, rows: Any) -> Any:
    """Rows of X as the input map sees them."""
    return unit_rows(X[rows]) if spec.normalize else X[rows]


def _run(
    spec: StackSpec, maps: tuple[KernelMap, KernelMap | None], X: Any, sets: Any, next_layer: Callable,
    want_output: bool, widths: Callable[[int, int], list[int]], first: Any = None,
) -> tuple[Stack, Any]:  # fmt: skip
    """One pass over ψ_0 … ψ_T. A layer is run once, right after it is known; the last one only if it is wanted."""
    input_map, walk_map = maps
    blocks = _Output(spec, sets.n_sets, want_output, widths)
    points = _run_input(spec, input_map, X, blocks, first)
    if spec.reads_counts and spec.n_layers > 0:
        points = _dense_points(spec, X, IdentityMap(X.shape[1]))
    if walk_map is not None:
        points = _walked_points(spec, walk_map, X, sets)
    layers: list[Layer] = []
    for t in range(1, spec.n_layers + 1):
        members = _alone(spec, sets) if walk_map is not None and t == 1 else sets
        layer, known = next_layer(t, points, members)
        layers.append(layer)
        if t < spec.n_layers or want_output:
            write, result = blocks.writer(t, layer.kernel_map.n_outputs, X.dtype)
            asked = spec.layer_at(t)
            steps = len(phi_blocks(asked, members, points.shape[1]))
            with spec.progress(spec.title(t), steps) as bar:
                run = {"known": known, "n_jobs": spec.n_jobs, "advance": bar.update}
                run_layer(asked, layer, points, members, write, **run)
            points = result
    return Stack(input_map, tuple(layers), walk_map), blocks.joined()


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

    It is allocated at the width that was asked for, or that is known; where the data gave fewer landmarks it is cut at
    the end. `widths(t, width)` are those of ψ_t … ψ_T at most, when ψ_t has `width` columns.
    """

    def __init__(self, spec: StackSpec, n_rows: int, wanted: bool, widths: Callable[[int, int], list[int]]):
        self.spec, self.n_rows, self.wanted, self.widths = spec, n_rows, wanted, widths
        self.array: Any = None
        self.used = 0

    def writer(self, t: int, width: int, dtype: Any) -> tuple[Callable[[slice, Any], None], Any]:
        """(write(rows, block), points): where block t goes, and the points it is for the next layer, if any."""
        skips = t == 0 and (self.spec.reads_counts or self.spec.walks)  # the first layer sees X itself
        keep, place = t < self.spec.n_layers and not skips, self.spec.place
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
            weights = self.spec.block_weights[t:]
            columns = sum(w for w, weight in zip(self.widths(t, width), weights, strict=True) if weight > 0)
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
