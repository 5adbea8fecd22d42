"""Rows of a feature matrix that is dense or, as bags of words are, a sparse CSR tensor."""

from __future__ import annotations

import warnings
from typing import Any

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from fishergraph.ops.torch_sets import TensorSets


def is_sparse(x: Tensor) -> bool:
    """Whether x is a sparse CSR tensor."""
    return x.layout == torch.sparse_csr


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """The sparse rows with other values in the same places."""
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)


def rows_times(x: Tensor, weight: Tensor) -> Tensor:
    """x Wᵀ, (row, row of W)."""
    if not is_sparse(x):
        return F.linear(x, weight.to(x.dtype))
    with torch.autocast(x.device.type, enabled=False):  # torch has no sparse product in lower precision
        return torch.sparse.mm(x, weight.T.to(x.dtype))


def row_norms(x: Tensor) -> Tensor:
    """‖x‖, (row, 1), with a gradient of zero where x is zero."""
    if is_sparse(x):
        lengths = torch.diff(x.crow_indices())
        return torch.segment_reduce(x.values().square(), "sum", lengths=lengths, initial=0).sqrt()[:, None]
    squares = x.square().sum(dim=1, keepdim=True)
    return torch.where(squares > 0, torch.where(squares > 0, squares, 1.0).sqrt(), 0.0)


def as_tensor(X: Any) -> Tensor:
    """A NumPy or CSR matrix as a tensor; what is read-only is copied, since torch knows no such tensors."""
    if not sp.issparse(X):
        return torch.from_numpy(X if X.flags.writeable else X.copy())
    parts = [torch.from_numpy(array.copy()) for array in (X.indptr, X.indices, X.data)]
    with warnings.catch_warnings():  # that torch calls these tensors beta is no news here
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=False)


def as_scipy(x: Tensor) -> sp.csr_array:
    """The sparse rows as SciPy has them, on the host."""
    arrays = [part.detach().cpu().numpy() for part in (x.values(), x.col_indices(), x.crow_indices())]
    return sp.csr_array(tuple(arrays), shape=tuple(x.shape))


def unit_rows(x: Tensor) -> Tensor:
    """The rows divided by their lengths; a zero row stays zero."""
    if not is_sparse(x):
        return F.normalize(x, dim=1)
    norms = row_norms(x).ravel()
    scales = torch.where(norms > 0, 1 / norms, 0.0)
    return with_values(x, x.values() * torch.repeat_interleave(scales, torch.diff(x.crow_indices())))


def dropped(x: Tensor, share: float, training: bool) -> Tensor:
    """Dropout, of sparse rows where they hold something.

    On a CPU, where drawing is the most of it, four entries share 64 drawn bits: shares in steps of 2⁻¹⁶.
    """
    if is_sparse(x):
        return with_values(x, dropped(x.values(), share, training)) if training and share > 0 else x
    if not training or share == 0 or share == 1 or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, share, training)
    bound = round(share * 2**16)
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    kept = (draws.view(torch.int16)[: x.numel()] >= bound - 2**15).view(x.shape)
    return (x * kept).mul_(2**16 / (2**16 - bound))


def check_rows(x: Any) -> None:
    """Raise unless x is a float matrix; a loader without features gives None."""
    if not isinstance(x, Tensor) or x.ndim != 2 or not x.is_floating_point():
        got = f"{x.dtype} of {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(
            f"x must be a float tensor of shape (node, feature), got {got}; "
            "pass the features of the nodes, or structural_features(graph) where there are none."
        )


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """The given rows, in that order (copied)."""
    if not is_sparse(x):
        return x[rows]
    taken = TensorSets(x.crow_indices(), x.col_indices(), x.values(), x.shape[1]).take(rows)
    values: Any = taken.weights
    indptr = taken.indptr.to(taken.indices.dtype)  # PyTorch reads both as one type, without a look
    return torch.sparse_csr_tensor(indptr, taken.indices, values, (len(rows), x.shape[1]), check_invariants=False)
