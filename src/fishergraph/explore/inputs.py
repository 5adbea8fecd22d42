"""What people have → the nodes of a page: an embedding with its ids, a graph and columns in the same order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import as_floats, check_finite_rows, is_table
from fishergraph._errors import InputError, InputTypeError, shown
from fishergraph._records import row_labels
from fishergraph._warn import warn
from fishergraph.explore.columns import Column
from fishergraph.graph import Graph, as_graph, lists_edges, names_nodes
from fishergraph.graphs import Relations
from fishergraph.io.columns import distinct_ids, edge_table, to_ids

if TYPE_CHECKING:
    from fishergraph.explore.relations import EdgeKinds


@dataclass(eq=False)
class Nodes:
    """The nodes of a page before they are sampled.

    Attributes
    ----------
    Z : array of shape (n, d)
        The embedding.
    ids : array of shape (n,)
        Integers or texts.
    named : bool
        Whether the ids were given, or are row numbers.
    blocks : list of tuple
        (name, width) of the blocks of columns; one if nothing is known.
    graph : Graph or None
        The graph, in the order of the rows.
    kinds : EdgeKinds or None
        Which relations each of its edges belongs to, if there are several.
    columns : list of Column
        What is shown of every node.
    notes : list of str
        What a reader of the page must know.
    """

    Z: np.ndarray
    ids: np.ndarray
    named: bool
    blocks: list[tuple[str, int]]
    graph: Graph | None = None
    kinds: EdgeKinds | None = None
    columns: list[Column] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.Z)

    @property
    def texts(self) -> list[str]:
        """The ids as texts."""
        return [str(value) for value in self.ids.tolist()]


# --- the embedding ------------------------------------------------------------------------------------------


def read_embedding(Z: Any, ids: Any, blocks: Any, graph: Any) -> Nodes:
    """The embedding with ids: those that are given, those of the file or the table, else those of the graph."""
    if isinstance(Z, (str, os.PathLike)):
        from fishergraph.io import tables

        Z = tables.read_embedding(Path(Z))
    labels = getattr(Z, "ids", None) if not is_table(Z) else row_labels(Z)
    held = getattr(Z, "blocks", None) if hasattr(Z, "Z") else None
    Z = getattr(Z, "Z", Z)
    if isinstance(Z, np.ndarray) and Z.ndim == 1:
        raise InputError(parameter="Z", value=Z.shape, expected="be a matrix with a row per node")
    rows = as_floats(Z, "Z")
    if sp.issparse(rows):
        raise InputTypeError(parameter="Z", expected="be dense", got="a sparse matrix", advice="pass Z.toarray()")
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(parameter="Z", value=rows.shape, expected="have at least one row and one column")
    keys = _ids(labels if ids is None else ids, len(rows))
    if keys is None and graph is not None:
        keys = _ids_of_graph(graph, len(rows))
    named = keys is not None
    keys = np.arange(len(rows)) if keys is None else keys
    check_finite_rows(rows, "Z", name_row=lambda row: f"row {row} (node {shown(keys[row].item())})")
    return Nodes(rows, keys, named, _blocks(held if blocks is None else blocks, rows.shape[1]))


def _ids(values: Any, n: int) -> np.ndarray | None:
    """Ids as integers or texts, distinct, one per row."""
    if values is None:
        return None
    values = values if isinstance(values, np.ndarray) or hasattr(values, "to_numpy") else list(values)
    if len(values) != n:
        expected = f"hold one id for each of the {n:,} rows of the embedding"
        raise InputError(
            parameter="ids", expected=expected, got=f"{len(values):,}", advice="leave them out, or repair them"
        )
    if str(getattr(values, "dtype", "object")) == "object":
        kinds = {type(value) for value in values}
        plain = all(issubclass(kind, (str, int, np.integer)) and kind is not bool for kind in kinds)
        if not plain or len({issubclass(kind, str) for kind in kinds}) > 1:
            values = [str(value) for value in values]
    return to_ids(distinct_ids(values, "ids"))


def _ids_of_graph(graph: Any, n: int) -> np.ndarray | None:
    """The ids of a graph's nodes, if it has as many as the embedding has rows."""
    if isinstance(graph, Relations):
        fits = [name for name, size in graph.sizes.items() if size == n]
        ids = graph.ids.get(fits[0]) if len(fits) == 1 else None
    else:
        ids = as_graph(edge_table(graph) if isinstance(graph, list) else graph).ids
    return _ids(ids, n) if ids is not None and len(ids) == n else None


