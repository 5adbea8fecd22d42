"""What the commands of the laboratory do: run the missing cells, then make a table or figure from the rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from fishergraph._optional import require
from fishergraph._validation import look_up
from fishergraph.cli.console import Bar, printer, say
from fishergraph.cli.options import wrong_call
from fishergraph.datasets import load_graph
from fishergraph.io.files import check_folder, replacing
from fishergraph.lab.experiments.plan import Column, Status, by_key, columns_of
from fishergraph.lab.experiments.report import (
    COMPONENT_METHODS,
    FORMATS,
    Entry,
    component_records,
    markdown,
    table_entries,
)
from fishergraph.lab.experiments.runner import processes, run_columns
from fishergraph.lab.experiments.specs import DATASETS, PLANETOID, SPECS, choose_datasets, choose_specs, on_request
from fishergraph.lab.figures import FIGURES, draw_components, draw_figure, draw_maps, studies_of
from fishergraph.lab.rows import Cell, read_rows, remaining, row_key, run_cells
from fishergraph.lab.studies import STUDIES, Study, choose_study, maps

STUDY_ROWS, TABLE_ROWS, MAP_ROWS = "simulations.jsonl", "table1.jsonl", "figure5.jsonl"


@dataclass(frozen=True)
class Request:
    """The options of a command; None is the default of an experiment."""

    output: Path | None = None
    quick: bool = False
    quiet: bool = False
    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    jobs: int | None = None
    device: str | None = None
    data: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of rows, tables and figures."""
        return self.output or (Path("results") / "quick" if self.quick else Path("results"))


@dataclass(frozen=True)
class Experiment:
    """A table or figure: what it needs, how that is run, and how its files are made from the rows."""

    plan: Callable[[Request], Any]  # raises if a name is unknown or a package is not installed
    fill: Callable[[Any, Request], None]  # runs the cells of the plan that have no row
    draw: Callable[[Request], None]
    options: tuple[str, ...] = ()  # beside those of every experiment


def run(name: str, request: Request) -> None:
    """Run the missing cells of an experiment, then make its table or figure."""
    experiment = _choose_experiment(name, request)
    plan = experiment.plan(request)
    _make_folder(request.folder)
    experiment.fill(plan, request)
    experiment.draw(request)


def report(name: str, request: Request) -> None:
    """Make the table or figure of an experiment from its rows."""
    experiment = _choose_experiment(name, request)
    if not request.folder.is_dir():
        advice = "name another with -o, or use `fishergraph lab run` first"
        raise NotADirectoryError(f"the results must be a folder, got '{request.folder}'; {advice}.")
    experiment.draw(request)


def simulate(names: Sequence[str], request: Request) -> None:
    """Run studies and show their table."""
    with wrong_call():
        studies = [choose_study(name, quick=request.quick) for name in (STUDIES if names == ["all"] else names)]
    _make_folder(request.folder)
    _run_studies(studies, request)
    table = Table("study", "value", "curve", "median", "band", "repeats", box=None, pad_edge=False)
    for record in _records(studies, request):
        value = "" if record["value"] is None else f"{record['value']:.4g}"
        numbers = f"{record['median']:.4g}", f"{record['low']:.4g} … {record['high']:.4g}", str(record["repeats"])
        table.add_row(record["study"], value, record["curve"], *numbers)
    printer().print(table)


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"the output must be a folder, got the file '{folder}'; name another with -o.")
    folder.mkdir(parents=True, exist_ok=True)


# --- figures of studies -----------------------------------------------------------------------------------


def _studies_of(name: str, request: Request) -> list[Study]:
    require("matplotlib", extra="plots")
    return [choose_study(study, quick=request.quick) for study in studies_of(FIGURES[name])]


def _run_studies(studies: Sequence[Study], request: Request) -> None:
    path = request.folder / STUDY_ROWS
    with Bar(quiet=request.quiet) as bar:
        bar.expect(len(remaining(path, (cell for study in studies for cell in study.cells()))))
        for study in studies:
            study.run(path, lambda cell: bar.count(cell.study))


