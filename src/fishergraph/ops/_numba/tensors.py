"""The compiled CPU engine on tensors: NumPy views of their memory, no copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph._records import unchecked
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.tasks import Transpose
from fishergraph.ops.attend.numba import attend, attend_backward
from fishergraph.ops.iterate.numba import score, score_backward
from fishergraph.ops.linear_head.numba import head, head_backward
from fishergraph.ops.posterior.numba import posterior
from fishergraph.ops.posterior.torch import plain_posterior, posterior_gradient
from fishergraph.ops.tensor_ops import TensorOps
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows.numba import unit_rows_and_scales, unit_rows_backward


def _on_arrays(function: Callable[..., Any], *, transpose: bool = False) -> Callable[..., Any]:
    """A function of arrays as a function of tensors; with `transpose` the transposed sets follow the sets."""

    def call(points: Tensor, *rest: Any) -> Any:
        inputs = []
        for value in (points, *rest):
            if isinstance(value, TensorSets):
                weights = None if value.weights is None else value.weights.to(points.dtype)
                arrays = (None if x is None else x.detach().numpy() for x in (value.indptr, value.indices, weights))
                inputs.append(unchecked(Multisets, *arrays, value.n_points))
                if transpose:
                    back, entries = value.transpose
                    inputs.append(Transpose(back.indptr.numpy(), back.indices.numpy(), entries.numpy()))
            else:
                inputs.append(value.detach().contiguous().numpy() if isinstance(value, Tensor) else value)
        results = function(*inputs)
        if isinstance(results, np.ndarray):
            return torch.from_numpy(results)
        return tuple(None if array is None else torch.from_numpy(array) for array in results)

    return call


_compiled_posterior = _on_arrays(posterior)


def _posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None) -> Tensor:
    """In one pass over the points; log-weights of the components are rare and use plain PyTorch."""
    if bias is not None:
        return plain_posterior(points, anchors, variance, bias)
    return _compiled_posterior(points, anchors.to(points.dtype), variance)


OPERATIONS = TensorOps(
    posterior=_posterior,
    posterior_backward=posterior_gradient,
    attend=_on_arrays(attend),
    attend_backward=_on_arrays(attend_backward, transpose=True),
    score=_on_arrays(score),
    score_backward=_on_arrays(score_backward, transpose=True),
    unit_rows=_on_arrays(unit_rows_and_scales),
    unit_rows_backward=_on_arrays(unit_rows_backward),
    head=_on_arrays(head),
    head_backward=_on_arrays(head_backward, transpose=True),
)
