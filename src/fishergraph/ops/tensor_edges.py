"""The ways into `TensorSets`: `tensor_sets` of what people have, and `edge_neighbourhoods` of edges on a device.

Nothing is copied that already is in compressed rows. The neighbourhoods follow `multiset.neighbourhoods` and the rules
of `as_graph`, without a trip through the host: parallel edges add, an edge of weight zero is dropped, a self-loop is
added once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import changed
from fishergraph._validation import check_integer, look_up
from fishergraph.multiset import WEIGHTS, LiftedSets, Multisets
from fishergraph.ops.tensor_sets import TensorSets, check_range, check_sets

_MOST_SETS = 2**28  # whose offsets take 2 GiB


def tensor_sets(
    edges: Any, *, n_sets: int | None = None, n_points: int | None = None, weights: Tensor | None = None
) -> Any:
    """Multisets on tensors; nothing is copied that already is in compressed rows.

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
        The multisets, on the device of the edges.

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
        raise InputTypeError(
            parameter="weights",
            expected="be a tensor",
            got=f"{type(weights).__name__}",
            advice="use torch.as_tensor",
        )
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
        raise InputTypeError(
            parameter="edges",
            expected="be a (2, edge) tensor, an EdgeIndex, a sparse tensor, Multisets or TensorSets",
            got=f"{type(edges).__name__}",
            advice="convert it with torch.as_tensor",
        )
    return _from_edge_index(edges, n_sets, n_points, weights)


def _check_count(name: str, asked: int | None, found: int) -> None:
    if asked is not None and asked != found:
        raise InputError(
            parameter=name,
            expected=f"be {found}, as the edges say",
            got=f"{asked!r}",
            advice="leave it out",
        )


def _from_compressed(edges: Any, weights: Tensor | None) -> TensorSets:
    """Of sets that know their own sizes."""
    if isinstance(edges, TensorSets):
        return check_sets(edges if weights is None else edges.weighted(weights))
    if isinstance(edges, Multisets):
        arrays = [
            None if a is None else torch.from_numpy(_own(a)) for a in (edges.indptr, edges.indices, edges.weights)
        ]
        return check_sets(TensorSets(arrays[0], arrays[1], arrays[2] if weights is None else weights, edges.n_points))  # type: ignore
    if weights is not None:
        raise InputError("the values of a sparse tensor are its weights, got weights too; leave them out.")
    return _from_sparse(edges)


def _own(array: np.ndarray) -> np.ndarray:
    """The array, copied where it is read-only: torch has no read-only tensors."""
    return array if array.flags.writeable else array.copy()


