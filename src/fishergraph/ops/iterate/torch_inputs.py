"""The door of `em_means` for tensors: shapes, dtypes and devices are checked here, before any kernel is launched."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph._arrays import check_finite_result, check_finite_rows, check_heaviest, check_in_range, check_squares
from fishergraph.multiset import Multisets
from fishergraph.ops.iterate.torch import Steps, em_means
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_sets import TensorSets, check_weights

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class TensorMeans(NamedTuple):
    """means (set, anchor, feature), and mass (set, anchor): Σ_u a_vu α_uj of the last E-step."""

    means: Tensor
    mass: Tensor


def checked_em_means(
    points: Tensor, sets: Any, anchors: Tensor, *, variance: float, prior: float, n_em_iter: int, slack: float,
    bias: Tensor | None,
) -> TensorMeans:  # fmt: skip
    """`em_means` of tensors that go together, or a sentence that says which do not."""
    _check_float_matrix(points, "points")
    if not isinstance(anchors, Tensor):
        raise TypeError(f"anchors must be a tensor like points, got {type(anchors).__name__}; use torch.as_tensor.")
    _check_float_matrix(anchors, "anchors")
    if points.shape[1] == 0:
        raise ValueError("points must have at least one feature, got none; pass the columns of the features.")
    if anchors.shape[0] == 0 or anchors.shape[1] != points.shape[1]:
        raise ValueError(
            f"anchors must have the shape (anchor, {points.shape[1]}) with at least one anchor, "
            f"got {tuple(anchors.shape)}; learn them from these points with learn_anchors."
        )
    _check_device(anchors, points, "anchors")
    bias = None if bias is None else _check_bias(bias, anchors)
    sets = _check_sets(sets, points)
    kind = torch.promote_types(points.dtype, torch.float32)
    check_in_range(variance, kind, "variance")
    check_in_range(prior, kind, "prior")
    if _is_cheap(points):
        for tensor, name in ((points, "points"), (anchors, "anchors")):
            check_squares(tensor.detach().to(kind), name, over=variance)
        check_finite_result(anchors.detach().to(points.dtype), "anchors beside these points")
        check_heaviest(None if sets.weights is None else sets.weights.detach(), kind)
    steps = Steps(variance, prior, n_em_iter, slack)
    rows = points if points.stride(-1) == 1 or points.shape[1] == 1 else points.contiguous()
    bias = None if bias is None else bias.to(kind).contiguous()
    return TensorMeans(*em_means(rows, sets, anchors.to(kind).contiguous(), steps, bias=bias))


def _check_float_matrix(tensor: Tensor, name: str) -> None:
    if tensor.ndim != 2 or tensor.dtype not in _FLOATS:
        raise ValueError(
            f"{name} must be a float matrix of shape (rows, features), got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}; reshape or cast it."
        )
    if _is_cheap(tensor):
        check_finite_rows(tensor.detach(), name)


def _is_cheap(tensor: Tensor) -> bool:
    """Whether values can be looked at without a device synchronisation or a break of a compiled graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _check_device(tensor: Tensor, like: Tensor, name: str) -> None:
    if tensor.device != like.device:
        raise ValueError(f"{name} must be on {like.device} like points, got {tensor.device}; move it there.")


def _check_bias(bias: Any, anchors: Tensor) -> Tensor:
    if not isinstance(bias, Tensor):
        raise TypeError(f"bias must be a tensor like points, got {type(bias).__name__}; use torch.as_tensor.")
    if bias.shape != anchors.shape[:1]:
        raise ValueError(
            f"bias must hold one number per anchor, shape ({anchors.shape[0]},), got {tuple(bias.shape)}; reshape it."
        )
    _check_device(bias, anchors, "bias")
    return bias


def _check_sets(sets: Any, points: Tensor) -> TensorSets:
    """Tensor sets over just these points."""
    if isinstance(sets, Multisets):
        sets = tensor_sets(sets).to(points.device)
    if not isinstance(sets, TensorSets):
        raise TypeError(
            f"multisets must be TensorSets or Multisets, got {type(sets).__name__}; build them with tensor_sets."
        )
    if sets.n_points != points.shape[0]:
        raise ValueError(
            f"the multisets are over {sets.n_points} points, got {points.shape[0]} rows; "
            "pass the points they were built for."
        )
    _check_device(sets.indptr, points, "the multisets")
    check_weights(sets)
    if sets.device.type != "meta":  # without numbers there is nothing to check, and no engine
        _ = sets.sound, torch.compiler.is_compiling() or sets.weighed
    return sets
