"""`fishergraph embed` on several kinds of edges: a file of edges with a column `type`, and a node file per type."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError
from fishergraph._warn import without_warnings
from fishergraph.cli.columns import asked_kinds, tell_columns
from fishergraph.cli.console import say
from fishergraph.cli.edges import check_edge_options, edge_options, node_text, with_added
from fishergraph.cli.jobs import structure_of
from fishergraph.cli.record import parameters_of, record_path, recorded

if TYPE_CHECKING:
    from fishergraph.cli.embed import EmbedJob
    from fishergraph.graphs import Relations

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
    from fishergraph.io.embedding_file import check_written_ids

    _check_job(job)
    outputs = _outputs(job, [name for name in files if name != _ONE])
    with recorded(job) as run:
        with run.stage("import"):
            estimator = make_estimator(job, run.bar)
        with run.stage("read"):
            X, relations, facts = read_relations(job, files)
            missing = [name for name in relations.types if name not in outputs and len(relations.types) > 1]
            outputs |= _outputs(job, missing)
            for name in relations.types:
                check_written_ids(outputs.get(name, job.output), relations.names(name))
        _tell(job, relations, files)
        with run.stage("embed"):
            if job.model is None:
                Z = estimator.fit_transform(X, graph=relations)
            else:
                Z = estimator.transform(X, graph=relations)
        several = len(relations.types) > 1
        facts["columns"] = {
            name: tell_columns(job, encoder, of=name if several else "")
            for name, encoder in (estimator.encoder_ or {}).items()
        }
        with run.stage("write"):
            if job.save is not None:
                estimator.save(job.save)
            written, tables = _write(job, estimator, relations, Z, outputs)
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
    for name, path in written.items():
        typer.echo(f"{path}: {tables[name].shape[0]:,} {_nodes_of(name)} x {tables[name].shape[1]:,} columns")
    how = f"seed {estimator.random_state}" if job.model is None else f"model {job.model}"
    typer.echo(f"{record_path(job.output)}: how it was made, in {run.total():.1f} s ({how})")
    if job.save is not None:
        typer.echo(f"{job.save}: the fitted model, for --model")


def _write(
    job: EmbedJob, estimator: Any, relations: Relations, Z: Any, outputs: dict[str, Path]
) -> tuple[dict[str, Path], dict[str, Any]]:
    """Write the embedding of every type; return its file and its rows."""
    from fishergraph.io.embedding_file import write_embedding

    one = len(relations.types) == 1
    tables, blocks, titles = Z, estimator.blocks_, estimator.get_feature_names_out()
    if one:
        tables, blocks, titles = ({relations.types[0]: part} for part in (tables, blocks, titles))
    written = {name: job.output if one else outputs[name] for name in relations.types}
    for name, path in written.items():
        about = {"blocks": blocks[name], "parameters": parameters_of(estimator)}
        names = [str(title) for title in titles[name]]
        write_embedding(path, relations.names(name), tables[name], names, **about, layout=job.layout)
    return written, tables


def read_relations(job: EmbedJob, files: dict[str, Path]) -> tuple[Any, Relations, dict[str, Any]]:
    """Return the features by type, the relations, and what the record says of them."""
    from fishergraph.graphs.relation_readers import number_kinds, read_kinds
    from fishergraph.graphs.relations import NODE
    from fishergraph.io.edge_files import load_edges

    file = load_edges(job.edges, edge_options(job))
    with without_warnings("columns left"):  # the line about what was read has them
        kinds = read_kinds(file.table)
    nodes, X = _read_node_files(job, files)
    relations = number_kinds(kinds, nodes, job.unknown or "error", faults=file.faults, locate=file.locate)
    features = {name: with_added(rows, relations.sizes[name]) for name, rows in X.items() if rows is not None}
    given: Any = features or None
    if len(relations.types) == 1 and features:
        given = features[relations.types[0]]
    summary = relations.summary()
    facts = {
        "edges": {"path": job.edges, "rows": file.table.num_rows, "summary": summary.as_dict()},
        "nodes": {name or NODE: path for name, path in files.items()},
        "n_nodes": dict(relations.sizes),
        "n_edges": {" ".join(key): one.n_edges for key, one in relations.edges.items()},
        "n_features": {name: rows.shape[1] for name, rows in features.items()},
    }
    return given, relations, facts


def _read_node_files(job: EmbedJob, files: dict[str, Path]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ids and the features of each type; raises for columns of --drop and --kind that no file has."""
    from fishergraph.graphs.relations import NODE
    from fishergraph.tables.columns import with_kinds

    nodes, X, kinds = {}, {}, asked_kinds(job)
    left = {"drop": set(job.drop or ()), "kind": set(kinds)}
    for name, path in files.items():
        ids, rows, dropped = _read_nodes(path, job)
        here = {column: kind for column, kind in kinds.items() if column in getattr(rows, "column_names", ())}
        nodes[name or NODE], X[name or NODE] = ids, with_kinds(rows, here) if here else rows
        left["drop"] -= dropped
        left["kind"] -= set(here)
    for option, names in left.items():
        if names:
            expected, got = "be columns of the node files", ", ".join(map(repr, sorted(names)))
            what = f"the columns of --{option}"
            raise InputError(parameter=what, value=sorted(names), expected=expected, got=got)
    return nodes, X


def _tell(job: EmbedJob, relations: Relations, given: dict[str, Path]) -> None:
    """Say what was read: the nodes, a line for each relation, and the types without a node file."""
    from fishergraph.graphs.relations import NODE

    if job.quiet:
        return
    summary = relations.summary()
    first, *others = (summary if summary.path else replace(summary, path=str(job.edges))).lines
    say(f"read {first}")
    for line in others:
        say(f"read {line}")
    for name in relations.types:
        if given and (name if name != NODE else _ONE) not in given:
            size = relations.sizes[name]
            say(
                f"{name}: no node file, so its {size:,} nodes are those of the edges, and its features come from these."
            )


def _read_nodes(path: Path, job: EmbedJob) -> tuple[Any, Any, set[str]]:
    """The ids, the features or None, and the columns of --drop that the file has."""
    from fishergraph.io.arrow import column_names, node_header
    from fishergraph.io.node_table import read_node_table
    from fishergraph.io.npz import ARRAYS, SUFFIXES
    from fishergraph.io.tables import read_nodes

    text = node_text(job)
    suffix = "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix in ARRAYS or suffix not in SUFFIXES:
        ids, features, names = read_nodes(path, job.id_column)
        return ids, features if names else None, set()
    dropped = set(column_names(path, suffix, node_header, text)) & set(job.drop or ())
    ids, table = read_node_table(path, job.id_column, drop=sorted(dropped), text=text)
    return ids, table if table.num_columns else None, dropped


def _check_job(job: EmbedJob) -> None:
    """Raise for options that are of one kind of edges alone."""
    check_edge_options(job, has_nodes=bool(job.nodes))
    if job.kind and not job.nodes:
        raise typer.BadParameter("--kind needs a node table: give --nodes with a CSV, TSV or Parquet.")
    if job.only is not None:
        raise typer.BadParameter(
            "--only lists nodes of one kind of edges; leave it out, and take the rows of the output that you need."
        )
    if job.tune or job.label is not None:
        raise typer.BadParameter(
            "--tune chooses settings for one kind of edges; leave it out, or drop the column type."
        )


def _nodes_of(name: str) -> str:
    """The word for the nodes of a type."""
    from fishergraph.graphs.relations import NODE

    return "nodes" if name == NODE else f"{name} nodes"


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
