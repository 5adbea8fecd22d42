"""`fishergraph links`: which pairs of nodes are likely to have an edge."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli.answers import check_answer, show_answer, write_answer
from fishergraph.cli.columns import tell_columns
from fishergraph.cli.components import configure
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.edges import EdgeColumns, edge_table, tell
from fishergraph.cli.embed import preset_maker
from fishergraph.cli.jobs import (
    Inputs,
    LearningJob,
    check_tables,
    read_inputs,
    reading,
    with_options,
)
from fishergraph.cli.options import EMBEDDING, flag_of

if TYPE_CHECKING:
    import pyarrow as pa

    from fishergraph.probes import LinkProbe

_NO_FILE: Any = None  # a table that is shown needs no file


@dataclass(frozen=True, kw_only=True)
class LinksJob(LearningJob):
    """What links was asked for.

    Parameters
    ----------
    output : FILE
        Table of pairs to write: .csv, .tsv (or .gz), .parquet or .json.
    pairs : FILE
        Pairs whose probability is asked for, as an edge file in UTF-8 whose columns have the names of --source and
        --target, or usual ones. By default pairs without an edge are suggested.
    k : N, default=20
        Pairs that are suggested.
    embedding : FILE
        Compare the pairs of EDGES by this embedding, which fishergraph embed wrote; nothing is learned.
    preset : NAME
        Start from other settings: fast, best (four layers), paper (its equations alone) or published-code (the
        rule of the authors' code).
    """

    output: Path = _NO_FILE
    pairs: Path | None = None
    k: int | None = None
    embedding: Path | None = None
    preset: str | None = None


@with_options(EMBEDDING)
def links(job: LinksJob) -> None:
    """Say which pairs of nodes are likely to have an edge.

    A part of the edges is held out before anything is embedded: it shows how well edges are told from other pairs.
    Then the whole graph is embedded, and the most probable pairs without an edge are shown. A probability is that among
    equally many edges and other pairs.

    [bold]Examples[/bold]

    fishergraph links edges.csv -n nodes.csv --undirected -k 50 -o new.csv

    fishergraph links edges.csv -n nodes.csv --undirected --pairs pairs.csv

    fishergraph links pairs.csv --embedding z.parquet   # similarities of these pairs
    """
    check_answer(job.output, job.edges, job.nodes, job.pairs, job.embedding, job.config)
    check_tables(job, job.drop)
    if job.k is not None and job.pairs is not None:
        raise typer.BadParameter("-k says how many pairs are suggested, and --pairs names them: give one of the two.")
    table = _compared(job) if job.embedding is not None else _learned(job)
    if job.output is not None:
        write_answer(job.output, table)
    if not job.quiet and job.output is None:
        show_answer(table)
    elif not job.quiet:
        typer.echo(f"{job.output}: {len(table):,} pairs")


def _compared(job: LinksJob) -> pa.Table:
    """The pairs of the edge file with their similarities."""
    from fishergraph.vectors import Vectors

    set_ = [flag_of(path) for path in job.parameters]
    names = ("nodes", "id_column", "drop", "kind", "pairs", "k", "preset", "seed", "engine")
    set_ += [flag_of(name) for name in names if getattr(job, name) is not None]
    if set_:
        raise typer.BadParameter(f"{', '.join(set_)} belongs to learning, and --embedding is used as it is.")
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        bar.part("reading")
        assert job.embedding is not None
        pairs, vectors = _pairs(job, job.edges), Vectors.read(job.embedding)
        return pairs.append_column("similarity", [vectors.link_scores(pairs)])


def _learned(job: LinksJob) -> pa.Table:
    """The pairs that were asked for, or suggested ones, with their probabilities."""
    from fishergraph.probes import LinkProbe, split_edges
    from fishergraph.vectors import suggest_links

    seed = secrets.randbelow(2**31) if job.seed is None else job.seed
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        make = preset_maker(job.preset)
        model = configure(make(random_state=seed).set_params(n_jobs=job.jobs), job.parameters)
        with reading(job, bar) as advance:
            inputs = read_inputs(job, drop=job.drop, advance=advance)
        tell(job, inputs, hint=True)
        graph, X = _graph(job, inputs), _rows(job, inputs)
        probe = LinkProbe(model, random_state=seed, n_jobs=job.jobs, verbose=bar)
        split = split_edges(graph, random_state=seed)
        measures = probe.fit(X, split).evaluate(split.test)
        pairs = None if job.pairs is None else _asked_pairs(job, job.pairs)
        probe.use(X, graph)
        if pairs is None:
            table = suggest_links(probe, 20 if job.k is None else job.k, n_jobs=job.jobs, verbose=bar).to_arrow()
        else:
            table = pairs.append_column("probability", [probe.predict_proba(pairs)[:, 1]])
            table = table.append_column("edge", [probe.has_edge(pairs)])
    if not job.quiet:
        _report(probe, measures, len(split.test), seed)
    return table


def _asked_pairs(job: LinksJob, path: Path) -> pa.Table:
    """The pairs of --pairs: its columns are called as those of the edges, or have usual names."""
    try:
        return _pairs(EdgeColumns(source=job.source, target=job.target), path)
    except InputError:
        return _pairs(EdgeColumns(), path)


def _pairs(job: EdgeColumns, path: Path) -> pa.Table:
    """The pairs of an edge file, columns source and target."""
    import pyarrow as pa

    from fishergraph.io.columns import check_edge_table

    columns = check_edge_table(edge_table(job, path))
    assert columns is not None
    return pa.table({"source": columns[0], "target": columns[1]})


def _graph(job: LinksJob, inputs: Inputs) -> Any:
    """The graph, with both directions of every edge if that was asked for."""
    from fishergraph.graph import as_graph

    return as_graph(inputs.graph, undirected=bool(job.undirected))


def _rows(job: LinksJob, inputs: Inputs) -> Any:
    """The features; a table is encoded once for all graphs."""
    from fishergraph._arrays import is_table
    from fishergraph.estimators.table_input import fit_table

    encoder, rows = fit_table(inputs.X) if is_table(inputs.X) else (None, inputs.X)
    tell_columns(job, encoder, inputs)
    return rows


def _report(probe: LinkProbe, measures: dict[str, float], n_pairs: int, seed: int) -> None:
    """Print how well edges that were held out are told from other pairs."""
    names = {"auc": "AUC", "average_precision": "average precision"}
    shown = ", ".join(f"{names.get(name, name)} {value:.3f}" for name, value in measures.items())
    typer.echo(f"{n_pairs:,} pairs held out, half of them edges: {shown} ({probe.head_} head, seed {seed})", err=False)
