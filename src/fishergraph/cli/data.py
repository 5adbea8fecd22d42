"""`fishergraph data list | info | fetch | convert`: graphs to learn on, what they are, how to get them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli.console import bytes_progress, explained
from fishergraph.cli.jobs import Debug, Quiet
from fishergraph.cli.options import wrong_call

data_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Graphs to learn on: what there is, how to get it, and other formats.",
)

Home = Annotated[
    Path | None,
    typer.Option("--data", show_default="FISHERGRAPH_DATA, then the cache", help="The folder of data to look in."),
]


@data_app.command("list")
def list_data(data: Home = None, debug: Debug = False) -> None:
    """List the graphs and sets of graphs that have a name, and whether they are on this machine."""
    with explained(debug=debug):
        from fishergraph.cli.data_pages import show_list

        show_list(data)


@data_app.command("info")
def info(
    name: Annotated[str, typer.Argument(help="A name of [bold]data list[/bold], or the path of a file or folder.")],
    data: Home = None,
    debug: Debug = False,
) -> None:
    """Describe one dataset: its size, licence, source, files and preparation."""
    with explained(debug=debug):
        from fishergraph.cli.data_pages import show_info

        show_info(name, data)


@data_app.command("fetch")
def fetch_data(
    names: Annotated[list[str], typer.Argument(help="Names of [bold]data list[/bold].")],
    data: Annotated[
        Path | None, typer.Option("--data", show_default="the cache", help="The folder to download to.")
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Download datasets; an interrupted download continues, and every file is checked."""
    with explained(debug=debug):
        from fishergraph.datasets import BUNDLED, check_names, fetch

        with wrong_call():
            check_names(names)
        for name in names:
            paths = [] if name in BUNDLED else fetch(name, data_home=data, verbose=bytes_progress(quiet))
            if not quiet:
                for line in [str(path) for path in paths] or [f"{name} comes with the package"]:
                    typer.echo(line)


@data_app.command("convert")
def convert(
    source: Annotated[str, typer.Argument(help="A name of [bold]data list[/bold], or the path of a file or folder.")],
    target: Annotated[
        Path,
        typer.Argument(help="A .npz file; or .csv, .tsv (either with .gz) or .parquet, for tables of nodes and edges."),
    ],
    prepared: Annotated[
        bool, typer.Option("--prepared", help="As the method takes it: rows of length one, self-loops.")
    ] = False,
    data: Home = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Turn a dataset of any format that can be read into one .npz file, or into tables for other programs.

    graph.csv becomes graph.nodes.csv (id, label, split, features) and graph.edges.csv (source, target).
    """
    with explained(debug=debug):
        lines = run_convert(source, target, data, prepared=prepared, verbose=bytes_progress(quiet))
        if not quiet:
            for line in lines:
                typer.echo(line)


def run_convert(source: str, target: Path, home: Path | None, *, prepared: bool, verbose: Any) -> list[str]:
    """Check, read, write; return a line for every file that was written."""
    from fishergraph.datasets import (
        is_graph_set,
        load_graph,
        load_graphs,
        prepare,
        write_graph_npz,
        write_npz,
        write_tables,
    )
    from fishergraph.datasets.table_pair import TABLES, table_paths
    from fishergraph.io.files import check_folder, check_suffix

    suffix = check_suffix(target, [".npz", *TABLES])
    for path in [target] if suffix == ".npz" else table_paths(target):
        check_folder(path)
        if os.path.realpath(source) == os.path.realpath(path):
            raise InputError(f"the target must be another file than the source, got '{path}' twice; choose another.")
    if is_graph_set(source, home):
        if suffix != ".npz" or prepared:
            what = "--prepared" if suffix == ".npz" else f"'{target}'"
            raise InputError(f"a set of graphs must go into an .npz file as it is, got {what}; leave it out.")
        graphs = load_graphs(source, data_home=home, verbose=verbose)
        write_graph_npz(graphs, target)
        return [f"{target}: {graphs!r}"]
    graph = load_graph(source, data_home=home, verbose=verbose)
    graph = prepare(graph) if prepared else graph
    if suffix == ".npz":
        write_npz(graph, target)
        return [f"{target}: {graph!r}"]
    edges, nodes = write_tables(graph, target)
    return [f"{edges}: {graph.graph.nnz:,} edges, both directions", f"{nodes}: {graph!r}"]