def _records(studies: Sequence[Study], request: Request) -> list[dict[str, Any]]:
    rows = read_rows(request.folder / STUDY_ROWS)
    return [record for study in studies for record in study.summarize(rows)]


def _draw_studies(name: str, request: Request) -> None:
    records = _records(_studies_of(name, request), request)
    if not records:
        raise _no_rows(request.folder / STUDY_ROWS, name)
    path = request.folder / f"{name}.png"
    draw_figure(FIGURES[name], records, path)
    _report_figure(path)


def _no_rows(path: Path, name: str, what: str = "finished rows") -> ValueError:
    return ValueError(f"'{path}' has no {what}; run `fishergraph lab run {name}` first.")


def _report_figure(path: Path) -> None:
    typer.echo(f"{path} and {path.with_suffix('.pdf')}")


# --- Table 1 ----------------------------------------------------------------------------------------------


def _graphs(names: Sequence[str] | None, quick: bool) -> list[str]:
    with wrong_call():
        return choose_datasets(names or (PLANETOID[:1] if quick else PLANETOID))


def _table1_columns(request: Request) -> list[Column]:
    with wrong_call():
        specs = choose_specs(request.methods)
    columns = columns_of(specs, _graphs(request.datasets, request.quick), quick=request.quick)
    if request.methods is not None:
        return columns
    return [column for column in columns if not on_request(column.spec.method, column.dataset)]


def _run_columns(columns: Sequence[Column], request: Request) -> None:
    path, jobs = request.folder / TABLE_ROWS, request.jobs or os.cpu_count() or 1
    try:
        with LiveTable(quiet=request.quiet) as watch, processes(jobs) as pool:
            options = {"jobs": jobs, "data_home": request.data, "device": request.device or "cpu", "watch": watch}
            run_columns(columns, path, pool, **options)
    except KeyboardInterrupt:
        say(f"interrupted; the rows so far are in '{path}', and the same command continues from them.")
        raise SystemExit(130) from None


def _run_table1(columns: Sequence[Column], request: Request) -> None:
    _run_columns(columns, request)
    if _is_part(request):
        _write_tables(request)


def _draw_table1(request: Request) -> None:
    """Show the table or a part of it; write the whole table."""
    typer.echo(markdown(_entries(request)))
    if not _is_part(request):
        _write_tables(request)


def _is_part(request: Request) -> bool:
    return request.datasets is not None or request.methods is not None


def _write_tables(request: Request) -> None:
    """Write the tables of all that is finished."""
    entries = _entries(replace(request, datasets=None, methods=None))
    for suffix, render in FORMATS.items():
        path = request.folder / f"table1{suffix}"
        check_folder(path)
        with replacing(path) as temporary:
            temporary.write_text(render(entries), encoding="utf-8")
    typer.echo(f"{request.folder / 'table1'}{', '.join(FORMATS)}")


def _entries(request: Request) -> list[Entry]:
    """The finished entries of some graphs and methods, or of all."""
    with wrong_call():
        graphs = choose_datasets(request.datasets or DATASETS)
        specs = [look_up(SPECS, name, "a method") for name in (request.methods or SPECS)]
    folder = request.folder
    entries = table_entries(columns_of(specs, graphs, quick=request.quick), _table_rows(folder))
    if entries:
        return entries
    for other in [] if request.quick else [folder, folder / "quick"]:
        if table_entries(columns_of(specs, graphs, quick=True), _table_rows(other)):
            advice = "add --quick, or run `fishergraph lab run table1` first"
            raise ValueError(f"the rows in '{other / TABLE_ROWS}' are those of a quick run; {advice}.")
    raise _no_rows(folder / TABLE_ROWS, "table1")


def _table_rows(folder: Path) -> dict[str, Any]:
    return by_key(read_rows(folder / TABLE_ROWS))


