"""Layers on `LiftedSets`: members made of several rows, lifted by row blocks, with gradients through the lift.

Rows are divided by their lengths first if that is asked for, then lifted, as in `FisherEmbedding`. The lifted points of
all members never exist at once: if they take more than `BLOCK_BYTES`, row blocks are lifted one after the other, and in
training lifted again for their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import cut_blocks, row_blocks
from fishergraph._records import changed, unchecked
from fishergraph.costs import check_largest
from fishergraph.multiset import LiftedSets, Rule
from fishergraph.nn.edges import check_counts
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.tensor_split import split_tensors

# The lifted points of a block, and its φ, on the CPU and on a GPU, where every block costs a dozen launches.
# If everything fits it is one block, and nothing is lifted twice.
BLOCK_BYTES = {"cpu": 128 * 2**20, "cuda": 2**30}


def lifted_sets(edges: Any, edge_weight: Any, size: tuple[int, int], rule: Rule) -> Any:
    """The `LiftedSets` as tensors, if a layer with this rule can use them."""
    if not isinstance(edges, LiftedSets):
        expected, got = f"be LiftedSets for multiset={rule!r}", type(edges).__name__
        advice = f"pass {rule!r}(graph), or leave multiset='neighbourhood'"
        raise InputTypeError(parameter="edge_index", value=edges, expected=expected, got=got, advice=advice)
    if not rule.lifts or (rule.slots, rule.kinds) != (edges.slots, edges.kinds):
        sizes = f"slots={edges.slots} and kinds={edges.kinds}"
        expected = f"be a rule with {sizes} for these LiftedSets, such as the one that made them"
        raise InputError(parameter="multiset", value=rule, expected=expected)
    is_tensor = isinstance(edges.subgraphs, Tensor) and edge_weight is None
    sets = edges if is_tensor else tensor_sets(edges, weights=edge_weight)
    _ = sets.sets.sound
    check_counts(sets, *size)
    return sets


def by_blocks(function: Callable[[Tensor, TensorSets], Tensor], points: Tensor, sets: Any, width: int) -> Tensor:
    """function(lifted points, plain sets over them) of all sets, (set, out), where φ has `width` columns.

    The function gets one row block at a time, and again in the backward pass if there are several.
    """
    if points.device != sets.subgraphs.device:
        expected, advice = f"be on {points.device} like x", "move it with .to(x.device)"
        raise InputError(parameter="edge_index", expected=expected, got=str(sets.subgraphs.device), advice=advice)
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


def thinned(sets: Any, rate: float) -> Any:
    """The sets without the members that dropout removes. No rescaling: means are ratios."""
    if sets.lifted:
        return changed(sets, sets=thinned(sets.sets, rate))
    kept = torch.rand(sets.indices.shape, device=sets.device) >= rate
    weights = kept.float() if sets.weights is None else sets.weights * kept
    if torch.is_grad_enabled():
        _ = sets.apart().transpose  # of all members, for as long as the sets live
    return sets.weighted(weights)


def block_sets(sets: Any, rows: slice, device: Any) -> tuple[Tensor, Any]:
    """The points that the members of some sets are made of, and these sets over them, on a device."""
    plain = (sets.sets.block(rows) if sets.lifted else sets.block(rows)).apart()
    plain = plain.cut(0, plain.n_sets)
    used = sets.subgraphs[plain.indices] if sets.lifted else plain.indices
    points, local = torch.unique(used, return_inverse=True)
    if not sets.lifted:
        local_sets = TensorSets(plain.indptr, local, plain.weights, len(points))
        return points, split_tensors(local_sets, sets.kinds).to(device)
    empty = int((points[:1] < 0).sum())  # −1, the empty slot, comes first and stays −1
    entries = torch.arange(plain.n_entries, device=plain.device)
    members = split_tensors(TensorSets(plain.indptr, entries, plain.weights, plain.n_entries), sets.kinds)
    points = points[empty:]
    return points, unchecked(LiftedSets, members, local - empty, len(points), sets.lift).to(device)


def n_outputs(sets: Any) -> int:
    """The number of rows that a network returns: one per set, or one per node if the sets are of tuples."""
    pool = getattr(sets, "pool", None)
    return sets.n_sets if pool is None else pool.n_sets


def pooled(rows: Tensor, sets: Any) -> Tensor:
    """The rows of all sets, or the means of the rows of a node, as `LiftedSets.pooled`, with a gradient."""
    if not isinstance(sets, LiftedSets) or sets.pool is None:
        return rows
    sizes = torch.diff(torch.as_tensor(sets.pool.indptr)).to(rows.device)
    with torch.autocast(rows.device.type, enabled=False):
        return torch.segment_reduce(rows, "mean", lengths=sizes, axis=0)


def check_plain(edges: Any, what: str) -> None:
    """Raise for `LiftedSets` if `what` needs edges."""
    if isinstance(edges, LiftedSets):
        raise InputError(f"{what} needs edges between nodes, got LiftedSets; leave it out, or pass edges.")
