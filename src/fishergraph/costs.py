"""What a run costs, counted before it begins: multiplications, by which progress bars are divided, and memory."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from fishergraph._errors import NotEnoughMemory
from fishergraph._parallel import SPARSE
from fishergraph._typing import Rows, Sets
from fishergraph._validation import check_host_memory
from fishergraph.device import Workspace
from fishergraph.em.learn import sample_size
from fishergraph.em.means import held_statistics
from fishergraph.layer import Layer
from fishergraph.stack import Stack
from fishergraph.structural import TELLING_APART
from fishergraph.walk import TILE, Walk

# The cost of a kernel beside its products: an exponential, a division, and their memory.
_KERNEL = 256
_SPARSE_ROW = 1024  # a sparse row is sliced, measured and divided by its length
_AXES_STEPS = 10  # products of a sample with its axes
_KMEANS, _ANCHOR_STEPS, _EM_STEPS = 4, 5, 21  # iterations of landmarks, of anchors, of other families
# Writing one number to a file, in multiplications.
_WRITING = {".npz": 50, ".npy": 50, ".parquet": 100, ".lance": 100, ".zarr": 50}
_WRITING_TEXT = 2000
# Bytes of a block of φ and what is computed from it, and of what libraries take for themselves.
_BLOCKS = 256 * 2**20
# Bytes of the lifted members of one set.
_LARGEST_SET = 4 * 2**30


# --- multiplications -------------------------------------------------------------------------------------


def stack_costs(stack: Stack, X: Rows, sets: Sets, *, fitting: bool) -> dict[str, float]:
    """The cost of every part that a pass reports, by its title, in order."""
    (n_rows, n_features), layer = X.shape, stack.layer
    row: float = n_features
    if isinstance(X, sp.csr_array):
        row = _SPARSE_ROW + SPARSE * X.nnz / max(n_rows, 1)
    costs = {"learning input map": _map_learning(layer, n_rows, n_features)} if fitting else {}
    costs["input map"] = n_rows * layer.dim * (row + layer.dim + _KERNEL)
    widths = stack.asked_widths(n_features, sets)
    points = n_features if stack.reads_counts else widths[0]
    for t in range(1, stack.n_layers + 1):
        costs |= layer_costs(stack.layer_at(t), sets, points, f"layer {t}/{stack.n_layers}", fitting=fitting)
        points = widths[t]
    if stack.averages_features and stack.walk is not None:
        axes = stack.walk.axes(n_features)
        if fitting:
            costs["learning axes"] = _AXES_STEPS * sample_size(layer.dim, layer.em.max_samples, n_rows) * axes * row
        costs["walking"] = _averaging(stack.walk, axes, sets) + n_rows * axes * row
        costs |= _mapping(layer, n_rows, axes, "walk", fitting=fitting)
        costs["smooth"] = float(n_rows * axes * axes)
    for kind, width in stack.structure:
        if kind not in TELLING_APART:
            costs |= _mapping(stack.mapping_layer(kind), n_rows, width, kind, fitting=fitting)
            continue
        if stack.walk is not None:
            costs[f"averaging {kind}"] = _averaging(stack.walk, width, sets)
        costs[kind] = float(n_rows * width * width)
    return costs


def _averaging(walk: Walk, n_columns: int, sets: Sets) -> float:
    """The cost of averaging so many columns, and of their masses."""
    tiles = walk.tiles(sets.n_sets, n_columns)
    return float(SPARSE * walk.n_steps * sets.n_entries * (n_columns + n_columns / max(len(tiles), 1)))


def _mapping(layer: Layer, n_rows: int, width: int, title: str, *, fitting: bool) -> dict[str, float]:
    """The cost of learning the kernel map of columns, if `fitting`, and of their values."""
    learning = {f"learning {title}": _map_learning(layer, n_rows, width)} if fitting else {}
    values = float(n_rows * layer.dim * (_KERNEL if fitting else _KERNEL + width + layer.dim))
    return {**learning, title: values}


def layer_costs(layer: Layer, sets: Sets, width: int, title: str, *, fitting: bool) -> dict[str, float]:
    """The cost of learning a layer over points of that width, if `fitting`, and of running it, by their titles."""
    lifted, n_sets, em = width * sets.slots, sets.n_sets, layer.em
    phi_width, learns = layer.phi_width(layer.n_anchors, lifted), layer.kernel.learns
    phi = SPARSE * sets.n_entries * lifted * layer.n_anchors
    rows = sample_size(layer.dim, em.max_samples, n_sets)
    running = float(phi + n_sets * layer.dim * ((phi_width + layer.dim + _KERNEL) if learns else 0))
    if learns and rows == n_sets:  # φ and ψ are left from learning
        running = float(n_sets * layer.dim * _KERNEL)
    if not fitting:
        return {title: running}
    members = sample_size(layer.n_anchors, em.max_samples, sets.n_entries)
    learning = float(_ANCHOR_STEPS * members * lifted * layer.n_anchors)
    if not layer.family.fused:
        learning += 2 * _EM_STEPS * members * layer.family.n_statistics(lifted) * layer.n_anchors
    if learns:
        learning += phi * rows / max(n_sets, 1) + _map_learning(layer, n_sets, phi_width)
    return {f"learning {title}": learning, title: running}


def _map_learning(layer: Layer, n_rows: int, width: float) -> float:
    """The cost of a kernel map learned from rows of that width, and of its values if the sample is all rows."""
    rows = sample_size(layer.dim, layer.em.max_samples, n_rows)
    return rows * layer.dim * (_KMEANS * width + (rows == n_rows) * (width + layer.dim))


def network_learning(shape: tuple[int, ...], dim: int, n_layers: int, n_anchors: int) -> float:
    """The cost of the landmarks that a network of such layers starts from, over rows of that shape."""
    rows = sample_size(dim, shape[0], shape[0])
    return float(_KMEANS * rows * dim * (shape[1] + n_layers * n_anchors * dim))


def writing_cost(suffix: str, n_numbers: int) -> float:
    """The cost of writing so many numbers to a file of that kind."""
    return float(n_numbers * _WRITING.get(suffix, _WRITING_TEXT))


# --- memory ----------------------------------------------------------------------------------------------


def check_memory(stack: Stack, X: Rows, sets: Sets, workspace: Workspace, *, want_output: bool, more: int = 0) -> None:
    """Raise if the arrays of a run would not fit: X and the graph may come in blocks, points may not.

    `more` are further numbers that a run holds.
    """
    widths, itemsize = stack.asked_widths(X.shape[1], sets), X.dtype.itemsize
    if sets.lifted:
        check_largest(sets, sets.slots * max(widths[: stack.n_layers], default=0), itemsize)
    free = None if workspace.free_bytes is None else workspace.free_bytes()
    if free is not None:
        _check_device(stack, X, sets, workspace, widths, free, want_output=want_output, more=more)
        return
    columns = sum(stack.kept(widths)) if want_output else 0
    points, values = X.shape[0] * widths[0], sets.n_sets * max([columns, *widths[1:]])
    advice = "lower dim, n_anchors or n_layers, or use kernel='exp'"
    needed = itemsize * max(points, values)
    check_host_memory(needed, f"{sets.n_sets} rows need", "for one layer or the result", advice)


def _check_device(
    stack: Stack,
    X: Rows,
    sets: Sets,
    workspace: Workspace,
    widths: list[int],
    free: int,
    *,
    want_output: bool,
    more: int,
) -> None:
    """Raise if the points, samples and blocks of a run, or its result, do not fit into the memory of the device."""
    points, output = needed_bytes(stack, X, sets, workspace, widths)
    points += more * X.dtype.itemsize
    on_device = want_output and workspace.empty_output is workspace.empty
    needed = points + (output if on_device else 0)
    if needed <= free:
        return
    advice = "lower dim or max_samples, use Device('cuda', precision='bf16'), or use device='cpu'"
    if on_device and points <= free:
        advice = "pass X as a NumPy array, whose result is written to host memory, or lower dim"
    raise NotEnoughMemory(
        f"{X.shape[0]} rows need about {needed / 1e9:.1f} GB on the device ({output / 1e9:.1f} GB of it the result), "
        f"got {free / 1e9:.1f} GB free; {advice}.",
        needed=needed,
        available=free,
    )


def needed_bytes(stack: Stack, X: Rows, sets: Sets, workspace: Workspace, all_widths: list[int]) -> tuple[int, int]:
    """The bytes of the working arrays, and of the output.

    Working arrays are the points of two layers, their responsibilities and statistics, the sample of k-means with a
    copy, structural columns, and blocks.
    """
    n_rows, layer = sets.n_sets, stack.layer
    size, short = X.dtype.itemsize, workspace.storage(X.dtype).itemsize
    widths = [*all_widths[: stack.n_layers], 0]  # the values of the last layer, and of columns, are not points
    pairs = [one + two for one, two in zip(widths, [*widths[1:], 0], strict=True)]
    points = X.shape[0] * (max(pairs) * short + 2 * layer.n_anchors * size)
    if stack.walk is not None:  # averaged columns, with three tiles of them
        axes = stack.walk.axes(X.shape[1]) if stack.averages_features else 0
        columns = max([axes, *(width for _, width in stack.structure)])
        points = max(points, X.shape[0] * (columns + 3 * TILE + 4) * size)
        points += 2 * axes * X.shape[1] * size  # the axes, and what they are made of
    points += X.shape[0] * sum(width for _, width in stack.structure) * size
    if not sets.lifted:
        points += max(held_statistics(layer.family, X.shape[0], width) for width in widths) * size
    phi = layer.phi_width(layer.n_anchors, sets.slots * max(widths))
    sample = sample_size(layer.dim, layer.em.max_samples, n_rows) * max(phi, X.shape[1]) * size
    return points + 3 * sample + _BLOCKS, n_rows * sum(stack.kept(all_widths)) * size


def check_largest(sets: Any, width: int, itemsize: int) -> None:
    """Raise if the lifted members of one set, which are never divided, would not fit."""
    largest = sets.largest
    needed = largest * width * itemsize
    if needed > _LARGEST_SET:
        raise NotEnoughMemory(
            f"the lifted members of one multiset must take at most {_LARGEST_SET / 1e9:.1f} GB, got {largest} members "
            f"of {width} features, {needed / 1e9:.1f} GB; lower dim, or bound the members (max_paths).",
            needed=needed,
            available=_LARGEST_SET,
        )
