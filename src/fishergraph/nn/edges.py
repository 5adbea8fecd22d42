"""From `edge_index` to multisets: sorted once for each graph, and kept for as long as the edges live.

A tensor that was written to is read again. PyTorch does not count what is written through `.numpy()` or `.data`: pass a
clone of such edges.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops

from fishergraph._errors import InputError, InputTypeError
from fishergraph._validation import MOST_COLUMNS, check_host_memory, check_integer
from fishergraph.multiset import LiftedSets, Neighbourhood, Rule
from fishergraph.multiset.split import turns
from fishergraph.nn.rows import described
from fishergraph.ops.tensor_edges import WEIGH, edge_neighbourhoods, tensor_sets
from fishergraph.ops.tensor_sets import TensorSets, check_range, check_sets, check_values, outside_inference, unpack
from fishergraph.ops.tensor_split import split_tensors, tensors_side_by_side

# Graphs whose sets are kept; the oldest is forgotten first.
_MOST_KEPT = 16
_CLOSED = Neighbourhood()


class Edges(NamedTuple):
    """Multisets without weights, and the edge that each entry came from; an added loop has the number of edges."""

    sets: TensorSets
    order: Tensor


def edge_sets(
    edge_index: Any,
    edge_weight: Tensor | None = None,
    *,
    n_points: int,
    n_sets: int,
    rule: Rule = _CLOSED,
    dtype: torch.dtype = torch.float32,
) -> TensorSets:
    """The multiset of every target: the sources of its edges and, if the rule is closed, the target once.

    The direction of the rule takes the targets of every source instead, or both, apart.

    `edge_index` is a (2, edge) tensor, an `EdgeIndex`, a sparse tensor with a row per target, or `TensorSets`, which
    are used as they are. Weights are finite and not negative; an added loop has weight one. `dtype` is that of the
    points: symmetric weights are float64 for float64.
    """
    if isinstance(edge_index, TensorSets) and edge_index.kinds == rule.kinds:
        sets = edge_index if edge_weight is None else edge_index.weighted(edge_weight)
        check_counts(sets, n_points, n_sets)
        return sets if torch.compiler.is_compiling() else check_sets(sets)
    if isinstance(edge_index, TensorSets) or not isinstance(rule, Neighbourhood) or rule.decay is not None:
        expected, advice = f"be multisets for multiset={rule!r}", f"pass tensor_sets({rule!r}(graph))"
        got = type(edge_index).__name__
        raise InputTypeError(parameter="edge_index", value=edge_index, expected=expected, got=got, advice=advice)
    if getattr(edge_index, "layout", torch.strided) != torch.strided:
        compressed = tensor_sets(edge_index)
        check_counts(compressed, n_points, n_sets)
        if edge_weight is not None:
            raise InputError("the values of a sparse tensor are its weights, got edge_weight too; leave it out.")
        sources, targets, edge_weight = compressed.indices, compressed.rows, compressed.weights
        plain = edge_index
    else:
        plain = checked_edges(edge_index)
        sources, targets = plain[0], plain[1]
    if edge_weight is not None:
        edge_weight = _checked_weights(edge_weight, len(sources))
    turned = rule.direction in ("out", "both")
    if (rule.undirected or turned) and n_points != n_sets:
        expected = f"have {'direction=None' if turned else 'undirected=False'} in a bipartite graph"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice="pass each direction to a layer")
    if rule.undirected:
        ends = torch.stack([sources.long(), targets.long()])
        options: dict[str, Any] = {"closed": rule.closed, "weights": rule.weights, "dtype": dtype}
        return edge_neighbourhoods(ends, edge_weight, n_points, undirected=True, **options)
    edges = _find(edge_index, plain, sources, targets, n_points, n_sets, rule.closed, rule.direction)
    if edge_weight is None and rule.weights is None:
        return edges.sets
    if torch.is_grad_enabled():
        _ = edges.sets.apart().transpose  # found now, it is kept with the edges
    sets = edges.sets
    if edge_weight is not None:  # in the order of the entries; one for an added loop
        sets = sets.weighted(torch.cat([edge_weight, edge_weight.new_ones(1)])[edges.order])
    sets = sets if rule.weights is None else sets.weighted(WEIGH[rule.weights](sets, dtype))
    object.__setattr__(sets, "weighed", True)  # the weights were checked above
    return sets


def graph_size(source: Tensor, target: Any, edge_index: Any, size: Any, width: int) -> tuple[int, int]:
    """The numbers of points and sets: the rows of x, or for targets without rows what `size` or the edges say."""
    n_points, n_sets = source.shape[0], None
    if target is not None:
        if not isinstance(target, Tensor) or target.ndim == 0:
            expected = "be a pair (x_source, x_target) of tensors with a row for each node, or None"
            raise InputTypeError(parameter="x", expected=expected, got=described(target))
        n_sets = len(target)
    if size is not None:
        n_sets = _asked_targets(size, n_points, n_sets)
    if n_sets is None:
        if isinstance(edge_index, (TensorSets, LiftedSets)):
            n_sets = edge_index.n_sets
        elif getattr(edge_index, "layout", torch.strided) != torch.strided:
            n_sets = edge_index.shape[0]
        else:
            n_sets = getattr(edge_index, "sparse_size", lambda: (None, None))()[1]
    return n_points, n_points if n_sets is None else check_set_count(n_sets, "size", width)


def _asked_targets(size: Any, n_points: int, n_sets: int | None) -> int | None:
    """The number of targets that `size` or x says; raises if they contradict each other."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        expected, advice = "be None or a pair (sources, targets)", "leave it out if x has rows for both"
        raise InputError(parameter="size", value=size, expected=expected, advice=advice)
    asked = tuple(None if n is None else check_integer(n, "size", least=0) for n in size)
    for what, number, rows in zip(("sources", "targets"), asked, (n_points, n_sets), strict=True):
        if number is not None and rows is not None and number != rows:
            expected, advice = f"have {rows} {what}, the rows of x", "pass these, or no size"
            raise InputError(parameter="size", value=size, expected=expected, got=str(number), advice=advice)
    return n_sets if asked[1] is None else asked[1]


