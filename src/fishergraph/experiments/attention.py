"""How much the attention tells members apart, against the variance, and where the published code sits.

On the first layer of a graph: the points are ψ_0 as unit vectors, the anchors those of k-means, spherical for the code.
The attention of anchor j over a set of n members is compared with the flat one, in parts of the largest possible
difference: 1 − H/log n is 0 for mean pooling and 1 for a single member.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fishergraph.datasets import load_graph
from fishergraph.em import calibrate_variance, learn_anchors, posterior
from fishergraph.em.e_step import entropy, published_code
from fishergraph.em.unit import unit_rows
from fishergraph.estimators import FisherEmbedding
from fishergraph.experiments.rows import Cell
from fishergraph.experiments.study import Row, Study, band, values_of
from fishergraph.graph import as_graph
from fishergraph.multiset import Multisets, neighbourhoods


@dataclass(frozen=True)
class AttentionStudy(Study):
    """The posterior at each variance, at the paper's (1) and at the calibrated one; and the published code."""

    dataset: str = "cora"
    variances: tuple[float, ...] = tuple(float(f"{v:.3g}") for v in np.logspace(-3, 4, 29))
    n_anchors: int = 4
    dim: int = 256
    sharpness: float = FisherEmbedding().sharpness
    seeds: int = 5

    def cells_at(self, rule: str, variance: float | None = None) -> list[Cell]:
        """A cell per seed, of ψ_0 and the anchors."""
        given = {"dataset": self.dataset, "rule": rule, "variance": variance, "n_anchors": self.n_anchors}
        more = {"dim": self.dim, "sharpness": self.sharpness if rule == "auto" else None}
        return [Cell(self.name, {**given, **more}, seed) for seed in range(self.seeds)]

    def places(self) -> list[tuple[str, list[Cell]]]:
        """Each record of the table with its cells: the curve, and three marks on it or beside it."""
        curve = [("posterior", self.cells_at("posterior", variance)) for variance in self.variances]
        paper = self.cells_at("posterior", 1.0)
        return [*curve, ("paper", paper), ("auto", self.cells_at("auto")), ("published", self.cells_at("published"))]

    def cells(self) -> list[Cell]:
        """The cells of all records."""
        return [cell for _, cells in self.places() for cell in cells]

    def work(self, cell: Cell) -> dict[str, Any]:
        """The mean entropy of the responsibilities over log p, and the concentration of the attention."""
        given = cell.parameters
        points, sets = _layer_input(given["dataset"], given["dim"], cell.seed)
        published = given["rule"] == "published"
        rng, method = np.random.default_rng(cell.seed), "spherical" if published else "kmeans"
        anchors = learn_anchors(points, given["n_anchors"], method=method, rng=rng, n_jobs=1)
        variance = given["variance"]
        if given["rule"] == "auto":
            variance = calibrate_variance(points, anchors, given["sharpness"])
        # In the published code probabilities stand where the posterior has their logs.
        logs = published_code(points, anchors) if published else posterior(points, anchors, variance)
        responsibilities = np.log(logs) if published else logs
        return {
            "variance": variance,
            "responsibility_entropy": float(np.mean(entropy(responsibilities)) / np.log(given["n_anchors"])),
            "concentration": concentration(logs, sets),
        }

    def quick(self) -> AttentionStudy:
        """Five variances, two repeats."""
        return replace(self, variances=self.variances[::7], seeds=2)

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """The concentration over the seeds: a record per variance, and one for each mark."""
        rows, table = list(rows), []
        for curve, cells in self.places():
            found = values_of(rows, cells)
            if found:
                value = None if curve == "published" else band(each["variance"] for each in found)["median"]
                numbers = band(each["concentration"] for each in found)
                table.append({"study": self.name, "value": value, "curve": curve, **numbers})
        return table


def concentration(logs: np.ndarray, sets: Multisets) -> float:
    """The mean of 1 − H(a)/log n over sets of n ≥ 2 members and anchors, where a = softmax over the set of the logs.

    It is Σ a log(n a) / log n, which keeps its digits where the attention is nearly flat.
    """
    starts, sizes = sets.indptr[:-1], np.diff(sets.indptr)
    owner = np.repeat(np.arange(sets.n_sets), sizes)
    members = logs[sets.indices]  # (entry, anchor)
    members = members - np.maximum.reduceat(members, starts)[owner]
    weights = np.exp(members)
    total = np.add.reduceat(weights, starts)  # (set, anchor)
    weights /= total[owner]
    gaps = members + np.log(sizes[owner])[:, None] - np.log(total)[owner]  # log(n a)
    kept = sizes > 1
    return float(np.mean(np.add.reduceat(weights * gaps, starts)[kept] / np.log(sizes[kept])[:, None]))


@lru_cache(maxsize=8)
def _layer_input(dataset: str, dim: int, seed: int) -> tuple[np.ndarray, Multisets]:
    """ψ_0 of a graph's nodes as unit vectors, float64, and the closed neighbourhoods."""
    data = load_graph(dataset)
    model = FisherEmbedding(n_layers=0, dim=dim, teleport=None, random_state=seed, n_jobs=1)
    psi = model.fit_transform(data.X, graph=data.graph)
    sets = neighbourhoods(as_graph(data.graph), weights="uniform")
    return unit_rows(np.ascontiguousarray(psi, dtype=np.float64)), sets
