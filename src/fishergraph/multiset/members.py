"""`Multisets`, and the plainest of them: rows alone, neighbourhoods, the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import device as device_of
from numpy.typing import ArrayLike, DTypeLike

from fishergraph._arrays import check_weight_scale, plain_array
from fishergraph._errors import InputError
from fishergraph._records import as_indices, as_offsets, as_weights, normalise, unchecked
from fishergraph._typing import Array, GraphLike, Rows
from fishergraph._validation import check_flag, check_host_memory, check_integer, look_up
from fishergraph.graph import as_graph

# How the members of a multiset are weighted; None as an option means "edge".
WEIGHTS = {
    "edge": "a_vu = w_vu, the weights of the graph",
    "uniform": "a_vu = 1",
    "symmetric": "a_vu = w_vu / √(d_v d_u), with d_v the weight that v receives and d_u the weight that u sends",
}


class SetsOfPoints:
    """Multisets whose members are points themselves, and not lifted from several of them (`LiftedSets`)."""

    indptr: Any
    indices: Any
    weights: Any
    n_points: int

    slots: int = 1  # how many points are side by side in a member
    lifted: bool = False  # whether the points of members exist only once they are gathered
    kinds: int = 1  # how many kinds of members are embedded apart

    @property
    def n_sets(self) -> int:
        """The number of multisets."""
        return self.indptr.shape[0] - 1

    @property
    def largest(self) -> int:
        """The most members of a set."""
        return int((self.indptr[1:] - self.indptr[:-1]).max()) if self.n_sets else 0

    def own_entries(self) -> Any:
        """Return the sets over their own entries, one point each, counted from zero in their order."""
        start, stop = int(self.indptr[0]), int(self.indptr[-1])
        weights = None if self.weights is None else self.weights[start:stop]
        xp = array_namespace(self.indices)
        entries = xp.arange(stop - start, dtype=self.indices.dtype, device=device_of(self.indices))
        return unchecked(type(self), self.indptr - start, entries, weights, stop - start)

    def gather(self, points: Array) -> tuple[Any, Any]:
        """Return the points of the members of these sets, one by one in their order, and the sets over them."""
        return self.members(points, self.indices[int(self.indptr[0]) : int(self.indptr[-1])]), self.own_entries()

    def members(self, points: Rows, chosen: Array) -> Any:
        """Return the points of the chosen members."""
        return array_namespace(points).take(points, chosen, axis=0)

    def alone(self, points: Rows) -> Any:
        """Return every point as a member: what learning uses if the sets have none."""
        return points

    def pooled(self, rows: Array) -> Any:
        """Return the rows of the result: one per set."""
        return rows

    def apart(self) -> Any:
        """Return the sets of every kind, those of a row one after the other."""
        return self

    def sent_weights(self) -> Any:
        """Return the weight with which every point is a member of all sets together, (point,), float64."""
        used = slice(int(self.indptr[0]), int(self.indptr[-1]))
        weights = None if self.weights is None else self.weights[used]
        return np.bincount(self.indices[used], weights=weights, minlength=self.n_points).astype(np.float64)


@dataclass(frozen=True)
class Multisets(SetsOfPoints):
    """Weighted multisets over points, in compressed rows.

    Set v holds the points ``indices[indptr[v]:indptr[v + 1]]``. The arrays are validated once, when the record is
    made: compiled loops trust them. Smaller integers become int32.

    Parameters
    ----------
    indptr : int64 array of shape (n_sets + 1,)
        Offsets into `indices`. They need not start at zero, so that a row block is a view.
    indices : int32 or int64 array of shape (n_entries,)
        The points.
    weights : float32 or float64 array of shape (n_entries,), or None
        Finite weights that are not negative; None if every entry weighs one.
    n_points : int
        The number of points.

    See Also
    --------
    neighbourhoods : The multisets of a graph.
    LiftedSets : Multisets whose members are made of several points.

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
            expected = f"end at or before the number of indices, {len(indices)}"
            advice = "count the members of each set with np.cumsum"
            raise InputError(parameter="indptr", expected=expected, got=f"{used.stop}", advice=advice)
        weights = as_weights(self.weights, len(indices), used, least="not negative")
        normalise(self, indptr=indptr, indices=indices, weights=weights, n_points=n_points)

    @property
    def n_entries(self) -> int:
        """The number of members of all sets."""
        return int(self.indptr[-1] - self.indptr[0])

    def __repr__(self) -> str:
        weighted, name = "" if self.weights is None else " weighted", type(self).__name__
        return f"{name}({self.n_sets:,} sets over {self.n_points:,} points, {self.n_entries:,}{weighted} members)"

    def block(self, rows: slice) -> Multisets:
        """Return the sets of consecutive rows, without a copy."""
        start, stop, _ = rows.indices(self.n_sets)
        stop = max(start, stop)
        return unchecked(Multisets, self.indptr[start : stop + 1], self.indices, self.weights, self.n_points)

    def take(self, rows: np.ndarray) -> Multisets:
        """Return the sets of the given rows, in that order (copied)."""
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(sizes, out=indptr[1:])
        entries = np.repeat(self.indptr[rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        weights = None if self.weights is None else self.weights[entries]
        return unchecked(Multisets, indptr, self.indices[entries], weights, self.n_points)


def consecutive(indptr: np.ndarray, weights: np.ndarray | None = None) -> Multisets:
    """Set v holds the points indptr[v] … indptr[v + 1] − 1; the offsets begin at zero."""
    n_points = int(indptr[-1])
    indices = np.arange(n_points, dtype=np.int32 if n_points < 2**31 else np.int64)
    return unchecked(Multisets, indptr, indices, weights, n_points)


def singletons(n_points: int) -> Multisets:
    """The multisets {x_0}, {x_1}, …: what rows without a graph are."""
    return consecutive(np.arange(n_points + 1, dtype=np.int64))


def node_sets(graph_ptr: ArrayLike) -> Multisets:
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
    neighbourhoods : One set per node.

    Examples
    --------
    >>> from fishergraph import node_sets
    >>> node_sets([0, 3, 5])
    Multisets(2 sets over 5 points, 5 members)
    """
    indptr = plain_array(graph_ptr, "graph_ptr")
    integers = indptr.ndim == 1 and len(indptr) > 0 and indptr.dtype.kind in "iu"
    if not integers or indptr[0] != 0 or (np.diff(indptr.astype(np.int64)) < 0).any():
        expected, advice = (
            "hold integers that begin with 0 and never fall",
            "count the nodes of each graph with np.cumsum",
        )
        raise InputError(parameter="graph_ptr", expected=expected, got=f"{graph_ptr!r}", advice=advice)
    n_nodes = int(indptr[-1])
    check_host_memory(16 * n_nodes, f"{n_nodes} nodes need", "for their sets", "count the nodes that there are")
    return consecutive(indptr.astype(np.int64))


def neighbourhoods(
    graph: GraphLike, *, closed: bool = True, weights: str | None = None, dtype: DTypeLike = np.float32
) -> Multisets:
    """Multisets of the neighbours of every node: S_G(v) = N(v), or N(v) ∪ {v}.

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
    >>> neighbourhoods(np.array([[0, 1], [1, 2]]), closed=False)
    Multisets(3 sets over 3 points, 2 members)
    """
    look_up(WEIGHTS, "edge" if weights is None else weights, "weights")
    closed = check_flag(closed, "closed")
    graph = as_graph(graph)
    indptr, indices, edge_weights = graph.indptr, graph.indices, graph.weights
    if closed:
        indptr, indices, edge_weights = _add_missing_loops(indptr, indices, edge_weights)
    if weights is not None:
        edge_weights = weigh_members(weights, indptr, indices, edge_weights, dtype)
    return unchecked(Multisets, indptr, indices, edge_weights, graph.n_nodes)


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


def weigh_members(
    kind: str, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, dtype: DTypeLike
) -> np.ndarray | None:
    """The weights of the members, of a kind of `WEIGHTS`, for points of `dtype`; None if all are one."""
    if kind != "symmetric":
        return None if kind == "uniform" else weights
    received, sent = degrees(indptr, indices, weights)
    inverse_received, inverse_sent = inverse_sqrt_or_zero(received), inverse_sqrt_or_zero(sent)
    wide = weight_dtype(weights, dtype)
    check_weight_scale(weights, wide)
    scaled = inverse_sent.astype(wide)[indices]
    scaled *= np.repeat(inverse_received.astype(wide), np.diff(indptr))
    return scaled if weights is None else scaled * weights


def weight_dtype(weights: np.ndarray | None, dtype: DTypeLike) -> np.dtype:
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
