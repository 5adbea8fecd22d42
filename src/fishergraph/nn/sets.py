"""From `edge_index` to multisets: sorted once for each graph, and remembered for as long as the edges live.

A tensor that was written to is read again. PyTorch does not see what is written past it, through `.numpy()` or
`.data`: pass a clone of such edges.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops

from fishergraph._validation import check_integer, look_up
from fishergraph.multiset import LiftedSets
from fishergraph.ops.tensor_edges import WEIGH, tensor_sets
from fishergraph.ops.tensor_sets import TensorSets, check_range, check_sets, check_values, outside_inference, unpack

# Graphs whose sets are remembered; the oldest is forgotten first.
_MOST = 16


class Edges(NamedTuple):
    """Multisets without weights, and the edge that each entry came from; the number of edges stands for a new loop."""

    sets: TensorSets
    order: Tensor


def edge_sets(
    edge_index: Any,
    edge_weight: Tensor | None = None,
    *,
    n_points: int,
    n_sets: int,
    loops: bool = True,
    weights: str | None = None,
    dtype: torch.dtype = torch.float32,
) -> TensorSets:
    """The multiset of every target: the sources of its edges, and with `loops` the target itself, once.

    Parameters
    ----------
    edge_index : a (2, edge) tensor or `EdgeIndex`, from sources (points) to targets (sets); a sparse COO, CSR or CSC
        tensor with a row for each target, whose values are the weights; or `TensorSets`, which are taken as they are.
    edge_weight : (edge,), finite and not negative; a loop that is added weighs one.
    weights : None keeps the weights; "uniform" drops them; "symmetric" divides them by the roots of both degrees.
    dtype : of the points; symmetric weights are float64 for float64.
    """
    weigh = look_up(WEIGH, "edge" if weights is None else weights, "weights")
    if isinstance(edge_index, TensorSets):
        sets = edge_index if edge_weight is None else edge_index.weighted(edge_weight)
        _check_counts(sets, n_points, n_sets)
        return sets if torch.compiler.is_compiling() else check_sets(sets)
    if getattr(edge_index, "layout", torch.strided) != torch.strided:
        given = tensor_sets(edge_index)
        _check_counts(given, n_points, n_sets)
        if edge_weight is not None:
            raise ValueError("the values of a sparse tensor are its weights, got edge_weight too; leave it out.")
        sources, targets, edge_weight = given.indices, given.rows, given.weights
    else:
        sources, targets = _ends(edge_index)
    edges = _find(edge_index, sources, targets, n_points, n_sets, loops)
    if edge_weight is None and weights is None:
        return edges.sets
    if torch.is_grad_enabled():
        _ = edges.sets.transpose  # found here, it is remembered with the edges
    sets = edges.sets.weighted(_entry_weights(edge_weight, edges, len(sources)))
    sets = sets if weights is None else sets.weighted(weigh(sets, dtype))
    object.__setattr__(sets, "weighed", True)  # the weights were looked at above
    return sets


def graph_size(source: Tensor, target: Tensor | None, edge_index: Any, size: Any) -> tuple[int, int]:
    """(points, sets): the rows of x; where x has none for the targets, what `size` or the edges say of them."""
    asked = _pair(size)
    rows = source.shape[0], None if target is None else target.shape[0]
    for what, number, found in zip(("sources", "targets"), asked, rows, strict=True):
        if number is not None and found is not None and number != found:
            raise ValueError(f"size must have {found} {what}, the rows of x, got {number}; pass these, or no size.")
    known = rows[1] if asked[1] is None else asked[1]
    if known is None and isinstance(edge_index, (TensorSets, LiftedSets)):
        known = edge_index.n_sets
    elif known is None and getattr(edge_index, "layout", torch.strided) != torch.strided:
        known = edge_index.shape[0]
    elif known is None:
        known = getattr(edge_index, "sparse_size", lambda: (None, None))()[1]
    return rows[0], rows[0] if known is None else int(known)


def _pair(size: Any) -> tuple[int | None, int | None]:
    """The numbers of sources and targets, None where they are not said."""
    if size is None:
        return None, None
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise ValueError(f"size must be None or a pair (sources, targets), got {size!r}; leave it out where x says it.")
    first, second = (None if n is None else check_integer(n, "size", least=0) for n in size)
    return first, second


def listed_edges(
    edge_index: Any, edge_weight: Tensor | None, size: tuple[int, int], *, loops: bool
) -> tuple[Tensor, Tensor | None]:
    """(2, edge) and their weights, for messages; loops stand at the end, where PyG's explainers look for them."""
    if isinstance(edge_index, TensorSets):
        return torch.stack([edge_index.indices.long(), edge_index.rows]), edge_index.weights
    if getattr(edge_index, "layout", torch.strided) != torch.strided:
        sets = edge_sets(edge_index, n_points=size[0], n_sets=size[1], loops=False)
        edges, edge_weight = torch.stack([sets.indices.long(), sets.rows]), sets.weights
    else:
        edges = plain_edges(edge_index)
    return add_remaining_self_loops(edges, edge_weight, 1.0, num_nodes=min(size)) if loops else (edges, edge_weight)


