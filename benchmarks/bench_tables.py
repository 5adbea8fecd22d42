"""Encoding a table with words, dates and gaps: `TableEncoder` on 20 mixed columns, from three kinds of tables.

Seven numbers (some with gaps, one with a heavy tail), two booleans, four categories (of 5, 50, 200 and 5,000 values),
a column of dates and one of dates in words, three texts of about five words, a list of tags, and a vector of eight
numbers. `fit` is `fit_transform`; `transform` is the same rows once more. Sources take turns.

    python bench_tables.py                      # a million rows
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import pyarrow as pa

from fishergraph._parallel import at_most
from fishergraph._warn import ColumnsWarning
from fishergraph.tables import TableEncoder

ROWS, QUICK_ROWS = 1_000_000, 2_000
SOURCES = ("arrow", "pandas", "polars")


def with_gaps(values: np.ndarray, share: float, rng: np.random.Generator) -> pa.Array:
    """An Arrow array of which this share is missing."""
    return pa.array(values, mask=rng.random(len(values)) < share)


def words(rng: np.random.Generator, n: int, vocabulary: np.ndarray, length: int) -> pa.Array:
    """Texts of so many words."""
    chosen = [pa.array(vocabulary).take(pa.array(rng.zipf(1.3, n) % len(vocabulary))) for _ in range(length)]
    return pa.compute.binary_join_element_wise(*chosen, " ")


def mixed_table(n: int, seed: int = 0) -> pa.Table:
    """A table of 20 columns of every kind."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array([f"word{k}" for k in range(20_000)])
    columns: dict[str, Any] = {f"number {k}": with_gaps(rng.normal(k, 1 + k, n), 0.05 * k, rng) for k in range(5)}
    columns["income"] = pa.array(rng.lognormal(10, 2, n))
    columns["count"] = with_gaps(rng.poisson(3, n), 0.02, rng)
    columns["member"] = pa.array(rng.random(n) < 0.3)
    columns["paid"] = pa.array(np.array(["yes", "no"])[rng.integers(2, size=n)])
    for size in (5, 50, 200, 5_000):
        names = pa.array([f"value {k}" for k in range(size)])
        columns[f"category of {size}"] = names.take(pa.array(rng.zipf(1.2, n) % size))
    days = np.datetime64("2015-01-01") + rng.integers(0, 3_650, n)
    columns["born"] = with_gaps(days, 0.03, rng)
    columns["seen"] = pa.array(np.datetime_as_string(days + rng.integers(0, 99, n)))
    for k in range(3):
        columns[f"text {k}"] = words(rng, n, vocabulary, 4 + k)
    tags = pa.array([f"tag {k}" for k in range(100)]).take(pa.array(rng.integers(100, size=3 * n)))
    columns["tags"] = pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * n + 1, 3, dtype=np.int32)), tags)
    vector = pa.array(rng.normal(size=8 * n).astype(np.float32))
    columns["vector"] = pa.FixedSizeListArray.from_arrays(vector, 8)
    return pa.table(columns)


def source_of(table: pa.Table, kind: str) -> Any:
    """The table in another library."""
    if kind == "pandas":
        return table.to_pandas()
    return common.require("polars").from_arrow(table) if kind == "polars" else table


def measure(table: Any, transform: bool, encoder: TableEncoder) -> Callable[[], float]:
    """A function that returns the seconds of a fit, or of a transform."""
    return lambda: common.timed(lambda: encoder.transform(table) if transform else encoder.fit_transform(table))[0]


def cpu_seconds(encoder: TableEncoder, table: Any) -> float:
    """The processor time of a fit, of all threads: it hardly depends on what else the machine does."""
    start = time.process_time()
    encoder.fit_transform(table)
    return time.process_time() - start


def main() -> None:
    options = common.parser(__doc__)
    options.add_argument("--rows", type=int, help=f"rows of the table (default {ROWS:,})")
    options.add_argument("--repeat", type=int, default=3, help="turns; the medians are kept (default 3)")
    options.add_argument("--sources", nargs="+", choices=SOURCES, default=SOURCES, help="kinds of tables")
    options = options.parse_args()
    n = options.rows or (QUICK_ROWS if options.quick else ROWS)
    rows, lines = common.Rows("tables", options), []
    warnings.simplefilter("ignore", ColumnsWarning)
    pa.set_cpu_count(options.threads)
    TableEncoder().fit(mixed_table(1_000))  # compiles
    made = mixed_table(n)
    cases: dict[str, Callable[[], float]] = {}
    for kind in options.sources:
        table, encoder = source_of(made, kind), TableEncoder()
        cases[f"{kind}, fit"] = measure(table, False, encoder)
        cases[f"{kind}, transform"] = measure(table, True, encoder)
    with at_most(options.threads), common.PeakMemory() as memory:
        values = common.in_turns(cases, 1 if options.quick else options.repeat)
        processor = cpu_seconds(TableEncoder(), made)
    for name, seconds in values.items():
        source, _, work = name.partition(", ")
        encoded = {"rows": n, "columns": made.num_columns, "source": source, "work": work}
        more = {"cpu_seconds_of_fit": processor, "load": common.load_average(), "extra_bytes": memory.extra}
        row = rows.add(**encoded, **common.spread(seconds, "seconds"), **more)
        lines.append((name, common.spread_text(row, "seconds"), n / row["seconds"]))
    common.print_table(("table", "seconds", "rows per second"), lines)
    print(f"processor time of a fit: {processor:.1f} s; load average {common.load_average():.1f}")


if __name__ == "__main__":
    main()
