"""The neighbourhoods of an edge list that is on a device, without a trip through the host: `multiset.neighbourhoods`
and the rules of `as_graph` on tensors. Parallel edges add, an edge of weight zero is none, a loop is added once."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph._validation import look_up
from fishergraph.multiset import WEIGHTS
from fishergraph.ops.torch_sets import TensorSets, check_sets


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
    return sets.weighted(WEIGH[_known(weights)](sets, dtype))


def _known(weights: str | None) -> str:
    name = "edge" if weights is None else weights
    look_up(WEIGHTS, name, "weights")
    return name


def check_edges(edge_index: Tensor, weights: Tensor | None, n_nodes: int) -> Tensor:
    """The edges, or the sentence that says what is wrong with them."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point() or edge_index.is_complex():
        raise ValueError(
            f"edge_index must be whole numbers of shape (2, E), got {tuple(edge_index.shape)} of {edge_index.dtype}; "
            "stack sources and targets."
        )
    if edge_index.shape[1]:
        low, high = (int(end) for end in torch.aminmax(edge_index))
        if low < 0 or high >= n_nodes:
            bad = high if low >= 0 else low
            raise ValueError(
                f"edge endpoints must be nodes 0 to {n_nodes - 1}, the rows of X, got {bad}; repair the edge."
            )
    if weights is not None and (weights.shape != edge_index.shape[1:] or not weights.is_floating_point()):
        raise ValueError(
            f"edge weights must be floats of shape ({edge_index.shape[1]},), got {weights.dtype} of "
            f"{tuple(weights.shape)}; pass one per edge."
        )
    if weights is not None and not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        bad = int(torch.nonzero(~(torch.isfinite(weights) & (weights >= 0)))[0])
        raise ValueError(
            f"edge weights must be finite and not negative, got {float(weights[bad]):g} on edge "
            f"{int(edge_index[0, bad])} -> {int(edge_index[1, bad])} (the first bad one); repair or drop such edges."
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


def moved_sets(sets: Any, device: torch.device) -> Any:
    """Multisets of NumPy arrays, plain or lifted, as tensors on the device."""
    from fishergraph.ops.torch_edges import tensor_sets

    return tensor_sets(sets).to(device)


def given_sets(sets: TensorSets, n_rows: int, device: torch.device) -> TensorSets:
    """Prepared multisets, checked: one for each row of X, over these rows."""
    if sets.device != device:
        raise ValueError(f"graph must be on {device}, where X is, got {sets.device}; move it with .to(X.device).")
    if sets.n_sets != n_rows or sets.n_points != n_rows:
        raise ValueError(
            f"graph must hold one multiset for each of the {n_rows} rows of X, over these rows, "
            f"got {sets.n_sets} over {sets.n_points}; pass the sets of these rows."
        )
    return check_sets(sets)