def group_sets(index: Tensor | None, ptr: Tensor | None, n_rows: int, n_groups: int) -> TensorSets:
    """The rows of every group as a multiset over the rows: those that `index` sends there, or ptr[g] … ptr[g+1] − 1."""
    if ptr is not None and not torch.compiler.is_compiling():
        sets = TensorSets(ptr.long(), torch.arange(n_rows, device=ptr.device), None, n_rows)
        if sets.sound and (int(ptr[0]), int(ptr[-1])) != (0, n_rows):
            raise ValueError(
                f"ptr must rise from 0 to the {n_rows} rows of x, got {int(ptr[0])} to {int(ptr[-1])}; count all rows."
            )
        return sets
    if ptr is not None:
        groups = torch.arange(n_groups, device=ptr.device)
        index = torch.repeat_interleave(groups, torch.diff(ptr), output_size=n_rows)
    check_groups(index, n_rows, "index")
    assert index is not None
    numbers = torch.arange(n_rows, device=index.device)
    return _find(index, numbers, index.long(), n_rows, n_groups, False).sets


def check_groups(index: Any, n_rows: int, name: str) -> None:
    """Raise unless `index` says of each row to which group it belongs."""
    whole = isinstance(index, Tensor) and not (index.is_floating_point() or index.is_complex())
    if not whole or index.dtype == torch.bool or index.shape != (n_rows,):
        got = f"{index.dtype} of {tuple(index.shape)}" if isinstance(index, Tensor) else type(index).__name__
        raise ValueError(
            f"{name} must hold one whole number for each of the {n_rows} rows, got {got}; pass the group of every row."
        )


def narrow(sets: TensorSets, n_sets: int, n_points: int) -> TensorSets:
    """The first `n_sets` sets, whose members are among the first `n_points` points."""
    if (n_sets, n_points) == (sets.n_sets, sets.n_points):
        return sets
    part = sets.cut(0, n_sets)
    own = TensorSets(part.indptr, part.indices, part.weights, n_points)
    if torch.compiler.is_compiling():
        return own
    last = int(part.indices.max()) if len(part.indices) else -1
    if last >= n_points:
        raise ValueError(
            f"a batch must be sampled by hops: the {n_sets} nodes of a layer must have neighbours among the first "
            f"{n_points}, got {last}; pass the numbers that the loader gave with the batch, or none."
        )
    own.__dict__.update(sound=True, weighed=True)  # as those they were cut from
    return own


