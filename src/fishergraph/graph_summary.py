"""What is in a graph, and what was read to make it, in one line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from fishergraph.io.edge_reading import EdgeReading

_SHOWN = 5_000_000  # edges that are summarised in a notebook


@dataclass(frozen=True)
class GraphSummary:
    """What is in a graph, and what became of the edges that were read; `print` shows it as one line.

    Attributes
    ----------
    path : str
        The file, if the edges came from one.
    nodes, edges : int
        Their numbers; edges without direction are counted once.
    directed : bool
        Whether some edge has no reverse.
    reciprocity : float
        The share of the edges whose reverse is an edge too; self-loops do not count.
    weights : tuple of float or None
        The smallest and the largest weight; None if all are 1.
    self_loops, isolated : int
        Edges from a node to itself, and nodes without any edge.
    parallel : int
        Edges whose weights were added to those of an earlier edge with the same ends.
    zero_weights : int
        Edges of weight zero, which were left out.
    dropped, unknown, added : int
        Edges that were left out because they end at an unknown id; the unknown ids; those that became nodes.
    columns : dict
        Role → name of the column that was used.
    left : tuple of str
        Columns, or attributes of edges, that were not used.
    notes : tuple of str
        What was found out about the file.

    See Also
    --------
    fishergraph.Graph.summary : Make one.

    Examples
    --------
    >>> from fishergraph import as_graph
    >>> print(as_graph([("a", "b"), ("a", "b"), ("b", "c", 2.5)]).summary())
    3 nodes, 2 edges with direction (0.0 % reciprocated), weights 2 to 2.5, 1 parallel edge added to another
    """

    nodes: int
    edges: int
    directed: bool
    reciprocity: float
    weights: tuple[float, float] | None
    self_loops: int
    isolated: int
    path: str = ""
    parallel: int = 0
    zero_weights: int = 0
    dropped: int = 0
    unknown: int = 0
    added: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields by their names, for a record in JSON."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [_counted(self.nodes, "node"), self._edges(), *self._counts()]
        sentences = [", ".join(parts)]
        if any(role != name for role, name in self.columns.items()):
            sentences.append(f"columns {', '.join(f'{role} = {name}' for role, name in self.columns.items())}")
        if self.left:
            more = f", … ({len(self.left):,} in all)" if len(self.left) > 10 else ""
            sentences.append(f"left aside: {', '.join(self.left[:10])}{more}")
        if self.notes:
            sentences.append(", ".join(self.notes))
        return (f"{self.path}: " if self.path else "") + "; ".join(sentences)

    def _edges(self) -> str:
        edges = _counted(self.edges, "edge")
        if not self.directed:
            return f"{edges} without direction" if self.edges else edges
        return f"{edges} with direction ({100 * self.reciprocity:.1f} % reciprocated)"

    def _counts(self) -> list[str]:
        """What else there is, or was."""
        some = []
        if self.weights is not None:
            some.append(f"weights {self.weights[0]:.4g} to {self.weights[1]:.4g}")
        if self.parallel:
            some.append(f"{_counted(self.parallel, 'parallel edge')} added to another")
        if self.zero_weights:
            some.append(f"{_counted(self.zero_weights, 'edge')} of weight zero left out")
        if self.self_loops:
            some.append(_counted(self.self_loops, "self-loop"))
        if self.isolated:
            some.append(f"{_counted(self.isolated, 'node')} without edges")
        if self.dropped:
            some.append(f"{_counted(self.dropped, 'edge')} to {_counted(self.unknown, 'unknown id')} left out")
        if self.added:
            some.append(f"{_counted(self.added, 'unknown id')} added as nodes")
        return some

    def _repr_html_(self) -> str:
        rows = [
            ("nodes", f"{self.nodes:,}" + (f", {self.isolated:,} without edges" if self.isolated else "")),
            ("edges", self._edges()),
            ("more", ", ".join(part for part in self._counts() if "without edges" not in part)),
            ("columns", ", ".join(f"{role} = {name}" for role, name in self.columns.items())),
            ("left aside", ", ".join(self.left)),
            ("file", ", ".join(filter(None, (self.path, *self.notes)))),
        ]
        cells = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows if text)
        return f"<table>{''.join(cells)}</table>"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


class _Rows(Protocol):
    """What a summary needs of a graph."""

    @property
    def n_nodes(self) -> int: ...
    @property
    def n_edges(self) -> int: ...
    @property
    def indptr(self) -> np.ndarray: ...
    @property
    def indices(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray | None: ...
    @property
    def reading(self) -> EdgeReading | None: ...


def as_html(graph: _Rows) -> str:
    """What a notebook shows of a graph: its summary, or one line if that takes time."""
    return summarise(graph)._repr_html_() if graph.n_edges <= _SHOWN else f"<pre>{escape(repr(graph))}</pre>"


def summarise(graph: _Rows) -> GraphSummary:
    """What is in a graph, and what was read to make it."""
    n, degrees = graph.n_nodes, np.diff(graph.indptr)
    pattern: Any = sp.csr_array((np.ones(graph.n_edges, np.int8), graph.indices, graph.indptr), shape=(n, n))
    loops = int((pattern.diagonal() != 0).sum())
    back = pattern.T.tocsr()
    plain = graph.n_edges - loops
    mutual = int(pattern.multiply(back).nnz) - loops if plain else 0
    used = (degrees > 0) | (np.diff(back.indptr) > 0)
    weights = graph.weights
    span = None if weights is None or not len(weights) else (float(weights.min()), float(weights.max()))
    directed = mutual < plain
    read = graph.reading or EdgeReading()
    return GraphSummary(
        nodes=n,
        edges=graph.n_edges if directed else plain // 2 + loops,
        directed=directed,
        reciprocity=mutual / plain if plain else 0.0,
        weights=span,
        self_loops=loops,
        isolated=n - int(used.sum()),
        path=read.path,
        parallel=read.merged,
        zero_weights=read.zeros,
        dropped=read.dropped,
        unknown=read.unknown,
        added=read.added,
        columns=dict(read.columns),
        left=read.left,
        notes=read.notes,
    )
