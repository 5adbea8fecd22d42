"""Multisets by diffusion: the records; what a diffusion reaches is computed in `diffusion.py`."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from fishergraph._arrays import check_weight_scale
from fishergraph._errors import InputError
from fishergraph._records import unchecked
from fishergraph._validation import check_integer, check_number
from fishergraph.diffusion import diffuse
from fishergraph.graph import Graph
from fishergraph.multiset.members import Multisets, degrees, inverse_sqrt_or_zero, neighbourhoods, weight_dtype
from fishergraph.multiset.rule import Rule

# Terms of a series at most: every node takes as many steps.
MOST_TERMS = 10_000
# Of a unit of mass that float64 numbers add up to, less is rounding.
LEAST_TOLERANCE = 1e-15


@dataclass(frozen=True, repr=False)
class Diffusion(Rule):
    """Multisets whose members are weighted by a diffusion Π = Σ_k θ_k M^k that starts at the root.

    M is the operator of the closed neighbourhoods: the random walk D^-1 A, or D^-½ A D^-½ for symmetric weights.

    Parameters
    ----------
    members : int or None, default=64
        The most members of a multiset, the node itself among them; None keeps all that the diffusion reaches.
    tolerance : float in [1e-15, 1], default=1e-4
        The mass, per member, below which a node passes nothing on.
    weights, undirected : options
        See `Rule`.
    """

    members: int | None = 64
    tolerance: float = 1e-4

    @abstractmethod
    def series(self) -> np.ndarray:
        """Return θ_0, θ_1, …, up to a tail that the tolerance does not see."""

    def check(self) -> None:
        super().check()
        if self.members is not None:
            check_integer(self.members, "members (or None)", least=1)
        check_number(self.tolerance, "tolerance", least=LEAST_TOLERANCE, most=1.0)

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> Multisets:
        """Return the multisets of a graph, with the weights that the diffusion gives."""
        check_weight_scale(graph.weights, np.dtype(np.float64))
        symmetric = self.weights == "symmetric"
        closed = neighbourhoods(graph, weights=None if symmetric else self.weights)
        adjacency = (closed.indptr, closed.indices, closed.weights)
        received, sent = degrees(*adjacency)
        left = inverse_sqrt_or_zero(received) if symmetric else 1.0 / received
        right = inverse_sqrt_or_zero(sent) if symmetric else np.ones(len(received))
        kind = weight_dtype(closed.weights, dtype)
        rows = diffuse(adjacency, left, right, self.series(), self.members, self.tolerance, kind, n_jobs)
        return unchecked(Multisets, *rows, graph.n_nodes)


@dataclass(frozen=True, repr=False)
class PageRank(Diffusion):
    """Nodes weighted by personalised PageRank.

    Π = α (I − (1 − α) M)^-1 with α = `teleport`.

    Parameters
    ----------
    members, tolerance : options
        See `Diffusion`.
    teleport : float in (0, 1], default=0.2
        The probability that a walk ends at each step; a small one reaches far.
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    HeatKernel : Another diffusion.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, PageRank
    >>> FisherEmbedding(multiset=PageRank(teleport=0.05, members=32))
    FisherEmbedding(multiset=PageRank(members=32, teleport=0.05))
    """

    teleport: float = 0.2

    def series(self) -> np.ndarray:
        """θ_k = α (1 − α)^k, up to a tail of `tolerance`."""
        if self.teleport == 1.0:
            return np.ones(1)
        n_terms = int(np.ceil(np.log(self.tolerance) / np.log1p(-self.teleport))) + 1
        return self.teleport * (1.0 - self.teleport) ** np.arange(max(n_terms, 1))

    def check(self) -> None:
        super().check()
        check_number(self.teleport, "teleport", strict=True, most=1.0)
        # The smallest α whose series has no more than MOST_TERMS terms: (1 − α)^(MOST_TERMS − 1) = tolerance.
        least = -math.expm1(math.log(self.tolerance) / (MOST_TERMS - 1))
        if self.teleport < least:
            expected = f"be at least {1.001 * least:.3g} with tolerance={self.tolerance:g}"
            got = f"{self.teleport:g}, for which walks take more than {MOST_TERMS} steps"
            raise InputError(parameter="teleport", expected=expected, got=got, advice="raise one of the two")


@dataclass(frozen=True, repr=False)
class HeatKernel(Diffusion):
    """Nodes weighted by the heat kernel: Π = exp(−t (I − M)) with t = `time`.

    Parameters
    ----------
    members, tolerance : options
        See `Diffusion`.
    time : float in [0, 100], default=5.0
        The mean number of steps from the node.
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    PageRank : Another diffusion.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, HeatKernel
    >>> FisherEmbedding(multiset=HeatKernel(time=3.0))
    FisherEmbedding(multiset=HeatKernel(time=3.0))
    """

    time: float = 5.0

    def series(self) -> np.ndarray:
        """θ_k = e^-t t^k / k!, up to a tail of `tolerance`."""
        terms, total = [np.exp(-self.time)], np.exp(-self.time)
        while 1.0 - total > self.tolerance and len(terms) < MOST_TERMS:
            terms.append(terms[-1] * self.time / len(terms))
            total += terms[-1]
        return np.array(terms)

    def check(self) -> None:
        super().check()
        check_number(self.time, "time", most=100.0)


@dataclass(frozen=True, repr=False)
class StepAverage(Diffusion):
    """Nodes weighted by the average of S²GC.

    Π = r I + (1 − r) / K · Σ_{k=1}^K M^k, with K = `steps`, r = `root`.

    Parameters
    ----------
    members, tolerance : options
        See `Diffusion`.
    steps : int, default=16
        The number of steps K that are averaged.
    root : float in (0, 1], default=0.05
        The weight r of the node itself.
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    PageRank : Another diffusion.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, StepAverage
    >>> FisherEmbedding(multiset=StepAverage(steps=8))
    FisherEmbedding(multiset=StepAverage(steps=8))
    """

    steps: int = 16
    root: float = 0.05

    def series(self) -> np.ndarray:
        """θ_0 = r, θ_k = (1 − r) / K for k = 1 … K."""
        return np.concatenate([[self.root], np.full(self.steps, (1.0 - self.root) / self.steps)])

    def check(self) -> None:
        super().check()
        check_integer(self.steps, "steps", least=1, most=MOST_TERMS)
        check_number(self.root, "root", strict=True, most=1.0)