def _ends(edge_index: Any) -> tuple[Tensor, Tensor]:
    """(sources, targets) of a (2, edge) tensor."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            "edge_index must be a (2, edge) tensor, an EdgeIndex, a sparse tensor or TensorSets, got "
            f"{type(edge_index).__name__}; convert it with torch.as_tensor."
        )
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"edge_index must hold whole numbers in the shape (2, edge), got {edge_index.dtype} of "
            f"{tuple(edge_index.shape)}; stack sources and targets and cast them with .long()."
        )
    plain = plain_edges(edge_index)
    return plain[0], plain[1]


def plain_edges(edge_index: Any) -> Tensor:
    """The (2, edge) tensor itself, of an `EdgeIndex` too."""
    return edge_index.as_tensor() if hasattr(edge_index, "as_tensor") else edge_index


def _check_counts(sets: TensorSets, n_points: int, n_sets: int) -> None:
    if (sets.n_sets, sets.n_points) != (n_sets, n_points):
        raise ValueError(
            f"the multisets must be {n_sets} over {n_points} points, the rows of x, got {sets.n_sets} over "
            f"{sets.n_points}; pass the sets of these nodes."
        )


def _entry_weights(edge_weight: Tensor | None, edges: Edges, n_edges: int) -> Tensor | None:
    """The weights in the order of the entries; one for an added loop."""
    if edge_weight is None:
        return None
    if not isinstance(edge_weight, Tensor):
        raise TypeError(f"edge_weight must be a tensor, got {type(edge_weight).__name__}; use torch.as_tensor.")
    edge_weight = edge_weight.squeeze(-1) if edge_weight.ndim == 2 else edge_weight
    if edge_weight.shape != (n_edges,) or not edge_weight.is_floating_point():
        raise ValueError(
            f"edge_weight must hold one float for each of the {n_edges} edges, got {edge_weight.dtype} of "
            f"{tuple(edge_weight.shape)}; pass such weights."
        )
    if not torch.compiler.is_compiling():
        check_values(edge_weight)
    return torch.cat([edge_weight, edge_weight.new_ones(1)])[edges.order]


_known: dict[tuple, tuple[Any, Edges]] = {}  # of an edge_index: a weak reference to it, and its sets


@outside_inference
def _find(edge_index: Any, sources: Tensor, targets: Tensor, n_points: int, n_sets: int, loops: bool) -> Edges:
    """The sets of these edges: remembered where the very same tensor was seen before and has not been written to."""
    if torch.compiler.is_compiling():
        order, rows, *parts = torch.ops.fishergraph.edge_sets(sources, targets, n_points, n_sets, loops)
        sets = unpack(parts, None, n_points)
        sets.__dict__["rows"] = rows
        return Edges(sets, order)
    plain = plain_edges(edge_index)
    if plain.is_inference() or sources.is_inference():  # nobody counts what is written to such tensors
        return _sorted_edges(sources, targets, n_points, n_sets, loops)
    place = plain.data_ptr() if plain.layout == torch.strided else None
    key = (id(edge_index), place, plain._version, n_points, n_sets, loops)
    seen = _known.get(key)
    if seen is not None and seen[0]() is edge_index:
        return seen[1]
    edges = _sorted_edges(sources, targets, n_points, n_sets, loops)
    for oldest in list(_known)[: 1 - _MOST]:
        del _known[oldest]
    _known[key] = (weakref.ref(edge_index, lambda _: _known.pop(key, None)), edges)
    return edges


def _sorted_edges(sources: Tensor, targets: Tensor, n_points: int, n_sets: int, loops: bool) -> Edges:
    """The edges by target, in their order; with `loops` a loop for every target that is a point and has none."""
    check_range(sources, n_points, "sources")
    check_range(targets, n_sets, "targets")
    if bool((targets[1:] >= targets[:-1]).all()):
        order = torch.arange(len(targets), device=targets.device)
    else:
        targets, order = torch.sort(targets, stable=True)
        sources = sources[order]
    borders = torch.arange(n_sets + 1, device=targets.device, dtype=targets.dtype)
    indptr = torch.searchsorted(targets.contiguous(), borders)
    if loops:
        indptr, sources, order = _with_loops(indptr, sources, targets, order, min(n_points, n_sets))
    sets = TensorSets(indptr, sources, None, n_points)
    sets.__dict__["sound"] = True  # the ends were looked at above
    return Edges(sets, order)


def _with_loops(indptr: Tensor, sources: Tensor, targets: Tensor, order: Tensor, n_nodes: int) -> tuple[Tensor, ...]:
    """(indptr, sources, order) with (v, v) in front of every row v < `n_nodes` that has none; nothing is sorted."""
    alone = torch.zeros(len(indptr), dtype=torch.int64, device=indptr.device)
    alone[1 : n_nodes + 1] = 1
    alone[sources[sources == targets].long() + 1] = 0
    before = alone.cumsum(0)  # loops that are put in front of the end of the row before
    places = torch.arange(len(sources), device=indptr.device) + before[targets.long() + 1]
    rows = torch.nonzero(alone[1:]).ravel()
    full = torch.empty(len(sources) + len(rows), dtype=sources.dtype, device=indptr.device)
    full_order = torch.full_like(full, len(sources), dtype=order.dtype)
    indptr = indptr + before
    full[places], full_order[places] = sources, order
    full[indptr[rows]] = rows.to(full.dtype)
    return indptr, full, full_order


@torch.library.custom_op("fishergraph::edge_sets", mutates_args=())
def _edge_sets(sources: Tensor, targets: Tensor, n_points: int, n_sets: int, loops: bool) -> list[Tensor]:
    """`_sorted_edges` as one node of a compiled graph: order, rows, and the sets with their transpose, packed."""
    sets, order = _sorted_edges(sources, targets, n_points, n_sets, loops)
    return [part.clone() for part in (order, sets.rows, *sets.pack(transpose=True))]


@_edge_sets.register_fake
def _(sources, targets, n_points, n_sets, loops):
    context = torch.library.get_ctx()
    n_entries = context.new_dynamic_size()
    long = sources.new_empty(n_entries, dtype=torch.int64)

    def rows(n_rows: int) -> list[Tensor]:
        n_hubs, n_parts = context.new_dynamic_size(), context.new_dynamic_size()
        sizes = (n_hubs, n_hubs + 1, n_parts, n_parts, n_parts)
        hubs = [sources.new_empty(size, dtype=torch.int64) for size in sizes]
        return [sources.new_empty(n_rows + 1, dtype=torch.int64), sources.new_empty(n_entries), *hubs]

    return [long, torch.empty_like(long), *rows(n_sets), torch.empty_like(long), *rows(n_points)]
