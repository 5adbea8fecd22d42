"""`Parts`: what the similarity of two rows in one block is a sum of. And the split of a kernel map.

    k(φ, φ') = ‖φ‖ ‖φ'‖ exp((c − 1)/σ²) = ‖φ‖ ‖φ'‖ e^{−1/σ²} + s ⟨φ, φ'⟩,        s = e^{−1/σ²} (e^{c/σ²} − 1)/c

with c the cosine of φ and φ': what the lengths alone give, and what the product adds. ⟨ψ(φ), ψ(φ')⟩ approximates k by
landmarks; the difference is the remainder. The three add up to ⟨ψ(φ), ψ(φ')⟩.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fishergraph.kernel_map import KernelMap, NystromMap


class KernelParts(NamedTuple):
    """⟨ψ(φ), ψ(φ')⟩ = lengths + slope · ⟨φ, φ'⟩ + remainder, and squares, (‖ψ(φ)‖², ‖ψ(φ')‖²)."""

    lengths: float
    slope: float
    remainder: float
    squares: tuple[float, float]


def split_kernel(phi: np.ndarray, other: np.ndarray, kernel_map: KernelMap) -> KernelParts:
    """The parts of ⟨ψ(φ), ψ(φ')⟩ of two vectors."""
    psi, other_psi = kernel_map(phi[None])[0], kernel_map(other[None])[0]
    value, squares = float(psi @ other_psi), (float(psi @ psi), float(other_psi @ other_psi))
    if not isinstance(kernel_map, NystromMap):
        return KernelParts(0.0, 1.0, value - float(phi @ other), squares)
    lengths = float(np.linalg.norm(phi) * np.linalg.norm(other))
    if lengths == 0:
        return KernelParts(0.0, 0.0, 0.0, squares)
    cosine, sharpness = float(phi @ other) / lengths, kernel_map.bandwidth**-2
    exact = lengths * math.exp((cosine - 1) * sharpness)
    return KernelParts(lengths * math.exp(-sharpness), slope(cosine, sharpness), value - exact, squares)


def slope(cosine: float, sharpness: float) -> float:
    """s = e^{−b} (e^{b c} − 1)/c for b = 1/σ²; b e^{−b} at c = 0. Nothing overflows, however large b is."""
    steps = sharpness * cosine
    if steps == 0:
        return sharpness * math.exp(-sharpness)
    if steps > 0:  # e^{b (c − 1)} (1 − e^{−b c}) / c
        return math.exp((cosine - 1) * sharpness) * (-math.expm1(-steps) / cosine)
    return math.exp(-sharpness) * (math.expm1(steps) / cosine)


@dataclass(frozen=True, eq=False)
class Parts:
    """The similarity of two rows in one block, without its weight.

    value = kernel.lengths + kernel.slope · inner + kernel.remainder, and `inner` is the sum of `pairs` and `other`, or
    that of `columns`, or that of `nodes`: whichever are there. Listings are in units of `inner`.

    kernel : the split of the kernel map.
    inner : ⟨φ, φ'⟩.
    members, pairs, columns, nodes : arrays by name, or nothing.
    other : what `pairs` does not list.
    """

    kernel: KernelParts
    inner: float
    members: dict[str, np.ndarray] = field(default_factory=dict)
    pairs: dict[str, np.ndarray] = field(default_factory=dict)
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    nodes: dict[str, np.ndarray] = field(default_factory=dict)
    other: float = 0.0

    @property
    def value(self) -> float:
        """⟨ψ, ψ'⟩."""
        return self.kernel.lengths + self.kernel.slope * self.inner + self.kernel.remainder
