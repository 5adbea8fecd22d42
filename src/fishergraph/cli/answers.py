"""What the commands that answer questions share: the embedding they read, the table they show or write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.console import Bar, printer

if TYPE_CHECKING:
    import pyarrow as pa

    from fishergraph.vectors import Vectors

SHOWN = 50  # rows of a table on a terminal
_WIDE = 200  # columns of a table that is not printed on a terminal
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".json")


@dataclass(frozen=True, kw_only=True)
class AnswerJob:
    """The options of every command that answers a question about an embedding.

    Parameters
    ----------
    embedding : EMBEDDING
        What fishergraph embed wrote, or the folder of an embedding in a store.
    output : FILE
        Table to write: .csv, .tsv (or .gz), .parquet or .json.
    jobs : N, default=all cores
        Threads; any number gives the same result.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        No bar, table or summary.
    debug : bool
        Show the traceback of a failure.
    """

    embedding: Path
    output: Path | None = None
    jobs: int | None = None
    config: Path | None = None
    quiet: bool = False
    debug: bool = False


def given(job: object, *names: str) -> dict[str, Any]:
    """Return the options that were given, by name; the others have the defaults of the library."""
    return {name: getattr(job, name) for name in names if getattr(job, name) is not None}


def check_answer(output: Path | None, *inputs: Path | None) -> None:
    """Raise if the table cannot be written, or would replace a file that is read."""
    import os

    from fishergraph._errors import InputError
    from fishergraph.io.files import check_folder, check_suffix

    if output is None:
        return
    check_suffix(output, SUFFIXES)
    check_folder(output)
    if os.path.realpath(output) in {os.path.realpath(path) for path in inputs if path is not None}:
        raise InputError(f"every file must have its own path, got '{output}' twice; choose another output.")


def read_vectors(path: Path, bar: Bar) -> Vectors:
    """Return the embedding of a file."""
    from fishergraph.vectors import Vectors

    bar.part("reading")
    return Vectors.read(path)


def write_answer(path: Path, table: pa.Table) -> None:
    """Write a table; the file appears complete or not at all."""
    from fishergraph.io.arrow import table_writer
    from fishergraph.io.files import check_suffix, replacing

    suffix = check_suffix(path, SUFFIXES)
    with replacing(path) as part, part.open("wb") as file:
        if suffix == ".json":
            rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table.to_pylist())
            file.write(f"[\n{rows}\n]\n".encode())
            return
        with table_writer(file, suffix, table.schema) as write:
            write(table)


def show_answer(table: pa.Table, *, caption: str = "") -> None:
    """Print the first rows of a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    page = Table(box=SIMPLE_HEAD, pad_edge=False, caption=caption or None, caption_justify="left")
    rows = table.slice(0, SHOWN).to_pylist()
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        number = str(kind).startswith(("int", "uint", "float", "double"))
        page.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        page.add_row(*map(_cell, row.values()))
    console = printer(markup=False)
    (console if console.is_terminal else printer(markup=False, width=_WIDE)).print(page)
    if len(table) > SHOWN:
        typer.echo(f"… {len(table) - SHOWN:,} more rows; --output writes all of them")


def _cell(value: Any) -> str:
    """A value as the cell of a table."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
