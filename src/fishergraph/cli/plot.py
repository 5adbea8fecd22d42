"""`fishergraph plot`: an embedding or the log of a training in, a picture out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli.components import read_setting, read_value
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.embed_store import is_store
from fishergraph.cli.jobs import with_options
from fishergraph.cli.options import MAP, flag_of, wrong_call

if TYPE_CHECKING:
    import numpy as np

_DPI, _WIDEST = 300, 50.0  # inches


@dataclass(frozen=True, kw_only=True)
class PlotJob:
    """What plot was asked for.

    Parameters
    ----------
    embedding : [EMBEDDING]
        What embed wrote: a file, or a store (STORE/embeddings/NAME for another embedding than its default).
    output : FILE
        Picture to write: .png, .svg or .pdf.
    nodes : FILE
        Node file with the column that colours the points; its ids are those of the embedding.
    labels : NAME
        Column of classes. -1 and empty cells have no class.
    colour : NAME
        Column of numbers or dates, shown on a scale; other texts are classes.
    missing : VALUE
        What stands for no class or no number in the column, instead of -1; repeatable.
    id_column : NAME, default=id, node or node_id, else an index of pandas, else the row numbers
        Column of the node ids.
    training : FILE
        Log of a training (train --log) to draw instead of an embedding.
    title : TEXT
        A line above the picture.
    width : INCHES, default=3.4
        Width of the picture. From 5 on the legend is beside the points.
    settings : dict
        The options that are generated from `embedding_map`.
    seed : N, default=0
        Random seed.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        No bar or summary.
    debug : bool
        Show the traceback of a failure.
    """

    ARGUMENTS = ("embedding",)

    embedding: Path | None = None
    output: Path
    nodes: Path | None = None
    labels: str | None = None
    colour: str | None = None
    missing: list[str] | None = None
    id_column: str | None = None
    training: Path | None = None
    title: str = ""
    width: float | None = None
    settings: dict[str, Any]
    seed: int | None = None
    config: Path | None = None
    quiet: bool = False
    debug: bool = False

    @property
    def column(self) -> str | None:
        """The column that colours the points."""
        return self.labels or self.colour


@with_options(MAP)
def plot(job: PlotJob) -> None:
    """Draw the nodes of an embedding as points in the plane, or the losses and accuracies of a training.

    [bold]Examples[/bold]

    fishergraph plot embedding.parquet -o map.png

    fishergraph plot embedding.parquet --nodes nodes.csv --labels topic -o map.png

    fishergraph plot embedding.parquet --nodes nodes.csv --colour year --method pca --width 6 -o map.pdf

    fishergraph plot --training log.csv -o curves.png
    """
    _check_call(job)
    begin = perf_counter()
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        said = _draw_training(job) if job.training is not None else _draw_map(job, bar)
    if not job.quiet:
        typer.echo(f"{job.output}: {said}, in {perf_counter() - begin:.1f} s")


def _check_call(job: PlotJob) -> None:
    """Raise for options that contradict each other or need another one, and for files that cannot be written."""
    from fishergraph._optional import require
    from fishergraph._validation import check_number
    from fishergraph.io.files import check_folder, check_suffix
    from fishergraph.plots.figures import FORMATS
    from fishergraph.plots.maps import check_option

    if (job.embedding is None) == (job.training is None):
        raise typer.BadParameter("plot draws an EMBEDDING, or the log of a training (--training): name one of the two.")
    of_maps = {"--nodes": job.nodes, "--labels": job.labels, "--colour": job.colour, "--missing": job.missing}
    given = [flag for flag, value in of_maps.items() if value] + [flag_of(name) for name in job.settings]
    if job.training is not None and given:
        raise typer.BadParameter(f"{given[0]} belongs to a map of an embedding: leave it or --training out.")
    if job.labels and job.colour:
        raise typer.BadParameter("--labels and --colour both colour the points: give one of the two.")
    if job.column and job.nodes is None:
        raise typer.BadParameter("--labels and --colour name columns of a node file: give it with --nodes.")
    if job.nodes is not None and not job.column:
        raise typer.BadParameter("--nodes has the column that colours the points: name it with --labels or --colour.")
    require("matplotlib", extra="plots")
    for name, value in _options(job).items():
        with wrong_call(flag_of(name)):
            check_option(name, value)
    if job.width is not None:
        with wrong_call("--width"):
            check_number(job.width, "width", least=1, most=_WIDEST)
    with wrong_call("--output"):
        check_suffix(job.output, FORMATS)
    check_folder(job.output)
    for path in (job.embedding, job.nodes, job.training, job.config):
        if path is not None and os.path.realpath(path) == os.path.realpath(job.output):
            raise InputError(f"every file must have its own path, got '{path}' twice; choose another output.")


def _options(job: PlotJob) -> dict[str, Any]:
    """The generated options as `embedding_map` takes them."""
    return {name: value for setting in job.settings.items() for name, value in read_setting(*setting).items()}


def _draw_training(job: PlotJob) -> str:
    from fishergraph.plots import training
    from fishergraph.plots.figures import new_axes, save

    axes = new_axes(2, 1, width=job.width, height=3.3) if job.width is not None else None
    upper, _ = training(str(job.training), title=job.title, ax=axes)
    save(upper.figure, job.output, dpi=_DPI)
    return "losses and accuracies"


def _draw_map(job: PlotJob, bar: Bar) -> str:
    """Read, project, draw; returns what was drawn."""
    import numpy as np

    from fishergraph.plots import embedding_map
    from fishergraph.plots.figures import new_axes, save

    bar.part("reading")
    ids, Z = _read_embedding(Path(str(job.embedding)))
    colours, said = ({}, "") if job.column is None else _read_colours(job, ids)
    ax = new_axes(1, 1, width=job.width, height=0.8 * job.width)[0] if job.width is not None else None
    options: dict[str, Any] = {**colours, **_options(job), "title": job.title}
    if job.seed is not None:
        options["random_state"] = job.seed
    ax = embedding_map(Z, ax=ax, verbose=bar, **options)
    bar.part("writing")
    save(ax.figure, job.output, dpi=_DPI)
    drawn = sum(len(np.asarray(points.get_offsets())) for points in ax.collections)
    return (f"{drawn:,} of " if drawn < len(ids) else "") + f"{len(ids):,} nodes{said}"


def _read_embedding(path: Path) -> tuple[Any, Any]:
    """The ids and the embedding of a file or a store."""
    from fishergraph.io.tables import read_embedding

    if not is_store(path):
        read = read_embedding(path)
        return read.ids, read.Z
    from fishergraph.scale import StoredEmbedding

    Z = StoredEmbedding(path if path.parent.name == "embeddings" else path / "embeddings" / "default")
    return range(len(Z)) if Z.ids is None else Z.ids[:], Z


def _read_colours(job: PlotJob, ids: Any) -> tuple[dict[str, Any], str]:
    """The column of the node file in the order of the embedding, and what to say of it."""
    from fishergraph.io.tables import read_columns, read_nodes

    path, column = Path(str(job.nodes)), str(job.column)
    (values,) = read_columns(path, [column])
    names, *_ = read_nodes(path, job.id_column, only=[])
    matched = _matched(ids, names, values, f"'{path}'")
    absent = sum(value is _ABSENT for value in matched)
    said = f" by {column}" + (f", {absent:,} of them grey because '{path}' does not have them" if absent else "")
    present = [None if value is _ABSENT else value for value in matched]
    options: dict[str, Any] = {"labels": present} if job.labels else {"colour": present, "legend_title": column}
    if job.missing:
        options["missing"] = [word for text in job.missing for word in (text, read_value(text))]
    return options, said


_ABSENT: Any = object()


def _matched(ids: Any, names: np.ndarray, values: list[Any], path: str) -> list[Any]:
    """The value of each id; `_ABSENT` for an id that the table does not have."""
    rows, table = list(getattr(ids, "tolist", lambda: ids)()), names.tolist()
    if {type(name) for name in rows} != {type(name) for name in table}:  # numbers in one file, text in the other
        rows, table = list(map(str, rows)), list(map(str, table))
    value_of = dict(zip(table, values, strict=True))
    matched = [value_of.get(name, _ABSENT) for name in rows]
    if rows and all(value is _ABSENT for value in matched):
        got = f"{table[0]!r} and others there, and {rows[0]!r} and others in the embedding" if table else "none"
        advice = "name their column with --id-column, or the node file that was embedded"
        expected = "be those of the embedding"
        raise InputError(parameter=f"the ids of {path}", expected=expected, got=got, advice=advice)
    return matched
