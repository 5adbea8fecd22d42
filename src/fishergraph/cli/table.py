"""`fishergraph table`: an edge file and a node file in, a table of named columns out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import typer

from fishergraph.cli.answers import SUFFIXES, write_answer
from fishergraph.cli.columns import columns_of
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.edges import node_text, tell
from fishergraph.cli.jobs import Job, check_outputs, check_tables, match_features, read_inputs, with_options
from fishergraph.cli.labels import read_labels


@dataclass(frozen=True, kw_only=True)
class TableJob(Job):
    """What table was asked for.

    Parameters
    ----------
    output : FILE
        Table to write: .csv, .tsv (or .gz), .parquet or .json.
    nodes : FILE
        Node file (.csv, .tsv, .parquet): an id column and columns of any types, which are kept.
    drop : NAME
        Column to leave out; repeatable.
    label : NAME
        Column of labels. Those of neighbours that train become columns; a row never has its own.
    split : NAME
        Column that says train, val or test. Without it all rows with a label train.
    inductive : bool
        Compute training rows from the graph of these rows alone; needs --split.
    model : FILE
        A model that embed saved: adds how much of a neighbourhood is near each anchor.
    axes : N, default=0
        Principal axes of the embedding of --model to add.
    """

    drop: list[str] | None = None
    label: str | None = None
    split: str | None = None
    inductive: bool = False
    model: Path | None = None
    axes: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@with_options([])
def table(job: TableJob) -> None:
    """Make a table of named columns from a graph, for boosted trees and tabular models.

    Its columns are the nodes' own, means and shares over the neighbours, means by PageRank, and counts of the edges.

    [bold]Examples[/bold]

    fishergraph table edges.csv --nodes nodes.csv -o features.parquet

    fishergraph table edges.csv --nodes nodes.csv --label topic --split part --inductive -o features.parquet
    """
    from fishergraph.io.files import check_suffix
    from fishergraph.io.npz import ARRAYS

    begin = perf_counter()
    check_suffix(job.output, SUFFIXES)
    if job.nodes is None or job.nodes.suffix.lower() in ARRAYS:
        raise typer.BadParameter("--nodes must name a CSV, TSV or Parquet file.")
    if job.split is not None and job.label is None:
        raise typer.BadParameter("--split needs --label.")
    if job.inductive and job.split is None:
        raise typer.BadParameter("--inductive needs --split, which says what the training rows are.")
    if job.axes and job.model is None:
        raise typer.BadParameter("--axes needs --model.")
    check_tables(job, job.drop)
    check_outputs(job, model=job.model)
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        bar.part("reading")
        found = _table(job)
        write_answer(job.output, found)
    if not job.quiet:
        seconds = perf_counter() - begin
        typer.echo(f"{job.output}: {len(found):,} nodes x {found.num_columns - 1:,} columns in {seconds:.1f} s")


def _table(job: TableJob) -> Any:
    """The table of the files."""
    import numpy as np

    from fishergraph import FisherEmbedding
    from fishergraph.tabular import to_table

    assert job.nodes is not None
    drop = [*(job.drop or []), *(name for name in (job.label, job.split) if name is not None)]
    inputs = read_inputs(job, drop=drop, typed=True)
    tell(job, inputs)
    options: dict[str, Any] = {"kind": "arrow", "n_jobs": job.jobs, "inductive": job.inductive, "axes": job.axes or 0}
    if job.label is not None:
        labels = read_labels(job.nodes, job.label, job.split, node_text(job))
        words = [None if code is None else str(labels.classes[code]) for code in labels.y.tolist()]
        words += [None] * (inputs.graph.n_nodes - len(words))  # nodes that --unknown add added
        held = [rows for rows in (labels.val, labels.test) if rows is not None]
        train = np.array([word is not None for word in words])
        train[np.concatenate([np.zeros(0, np.int64), *held])] = False
        options |= {"y": words, "label": job.label, "train": train}
    if job.model is None:
        return to_table(inputs.X, inputs.graph, **options)
    model = FisherEmbedding.load(job.model).set_params(n_jobs=job.jobs)
    X = match_features(job.model, model, read_inputs(job, drop=drop, **columns_of(model)))
    return to_table(inputs.X, inputs.graph, model, features=X, **options)
