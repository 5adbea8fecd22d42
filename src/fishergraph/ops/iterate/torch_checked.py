"""`checked_em_means`: the tensors of a caller are validated before any kernel is launched."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fishergraph._arrays import check_finite_result, check_finite_rows, check_heaviest, check_in_range, check_squares
from fishergraph._errors import InputError
from fishergraph.multiset import Multisets
from fishergraph.ops.iterate.torch import Steps, em_means
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_ops import work_type
from fishergraph.ops.tensor_sets import TensorSets, bad_input, bad_type, check_device, check_weights

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def checked_em_means(
    points: Tensor, sets: Any, anchors: Tensor, *, bias: Tensor | None, variance: float, prior: float, **steps: Any
) -> tuple[Tensor, Tensor]:
    """`em_means` of tensors whose shapes, dtypes and devices are checked before any kernel is launched."""
    _check_float_matrix(points, "points")
    _check_tensor(anchors, "anchors")
    _check_float_matrix(anchors, "anchors")
    if points.shape[1] == 0:
        raise bad_input("points", "have at least one feature", "none", "pass the columns of the features")
    if anchors.shape[0] == 0 or anchors.shape[1] != points.shape[1]:
        expected = f"have the shape (anchor, {points.shape[1]}) with at least one anchor"
        advice = "learn them from these points with learn_anchors"
        raise bad_input("anchors", expected, tuple(anchors.shape), advice)
    check_device(anchors, points.device, "anchors", "points")
    kind = work_type(points.dtype)
    if bias is not None:
        _check_tensor(bias, "bias")
        if bias.shape != anchors.shape[:1]:
            expected = f"hold one number per anchor, shape ({anchors.shape[0]},)"
            raise bad_input("bias", expected, tuple(bias.shape), "reshape it")
        check_device(bias, points.device, "bias", "points")
        bias = bias.to(kind).contiguous()
    sets = _check_sets(sets, points)
    check_in_range(variance, kind, "variance")
    check_in_range(prior, kind, "prior")
    if _is_cheap(points):
        for tensor, name in ((points, "points"), (anchors, "anchors")):
            check_squares(tensor.detach().to(kind), name, over=variance)
        check_finite_result(anchors.detach().to(points.dtype), "anchors beside these points")
        check_heaviest(None if sets.weights is None else sets.weights.detach(), kind)
    rows = points if points.stride(-1) == 1 or points.shape[1] == 1 else points.contiguous()
    return em_means(rows, sets, anchors.to(kind).contiguous(), Steps(variance, prior, **steps), bias=bias)


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise bad_type(name, "be a tensor like points", value, "use torch.as_tensor")


def _check_float_matrix(tensor: Tensor, name: str) -> None:
    if tensor.ndim != 2 or tensor.dtype not in _FLOATS:
        got = f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        raise bad_input(name, "be a float matrix of shape (rows, features)", got, "reshape or cast it")
    if _is_cheap(tensor):
        check_finite_rows(tensor.detach(), name)


def _is_cheap(tensor: Tensor) -> bool:
    """Whether checks of values need neither a device synchronisation nor a break of a compiled graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _check_sets(sets: Any, points: Tensor) -> TensorSets:
    """Tensor sets over these points."""
    if isinstance(sets, Multisets):
        sets = tensor_sets(sets).to(points.device)
    if not isinstance(sets, TensorSets):
        raise bad_type("multisets", "be TensorSets or Multisets", sets, "build them with tensor_sets")
    if sets.n_points != points.shape[0]:
        raise InputError(
            f"the multisets are over {sets.n_points} points, got {points.shape[0]} rows; "
            "pass the points they were built for."
        )
    check_device(sets.indptr, points.device, "the multisets", "points")
    check_weights(sets)
    if sets.device.type != "meta":  # meta tensors have no values, and no engine
        _ = sets.sound, torch.compiler.is_compiling() or sets.weighed
    return sets
