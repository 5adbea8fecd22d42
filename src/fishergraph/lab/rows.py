"""Files of result rows, one JSON object per line: append, read, and resume after a kill.

A row holds what was run (study, parameters, seed), the results (values), and their origin (version, git, seconds). What
was run is its key: a cell whose key is in the file is not run again. A row is one write of one line, so a kill can
damage the last line only; a line without its end is ignored and replaced by the next row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from fishergraph._version import __version__
from fishergraph.io.files import check_folder, check_regular, naming

FIELDS = ("study", "parameters", "seed", "values")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One unit of work: a study, its parameters (numbers, strings, lists or None), and a seed."""

    study: str
    parameters: Mapping[str, Any]
    seed: int | None = None

    @property
    def key(self) -> str:
        """A text that identifies the cell; the order of parameters does not matter."""
        return json.dumps([self.study, dict(self.parameters), self.seed], sort_keys=True, default=_as_json)


def row_key(row: Row) -> str:
    """The key of the cell of a row."""
    return Cell(row["study"], row["parameters"], row["seed"]).key


def _as_json(value: Any) -> Any:
    if hasattr(value, "tolist"):  # a number or array of NumPy
        return value.tolist()
    raise TypeError(f"a row must hold numbers, strings, lists or None, got {type(value).__name__}.")


# --- reading and writing ----------------------------------------------------------------------------------


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The complete rows of a file in their order; none if it does not exist."""
    path = Path(path)
    if not os.path.lexists(path):
        return []
    check_regular(path)
    lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last newline is incomplete or empty
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


def append_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """Append rows to a file in one write, and remove an incomplete last line.

    The rows are on the disk when this returns. Several processes may append to the same file.
    """
    data = "".join(_line(row) for row in rows).encode()
    with naming(Path(path)), open(path, "ab+", buffering=0) as file, locked(file):
        _remove_incomplete_line(file)
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())


def _line(row: Row) -> str:
    try:
        return json.dumps(row, default=_as_json, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError:
        raise ValueError(
            f"a row must hold finite numbers, got NaN or infinity in {row['values']} of {row_key(row)}; "
            "write None instead."
        ) from None


def _remove_incomplete_line(file: Any) -> None:
    """Truncate the file after its last newline."""
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65_536)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        file.truncate(end)


@contextmanager
def locked(file: Any, *, wait: bool = True) -> Iterator[None]:
    """Lock an open file, if the system has such locks; raises OSError if it is locked and `wait` is False."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


# --- running ----------------------------------------------------------------------------------------------


def new_row(cell: Cell, values: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The row of a cell: what was run, its results and their origin."""
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
    """The cells without a row in the file, each once."""
    done = {row_key(row) for row in read_rows(path)}
    return list({cell.key: cell for cell in cells if cell.key not in done}.values())


def run_cells(
    path: str | Path,
    cells: Iterable[Cell],
    work: Callable[[Cell], Mapping[str, Any]],
    watch: Callable[[Cell], None] = lambda cell: None,
) -> int:
    """Run the cells that have no row in a file; returns their number.

    `work` returns the values of a cell; `watch` receives the cell after its row is written.
    """
    check_folder(Path(path))
    todo = remaining(path, cells)
    for cell in todo:
        start = perf_counter()
        values = work(cell)
        append_rows(path, [new_row(cell, values, perf_counter() - start)])
        watch(cell)
    return len(todo)


# --- the origin of a row ----------------------------------------------------------------------------------


@cache
def git_hash() -> str | None:
    """The commit of the imported checkout, with + if tracked source files differ from it.

    None for an installed package.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no", "--", "src") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, check=True, timeout=10)
    return done.stdout.decode("utf-8", errors="replace").strip()


def reset_peak() -> None:
    """Reset the peak of this process's memory; without Linux the peak stays that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory() -> float | None:
    """The peak of this process's memory in MB since `reset_peak`; None if the system does not report it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return round(int(peak.split()[1]) / 1024, 1)
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
