"""The commands of the laboratory: fishergraph lab run | report | simulate.

    run NAME        run the missing cells of an experiment, then make its table or figure
    report NAME     make the table or figure from the rows; nothing is run
    simulate NAME   run the missing cells of a study and show its table

`fishergraph.lab.commands` does the work. It is imported when a command runs, so that `--help` is fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fishergraph.cli.console import explained
from fishergraph.cli.options import check_device

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        show_default=False,
        help="table1, figure2, figure3, figure4, figure5, divergence, closeness or attention.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "--results", "-o", show_default="results, or results/quick", help="Folder of rows, tables, figures."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="A few settings and repeats, to see whether it runs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]
Datasets = Annotated[
    list[str] | None,
    typer.Option("--datasets", show_default="cora citeseer pubmed; cora if quick", help="Graphs of table1, figure4."),
]
Methods = Annotated[
    list[str] | None, typer.Option("--methods", show_default="all", help="Lines of table1: fie, gat, …")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, show_default="all cores", help="Number of processes of table1, figure4."),
]
Device = Annotated[
    str | None, typer.Option("--device", callback=check_device, show_default="cpu", help="cpu, cuda or cuda:1.")
]
Data = Annotated[Path | None, typer.Option("--data", help="Folder of graphs.", show_default="$FISHERGRAPH_DATA")]


class ListCommand(TyperCommand):
    """A command whose repeatable options take all words up to the next option: `--datasets cora citeseer,pubmed`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        return super().parse_args(ctx, list(repeat_options(args, options)))


def repeat_options(args: Iterable[str], options: set[str]) -> Iterable[str]:
    """The arguments with such an option before each of its words."""
    option, has_word = None, False
    for word in args:
        if word.startswith("-"):
            if option and not has_word:
                yield option  # the parser reports the missing word
            option, has_word = (word, False) if word in options else (None, False)
            if option is None:
                yield word
        elif option:
            for part in filter(None, word.split(",")):
                yield from (option, part)
                has_word = True
        else:
            yield word
    if option and not has_word:
        yield option


app = typer.Typer(no_args_is_help=True, add_completion=False, help="Reproduce the experiments of the paper.")


@app.command(cls=ListCommand, no_args_is_help=True)
def run(
    name: Name,
    datasets: Datasets = None,
    methods: Methods = None,
    jobs: Jobs = None,
    quick: Quick = False,
    output: Output = None,
    device: Device = None,
    data: Data = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the missing cells of an experiment, then make its table or figure.

    table1: every method on every graph; settings chosen on validation nodes,
    then ten seeds. Writes table1.md, .tex and .csv with all that is finished.
    GraphSAGE takes minutes on the three small graphs, and is run on them only
    if --methods names it.

    figure2, figure3: embedding distance over KL divergence, on simulated data.
    divergence, closeness, attention: beyond the paper.

    figure4: validation accuracy against the number of components, both modes.
    It uses the rows of FIE in table1. With --datasets its file has another
    name, such as figure4-cora.png.

    figure5: t-SNE maps of GAT, supervised and unsupervised FIE on Cora.

    Figures are written as .png and .pdf. Rows are appended to files in the
    output folder, and cells that have a row are not run again: a run that was
    stopped continues with the same command.
    """
    with explained(debug=debug):
        from fishergraph.lab import commands

        commands.run(name, commands.Request(output, quick, quiet, datasets, methods, jobs, device, data))


@app.command(cls=ListCommand, no_args_is_help=True)
def report(
    name: Name,
    datasets: Datasets = None,
    methods: Methods = None,
    output: Output = None,
    quick: Quick = False,
    debug: Debug = False,
) -> None:
    """Make a table or figure from the rows of an experiment.

    With --datasets or --methods that part of table1 is shown, and no file is
    written.
    """
    with explained(debug=debug):
        from fishergraph.lab import commands

        commands.report(name, commands.Request(output, quick, datasets=datasets, methods=methods))


@app.command(no_args_is_help=True)
def simulate(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Studies, or all.", show_default=False)],
    output: Output = None,
    quick: Quick = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a study of simulated data and show its table.

    modes, shift, spread, iterations, anchors, anchors-one-step: squared
    distances of embeddings over the KL divergence (Section 5.1). divergence,
    closeness, attention: beyond the paper.

    Rows are appended to simulations.jsonl in the output folder; cells that have
    a row are not run again.
    """
    with explained(debug=debug):
        from fishergraph.lab import commands

        commands.simulate(names, commands.Request(output, quick, quiet))
