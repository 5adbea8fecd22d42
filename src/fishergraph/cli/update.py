"""`fishergraph update`: a store whose graph changes, and its embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from fishergraph.cli.console import one_line_warnings
from fishergraph.cli.edges import EdgeText, edge_table
from fishergraph.cli.jobs import with_options
from fishergraph.cli.options import wrong_call

_UNKNOWN = ("error", "drop", "add")


@dataclass(frozen=True, kw_only=True)
class UpdateJob(EdgeText):
    """What update was asked for.

    Parameters
    ----------
    store : STORE
        The store.
    edges : FILE
        New edges, and weights of edges that are there: .csv, .tsv (or .gz of these), .parquet or .npz.
    nodes : FILE
        New nodes, and nodes whose features change: an id column and the features of the store.
    remove : FILE
        Edges that go.
    remove_nodes : FILE
        Nodes that go, with their edges: an id column.
    unknown : NAME, default=error
        What happens to edges that end at a node which is not there: error, drop the edge, or add the node.
    memory : SIZE, default=half of the free memory
        Bytes that the process may use, such as 4G or 500M.
    jobs : N, default=all cores
        Threads; any number gives the same result.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        No summary.
    debug : bool
        Show the traceback of a failure.
    """

    store: Path
    edges: Path | None = None
    nodes: Path | None = None
    remove: Path | None = None
    remove_nodes: Path | None = None
    unknown: str | None = None
    memory: str | None = None
    jobs: int | None = None
    config: Path | None = None
    quiet: bool = False
    debug: bool = False

    ARGUMENTS = ("store",)


@with_options([])
def update(job: UpdateJob) -> None:
    """Change the graph of a store, and bring its embeddings up to date with the models they have.

    Rows are computed again if the bits of an input changed. The result has the bytes of a full transform.

    [bold]Examples[/bold]

    fishergraph update graph.store --edges new.parquet --nodes new-nodes.parquet

    fishergraph update graph.store --remove gone.csv --remove-nodes left.csv
    """
    with wrong_call():
        from fishergraph._validation import look_up

        unknown = job.unknown or "error"
        look_up(dict.fromkeys(_UNKNOWN), unknown, "--unknown")
        if (job.edges, job.nodes, job.remove, job.remove_nodes) == (None, None, None, None):
            raise typer.BadParameter("nothing is to change: give --edges, --nodes, --remove or --remove-nodes.")
    with one_line_warnings():
        from fishergraph.scale import update as change

        report = change(
            job.store,
            edges=edge_table(job, job.edges),
            nodes=job.nodes,
            remove=edge_table(job, job.remove),
            remove_nodes=job.remove_nodes,
            unknown=unknown,
            memory=job.memory,
            n_jobs=job.jobs,
        )
    if not job.quiet:
        typer.echo(str(report))
