"""Rows on a device: dense blocks of a matrix in host memory or of a sparse one, and distinct rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from fishergraph._arrays import EXACT_IN_SINGLE, check_integers
from fishergraph._errors import InputError, InputTypeError
from fishergraph.ops.tensor_sets import TensorSets, bad_input
from fishergraph.ops.torch_device import to_numpy


def check_tensor(X: Tensor, device: torch.device) -> Tensor:
    """X as a float matrix on the device, dense or in compressed rows; float64 is kept, the rest becomes float32."""
    if X.device != device:
        raise bad_input(
            "X",
            f"be on the device of the estimator, {device}",
            f"a tensor on {X.device}",
            f"set device={X.device.type!r}, or move X",
        )
    if X.layout not in (torch.strided, torch.sparse_csr):
        raise InputTypeError(
            parameter="X",
            expected="be dense or sparse CSR",
            got=f"layout {X.layout}",
            advice="convert it with to_sparse_csr()",
        )
    if X.is_complex():
        raise InputError(
            f"Complex data not supported: X must hold real numbers, got {X.dtype}; pass its real part.",
            parameter="X",
            value=X.dtype,
        )
    if X.ndim != 2 or 0 in X.shape:
        raise bad_input(
            "X", "have the shape (node, feature) with at least one of each", f"{tuple(X.shape)}", "reshape it"
        )
    if X.layout == torch.sparse_csr:
        check_csr(X, "X")
    X = X.detach() if X.dtype in (torch.float32, torch.float64) else _as_floats(X.detach())
    return X.contiguous() if X.layout == torch.strided else X


def _as_floats(X: Tensor) -> Tensor:
    """Other numbers as float32, integers that it cannot hold as float64; the rule of `fishergraph._arrays`."""
    if X.is_floating_point() or X.dtype in (torch.bool, torch.int8, torch.uint8, torch.int16):
        return X.float()
    values = X if X.layout == torch.strided else X.values()
    low, high = (int(end) for end in torch.aminmax(values.double())) if values.numel() else (0, 0)
    check_integers(low, high, "X")
    return X.float() if max(high, -low) <= EXACT_IN_SINGLE else X.double()


def check_csr(X: Tensor, name: str) -> None:
    """Raise if the offsets or columns of a sparse CSR matrix are out of range: kernels and torch do not check them."""
    indptr, columns, values = X.crow_indices(), X.col_indices(), X.values()
    if indptr.ndim != 1 or values.ndim != 1 or len(values) != len(columns):
        raise bad_input(name, "be a sparse CSR matrix of numbers", "one of blocks or batches", "build it again")
    ends = (int(indptr[0]), int(indptr[-1]))
    if len(indptr) != X.shape[0] + 1 or ends != (0, len(columns)) or bool((torch.diff(indptr) < 0).any()):
        raise bad_input(
            name,
            f"have row offsets that rise from 0 to its {len(columns)} values",
            f"{ends[0]} to {ends[1]}",
            "build the tensor again",
        )
    low, high = (int(end) for end in torch.aminmax(columns)) if len(columns) else (0, 0)
    if low < 0 or high >= X.shape[1]:
        raise bad_input(name, f"have columns 0 to {X.shape[1] - 1}", f"{low} to {high}", "build the tensor again")


class HostRows:
    """A NumPy or CSR matrix in host memory: `rows[block]` is a dense tensor on the device.

    The block is copied from page-locked memory, so that the host prepares the next one during the copy.
    """

    def __init__(self, matrix: Any, device: torch.device):
        self.matrix, self.device = matrix, device
        self.shape, self.dtype = matrix.shape, getattr(torch, matrix.dtype.name)

    def __getitem__(self, rows: Any) -> Tensor:
        block = self.matrix[to_numpy(rows) if isinstance(rows, Tensor) else rows]
        if not sp.issparse(block):
            return self._send(np.ascontiguousarray(block))
        indptr, indices, values = (self._send(array) for array in (block.indptr, block.indices, block.data))
        return _dense(indptr, indices, values, block.shape)

    def _send(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
        if self.device.type == "cpu":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)


class SparseRows:
    """A sparse CSR tensor: `rows[block]` is dense."""

    def __init__(self, matrix: Tensor):
        self.shape, self.dtype, self.device = tuple(matrix.shape), matrix.dtype, matrix.device
        self.sets = TensorSets(matrix.crow_indices().long(), matrix.col_indices(), matrix.values(), self.shape[1])

    def __getitem__(self, rows: Any) -> Tensor:
        if isinstance(rows, slice):
            rows = torch.arange(self.shape[0], device=self.device)[rows]
        block = self.sets.take(rows)
        assert block.weights is not None
        return _dense(block.indptr, block.indices, block.weights, (block.n_sets, self.shape[1]))


def _dense(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The dense matrix of compressed rows; repeated entries add."""
    rows = torch.repeat_interleave(torch.diff(indptr), output_size=len(values))
    where = (rows.long(), indices.long())
    return torch.zeros(shape, dtype=values.dtype, device=values.device).index_put_(where, values, accumulate=True)


def first_distinct(rows: Tensor) -> Tensor:
    """The indices of the rows that differ from all earlier rows, in order."""
    if len(rows) == 0:
        return torch.zeros(0, dtype=torch.int64, device=rows.device)
    kinds, kind = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((len(kinds),), len(rows), dtype=torch.int64, device=rows.device)
    first.scatter_reduce_(0, kind, torch.arange(len(rows), device=rows.device), "amin")
    return torch.sort(first).values
