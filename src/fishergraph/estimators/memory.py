"""What a run will hold on a card, counted before it begins."""

from __future__ import annotations

from typing import Any

from fishergraph._validation import check_host_memory
from fishergraph.em.anchors import sample_size
from fishergraph.em.moments import held_statistics
from fishergraph.em.walks import TILE
from fishergraph.estimators.stack_spec import Most, StackSpec, asked_widths, kept_widths

# A block of φ and what is computed from it, and what libraries take for themselves.
_BLOCKS = 256 * 2**20
# The lifted members of one set.
_LARGEST_SET = 4 * 2**30


def check_memory(spec: StackSpec, X: Any, sets: Any, *, want_output: bool, beside: int = 0) -> None:
    """Raise where the arrays of a run would not fit on the device: X and the graph may come in blocks, points not.

    `beside` are further numbers that a run holds.
    """
    if sets.lifted:
        widths = asked_widths(spec, 0, spec.input_width(X.shape[1]), sets.slots)[:-1]
        check_largest(sets, sets.slots * max(widths, default=0), X.dtype.itemsize)
    free = spec.place.free_bytes()
    if free is None:
        check_host(spec, X, sets, want_output=want_output)
        return
    points, output = needed_bytes(spec, X, sets)
    points += beside * X.dtype.itemsize
    on_device = want_output and spec.place.empty_output is spec.place.empty
    needed = points + (output if on_device else 0)
    if needed <= free:
        return
    advice = "lower dim or max_samples, set precision='bf16', or use device='cpu'"
    if on_device and points <= free:
        advice = "pass X as a NumPy array, whose result is written to host memory, or lower dim"
    raise MemoryError(
        f"{X.shape[0]} rows need about {needed / 1e9:.1f} GB on the device ({output / 1e9:.1f} GB of it the result), "
        f"got {free / 1e9:.1f} GB free; {advice}."
    )


def check_host(spec: StackSpec, X: Any, sets: Any, *, want_output: bool) -> None:
    """Raise where the points of a layer, or the result, would not fit into the memory of the machine."""
    most = Most.of(sets)
    first = min(spec.input_width(X.shape[1]), max(X.shape))
    widths = asked_widths(spec, 0, first, sets.slots, most)
    columns = sum(kept_widths(spec, 0, first, sets.slots, most)) if want_output else 0
    needed = X.dtype.itemsize * sets.n_sets * max(columns, *widths)
    advice = "lower dim, n_anchors or n_layers, or use kernel='exp'"
    check_host_memory(needed, f"{sets.n_sets} rows need", "for one layer or the result", advice)


def check_largest(sets: Any, width: int, itemsize: int) -> None:
    """Raise where the lifted members of one set, which are never cut, would not fit; a member is so wide."""
    largest = sets.largest
    needed = largest * width * itemsize
    if needed > _LARGEST_SET:
        raise MemoryError(
            f"the lifted members of one multiset must take at most {_LARGEST_SET / 1e9:.1f} GB, got {largest} members "
            f"of {width} features, {needed / 1e9:.1f} GB; lower dim, or bound the members (max_paths)."
        )


def needed_bytes(spec: StackSpec, X: Any, sets: Any) -> tuple[int, int]:
    """(working arrays, output): two layers' points, their responsibilities and statistics, k-means' sample with a copy,
    and blocks.

    X has the points, and the sets are embedded.
    """
    n_rows, slots = sets.n_sets, sets.slots
    layer, size, short = spec.layer, X.dtype.itemsize, spec.place.storage(X.dtype).itemsize
    first = spec.input_width(X.shape[1])
    widths = [*asked_widths(spec, 0, first, slots)[:-1], 0]  # the last layer's are no points
    pairs = [one + two for one, two in zip(widths, [*widths[1:], 0], strict=True)]
    points = X.shape[0] * (max(pairs) * short + 2 * layer.n_anchors * size)
    if spec.walks:  # what is walked, with three tiles of it, stands beside what layer 1 gives
        walked = spec.walk_width(X.shape[1])
        points = max(points, X.shape[0] * (widths[1] * short + (walked + 3 * TILE + 4) * size))
        points += 2 * walked * X.shape[1] * size * (walked < X.shape[1])  # directions, and what they are made of
    if not sets.lifted:
        points += max(held_statistics(layer.family, X.shape[0], width) for width in widths) * size
    phi = layer.family.width(layer.n_anchors, slots * max(widths)) + layer.n_anchors * layer.counts
    sample = sample_size(layer.dim, layer.max_samples, n_rows) * max(phi, X.shape[1]) * size
    output = n_rows * sum(kept_widths(spec, 0, first, slots)) * size
    return points + 3 * sample + _BLOCKS, output
