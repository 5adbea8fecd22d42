"""`fishergraph run` and `report` for Table 1 and Figures 4 and 5: the missing rows, and what is made of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fishergraph.cli.console import Bar, explained, say
from fishergraph.cli.simulate import Debug, Quick, Quiet, output_folder

if TYPE_CHECKING:
    from fishergraph.experiments.plan import Column, Status

ROWS, MAPS = "table1.jsonl", "figure5.jsonl"
Results = Annotated[
    Path | None,
    typer.Option("--results", "-o", show_default="results, or results/quick", help="Folder for the rows and tables."),
]
Datasets = Annotated[
    list[str] | None,
    typer.Option("--datasets", show_default="cora citeseer pubmed; cora if quick", help="Graphs of the table."),
]
Methods = Annotated[
    list[str] | None, typer.Option("--methods", show_default="all", help="Lines of the table: fie, gat, …")
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, show_default="all cores", help="Runs side by side.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:1.")]
Data = Annotated[Path | None, typer.Option("--data", help="Folder of graphs.", show_default="$FISHERGRAPH_DATA")]


def run_table1(
    datasets: Datasets = None,
    methods: Methods = None,
    jobs: Jobs = None,
    quick: Quick = False,
    results: Results = None,
    device: Device = "cpu",
    data: Data = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Table 1: every method on every graph; settings chosen on validation nodes, then ten seeds.

    Rows go to table1.jsonl in the results folder. What is there is not run again: a run that was stopped goes on with
    the same command. Then table1.md, .tex and .csv are written.
    """
    with explained(debug=debug):
        from fishergraph.experiments.specs import choose_specs

        specs = choose_specs(methods)
        names = _datasets(datasets, quick)
        folder = output_folder(results, quick)
        _fill(_columns(specs, names, quick), folder / ROWS, jobs, device=device, data=data, quiet=quiet)
        _write_tables(folder, quick, datasets, methods)


def report_table1(
    datasets: Datasets = None,
    methods: Methods = None,
    results: Results = None,
    quick: Quick = False,
    debug: Debug = False,
) -> None:
    """Table 1 from the rows in the results folder: shown, and written as table1.md, .tex and .csv."""
    with explained(debug=debug):
        _write_tables(output_folder(results, quick), quick, datasets, methods)


