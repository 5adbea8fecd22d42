"""Where the arrays of a run live: NumPy arrays in this process, or tensors on a device.

`Device` is what users ask for. `Workspace` is what a run uses: how arrays are made, drawn, moved and brought home. The
mathematics does not depend on which it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from array_api_compat import device as device_of
from array_api_compat import is_torch_array

from fishergraph._component import Component
from fishergraph._errors import InputError
from fishergraph._validation import look_up

R = TypeVar("R")

LINE = 64  # bytes of a cache line
# Bytes of a matrix from which on it is large, and of its rows that are rearranged at once.
LARGE, _CHUNK = 2**29, 2**26
PRECISIONS = {"float32": None, "tf32": None, "bf16": None}


@dataclass(frozen=True, repr=False)
class Device(Component):
    """The device that an estimator computes on, and the precision of its products.

    Parameters
    ----------
    name : str, default="cpu"
        "cpu", "cuda" or "cuda:1". On a GPU the whole fit and transform run there, and random draws differ from the
        CPU's.
    precision : {"float32", "tf32", "bf16"}, default="float32"
        Of products on a GPU: "tf32" rounds the factors to 10 bits; "bf16" does, and keeps the points between layers in
        8 bits, half the memory. Sums are always float32. On the CPU the dtype of X is kept.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding
    >>> from fishergraph.device import Device
    >>> FisherEmbedding(device=Device("cuda", precision="bf16"))
    FisherEmbedding(device=Device(name='cuda', precision='bf16'))
    """

    name: str = "cpu"
    precision: str = "float32"

    def check(self) -> None:
        """Raise unless the device and the precision are possible."""
        if not isinstance(self.name, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", self.name):
            raise InputError(
                parameter="device",
                value=self.name,
                expected="be one of 'cpu', 'cuda', 'cuda:0', 'cuda:1', …",
                advice="choose one of these",
            )
        look_up(PRECISIONS, self.precision, "precision")
        if self.name == "cpu" and self.precision != "float32":
            raise InputError(
                parameter="precision",
                value=self.precision,
                expected="be 'float32' on the CPU, where the dtype of X is kept",
                advice="leave it out",
                settings={"device": "cuda"},
            )

    @property
    def kind(self) -> str:
        """The device without its index: "cpu" or "cuda"."""
        return self.name.partition(":")[0]


_CPU = Device()


def choose_device(device: str | Device) -> Device:
    """Return the device of that name, or the component itself."""
    if isinstance(device, str) and device == "cpu":
        return _CPU
    return device if isinstance(device, Device) else Device(device)


def aligned_empty(shape: Any, dtype: Any) -> np.ndarray:
    """`np.empty` at the beginning of a cache line.

    Points are gathered in an eighth fewer lines if a row is a few whole ones, as it is with 16 columns of float32.
    """
    template = np.empty(0, dtype)
    size = template.itemsize * math.prod(shape)
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(template.dtype).reshape(shape)


class ColumnsInTurn:
    """A large matrix whose columns are written from left to right, and which takes memory as they are.

    Memory is taken by pages, and a page holds all columns of a row. So groups of columns are kept one behind the other
    in each chunk of rows. `np.asarray` puts them side by side, once, in the same memory.

    Parameters
    ----------
    shape : tuple of int
        The numbers of rows and columns.
    dtype : dtype
        Of the numbers.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any):
        self._rows, self._groups = np.empty(shape, dtype), cast(list[slice], [])
        rows = self._rows
        size = max(_CHUNK // (rows.itemsize * rows.shape[1]), 1)
        self._chunks = [slice(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]

    def __getitem__(self, key: tuple[slice, slice]) -> _Group:
        """The memory of consecutive columns, which follow those before."""
        self._groups.append(key[1])
        return _Group(self._chunks, [self._kept(chunk, key[1]) for chunk in self._chunks])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        for chunk in self._chunks:
            kept = self._rows[chunk].copy()
            for columns in self._groups:
                self._rows[chunk, columns] = _in_turn(kept, columns)
        self._groups = []
        return self._rows

    def _kept(self, chunk: slice, columns: slice) -> np.ndarray:
        return _in_turn(self._rows[chunk], columns)


class _Group(NamedTuple):
    """Some columns of all rows: chunks of rows, and their values."""

    chunks: list[slice]
    values: list[np.ndarray]

    def __setitem__(self, rows: slice, block: Any) -> None:
        size = self.chunks[0].stop
        for k in range(rows.start // size, -(-rows.stop // size)):
            chunk = self.chunks[k]
            first, last = max(rows.start, chunk.start), min(rows.stop, chunk.stop)
            self.values[k][first - chunk.start : last - chunk.start] = block[first - rows.start : last - rows.start]


def _in_turn(rows: np.ndarray, columns: slice) -> np.ndarray:
    """Consecutive columns in the memory of some rows, behind those before them."""
    n = len(rows)
    return rows.reshape(-1)[n * columns.start : n * columns.stop].reshape(n, -1)


@dataclass(frozen=True)
class Workspace:
    """How the arrays of a run are made and moved; the default is NumPy.

    device : "cpu" or "cuda", as the engines call it.
    tensors : whether arrays are torch tensors.
    empty, empty_output : (shape, dtype) → an array for points, and one for the result.
    large_output : (shape, dtype) → what `result` turns into a large result, whose columns are written in turn.
    put, fetch : a fitted NumPy array → one of this workspace, in the given dtype; and back.
    result : the filled output → what the caller gets.
    stream : a seed sequence → a random stream whose draws are arrays of this workspace.
    storage : the dtype that points are kept in between layers, of the dtype of the work.
    working : (n_jobs) → a context manager around all work: the precision of products, no gradients, threads.
    free_bytes : () → the memory left for new arrays, or None if it is not counted.
    """

    device: str = "cpu"
    tensors: bool = False
    empty: Callable[..., Any] = aligned_empty
    empty_output: Callable[..., Any] = np.empty
    large_output: Callable[..., Any] = ColumnsInTurn
    put: Callable[[np.ndarray, Any], Any] = np.asarray
    fetch: Callable[[Any], np.ndarray] = np.asarray
    result: Callable[[Any], Any] = np.asarray
    stream: Callable[[Any], Any] = np.random.default_rng
    storage: Callable[[Any], Any] = np.dtype
    working: Callable[[int | None], AbstractContextManager] = nullcontext
    free_bytes: Callable[[], int | None] | None = None


NUMPY = Workspace()


def moved(record: R, move: Callable[[Any], Any]) -> R:
    """A fitted record with its arrays moved, at any depth; components stay as they are."""
    if isinstance(record, np.ndarray) or is_torch_array(record):
        return move(record)
    if isinstance(record, tuple):
        values = [moved(value, move) for value in record]
        return type(record)(*values) if hasattr(record, "_fields") else tuple(values)  # type: ignore[return-value]
    if isinstance(record, type) or not is_dataclass(record) or isinstance(record, Component):
        return record
    values = {field.name: moved(getattr(record, field.name), move) for field in fields(record)}
    return replace(record, **values)  # type: ignore[type-var]


def device_kind(array: Any) -> str:
    """The device an array is on, without its number: "cpu" or "cuda"."""
    return str(device_of(array)).partition(":")[0]
