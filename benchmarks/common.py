"""What the benchmarks share: data, timing, peak memory, and the rows that are kept.

A benchmark prints a table of one run on one machine and appends its rows to results/<name>.csv. With `--quick` it
runs on tiny synthetic data and its rows go to a folder that is thrown away: that only shows that it starts.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import csv
import ctypes
import importlib
import os
import platform
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import fishergraph
from fishergraph.datasets import GraphData, load_graph
from fishergraph.datasets.records import undirected_graph

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of malloc.h
SKIPPED = 77  # the exit status of a benchmark that an absent package keeps from running

# Options and data.


def parser(description: str | None) -> argparse.ArgumentParser:
    """An argument parser with the options that every benchmark has."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="tiny synthetic data, no rows kept: does it start?")
    options.add_argument("--data", type=Path, help="folder of <name>.npz graphs (default: $FISHERGRAPH_DATA)")
    options.add_argument("--results", type=Path, help="folder the rows go to (default: benchmarks/results)")
    options.add_argument("--threads", type=int, default=2, help="threads of everything that has threads (default 2)")
    return options


def require(name: str) -> Any:
    """The imported package, or the end of the run with the status that means skipped."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"skipped: this benchmark needs the package {name!r}; install fishergraph[experiments].")
        sys.exit(SKIPPED)


def data_folder(folder: Path | None) -> Path | None:
    """The folder of larger graphs: the argument, $FISHERGRAPH_DATA, a shared/data beside the repository, or None."""
    if folder is not None:
        return folder.expanduser()
    if named := os.environ.get("FISHERGRAPH_DATA"):
        return Path(named).expanduser()
    beside = HERE.parents[1] / "shared" / "data"
    return beside if beside.is_dir() else None


def load(name: str, data: Path | None) -> GraphData:
    """The graph called `name`; a folder that does not hold it ends the run with a message."""
    if name == "cora":
        return load_graph(name)
    folder = data_folder(data)
    if folder is None or not (folder / f"{name}.npz").is_file():
        where = "no folder was named" if folder is None else f"{folder} does not hold it"
        sys.exit(
            f"{name}.npz is needed, but {where}; pass --data FOLDER or set FISHERGRAPH_DATA (layout: "
            "fishergraph.datasets.npz), or use --quick."
        )
    return load_graph(name, data_home=folder)


def tiny_graph(n_nodes: int = 300, n_features: int = 60, n_classes: int = 3, seed: int = 0) -> GraphData:
    """A small synthetic graph: classes that prefer their own members and their own words."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_nodes)
    same = y[:, None] == y[None, :]
    sources, targets = np.nonzero(np.triu(rng.random((n_nodes, n_nodes)) < np.where(same, 0.06, 0.01), 1))
    typical = np.arange(n_features) % n_classes == y[:, None]
    words = (rng.random((n_nodes, n_features)) < np.where(typical, 0.2, 0.08)).astype(np.float32)
    train, val, test = random_split(n_nodes, seed, fractions=(0.2, 0.3))
    graph = undirected_graph(sources, targets, n_nodes)
    return GraphData("tiny", sp.csr_array(words), graph, y.astype(np.int64), train, val, test)


def random_split(
    n_nodes: int, seed: int, fractions: tuple[float, float] = (0.1, 0.1)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random (train, val, test) node numbers: 10/10/80 unless other fractions are given."""
    order = np.random.default_rng(seed).permutation(n_nodes)
    first, second = round(fractions[0] * n_nodes), round((fractions[0] + fractions[1]) * n_nodes)
    return np.sort(order[:first]), np.sort(order[first:second]), np.sort(order[second:])


# Measuring.


def parameters(model: Any) -> int:
    """How many numbers a network learns."""
    return sum(parameter.numel() for parameter in model.parameters())


def seconds(function: Callable[[], Any], *, repeat: int = 3, warm_up: int = 1) -> float:
    """The median wall-clock seconds of `function()` over `repeat` calls, after `warm_up` calls that do not count."""
    for _ in range(warm_up):
        function()
    return statistics.median(timed(function)[0] for _ in range(repeat))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, result) of one call."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def in_turns(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each case returns, once in every round; every second round goes backwards.

    What else the machine does then falls on all of them.
    """
    values: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds):
        for name in list(cases)[:: -1 if turn % 2 else 1]:
            values[name].append(cases[name]())
    return values


def spread(values: Sequence[float], name: str) -> dict[str, float]:
    """The columns of a row for repeated measurements: `name` (the median), `name`_least, `name`_most and runs."""
    return {
        name: statistics.median(values),
        f"{name}_least": min(values),
        f"{name}_most": max(values),
        "runs": len(values),
    }


