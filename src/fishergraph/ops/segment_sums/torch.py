"""Sums over the members of multisets in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops.tensor_ops import wide_type
from fishergraph.ops.tensor_sets import TensorSets

# Members of one chain of additions; a chain of 10⁷ would be off by percents in float32.
_CHUNK = 32


def sum_segments(values: Tensor, indptr: Tensor) -> Tensor:
    """Σ over consecutive rows indptr[v] … indptr[v + 1] − 1, in order, (segment, …)."""
    return torch.segment_reduce(values, "sum", offsets=indptr, axis=0, initial=0)


def sum_sets(values: Tensor, sets: TensorSets) -> Tensor:
    """Σ over the members of every set, (set, …), differentiable: by chunks, whose sums are added in float64."""
    starts = sets.indptr[:-1] - sets.indptr[0]
    sizes = torch.diff(sets.indptr)
    first = torch.cumsum(sizes // _CHUNK + 1, 0) - (sizes // _CHUNK + 1)  # the first chunk of every set
    entries = torch.arange(values.shape[0], device=values.device)
    chunk = first[sets.rows] + (entries - starts[sets.rows]) // _CHUNK
    n_chunks = sets.n_sets + values.shape[0] // _CHUNK  # at most: no device synchronisation
    sums = values.new_zeros((n_chunks, *values.shape[1:])).index_add(0, chunk, values)
    owner = torch.searchsorted(first, torch.arange(n_chunks, device=values.device), right=True) - 1
    wide = torch.promote_types(values.dtype, wide_type(values.device))
    total = torch.zeros((sets.n_sets, *values.shape[1:]), dtype=wide, device=values.device)
    return total.index_add(0, owner, sums.to(wide)).to(values.dtype)
