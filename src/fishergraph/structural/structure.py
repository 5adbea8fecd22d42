"""`Structure`: columns of the nodes from the edges of a graph alone, as blocks of an embedding or instead of features.

- "factors": factors of the logarithm of random walks of up to twenty steps, as in NetMF. They separate communities.
- "spectral": leading eigenvectors of the normalised adjacency. They show the coarse communities.
- "projection": three degree columns and a random projection of the neighbourhoods of one to three steps, as in FastRP.
  The quickest that tells nodes apart.
- "local": log-degrees, triangles, clustering, PageRank and core numbers, and their means around a node. They say which
  part a node plays, and carry over from one graph to another.
- "degree": a one-hot code of the degree, which carries over too.

Every kind gives finite rows and depends on nothing but the graph, the ids of its nodes, the width and the seed. Edges
of "factors", "spectral" and most local columns count both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fishergraph._arrays import check_weight_scale
from fishergraph._component import Component, choose
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread, row_blocks
from fishergraph._repr import short_repr
from fishergraph._typing import GraphLike
from fishergraph._validation import MOST_COLUMNS, check_integer, check_number, check_seed, look_up
from fishergraph._warn import warn
from fishergraph.graph import as_graph
from fishergraph.structural.both_ways import Edges
from fishergraph.structural.columns import MAX_BINS, degree_columns, projection_columns
from fishergraph.structural.factors import OPERATORS, Factors, learn_factors, write_product
from fishergraph.structural.keys import known_rows, node_keys
from fishergraph.structural.local import LOCAL_COLUMNS, local_columns
from fishergraph.structural.rows import Rows, Storage

# The kinds, and the fewest and most columns they have.
KINDS = {
    "factors": (1, MOST_COLUMNS),
    "spectral": (1, MOST_COLUMNS),
    "projection": (4, MOST_COLUMNS),
    "local": (1, LOCAL_COLUMNS),
    "degree": (1, MAX_BINS),
}
_FIXED = {"local": LOCAL_COLUMNS, "degree": MAX_BINS}  # columns that no option changes
_SAME = 0.3  # mean cosine of a node's centred columns before and after, above which two graphs have the same nodes
_ROWS = 2**16  # that are compared or written at once
# The kinds that are computed from rows of a graph in files; the others need the graph in memory.
BY_ROWS = frozenset({"factors", "local", "degree"})
# The kinds whose columns are places in the graph, and not the part that a node plays.
TELLING_APART = frozenset({*OPERATORS, "projection"})


@dataclass(frozen=True, repr=False)
class Structure(Component):
    """Columns of the nodes from the edges alone, each kind a block of the embedding.

    Columns that tell nodes apart are averaged over the graph and sharpened, as the features are in the block "smooth".
    Local columns and degrees go through a kernel map. Without X the columns of the first kind are the features too.

    Nodes are known by their ids, or by their row numbers if the graph has none. New nodes get columns from the known
    ones around them. On a graph of other nodes "factors" and "spectral" are zero, with a warning, and "projection"
    means nothing; "local" and "degree" carry over.

    Parameters
    ----------
    columns : str or sequence of str, default=("factors", "local")
        The kinds: "factors" (log-walks as in NetMF), "spectral" (eigenvectors), "projection" (as in FastRP), "local"
        (degrees, triangles, clustering, PageRank, cores) and "degree".
    n_factors : int, optional
        Columns that tell nodes apart. None is half of the embedding's `dim`, and `dim` without X. Graphs of more than
        half a million nodes get fewer.
    weight : float, default=0.1
        The weight of the blocks beside those of X, if `block_weights` names none.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `structure`.
    fishergraph.structural_features : The columns themselves.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Structure
    >>> FisherEmbedding(structure=Structure("local"))
    FisherEmbedding(structure=Structure(columns='local'))
    """

    columns: str | Sequence[str] = ("factors", "local")
    n_factors: int | None = None
    weight: float = 0.1

    def check(self) -> None:
        """Raise unless every option is valid."""
        columns = self.columns
        if not isinstance(columns, (str, tuple, list)) or not columns:
            expected = f"be one of {', '.join(map(repr, KINDS))}, or a list of these"
            raise InputTypeError(parameter="columns", value=columns, expected=expected)
        for kind in self.kinds:
            look_up(KINDS, kind, "columns")
        if len(set(self.kinds)) < len(self.kinds):
            raise InputError(parameter="columns", value=columns, expected="name every kind once")
        if self.n_factors is not None:
            check_integer(self.n_factors, "n_factors", least=4, most=MOST_COLUMNS)
        check_number(self.weight, "weight")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of columns."""
        return (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)

    def n_columns(self, dim: int, *, features: bool) -> int:
        """How many columns tell nodes apart in an embedding of that width, beside features or without."""
        return int(self.n_factors or max(dim // 2 if features else dim, 4))

    def blocks(self, dim: int, *, features: bool) -> tuple[tuple[str, int], ...]:
        """The kinds, with the most columns of each."""
        widths = dict.fromkeys(self.kinds, self.n_columns(dim, features=features))
        for kind in widths.keys() & _FIXED:
            widths[kind] = _FIXED[kind]
        return tuple(widths.items())

    def weights(self, *, features: bool) -> dict[str, float]:
        """The weights of the blocks by default; without X the first kind is what the features are made of."""
        weights = dict.fromkeys(self.kinds, self.weight)
        return weights if features else {**weights, self.kinds[0]: 1.0}


STRUCTURES: dict[str, Callable[[], Structure]] = {"auto": Structure, **{k: partial(Structure, k) for k in KINDS}}


def choose_structure(structure: str | Structure | None) -> Structure | None:
    """Return the component; a text is "auto" or a kind of columns."""
    return None if structure is None else choose(STRUCTURES, structure, Structure, "structure", example="Structure()")


@dataclass(frozen=True)
class StructureMap:
    """What the columns of a graph take from the graph of the fit.

    structure : the settings.
    width : of the columns that tell nodes apart.
    seed : of the random projection and of the range finders.
    keys : the nodes of the fit, (node,), uint64.
    factors : by kind, those of an operator; None of a kind that learns nothing.
    """

    structure: Structure
    width: int
    seed: int
    keys: np.ndarray
    factors: tuple[Factors | None, ...]

    __repr__ = short_repr

    @property
    def widths(self) -> dict[str, int]:
        """The number of columns of every kind."""
        plain = {**_FIXED, "projection": self.width}
        kinds = zip(self.structure.kinds, self.factors, strict=True)
        return {kind: plain[kind] if factors is None else len(factors.values) for kind, factors in kinds}

    def columns(
        self, graph: Any, ids: Any = None, n_jobs: int | None = None, storage: Storage | None = None
    ) -> dict[str, Any]:
        """The columns of another graph, or of the same one, by kind."""
        edges, keys = Edges(graph, storage, n_jobs), node_keys(ids, graph.n_nodes)
        rows = known_rows(self.keys, keys)
        with one_blas_thread():
            return {
                kind: _plain_columns(kind, graph, edges, keys, self.width, self.seed)
                if factors is None
                else _known_columns(kind, edges, factors, rows)
                for kind, factors in zip(self.structure.kinds, self.factors, strict=True)
            }


def fit_structure(
    structure: Structure,
    graph: Any,
    ids: Any = None,
    *,
    width: int,
    seed: int,
    n_jobs: int | None = None,
    storage: Storage | None = None,
) -> tuple[StructureMap, dict[str, Any]]:
    """Learn the columns of a graph; returns what other graphs need, and the columns by kind.

    With a storage of files the graph may be a store, if all kinds are in `BY_ROWS`.
    """
    edges, keys, learned, columns = Edges(graph, storage, n_jobs), node_keys(ids, graph.n_nodes), [], {}
    if edges.A.weights is not None:
        for rows in edges.A.chunks(edges.storage.most_entries):
            check_weight_scale(edges.A.read(rows)[2], np.dtype(np.float32))
    with one_blas_thread():  # sums of several threads would have other bits at another number of them
        for kind in structure.kinds:
            factors = None
            if kind in OPERATORS:
                factors, columns[kind] = learn_factors(OPERATORS[kind], edges, width, seed, kind)
            else:
                columns[kind] = _plain_columns(kind, graph, edges, keys, width, seed)
            learned.append(factors)
    return StructureMap(structure, width, seed, keys, tuple(learned)), columns


def _plain_columns(kind: str, graph: Any, edges: Edges, keys: np.ndarray, width: int, seed: int) -> Any:
    """Columns that need nothing from another graph."""
    if kind == "projection":
        return projection_columns(graph, keys, width, seed)
    if kind == "local":
        return local_columns(edges)
    indptr = edges.A.indptr

    def fill(out: Any) -> None:
        for rows in row_blocks(len(keys), _ROWS):
            out[rows] = degree_columns(indptr[rows.start : rows.stop + 1], MAX_BINS)

    return edges.storage.table(kind, (len(keys), MAX_BINS), fill)


def _known_columns(kind: str, edges: Edges, factors: Factors, rows: np.ndarray) -> Any:
    """The columns of a graph whose nodes are these rows of the basis, −1 if unknown; zeros if it is another graph."""
    known, basis = rows >= 0, factors.basis
    if len(rows) != len(basis) or (rows != np.arange(len(rows))).any():
        basis = np.where(known[:, None], basis[rows], np.float32(0))
    M = OPERATORS[kind].matrix(edges, basis.shape[1])
    diagonal, blocks = _diagonal(M, edges.storage.most_entries), row_blocks(len(rows), _ROWS)

    def fill(out: Any) -> None:
        write_product(M, basis, edges, out)
        if _agree(partial(_places, out, basis, diagonal, factors.values, known)):  # what others say of a node
            return
        warn(
            "structure",
            f"the nodes of the graph are not those of the fit, so the block {kind!r} says nothing of them. Name the "
            "nodes by ids if they are the same, or use structure='local', which carries over to other graphs.",
        )
        for block in blocks:
            out[block] = np.float32(0)

    columns = edges.storage.table(kind, (len(rows), basis.shape[1]), fill)
    edges.storage.forget("log-walks")
    return columns


def _places(
    columns: Any, basis: np.ndarray, diagonal: np.ndarray, values: np.ndarray, known: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What others say of the known nodes, and what they were, by blocks."""
    for block in row_blocks(len(known), _ROWS):
        own = diagonal[block, None] * basis[block]
        yield (columns[block] - own)[known[block]], (basis[block] * values)[known[block]]


def _diagonal(M: Rows, most: int) -> np.ndarray:
    """The diagonal of a matrix."""
    out = np.zeros(M.n_rows, np.float32)
    for rows in M.chunks(most):
        indptr, indices, weights = M.read(rows)
        owners = np.repeat(np.arange(rows.start, rows.stop, dtype=indices.dtype), np.diff(indptr))
        on = indices == owners
        assert weights is not None
        out[indices[on]] = weights[on]
    return out


def _agree(pairs: Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]) -> bool:
    """Whether nodes are about where they were, relative to the mean of all of them; `pairs` are places, by blocks."""
    n_rows, sums = 0, []
    for columns, before in pairs():
        n_rows += len(columns)
        sums.append([columns.sum(axis=0, dtype=np.float64), before.sum(axis=0, dtype=np.float64)])
    if n_rows == 0:
        return False
    means, cosines, n_apart = np.sum(sums, axis=0) / n_rows, 0.0, 0
    for columns, before in pairs():
        columns, before = columns - means[0], before - means[1]
        lengths = np.linalg.norm(columns, axis=1) * np.linalg.norm(before, axis=1)
        apart = lengths > 0
        cosines += float((np.einsum("ij,ij->i", columns, before)[apart] / lengths[apart]).sum())
        n_apart += int(apart.sum())
    # If no node is apart from the mean, all nodes are alike in one of the graphs.
    return n_apart == 0 or cosines / n_apart > _SAME


def structural_features(graph: GraphLike, kind: str = "factors", dim: int = 128, seed: int = 0) -> np.ndarray:
    """Compute columns of the nodes from the edges of a graph alone.

    Without edges all rows are alike, with a warning.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    kind : {"factors", "spectral", "projection", "local", "degree"}, default="factors"
        Factors of log-walks as in NetMF, leading eigenvectors, random projections of the adjacency powers with degrees,
        local columns, or degree histograms. See `Structure`.
    dim : int, default=128
        The most columns; "local" has 22, "degree" 32, and graphs of more than half a million nodes have fewer factors.
    seed : int, default=0
        Of the random projection and of the first vectors of the factorisations.

    Returns
    -------
    ndarray of shape (n_nodes, n_columns)
        The columns, float32.

    See Also
    --------
    FisherEmbedding : Uses them beside X, or instead of it.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import structural_features
    >>> structural_features(np.array([[0, 1], [1, 2]]), "degree", dim=3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    least, _ = look_up(KINDS, kind, "a structure")
    width, graph = check_integer(dim, "dim", least=least, most=MOST_COLUMNS), as_graph(graph)
    seed = check_seed(seed)
    if graph.n_edges == 0:
        warn("structure", "the graph has no edges, so all rows are alike; pass a graph with edges.")
    if kind == "degree":
        return degree_columns(graph.indptr, min(width, MAX_BINS))
    _, columns = fit_structure(Structure(kind), graph, graph.ids, width=width, seed=seed)
    return columns[kind][:, :width]
