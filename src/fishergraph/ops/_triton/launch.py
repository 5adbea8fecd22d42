"""How the Triton kernels are launched: the tile of a program, and the numbers it reads."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops.tensor_sets import TensorSets

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# Sums that a thread holds in registers; more would spill.
_SUMS_PER_THREAD = 64
# Registers of a thread of a kernel that sums over members: sixteen programs of a warp each fit a multiprocessor.
REGISTERS = 128
_MOST_ANCHORS = 8
_MOST_FEATURES = 256
KINDS = {torch.float32: tl.float32, torch.float64: tl.float64}


@dataclass(frozen=True)
class Shape:
    """The compile-time constants of a kernel, passed as one argument `S`.

    D : features of a row. BLOCK : features of a tile. N : anchors. P : anchors of a tile. KIND : the dtype of sums.
    WEIGHTED : whether entries have weights. BY_ENTRY : whether coefficients belong to entries, not to points.
    """

    D: Any
    BLOCK: Any
    N: Any
    P: Any
    KIND: Any
    WEIGHTED: Any = False
    BY_ENTRY: Any = False

    def __post_init__(self) -> None:
        as_constants(self)


def as_constants(record: Any) -> None:
    """Make the fields of a record constants of Triton; its interpreter uses the plain values."""
    for field in fields(record) if not INTERPRETED else ():
        object.__setattr__(record, field.name, tl.constexpr(getattr(record, field.name)))


class Tile(NamedTuple):
    """The tiles of (anchor, feature) sums: their numbers by features and anchors, the shape, and the warps."""

    grid: tuple[int, int]
    shape: Shape
    warps: int


@lru_cache(maxsize=256)
def tile(
    n_anchors: int,
    n_features: int,
    kind: torch.dtype,
    *,
    weighted: bool = False,
    by_entry: bool = False,
    one_anchor: bool = False,
    folded: bool = False,
) -> Tile:
    """Up to eight anchors and 256 features per program, at most 64 sums a thread.

    Anchors are distributed evenly; if they do not divide, the last tile repeats some of the one before. Sums that are
    `folded` over lanes (`lanes`) need 128 features.
    """
    anchor_tiles = n_anchors if one_anchor else triton.cdiv(n_anchors, _MOST_ANCHORS)
    anchors = triton.cdiv(n_anchors, anchor_tiles)
    block = max(128 if folded else 16, min(triton.next_power_of_2(n_features), _MOST_FEATURES))
    warps = max(1, triton.next_power_of_2(anchors) * block // (32 * _SUMS_PER_THREAD))
    shape = Shape(n_features, block, n_anchors, anchors, KINDS[kind], weighted, by_entry)
    return Tile((triton.cdiv(n_features, block), anchor_tiles), shape, warps)


def members_of(sets: TensorSets, unweighted: Tensor) -> tuple[Tensor, Tensor]:
    """(indices, weights) for a kernel; without weights any tensor, which is not read."""
    return sets.indices, unweighted if sets.weights is None else sets.weights


@lru_cache(maxsize=256)
def numbers(*values: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers in memory, for full precision: a plain argument of a kernel is float32."""
    return torch.tensor(values, dtype=dtype, device=device)