def _from_sparse(matrix: Tensor) -> TensorSets:
    """Rows are sets; CSR without a copy, the others sorted once."""
    if matrix.ndim != 2 or matrix.layout not in (torch.sparse_csr, torch.sparse_csc, torch.sparse_coo):
        raise InputError(
            parameter="a sparse tensor",
            expected="be a COO, CSR or CSC matrix",
            got=f"{matrix.layout} of {tuple(matrix.shape)}",
            advice="convert it",
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
        raise InputError(
            parameter="edges",
            expected="be int32 or int64 of shape (2, edge)",
            got=f"{tuple(edges.shape)} of {edges.dtype}",
            advice="stack sources and targets",
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
        raise InputError(
            parameter="weights",
            expected=f"hold one number for each of the {len(points)} edges",
            got=f"shape {tuple(weights.shape)}",
            advice="pass them in the order of the edges",
        )
    if weights is not None and weights.device != edges.device:
        raise InputError(
            parameter="weights",
            expected=f"be on {edges.device} like the edges",
            got=f"{weights.device}",
            advice="move them there",
        )
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
    dtype: torch.dtype = torch.float32,
) -> TensorSets:
    """N(v), with v itself when `closed`; an edge's source enters the set of its target. `dtype` is of the points."""
    source, target = check_edges(edge_index, edge_weights, n_nodes)
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
    return sets.weighted(WEIGH[_known_rule(weights)](sets, dtype))


def _known_rule(weights: str | None) -> str:
    name = "edge" if weights is None else weights
    look_up(WEIGHTS, name, "weights")
    return name


def check_edges(edge_index: Tensor, weights: Tensor | None, n_nodes: int) -> Tensor:
    """The edges, or the sentence that says what is wrong with them."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point() or edge_index.is_complex():
        raise InputError(
            parameter="edge_index",
            expected="be integers of shape (2, E)",
            got=f"{tuple(edge_index.shape)} of {edge_index.dtype}",
            advice="stack sources and targets",
        )
    if edge_index.shape[1]:
        low, high = (int(end) for end in torch.aminmax(edge_index))
        if low < 0 or high >= n_nodes:
            bad = high if low >= 0 else low
            raise InputError(
                parameter="edge endpoints",
                expected=f"be nodes 0 to {n_nodes - 1}, the rows of X",
                got=f"{bad}",
                advice="repair the edge",
            )
    if weights is not None and (weights.shape != edge_index.shape[1:] or not weights.is_floating_point()):
        raise InputError(
            parameter="edge weights",
            expected=f"be floats of shape ({edge_index.shape[1]},)",
            got=f"{weights.dtype} of {tuple(weights.shape)}",
            advice="pass one per edge",
        )
    if weights is not None and not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        bad = int(torch.nonzero(~(torch.isfinite(weights) & (weights >= 0)))[0])
        raise InputError(
            parameter="edge weights",
            expected="be finite and not negative",
            got=f"{float(weights[bad]):g} on edge {int(edge_index[0, bad])} -> {int(edge_index[1, bad])} "
            "(the first bad one)",
            advice="repair or drop such edges",
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
    # Sums over sorted runs have one order; scattered additions on a card have none.
    merged = weights[order] if len(kinds) == len(keys) else torch.segment_reduce(weights[order], rule, lengths=counts)
    return _Edges(kinds, merged)


def _with_loops(edges: _Edges, n_nodes: int) -> _Edges:
    """The edges with (v, v), of weight one, for every v that has none."""
    loops = torch.arange(n_nodes, device=edges.keys.device) * (n_nodes + 1)
    missing = loops[~torch.isin(loops, edges.keys[edges.keys % (n_nodes + 1) == 0])]
    keys, order = torch.sort(torch.cat([edges.keys, missing]))
    if edges.weights is None:
        return _Edges(keys, None)
    return _Edges(keys, torch.cat([edges.weights, edges.weights.new_ones(len(missing))])[order])


def _symmetric(sets: TensorSets, dtype: torch.dtype) -> Tensor:
    """a_vu = w_vu / √(d_v d_u), with d_v the weight v receives and d_u the weight u sends; float64 for such points."""
    received, sent = _received(sets), sent_weights(sets)
    given = torch.float32 if sets.weights is None else sets.weights.dtype
    given = torch.float64 if dtype == torch.float64 else given
    kind = torch.promote_types(given, torch.float32)
    # The inner one for the gradient: the slope of 1/√d at zero is no number, and 0 · NaN is none either.
    left, right = (torch.where(d > 0, torch.where(d > 0, d, 1.0).rsqrt(), 0.0).to(kind) for d in (received, sent))
    scaled = right[sets.indices.long()] * left[sets.rows]
    return scaled if sets.weights is None else (scaled * sets.weights).to(given)


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
    """Prepared multisets, checked: one for each row of X, over these rows."""
    if sets.device != device:
        raise InputError(
            parameter="graph",
            expected=f"be on {device}, where X is",
            got=f"{sets.device}",
            advice="move it with .to(X.device)",
        )
    if sets.n_sets != n_rows or sets.n_points != n_rows:
        raise InputError(
            parameter="graph",
            expected=f"hold one multiset for each of the {n_rows} rows of X, over these rows",
            got=f"{sets.n_sets} over {sets.n_points}",
            advice="pass the sets of these rows",
        )
    return check_sets(sets)
