"""The compiled CPU engine on tensors: NumPy views of their memory, no copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph.multiset import Multisets
from fishergraph.ops.attend import numba as attend
from fishergraph.ops.attend import numba_backward
from fishergraph.ops.iterate import numba_scores
from fishergraph.ops.linear_head import numba as linear_head
from fishergraph.ops.posterior.numba import posterior_block
from fishergraph.ops.posterior.torch import plain_posterior, posterior_gradient
from fishergraph.ops.tensor_ops import TensorOps
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows.numba import unit_rows_and_scales, unit_rows_gradient

# Rows that a thread takes at a time where nothing is gathered.
_ROWS = 4096


def _view(tensor: Tensor | None) -> Any:
    """The tensor's memory as a C-ordered NumPy array."""
    return None if tensor is None else tensor.detach().contiguous().numpy()


def _tensors(*arrays: np.ndarray | None) -> tuple:
    return tuple(None if array is None else torch.from_numpy(array) for array in arrays)


def _shape(sets: TensorSets) -> tuple[np.ndarray, np.ndarray]:
    return _view(sets.indptr), _view(sets.indices)


def _weights(sets: TensorSets, points: Tensor) -> Any:
    return None if sets.weights is None else _view(sets.weights.to(points.dtype))


def _multisets(sets: TensorSets, points: Tensor) -> Multisets:
    weights = None if sets.weights is None else _view(sets.weights.to(points.dtype))
    return unchecked(Multisets, _view(sets.indptr), _view(sets.indices), weights, sets.n_points)


def _transpose(sets: TensorSets) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    back, entries = sets.transpose
    return _view(back.indptr), _view(back.indices), _view(entries)


def _posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None) -> Tensor:
    """In one pass over the points; log-weights of the components are rare and take the plain way."""
    if bias is not None:
        return plain_posterior(points, anchors, variance, bias)
    logs = points.new_empty((points.shape[0], anchors.shape[0]))
    plain = torch.empty_like(logs)
    rows, centres = _view(points), _view(anchors.to(points.dtype))

    def fill(part: slice) -> None:
        posterior_block(rows[part], centres, variance, logs.numpy()[part], plain.numpy()[part])

    map_blocks(fill, row_blocks(points.shape[0], _ROWS))
    return logs


def _unit_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    given, scales = _view(x), x.new_empty(x.shape[0])
    # NumPy asks for large pages, which are ready in a quarter of the time.
    units = torch.from_numpy(np.empty(given.shape, given.dtype))
    found, factors = units.numpy(), scales.numpy()
    most = float(np.finfo(given.dtype).max)
    map_blocks(
        lambda rows: unit_rows_and_scales(given[rows], most, found[rows], factors[rows]), row_blocks(len(x), _ROWS)
    )
    return units, scales


def _unit_rows_backward(units: Tensor, scales: Tensor, grad: Tensor) -> Tensor:
    given = [_view(tensor) for tensor in (units, scales, grad)]
    out = torch.from_numpy(np.empty(given[0].shape, given[0].dtype))
    map_blocks(
        lambda rows: unit_rows_gradient(*(part[rows] for part in given), out.numpy()[rows]),
        row_blocks(len(units), _ROWS),
    )
    return out


def _attend(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool, wide: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return _tensors(
        *attend.attend(
            _view(points), _view(logs), *_shape(sets), _weights(sets, points), _view(anchors), prior, by_entry
        )
    )


def _attend_backward(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool,
    means: Tensor | None, log_total: Tensor, grad_means: Tensor, grad_mass: Tensor | None, need_weights: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:  # fmt: skip
    return _tensors(
        *numba_backward.attend_backward(
            _view(points),
            _view(logs),
            _view(log_total),
            None if means is None else _view(means),
            _view(grad_means),
            _view(grad_mass),
            *_shape(sets),
            _weights(sets, points),
            _view(anchors),
            prior,
            by_entry,
            _transpose(sets),
            need_weights=need_weights,
        )
    )


def _score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    return torch.from_numpy(numba_scores.score(_view(points), _view(means), *_shape(sets)))


def _score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    return _tensors(
        *numba_scores.score_backward(_view(points), _view(means), _view(grad), *_shape(sets), _transpose(sets))
    )


def _head(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, weight: Tensor, prior: float, fisher_root: float,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    arrays = _multisets(sets, points)
    z, log_total = linear_head.head(
        _view(points), _view(logs), arrays, _view(anchors), _view(weight), prior=prior, fisher_root=fisher_root
    )
    return torch.from_numpy(z), torch.from_numpy(log_total), points.new_empty(0)


def _head_backward(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, weight: Tensor, prior: float, fisher_root: float,
    log_total: Tensor, phi: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Through G = c W_jᵀ g and the means, which are computed again."""
    arrays = _multisets(sets, points)
    return _tensors(
        *linear_head.head_backward(
            _view(points), _view(logs), arrays, _view(anchors), _view(weight), _view(log_total), _view(grad),
            _transpose(sets), prior=prior, fisher_root=fisher_root,
        )
    )  # fmt: skip


OPERATIONS = TensorOps(
    posterior=_posterior,
    posterior_backward=posterior_gradient,
    attend=_attend,
    attend_backward=_attend_backward,
    score=_score,
    score_backward=_score_backward,
    unit_rows=_unit_rows,
    unit_rows_backward=_unit_rows_backward,
    head=_head,
    head_backward=_head_backward,
)
