"""The simulations of Section 5.1 and Appendix D: squared distances of embeddings beside KL divergences.

Two samples of Gaussian mixtures in the plane, anchors by k-means on their union (Section 4.5), EM from the anchors, and
‖φ − φ'‖² / 2 KL, which Theorem 4.3 says is near one. A study varies one thing over `values`; each value is repeated
with `seeds` samples of their own. Beside the paper's Id/p stands the exact Fisher matrix; beside Goldberger's
approximation the Monte Carlo divergence, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph.em import em_means, learn_anchors
from fishergraph.embedding import fisher_embedding
from fishergraph.experiments.rows import Cell
from fishergraph.experiments.study import Row, Study, band, values_of
from fishergraph.family import GaussianMixture, exact_root, fisher_root, goldberger, monte_carlo_kl
from fishergraph.multiset import Multisets

_FAMILY = GaussianMixture()
# What a study may vary of the embedding, by the name of the parameter.
_EMBEDDING = ("n_anchors", "n_em_iter")


@dataclass(frozen=True)
class Simulation(Study):
    """One study: what it varies, over which values, and what stays; the paper's numbers are the defaults."""

    varies: str  # "modes", "shift" or "spread" of the distributions, or a parameter of the embedding
    values: tuple[float, ...]
    n_anchors: int = 10
    n_em_iter: int = 10
    n_samples: int = 1000
    seeds: int = 20
    kl_samples: int = 100_000
    exact: bool = True  # whether the exact Fisher matrix is computed too

    def parameters(self, value: float) -> dict[str, Any]:
        """What a cell at this value is made of, in full."""
        embedding = self.varies in _EMBEDDING
        p, q = distributions(**({} if embedding else {self.varies: value}))
        kept = {name: getattr(self, name) for name in ("n_anchors", "n_em_iter", "n_samples", "exact")}
        return {"value": value, "p": p.tolist(), "q": q.tolist(), **kept, **({self.varies: value} if embedding else {})}

    def cells_at(self, value: float) -> list[Cell]:
        """The cell of the divergence, which the samples do not change, then one per seed."""
        given = self.parameters(value)
        return [
            divergence_cell(given["p"], given["q"], self.kl_samples),
            *(Cell(self.name, given, seed) for seed in range(self.seeds)),
        ]

    def cells(self) -> list[Cell]:
        """The cells of all values."""
        return [cell for value in self.values for cell in self.cells_at(value)]

    def work(self, cell: Cell) -> dict[str, Any]:
        """The distances of a pair of samples, or the divergences of a pair of distributions."""
        return divergences(cell) if cell.study == "divergence" else distances(cell)

    def quick(self) -> Simulation:
        """A few values, three repeats, 200 points."""
        few = self.values[:: max(1, len(self.values) // 3)]
        return replace(self, values=few, seeds=3, n_samples=200, kl_samples=20_000)

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """‖φ − φ'‖² / 2 KL over the seeds, a record per value and curve; a value that is not all there is left out."""
        rows, table = list(rows), []
        for value in self.values:
            found = values_of(rows, self.cells_at(value))
            for curve, (distance, divergence) in RATIOS.items() if found else ():
                truth, *repeats = found
                if distance in repeats[0]:
                    ratios = band(repeat[distance] / (2 * truth[divergence]) for repeat in repeats)
                    table.append({"study": self.name, "value": value, "curve": curve, **ratios})
        return table


# name of a curve: the distance and the divergence of its ratio
RATIOS: Mapping[str, tuple[str, str]] = {
    "paper": ("approximate", "goldberger_forward"),
    "forward": ("approximate", "monte_carlo_forward"),
    "backward": ("approximate", "monte_carlo_backward"),
    "exact": ("exact", "monte_carlo_forward"),
}


def distributions(modes: float = 3, shift: float = 10.0, spread: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """The means of p_θ and p_θ' (component, feature): columns of components at x = −5 and x = −5 + shift (Appendix D).

    Three components of p_θ lie `spread` apart, `modes` of p_θ' evenly over the same height, one of them in the middle.
    """
    left = np.array([-spread, 0.0, spread])
    right = np.linspace(-spread, spread, int(modes)) if modes > 1 else np.zeros(1)
    return _column(-5.0, left), _column(-5.0 + shift, right)


def _column(x: float, y: np.ndarray) -> np.ndarray:
    return np.stack([np.full(len(y), x), y], axis=1)


_ANCHORS = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100)

SIMULATIONS: tuple[Simulation, ...] = (
    Simulation("modes", "components of p′", "modes", tuple(range(1, 11))),
    Simulation("shift", "distance between the means", "shift", (1, 1.5, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100)),
    Simulation("spread", "distance among the components", "spread", (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10)),
    Simulation("iterations", "EM iterations", "n_em_iter", tuple(range(11))),
    Simulation("anchors", "components of the family", "n_anchors", _ANCHORS),
    Simulation(
        "anchors-one-step", "components of the family, one iteration", "n_anchors", _ANCHORS, n_em_iter=1, exact=False
    ),
)


def divergence_cell(p: Any, q: Any, n_samples: int) -> Cell:
    """The cell of the divergences between two mixtures; studies of the same two share it."""
    return Cell("divergence", {"p": np.asarray(p).tolist(), "q": np.asarray(q).tolist(), "n_samples": n_samples}, 0)


def distances(cell: Cell) -> dict[str, Any]:
    """‖φ(x) − φ(x')‖² of two samples, with I(θ_0) ≈ Id/p (Eq. 18) and with the exact Fisher matrix (Eq. 13)."""
    rng, n = np.random.default_rng(cell.seed), cell.parameters["n_samples"]
    points = np.concatenate([_FAMILY.sample(theta_of(cell.parameters[name]), n, rng) for name in ("p", "q")])
    anchors = learn_anchors(points, cell.parameters["n_anchors"], rng=rng)
    sets = Multisets(np.array([0, n, 2 * n]), np.arange(2 * n), None, 2 * n)
    means = em_means(points, sets, anchors, n_em_iter=cell.parameters["n_em_iter"], n_jobs=1).means
    found = {"approximate": squared_distance(fisher_embedding(means, anchors))}
    if cell.parameters["exact"]:
        root = exact_root(_FAMILY, theta_of(anchors), rng) * fisher_root(len(anchors))
        found["exact"] = squared_distance(fisher_embedding(means, anchors, fisher_root=root))
    return found


def divergences(cell: Cell) -> dict[str, Any]:
    """KL(p‖q) and KL(q‖p): Goldberger's approximation, the same without its weights, Monte Carlo with its error."""
    p, q = (theta_of(cell.parameters[name]) for name in ("p", "q"))
    values: dict[str, Any] = {}
    for name, one, other in (("forward", p, q), ("backward", q, p)):
        values[f"goldberger_{name}"] = float(goldberger(one, other))
        values[f"matched_{name}"] = float(_FAMILY.component_divergences(one, other).min(axis=1).mean())
        found = monte_carlo_kl(one, other, n_samples=cell.parameters["n_samples"], rng=cell.seed)
        values[f"monte_carlo_{name}"], values[f"error_{name}"] = found
    return values


def theta_of(means: Any) -> Any:
    """The mixture of unit covariance with these means (Eq. 16)."""
    return _FAMILY.theta(np.asarray(means, dtype=np.float64))


def squared_distance(phi: np.ndarray) -> float:
    """‖φ_0 − φ_1‖² of two rows."""
    return float(((phi[0] - phi[1]) ** 2).sum())
