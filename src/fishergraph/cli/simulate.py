"""`fishergraph simulate`: the rows of a study, as far as they are missing, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fishergraph.cli.choices import wrong_call
from fishergraph.cli.console import Bar, explained, printer

if TYPE_CHECKING:
    from fishergraph.experiments.study import Study

ROWS = "simulations.jsonl"
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", show_default="results, or results/quick", help="Folder for the rows and figures."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A few values and repeats: does it run?")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]


def simulate(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Studies, or all.", show_default=False)],
    output: Output = None,
    quick: Quick = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a study of simulated data and show its table.

    modes, shift, spread, iterations, anchors, anchors-one-step: squared distances of embeddings over the KL divergence
    (Section 5.1). divergence, closeness, attention: what the paper does not show.

    Rows are appended to simulations.jsonl in the output folder; what is there is not run again.
    """
    with explained(debug=debug):
        from fishergraph.experiments.studies import STUDIES, choose_study

        wanted = list(STUDIES) if names == ["all"] else names
        with wrong_call():
            studies = [choose_study(name, quick=quick) for name in wanted]
        _show(fill_studies(studies, output_folder(output, quick), quiet=quiet))


def output_folder(output: Path | None, quick: bool) -> Path:
    """The folder that was asked for, made where it is missing."""
    folder = _folder(output, quick)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"the output must be a folder, got the file '{folder}'; name another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def results_folder(results: Path | None, quick: bool) -> Path:
    """The folder that rows are read from; it must be there."""
    folder = _folder(results, quick)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"the results must be a folder, got none at '{folder}'; name another with -o, or use fishergraph run first."
        )
    return folder


def _folder(path: Path | None, quick: bool) -> Path:
    return path or (Path("results") / "quick" if quick else Path("results"))


def fill_studies(studies: Sequence[Study], folder: Path, *, quiet: bool) -> list[dict[str, Any]]:
    """Run what is missing of these studies; returns their tables, one after the other."""
    from fishergraph.experiments.rows import read_rows, remaining

    path = folder / ROWS
    with Bar(quiet=quiet) as bar:
        bar.expect(len(remaining(path, (cell for study in studies for cell in study.cells()))))
        for study in studies:
            study.run(path, lambda cell: bar.count(cell.study))
    rows = read_rows(path)
    return [record for study in studies for record in study.summarize(rows)]


def _show(records: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("study", "value", "curve", "median", "band", "repeats", box=None, pad_edge=False)
    for record in records:
        value = "" if record["value"] is None else f"{record['value']:.4g}"
        numbers = f"{record['median']:.4g}", f"{record['low']:.4g} … {record['high']:.4g}", str(record["repeats"])
        table.add_row(record["study"], value, record["curve"], *numbers)
    printer().print(table)
