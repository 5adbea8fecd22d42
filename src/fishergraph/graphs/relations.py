"""`Relations`: several kinds of edges over one or several kinds of nodes, in compressed rows.

A relation goes from the nodes of one type to those of another: ("author", "writes", "paper"). Row v of its edges lists
the nodes that point to v, as in a `Graph`; an edge between two types is a row of a rectangular matrix (`Bipartite`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import as_indices, as_offsets, as_weights, check_sorted, normalise, unchecked
from fishergraph.graph import Graph, as_graph
from fishergraph.graphs.relation_summary import NODE, RelationsSummary, summarise_relations
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.times import EdgeTimes

Key: TypeAlias = tuple[str, str, str]  # source type, name, target type

REVERSE = "rev_"  # how PyTorch Geometric names the reverse of a relation


@dataclass(frozen=True, eq=False)
class Bipartite:
    """The edges from the nodes of one type to those of another, as compressed rows.

    Parameters
    ----------
    indptr, indices, weights, times, reading : arrays and a record
        As in `Graph`; a row belongs to a target, and an index is a source.
    n_sources : int
        The number of nodes that edges come from.

    See Also
    --------
    Relations : Several relations over the same nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.graphs import Bipartite
    >>> Bipartite(np.array([0, 2]), np.array([0, 2]), n_sources=3)
    Bipartite(3 -> 1 nodes, 2 edges)
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None = None
    n_sources: int = 0
    times: EdgeTimes | None = None
    reading: EdgeReading | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        indptr, every = as_offsets(self.indptr), slice(None)
        indices = as_indices(self.indices, every, self.n_sources)
        if indptr[0] != 0 or indptr[-1] != len(indices):
            expected, got = f"go from 0 to the number of indices, {len(indices)}", f"{indptr[0]} to {indptr[-1]}"
            raise InputError(parameter="indptr", expected=expected, got=got, advice="build it with as_relations")
        check_sorted(indptr, indices)
        weights = as_weights(self.weights, len(indices), every, least="positive")
        normalise(self, indptr=indptr, indices=indices, weights=weights)

    @property
    def n_nodes(self) -> int:
        """Number of nodes that edges go to."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.indices)

    @property
    def adjacency(self) -> sp.csr_array:
        """The operator (target, source); edges without weights have weight 1, float32."""
        weights = np.ones(self.n_edges, dtype=np.float32) if self.weights is None else self.weights
        return sp.csr_array((weights, self.indices, self.indptr), shape=(self.n_nodes, self.n_sources))

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else ", weighted"
        return f"Bipartite({self.n_sources:,} -> {self.n_nodes:,} nodes, {self.n_edges:,} edges{weighted})"


Edges: TypeAlias = Graph | Bipartite


@dataclass(frozen=True, eq=False, repr=False)
class Relations:
    """Several kinds of edges over one or several kinds of nodes.

    `as_relations` makes it from mappings, tables and `HeteroData`; the estimators take what that takes as `graph`.

    Parameters
    ----------
    sizes : mapping of str to int
        The number of nodes of every type.
    edges : mapping of (source type, name, target type) to Graph or Bipartite
        The relations: a `Graph` within one type, `Bipartite` between two.
    ids : mapping of str to array, optional
        The ids of the nodes of a type, in row order. A type without ids has the row numbers.

    See Also
    --------
    as_relations : Relations from other objects.
    FisherEmbedding : Embeds the nodes.

    Examples
    --------
    >>> from fishergraph import as_relations
    >>> relations = as_relations({"cites": [("a", "b")], "likes": [("b", "c"), ("a", "c")]})
    >>> relations
    Relations(3 nodes; 'cites' 1 edges, 'likes' 2 edges)
    >>> relations.ids["node"]
    array(['a', 'b', 'c'], dtype='<U1')
    """

    sizes: Mapping[str, int]
    edges: Mapping[Key, Edges]
    ids: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.edges, Mapping) or not self.edges:
            expected = "be a mapping with at least one relation"
            raise InputTypeError(parameter="edges", value=self.edges, expected=expected)
        for key, edges in self.edges.items():
            check_key(key)
            if not isinstance(edges, Graph | Bipartite):
                expected = "be a Graph or Bipartite"
                raise InputTypeError(parameter=f"the edges of {key[1]!r}", value=edges, expected=expected)
            for end in (key[0], key[2]):
                if end not in self.sizes:
                    expected = f"be one of {', '.join(map(repr, self.sizes))}"
                    raise InputError(parameter=f"the types of the relation {key[1]!r}", value=end, expected=expected)
            sources = edges.n_sources if isinstance(edges, Bipartite) else edges.n_nodes
            if (sources, edges.n_nodes) != (self.sizes[key[0]], self.sizes[key[2]]):
                expected = f"go from {self.sizes[key[0]]} {key[0]} nodes to {self.sizes[key[2]]} {key[2]} nodes"
                got = f"{sources} and {edges.n_nodes}"
                raise InputError(parameter=f"the relation {key[1]!r}", value=edges, expected=expected, got=got)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of nodes."""
        return tuple(self.sizes)

    @property
    def keys(self) -> tuple[Key, ...]:
        """(source type, name, target type) of every relation."""
        return tuple(self.edges)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all types."""
        return sum(self.sizes.values())

    @property
    def starts(self) -> dict[str, int]:
        """The first row of every type, if the nodes of all types are in one list."""
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        return dict(zip(self.sizes, ends[:-1], strict=True))

    def __repr__(self) -> str:
        one = self.types == (NODE,)
        nodes = ", ".join(f"{size:,} {'nodes' if one else name}" for name, size in self.sizes.items())
        labels = relation_labels(self.keys)
        edges = ", ".join(f"{labels[key]!r} {edges.n_edges:,} edges" for key, edges in self.edges.items())
        return f"Relations({nodes}; {edges})"

    def summary(self) -> RelationsSummary:
        """Tell what is in every relation, and what was read to make it.

        Returns
        -------
        RelationsSummary
            A record that prints as one line for the nodes, and one for each relation.
        """
        return summarise_relations(self.sizes, self.edges, relation_labels(self.keys))

    def union(self) -> Graph:
        """Return one graph of all nodes, with the edges of all relations.

        Edges of several relations add. The ids are those of the only type, or "type:id" of several.

        Returns
        -------
        Graph
            The nodes of all types in one list.
        """
        if len(self.edges) == len(self.sizes) == 1:
            (edges,), (ids,) = self.edges.values(), (self.ids.get(self.types[0]),)
            return as_graph(edges) if ids is None else unchecked(Graph, edges.indptr, edges.indices, edges.weights, ids)
        n, starts = self.n_nodes, self.starts
        whole = sp.csr_array((n, n), dtype=np.float32)
        for (source, _, target), edges in self.edges.items():
            A: Any = edges.adjacency.tocoo()
            ends = (A.row + starts[target], A.col + starts[source])
            whole = whole + sp.csr_array(sp.coo_array((A.data, ends), shape=(n, n)))
        graph = as_graph(whole)
        return unchecked(Graph, graph.indptr, graph.indices, graph.weights, self._joined_ids())

    def _joined_ids(self) -> np.ndarray | None:
        if len(self.sizes) == 1:
            return self.ids.get(self.types[0])
        names = [f"{name}:{one}" for name in self.types for one in self.names(name).tolist()]
        return np.array(names, dtype=object)

    def names(self, node_type: str) -> np.ndarray:
        """Return the ids of the nodes of a type, or their row numbers.

        Parameters
        ----------
        node_type : str
            The type.

        Returns
        -------
        array
            One id per row.
        """
        ids = self.ids.get(node_type)
        return np.arange(self.sizes[node_type]) if ids is None else ids

    def both_ways(self) -> Relations:
        """Return the relations with the reverse of every edge.

        It is added in place within a type, and as the relation "rev_name" between two.

        Returns
        -------
        Relations
            The relations and their reverse.
        """
        edges: dict[Key, Edges] = {}
        for key, one in self.edges.items():
            edges[key] = as_graph(one, undirected=True) if isinstance(one, Graph) else one
        for (source, name, target), one in self.edges.items():
            if isinstance(one, Bipartite):
                edges.setdefault((target, REVERSE + name, source), transposed(one))
        return unchecked(Relations, self.sizes, edges, self.ids)


def transposed(edges: Bipartite) -> Bipartite:
    """The reverse of every edge."""
    columns = edges.adjacency.tocsc()
    indptr, indices = columns.indptr.astype(np.int64), columns.indices.astype(edges.indices.dtype, copy=False)
    weights = None if edges.weights is None else columns.data
    times = None
    if edges.times is not None:
        numbers = sp.csr_array((np.arange(edges.n_edges), edges.indices, edges.indptr), edges.adjacency.shape)
        times = edges.times.take(numbers.tocsc().data)
    read = edges.reading and replace(edges.reading, merged=0, zeros=0, dropped=0, unknown=0, added=0)
    return unchecked(Bipartite, indptr, indices, weights, edges.n_nodes, times, read)


def check_key(key: object) -> None:
    """Raise unless a key names a source type, a relation and a target type."""
    if not (isinstance(key, tuple) and len(key) == 3 and all(isinstance(part, str) and part for part in key)):
        expected = "be (source type, name, target type), three texts, or be one text if there is one type of nodes"
        raise InputTypeError(parameter="the key of a relation", value=key, expected=expected)


def relation_labels(keys: Any) -> dict[Key, str]:
    """The name of every relation, with its types if another relation has the same name."""
    times = Counter(name for _, name, _ in keys)
    return {key: key[1] if times[key[1]] == 1 else "-".join(key) for key in keys}