class LiveTable:
    """A live table of the columns on stderr; if stderr is not a terminal, a line per finished column."""

    def __init__(self, *, quiet: bool):
        self.quiet, self.start, self.reported = quiet, perf_counter(), set()

    def __enter__(self) -> LiveTable:
        self.live = None
        if not self.quiet and sys.stderr.isatty():
            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self.live.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, statuses: list[Status]) -> None:
        """Show the progress of the columns."""
        if self.live:
            self.live.update(self._table(statuses), refresh=True)
        for status in statuses:
            name = status.column.name
            if status.finished and name not in self.reported and not self.quiet:
                self.reported.add(name)
                if self.live is None:
                    say(f"{perf_counter() - self.start:6.0f} s: {name}: validation {_percent(status.val)}")

    def _table(self, statuses: list[Status]) -> Any:
        done = sum(status.finished for status in statuses)
        table = Table("method", "graph", "stage", "runs", "validation", "test", box=None, pad_edge=False)
        table.title = f"{done} of {len(statuses)} columns, {perf_counter() - self.start:.0f} s"
        for status in statuses:
            style = "green" if status.finished else "dim" if not status.done else None
            column, runs = status.column, f"{status.done}/{status.total}"
            numbers = _percent(status.val), _percent(status.test)
            table.add_row(column.spec.title, column.dataset, status.stage, runs, *numbers, style=style)
        return table


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


# --- Figures 4 and 5 --------------------------------------------------------------------------------------


def _figure4_columns(request: Request) -> list[Column]:
    require("matplotlib", extra="plots")
    graphs = _graphs(request.datasets, request.quick)
    return columns_of(choose_specs(COMPONENT_METHODS), graphs, quick=request.quick, components=True)


def _draw_figure4(request: Request) -> None:
    columns = _figure4_columns(request)
    records = component_records(columns, _table_rows(request.folder))
    if not records:
        raise _no_rows(request.folder / TABLE_ROWS, "figure4")
    names = sorted({column.dataset for column in columns})
    complete = names == sorted(_graphs(None, request.quick))
    path = request.folder / f"{'-'.join(['figure4', *([] if complete else names)])}.png"
    draw_components(records, path)
    _report_figure(path)


def _figure5_cells(request: Request) -> list[Cell]:
    require("matplotlib", extra="plots")
    choose_specs(maps.PANELS)  # checks that their packages are installed
    return maps.map_cells(quick=request.quick)


def _run_figure5(cells: Sequence[Cell], request: Request) -> None:
    path = request.folder / MAP_ROWS
    with Bar(quiet=request.quiet) as bar:
        bar.expect(len(remaining(path, cells)))
        run_cells(path, cells, maps.map_work, lambda cell: bar.count(cell.parameters["method"]))


def _draw_figure5(request: Request) -> None:
    rows, path = request.folder / MAP_ROWS, request.folder / "figure5.png"
    coordinates = {row_key(row): row["values"]["coordinates"] for row in read_rows(rows)}
    keys = {maps.PANELS[cell.parameters["method"]]: cell.key for cell in maps.map_cells(quick=request.quick)}
    missing = [title for title, key in keys.items() if key not in coordinates]
    if missing:
        raise _no_rows(rows, "figure5", f"map of {', '.join(missing)}")
    data = load_graph(maps.DATASET)
    draw_maps({title: coordinates[key] for title, key in keys.items()}, data.y, names=data.class_names, path=path)
    _report_figure(path)


_GRAPH_OPTIONS = ("datasets", "jobs", "device", "data")
EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment(_table1_columns, _run_table1, _draw_table1, ("methods", *_GRAPH_OPTIONS)),
    **{name: Experiment(partial(_studies_of, name), _run_studies, partial(_draw_studies, name)) for name in FIGURES},
    "figure4": Experiment(_figure4_columns, _run_columns, _draw_figure4, _GRAPH_OPTIONS),
    "figure5": Experiment(_figure5_cells, _run_figure5, _draw_figure5),
}


def _choose_experiment(name: str, request: Request) -> Experiment:
    """The experiment, which must have the options of the request."""
    with wrong_call():
        experiment = look_up(EXPERIMENTS, name, "an experiment")
    for option in ("methods", *_GRAPH_OPTIONS):
        if option not in experiment.options and getattr(request, option) is not None:
            raise typer.BadParameter(f"{name} has no option --{option}; remove it.")
    return experiment
