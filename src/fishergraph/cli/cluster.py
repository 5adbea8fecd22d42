"""`fishergraph cluster`: groups of nodes that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.answers import AnswerJob, check_answer, given, read_vectors, show_answer, write_answer
from fishergraph.cli.components import read_value
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.jobs import with_options
from fishergraph.cli.options import wrong_call

if TYPE_CHECKING:
    from fishergraph.vectors import Clusters, Vectors


@dataclass(frozen=True, kw_only=True)
class ClusterJob(AnswerJob):
    """What cluster was asked for.

    Parameters
    ----------
    k : N, default=auto
        Clusters: a number, several that are compared (4,6,8), or auto.
    nodes : FILE
        Node file whose columns name the clusters: numbers, flags, dates, categories or text.
    id_column : NAME, default=id, node or node_id, else an index of pandas, else the row numbers
        Column of the node ids.
    drop : NAME
        Column that names no cluster; repeatable.
    metric : NAME, default=cosine
        What is clustered: cosine (directions) or euclidean (vectors).
    central : N, default=5
        Most central members that are shown of each cluster.
    seed : N, default=0
        Random seed.
    """

    k: str | None = None
    nodes: Path | None = None
    id_column: str | None = None
    drop: list[str] | None = None
    metric: str | None = None
    central: int | None = None
    seed: int | None = None

    ARGUMENTS = ("embedding",)


@with_options([])
def cluster(job: ClusterJob) -> None:
    """Group nodes that are alike, and name the groups by the columns that set them apart.

    With auto, k is the number of clusters with the largest product of silhouette (how far apart they are) and
    stability (how alike the clusters of random halves are).

    [bold]Examples[/bold]

    fishergraph cluster z.parquet

    fishergraph cluster z.parquet -k 7 -n nodes.csv -o clusters.csv
    """
    begin = perf_counter()
    check_answer(job.output, job.embedding, job.nodes, job.config)
    if job.nodes is None and (job.id_column is not None or job.drop):
        raise typer.BadParameter("--id-column and --drop need a node table: give --nodes.")
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        vectors = read_vectors(job.embedding, bar)
        columns = {} if job.nodes is None else _columns(job, vectors)
        options: dict[str, Any] = {**given(job, "metric", "central"), "n_jobs": job.jobs, "verbose": bar}
        options |= {} if job.seed is None else {"random_state": job.seed}
        options |= {} if job.k is None else {"k": read_value(job.k)}
        with wrong_call():
            found = vectors.cluster(**columns, **options)
        if job.output is not None:
            write_answer(job.output, found.to_arrow())
    if not job.quiet:
        _show(found, job.output, perf_counter() - begin)


def _columns(job: ClusterJob, vectors: Vectors) -> dict[str, Any]:
    """The columns of the node file, in the order of the vectors."""
    from fishergraph.io.columns import check_ids
    from fishergraph.io.lookup import IdRows
    from fishergraph.io.node_table import read_node_table
    from fishergraph.io.npz import ARRAYS
    from fishergraph.io.tables import read_nodes

    assert job.nodes is not None
    arrays = job.nodes.suffix.lower() in ARRAYS
    if arrays:
        ids, X, names = read_nodes(job.nodes)
    else:
        named = check_ids(vectors.ids, "ids")
        ids, table = read_node_table(job.nodes, job.id_column, drop=job.drop or [], named=named)
    rows = IdRows(ids, len(ids)).rows(vectors.ids, f"the ids of '{job.nodes}'")
    return {"X": X[rows], "columns": names} if arrays else {"X": table.take(rows)}


def _show(found: Clusters, output: Path | None, seconds: float) -> None:
    """Print a row per cluster, and what was compared."""
    show_answer(found.summary().to_arrow())
    if len(found.report) > 1:
        tried = ", ".join(f"{record['k']} {record['score']:.3f}" for record in found.report)
        typer.echo(f"k = {found.k}, of silhouette x stability: {tried}")
    if found.left_out:
        typer.echo(f"columns that name nothing: {', '.join(found.left_out)}")
    if output is not None:
        typer.echo(f"{output}: {found.k} clusters of {len(found.labels):,} nodes in {seconds:.1f} s")
