"""Tensors on a device: the device itself, random streams, the precision of products, and free memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph._errors import MissingDevice
from fishergraph.device import Workspace
from fishergraph.ops.tensor_sets import bad_input
from fishergraph.ops.torch_threads import torch_threads

# To what the factors of float32 products may be rounded; sums are always float32.
PRECISIONS = {"float32": "ieee", "tf32": "tf32", "bf16": "tf32"}


def find_device(name: str) -> torch.device:
    """The device of that name, "cpu", "cuda" or "cuda:1", which must exist here."""
    device = torch.device(name)
    if device.type == "cpu":
        return device
    if not torch.cuda.is_available():
        raise MissingDevice(device=name, reason=f"torch {torch.__version__} finds no CUDA device")
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        present = ", ".join(repr(f"cuda:{number}") for number in range(count))
        raise bad_input("device", f"be one of 'cpu', 'cuda', {present} here", repr(name), "choose one of these")
    return torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)


def tensor_workspace(device: torch.device, *, precision: str, host_output: bool) -> Workspace:
    """The workspace of tensors on a device; the result is a tensor there, or a NumPy array with `host_output`."""
    empty = partial(_empty, device=device)
    empty_output = partial(_empty, device=torch.device("cpu")) if host_output else empty
    return Workspace(
        device=device.type,
        tensors=True,
        empty=empty,
        empty_output=empty_output,
        large_output=empty_output,
        put=lambda array, dtype: torch.tensor(array, dtype=dtype, device=device),
        fetch=to_numpy,
        result=to_numpy if host_output else lambda tensor: tensor,
        stream=lambda seed: TensorStream(seed, device),
        storage=lambda dtype: torch.bfloat16 if precision == "bf16" and dtype == torch.float32 else dtype,
        working=partial(working, device, precision),
        free_bytes=partial(free_bytes, device),
    )


def _empty(shape: tuple[int, ...], dtype: torch.dtype, *, device: torch.device) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device)


def to_numpy(tensor: Tensor) -> np.ndarray:
    """The tensor as a NumPy array, copied only from a GPU."""
    return tensor.detach().cpu().numpy()


@contextmanager
def working(device: torch.device, precision: str, n_jobs: int | None = None) -> Iterator[None]:
    """Disable gradients and set the current GPU, the threads and the precision of float32 products, for a while."""
    current = torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()
    with torch.no_grad(), current, _products(PRECISIONS[precision]), torch_threads(n_jobs):
        yield


@contextmanager
def _products(mode: str) -> Iterator[None]:
    """cuBLAS's float32 products in "ieee" or "tf32"."""
    settings: Any = torch.backends.cuda.matmul
    # torch 2.9 has the new switch, and raises if both are used.
    name, value = ("fp32_precision", mode) if hasattr(settings, "fp32_precision") else ("allow_tf32", mode == "tf32")
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


def free_bytes(device: torch.device) -> int | None:
    """The memory of a GPU that is free or that torch has reserved and not used; None for the CPU."""
    if device.type != "cuda":
        return None
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + held


class TensorStream:
    """The draws of a fit, made on a device; the seed comes from a NumPy generator."""

    def __init__(self, seed: Any, device: torch.device):
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        self.device = device
        self.generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))

    def permutation(self, n: int) -> Tensor:
        """0 … n − 1 in random order."""
        return torch.randperm(n, generator=self.generator, device=self.device)

    def integers(self, high: int, size: int | None = None) -> Tensor:
        """Integers below `high`."""
        shape = () if size is None else (size,)
        return torch.randint(high, shape, generator=self.generator, device=self.device)
