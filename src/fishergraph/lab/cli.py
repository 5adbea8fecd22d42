"""The commands of the laboratory: fishergraph lab run | report | simulate.

    run NAME        run the missing cells of an experiment, then make its table or figure
    report NAME     make the table or figure from the rows; nothing is run
    simulate NAME   run the missing cells of a study and show its table

Heavy modules are imported when a command runs, so that `--help` is fast.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fishergraph.cli.console import Bar, explained, printer, say
from fishergraph.cli.options import check_device, wrong_call
from fishergraph.lab.figures import FIGURES
from fishergraph.lab.terminal import ExperimentGroup, ListCommand, LiveTable

if TYPE_CHECKING:
    from fishergraph.lab.experiments.plan import Column
    from fishergraph.lab.experiments.report import Entry
    from fishergraph.lab.experiments.specs import Spec
    from fishergraph.lab.studies import Study

STUDY_ROWS, TABLE_ROWS, MAP_ROWS = "simulations.jsonl", "table1.jsonl", "figure5.jsonl"
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
    typer.Option("--datasets", show_default="cora citeseer pubmed; cora if quick", help="Graphs of the table."),
]
Methods = Annotated[
    list[str] | None, typer.Option("--methods", show_default="all", help="Lines of the table: fie, gat, …")
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, show_default="all cores", help="Number of processes.")]
Device = Annotated[str, typer.Option("--device", callback=check_device, help="cpu, cuda or cuda:1.")]
Data = Annotated[Path | None, typer.Option("--data", help="Folder of graphs.", show_default="$FISHERGRAPH_DATA")]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Reproduce the experiments of the paper.")
run_app = typer.Typer(
    cls=ExperimentGroup,
    no_args_is_help=True,
    help="Run what is missing of an experiment, then make its table or figure.",
)
report_app = typer.Typer(
    cls=ExperimentGroup, no_args_is_help=True, help="Make a table or figure from the rows of an experiment."
)
app.add_typer(run_app, name="run")
app.add_typer(report_app, name="report")


# --- studies ----------------------------------------------------------------------------------------------


@app.command()
def simulate(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Studies, or all.", show_default=False)],
    output: Output = None,
    quick: Quick = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a study of simulated data and show its table.

    modes, shift, spread, iterations, anchors, anchors-one-step: squared distances of embeddings over the KL divergence
    (Section 5.1). divergence, closeness, attention: beyond the paper.

    Rows are appended to simulations.jsonl in the output folder; cells that have a row are not run again.
    """
    with explained(debug=debug):
        from rich.table import Table

        from fishergraph.lab.studies import STUDIES, choose_study

        with wrong_call():
            studies = [choose_study(name, quick=quick) for name in (STUDIES if names == ["all"] else names)]
        table = Table("study", "value", "curve", "median", "band", "repeats", box=None, pad_edge=False)
        for record in _run_studies(studies, _output_folder(output, quick), quiet=quiet):
            value = "" if record["value"] is None else f"{record['value']:.4g}"
            numbers = f"{record['median']:.4g}", f"{record['low']:.4g} … {record['high']:.4g}", str(record["repeats"])
            table.add_row(record["study"], value, record["curve"], *numbers)
        printer().print(table)


def _figure_command(name: str) -> Any:
    def command(output: Output = None, quick: Quick = False, quiet: Quiet = False, debug: Debug = False) -> None:
        with explained(debug=debug):
            _require_matplotlib()
            from fishergraph.lab.figures import draw_figure
            from fishergraph.lab.studies import choose_study

            studies = [choose_study(study, quick=quick) for study in FIGURES[name].studies]
            path = _output_folder(output, quick) / f"{name}.png"
            draw_figure(FIGURES[name], _run_studies(studies, path.parent, quiet=quiet), path)
            _report_figure(path)

    return command


for _name, _spec in FIGURES.items():
    run_app.command(_name, help=f"{_spec.caption} Writes {_name}.png and {_name}.pdf.")(_figure_command(_name))


def _run_studies(studies: Sequence[Study], folder: Path, *, quiet: bool) -> list[dict[str, Any]]:
    """Run the missing cells of these studies; returns their tables, one after the other."""
    from fishergraph.lab.experiments.rows import read_rows, remaining

    path = folder / STUDY_ROWS
    with Bar(quiet=quiet) as bar:
        bar.expect(len(remaining(path, (cell for study in studies for cell in study.cells()))))
        for study in studies:
            study.run(path, lambda cell: bar.count(cell.study))
    rows = read_rows(path)
    return [record for study in studies for record in study.summarize(rows)]


# --- Table 1 ----------------------------------------------------------------------------------------------


