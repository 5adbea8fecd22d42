"""What the paper does not show: where Id/p stands beside the exact Fisher matrix when the densities are close.

Theorem 4.3 is local. Three components lie in a row at a distance; two densities are small random steps from them. Both
are embedded as densities (Eq. 10), so nothing is estimated, and ‖φ − φ'‖² / 2 KL is read against Monte Carlo.
And where Goldberger's approximation stands beside the divergence, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph.embedding import fisher_embedding
from fishergraph.experiments.rows import Cell
from fishergraph.experiments.simulations import (
    distributions,
    divergence_cell,
    divergences,
    squared_distance,
    theta_of,
)
from fishergraph.experiments.study import Row, Study, band, values_of
from fishergraph.family import GaussianMixture, exact_root, fisher_root, monte_carlo_kl

# name of a curve: the distance and the divergence of its ratio
RATIOS = {"forward": ("approximate", "forward"), "backward": ("approximate", "backward"), "exact": ("exact", "forward")}


@dataclass(frozen=True)
class Closeness(Study):
    """Steps of length `step` per component, from three components `value` apart."""

    values: tuple[float, ...] = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    step: float = 0.3
    kl_samples: int = 200_000
    seeds: int = 20

    def cells_at(self, value: float) -> list[Cell]:
        """A cell per seed, which draws the directions of the steps."""
        given = {"spread": value, "step": self.step, "n_samples": self.kl_samples}
        return [Cell(self.name, given, seed) for seed in range(self.seeds)]

    def cells(self) -> list[Cell]:
        """The cells of all distances."""
        return [cell for value in self.values for cell in self.cells_at(value)]

    def work(self, cell: Cell) -> dict[str, Any]:
        """‖φ(p) − φ(q)‖² with Id/p and with the exact Fisher matrix at θ_0, and KL in both directions."""
        rng, step = np.random.default_rng(cell.seed), cell.parameters["step"]
        anchors, _ = distributions(spread=cell.parameters["spread"])
        turns = rng.standard_normal((2, *anchors.shape))
        means = anchors + step * turns / np.linalg.norm(turns, axis=2, keepdims=True)  # (density, component, feature)
        root = exact_root(GaussianMixture(), theta_of(anchors), rng) * fisher_root(len(anchors))
        p, q = theta_of(means[0]), theta_of(means[1])
        found: dict[str, Any] = {
            "approximate": squared_distance(fisher_embedding(means, anchors)),
            "exact": squared_distance(fisher_embedding(means, anchors, fisher_root=root)),
        }
        for name, one, other in (("forward", p, q), ("backward", q, p)):
            found[name], found[f"error_{name}"] = monte_carlo_kl(
                one, other, n_samples=cell.parameters["n_samples"], rng=rng
            )
        return found

    def quick(self) -> Closeness:
        """Three distances, three repeats."""
        return replace(self, values=self.values[::5], seeds=3, kl_samples=20_000)

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """‖φ − φ'‖² / 2 KL over the seeds, a record per distance and curve."""
        rows, table = list(rows), []
        for value in self.values:
            found = values_of(rows, self.cells_at(value))
            for curve, (distance, divergence) in RATIOS.items() if found else ():
                ratios = band(each[distance] / (2 * each[divergence]) for each in found)
                table.append({"study": self.name, "value": value, "curve": curve, **ratios})
        return table


@dataclass(frozen=True)
class Divergence(Study):
    """KL between three components and `value` of them over the same height, with no shift between them.

    A shift of both would add its half square to every one of these numbers.
    """

    values: tuple[float, ...] = tuple(range(1, 11))
    kl_samples: int = 400_000

    def cells(self) -> list[Cell]:
        """A cell per number of components; nothing is drawn but the points of Monte Carlo."""
        return [divergence_cell(*distributions(modes=value, shift=0.0), self.kl_samples) for value in self.values]

    def work(self, cell: Cell) -> dict[str, Any]:
        """The divergences of the two mixtures."""
        return divergences(cell)

    def quick(self) -> Divergence:
        """Three numbers of components."""
        return replace(self, values=self.values[::4], kl_samples=20_000)

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """A record per number, direction and way to compute it; the band of Monte Carlo is two standard errors."""
        rows, table = list(rows), []
        for value, cell in zip(self.values, self.cells(), strict=True):
            for found in values_of(rows, [cell]):
                for way in ("monte_carlo", "goldberger", "matched"):
                    for direction in ("forward", "backward"):
                        number = found[f"{way}_{direction}"]
                        error = 2 * found[f"error_{direction}"] if way == "monte_carlo" else 0.0
                        record = {"study": self.name, "value": value, "curve": f"{way}_{direction}", "repeats": 1}
                        table.append({**record, "low": number - error, "median": number, "high": number + error})
        return table
