"""The memory that a run needs, counted before it begins."""

from __future__ import annotations

from typing import Any

from fishergraph._errors import NotEnoughMemory
from fishergraph._validation import check_host_memory
from fishergraph.device import Workspace
from fishergraph.em.anchors import sample_size
from fishergraph.em.moments import held_statistics
from fishergraph.stack import Most, Stack
from fishergraph.walk import TILE

# A block of φ and what is computed from it, and what libraries take for themselves.
_BLOCKS = 256 * 2**20
# The lifted members of one set.
_LARGEST_SET = 4 * 2**30


def check_memory(stack: Stack, X: Any, sets: Any, workspace: Workspace, *, want_output: bool, beside: int = 0) -> None:
    """Raise if the arrays of a run would not fit: X and the graph may come in blocks, points may not.

    `beside` are further numbers that a run holds.
    """
    if sets.lifted:
        widths = stack.asked_widths(X.shape[1], sets.slots)[:-1]
        check_largest(sets, sets.slots * max(widths, default=0), X.dtype.itemsize)
    free = workspace.free_bytes()
    if free is None:
        _check_host(stack, X, sets, want_output=want_output)
        return
    points, output = needed_bytes(stack, X, sets, workspace)
    points += beside * X.dtype.itemsize
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


def _check_host(stack: Stack, X: Any, sets: Any, *, want_output: bool) -> None:
    """Raise if the points of a layer, or the result, would not fit into the memory of the machine."""
    widths = stack.asked_widths(X.shape[1], sets.slots, Most.of(sets))
    columns = sum(stack.kept(widths)) if want_output else 0
    points, values = X.shape[0] * widths[0], sets.n_sets * max([columns, *widths[1:]])
    advice = "lower dim, n_anchors or n_layers, or use kernel='exp'"
    needed = X.dtype.itemsize * max(points, values)
    check_host_memory(needed, f"{sets.n_sets} rows need", "for one layer or the result", advice)


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


def needed_bytes(stack: Stack, X: Any, sets: Any, workspace: Workspace) -> tuple[int, int]:
    """(working arrays, output): two layers' points, their responsibilities and statistics, k-means' sample with a copy,
    and blocks."""
    n_rows, slots, layer = sets.n_sets, sets.slots, stack.layer
    size, short = X.dtype.itemsize, workspace.storage(X.dtype).itemsize
    all_widths = stack.asked_widths(X.shape[1], slots)
    widths = [*all_widths[:-1], 0]  # the values of the last stage are not points
    pairs = [one + two for one, two in zip(widths, [*widths[1:], 0], strict=True)]
    points = X.shape[0] * (max(pairs) * short + 2 * layer.n_anchors * size)
    if stack.walk is not None:  # averaged features, with three tiles of them, beside the first layer's points
        walked = stack.walk.width(layer.dim, X.shape[1])
        points = max(points, X.shape[0] * (widths[1] * short + (walked + 3 * TILE + 4) * size))
        points += 2 * walked * X.shape[1] * size * (walked < X.shape[1])  # directions, and what they are made of
    if not sets.lifted:
        points += max(held_statistics(layer.family, X.shape[0], width) for width in widths) * size
    phi = layer.asked_width(layer.n_anchors, slots * max(widths))
    sample = sample_size(layer.dim, layer.em.max_samples, n_rows) * max(phi, X.shape[1]) * size
    return points + 3 * sample + _BLOCKS, n_rows * sum(stack.kept(all_widths)) * size