def listed_edges(
    edge_index: Any, edge_weight: Tensor | None, size: tuple[int, int], *, loops: bool
) -> tuple[Tensor, Tensor | None]:
    """(2, edge) and their weights, for messages; added loops come last, where PyG's explainers expect them."""
    if isinstance(edge_index, TensorSets):
        return torch.stack([edge_index.indices.long(), edge_index.rows]), edge_index.weights
    if getattr(edge_index, "layout", torch.strided) != torch.strided:
        sets = edge_sets(edge_index, n_points=size[0], n_sets=size[1], rule=Neighbourhood(closed=False))
        edges, edge_weight = torch.stack([sets.indices.long(), sets.rows]), sets.weights
    else:
        edges = checked_edges(edge_index)
    return add_remaining_self_loops(edges, edge_weight, 1.0, num_nodes=min(size)) if loops else (edges, edge_weight)


def group_sets(index: Tensor | None, ptr: Tensor | None, n_rows: int, n_groups: int) -> TensorSets:
    """The rows of every group as a multiset: those with its number in `index`, or ptr[g] … ptr[g+1] − 1."""
    if ptr is not None and not torch.compiler.is_compiling():
        sets = TensorSets(ptr.long(), torch.arange(n_rows, device=ptr.device), None, n_rows)
        if sets.sound and (int(ptr[0]), int(ptr[-1])) != (0, n_rows):
            got, advice = f"{int(ptr[0])} to {int(ptr[-1])}", "count all rows"
            raise InputError(parameter="ptr", expected=f"rise from 0 to the {n_rows} rows of x", got=got, advice=advice)
        return sets
    if ptr is not None:
        groups = torch.arange(n_groups, device=ptr.device)
        index = torch.repeat_interleave(groups, torch.diff(ptr), output_size=n_rows)
    check_groups(index, n_rows, "index")
    assert index is not None
    numbers = torch.arange(n_rows, device=index.device)
    return _find(index, index, numbers, index.long(), n_rows, n_groups, False).sets