def load_average() -> float:
    """How many processes wanted a core during the last minute; NaN on systems that do not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def keep_freed_memory() -> None:
    """Make the C library keep freed memory for this process, if it can.

    Otherwise the system supplies new pages for every large array. The cost of that differs by a factor of fifty between
    systems, and between two calls on a virtual machine whose host takes idle pages back.
    """
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_MAX, 0)
        library.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def resident_bytes() -> int:
    """The resident memory of this process."""
    if not Path("/proc/self/statm").exists():
        sys.exit("peak memory is read from /proc, which this system does not have; run this benchmark on Linux.")
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """`with PeakMemory() as memory: …`, then `memory.extra`: the most resident bytes inside, minus those before.

    The kernel's own high-water mark is used if it can be reset; otherwise a thread reads the memory every two
    milliseconds. Run it in a process of its own: memory that was freed earlier would hide new allocations.
    """

    def __enter__(self) -> PeakMemory:
        _return_freed_memory()
        self.before = resident_bytes()
        self._exact = _reset_high_water_mark()
        self._highest, self._stop = self.before, threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        if not self._exact:
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._exact:
            self._highest = _high_water_mark()
        else:
            self._watcher.join()
        self.extra = max(self._highest, resident_bytes()) - self.before

    def _watch(self) -> None:
        while not self._stop.wait(0.002):
            self._highest = max(self._highest, resident_bytes())


def _return_freed_memory() -> None:
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _reset_high_water_mark() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
        # If the kernel ignored the reset, the mark is still the old one.
        return _high_water_mark() <= 1.02 * resident_bytes()
    except OSError:
        return False


def _high_water_mark() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def available_bytes() -> int:
    """The memory available without swapping; all installed memory if the system does not tell."""
    try:
        return int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# Rows and tables.


def machine() -> dict[str, Any]:
    """The CPU model and the number of cores this process may use."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):  # not Linux
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": model, "cores": cores}


class Rows:
    """The rows of one run: `add` appends one to <folder>/<name>.csv at once, so that a run cut short is kept."""

    def __init__(self, name: str, options: argparse.Namespace):
        folder = options.results or (_throw_away_folder() if options.quick else RESULTS)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.csv"
        self.run = {
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "version": fishergraph.__version__,
            **machine(),
            "threads": options.threads,
        }
        self.rows: list[dict[str, Any]] = []

    def add(self, **values: Any) -> dict[str, Any]:
        """The row, after it was written."""
        row = {**self.run, **{key: _short(value) for key, value in values.items()}}
        self.rows.append(row)
        old = read_rows(self.path)
        columns = list(dict.fromkeys([*(old[0] if old else []), *row]))
        if old and list(old[0]) == columns:
            with self.path.open("a", newline="", encoding="utf-8") as stream:
                csv.DictWriter(stream, columns).writerow(row)
        else:  # a new file, or a row with new columns: the old rows leave them empty
            with self.path.open("w", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, columns)
                writer.writeheader()
                writer.writerows([*old, row])
        return row


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a results file; none if there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float | np.floating) else value


def _throw_away_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fishergraph-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The rows in columns; the first is set left, the others right."""
    lines = [list(header), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    for number, line in enumerate(lines):
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print("  ".join(cells))
        if number == 0:
            print("  ".join("-" * width for width in widths))


def _text(cell: Any) -> str:
    return (
        f"{cell:.3g}"
        if isinstance(cell, float | np.floating) and cell < 100
        else (f"{cell:,.0f}" if isinstance(cell, float | np.floating) else str(cell))
    )


def spread_text(row: Mapping[str, Any], name: str) -> str:
    """'median [least, most]' of the columns of `spread`; the median alone if it was measured once, '' if never."""
    cells = [row.get(key) for key in (name, f"{name}_least", f"{name}_most")]
    median, least, most = (three_digits(float(cell)) if cell not in (None, "", "nan") else "" for cell in cells)
    return f"{median} [{least}, {most}]" if least != most else median


def three_digits(value: float) -> str:
    """A number for a table: three digits, or all of its integer part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def last_rows(name: str, *keys: str) -> list[dict[str, str]]:
    """The last row of results/<name>.csv for every combination of these columns: what the documents print."""
    return list({tuple(row.get(key, "") for key in keys): row for row in read_rows(RESULTS / f"{name}.csv")}.values())


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a document."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def rows_in(page: Path, name: str = "") -> str:
    """What a document has between `<!-- rows: NAME -->`, or `<!-- rows -->` without a name, and the end of it."""
    return _around_rows(page, name)[1]


def write_rows(page: Path, text: str, name: str = "") -> None:
    """Replace what `rows_in` returns."""
    before, _, after = _around_rows(page, name)
    page.write_text(before + text + after, encoding="utf-8")


def _around_rows(page: Path, name: str) -> tuple[str, str, str]:
    begin = f"<!-- rows: {name} -->\n" if name else "<!-- rows -->\n"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    rows, end, after = rest.partition("<!-- end of rows -->")
    return before + begin, rows, end + after


def mean_std(values: Sequence[float], scale: float = 1.0) -> str:
    """'mean ± standard deviation' of the values, the deviation with n − 1."""
    spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{scale * np.mean(values):.2f} ± {scale * spread:.2f}"
