"""What every study has: cells, the work of a cell, and the table that a figure draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._parallel import one_blas_thread
from fishergraph.experiments.rows import Cell, row_key, run_cells

# The band of a figure: these quantiles of the repeats around the median.
BAND = (0.1, 0.9)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """A frozen record of what is run; a subclass says how."""

    name: str
    title: str

    def cells(self) -> list[Cell]:
        """Everything that is run, in order."""
        raise NotImplementedError

    def work(self, cell: Cell) -> dict[str, Any]:
        """The values of one cell."""
        raise NotImplementedError

    def run(self, path: str | Path, watch: Callable[[Cell], None] = lambda cell: None) -> int:
        """Run what a file of rows does not have yet; returns how many cells. BLAS has one thread."""
        with one_blas_thread():
            return run_cells(path, self.cells(), self.work, watch)

    def quick(self) -> Study:
        """The same with a few values, repeats and samples: does it run?"""
        raise NotImplementedError

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """Records with study, value, curve, repeats, low, median and high, from the rows of this study's cells."""
        raise NotImplementedError


def band(values: Iterable[float]) -> dict[str, Any]:
    """The number of repeats, their median, and the two quantiles of `BAND`."""
    array = np.asarray(list(values), dtype=np.float64)
    low, median, high = np.quantile(array, (BAND[0], 0.5, BAND[1]))
    return {"repeats": len(array), "low": float(low), "median": float(median), "high": float(high)}


def values_of(rows: Iterable[Row], cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """The values of these cells, in their order; none unless all of them have been run."""
    found = {row_key(row): row["values"] for row in rows}
    keys = [cell.key for cell in cells]
    return [found[key] for key in keys] if found.keys() >= set(keys) else []