def check_groups(index: Any, n_rows: int, name: str) -> None:
    """Raise unless `index` holds the group of every row."""
    integers = isinstance(index, Tensor) and not (index.is_floating_point() or index.is_complex())
    if not integers or index.dtype == torch.bool or index.shape != (n_rows,):
        expected = f"hold one integer for each of the {n_rows} rows, its group"
        raise InputError(parameter=name, expected=expected, got=described(index))


def check_offsets(ptr: Any) -> None:
    """Raise unless `ptr` is a vector of integers; `group_sets` checks their values."""
    integers = isinstance(ptr, Tensor) and ptr.dtype in (torch.int32, torch.int64)
    if not integers or ptr.ndim != 1 or len(ptr) == 0:
        raise InputError(parameter="ptr", expected="be integers of shape (group + 1,)", got=described(ptr))


def check_set_count(n_sets: Any, name: str, width: int) -> int:
    """A number of sets that somebody asks for; their offsets and rows of `width` floats must fit into memory."""
    n_sets = check_integer(n_sets, name, least=0, most=MOST_COLUMNS)
    if not torch.compiler.is_compiling():
        n_bytes = 4 * n_sets * (8 + max(width, 0))
        check_host_memory(n_bytes, f"{n_sets} sets need", "for their rows", f"lower {name}")
    return n_sets


def narrow(sets: TensorSets, n_sets: int, n_points: int) -> TensorSets:
    """The first `n_sets` sets, whose members are among the first `n_points` points."""
    if (n_sets, n_points) == (sets.n_sets, sets.n_points):
        return sets
    if sets.kinds > 1:
        return split_tensors(narrow(sets.apart(), sets.kinds * n_sets, n_points), sets.kinds)
    first = sets.cut(0, n_sets)
    narrowed = TensorSets(first.indptr, first.indices, first.weights, n_points)
    if torch.compiler.is_compiling():
        return narrowed
    last = int(first.indices.max()) if len(first.indices) else -1
    if last >= n_points:
        raise InputError(
            f"a batch must be sampled by hops: the {n_sets} nodes of a layer must have neighbours among the first "
            f"{n_points}, got {last}; pass the numbers of nodes per hop that the loader made with the batch, or none.",
            parameter="num_sampled_nodes_per_hop",
        )
    narrowed.__dict__.update(sound=True, weighed=True)  # as those they were cut from
    return narrowed


def checked_edges(edge_index: Any) -> Tensor:
    """The (2, edge) tensor, of an `EdgeIndex` too."""
    if not isinstance(edge_index, Tensor):
        expected = "be a (2, edge) tensor, an EdgeIndex, a sparse tensor or TensorSets"
        got = type(edge_index).__name__
        raise InputTypeError(parameter="edge_index", value=edge_index, expected=expected, got=got)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype not in (torch.int32, torch.int64):
        expected, advice = "hold integers in the shape (2, edge)", "stack sources and targets, and use .long()"
        got = described(edge_index)
        raise InputError(parameter="edge_index", value=edge_index, expected=expected, got=got, advice=advice)
    return edge_index.as_tensor() if hasattr(edge_index, "as_tensor") else edge_index  # type: ignore[operator]


def check_counts(sets: TensorSets | LiftedSets, n_points: int, n_sets: int) -> None:
    """Raise unless there are so many sets over so many points."""
    if (sets.n_sets, sets.n_points) != (n_sets, n_points):
        expected = f"hold {n_sets} sets over {n_points} points, the rows of x"
        raise InputError(parameter="edge_index", expected=expected, got=f"{sets.n_sets} over {sets.n_points}")


