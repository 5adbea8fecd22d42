"""The edge file of a command: how it is read, the graph that it becomes, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from fishergraph.cli.jobs import Inputs, Job, LearningJob
    from fishergraph.graph import Graph
    from fishergraph.io.edge_columns import EdgeOptions
    from fishergraph.io.edge_files import EdgeFile
    from fishergraph.io.edge_table import Edges
    from fishergraph.io.text_options import TextOptions

_FILE_OPTIONS = ("source", "target", "weight", "time", "separator", "header", "encoding", "unknown")
_UNKNOWN = ("error", "drop", "add")


@dataclass(frozen=True, kw_only=True)
class EdgeColumns:
    """Which columns of an edge file are read.

    Parameters
    ----------
    source : NAME, default=source, src, from, u or node1
        Column of the edges; in a file without header its number, from 1.
    target : NAME, default=target, dst, to, v or node2
        Column of the edges.
    weight : NAME, default=weight, weights or edge_weight
        Column of the edges; none for edges without weights.
    """

    source: str | None = None
    target: str | None = None
    weight: str | None = None


@dataclass(frozen=True, kw_only=True)
class EdgeText(EdgeColumns):
    """How a text file of edges is read.

    Parameters
    ----------
    separator : NAME, default=found in the first lines
        What separates the columns of a text file: a character, tab, comma, semicolon, space or bar. In a node file too,
        if its first line has it.
    header : bool
        The first line of the edge file names its columns, or is an edge. It is found out if neither is said.
    encoding : NAME, default=that of the byte-order mark, else utf-8
        Encoding of the text files, of edges and of nodes.
    """

    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None


@dataclass(frozen=True, kw_only=True)
class EdgeFileOptions(EdgeText):
    """How an edge file is read, and which of its edges are kept.

    Parameters
    ----------
    time : NAME
        Column of the times of edges: numbers or dates.
    unknown : NAME, default=error
        What happens to edges that end at a node which is not in the node file: error, drop the edge, or add the node.
    """

    time: str | None = None
    unknown: str | None = None


def asked_of_edges(job: Any) -> list[str]:
    """The options about the edge file that were given."""
    return ["--" + name for name in _FILE_OPTIONS if getattr(job, name, None) is not None]


def check_edge_options(job: EdgeFileOptions, *, has_nodes: bool) -> None:
    """Raise a usage error for choices that do not exist."""
    if job.unknown is not None and job.unknown not in _UNKNOWN:
        raise typer.BadParameter(f"--unknown must be one of {', '.join(_UNKNOWN)}, got {job.unknown!r}.")
    if job.unknown is not None and not has_nodes:
        raise typer.BadParameter("--unknown needs a list of nodes, of which an id can be unknown: give --nodes.")


def holds_graph(path: Path) -> bool:
    """Whether the name of a file is that of a graph with its nodes, such as GraphML."""
    from fishergraph.io.graph_files import holds_nodes

    return holds_nodes(path)


def edge_options(job: Any) -> EdgeOptions:
    """What a job says of its edge file; --separator and --encoding may be for the node file alone."""
    from fishergraph.io.edge_columns import EdgeOptions

    options = EdgeOptions(*(getattr(job, name, None) for name in _FILE_OPTIONS[:-1]))
    nodes = getattr(job, "nodes", None)
    if isinstance(nodes, Path) and _is_text(nodes) and not _is_text(job.edges):
        return replace(options, separator=None, encoding=None)
    return options


def node_text(job: Any) -> TextOptions:
    """What a job says of its node file, if that is text."""
    from fishergraph.io.text_options import TextOptions

    return TextOptions(separator=getattr(job, "separator", None), encoding=getattr(job, "encoding", None))


def _is_text(path: Path) -> bool:
    from fishergraph.io.text_table import TEXT_SUFFIXES

    return path.name.lower().endswith(tuple(TEXT_SUFFIXES))


@dataclass(frozen=True)
class JobEdges:
    """The edges of a command, and what is wrong with their file."""

    file: EdgeFile
    edges: Edges

    @property
    def ends(self) -> Any:
        """The distinct ids at their ends."""
        from fishergraph.io.id_column import distinct_ends

        return distinct_ends(self.edges.source, self.edges.target)


def edge_table(job: Any, path: Path | None) -> pa.Table | None:
    """The edges of a file, read as a job says; None without a file."""
    from fishergraph.io.edge_files import load_edges, raise_file_faults

    if path is None:
        return None
    file = load_edges(path, edge_options(job))
    raise_file_faults(file)
    return file.table


def load_job_edges(job: Any, advance: Callable[[int], Any] = lambda n: None) -> JobEdges:
    """The edge file of a job."""
    from fishergraph.io.edge_files import load_edges
    from fishergraph.io.edge_table import read_edge_table

    file = load_edges(job.edges, edge_options(job), advance=advance)
    edges = read_edge_table(file.table)
    assert edges is not None
    return JobEdges(file, edges)


def job_graph(job: Any, read: JobEdges, ids: Any, nodes: Path | None) -> Graph:
    """The graph of edges; its nodes are those with these ids, if there are any, in their order."""
    import numpy as np

    from fishergraph.graph import graph_of
    from fishergraph.io.edge_table import number_edges

    options: dict[str, Any] = {
        "node_ids": ids,
        "unknown": getattr(job, "unknown", None) or "error",
        "faults": read.file.faults,
    }
    try:
        return graph_of(number_edges(read.edges, locate=read.file.locate, **options))
    except InputError as error:
        if error.parameter != "node_ids":
            raise
        advice = "add it, or give --unknown drop or --unknown add" if "unknown=" in error.advice else error.advice
        if job.id_column is None and ids is not None and np.array_equal(ids, np.arange(len(ids))):
            advice = f"name the column of the ids by --id-column, or {advice}"
        raise error.revised(parameter=f"the ids of '{nodes}'", advice=advice) from error


def with_added(X: Any, n_nodes: int) -> Any:
    """The features with rows of zeros, or of missing values in a table, for nodes that were added."""
    import numpy as np
    import scipy.sparse as sp

    if X is None or X.shape[0] == n_nodes:
        return X
    more = n_nodes - X.shape[0]
    if hasattr(X, "column_names"):  # a table, whose missing values are encoded
        import pyarrow as pa

        nulls = [pa.nulls(more, kind) for kind in X.schema.types]
        return pa.concat_tables([X, pa.Table.from_arrays(nulls, schema=X.schema)])
    if sp.issparse(X):
        blocks: Any = [X, sp.csr_array((more, X.shape[1]), dtype=X.dtype)]
        return sp.csr_array(sp.vstack(blocks))
    return np.vstack([X, np.zeros((more, X.shape[1]), dtype=X.dtype)])


def tell(job: Job, inputs: Inputs, *, hint: bool = False) -> None:
    """Print what was read, in one line, and what people may have forgotten."""
    from fishergraph.cli.console import say

    if job.quiet:
        return
    summary = inputs.summary
    assert summary is not None
    say(f"read {summary if summary.path else replace(summary, path=str(job.edges))}")
    if hint and (line := one_way_hint(inputs, job)):  # type: ignore[arg-type]
        say(line)


def one_way_hint(inputs: Inputs, job: LearningJob) -> str | None:
    """Return a line for people whose file lists every edge of an undirected graph once, or None."""
    summary = inputs.summary
    assert summary is not None
    if job.says_direction or not summary.directed or summary.reciprocity > 0 or holds_graph(job.edges):
        return None
    return (
        "hint: every edge goes one way only, and was kept so; add --undirected if the graph has no direction, "
        "or --directed if it has one."
    )
