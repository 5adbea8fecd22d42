"""A file of rows, one JSON object per line: appended whole, read back, and resumed after a kill.

A row says what was run (study, parameters, seed), what came out (values), and what it was made with (version, git,
seconds). What was run is its key: a cell whose key is in the file is not run again. A row is one write of one line, so
a kill can tear the last line only; a line without its end is no row, and the next row takes its place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from fishergraph._version import __version__
from fishergraph.experiments.stamp import git_hash
from fishergraph.io.files import check_folder, check_regular, naming

FIELDS = ("study", "parameters", "seed", "values")


@dataclass(frozen=True)
class Cell:
    """What is run once: a study, its parameters (what JSON has: numbers, strings, lists, None), and a seed."""

    study: str
    parameters: Mapping[str, Any]
    seed: int | None = None

    @property
    def key(self) -> str:
        """What tells this cell from all others, whatever the order of its parameters."""
        return json.dumps([self.study, dict(self.parameters), self.seed], sort_keys=True, default=plain)


def row_key(row: Mapping[str, Any]) -> str:
    """The key of the cell that a row came from."""
    return Cell(row["study"], row["parameters"], row["seed"]).key


def plain(value: Any) -> Any:
    """A value as JSON has it: a NumPy number is a number, an array a list."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a row must hold what JSON has, got {type(value).__name__}; pass numbers, strings or lists.")


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The whole rows of a file, in their order; none where there is no file. A torn last line is left out."""
    path = Path(path)
    if not os.path.lexists(path):
        return []
    check_regular(path)
    lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last end of a line is torn, or nothing
    return [_parse(line, number, path) for number, line in enumerate(lines, start=1) if line.strip()]


def _parse(line: bytes, number: int, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not set(FIELDS) <= row.keys():
        raise ValueError(
            f"a row must be a JSON object with {', '.join(FIELDS)}, got {line[:40].decode(errors='replace')!r} in line "
            f"{number} of '{path}'; delete the line, and its cell is run again."
        )
    return row


def append_rows(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to the end of a file, in one write that is on the disk when this returns; a torn last line goes.

    Several processes may append to one file.
    """
    text = "".join(_line(row) for row in rows)
    with naming(Path(path)), open(path, "ab+", buffering=0) as file, _alone(file):
        _cut_torn_line(file)
        data = text.encode()
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())


def _line(row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(row, default=plain, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError:
        raise ValueError(
            f"a row must hold finite numbers, got NaN or infinity in {row['values']} of {row_key(row)}; "
            "give None instead."
        ) from None


def _cut_torn_line(file: Any) -> None:
    """Cut the file behind its last end of a line."""
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65_536)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        file.truncate(end)


@contextmanager
def _alone(file: Any) -> Iterator[None]:
    """Hold the file against other writers, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def new_row(cell: Cell, values: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The row of a cell: what was run, what came out, and what it was made with."""
    return {
        "study": cell.study,
        "parameters": dict(cell.parameters),
        "seed": cell.seed,
        "values": dict(values),
        "seconds": round(seconds, 4),
        "version": __version__,
        "git": git_hash(),
    }


def remaining(path: str | Path, cells: Iterable[Cell]) -> list[Cell]:
    """The cells that have no row in the file, each once."""
    done = {row_key(row) for row in read_rows(path)}
    return list({cell.key: cell for cell in cells if cell.key not in done}.values())


def run_cells(
    path: str | Path,
    cells: Iterable[Cell],
    work: Callable[[Cell], Mapping[str, Any]],
    watch: Callable[[Cell], None] = lambda cell: None,
) -> int:
    """Run what the file does not have yet, in order, a row after each; returns how many cells were run.

    Args:
        path: the file; its folder must exist.
        work: gives the values of a cell.
        watch: called after each row, for a bar.
    """
    check_folder(Path(path))
    todo = remaining(path, cells)
    for cell in todo:
        start = perf_counter()
        values = work(cell)
        append_rows(path, [new_row(cell, values, perf_counter() - start)])
        watch(cell)
    return len(todo)