def _checked_weights(edge_weight: Any, n_edges: int) -> Tensor:
    """The weights as one axis, one finite float of at least zero for each edge."""
    if not isinstance(edge_weight, Tensor):
        got = type(edge_weight).__name__
        raise InputTypeError(parameter="edge_weight", expected="be a tensor", got=got, advice="use torch.as_tensor")
    edge_weight = edge_weight.squeeze(-1) if edge_weight.ndim == 2 else edge_weight
    if edge_weight.shape != (n_edges,) or not edge_weight.is_floating_point():
        expected = f"hold one float for each of the {n_edges} edges"
        raise InputError(parameter="edge_weight", expected=expected, got=described(edge_weight))
    if not torch.compiler.is_compiling():
        check_values(edge_weight)
    return edge_weight


_kept: dict[tuple, tuple[Any, Edges]] = {}  # for an edge_index: a weak reference to it, and its sets


def _find(
    owner: Any,
    plain: Tensor,
    sources: Tensor,
    targets: Tensor,
    n_points: int,
    n_sets: int,
    loops: bool,
    direction: str | None = None,
) -> Edges:
    """The sets of these edges, kept for as long as the tensor `owner` lives and is not written to."""
    if direction == "out":
        sources, targets = targets, sources
    if torch.compiler.is_compiling() and direction != "both":
        order, rows, *parts = torch.ops.fishergraph.edge_sets(sources, targets, n_points, n_sets, loops)
        sets = unpack(parts, None, n_points)
        sets.__dict__["rows"] = rows
        return Edges(sets, order)
    find = _both_ways if direction == "both" else _sorted_edges
    if plain.is_inference() or sources.is_inference():  # PyTorch does not count writes to such tensors
        return find(sources, targets, n_points, n_sets, loops)
    address = plain.data_ptr() if plain.layout == torch.strided else None
    key = (id(owner), address, plain._version, n_points, n_sets, loops, direction)
    kept = _kept.get(key)
    if kept is not None and kept[0]() is owner:
        return kept[1]
    edges = find(sources, targets, n_points, n_sets, loops)
    for oldest in list(_kept)[: 1 - _MOST_KEPT]:
        del _kept[oldest]
    _kept[key] = (weakref.ref(owner, lambda _: _kept.pop(key, None)), edges)
    return edges


@outside_inference
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
    sets.__dict__["sound"] = True  # the ends were checked above
    return Edges(sets, order)


@outside_inference
def _both_ways(sources: Tensor, targets: Tensor, n_points: int, n_sets: int, loops: bool) -> Edges:
    """The sources of every node and its targets, apart, each with a loop if it has none."""
    into, out = (_sorted_edges(*ends, n_points, n_sets, loops) for ends in ((sources, targets), (targets, sources)))
    sets = tensors_side_by_side([into.sets, out.sets])
    sets.parts.__dict__["sound"] = True  # as its sides
    return Edges(sets, torch.cat([into.order, out.order])[turns([into.sets.indptr, out.sets.indptr])[1]])


def _with_loops(indptr: Tensor, sources: Tensor, targets: Tensor, order: Tensor, n_nodes: int) -> tuple[Tensor, ...]:
    """(indptr, sources, order) with (v, v) in front of every row v < `n_nodes` that has none; nothing is sorted."""
    alone = torch.zeros(len(indptr), dtype=torch.int64, device=indptr.device)
    alone[1 : n_nodes + 1] = 1
    alone[sources[sources == targets].long() + 1] = 0
    before = alone.cumsum(0)  # loops that are inserted before the end of the row before
    positions = torch.arange(len(sources), device=indptr.device) + before[targets.long() + 1]
    rows = torch.nonzero(alone[1:]).ravel()
    full = torch.empty(len(sources) + len(rows), dtype=sources.dtype, device=indptr.device)
    full_order = torch.full_like(full, len(sources), dtype=order.dtype)
    indptr = indptr + before
    full[positions], full_order[positions] = sources, order
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