@run_app.command("table1", cls=ListCommand)
def run_table1(
    datasets: Datasets = None,
    methods: Methods = None,
    jobs: Jobs = None,
    quick: Quick = False,
    output: Output = None,
    device: Device = "cpu",
    data: Data = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Table 1: every method on every graph; settings chosen on validation nodes, then ten seeds.

    Rows are appended to table1.jsonl in the output folder; a run that was stopped continues with the same command. Then
    table1.md, .tex and .csv are written, with all that is finished. GraphSAGE takes minutes on the three small graphs,
    and is run on them only if --methods names it.
    """
    with explained(debug=debug):
        from fishergraph.lab.experiments.specs import choose_specs, on_request

        with wrong_call():
            specs = choose_specs(methods)
        columns = _columns(specs, _datasets(datasets, quick), quick=quick)
        if methods is None:
            columns = [column for column in columns if not on_request(column.spec.method, column.dataset)]
        folder = _output_folder(output, quick)
        _run_columns(columns, folder / TABLE_ROWS, jobs, device=device, data=data, quiet=quiet)
        _show_table(folder, quick, datasets, methods)
        _write_tables(folder, quick)


@report_app.command("table1", cls=ListCommand)
def report_table1(
    datasets: Datasets = None,
    methods: Methods = None,
    output: Output = None,
    quick: Quick = False,
    debug: Debug = False,
) -> None:
    """Table 1 from its rows: shown, and written as table1.md, .tex and .csv.

    With --datasets or --methods that part is shown, and no file is written.
    """
    with explained(debug=debug):
        folder = _results_folder(output, quick)
        _show_table(folder, quick, datasets, methods)
        if datasets is None and methods is None:
            _write_tables(folder, quick)


def _datasets(names: Sequence[str] | None, quick: bool) -> list[str]:
    from fishergraph.lab.experiments.specs import PLANETOID, choose_datasets

    with wrong_call():
        return choose_datasets(names or (PLANETOID[:1] if quick else PLANETOID))


def _columns(specs: Sequence[Spec], names: Sequence[str], **options: Any) -> list[Column]:
    from fishergraph.lab.experiments.plan import columns_of

    return columns_of(specs, names, **options)


def _table_rows(folder: Path) -> Any:
    from fishergraph.lab.experiments.plan import by_key
    from fishergraph.lab.experiments.rows import read_rows

    return by_key(read_rows(folder / TABLE_ROWS))


def _run_columns(
    columns: Sequence[Column], path: Path, jobs: int | None, *, device: str, data: Path | None, quiet: bool
) -> None:
    """Run the missing cells and show the progress."""
    from fishergraph.lab.experiments.runner import processes, run_columns

    jobs = jobs or os.cpu_count() or 1
    try:
        with LiveTable(quiet=quiet) as watch, processes(jobs) as pool:
            run_columns(columns, path, pool, jobs=jobs, data_home=data, device=device, watch=watch)
    except KeyboardInterrupt:
        say(f"interrupted; the rows so far are in '{path}', and the same command continues from them.")
        raise SystemExit(130) from None


def _entries(
    folder: Path, quick: bool, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[Entry]:
    """The finished entries of these methods and graphs, or of all."""
    from fishergraph._validation import look_up
    from fishergraph.lab.experiments.report import table_entries
    from fishergraph.lab.experiments.specs import DATASETS, SPECS, choose_datasets

    with wrong_call():
        names = choose_datasets(datasets or DATASETS)
        specs = [look_up(SPECS, name, "a method") for name in (methods or SPECS)]
    entries = table_entries(_columns(specs, names, quick=quick), _table_rows(folder))
    if entries:
        return entries
    for other in [] if quick else [folder, folder / "quick"]:
        if table_entries(_columns(specs, names, quick=True), _table_rows(other)):
            raise ValueError(
                f"the rows in '{other / TABLE_ROWS}' are those of a quick run; add --quick, or run "
                "`fishergraph lab run table1` first."
            )
    raise ValueError(_no_column(folder, "table1"))


def _no_column(folder: Path, name: str) -> str:
    return f"'{folder / TABLE_ROWS}' must hold a finished column, got none; run `fishergraph lab run {name}` first."


def _show_table(folder: Path, quick: bool, datasets: Sequence[str] | None, methods: Sequence[str] | None) -> None:
    from fishergraph.lab.experiments.report import markdown

    typer.echo(markdown(_entries(folder, quick, datasets, methods)))


def _write_tables(folder: Path, quick: bool) -> None:
    """Write the tables of all that is finished."""
    from fishergraph.io.files import check_folder, replacing
    from fishergraph.lab.experiments.report import FORMATS

    entries = _entries(folder, quick)
    for suffix, render in FORMATS.items():
        path = folder / f"table1{suffix}"
        check_folder(path)
        with replacing(path) as temporary:
            temporary.write_text(render(entries), encoding="utf-8")
    typer.echo(f"{folder / 'table1'}{', '.join(FORMATS)}")


# --- Figure 4 ---------------------------------------------------------------------------------------------


@run_app.command("figure4", cls=ListCommand)
def run_figure4(
    datasets: Datasets = None,
    jobs: Jobs = None,
    quick: Quick = False,
    output: Output = None,
    device: Device = "cpu",
    data: Data = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Figure 4: validation accuracy against the number of components, both modes. Writes figure4.png and figure4.pdf.

    With --datasets the files have other names, such as figure4-cora.png. It uses the rows of FIE in Table 1, and runs
    those that are missing.
    """
    with explained(debug=debug):
        columns, folder = _figure4_columns(datasets, quick), _output_folder(output, quick)
        _run_columns(columns, folder / TABLE_ROWS, jobs, device=device, data=data, quiet=quiet)
        _draw_figure4(columns, folder, quick)


@report_app.command("figure4", cls=ListCommand)
def report_figure4(
    datasets: Datasets = None, output: Output = None, quick: Quick = False, debug: Debug = False
) -> None:
    """Figure 4 from its rows."""
    with explained(debug=debug):
        _draw_figure4(_figure4_columns(datasets, quick), _results_folder(output, quick), quick)


def _figure4_columns(datasets: Sequence[str] | None, quick: bool) -> list[Column]:
    _require_matplotlib()
    from fishergraph.lab.experiments.report import COMPONENT_METHODS
    from fishergraph.lab.experiments.specs import choose_specs

    return _columns(choose_specs(COMPONENT_METHODS), _datasets(datasets, quick), quick=quick, components=True)


def _draw_figure4(columns: Sequence[Column], folder: Path, quick: bool) -> None:
    from fishergraph.lab.experiments.report import component_records
    from fishergraph.lab.figures import draw_components

    records = component_records(columns, _table_rows(folder))
    if not records:
        raise ValueError(_no_column(folder, "figure4"))
    names = sorted({column.dataset for column in columns})
    whole = set(names) == set(_datasets(None, quick))
    path = folder / ("figure4.png" if whole else f"{'-'.join(['figure4', *names])}.png")
    draw_components(records, path)
    _report_figure(path)


# --- Figure 5 ---------------------------------------------------------------------------------------------


@run_app.command("figure5")
def run_figure5(output: Output = None, quick: Quick = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Figure 5: t-SNE maps of GAT, supervised and unsupervised FIE on Cora. Writes figure5.png and figure5.pdf."""
    with explained(debug=debug):
        _require_matplotlib()
        from fishergraph.lab.experiments.rows import remaining, run_cells
        from fishergraph.lab.experiments.specs import choose_specs
        from fishergraph.lab.studies.maps import PANELS, map_cells, map_work

        choose_specs(PANELS)  # checks that their packages are installed
        path, cells = _output_folder(output, quick) / MAP_ROWS, map_cells(quick=quick)
        with Bar(quiet=quiet) as bar:
            bar.expect(len(remaining(path, cells)))
            run_cells(path, cells, map_work, lambda cell: bar.count(cell.parameters["method"]))
        _draw_figure5(path, quick)


@report_app.command("figure5")
def report_figure5(output: Output = None, quick: Quick = False, debug: Debug = False) -> None:
    """Figure 5 from its rows."""
    with explained(debug=debug):
        _draw_figure5(_results_folder(output, quick) / MAP_ROWS, quick)


def _draw_figure5(rows: Path, quick: bool) -> None:
    _require_matplotlib()
    from fishergraph.datasets import load_graph
    from fishergraph.lab.experiments.rows import read_rows, row_key
    from fishergraph.lab.figures import draw_maps
    from fishergraph.lab.studies.maps import DATASET, PANELS, map_cells

    coordinates = {row_key(row): row["values"]["coordinates"] for row in read_rows(rows)}
    keys = {PANELS[cell.parameters["method"]]: cell.key for cell in map_cells(quick=quick)}
    missing = [title for title, key in keys.items() if key not in coordinates]
    if missing:
        raise ValueError(f"'{rows}' has no map of {', '.join(missing)}; run `fishergraph lab run figure5` first.")
    data, path = load_graph(DATASET), rows.with_name("figure5.png")
    draw_maps({title: coordinates[key] for title, key in keys.items()}, data.y, names=data.class_names, path=path)
    _report_figure(path)


# --- files ------------------------------------------------------------------------------------------------


def _require_matplotlib() -> None:
    from fishergraph._optional import require

    require("matplotlib", extra="plots")


def _report_figure(path: Path) -> None:
    typer.echo(f"{path} and {path.with_suffix('.pdf')}")


def _output_folder(output: Path | None, quick: bool) -> Path:
    """The folder to write to; it is created if it does not exist."""
    folder = _folder(output, quick)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"the output must be a folder, got the file '{folder}'; name another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _results_folder(output: Path | None, quick: bool) -> Path:
    """The folder to read rows from; it must exist."""
    folder = _folder(output, quick)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"the results must be a folder, got '{folder}'; name another with -o, or use `fishergraph lab run` first."
        )
    return folder


def _folder(path: Path | None, quick: bool) -> Path:
    return path or (Path("results") / "quick" if quick else Path("results"))
