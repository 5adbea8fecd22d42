"""Several relations on a page of one type of nodes: their union, the names of each edge, and what lies outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph._records import unchecked
from fishergraph.explore.columns import Column, number_column
from fishergraph.explore.inputs import Nodes, places
from fishergraph.graph import Graph, as_graph
from fishergraph.graphs import Relations
from fishergraph.graphs.relation_readers import is_hetero, kinds_of_edges
from fishergraph.graphs.relations import relation_labels

_MOST = 52  # relations whose names a number of the page can hold


@dataclass(frozen=True, eq=False)
class EdgeKinds:
    """Which relations an edge belongs to.

    Attributes
    ----------
    codes : CSR array
        Row v, column u: the sum of 2^k over the relations k of the edges from u to v.
    labels : list of str
        The names of the relations.
    """

    codes: Any
    labels: list[str]

    def of(self, rows: np.ndarray, targets: np.ndarray, sources: np.ndarray, *, both: bool) -> np.ndarray:
        """The codes of edges of the page, whose nodes have these rows; `both` adds those of their reverse."""
        if not len(targets):
            return np.zeros(0, np.int64)
        targets, sources = rows[targets], rows[sources]
        found = np.asarray(self.codes[targets, sources]).ravel()
        return found | np.asarray(self.codes[sources, targets]).ravel() if both else found

    def words(self, code: int) -> list[str]:
        """The relations of a code."""
        return [name for k, name in enumerate(self.labels) if code >> k & 1]


def holds_kinds(graph: Any) -> bool:
    """Whether a graph has several kinds of nodes or edges."""
    return isinstance(graph, (Mapping, Relations)) or is_hetero(graph) or len(kinds_of_edges(graph)) > 1


def read_relations(relations: Relations, nodes: Nodes) -> Graph:
    """The union of all relations between nodes of the page, in their order.

    The nodes are told which relations each edge belongs to, and have a column for the edges of each relation that lead
    elsewhere: to another type, or to nodes that the embedding does not have.
    """
    place = _places(relations, nodes)
    if len(relations.keys) > _MOST:
        expected = f"have at most {_MOST} relations"
        raise InputError(parameter="graph", expected=expected, got=str(len(relations.keys)))
    shape, labels = (nodes.n, nodes.n), list(relation_labels(relations.keys).values())
    whole, codes = sp.csr_array(shape, dtype=np.float64), sp.csr_array(shape, dtype=np.int64)
    for k, ((source_type, _, target_type), edges) in enumerate(relations.edges.items()):
        A: Any = edges.adjacency.tocoo()
        target, source = place[target_type][A.row], place[source_type][A.col]
        inside = (target >= 0) & (source >= 0)
        ends = (target[inside], source[inside])
        whole = whole + sp.csr_array(sp.coo_array((A.data[inside].astype(np.float64), ends), shape))
        codes = codes + sp.csr_array(sp.coo_array((np.full(len(ends[0]), 1 << k, np.int64), ends), shape))
        there = source_type if len(relations.types) > 1 else "others"
        nodes.columns += _outside(f"{labels[k]}: from {there}", target[(target >= 0) & (source < 0)], nodes)
        there = target_type if len(relations.types) > 1 else "others"
        nodes.columns += _outside(f"{labels[k]}: to {there}", source[(target < 0) & (source >= 0)], nodes)
    nodes.kinds = EdgeKinds(codes, labels)
    named = ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")
    nodes.notes.append(
        f"The graph has {len(labels)} kinds of edges, {named}. The page shows those between its nodes; columns count "
        "those that lead elsewhere."
    )
    union = as_graph(whole)
    return unchecked(Graph, union.indptr, union.indices, union.weights, nodes.ids)


def _outside(name: str, ends: np.ndarray, nodes: Nodes) -> list[Column]:
    """The column that counts edges which lead to nodes that are not on the page; none if there are no such edges."""
    if not len(ends):
        return []
    note = "Edges of this kind to nodes that the embedding does not have."
    return [number_column(name, np.bincount(ends, minlength=nodes.n).astype(np.int64), role="degree", note=note)]


def _places(relations: Relations, nodes: Nodes) -> dict[str, np.ndarray]:
    """The row of every node on the page, by type; −1 if it is not there."""
    found = {name: np.full(size, -1) for name, size in relations.sizes.items()}
    if nodes.named:
        rows = {name: places(nodes.ids, relations.names(name)) for name in relations.types}
        held = {name: int((row >= 0).sum()) for name, row in rows.items()}
        fits = [name for name, number in held.items() if number == max(held.values())]
    else:
        fits = [name for name, size in relations.sizes.items() if size == nodes.n]
        rows = {name: np.arange(nodes.n) for name in fits}
    if len(fits) != 1 or not (rows[fits[0]] >= 0).any():
        sizes = ", ".join(f"{size:,} {name}" for name, size in relations.sizes.items())
        raise InputError(
            parameter="graph",
            expected=f"have one type of nodes that are those of the embedding, of {nodes.n:,} rows",
            got=sizes,
            advice="pass ids=… with the ids of the nodes of its type",
        )
    return found | {fits[0]: rows[fits[0]]}
