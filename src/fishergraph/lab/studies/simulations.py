"""Simulations: squared distances of embeddings beside KL divergences.

Section 5.1 and Appendix D: two samples of Gaussian mixtures in the plane, anchors by k-means on their union (Section
4.5), EM from the anchors, and ‖φ − φ'‖² / 2 KL, which Theorem 4.3 expects near one. Beside the paper's Id/p stands the
exact Fisher matrix; beside Goldberger's approximation the Monte Carlo divergence, in both directions.

Beyond the paper: Theorem 4.3 is local. `Closeness` compares Id/p with the exact Fisher matrix for densities that are
small random steps from the anchors. Both are embedded as densities (Eq. 10), so nothing is estimated. `Divergence`
compares Goldberger's approximation with the divergence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fishergraph.em import em_means, learn_anchors
from fishergraph.embedding import fisher_embedding
from fishergraph.family import GaussianMixture, exact_root, fisher_root, goldberger, monte_carlo_kl
from fishergraph.lab.rows import Cell, Row
from fishergraph.lab.studies.study import Study, Sweep, values_of
from fishergraph.multiset import Multisets

_FAMILY = GaussianMixture()
_EMBEDDING = ("n_anchors", "n_em_iter")  # parameters of the embedding that a study may vary


# --- Section 5.1 and Appendix D ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulation(Sweep):
    """A simulation of the paper, with its numbers as defaults."""

    varies: str  # "modes", "shift" or "spread" of the distributions, or a parameter of the embedding
    n_anchors: int = 10
    n_em_iter: int = 10
    n_samples: int = 1000  # points of each distribution
    seeds: int = 20
    kl_samples: int = 100_000  # points of the Monte Carlo divergence
    exact: bool = True  # whether the exact Fisher matrix is computed too

    ratios: ClassVar = {
        "paper": ("approximate", "goldberger_forward"),
        "forward": ("approximate", "monte_carlo_forward"),
        "backward": ("approximate", "monte_carlo_backward"),
        "exact": ("exact", "monte_carlo_forward"),
    }

    def cells_at(self, value: float) -> list[Cell]:
        """The cell of the divergence, which does not depend on the samples, then one per seed."""
        varied = {self.varies: value}
        p, q = distributions(**({} if self.varies in _EMBEDDING else varied))
        fixed = {name: getattr(self, name) for name in ("n_anchors", "n_em_iter", "n_samples", "exact")}
        parameters = {"value": value, "p": p.tolist(), "q": q.tolist(), **fixed}
        parameters |= varied if self.varies in _EMBEDDING else {}
        repeats = [Cell(self.name, parameters, seed) for seed in range(self.seeds)]
        return [divergence_cell(p, q, self.kl_samples), *repeats]

    def work(self, cell: Cell) -> dict[str, Any]:
        """The distances of a pair of samples, or the divergences of a pair of distributions."""
        return divergences(cell) if cell.study == "divergence" else distances(cell)

    def repeats(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The distances of every pair of samples, each with the divergences."""
        return [{**results[0], **distance} for distance in results[1:]]

    def quick(self) -> Simulation:
        """A few values, three repeats, 200 points."""
        few = self.values[:: max(1, len(self.values) // 3)]
        return replace(self, values=few, seeds=3, n_samples=200, kl_samples=20_000)


def distributions(modes: float = 3, shift: float = 10.0, spread: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """The means of p_θ and p_θ', (component, feature): columns of components at x = −5 and x = −5 + shift (Appendix D).

    The three components of p_θ are `spread` apart; the `modes` components of p_θ' are evenly spaced over the same
    height, and a single one is in the middle.
    """
    left = np.array([-spread, 0.0, spread])
    right = np.linspace(-spread, spread, int(modes)) if modes > 1 else np.zeros(1)
    return _column(-5.0, left), _column(-5.0 + shift, right)


def _column(x: float, y: np.ndarray) -> np.ndarray:
    return np.stack([np.full(len(y), x), y], axis=1)


def distances(cell: Cell) -> dict[str, Any]:
    """‖φ(x) − φ(x')‖² of two samples, with I(θ_0) ≈ Id/p (Eq. 18) and with the exact Fisher matrix (Eq. 13)."""
    rng, n = np.random.default_rng(cell.seed), cell.parameters["n_samples"]
    points = np.concatenate([_FAMILY.sample(theta_of(cell.parameters[name]), n, rng) for name in ("p", "q")])
    anchors = learn_anchors(points, cell.parameters["n_anchors"], rng=rng)
    sets = Multisets(np.array([0, n, 2 * n]), np.arange(2 * n), None, 2 * n)
    means = em_means(points, sets, anchors, n_iter=cell.parameters["n_em_iter"], n_jobs=1).means
    return _squared_distances(means, anchors, rng, exact=cell.parameters["exact"])


def _squared_distances(means: np.ndarray, anchors: np.ndarray, rng: Any, *, exact: bool) -> dict[str, Any]:
    """‖φ_0 − φ_1‖² of two sets of means, with Id/p and, if `exact`, with the exact Fisher matrix."""
    roots: dict[str, Any] = {"approximate": None}
    if exact:
        roots["exact"] = exact_root(_FAMILY, theta_of(anchors), rng) * fisher_root(len(anchors))
    squares = {}
    for name, root in roots.items():
        phi = fisher_embedding(means, anchors, **({} if root is None else {"fisher_root": root}))
        squares[name] = float(((phi[0] - phi[1]) ** 2).sum())
    return squares


def divergence_cell(p: Any, q: Any, n_samples: int) -> Cell:
    """The cell of the divergences between two mixtures; studies of the same two use the same cell."""
    return Cell("divergence", {"p": np.asarray(p).tolist(), "q": np.asarray(q).tolist(), "n_samples": n_samples}, 0)


def divergences(cell: Cell) -> dict[str, Any]:
    """KL(p‖q) and KL(q‖p): Goldberger's approximation, the same without its weights, Monte Carlo with its error."""
    p, q = (theta_of(cell.parameters[name]) for name in ("p", "q"))
    values: dict[str, Any] = {}
    for name, first, second in (("forward", p, q), ("backward", q, p)):
        values[f"goldberger_{name}"] = float(goldberger(first, second))
        values[f"matched_{name}"] = float(_FAMILY.component_divergences(first, second).min(axis=1).mean())
        estimate = monte_carlo_kl(first, second, n_samples=cell.parameters["n_samples"], rng=cell.seed)
        values[f"monte_carlo_{name}"], values[f"error_{name}"] = estimate
    return values


def theta_of(means: Any) -> Any:
    """The mixture of unit covariance with these means (Eq. 16)."""
    return _FAMILY.theta(np.asarray(means, dtype=np.float64))


# --- beyond the paper -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Closeness(Sweep):
    """Two densities, each a step of length `step` per component from three components that are `value` apart."""

    values: tuple[float, ...] = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    step: float = 0.3
    kl_samples: int = 200_000
    seeds: int = 20

    ratios: ClassVar = {
        "forward": ("approximate", "forward"),
        "backward": ("approximate", "backward"),
        "exact": ("exact", "forward"),
    }

    def cells_at(self, value: float) -> list[Cell]:
        """A cell per seed of the directions of the steps."""
        parameters = {"spread": value, "step": self.step, "n_samples": self.kl_samples}
        return [Cell(self.name, parameters, seed) for seed in range(self.seeds)]

    def work(self, cell: Cell) -> dict[str, Any]:
        """‖φ(p) − φ(q)‖² with Id/p and with the exact Fisher matrix at θ_0, and KL in both directions."""
        rng, step = np.random.default_rng(cell.seed), cell.parameters["step"]
        anchors, _ = distributions(spread=cell.parameters["spread"])
        turns = rng.standard_normal((2, *anchors.shape))
        means = anchors + step * turns / np.linalg.norm(turns, axis=2, keepdims=True)  # (density, component, feature)
        values = _squared_distances(means, anchors, rng, exact=True)
        p, q = theta_of(means[0]), theta_of(means[1])
        for name, first, second in (("forward", p, q), ("backward", q, p)):
            estimate = monte_carlo_kl(first, second, n_samples=cell.parameters["n_samples"], rng=rng)
            values[name], values[f"error_{name}"] = estimate
        return values

    def quick(self) -> Closeness:
        """Three distances, three repeats."""
        return replace(self, values=self.values[::5], seeds=3, kl_samples=20_000)


@dataclass(frozen=True)
class Divergence(Study):
    """KL between three components and `value` components over the same height, without a shift between them.

    A shift of both would add half of its square to every one of these numbers.
    """

    values: tuple[float, ...] = tuple(range(1, 11))
    kl_samples: int = 400_000

    def cells(self) -> list[Cell]:
        """A cell per number of components; only the points of Monte Carlo are random."""
        return [divergence_cell(*distributions(modes=value, shift=0.0), self.kl_samples) for value in self.values]

    def work(self, cell: Cell) -> dict[str, Any]:
        """The divergences of the two mixtures."""
        return divergences(cell)

    def quick(self) -> Divergence:
        """Three numbers of components."""
        return replace(self, values=self.values[::4], kl_samples=20_000)

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """A record per number, direction and method; the band of Monte Carlo is two standard errors."""
        rows, table = list(rows), []
        for value, cell in zip(self.values, self.cells(), strict=True):
            for values in values_of(rows, [cell]):
                for method in ("monte_carlo", "goldberger", "matched"):
                    for direction in ("forward", "backward"):
                        number = values[f"{method}_{direction}"]
                        error = 2 * values[f"error_{direction}"] if method == "monte_carlo" else 0.0
                        band = {"repeats": 1, "low": number - error, "median": number, "high": number + error}
                        table.append({"study": self.name, "value": value, "curve": f"{method}_{direction}", **band})
        return table


_ANCHORS = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100)

SIMULATIONS: tuple[Study, ...] = (
    Simulation("modes", tuple(range(1, 11)), "modes"),
    Simulation("shift", (1, 1.5, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100), "shift"),
    Simulation("spread", (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10), "spread"),
    Simulation("iterations", tuple(range(11)), "n_em_iter"),
    Simulation("anchors", _ANCHORS, "n_anchors"),
    Simulation("anchors-one-step", _ANCHORS, "n_anchors", n_em_iter=1, exact=False),
    Divergence("divergence"),
    Closeness("closeness"),
)
