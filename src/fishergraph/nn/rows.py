"""Rows of a feature matrix that is dense or, as bags of words are, a sparse CSR tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._errors import InputError
from fishergraph.ops.tensor_ops import tensor_engine, work_type
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows.torch import largest_entries
from fishergraph.ops.unit_rows.torch import unit_rows as unit_vectors

# Bytes of rows that a GPU holds dense.
_DENSE = 1 << 28


def is_sparse(x: Tensor) -> bool:
    """Whether x is a sparse CSR tensor."""
    return x.layout == torch.sparse_csr


def dense_if_small(x: Tensor) -> Tensor:
    """Sparse rows as dense ones, if these take at most `_DENSE` bytes; other rows as they are."""
    small = x.numel() * x.element_size() <= _DENSE
    return x.to_dense() if is_sparse(x) and small else x


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """The sparse rows with other values at the same indices."""
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)


def rows_times(x: Tensor, weight: Tensor) -> Tensor:
    """x Wᵀ, (row, row of W)."""
    if not is_sparse(x):
        return F.linear(x, weight.to(x.dtype))
    with torch.autocast(x.device.type, enabled=False):  # torch has no sparse product in lower precision
        return torch.sparse.mm(x, weight.T.to(x.dtype))


def row_norms(x: Tensor) -> Tensor:
    """‖x‖, (row, 1), with a gradient of zero if x is zero. No square overflows or vanishes."""
    if not is_sparse(x):
        scales = largest_entries(x)
        return scales * torch.linalg.vector_norm(x / scales, dim=1, keepdim=True)
    scaled, scales = _scaled(x)
    return (scales * _lengths(scaled))[:, None]


def _scaled(x: Tensor) -> tuple[Tensor, Tensor]:
    """Sparse rows divided by their largest entries, and these, (row,); one for a zero row."""
    counts = torch.diff(x.crow_indices())
    largest = torch.segment_reduce(x.values().detach().abs(), "max", lengths=counts, initial=0)
    scales = torch.where(largest > 0, largest, 1.0)
    return with_values(x, x.values() / torch.repeat_interleave(scales, counts)), scales


def _lengths(x: Tensor) -> Tensor:
    """‖x‖ of sparse rows, (row,)."""
    squares = torch.segment_reduce(x.values().square(), "sum", lengths=torch.diff(x.crow_indices()), initial=0)
    return torch.where(squares == 0, 0.0, torch.where(squares == 0, 1.0, squares).sqrt())


def as_tensor(X: Any) -> Tensor:
    """A NumPy or CSR matrix as a tensor; a read-only one is copied, because torch has no read-only tensors."""
    if not sp.issparse(X):
        return torch.from_numpy(X if X.flags.writeable else X.copy())
    parts = [torch.from_numpy(array.copy()) for array in (X.indptr, X.indices, X.data)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=False)


def as_scipy(x: Tensor) -> sp.csr_array:
    """Sparse rows as a SciPy matrix, in host memory."""
    arrays = [part.detach().cpu().numpy() for part in (x.values(), x.col_indices(), x.crow_indices())]
    return sp.csr_array(tuple(arrays), shape=tuple(x.shape))


def unit_rows(x: Tensor) -> Tensor:
    """The rows divided by their lengths; a zero row stays zero. No square overflows or vanishes."""
    if not is_sparse(x):
        wide = x.to(work_type(x.dtype))
        # The kernels of the CPU add in float64, those of a GPU do not.
        return unit_vectors(tensor_engine(None, wide) if wide.device.type == "cpu" else "torch", wide).to(x.dtype)
    x, _ = _scaled(x)
    lengths = _lengths(x)
    lengths = torch.where(lengths == 0, 1.0, lengths)
    return with_values(x, x.values() / torch.repeat_interleave(lengths, torch.diff(x.crow_indices())))


def dropped(x: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout; of sparse rows, of the stored entries.

    On a CPU, where drawing takes most of the time, four entries use 64 drawn bits: rates are multiples of 2⁻¹⁶.
    """
    if is_sparse(x):
        return with_values(x, dropped(x.values(), rate, training)) if training and rate > 0 else x
    if not training or rate == 0 or rate == 1 or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, rate, training)
    bound = min(round(rate * 2**16), 2**16 - 1)  # a rate below one keeps something
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    kept = (draws.view(torch.int16)[: x.numel()] >= bound - 2**15).view(x.shape)
    return (x * kept).mul_(2**16 / (2**16 - bound))


