"""`fishergraph nearest`: the nodes whose vectors are nearest to those of others."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import typer

from fishergraph.cli.answers import AnswerJob, check_answer, given, read_vectors, show_answer, write_answer
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.jobs import with_options
from fishergraph.cli.options import wrong_call


@dataclass(frozen=True, kw_only=True)
class NearestJob(AnswerJob):
    """What nearest was asked for.

    Parameters
    ----------
    nodes : [ID]...
        Ids of nodes. Without them --output gets the neighbours of every node.
    k : N, default=10, or all other nodes
        Neighbours of each node.
    metric : NAME, default=cosine
        What is compared: cosine (angles), dot (inner products) or euclidean (distances).
    approximate : bool
        Search a graph of neighbours, which is faster for all nodes of a large graph and misses some of them (extra
        approximate).
    """

    nodes: list[str] | None = None
    k: int | None = None
    metric: str | None = None
    approximate: bool = False

    ARGUMENTS = ("embedding", "nodes")


@with_options([])
def nearest(job: NearestJob) -> None:
    """Find the nodes whose vectors are nearest to those of others.

    The search is exact and compares with all nodes. A node is not its own neighbour.

    [bold]Examples[/bold]

    fishergraph nearest z.parquet 35 40 -k 5

    fishergraph nearest z.parquet -o neighbours.parquet
    """
    begin = perf_counter()
    if not job.nodes and job.output is None:
        raise typer.BadParameter("name nodes, or give --output for the neighbours of every node.")
    check_answer(job.output, job.embedding, job.config)
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        vectors = read_vectors(job.embedding, bar)
        options = {**given(job, "k", "metric", "approximate"), "n_jobs": job.jobs, "verbose": bar}
        rows = vectors.rows(job.nodes) if job.nodes else None
        with wrong_call():
            found = vectors.neighbours(**options) if rows is None else vectors.nearest(rows=rows, **options)
        table = found.to_arrow()
        if job.output is not None:
            write_answer(job.output, table)
    if job.quiet:
        return
    if job.output is None:
        show_answer(table)
    else:
        seconds = perf_counter() - begin
        typer.echo(f"{job.output}: {found.k} neighbours of each of {len(found):,} nodes in {seconds:.1f} s")
