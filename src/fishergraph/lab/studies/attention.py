"""How far the attention is from mean pooling, against the variance, and where the published code is.

On the first layer of a graph: the points are ψ_0 as unit vectors, the anchors those of k-means, spherical for the
published code. The attention of anchor j over a set of n members is compared with the uniform one: 1 − H/log n is 0 for
mean pooling and 1 for a single member.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fishergraph.datasets import load_graph
from fishergraph.em import learn_anchors, posterior
from fishergraph.em.unit import unit_rows
from fishergraph.family.base import entropy
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta, calibrate_variance
from fishergraph.graph import as_graph
from fishergraph.lab.baselines.fisher import SHARPNESS, paper_embedding
from fishergraph.lab.rows import Cell, Row
from fishergraph.lab.studies.study import Study, band, values_of
from fishergraph.multiset import Multisets, neighbourhoods
from fishergraph.published import PublishedMixture


@dataclass(frozen=True)
class AttentionStudy(Study):
    """The posterior at each variance, at the paper's (1) and at the calibrated one; and the published code."""

    dataset: str = "cora"
    variances: tuple[float, ...] = tuple(float(f"{v:.3g}") for v in np.logspace(-3, 4, 29))
    n_anchors: int = 4
    dim: int = 256
    sharpness: float = SHARPNESS
    seeds: int = 5

    def _cells_at(self, rule: str, variance: float | None = None) -> list[Cell]:
        """A cell per seed of ψ_0 and the anchors."""
        parameters = {"dataset": self.dataset, "rule": rule, "variance": variance, "n_anchors": self.n_anchors}
        parameters |= {"dim": self.dim, "sharpness": self.sharpness if rule == "auto" else None}
        return [Cell(self.name, parameters, seed) for seed in range(self.seeds)]

    def _records(self) -> list[tuple[str, list[Cell]]]:
        """Each record of the table with its cells: the curve, and three marks."""
        curve = [("posterior", self._cells_at("posterior", variance)) for variance in self.variances]
        paper = self._cells_at("posterior", 1.0)
        return [*curve, ("paper", paper), ("auto", self._cells_at("auto")), ("published", self._cells_at("published"))]

    def cells(self) -> list[Cell]:
        """The cells of all records."""
        return [cell for _, cells in self._records() for cell in cells]

    def work(self, cell: Cell) -> dict[str, Any]:
        """The mean entropy of the responsibilities over log p, and the concentration of the attention."""
        parameters = cell.parameters
        points, sets = _layer_input(parameters["dataset"], parameters["dim"], cell.seed or 0)
        published = parameters["rule"] == "published"
        rng, method = np.random.default_rng(cell.seed), "spherical" if published else "kmeans"
        anchors = learn_anchors(points, parameters["n_anchors"], method=method, rng=rng, n_jobs=1)
        variance = parameters["variance"]
        if parameters["rule"] == "auto":
            variance = calibrate_variance(points, anchors, parameters["sharpness"])
        # The published code takes a softmax of probabilities, the posterior one of log probabilities.
        scores = (
            PublishedMixture().log_responsibilities(points, GaussianMixtureTheta(anchors))
            if published
            else posterior(points, anchors, variance)
        )
        responsibilities = np.log(scores) if published else scores
        return {
            "variance": variance,
            "responsibility_entropy": float(np.mean(entropy(responsibilities)) / np.log(parameters["n_anchors"])),
            "concentration": concentration(scores, sets),
        }

    def quick(self) -> AttentionStudy:
        """Five variances, two repeats."""
        return replace(self, variances=self.variances[::7], seeds=2)

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """The concentration over the seeds: a record per variance, and one for each mark."""
        rows, table = list(rows), []
        for curve, cells in self._records():
            results = values_of(rows, cells)
            if results:
                value = None if curve == "published" else band(each["variance"] for each in results)["median"]
                numbers = band(each["concentration"] for each in results)
                table.append({"study": self.name, "value": value, "curve": curve, **numbers})
        return table


def concentration(scores: np.ndarray, sets: Multisets) -> float:
    """The mean of 1 − H(a)/log n over anchors and sets of n ≥ 2 members; a is the softmax of the scores over a set.

    It is Σ a log(n a) / log n, which is accurate for a nearly uniform attention.
    """
    starts, sizes = sets.indptr[:-1], np.diff(sets.indptr)
    owner = np.repeat(np.arange(sets.n_sets), sizes)
    members = scores[sets.indices]  # (entry, anchor)
    members = members - np.maximum.reduceat(members, starts)[owner]
    weights = np.exp(members)
    total = np.add.reduceat(weights, starts)  # (set, anchor)
    weights /= total[owner]
    gaps = members + np.log(sizes[owner])[:, None] - np.log(total)[owner]  # log(n a)
    kept = sizes > 1
    return float(np.mean(np.add.reduceat(weights * gaps, starts)[kept] / np.log(sizes[kept])[:, None]))


@lru_cache(maxsize=8)
def _layer_input(dataset: str, dim: int, seed: int) -> tuple[np.ndarray, Multisets]:
    """ψ_0 of the nodes as unit vectors in float64, and the closed neighbourhoods."""
    data = load_graph(dataset)
    psi = paper_embedding(seed, n_layers=0, dim=dim, n_jobs=1).fit_transform(data.X, graph=data.graph)
    sets = neighbourhoods(as_graph(data.graph), weights="uniform")
    return unit_rows(np.ascontiguousarray(psi, dtype=np.float64)), sets
