"""Where the arrays of a fit live: NumPy arrays in this process, or tensors on a device. One record says how they are
made, drawn, and brought home; the mathematics does not know which it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device as device_of
from array_api_compat import is_torch_array

LINE = 64  # bytes of a cache line


def aligned_empty(shape: Any, dtype: Any) -> np.ndarray:
    """`np.empty` at the beginning of a cache line: points are gathered in an eighth fewer lines if a row is a few whole
    ones, as it is with sixteen columns of float32."""
    template = np.empty(0, dtype)
    size = template.itemsize * math.prod(shape)
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(template.dtype).reshape(shape)


@dataclass(frozen=True)
class Place:
    """The default is NumPy; `ops.torch_device.tensor_place` makes the others.

    device : "cpu" or "cuda", as the backends call it.
    tensors : whether arrays are torch tensors.
    empty, empty_output : (shape, dtype) → an array for points, and one for the result.
    put, fetch : a fitted NumPy array → one of this place, in the given dtype; and back.
    result : the filled output → what the caller gets.
    stream : a seed sequence → a random stream whose draws are arrays of this place.
    storage : the dtype that points are kept in between layers, of the dtype that is worked in.
    working : (n_jobs) → a context manager around all work: the precision of products, no gradients, threads.
    free_bytes : what is left for new arrays, or None where nobody counts.
    """

    device: str = "cpu"
    tensors: bool = False
    empty: Callable[..., Any] = aligned_empty
    empty_output: Callable[..., Any] = np.empty
    put: Callable[[np.ndarray, Any], Any] = lambda array, dtype: array.astype(dtype, copy=False)
    fetch: Callable[[Any], np.ndarray] = lambda array: array
    result: Callable[[Any], Any] = lambda array: array
    stream: Callable[[Any], Any] = np.random.default_rng
    storage: Callable[[Any], Any] = lambda dtype: dtype
    working: Callable[[int | None], AbstractContextManager] = nullcontext
    free_bytes: Callable[[], int | None] = lambda: None


NUMPY = Place()


def device_kind(array: Any) -> str:
    """The device an array is on, without its number: "cpu" or "cuda"."""
    return str(device_of(array)).partition(":")[0]


def random_stream(rng: Any, like: Any) -> Any:
    """The stream of a seed or generator whose draws go with the array `like`; a stream passes through."""
    if not is_torch_array(like):
        return _generator(rng)
    from fishergraph.ops.torch_device import TensorStream

    return rng if isinstance(rng, TensorStream) else TensorStream(_generator(rng), like.device)


def _generator(rng: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"rng must be None, an integer of at least 0 or a NumPy generator, got {rng!r}; pass one of these."
        ) from error
