"""`Multisets`, and the plainest of them: rows alone, neighbourhoods, the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from fishergraph._arrays import check_weight_scale, plain_array
from fishergraph._errors import InputError
from fishergraph._records import as_indices, as_offsets, as_weights, normalise, unchecked
from fishergraph._validation import check_flag, check_host_memory, check_integer, look_up
from fishergraph.graph import as_graph


class SetsOfPoints:
    """Multisets whose members are points themselves, and not lifted from several of them (`LiftedSets`)."""

    indptr: Any
    indices: Any

    slots: ClassVar[int] = 1  # how many points stand side by side in a member
    lifted: ClassVar[bool] = False  # whether the points of members exist only once they are gathered

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return self.indptr.shape[0] - 1

    @property
    def largest(self) -> int:
        """The most members of a set."""
        return int((self.indptr[1:] - self.indptr[:-1]).max()) if self.n_sets else 0

    def own_entries(self) -> Any:
        """The sets over their own entries, one point each, counted from zero in their order."""
        raise NotImplementedError

    def gather(self, points: Any) -> tuple[Any, Any]:
        """Return the points of the members of these sets, one by one in their order, and the sets over them."""
        return self.members(points, self.indices[int(self.indptr[0]) : int(self.indptr[-1])]), self.own_entries()

    def members(self, points: Any, chosen: Any) -> Any:
        """Return the points of the chosen members."""
        return array_namespace(points).take(points, chosen, axis=0)

    def alone(self, points: Any) -> Any:
        """Return every point as a member: what learning uses if the sets have none."""
        return points

    def pooled(self, rows: Any) -> Any:
        """Return the rows of the result: one per set."""
        return rows


@dataclass(frozen=True)
class Multisets(SetsOfPoints):
    """Weighted multisets over points, in compressed sparse rows.

    The arrays are validated once, when the record is made; compiled loops trust them. Smaller integers become int32.

    Parameters
    ----------
    indptr : array of shape (n_sets + 1,), int64
        Offsets into `indices`. They need not start at zero, so a row block is a view.
    indices : array of shape (n_entries,), int32 or int64
        The points of every set.
    weights : array of shape (n_entries,), float32 or float64, or None
        Finite and not negative; None if every entry has weight one.
    n_points : int
        The number of points.

    See Also
    --------
    neighbourhoods : Multisets of the neighbours of nodes.
    node_sets : Multisets of the nodes of graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Multisets
    >>> Multisets(np.array([0, 2, 3]), np.array([0, 1, 1]), None, n_points=2)
    Multisets(2 sets over 2 points, 3 members)
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    n_points: int

    def __post_init__(self) -> None:
        n_points, indptr = check_integer(self.n_points, "n_points", least=0), as_offsets(self.indptr)
        used = slice(int(indptr[0]), int(indptr[-1]))
        indices = as_indices(self.indices, used, n_points)
        if used.stop > len(indices):
            raise InputError(
                parameter="indptr",
                expected=f"end at or before the number of indices, {len(indices)}",
                got=f"{used.stop}",
                advice="count the members of each set with np.cumsum",
            )
        weights = as_weights(self.weights, len(indices), used, least="not negative")
        normalise(self, indptr=indptr, indices=indices, weights=weights, n_points=n_points)

    @property
    def n_entries(self) -> int:
        """Number of members of all sets together."""
        return int(self.indptr[-1] - self.indptr[0])

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else " weighted"
        return f"Multisets({self.n_sets:,} sets over {self.n_points:,} points, {self.n_entries:,}{weighted} members)"

    def block(self, rows: slice) -> Multisets:
        """The sets of consecutive rows, without a copy."""
        start, stop, _ = rows.indices(self.n_sets)
        stop = max(start, stop)
        return unchecked(Multisets, self.indptr[start : stop + 1], self.indices, self.weights, self.n_points)

    def take(self, rows: np.ndarray) -> Multisets:
        """The sets of the given rows, in that order (copied)."""
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(sizes, out=indptr[1:])
        entries = np.repeat(self.indptr[rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        weights = None if self.weights is None else self.weights[entries]
        return unchecked(Multisets, indptr, self.indices[entries], weights, self.n_points)

    def own_entries(self) -> Multisets:
        """The sets over their own entries, one point each, counted from zero in their order."""
        start, stop = int(self.indptr[0]), int(self.indptr[-1])
        weights = None if self.weights is None else self.weights[start:stop]
        entries = np.arange(stop - start, dtype=self.indices.dtype)
        return unchecked(Multisets, self.indptr - start, entries, weights, stop - start)


def singletons(n_points: int) -> Multisets:
    """The multisets {x_0}, {x_1}, …: what rows without a graph are."""
    indices = np.arange(n_points, dtype=np.int32 if n_points < 2**31 else np.int64)
    return unchecked(Multisets, np.arange(n_points + 1, dtype=np.int64), indices, None, n_points)


def node_sets(graph_ptr: Any) -> Multisets:
    """Multisets of the nodes of every graph: {x_v : v a node of graph g}.

    Parameters
    ----------
    graph_ptr : array of int
        Graph g has the nodes graph_ptr[g] … graph_ptr[g + 1] − 1; a graph without nodes has an empty set.

    Returns
    -------
    Multisets
        One set per graph.

    See Also
    --------
    fishergraph.FisherGraphEmbedding : Embeds these sets.

    Examples
    --------
    >>> from fishergraph import node_sets
    >>> node_sets([0, 2, 5])
    Multisets(2 sets over 5 points, 5 members)
    """
    indptr = plain_array(graph_ptr, "graph_ptr")
    rises = indptr.ndim == 1 and len(indptr) > 0 and indptr.dtype.kind in "iu"
    if not rises or indptr[0] != 0 or (np.diff(indptr.astype(np.int64)) < 0).any():
        raise InputError(
            parameter="graph_ptr",
            expected="hold integers that begin with 0 and never fall",
            got=f"{graph_ptr!r}",
            advice="count the nodes of each graph with np.cumsum",
        )
    n_nodes = int(indptr[-1])
    check_host_memory(16 * n_nodes, f"{n_nodes} nodes need", "for their sets", "count the nodes that there are")
    every = singletons(n_nodes)
    return unchecked(Multisets, indptr.astype(np.int64), every.indices, None, every.n_points)


def neighbourhoods(
    graph: Any, *, closed: bool = True, weights: str | None = None, dtype: Any = np.float32
) -> Multisets:
    """Multisets of the neighbours of every node.

    S_G(v) = N(v), or N(v) ∪ {v} if `closed`.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    closed : bool, default=True
        Make every node a member of its own multiset, once, with weight one if the graph has no self-loop there.
    weights : {None, "uniform", "symmetric"}, default=None
        None keeps the graph's own weights, "uniform" sets them to one, "symmetric" divides them by the square roots of
        the degrees of both ends.
    dtype : dtype, default=float32
        The precision of computed weights, at least; that of the points.

    Returns
    -------
    Multisets
        One set per node.

    See Also
    --------
    Neighbourhood : The same as a component of the estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import neighbourhoods
    >>> neighbourhoods(np.array([[0, 1], [1, 2]]))
    Multisets(3 sets over 3 points, 5 members)
    """
    reweigh = look_up(WEIGHTS, weights if weights is not None else "edge", "weights")
    closed = check_flag(closed, "closed")
    graph = as_graph(graph)
    indptr, indices, edge_weights = graph.indptr, graph.indices, graph.weights
    if closed:
        indptr, indices, edge_weights = _add_missing_loops(indptr, indices, edge_weights)
    return unchecked(Multisets, indptr, indices, reweigh(indptr, indices, edge_weights, dtype), graph.n_nodes)


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


def _edge(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, dtype: Any) -> np.ndarray | None:
    """a_vu = w_vu, the weights as given."""
    return weights


def _uniform(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, dtype: Any) -> np.ndarray | None:
    """a_vu = 1."""
    return None


def _symmetric(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, dtype: Any) -> np.ndarray | None:
    """a_vu = w_vu / √(d_v d_u), with d_v the weight v receives and d_u the weight u sends."""
    received, sent = degrees(indptr, indices, weights)
    inverse_received, inverse_sent = inverse_sqrt_or_zero(received), inverse_sqrt_or_zero(sent)
    kind = weight_dtype(weights, dtype)
    check_weight_scale(weights, kind)
    scaled = inverse_sent.astype(kind)[indices]
    scaled *= np.repeat(inverse_received.astype(kind), np.diff(indptr))
    return scaled if weights is None else scaled * weights


def weight_dtype(weights: np.ndarray | None, dtype: Any) -> np.dtype:
    """The dtype of weights that a rule computes from these for points of `dtype`: the wider one, float32 at least."""
    try:
        points = np.dtype(dtype)
    except (TypeError, ValueError):
        points = None
    if points not in (np.float16, np.float32, np.float64):
        raise InputError(parameter="dtype", value=dtype, expected="be a floating-point type of at most 64 bits")
    return np.result_type(np.float32, points, *(() if weights is None else (weights.dtype,)))


def degrees(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(what every node receives, what every node sends): the sums of the rows and of the columns, float64."""
    n = len(indptr) - 1
    if weights is None:
        return np.diff(indptr).astype(np.float64), np.bincount(indices, minlength=n).astype(np.float64)
    matrix = sp.csr_array((weights, indices, indptr), shape=(n, n))
    # Both in float64: a sum of many float32 weights would be off by percents. No edge at all gives integers.
    return matrix @ np.ones(n), np.bincount(indices, weights=weights, minlength=n).astype(np.float64)


def inverse_sqrt_or_zero(degrees: np.ndarray) -> np.ndarray:
    """d^-½, and 0 where d = 0."""
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


# (indptr, indices, weights, dtype of the points) → the weights of the members
WEIGHTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray | None, Any], np.ndarray | None]] = {
    "edge": _edge,
    "uniform": _uniform,
    "symmetric": _symmetric,
}
