"""The command `fishergraph`: embed | train | predict | demo | run | report | simulate | data.

    options    what can be said on the command line; options_method of the layers, options_train of training
    config     what can be said in a file instead
    inputs     what a command was asked for, and what it reads
    labels     the labels it reads, the predictions it writes
    embed      fishergraph embed: files in, embedding and run record out
    train      fishergraph train: files with labels in, trained classifier and run record out
    predict    fishergraph predict: files and a trained classifier in, classes out
    demo       fishergraph demo: the bundled Cora, scored and drawn
    run        fishergraph run NAME: an experiment of the paper, from its missing rows to its figure
    table1     fishergraph run | report table1, figure4; lists, their options of several words
    simulate   fishergraph simulate NAME: the rows of a study, and a table of them
    data       fishergraph data list | info | fetch | convert: graphs to learn on; data_pages, how they are shown
    record     the run record: what was done, with what, how long it took
    console    bars, warnings, and the sentence and exit code of a failure

Only typer is imported before a command runs, so that `--help` answers at once.
Exit codes: 0; 1, a failure that the message explains; 2, a wrong call; 130, interrupted.
"""

from __future__ import annotations

from typing import Annotated

import typer

from fishergraph._version import __version__
from fishergraph.cli.console import explained
from fishergraph.cli.data import data_app
from fishergraph.cli.demo import demo
from fishergraph.cli.embed import embed
from fishergraph.cli.predict import predict
from fishergraph.cli.run import report_app, run_app
from fishergraph.cli.simulate import simulate
from fishergraph.cli.train import train

__all__ = ["app", "main"]

app = typer.Typer(
    name="fishergraph",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("embed")(embed)
app.command("train")(train)
app.command("predict")(predict)
app.command("demo")(demo)
app.command("simulate")(simulate)
app.add_typer(run_app, name="run")
app.add_typer(report_app, name="report")
app.add_typer(data_app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fishergraph {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Embed or classify the nodes of a graph with the geometry of a statistical manifold.

    [bold]fishergraph demo[/bold]   shows it on a graph that comes along.

    [bold]fishergraph embed edges.csv --nodes nodes.csv -o embedding.parquet[/bold]   embeds yours, without labels.

    [bold]fishergraph data list[/bold]   shows the graphs that can be had by name.

    [bold]fishergraph train edges.csv --nodes nodes.csv --label topic -o model.safetensors[/bold]   learns from labels.
    """


def main() -> None:
    """Run the command line; leaves with one of the exit codes above."""
    with explained(debug=False):
        app()
