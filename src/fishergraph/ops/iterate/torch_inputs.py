"""The door of `em_means` for tensors: shapes, dtypes and devices are checked here, before any kernel is launched."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph._arrays import check_finite_result, check_finite_rows, check_heaviest, check_in_range, check_squares
from fishergraph._errors import InputError, InputTypeError
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
        raise InputTypeError(
            parameter="anchors",
            expected="be a tensor like points",
            got=f"{type(anchors).__name__}",
            advice="use torch.as_tensor",
        )
    _check_float_matrix(anchors, "anchors")
    if points.shape[1] == 0:
        raise InputError(
            parameter="points",
            expected="have at least one feature",
            got="none",
            advice="pass the columns of the features",
        )
    if anchors.shape[0] == 0 or anchors.shape[1] != points.shape[1]:
        raise InputError(
            parameter="anchors",
            expected=f"have the shape (anchor, {points.shape[1]}) with at least one anchor",
            got=f"{tuple(anchors.shape)}",
            advice="learn them from these points with learn_anchors",
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
        raise InputError(
            parameter=name,
            expected="be a float matrix of shape (rows, features)",
            got=f"{tensor.dtype} of shape {tuple(tensor.shape)}",
            advice="reshape or cast it",
        )
    if _is_cheap(tensor):
        check_finite_rows(tensor.detach(), name)


def _is_cheap(tensor: Tensor) -> bool:
    """Whether values can be looked at without a device synchronisation or a break of a compiled graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _check_device(tensor: Tensor, like: Tensor, name: str) -> None:
    if tensor.device != like.device:
        raise InputError(
            parameter=name,
            expected=f"be on {like.device} like points",
            got=f"{tensor.device}",
            advice="move it there",
        )


def _check_bias(bias: Any, anchors: Tensor) -> Tensor:
    if not isinstance(bias, Tensor):
        raise InputTypeError(
            parameter="bias",
            expected="be a tensor like points",
            got=f"{type(bias).__name__}",
            advice="use torch.as_tensor",
        )
    if bias.shape != anchors.shape[:1]:
        raise InputError(
            parameter="bias",
            expected=f"hold one number per anchor, shape ({anchors.shape[0]},)",
            got=f"{tuple(bias.shape)}",
            advice="reshape it",
        )
    _check_device(bias, anchors, "bias")
    return bias


def _check_sets(sets: Any, points: Tensor) -> TensorSets:
    """Tensor sets over just these points."""
    if isinstance(sets, Multisets):
        sets = tensor_sets(sets).to(points.device)
    if not isinstance(sets, TensorSets):
        raise InputTypeError(
            parameter="multisets",
            expected="be TensorSets or Multisets",
            got=f"{type(sets).__name__}",
            advice="build them with tensor_sets",
        )
    if sets.n_points != points.shape[0]:
        raise InputError(
            f"the multisets are over {sets.n_points} points, got {points.shape[0]} rows; "
            "pass the points they were built for."
        )
    _check_device(sets.indptr, points, "the multisets")
    check_weights(sets)
    if sets.device.type != "meta":  # without numbers there is nothing to check, and no engine
        _ = sets.sound, torch.compiler.is_compiling() or sets.weighed
    return sets
