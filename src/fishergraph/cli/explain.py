"""`fishergraph explain`: why two nodes are alike, whom a node attends to, what the anchors stand for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.columns import columns_of
from fishergraph.cli.console import one_line_warnings
from fishergraph.cli.edges import tell
from fishergraph.cli.jobs import Inputs, Job, check_outputs, check_tables, match_features, read_inputs, with_options
from fishergraph.cli.record import chosen_engine

if TYPE_CHECKING:
    from fishergraph.explain import Explainer, Listing

SUFFIXES = {".json": None, ".csv": ",", ".tsv": "\t", ".parquet": None}
_PARTS = ("blocks", "pairs", "members", "columns", "nodes")


@dataclass(frozen=True, kw_only=True)
class ModelJob(Job):
    """The options of the commands that ask a fitted embedding.

    Parameters
    ----------
    model : FILE
        The model that embed --save wrote. It knows its features and whether edges count both ways.
    drop : NAME
        Column that is not a feature; repeatable. Columns that the model does not know are left out anyway.
    """

    model: Path
    drop: list[str] | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ExplainJob(ModelJob):
    """What explain was asked for.

    Parameters
    ----------
    output : FILE
        File to write too: .json for everything, or .csv, .tsv or .parquet for a table.
    node : ID
        The node; without it the anchors are described.
    with_node : ID
        Another node: why the two are alike.
    cosine : bool
        Divide the similarity by the lengths of the two vectors.
    block : NAME, default=all blocks of a pair; psi1, the first layer, of one node
        One block of the embedding.
    part : NAME, default=pairs
        Which part of a similarity a table holds: blocks, pairs, members, columns or nodes.
    json : bool
        Print JSON in place of text.
    """

    output: Path | None = None
    node: str | None = None
    with_node: str | None = None
    cosine: bool = False
    block: str | None = None
    part: str | None = None
    json: bool = False


@with_options([])
def explain(job: ExplainJob) -> None:
    """Say why two nodes are alike, whom a node attends to, or what the anchors of a model stand for.

    The similarity of two nodes is split exactly: into blocks, pairs of members, columns and nodes.

    [bold]Examples[/bold]

    fishergraph embed edges.csv --nodes nodes.csv --save model.safetensors -o embedding.parquet

    fishergraph explain edges.csv --nodes nodes.csv --model model.safetensors --node ann --with bob

    fishergraph explain edges.csv --nodes nodes.csv --model model.safetensors --node ann

    fishergraph explain edges.csv --nodes nodes.csv --model model.safetensors
    """
    _check_call(job)
    with one_line_warnings(), chosen_engine(job):
        explainer, _ = read_explainer(job)
        nodes = [_known(explainer, name, node) for name, node in (("--node", job.node), ("--with", job.with_node))]
        if job.node is None:
            found: Any = explainer.describe_anchors(block=job.block)
        elif job.with_node is None:
            found = explainer.explain(nodes[0], block=job.block)
        else:
            found = explainer.explain(*nodes, cosine=job.cosine, block=job.block)
        if job.output is not None:
            _write(job, found)
    if job.json:
        typer.echo(_json(found))
    elif not job.quiet:
        typer.echo(str(found))


def _check_call(job: ExplainJob) -> None:
    """Raise if options do not go together, or the output cannot be written."""
    from fishergraph.io.files import check_suffix

    check_tables(job, job.drop)
    if job.with_node is not None and job.node is None:
        raise typer.BadParameter("--with needs --node: two nodes are compared.")
    if job.with_node is None and (job.cosine or job.part is not None):
        raise typer.BadParameter("--cosine and --part belong to two nodes: give --node and --with.")
    if job.part is not None and job.part not in _PARTS:
        raise typer.BadParameter(f"--part must be one of {', '.join(_PARTS)}, got {job.part!r}.")
    if job.output is not None:
        check_suffix(job.output, SUFFIXES)
        check_outputs(job, model=job.model)


def read_explainer(job: ModelJob, progress: Any = False) -> tuple[Explainer, Inputs]:
    """The explainer of the model and the files of a job, and what was read."""
    from fishergraph import Explainer, FisherEmbedding
    from fishergraph.estimators.table_input import names_of_features

    model = FisherEmbedding.load(job.model, device="cpu").set_params(n_jobs=job.jobs, verbose=progress)
    inputs = read_inputs(job, drop=job.drop, **columns_of(model))
    learned = names_of_features(model)
    X = match_features(job.model, model, inputs)
    tell(job, inputs)
    names = None if X is None or learned is None else learned
    return Explainer(model, X, graph=inputs.graph, feature_names=names), inputs


def _known(explainer: Explainer, option: str, node: str | None) -> str | None:
    """The node, if there is one; an unknown one is an error about its option."""
    from fishergraph._errors import UnknownNodeError

    try:
        if node is not None:
            explainer.row(node)
    except UnknownNodeError as error:
        raise error.revised(parameter=option) from error
    return node


def _json(found: Any) -> str:
    return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, default=str)


def _write(job: ExplainJob, found: Any) -> None:
    """Write the record, or one of its tables."""
    from fishergraph.io.files import check_suffix, replacing

    assert job.output is not None
    if check_suffix(job.output, SUFFIXES) == ".json":
        with replacing(job.output) as part:
            part.write_text(_json(found) + "\n", encoding="utf-8")
        return
    if job.node is None:
        listing = found.columns
    else:
        listing = found.long_listing() if job.with_node is None else getattr(found, job.part or "pairs")
    write_listing(job.output, listing)


def write_listing(path: Path, listing: Listing) -> None:
    """Write a listing as a CSV, TSV or Parquet table."""
    import numpy as np

    from fishergraph.io.arrow import write_table
    from fishergraph.io.files import check_suffix, replacing

    def typed(column: np.ndarray) -> np.ndarray:
        return np.array([str(value) for value in column.tolist()]) if column.dtype == object else column

    columns = {name: typed(listing[name]).__getitem__ for name in listing}
    with replacing(path) as part, part.open("wb") as file:
        write_table(file, check_suffix(path, SUFFIXES), columns, len(listing))
