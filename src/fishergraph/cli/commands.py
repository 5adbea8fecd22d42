"""All commands, under one name."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fishergraph._version import __version__
from fishergraph.cli.anomalies import anomalies
from fishergraph.cli.cluster import cluster
from fishergraph.cli.console import explained, flush
from fishergraph.cli.data import data_app
from fishergraph.cli.demo import demo
from fishergraph.cli.embed import embed
from fishergraph.cli.explain import explain
from fishergraph.cli.explore import explore
from fishergraph.cli.ingest import ingest
from fishergraph.cli.links import links
from fishergraph.cli.nearest import nearest
from fishergraph.cli.plan import plan
from fishergraph.cli.plot import plot
from fishergraph.cli.predict import predict
from fishergraph.cli.table import table
from fishergraph.cli.train import train
from fishergraph.cli.update import update
from fishergraph.cli.verify import verify

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
app.command("explain")(explain)
app.command("anomalies")(anomalies)
app.command("plot")(plot)
app.command("explore")(explore)
app.command("nearest")(nearest)
app.command("links")(links)
app.command("cluster")(cluster)
app.command("table")(table)
app.command("ingest")(ingest)
app.command("plan")(plan)
app.command("update")(update)
app.command("verify")(verify)
app.command("demo")(demo)
app.add_typer(data_app, name="data")


class _Laboratory(TyperGroup):
    """The commands of `fishergraph.lab`, which is imported when one of them is needed."""

    @cached_property
    def _group(self) -> Any:
        return typer.main.get_command(import_module("fishergraph.lab.cli").app)

    def list_commands(self, ctx: Any) -> list[str]:
        return self._group.list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self._group.get_command(ctx, cmd_name)


app.add_typer(
    typer.Typer(cls=_Laboratory, no_args_is_help=True, help="Reproduce the experiments of the paper."), name="lab"
)


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

    [bold]fishergraph demo[/bold]   shows it on a graph that is included.

    [bold]fishergraph embed edges.csv --nodes nodes.csv -o embedding.parquet[/bold]   embeds yours, without labels.

    [bold]fishergraph nearest embedding.parquet ID[/bold]   shows the nodes most like one; also links and cluster.

    [bold]fishergraph plot embedding.parquet -o map.png[/bold]   draws it.

    [bold]fishergraph data list[/bold]   lists the graphs that have a name.

    [bold]fishergraph train edges.csv --nodes nodes.csv --label topic -o model.safetensors[/bold]   learns from labels.

    [bold]fishergraph explore embedding.parquet --graph edges.csv[/bold]   makes a page of it to click through.

    [bold]fishergraph ingest edges.parquet nodes.parquet -o graph.store[/bold]   prepares a graph larger than memory.
    """


def run() -> None:
    """Run the command line; leaves with one of the exit codes."""
    try:
        with explained(debug=False):
            app()
    finally:
        flush()
