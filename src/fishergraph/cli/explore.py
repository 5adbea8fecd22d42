"""`fishergraph explore`: an embedding in, a page to click through out, or served to this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import FileFormatError, InputError
from fishergraph.cli.columns import columns_of
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.edges import (
    EdgeFileOptions,
    asked_of_edges,
    check_edge_options,
    edge_table,
    job_graph,
    load_job_edges,
    node_text,
)
from fishergraph.cli.jobs import match_features, read_inputs, with_options
from fishergraph.cli.options import wrong_call

if TYPE_CHECKING:
    from fishergraph.explore import Page

LONGEST = 25_000_000  # bytes of a page beyond which mail and notebooks refuse it


@dataclass(frozen=True, kw_only=True)
class ExploreJob(EdgeFileOptions):
    """What explore was asked for.

    Parameters
    ----------
    embedding : EMBEDDING
        What fishergraph embed wrote: .parquet, .csv, .tsv (or .gz), .npz, .npy, .lance or .zarr.
    output : FILE, default=the name of the embedding with .html, unless --serve is given
        Page to write.
    graph : EDGES
        Edge file, for neighbours, degrees and attention.
    unknown : NAME, default=error with --model, else drop
        What happens to edges that end at a node which is not in the node file, or without --model not in the
        embedding: error, drop the edge, or add the node.
    nodes : FILE
        Node file: its columns are shown, and with --model they are the features.
    id_column : NAME, default=id, node or node_id, else an index of pandas, else the row numbers
        Column of the node ids.
    field : NAME
        Column of the node file to show; repeatable. By default the first 40.
    labels : NAME
        Column of the node file that holds the classes, or a file with columns id and label.
    predictions : NAME
        The same for predicted classes, such as the file that fishergraph predict wrote.
    model : FILE
        Model that embed --save or train wrote, for attention and predictions; it needs --graph, and --nodes if it was
        fitted on features.
    map : NAME
        How nodes are placed: pca, tsne or umap; repeatable, the first is shown. By default PCA with t-SNE, for more
        than 10,000 nodes PCA with UMAP if it is installed.
    colour : NAME
        Column that colours the nodes at first.
    title : TEXT
        Title of the page.
    neighbours : N, default=10
        Nearest nodes in the embedding that are shown of every node.
    max_points : N, default=100000
        The most nodes on the page; of more a sample is shown.
    parquet : FILE
        Also write the nodes as a table that embedding-atlas opens.
    serve : bool
        Serve the page to this machine until Ctrl-C, and open it in the browser if there is a display.
    port : N, default=a free one
        Port of --serve.
    seed : N, default=0
        Random seed of t-SNE, UMAP, clusters and samples.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        No bar, hint or summary.
    debug : bool
        Show the traceback of a failure.
    """

    embedding: Path
    output: Path | None = None
    graph: Path | None = None
    nodes: Path | None = None
    id_column: str | None = None
    field: list[str] | None = None
    labels: str | None = None
    predictions: str | None = None
    model: Path | None = None
    map: list[str] | None = None
    colour: str | None = None
    title: str | None = None
    neighbours: int | None = None
    max_points: int | None = None
    parquet: Path | None = None
    serve: bool = False
    port: int | None = None
    seed: int | None = None
    config: Path | None = None
    quiet: bool = False
    debug: bool = False

    ARGUMENTS = ("embedding",)

    @property
    def edges(self) -> Path:
        """The edge file, as other jobs call it."""
        assert self.graph is not None
        return self.graph

    @property
    def page(self) -> Path | None:
        """The page to write; None if it is served alone."""
        if self.output is not None or self.serve:
            return self.output
        return Path(self.embedding.name).with_suffix(".html")


@with_options([])
def explore(job: ExploreJob) -> None:
    """Make a page of an embedding to click through and to send: one HTML file that works offline.

    It shows every node with its fields, its neighbours in the graph and in the embedding, whom it attends to, and why
    two nodes are alike.

    [bold]Examples[/bold]

    fishergraph explore z.parquet --graph edges.csv --nodes nodes.csv --labels topic

    fishergraph explore z.parquet -n nodes.csv --map umap --map pca -o page.html

    fishergraph explore z.parquet --graph edges.csv -n nodes.csv --model model.safetensors --serve
    """
    begin = perf_counter()
    _check(job)
    with one_line_warnings(), Bar(quiet=job.quiet) as bar:
        page = _make(job, bar)
        if job.parquet is not None:
            page.to_parquet(job.parquet)
    if not job.quiet:
        for note in page.notes:
            typer.echo(f"note: {note}", err=True)
        size = len(page.html.encode("utf-8"))
        if size > LONGEST:
            typer.echo(
                f"hint: the page has {size / 1e6:.0f} MB; fewer columns (--field) or --max-points make it smaller.",
                err=True,
            )
        _report(job, page, size, perf_counter() - begin)
    if job.serve:
        _serve(job, page)


def _check(job: ExploreJob) -> None:
    """Raise if options contradict each other, or a file cannot be written; nothing is read before."""
    from fishergraph.explore.maps import chosen_maps
    from fishergraph.explore.serve import Served
    from fishergraph.io.files import check_folder, check_suffix

    if job.port is not None and not job.serve:
        raise typer.BadParameter("--port belongs to --serve.")
    if job.nodes is None and (job.id_column is not None or job.field):
        raise typer.BadParameter("--id-column and --field need a node file: give --nodes.")
    if job.model is not None and job.graph is None:
        raise typer.BadParameter("--model needs the graph of its fit: give --graph.")
    if job.graph is None and (asked := asked_of_edges(job)):
        raise typer.BadParameter(f"{asked[0]} is about an edge file: give --graph.")
    check_edge_options(job, has_nodes=True)
    if job.port is not None:
        Served("", job.port).close()  # the port is free now, before the work
    if job.map is not None:
        with wrong_call("--map"):
            chosen_maps(job.map, 0, 0)
    read = {path.resolve() for path in (job.embedding, job.graph, job.nodes, job.model) if path is not None}
    for path, suffix in ((job.page, ".html"), (job.parquet, ".parquet")):
        if path is None:
            continue
        check_folder(path)
        check_suffix(path, [suffix, ".htm"] if suffix == ".html" else [suffix])
        if path.resolve() in read:
            raise InputError(f"every file must have its own path, got '{path}' twice; choose another output.")


def _make(job: ExploreJob, bar: Bar) -> Page:
    """Read the files, make the page and write it."""
    bar.part("reading")
    import numpy as np

    from fishergraph.estimators.table_input import names_of_features
    from fishergraph.explore import explore as make
    from fishergraph.explore.inputs import places
    from fishergraph.io.tables import read_embedding

    embedding = read_embedding(job.embedding)
    if job.model is None:
        options: dict[str, Any] = {"graph": _graph(job, embedding.ids)}
    else:
        model = _load(job.model)
        learned = names_of_features(model)
        inputs = read_inputs(job, **columns_of(model))  # type: ignore[arg-type]
        X = match_features(job.model, model, inputs)
        place = places(inputs.ids, embedding.ids)
        if X is not None and (place < 0).any():
            absent = embedding.ids[int(np.argmin(place))].item()
            expected = f"have the node {absent!r} of the embedding"
            raise InputError(parameter=f"'{job.nodes}'", value=absent, expected=expected, got="none")
        options = {"graph": inputs.graph, "model": model, "X": None if X is None else X[place]}
        options["feature_names"] = inputs.names if learned is None else learned.tolist()
        if X is None:
            options.pop("feature_names")
    fields = _fields(job, embedding.ids)
    for name in ("labels", "predictions"):
        options[name] = _labels(getattr(job, name), name[:-1], fields)
    chosen = {
        "maps": job.map or "auto",
        "colour": job.colour,
        "title": job.title or job.embedding.stem,
        "n_neighbours": 10 if job.neighbours is None else job.neighbours,
        "max_points": 100_000 if job.max_points is None else job.max_points,
        "random_state": 0 if job.seed is None else job.seed,
    }
    return make(embedding, fields=fields, **options, **chosen, path=job.page, verbose=bar)


def _graph(job: ExploreJob, ids: Any) -> Any:
    """The edges of the graph; the page leaves out those of nodes that it does not have, unless --unknown says more."""
    if job.graph is None or job.unknown is None:
        return edge_table(job, job.graph)
    return job_graph(job, load_job_edges(job), ids, job.embedding)


def _load(path: Path) -> Any:
    """An embedding or a classifier from its file."""
    from fishergraph.estimators import FisherClassifier, FisherEmbedding

    try:
        return FisherEmbedding.load(path)
    except FileFormatError as error:
        try:
            return FisherClassifier.load(path)
        except FileFormatError:
            raise error from None


def _fields(job: ExploreJob, ids: Any) -> dict[str, Any] | None:
    """The columns of the node file, with its ids as the column id."""
    if job.nodes is None:
        return None
    from fishergraph.explore.tables import read_field_table

    named = [name for name in (job.labels, job.predictions) if name is not None and not Path(name).is_file()]
    only = None if job.field is None else list(dict.fromkeys([*job.field, *named]))
    text = node_text(job)
    keys, fields, left = read_field_table(job.nodes, job.id_column, only, ids, text)
    missing = [name for name in named if name not in fields]
    if missing and left:
        fields |= read_field_table(job.nodes, job.id_column, missing, ids, text)[1]
    if left:
        typer.echo(f"note: {left:,} more columns of '{job.nodes}' are not shown; name some with --field.", err=True)
    return fields if keys is None else {"id": keys, **fields}


def _labels(name: str | None, what: str, fields: dict[str, Any] | None) -> Any:
    """Classes: the name of a column of the node file, or those of a file by id."""
    if name is None or (fields is not None and name in fields):
        return name
    if not Path(name).is_file():
        have = ", ".join(map(repr, list(fields or {})[:10])) or "no node file"
        expected = "name a column of the node file, or a file"
        raise InputError(parameter=f"--{what}s", value=name, expected=expected, got=f"{name!r}, and {have}")
    from fishergraph.explore.columns import arrow_column
    from fishergraph.explore.tables import read_field_table

    keys, columns, _ = read_field_table(Path(name))
    column = columns.get(what) if what in columns else next(iter(columns.values()), None)
    if keys is None or column is None:
        raise FileFormatError(path=name, reason=f"it must have columns id and {what}", advice="add them")
    read: Any = column if hasattr(column, "texts") else arrow_column(what, column)
    return dict(zip(keys, read.texts(), strict=True))


def _report(job: ExploreJob, page: Page, size: int, seconds: float) -> None:
    if job.page is not None:
        typer.echo(f"{job.page}: {page.n_nodes:,} nodes, {size / 1e6:.1f} MB, in {seconds:.1f} s")
    if job.parquet is not None:
        columns = "--x projection_x --y projection_y --neighbors neighbors"
        typer.echo(f"{job.parquet}: for embedding-atlas {job.parquet} {columns}")


def _serve(job: ExploreJob, page: Page) -> None:
    """Serve the page until Ctrl-C."""
    from fishergraph.explore.serve import Served, open_browser

    with Served(page.html, job.port) as served:
        opened = open_browser(served.url)
        hint = "" if opened else "; open it in a browser"
        typer.echo(f"{served.url} shows the page to this machine{hint}. Ctrl-C stops.")
        try:
            served.wait()
        except KeyboardInterrupt:
            typer.echo("")
