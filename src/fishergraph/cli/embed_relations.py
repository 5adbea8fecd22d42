"""`fishergraph embed` on several kinds of edges: a file of edges with a column `type`, and a node file per type."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli.console import Bar
from fishergraph.cli.edges import edge_options
from fishergraph.cli.jobs import structure_of
from fishergraph.cli.record import parameters_of, record_path, recorded

if TYPE_CHECKING:
    from fishergraph.cli.embed import EmbedJob

_ONE = ""  # the type of a node file without a name


def node_files(texts: list[str] | None) -> dict[str, Path]:
    """Return the node files by type, of the texts TYPE=FILE; one file without a type has the empty name."""
    named = [re.fullmatch(r"([\w-]+)=(.+)", text) for text in texts or ()]
    if not any(named):
        if len(named) > 1:
            raise typer.BadParameter("several node files need the names of their types: --nodes paper=papers.csv")
        return dict.fromkeys([_ONE], Path(texts[0])) if texts else {}
    if not all(named):
        raise typer.BadParameter("every node file needs the name of its type: --nodes paper=papers.csv")
    files = {match[1]: Path(match[2]) for match in named if match is not None}
    if len(files) < len(named):
        raise typer.BadParameter("every type of nodes must have one file, got a type twice.")
    return files


def has_kinds(job: EmbedJob) -> bool:
    """Return whether a file of edges has several kinds of them; a file that cannot be read has none here."""
    from fishergraph._errors import FishergraphError
    from fishergraph.graphs.relation_readers import TYPE_COLUMNS, kinds_of_edges
    from fishergraph.io.edge_files import load_edges

    suffix = "".join(job.edges.suffixes[-2:]) if job.edges.suffix.lower() in (".gz", ".zst") else job.edges.suffix
    if not job.edges.is_file() or not suffix.lower().startswith((".csv", ".tsv", ".txt", ".parquet")):
        return False
    with job.edges.open("rb") as file:  # plain text says in its first line whether there is such a column
        first = file.readline(4096).lower()
    if suffix.lower() in (".csv", ".tsv", ".txt") and not any(name.encode() in first for name in TYPE_COLUMNS):
        return False
    try:
        table = load_edges(job.edges, edge_options(job)).table
    except (FishergraphError, OSError, ValueError, TypeError):  # the job itself explains what is wrong with the file
        return False
    return len(kinds_of_edges(table)) > 1


def run_embed_relations(job: EmbedJob, files: dict[str, Path], make_estimator: Callable[..., Any]) -> None:
    """Check, read, embed, and write a file for every type."""
    from fishergraph.io.embedding_file import check_written_ids, write_embedding

    _check_job(job)
    outputs = _outputs(job, [name for name in files if name != _ONE])
    with recorded(job) as run:
        with run.stage("import"):
            estimator = make_estimator(job, run.bar)
        with run.stage("read"):
            X, relations, facts = read_relations(job, files, run.bar)
            missing = [name for name in relations.types if name not in outputs and len(relations.types) > 1]
            outputs |= _outputs(job, missing)
            for name in relations.types:
                check_written_ids(outputs.get(name, job.output), relations.names(name))
        with run.stage("embed"):
            if job.model is None:
                Z = estimator.fit_transform(X, graph=relations)
            else:
                Z = estimator.transform(X, graph=relations)
        with run.stage("write"):
            if job.save is not None:
                estimator.save(job.save)
            one = len(relations.types) == 1
            tables, blocks, titles = Z, estimator.blocks_, estimator.get_feature_names_out()
            if one:
                tables, blocks, titles = ({relations.types[0]: part} for part in (tables, blocks, titles))
            written = {name: job.output if one else outputs[name] for name in relations.types}
            for name, path in written.items():
                about = {"blocks": blocks[name], "parameters": parameters_of(estimator)}
                names = [str(title) for title in titles[name]]
                write_embedding(path, relations.names(name), tables[name], names, **about, layout=job.layout)
        run.facts = {
            "seed": estimator.random_state,
            "parameters": parameters_of(estimator, "random_state"),
            "input": facts,
            "structure": structure_of(estimator),
            "output": {
                name: {"path": path, "rows": tables[name].shape[0], "columns": tables[name].shape[1]}
                for name, path in written.items()
            },
            "model": {"used": job.model, "saved": job.save},
        }
    if job.quiet:
        return
    typer.echo(f"{job.edges}: {relations!r}")
    for name, path in written.items():
        typer.echo(f"{path}: {tables[name].shape[0]:,} {name} nodes x {tables[name].shape[1]:,} columns")
    how = f"seed {estimator.random_state}" if job.model is None else f"model {job.model}"
    typer.echo(f"{record_path(job.output)}: how it was made, in {run.total():.1f} s ({how})")
    if job.save is not None:
        typer.echo(f"{job.save}: the fitted model, for --model")


def read_relations(job: EmbedJob, files: dict[str, Path], bar: Bar) -> tuple[Any, Any, dict[str, Any]]:
    """Return the features by type, the relations, and what the record says of them."""
    from fishergraph.graphs import as_relations
    from fishergraph.graphs.relations import NODE
    from fishergraph.io.edge_files import load_edges, raise_file_faults

    file = load_edges(job.edges, edge_options(job))
    raise_file_faults(file)
    edges = file.table
    nodes, X, left = {}, {}, set(job.drop or ())
    for name, path in files.items():
        ids, features, dropped = _read_nodes(path, job)
        nodes[name or NODE], X[name or NODE] = ids, features
        left -= dropped
    if left:
        expected, got = "be columns of the node files", ", ".join(map(repr, sorted(left)))
        raise InputError(parameter="the columns of --drop", value=sorted(left), expected=expected, got=got)
    relations = as_relations(edges, nodes=nodes or None)
    features = {name: rows for name, rows in X.items() if rows is not None}
    given: Any = features or None
    if len(relations.types) == 1 and features:
        given = features[relations.types[0]]
    facts = {
        "edges": {"path": job.edges, "rows": edges.num_rows},
        "nodes": {name or NODE: path for name, path in files.items()},
        "n_nodes": dict(relations.sizes),
        "n_edges": {" ".join(key): one.n_edges for key, one in relations.edges.items()},
        "n_features": {name: rows.shape[1] for name, rows in features.items()},
    }
    return given, relations, facts


def _read_nodes(path: Path, job: EmbedJob) -> tuple[Any, Any, set[str]]:
    """The ids, the features or None, and the columns of --drop that the file has."""
    from fishergraph.io.arrow import column_names, node_header
    from fishergraph.io.node_table import read_node_table
    from fishergraph.io.npz import ARRAYS, SUFFIXES
    from fishergraph.io.tables import read_nodes

    suffix = "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix in ARRAYS or suffix not in SUFFIXES:
        ids, features, names = read_nodes(path, job.id_column)
        return ids, features if names else None, set()
    dropped = set(column_names(path, suffix, node_header)) & set(job.drop or ())
    ids, table = read_node_table(path, job.id_column, drop=sorted(dropped))
    return ids, table if table.num_columns else None, dropped


def _check_job(job: EmbedJob) -> None:
    """Raise for options that are of one kind of edges alone."""
    if getattr(job, "kind", None):
        raise typer.BadParameter("--kind belongs to one kind of edges; leave it out, or drop the column type.")
    if job.unknown is not None:
        raise typer.BadParameter("--unknown belongs to one kind of edges; every end of an edge must be a node here.")
    if job.tune or job.label is not None:
        raise typer.BadParameter(
            "--tune chooses settings for one kind of edges; leave it out, or drop the column type."
        )


def _outputs(job: EmbedJob, types: list[str]) -> dict[str, Path]:
    """The file of every type, the name of the output with the type in it; raises unless all can be written."""
    from fishergraph.io.embedding_file import check_layout, check_writable
    from fishergraph.io.files import check_folder

    stem, dots, ending = job.output.name.rpartition(".")
    if ending.lower() == "gz":
        stem, _, before = stem.rpartition(".")
        ending = f"{before}.{ending}"
    paths = {name: job.output.with_name(f"{stem}.{name}{dots}{ending}") for name in types}
    read = [job.edges, job.model, job.config, *(Path(text.partition("=")[2] or text) for text in job.nodes or ())]  # type: ignore[union-attr]
    taken = {os.path.realpath(path) for path in read if path is not None}
    for path in (job.output, *paths.values()):
        check_writable(path)
        if job.layout is not None:
            check_layout(path, job.layout)
        if os.path.realpath(path) in taken:
            raise InputError(f"every file must have its own path, got '{path}' twice; choose another output.")
    if job.save is not None:
        check_folder(job.save)
    return paths