def described(value: Any) -> str:
    """The dtype, shape and layout of a tensor in words, or the type of anything else."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{value.dtype} of {tuple(value.shape)}" + (f" ({value.layout})" if value.layout != torch.strided else "")


def check_rows(x: Any, *, sparse: bool = True) -> None:
    """Raise unless x is a float matrix, dense or, if `sparse`, CSR; a loader without features passes None."""
    if not isinstance(x, Tensor) or x.ndim != 2 or not x.is_floating_point():
        advice = "pass the features of the nodes, or structural_features(graph) if there are none"
        expected = "be a float tensor of shape (node, feature)"
        raise InputError(parameter="x", value=x, expected=expected, got=described(x), advice=advice)
    if x.layout != torch.strided and not (sparse and is_sparse(x)):
        expected = "be dense or sparse CSR" if sparse else "be dense in a layer"
        advice = "use x.to_dense(), project=64 of FisherConv, or a FisherNet with an input map"
        raise InputError(parameter="x", value=x, expected=expected, got=str(x.layout), advice=advice)


def node_numbers(nodes: Any, n_nodes: int, name: str) -> Tensor:
    """Row numbers in host memory, int64, from a mask or from integers, in their order."""
    expected = f"be a mask with an entry for each of the {n_nodes} nodes, or a list of their numbers"
    try:
        numbers = torch.as_tensor(nodes if isinstance(nodes, Tensor) else np.asarray(nodes)).detach().cpu()
    except (TypeError, ValueError):
        raise InputError(parameter=name, expected=expected, got=described(nodes)) from None
    mask = numbers.dtype == torch.bool
    if numbers.numel() == 0:
        numbers = numbers.new_zeros(0, dtype=torch.int64)  # an empty list has floats
    integers = not (numbers.is_floating_point() or numbers.is_complex())
    if not integers or numbers.ndim != 1 or (mask and len(numbers) not in (0, n_nodes)):
        raise InputError(parameter=name, expected=expected, got=described(numbers))
    numbers = torch.nonzero(numbers).ravel() if mask else numbers.long()
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < n_nodes:
        got = f"{int(numbers.min())} to {int(numbers.max())}"
        raise InputError(parameter=name, expected=f"hold nodes 0 to {n_nodes - 1}", got=got)
    return numbers


def named_device(device: Any) -> torch.device:
    """Any device of PyTorch, by its name."""
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        raise InputError(parameter="device", value=device, expected="be a device of PyTorch or its name") from None


def match_dtype(z: Tensor, x: Tensor) -> Tensor:
    """z in the dtype of x, as PyG's layers return it; under autocast z itself."""
    return z if torch.is_autocast_enabled(x.device.type) else z.to(x.dtype)


def typed(x: Tensor, model: nn.Module) -> Tensor:
    """x in the dtype of the parameters of a model."""
    return x.to(next((parameter.dtype for parameter in model.parameters()), x.dtype))


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """The given rows, in that order (copied)."""
    if not is_sparse(x):
        return x[rows]
    taken = TensorSets(x.crow_indices(), x.col_indices(), x.values(), x.shape[1]).take(rows)
    values: Any = taken.weights
    indptr = taken.indptr.to(taken.indices.dtype)  # PyTorch reads both as one dtype and does not check
    return torch.sparse_csr_tensor(indptr, taken.indices, values, (len(rows), x.shape[1]), check_invariants=False)
