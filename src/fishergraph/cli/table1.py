"""`fishergraph run` and `report` for Table 1 and Figures 4 and 5: the missing rows, and what is made of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fishergraph.cli.choices import device as check_device
from fishergraph.cli.choices import wrong_call
from fishergraph.cli.console import Bar, explained, say
from fishergraph.cli.simulate import Debug, Quick, Quiet, output_folder, results_folder
from fishergraph.cli.watch import Watch

if TYPE_CHECKING:
    from fishergraph.experiments.plan import Column

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
Device = Annotated[str, typer.Option("--device", callback=check_device, help="cpu, cuda or cuda:1.")]
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
    the same command. Then table1.md, .tex and .csv are written, with all that is finished. GraphSAGE takes minutes on
    the three small graphs, and is run there where --methods names it.
    """
    with explained(debug=debug):
        from fishergraph.experiments.specs import choose_specs, left_out

        with wrong_call():
            specs = choose_specs(methods)
        names = _datasets(datasets, quick)
        folder, columns = output_folder(results, quick), _columns(specs, names, quick)
        if methods is None:
            columns = [column for column in columns if not left_out(column.spec.method, column.dataset)]
        _fill(columns, folder / ROWS, jobs, device=device, data=data, quiet=quiet)
        _show_table(folder, quick, datasets, methods)
        _write_tables(folder, quick)


def report_table1(
    datasets: Datasets = None,
    methods: Methods = None,
    results: Results = None,
    quick: Quick = False,
    debug: Debug = False,
) -> None:
    """Table 1 from the rows in the results folder: shown, and written as table1.md, .tex and .csv.

    With --datasets or --methods that part is shown, and no file is written.
    """
    with explained(debug=debug):
        folder = results_folder(results, quick)
        _show_table(folder, quick, datasets, methods)
        if datasets is None and methods is None:
            _write_tables(folder, quick)


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

    With --datasets the files have other names, such as figure4-cora.png. It needs the lines of FIE in Table 1, whose
    rows it shares and completes.
    """
    with explained(debug=debug):
        columns, folder = _figure4_columns(datasets, quick), output_folder(results, quick)
        _fill(columns, folder / ROWS, jobs, device=device, data=data, quiet=quiet)
        _draw_figure4(columns, folder, quick)


def report_figure4(
    datasets: Datasets = None, results: Results = None, quick: Quick = False, debug: Debug = False
) -> None:
    """Figure 4 from the rows in the results folder."""
    with explained(debug=debug):
        _draw_figure4(_figure4_columns(datasets, quick), results_folder(results, quick), quick)


def run_figure5(results: Results = None, quick: Quick = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Figure 5: t-SNE maps of GAT, supervised and unsupervised FIE on Cora. Writes figure5.png and figure5.pdf."""
    with explained(debug=debug):
        from fishergraph._optional import require
        from fishergraph.experiments.rows import remaining, run_cells
        from fishergraph.experiments.specs import choose_specs
        from fishergraph.experiments.tsne import PANELS, map_cells, map_work

        require("matplotlib", extra="plots")
        choose_specs(PANELS)  # their packages
        path, cells = output_folder(results, quick) / MAPS, map_cells(quick=quick)
        with Bar(quiet=quiet) as bar:
            bar.expect(len(remaining(path, cells)))
            run_cells(path, cells, map_work, lambda cell: bar.count(cell.parameters["method"]))
        _draw_figure5(path, quick)


def report_figure5(results: Results = None, quick: Quick = False, debug: Debug = False) -> None:
    """Figure 5 from the rows in the results folder."""
    with explained(debug=debug):
        _draw_figure5(results_folder(results, quick) / MAPS, quick)


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

    with wrong_call():
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
    from fishergraph.experiments.runner import processes, run_columns

    jobs = jobs or os.cpu_count() or 1
    try:
        with Watch(quiet=quiet) as watch, processes(jobs) as pool:
            run_columns(columns, path, pool, jobs=jobs, data_home=data, device=device, watch=watch)
    except KeyboardInterrupt:
        say(f"interrupted; the rows so far are in '{path}', and the same command goes on from there.")
        raise SystemExit(130) from None


def _entries(
    folder: Path, quick: bool, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[Any]:
    """What is finished of these lines and graphs, or of all."""
    from fishergraph._validation import look_up
    from fishergraph.experiments.plan import by_key
    from fishergraph.experiments.report import table_entries
    from fishergraph.experiments.rows import read_rows
    from fishergraph.experiments.specs import DATASETS, SPECS, choose_datasets

    with wrong_call():
        names = choose_datasets(datasets or DATASETS)
        specs = [look_up(SPECS, name, "a method") for name in (methods or SPECS)]
    entries = table_entries(_columns(specs, names, quick), by_key(read_rows(folder / ROWS)))
    if not entries:
        _check_quick(specs, names, [] if quick else [folder, folder / "quick"])
        raise ValueError(
            f"the rows in '{folder / ROWS}' must hold a finished column, got none; use fishergraph run table1 first."
        )
    return entries


def _check_quick(specs: Sequence[Any], names: Sequence[str], folders: Sequence[Path]) -> None:
    """Raise if one of the folders holds the rows of a quick run instead."""
    from fishergraph.experiments.plan import by_key
    from fishergraph.experiments.report import table_entries
    from fishergraph.experiments.rows import read_rows

    for folder in folders:
        if table_entries(_columns(specs, names, True), by_key(read_rows(folder / ROWS))):
            raise ValueError(
                f"the rows in '{folder / ROWS}' are those of a quick run, got no finished column of the whole table; "
                "add --quick, or use fishergraph run table1 first."
            )


def _show_table(folder: Path, quick: bool, datasets: Sequence[str] | None, methods: Sequence[str] | None) -> None:
    """Print the table of what was asked for."""
    from fishergraph.experiments.report import markdown

    typer.echo(markdown(_entries(folder, quick, datasets, methods)))


def _write_tables(folder: Path, quick: bool) -> None:
    """Write the tables of all that is finished."""
    from fishergraph.experiments.report import FORMATS
    from fishergraph.io.files import check_folder, replacing

    entries = _entries(folder, quick)
    for suffix, render in FORMATS.items():
        path = folder / f"table1{suffix}"
        check_folder(path)
        with replacing(path) as part:
            part.write_text(render(entries), encoding="utf-8")
    typer.echo(f"{folder / 'table1'}{', '.join(FORMATS)}")


def _draw_figure4(columns: Sequence[Column], folder: Path, quick: bool) -> None:
    from fishergraph.experiments.components import component_records
    from fishergraph.experiments.plan import by_key
    from fishergraph.experiments.rows import read_rows
    from fishergraph.plots import draw_components

    records = component_records(columns, by_key(read_rows(folder / ROWS)))
    if not records:
        raise ValueError(
            f"the rows in '{folder / ROWS}' must hold a finished column, got none; use fishergraph run figure4 first."
        )
    names = sorted({column.dataset for column in columns})
    part = set(names) != set(_datasets(None, quick))  # of the figure, which has its own file
    path = folder / ("-".join(["figure4", *names]) + ".png" if part else "figure4.png")
    draw_components(records, path)
    typer.echo(f"{path} and {path.with_suffix('.pdf')}")
