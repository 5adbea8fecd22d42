"""What is in relations, and what was read to make them: a line for the nodes, and one for each relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import Any

import numpy as np

from fishergraph.graph_summary import GraphSummary, summarise
from fishergraph.io.edge_reading import EdgeReading

NODE = "node"  # the type of nodes that have no other name
_FILE = ("path", "columns", "left", "notes")  # what relations of one table have in common


@dataclass(frozen=True)
class RelationSummary(GraphSummary):
    """What is in one relation: a `GraphSummary` with the types of its ends.

    Attributes
    ----------
    name : str
        The relation.
    source, target : str
        The types of nodes it goes from and to.
    """

    name: str = ""
    source: str = ""
    target: str = ""

    def _edges(self) -> str:
        if self.source == self.target:
            return super()._edges()
        return f"{self.edges:,} edge{'' if self.edges == 1 else 's'} from {self.source} to {self.target}"

    def __str__(self) -> str:
        return f"{self.name}: {super().__str__().partition(', ')[2]}"


@dataclass(frozen=True, repr=False)
class RelationsSummary:
    """What is in several relations; `print` shows a line for the nodes, and one for each relation.

    Attributes
    ----------
    nodes : dict
        Type of nodes → their number.
    relations : tuple of RelationSummary
        One record for each relation, with the fields of a `GraphSummary`.
    path, columns, left, notes : str, dict, tuple, tuple
        The file, the columns that were used and those that were not, and what was found out about the file, if all
        relations come from one table.

    See Also
    --------
    fishergraph.Relations.summary : Make one.

    Examples
    --------
    >>> from fishergraph import as_relations
    >>> edges = {("author", "writes", "paper"): [("ann", 1), ("bob", 1)], ("paper", "cites", "paper"): [(2, 1)]}
    >>> print(as_relations(edges).summary())
    2 author, 2 paper
      writes: 2 edges from author to paper, 1 node without edges
      cites: 1 edge with direction (0.0 % reciprocated)
    """

    nodes: dict[str, int]
    relations: tuple[RelationSummary, ...]
    path: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"RelationsSummary({len(self.nodes)} types of nodes, {len(self.relations)} relations)"

    def as_dict(self) -> dict[str, Any]:
        """The fields by their names, for a record in JSON."""
        return {**vars(self), "relations": [one.as_dict() for one in self.relations]}

    @property
    def lines(self) -> list[str]:
        """The line for the nodes, and those of the relations."""
        one = list(self.nodes) == [NODE]
        nodes = ", ".join(f"{size:,} {'nodes' if one else name}" for name, size in self.nodes.items())
        sentences = [f"{self.path}: {nodes}" if self.path else nodes]
        if any(role != name for role, name in self.columns.items()):
            sentences.append(f"columns {', '.join(f'{role} = {name}' for role, name in self.columns.items())}")
        if self.left:
            sentences.append(f"left aside: {', '.join(self.left)}")
        return ["; ".join([*sentences, *self.notes]), *map(str, self.relations)]

    def __str__(self) -> str:
        return "\n  ".join(self.lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def summarise_relations(
    sizes: Mapping[str, int], edges: Mapping[Any, Any], labels: Mapping[Any, str]
) -> RelationsSummary:
    """What is in relations; what their records of reading have in common is told once."""
    relations = tuple(_summarise(key, one, labels[key]) for key, one in edges.items())
    first = relations[0]
    if not all(getattr(one, name) == getattr(first, name) for one in relations for name in _FILE):
        return RelationsSummary(dict(sizes), relations)
    common = {name: getattr(first, name) for name in _FILE}
    own = {"path": "", "columns": {}, "left": (), "notes": ()}
    return RelationsSummary(dict(sizes), tuple(replace(one, **own) for one in relations), **common)


def _summarise(key: tuple[str, str, str], edges: Any, name: str) -> RelationSummary:
    """What is in one relation."""
    source, _, target = key
    if source == target:
        whole = summarise(edges)
        values = {one.name: getattr(whole, one.name) for one in fields(GraphSummary)}
        return RelationSummary(**values, name=name, source=source, target=target)
    weights, read = edges.weights, edges.reading or EdgeReading()
    alone = int((np.diff(edges.indptr) == 0).sum()) + edges.n_sources - len(np.unique(edges.indices))
    return RelationSummary(
        nodes=edges.n_sources + edges.n_nodes,
        edges=edges.n_edges,
        directed=True,
        reciprocity=0.0,
        weights=None if weights is None or not len(weights) else (float(weights.min()), float(weights.max())),
        self_loops=0,
        isolated=alone,
        path=read.path,
        parallel=read.merged,
        zero_weights=read.zeros,
        dropped=read.dropped,
        unknown=read.unknown,
        added=read.added,
        columns=dict(read.columns),
        left=read.left,
        notes=read.notes,
        name=name,
        source=source,
        target=target,
    )
