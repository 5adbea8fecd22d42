"""How the Triton kernels are launched: the tile a program holds, and the numbers it reads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

# Sums a thread holds in registers; more would spill.
_SUMS_PER_THREAD = 64
# Of a thread of a kernel that pulls: sixteen programs of a warp each then share a multiprocessor, and none spills.
REGISTERS = 128
_MOST_ANCHORS = 8
_MOST_FEATURES = 256
KINDS = {torch.float32: tl.float32, torch.float64: tl.float64}


class Tile(NamedTuple):
    """The tiles of (anchor, feature) sums: `grid` counts them by features and anchors, `options` go to a kernel."""

    grid: tuple[int, int]
    options: dict[str, Any]


def tile(n_anchors: int, n_features: int, kind: torch.dtype, *, least_warps: int = 1) -> Tile:
    """Up to eight anchors and 256 features per program, at most 64 sums a thread.

    Anchors are shared out evenly; where they do not divide, the last tile repeats some of the one before.
    """
    anchor_tiles = triton.cdiv(n_anchors, _MOST_ANCHORS)
    anchors = triton.cdiv(n_anchors, anchor_tiles)
    block = max(16, min(triton.next_power_of_2(n_features), _MOST_FEATURES))
    warps = max(least_warps, triton.next_power_of_2(anchors) * block // (32 * _SUMS_PER_THREAD))
    options = {"D": n_features, "BLOCK": block, "P": anchors, "KIND": KINDS[kind], "num_warps": warps}
    return Tile((triton.cdiv(n_features, block), anchor_tiles), options)


@lru_cache(maxsize=256)
def numbers(*values: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers where a kernel reads them in full precision: a bare one would reach it as float32."""
    return torch.tensor(values, dtype=dtype, device=device)
