"""Constructors of `TensorSets`: `tensor_sets` of edges or sets, `edge_neighbourhoods` of edges on a device.

Compressed rows are not copied. The neighbourhoods follow `multiset.neighbourhoods` and the rules of `as_graph`, on the
device: parallel edges add, an edge of weight zero is dropped, a self-loop is added once. In- and out-neighbours, if
they are kept apart, are `SplitTensorSets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph._errors import InputError
from fishergraph._records import changed
from fishergraph._validation import check_integer, look_up
from fishergraph.multiset import WEIGHTS, LiftedSets, Multisets, SplitSets
from fishergraph.ops.tensor_sets import TensorSets, bad_input, bad_type, check_device, check_range, check_sets, shown
from fishergraph.ops.tensor_split import SplitTensorSets, split_tensors, tensors_side_by_side

_MOST_SETS = 2**28  # their offsets take 2 GiB


def tensor_sets(
    edges: Any, *, n_sets: int | None = None, n_points: int | None = None, weights: Tensor | None = None
) -> Any:
    """Multisets on tensors; compressed rows are not copied.

    Parameters
    ----------
    edges : TensorSets, Multisets, LiftedSets or tensor
        A tensor is a (2, n_edges) edge index or PyG `EdgeIndex`, from points (sources) to sets (targets), or a sparse
        COO, CSR or CSC matrix whose rows are the sets and whose values are the weights. `LiftedSets` stay lifted.
    n_sets, n_points : int, optional
        Their numbers, if the edges do not say; None is the largest index plus one.
    weights : tensor of shape (n_edges,), optional
        Weights in the order of the edges.

    Returns
    -------
    TensorSets or LiftedSets
        The multisets, on the device of the edges. Members of several kinds stay apart.

    See Also
    --------
    fishergraph.neighbourhoods : Multisets of NumPy arrays.

    Examples
    --------
    >>> import torch
    >>> from fishergraph.nn import tensor_sets
    >>> tensor_sets(torch.tensor([[0, 1], [1, 0]])).n_sets
    2
    """
    if weights is not None and not isinstance(weights, Tensor):
        raise bad_type("weights", "be a tensor", weights, "use torch.as_tensor")
    if isinstance(edges, LiftedSets):
        if weights is not None:
            raise InputError("lifted sets have weights of their own, got weights too; leave them out.")
        return changed(edges, sets=tensor_sets(edges.sets), subgraphs=torch.as_tensor(edges.subgraphs))
    if isinstance(edges, (TensorSets, Multisets)) or getattr(edges, "layout", torch.strided) != torch.strided:
        sets = _from_compressed(edges, weights)
        _check_count("n_sets", n_sets, sets.n_sets)
        _check_count("n_points", n_points, sets.n_points)
        return sets
    if not isinstance(edges, Tensor):
        raise bad_type(
            "edges",
            "be a (2, edge) tensor, an EdgeIndex, a sparse tensor, Multisets or TensorSets",
            edges,
            "convert it with torch.as_tensor",
        )
    return _from_edge_index(edges, n_sets, n_points, weights)


def _check_count(name: str, count: int | None, n: int) -> None:
    if count is not None and count != n:
        raise bad_input(name, f"be {n}, as the edges say", repr(count), "leave it out")


def _from_compressed(edges: Any, weights: Tensor | None) -> TensorSets:
    """The sets of compressed or sparse input, which have a number of sets and points."""
    if isinstance(edges, TensorSets):
        return check_sets(edges if weights is None else edges.weighted(weights))
    if isinstance(edges, SplitSets):
        return split_tensors(_from_compressed(edges.parts, weights), edges.kinds)
    if isinstance(edges, Multisets):
        arrays = [
            None if a is None else torch.from_numpy(a if a.flags.writeable else a.copy())
            for a in (edges.indptr, edges.indices, edges.weights)
        ]
        return check_sets(TensorSets(arrays[0], arrays[1], arrays[2] if weights is None else weights, edges.n_points))  # type: ignore
    if weights is not None:
        raise InputError("the values of a sparse tensor are its weights, got weights too; leave them out.")
    return _from_sparse(edges)


def _from_sparse(matrix: Tensor) -> TensorSets:
    """Rows are sets; CSR without a copy, the others sorted once."""
    if matrix.ndim != 2 or matrix.layout not in (torch.sparse_csr, torch.sparse_csc, torch.sparse_coo):
        raise bad_input(
            "a sparse tensor", "be a COO, CSR or CSC matrix", f"{matrix.layout} of {tuple(matrix.shape)}", "convert it"
        )
    n_sets, n_points = matrix.shape
    if matrix.layout == torch.sparse_csr:
        return check_sets(TensorSets(matrix.crow_indices().long(), matrix.col_indices(), matrix.values(), n_points))
    if matrix.layout == torch.sparse_csc:
        points = torch.repeat_interleave(torch.diff(matrix.ccol_indices()))
        targets, values = matrix.row_indices(), matrix.values()
    else:
        matrix = matrix.coalesce()
        (targets, points), values = matrix.indices(), matrix.values()
    return _sorted_by_set(points, targets, values, n_sets, n_points)


def _from_edge_index(edges: Tensor, n_sets: int | None, n_points: int | None, weights: Tensor | None) -> TensorSets:
    """Sources are points, targets are sets (PyG's flow)."""
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype not in (torch.int32, torch.int64):
        raise bad_input(
            "edges",
            "be int32 or int64 of shape (2, edge)",
            f"{tuple(edges.shape)} of {edges.dtype}",
            "stack sources and targets",
        )
    size: Sequence[int | None] = getattr(edges, "sparse_size", lambda: (None, None))()
    in_order = getattr(edges, "is_sorted_by_col", False)
    points, targets = getattr(edges, "as_tensor", lambda: edges)()
    n_points, n_sets = (
        None if count is None else check_integer(count, name, least=0, most=_MOST_SETS)
        for name, count in (("n_points", n_points), ("n_sets", n_sets))
    )
    n_points = check_range(points, size[0] if n_points is None else n_points, "sources")
    n_sets = check_range(targets, size[1] if n_sets is None else n_sets, "targets")
    if weights is not None and weights.shape != points.shape:
        raise bad_input(
            "weights",
            f"hold one number for each of the {len(points)} edges",
            f"shape {tuple(weights.shape)}",
            "pass them in the order of the edges",
        )
    if weights is not None:
        check_device(weights, edges.device, "weights", "the edges")
    if in_order:
        borders = torch.arange(n_sets + 1, device=edges.device, dtype=targets.dtype)
        return check_sets(TensorSets(torch.searchsorted(targets.contiguous(), borders), points, weights, n_points))
    return _sorted_by_set(points, targets, weights, n_sets, n_points)


def _sorted_by_set(points: Tensor, targets: Tensor, weights: Tensor | None, n_sets: int, n_points: int) -> TensorSets:
    targets, order = torch.sort(targets, stable=True)
    borders = torch.arange(n_sets + 1, device=points.device, dtype=targets.dtype)
    indptr = torch.searchsorted(targets, borders)
    return check_sets(TensorSets(indptr, points[order], None if weights is None else weights[order], n_points))


class _Edges(NamedTuple):
    """Distinct edges in the order of (row, column): their keys row · n + column, and their weights or None."""

    keys: Tensor
    weights: Tensor | None


def edge_neighbourhoods(
    edge_index: Tensor,
    edge_weights: Tensor | None,
    n_nodes: int,
    *,
    closed: bool = True,
    weights: str | None = None,
    undirected: bool = False,
    direction: str | None = None,
    dtype: torch.dtype = torch.float32,
) -> TensorSets:
    """N(v), with v itself if `closed`; the source of an edge is a member of the set of its target.

    `direction` is that of `Neighbourhood`, `dtype` that of the points.
    """
    source, target = check_edges(edge_index, edge_weights, n_nodes)
    if direction in ("out", "both"):
        options: dict[str, Any] = {"closed": closed, "weights": weights, "undirected": undirected, "dtype": dtype}
        out = edge_neighbourhoods(torch.stack([target, source]), edge_weights, n_nodes, **options)
        if direction == "out":
            return out
        return tensors_side_by_side([edge_neighbourhoods(edge_index, edge_weights, n_nodes, **options), out])
    edges = _merge(target.long() * n_nodes + source.long(), edge_weights, "sum")
    if edges.weights is not None:
        live = edges.weights > 0
        edges = _Edges(edges.keys[live], edges.weights[live])
        edges = _Edges(edges.keys, None) if bool((edges.weights == 1).all()) else edges
    if undirected:
        back = edges.keys % n_nodes * n_nodes + edges.keys // n_nodes
        both = None if edges.weights is None else torch.cat([edges.weights, edges.weights])
        edges = _merge(torch.cat([edges.keys, back]), both, "max", ones=False)
    if closed:
        edges = _with_loops(edges, n_nodes)
    borders = torch.arange(n_nodes + 1, device=edges.keys.device) * n_nodes
    indices = (edges.keys % n_nodes).to(torch.int32 if n_nodes < 2**31 else torch.int64)
    sets = TensorSets(torch.searchsorted(edges.keys, borders), indices, edges.weights, n_nodes)
    rule = "edge" if weights is None else weights
    look_up(WEIGHTS, rule, "weights")
    return sets.weighted(WEIGH[rule](sets, dtype))


def check_edges(edge_index: Tensor, weights: Tensor | None, n_nodes: int) -> Tensor:
    """The edges, or an error if they are invalid."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point() or edge_index.is_complex():
        raise bad_input(
            "edge_index",
            "be integers of shape (2, E)",
            f"{tuple(edge_index.shape)} of {edge_index.dtype}",
            "stack sources and targets",
        )
    if edge_index.shape[1]:
        low, high = (int(end) for end in torch.aminmax(edge_index))
        if low < 0 or high >= n_nodes:
            bad = high if low >= 0 else low
            raise bad_input(
                "edge endpoints", f"be nodes 0 to {n_nodes - 1}, the rows of X", f"{bad}", "repair the edge"
            )
    if weights is not None and (weights.shape != edge_index.shape[1:] or not weights.is_floating_point()):
        raise bad_input(
            "edge weights", f"be floats of shape ({edge_index.shape[1]},)", shown(weights), "pass one per edge"
        )
    if weights is not None and not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        bad = int(torch.nonzero(~(torch.isfinite(weights) & (weights >= 0)))[0])
        raise bad_input(
            "edge weights",
            "be finite and not negative",
            f"{float(weights[bad]):g} on edge {int(edge_index[0, bad])} -> {int(edge_index[1, bad])} "
            "(the first bad one)",
            "repair or drop such edges",
        )
    return edge_index


def _merge(keys: Tensor, weights: Tensor | None, rule: str, *, ones: bool = True) -> _Edges:
    """Sorted keys, each once; the weights of equal ones summed, or the largest. Without weights a sum counts them."""
    if weights is None and not ones:
        return _Edges(torch.unique(keys), None)
    if weights is None:
        keys, counts = torch.unique_consecutive(torch.sort(keys).values, return_counts=True)
        return _Edges(keys, counts.float() if len(keys) and int(counts.max()) > 1 else None)
    keys, order = torch.sort(keys, stable=True)
    kinds, counts = torch.unique_consecutive(keys, return_counts=True)
    # Sums over sorted runs have a fixed order; scattered additions on a GPU do not.
    merged = weights[order] if len(kinds) == len(keys) else torch.segment_reduce(weights[order], rule, lengths=counts)
    return _Edges(kinds, merged)


def _with_loops(edges: _Edges, n_nodes: int) -> _Edges:
    """The edges with (v, v), of weight one, for every v without a self-loop."""
    loops = torch.arange(n_nodes, device=edges.keys.device) * (n_nodes + 1)
    missing = loops[~torch.isin(loops, edges.keys[edges.keys % (n_nodes + 1) == 0])]
    keys, order = torch.sort(torch.cat([edges.keys, missing]))
    if edges.weights is None:
        return _Edges(keys, None)
    return _Edges(keys, torch.cat([edges.weights, edges.weights.new_ones(len(missing))])[order])


def _symmetric(sets: TensorSets, dtype: torch.dtype) -> Tensor:
    """a_vu = w_vu / √(d_v d_u), with d_v the weight v receives and d_u the weight u sends; float64 for such points."""
    if isinstance(sets, SplitTensorSets):
        return sets.from_sides([_symmetric(side, dtype) for side in sets.sides])
    received, sent = _received(sets), sent_weights(sets)
    result = torch.float32 if sets.weights is None else sets.weights.dtype
    result = torch.float64 if dtype == torch.float64 else result
    kind = torch.promote_types(result, torch.float32)
    # The inner `where` is for the gradient: the slope of 1/√d at zero is infinite, and 0 · ∞ is NaN.
    left, right = (torch.where(d > 0, torch.where(d > 0, d, 1.0).rsqrt(), 0.0).to(kind) for d in (received, sent))
    scaled = right[sets.indices.long()] * left[sets.rows]
    return scaled if sets.weights is None else (scaled * sets.weights).to(result)


def _received(sets: TensorSets) -> Tensor:
    """Σ_u w_vu, float64."""
    sizes = torch.diff(sets.indptr)
    if sets.weights is None:
        return sizes.double()
    return torch.segment_reduce(sets.weights.double(), "sum", lengths=sizes, initial=0.0)


def sent_weights(sets: TensorSets) -> Tensor:
    """Σ_v w_vu, float64: the weight with which every point is a member."""
    flipped = sets.transpose
    return _received(flipped.sets.weighted(None if sets.weights is None else sets.weights[flipped.entries]))


# (sets, dtype of the points) → weights
WEIGH = {"edge": lambda sets, dtype: sets.weights, "uniform": lambda sets, dtype: None, "symmetric": _symmetric}


def moved_sets(sets: Multisets | LiftedSets, device: torch.device) -> Any:
    """Multisets of NumPy arrays, plain or lifted, as tensors on the device."""
    return tensor_sets(sets).to(device)


def given_sets(sets: TensorSets, n_rows: int, device: torch.device) -> TensorSets:
    """Multisets of a caller, checked: one for each row of X, over these rows."""
    if sets.device != device:
        raise bad_input("graph", f"be on {device}, where X is", sets.device, "move it with .to(X.device)")
    if sets.n_sets != n_rows or sets.n_points != n_rows:
        raise bad_input(
            "graph",
            f"hold one multiset for each of the {n_rows} rows of X, over these rows",
            f"{sets.n_sets} over {sets.n_points}",
            "pass the sets of these rows",
        )
    return check_sets(sets)