def run_figure4(
    datasets: Datasets = None,
    jobs: Jobs = None,
    quick: Quick = False,
    results: Results = None,
    device: Device = "cpu",
    data: Data = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Figure 4: validation accuracy against the number of components, both modes. Writes figure4.png and figure4.pdf.

    It needs the lines of FIE in Table 1, whose rows it shares and completes.
    """
    with explained(debug=debug):
        columns, folder = _figure4_columns(datasets, quick), output_folder(results, quick)
        _fill(columns, folder / ROWS, jobs, device=device, data=data, quiet=quiet)
        _draw_figure4(columns, folder)


def report_figure4(
    datasets: Datasets = None, results: Results = None, quick: Quick = False, debug: Debug = False
) -> None:
    """Figure 4 from the rows in the results folder."""
    with explained(debug=debug):
        _draw_figure4(_figure4_columns(datasets, quick), output_folder(results, quick))


def run_figure5(results: Results = None, quick: Quick = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Figure 5: t-SNE maps of GAT, supervised and unsupervised FIE on Cora. Writes figure5.png and figure5.pdf."""
    with explained(debug=debug):
        from fishergraph.experiments.rows import remaining, run_cells
        from fishergraph.experiments.specs import choose_specs
        from fishergraph.experiments.tsne import PANELS, map_cells, map_work

        choose_specs(PANELS)  # their packages
        path, cells = output_folder(results, quick) / MAPS, map_cells(quick=quick)
        with Bar(quiet=quiet) as bar:
            bar.expect(len(remaining(path, cells)))
            run_cells(path, cells, map_work, lambda cell: bar.count(cell.parameters["method"]))
        _draw_figure5(path, quick)


def report_figure5(results: Results = None, quick: Quick = False, debug: Debug = False) -> None:
    """Figure 5 from the rows in the results folder."""
    with explained(debug=debug):
        _draw_figure5(output_folder(results, quick) / MAPS, quick)


def _draw_figure5(rows: Path, quick: bool) -> None:
    from fishergraph._optional import require
    from fishergraph.datasets import load_graph
    from fishergraph.experiments.rows import read_rows, row_key
    from fishergraph.experiments.tsne import DATASET, PANELS, map_cells

    require("matplotlib", extra="plots")
    from fishergraph.plots import draw_maps

    found = {row_key(row): row["values"]["coordinates"] for row in read_rows(rows)}
    cells = {PANELS[cell.parameters["method"]]: cell.key for cell in map_cells(quick=quick)}
    if not found.keys() >= set(cells.values()):
        raise ValueError(
            f"'{rows}' must hold all maps of Figure 5, got some missing; use fishergraph run figure5 first."
        )
    data, path = load_graph(DATASET), rows.with_name("figure5.png")
    draw_maps({title: found[key] for title, key in cells.items()}, data.y, names=data.class_names, path=path)
    typer.echo(f"{path} and {path.with_suffix('.pdf')}")


def _datasets(names: Sequence[str] | None, quick: bool) -> list[str]:
    from fishergraph.experiments.specs import PLANETOID, choose_datasets

    return choose_datasets(names or (PLANETOID[:1] if quick else PLANETOID))


def _columns(specs: Sequence[Any], names: Sequence[str], quick: bool, *, components: bool = False) -> list[Column]:
    from fishergraph.experiments.runner import columns_of

    return columns_of(specs, names, quick=quick, components=components)


def _figure4_columns(datasets: Sequence[str] | None, quick: bool) -> list[Column]:
    from fishergraph._optional import require
    from fishergraph.experiments.components import METHODS
    from fishergraph.experiments.specs import choose_specs

    require("matplotlib", extra="plots")
    return _columns(choose_specs(METHODS), _datasets(datasets, quick), quick, components=True)


def _fill(
    columns: Sequence[Column], path: Path, jobs: int | None, *, device: str, data: Path | None, quiet: bool
) -> None:
    """Run what the rows lack, and show how far it is."""
    from fishergraph._checks import check_device
    from fishergraph.experiments.runner import processes, run_columns

    check_device(device, "float32")
    jobs = jobs or os.cpu_count() or 1
    try:
        with Watch(quiet=quiet) as watch, processes(jobs) as pool:
            run_columns(columns, path, pool, jobs=jobs, data_home=data, device=device, watch=watch)
    except KeyboardInterrupt:
        say(f"interrupted; the rows so far are in '{path}', and the same command goes on from there.")
        raise SystemExit(130) from None


class Watch:
    """A live table of the columns on stderr; a line per finished column where stderr is no terminal."""

    def __init__(self, *, quiet: bool):
        self.quiet, self.start, self.told = quiet, perf_counter(), set()

    def __enter__(self) -> Watch:
        from rich.console import Console
        from rich.live import Live

        self.live = None
        if not self.quiet and sys.stderr.isatty():
            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self.live.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, found: list[Status]) -> None:
        """Show where the columns stand."""
        if self.live:
            self.live.update(self._table(found), refresh=True)
        for status in found:
            name = f"{status.column.spec.method} on {status.column.dataset}"
            if status.finished and name not in self.told and not self.quiet:
                self.told.add(name)
                if self.live is None:
                    say(f"{perf_counter() - self.start:6.0f} s: {name}: validation {_percent(status.val)}")

    def _table(self, found: list[Status]) -> Any:
        from rich.table import Table

        done = sum(status.finished for status in found)
        table = Table("method", "graph", "stage", "runs", "validation", "test", box=None, pad_edge=False)
        table.title = f"{done} of {len(found)} columns, {perf_counter() - self.start:.0f} s"
        for status in found:
            style = "green" if status.finished else "dim" if not status.done else None
            runs = f"{status.done}/{status.total}"
            numbers = _percent(status.val), _percent(status.test)
            table.add_row(status.column.spec.title, status.column.dataset, status.stage, runs, *numbers, style=style)
        return table


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _write_tables(folder: Path, quick: bool, datasets: Sequence[str] | None, methods: Sequence[str] | None) -> None:
    """Write and show the table of what is finished."""
    from fishergraph._file_checks import check_folder, replacing
    from fishergraph.experiments.plan import by_key
    from fishergraph.experiments.report import FORMATS, markdown, table_entries
    from fishergraph.experiments.rows import read_rows
    from fishergraph.experiments.specs import DATASETS, SPECS, choose_datasets

    names = choose_datasets(datasets or DATASETS)
    specs = [SPECS[name] for name in (methods or SPECS)]
    rows = by_key(read_rows(folder / ROWS))
    entries = table_entries(_columns(specs, names, quick), rows)
    if not entries:
        raise ValueError(
            f"the rows in '{folder / ROWS}' must hold a finished column, got none; use fishergraph run table1 first."
        )
    for suffix, render in FORMATS.items():
        path = folder / f"table1{suffix}"
        check_folder(path)
        with replacing(path) as part:
            part.write_text(render(entries), encoding="utf-8")
    typer.echo(markdown(entries))
    typer.echo(f"{folder / 'table1'}{', '.join(FORMATS)}")


def _draw_figure4(columns: Sequence[Column], folder: Path) -> None:
    from fishergraph.experiments.components import component_records
    from fishergraph.experiments.plan import by_key
    from fishergraph.experiments.rows import read_rows
    from fishergraph.plots import draw_components

    records = component_records(columns, by_key(read_rows(folder / ROWS)))
    if not records:
        raise ValueError(
            f"the rows in '{folder / ROWS}' must hold a finished column, got none; use fishergraph run figure4 first."
        )
    path = folder / "figure4.png"
    draw_components(records, path)
    typer.echo(f"{path} and {path.with_suffix('.pdf')}")
