"""Room 1: which points belong to which multiset (Section 3.2 of the paper).

A `Multisets` record is a CSR list: set v holds the points `indices[indptr[v]:indptr[v + 1]]` with the weights
beside them. Everything behind this room sees multisets only; no graph. Here are the records and the choice of
them by name; what a diffusion reaches is computed in `diffusion.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import check_integer, check_number, look_up
from fishergraph.diffusion import average_series, diffuse, heat_series, pagerank_series
from fishergraph.graph import Graph


@dataclass(frozen=True)
class Multisets:
    """`n_sets` weighted multisets over `n_points` points, in CSR form.

    indptr : int64, (set + 1,), offsets into `indices`; it need not start at zero, so a row block is a view.
    indices : int32 or int64, (entry,), the points.
    weights : float, (entry,), or None where every entry weighs one.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    n_points: int

    @property
    def n_sets(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    def block(self, rows: slice) -> Multisets:
        """The sets of consecutive rows, without a copy."""
        start, stop, _ = rows.indices(self.n_sets)
        return Multisets(self.indptr[start : stop + 1], self.indices, self.weights, self.n_points)

    def take(self, rows: np.ndarray) -> Multisets:
        """The sets of the given rows, in that order (copied)."""
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(sizes, out=indptr[1:])
        entries = np.repeat(self.indptr[rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        weights = None if self.weights is None else self.weights[entries]
        return Multisets(indptr, self.indices[entries], weights, self.n_points)


def singletons(n_points: int) -> Multisets:
    """The multisets {x_0}, {x_1}, …: what rows without a graph are."""
    indices = np.arange(n_points, dtype=np.int32 if n_points < 2**31 else np.int64)
    return Multisets(np.arange(n_points + 1, dtype=np.int64), indices, None, n_points)


def neighbourhoods(graph: Graph, *, closed: bool = True, weights: str | None = None) -> Multisets:
    """S_G(v) = N(v), with v itself when `closed` (added once, with weight one, where the graph has no self-loop).

    `weights` None keeps the graph's own weights; "uniform" makes every member weigh one; "symmetric" divides them
    by the square roots of both ends' degrees.
    """
    reweigh = look_up(WEIGHTS, weights if weights is not None else "edge", "weights")
    indptr, indices, edge_weights = graph.indptr, graph.indices, graph.weights
    if closed:
        indptr, indices, edge_weights = _add_missing_loops(indptr, indices, edge_weights)
    return Multisets(indptr, indices, reweigh(indptr, indices, edge_weights), graph.n_nodes)


def _add_missing_loops(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The CSR arrays with (v, v) in front of each row that has none."""
    n = len(indptr) - 1
    row_of = np.repeat(np.arange(n, dtype=indices.dtype), np.diff(indptr))
    has_loop = np.zeros(n, dtype=bool)
    has_loop[row_of[row_of == indices]] = True
    missing = np.flatnonzero(~has_loop)
    shift = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(~has_loop, out=shift[1:])
    full_indptr = indptr + shift
    full = np.empty(len(indices) + len(missing), dtype=indices.dtype)
    old = np.ones(len(full), dtype=bool)
    old[full_indptr[missing]] = False
    full[full_indptr[missing]] = missing
    full[old] = indices
    if weights is None:
        return full_indptr, full, None
    full_weights = np.ones(len(full), dtype=weights.dtype)
    full_weights[old] = weights
    return full_indptr, full, full_weights


def _edge(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
    """a_vu = w_vu, the weights as given."""
    return weights


def _uniform(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
    """a_vu = 1."""
    return None


def _symmetric(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
    """a_vu = w_vu / √(d_v d_u), with d_v the weight v receives and d_u the weight u sends."""
    received, sent = _degrees(indptr, indices, weights)
    inverse_received, inverse_sent = _inverse_sqrt_or_zero(received), _inverse_sqrt_or_zero(sent)
    # float32 once per entry: nothing of the size of the edges is held in float64.
    scaled = inverse_sent.astype(np.float32)[indices]
    scaled *= np.repeat(inverse_received.astype(np.float32), np.diff(indptr))
    return scaled if weights is None else (scaled * weights).astype(weights.dtype, copy=False)


def _degrees(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(what every node receives, what every node sends): the sums of the rows and of the columns, float64."""
    n = len(indptr) - 1
    if weights is None:
        return np.diff(indptr).astype(np.float64), np.bincount(indices, minlength=n).astype(np.float64)
    matrix = sp.csr_array((weights, indices, indptr), shape=(n, n))
    received = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    return received, np.bincount(indices, weights=weights, minlength=n)


def _inverse_sqrt_or_zero(degrees: np.ndarray) -> np.ndarray:
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


WEIGHTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray | None]] = {
    "edge": _edge,
    "uniform": _uniform,
    "symmetric": _symmetric,
}


# --- diffusion ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diffusion:
    """Multisets whose members are weighted by a diffusion Π = Σ_k θ_k M^k that starts at the root.

    M is the operator of the closed neighbourhoods: the random walk D^-1 A, or D^-½ A D^-½ for symmetric weights.

    members : the most members of a set, the root among them; None keeps all that the push reaches.
    tolerance : the mass a node may keep to itself, per member, instead of handing it on (see `diffusion.py`).
    """

    members: int | None = 64
    tolerance: float = 1e-4

    def series(self) -> np.ndarray:
        """θ_0, θ_1, …, up to a tail that the tolerance does not see."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise unless every parameter is what it must be."""
        if self.members is not None:
            check_integer(self.members, "members (or None)", least=1)
        check_number(self.tolerance, "tolerance", strict=True, most=1.0)

    def __call__(self, graph: Graph, weights: str | None = None, n_jobs: int | None = None) -> Multisets:
        """The multisets of a graph; `weights` as in `neighbourhoods`."""
        self.check()
        symmetric = weights == "symmetric"
        closed = neighbourhoods(graph, weights=None if symmetric else weights)
        adjacency = (closed.indptr, closed.indices, closed.weights)
        received, sent = _degrees(*adjacency)
        left = _inverse_sqrt_or_zero(received) if symmetric else 1.0 / received
        right = _inverse_sqrt_or_zero(sent) if symmetric else np.ones(len(received))
        cut = {"members": self.members, "tolerance": self.tolerance, "n_jobs": n_jobs}
        return Multisets(*diffuse(adjacency, left, right, self.series(), **cut), graph.n_nodes)


@dataclass(frozen=True)
class PageRank(Diffusion):
    """Personalised PageRank: Π = α (I − (1 − α) M)^-1 with α = `teleport`, the chance to return to the root."""

    teleport: float = 0.2

    def series(self) -> np.ndarray:
        """θ_k = α (1 − α)^k."""
        return pagerank_series(self.teleport, self.tolerance)

    def check(self) -> None:
        """Raise unless every parameter is what it must be."""
        super().check()
        check_number(self.teleport, "teleport", strict=True, most=1.0)


@dataclass(frozen=True)
class HeatKernel(Diffusion):
    """The heat kernel: Π = exp(−t (I − M)) with t = `time`, the mean number of steps from the root."""

    time: float = 5.0

    def series(self) -> np.ndarray:
        """θ_k = e^-t t^k / k!."""
        return heat_series(self.time, self.tolerance)

    def check(self) -> None:
        """Raise unless every parameter is what it must be."""
        super().check()
        check_number(self.time, "time", most=100.0)


@dataclass(frozen=True)
class StepAverage(Diffusion):
    """The average of S²GC: Π = r I + (1 − r) / K · Σ_{k=1}^K M^k, with K = `steps` and r = `root`."""

    steps: int = 16
    root: float = 0.05

    def series(self) -> np.ndarray:
        """θ_0 = r, θ_k = (1 − r) / K."""
        return average_series(self.steps, self.root)

    def check(self) -> None:
        """Raise unless every parameter is what it must be."""
        super().check()
        check_integer(self.steps, "steps", least=1)
        check_number(self.root, "root", strict=True, most=1.0)


DIFFUSIONS = (PageRank, HeatKernel, StepAverage)

# --- the choice -----------------------------------------------------------------------------------------

MULTISETS: dict[str, Callable[..., Multisets]] = {
    "neighbourhood": lambda graph, weights, n_jobs=None: neighbourhoods(graph, closed=True, weights=weights),
    "open-neighbourhood": lambda graph, weights, n_jobs=None: neighbourhoods(graph, closed=False, weights=weights),
    "ppr": PageRank(),
    "heat": HeatKernel(),
    "s2gc": StepAverage(),
}


def choose_multiset(multiset: str | Diffusion) -> Callable[..., Multisets]:
    """What builds the multisets, (graph, weights, n_jobs) → Multisets: a name of the table, or a record of its own."""
    if isinstance(multiset, Diffusion):
        multiset.check()
        return multiset
    return look_up(MULTISETS, multiset, "multiset (or a record such as PageRank(members=32))")
