"""Layers on `LiftedSets`: members made of several rows, lifted by row blocks, with gradients through the lift.

Rows are divided by their lengths first where that is asked for, then lifted, as in `FisherEmbedding`. The lifted points
of all members are never there at once: where they would take more than `BLOCK_BYTES`, row blocks are lifted one after
the other, and in training lifted again when their gradients are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fishergraph._parallel import cut_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph.estimators.memory import check_largest
from fishergraph.multiset import LiftedSets, makes_lifted
from fishergraph.nn.mixture import Mixture
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_ops import tensor_engine
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows.torch import unit_rows

# The lifted points of a block, and its φ, on the CPU and on a card, where every block costs a dozen launches.
# Whatever fits is one block, and nothing is lifted twice.
BLOCK_BYTES = {"cpu": 128 * 2**20, "cuda": 2**30}


def lifted_sets(edges: Any, edge_weight: Any, size: tuple[int, int], slots: int | None) -> Any:
    """The given `LiftedSets` as tensors, if they are such as a layer with `slots` can take."""
    if not isinstance(edges, LiftedSets):
        raise TypeError(
            f"a layer with slots={slots} takes LiftedSets, got {type(edges).__name__}; pass those that a rule such as "
            "Paths() makes of a graph, or leave slots=None."
        )
    if slots != edges.slots:
        raise ValueError(f"LiftedSets want a layer with slots={edges.slots}, got slots={slots}; build it with these.")
    known = isinstance(edges.subgraphs, Tensor) and edge_weight is None
    sets = edges if known else tensor_sets(edges, weights=edge_weight)
    _ = sets.sets.sound
    if (sets.n_points, sets.n_sets) != size:
        raise ValueError(
            f"the lifted sets must be {size[1]} over {size[0]} points, the rows of x, got {sets.n_sets} over "
            f"{sets.n_points}; pass the sets of these nodes, or for tuples the features of the tuples as x."
        )
    return sets


def lift_width(width: int, slots: int | None) -> int:
    """The width of a member of so many slots; −1 while that of a row is not known."""
    return width if width < 0 else width * (slots or 1)


def expect_rows(mixture: Mixture, width: int, slots: int | None) -> None:
    """Raise unless rows of such a width are what the mixture was made for; an unknown width is now known."""
    known = mixture.in_channels
    if slots is not None and known > 0 and known != slots * width:
        raise ValueError(
            f"x must have {known // slots} features, of which a member has {slots} side by side, got {width}; "
            "pass in_channels=-1 to take the width of the first input."
        )
    mixture.expect(lift_width(width, slots))


def rows_to_lift(mixture: Mixture, x: Tensor, normalize: bool) -> Tensor:
    """The rows that are lifted, which the mixture leaves as they are: divided by their lengths where that is asked."""
    rows = mixture.points(x)
    return unit_rows(tensor_engine(mixture.backend, rows), rows) if normalize else rows


def by_blocks(function: Callable[[Tensor, TensorSets], Tensor], points: Tensor, sets: Any, width: int) -> Tensor:
    """function(lifted points, plain sets over them) of all sets, (set, out), where φ has `width` columns.

    The function sees a row block at a time, and again in the backward pass where there are several of them.
    """
    if points.device != sets.subgraphs.device:
        got = sets.subgraphs.device
        raise ValueError(f"the lifted sets must be on {points.device} like x, got {got}; move them with .to(x.device).")
    item, most = points.element_size(), BLOCK_BYTES.get(points.device.type, BLOCK_BYTES["cpu"])
    lifted = points.shape[1] * sets.slots
    row, member = item * max(width, 1), item * max(lifted, 1)
    if max(sets.n_entries * member, sets.n_sets * row) <= most:
        return function(*sets.gather(points))
    check_largest(sets, lifted, item)

    def block(points: Tensor, rows: slice) -> Tensor:
        return function(*sets.block(rows).gather(points))

    blocks = row_blocks(sets.n_sets, max(most // row, 1))
    blocks = cut_blocks(sets.sets.indptr.cpu().numpy(), blocks, most // member)
    if not torch.is_grad_enabled():
        return torch.cat([block(points, rows) for rows in blocks])
    options: Any = {"use_reentrant": False, "preserve_rng_state": False}  # nothing is drawn in a block
    return torch.cat([checkpoint(block, points, rows, **options) for rows in blocks])


def own_block(sets: Any, rows: slice, device: Any) -> tuple[Tensor, Any]:
    """(points, sets): the points that the members of some sets are made of, and these sets over them on a device."""
    plain = sets.sets.block(rows) if sets.lifted else sets.block(rows)
    plain = plain.cut(0, plain.n_sets)
    used = sets.subgraphs[plain.indices] if sets.lifted else plain.indices
    points, local = torch.unique(used, return_inverse=True)
    if not sets.lifted:
        return points, TensorSets(plain.indptr, local, plain.weights, len(points)).to(device)
    empty = int((points[:1] < 0).sum())  # −1, the empty slot, comes first and stays −1
    entries = torch.arange(plain.n_entries, device=plain.device)
    own = TensorSets(plain.indptr, entries, plain.weights, plain.n_entries)
    points = points[empty:]
    return points, unchecked(LiftedSets, own, local - empty, len(points), sets.lift).to(device)


def n_outputs(sets: Any) -> int:
    """How many rows a network gives for these sets: one for each, or for each node where the sets are of tuples."""
    return sets.n_sets if not sets.lifted or sets.pool is None else sets.pool.n_sets


def pooled(rows: Tensor, sets: Any) -> Tensor:
    """The rows of all sets, or the means of those that belong together, as `LiftedSets.pooled`, with a gradient."""
    if not isinstance(sets, LiftedSets) or sets.pool is None:
        return rows
    sizes = torch.diff(torch.as_tensor(sets.pool.indptr)).to(rows.device)
    with torch.autocast(rows.device.type, enabled=False):
        return torch.segment_reduce(rows, "mean", lengths=sizes, axis=0)


def check_edges_alone(edges: Any, what: str) -> None:
    """Raise for `LiftedSets` where `what` needs edges."""
    if isinstance(edges, LiftedSets):
        raise ValueError(f"{what} needs edges between nodes, got LiftedSets; leave it out, or pass edges.")


def check_whole(multiset: Any, batch_size: Any) -> None:
    """Raise where batches of neighbours are asked for, and members are made of several nodes."""
    if batch_size is not None and makes_lifted(multiset):
        raise ValueError(
            f"batch_size samples neighbours and needs a multiset of nodes, got batch_size={batch_size!r} with "
            f"multiset={multiset!r}; leave batch_size=None, or use another multiset."
        )