def _blocks(blocks: Any, width: int) -> list[tuple[str, int]]:
    """The blocks of columns, which cover them."""
    if not blocks:
        return [("embedding", width)]
    try:
        listed = [(str(name), int(size)) for name, size in blocks]
    except (TypeError, ValueError):
        expected = "be pairs (name, width), as `FisherEmbedding.blocks_` lists them"
        raise InputTypeError(parameter="blocks", value=blocks, expected=expected) from None
    covered = sum(size for _, size in listed)
    if covered != width:
        expected = f"have the {width} columns of the embedding together"
        raise InputError(parameter="blocks", value=covered, expected=expected, advice="leave them out, or pass blocks_")
    return listed


# --- the graph ----------------------------------------------------------------------------------------------


def read_graph(graph: Any, nodes: Nodes) -> Graph:
    """The graph with its nodes in the order of the embedding; edges to other nodes are left out, with a warning."""
    names = isinstance(graph, list) or (not isinstance(graph, Graph) and names_nodes(graph))
    graph = edge_table(graph) if isinstance(graph, list) else graph
    whole = as_graph(graph, n_nodes=nodes.n if lists_edges(graph) and not nodes.named else None)
    by_name = whole.ids is not None or (names and (nodes.named or whole.n_nodes <= nodes.n))
    if not by_name and whole.n_nodes != nodes.n and nodes.named and nodes.ids.dtype.kind == "i":
        by_name = True
    if not by_name:
        if whole.n_nodes != nodes.n:
            raise InputError(
                parameter="graph",
                expected=f"have one node for each of the {nodes.n:,} rows of the embedding",
                got=f"{whole.n_nodes:,} nodes",
                advice="pass ids=… with the node of each row, or the embedding of this graph",
            )
        return whole
    return _by_name(whole, nodes)


def _by_name(whole: Graph, nodes: Nodes) -> Graph:
    """The graph of the nodes of the embedding, which its ids name."""
    known = np.arange(whole.n_nodes) if whole.ids is None else whole.ids
    place = places(known, nodes.ids)
    found = place >= 0
    if not found.any():
        raise InputError(
            parameter="graph",
            value=nodes.ids[0].item(),
            expected="name nodes of the embedding",
            got=f"none of them, but {shown(known[0])} in the graph and {shown(nodes.ids[0].item())} in the embedding",
            advice="pass the graph that was embedded, or its ids as ids=…",
        )
    A = whole.adjacency
    pick = sp.csr_array(
        (np.ones(found.sum(), dtype=A.dtype), (np.flatnonzero(found), place[found])), (nodes.n, len(known))
    )
    kept = sp.csr_array(pick @ A @ pick.T)
    lost = A.nnz - kept.nnz
    if lost:
        text = f"{lost:,} of {A.nnz:,} edges lead to nodes that the embedding does not have. They are left out."
        warn("edges of other nodes", text)
        nodes.notes.append(text)
    if not found.all():
        count = int((~found).sum())
        nodes.notes.append(f"{count:,} nodes of the embedding have no edge in the graph.")
    graph = as_graph(kept)
    if whole.ids is None and (place == np.arange(nodes.n)).all():
        return graph
    return Graph(graph.indptr, graph.indices, graph.weights, nodes.ids)


def places(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The position of each wanted id among the known ones, −1 if it is not there; 5 and "5" are one id."""
    if known.dtype.kind != wanted.dtype.kind:
        known, wanted = known.astype(str), wanted.astype(str)
    place = {name: k for k, name in enumerate(known.tolist())}
    return np.array([place.get(name, -1) for name in wanted.tolist()], dtype=np.int64)
