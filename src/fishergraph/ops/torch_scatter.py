"""The M-step in plain PyTorch, on any device: the readable gradient, the fallback, and the check of the kernels.

It holds the members' points of all sets side by side, (entry, feature), so it is neither small nor fast; the anchors
are taken one at a time, so that nothing of the size entries × features × anchors exists.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops.torch_kernels import bounded, wide_type
from fishergraph.ops.torch_sets import TensorSets

# Members of a set that one chain of additions may sum; one of 10⁷ would be off by percents in float32.
_CHUNK = 32


def attend(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, *, prior: float = 0.0, by_entry: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor) (Eq. 17); the first two have gradients.

    μ_vj = (κ w_j + Σ_e a_e α_ej x_e) / (κ + Σ_e a_e α_ej), relative to the largest log of every set and anchor.
    """
    members = _entries(sets, sets.indices).long()
    entry_logs = _entries(sets, logs) if by_entry else logs[members]  # (entry, anchor)
    weights = logs.new_ones(()) if sets.weights is None else _entries(sets, sets.weights).to(logs.dtype)[:, None]
    shift = _highest(entry_logs.detach(), weights.detach(), sets, prior)  # (set, anchor)
    shares = weights * torch.exp(bounded(entry_logs - shift[sets.rows]))
    own = torch.exp(shift.new_tensor(prior).log() - shift)  # the anchor is one more member, with weight κ
    whole = _sum_sets(shares, sets) + own
    filled = ~(whole <= 0)  # what is no number stays none
    safe = torch.where(filled, whole, torch.ones_like(whole))
    x = points[members].to(logs.dtype)
    sums = torch.stack([_sum_sets(shares[:, j, None] * x, sets) for j in range(anchors.shape[0])], dim=1)
    means = (sums + own[..., None] * anchors) / safe[..., None]
    means = torch.where(filled[..., None], means, anchors.to(means.dtype).expand_as(means))
    mass = _sum_sets(weights * torch.exp(entry_logs), sets)
    log_total = torch.where(filled, torch.log(safe) + shift, -torch.inf)
    return means, mass, log_total.detach()


def score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    """s_ej = −‖x_e − μ_vj‖² / 2 of every member at the means of its own set, (entry, anchor)."""
    x = points[_entries(sets, sets.indices).long()].to(means.dtype)
    return torch.stack([-0.5 * ((x - means[sets.rows, j]) ** 2).sum(dim=1) for j in range(means.shape[1])], dim=1)


def _entries(sets: TensorSets, values: Tensor) -> Tensor:
    """The part of a per-entry tensor that belongs to these sets."""
    if sets.n_entries == values.shape[0]:
        return values
    first = int(sets.indptr[0])
    return values[first : first + sets.n_entries]


def _sum_sets(values: Tensor, sets: TensorSets) -> Tensor:
    """Σ over the members of every set, (set, …): by chunks, whose sums are added in float64."""
    starts = sets.indptr[:-1] - sets.indptr[0]
    sizes = torch.diff(sets.indptr)
    first = torch.cumsum(sizes // _CHUNK + 1, 0) - (sizes // _CHUNK + 1)  # the first chunk of every set
    entries = torch.arange(values.shape[0], device=values.device)
    chunk = first[sets.rows] + (entries - starts[sets.rows]) // _CHUNK
    n_chunks = sets.n_sets + values.shape[0] // _CHUNK  # at most: known without asking the device
    sums = values.new_zeros((n_chunks, *values.shape[1:])).index_add(0, chunk, values)
    owner = torch.searchsorted(first, torch.arange(n_chunks, device=values.device), right=True) - 1
    wide = torch.promote_types(values.dtype, wide_type(values.device))
    total = torch.zeros((sets.n_sets, *values.shape[1:]), dtype=wide, device=values.device)
    return total.index_add(0, owner, sums.to(wide)).to(values.dtype)


def _highest(logs: Tensor, weights: Tensor, sets: TensorSets, prior: float) -> Tensor:
    """max(log κ, max_e log α_ej) over the members that weigh something; 0 where there is none."""
    start = torch.full((sets.n_sets, logs.shape[1]), prior, dtype=logs.dtype, device=logs.device).log()
    seen = torch.where(weights > 0, logs, -torch.inf)
    top = start.scatter_reduce(0, sets.rows[:, None].expand_as(seen), seen, "amax")
    return torch.where(top > -torch.inf, top, 0.0)
