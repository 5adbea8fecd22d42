"""`fishergraph run`: an experiment by name, from its missing rows to its table or figure."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from fishergraph.cli.console import explained
from fishergraph.cli.lists import ListCommand
from fishergraph.cli.simulate import Debug, Output, Quick, Quiet, fill_studies, output_folder
from fishergraph.cli.table1 import report_figure4, report_figure5, report_table1, run_figure4, run_figure5, run_table1

# The figures drawn from simulated rows, and what each shows.
FIGURES = {
    "figure2": "Figure 2: embedding distance over KL divergence, varying the distributions.",
    "figure3": "Figure 3: the same, varying EM iterations and components.",
    "divergence": "Goldberger's approximation beside the KL divergence, in both directions.",
    "closeness": "Id/p beside the exact Fisher matrix, for close densities.",
    "attention": "The attention's concentration against the variance, and where the published code sits.",
}


class Experiments(TyperGroup):
    """A group of commands whose unknown names list the known ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands:
            known = ", ".join(self.commands)
            ctx.fail(f"an experiment must be one of {known}, got '{args[0]}'; choose one of these names.")
        return super().resolve_command(ctx, args)


run_app = typer.Typer(
    cls=Experiments, no_args_is_help=True, help="Run an experiment of the paper: its missing rows, then its figure."
)


def _figure_command(name: str) -> Any:
    def command(output: Output = None, quick: Quick = False, quiet: Quiet = False, debug: Debug = False) -> None:
        with explained(debug=debug):
            _run_figure(name, output, quick, quiet)

    return command


def _run_figure(name: str, output: Any, quick: bool, quiet: bool) -> None:
    """Rows, then NAME.png and NAME.pdf beside them."""
    from fishergraph._optional import require

    require("matplotlib", extra="plots")
    from fishergraph.experiments.studies import choose_study
    from fishergraph.plots import FIGURES as SPECS
    from fishergraph.plots import draw_figure

    studies, folder = [choose_study(study, quick=quick) for study in SPECS[name].studies], output_folder(output, quick)
    path = folder / f"{name}.png"
    draw_figure(SPECS[name], fill_studies(studies, folder, quiet=quiet), path)
    typer.echo(f"{path} and {path.with_suffix('.pdf')}")


for _name, _help in FIGURES.items():
    run_app.command(_name, help=f"{_help} Writes {_name}.png and {_name}.pdf.")(_figure_command(_name))

run_app.command("table1", cls=ListCommand)(run_table1)
run_app.command("figure4", cls=ListCommand)(run_figure4)
run_app.command("figure5")(run_figure5)

report_app = typer.Typer(
    cls=Experiments, no_args_is_help=True, help="Make a table or figure from the rows of an experiment; nothing is run."
)
report_app.command("table1", cls=ListCommand)(report_table1)
report_app.command("figure4", cls=ListCommand)(report_figure4)
report_app.command("figure5")(report_figure5)
