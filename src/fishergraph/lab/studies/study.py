"""The base classes of studies: cells, the work of a cell, and the table that a figure draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fishergraph._parallel import one_blas_thread
from fishergraph.lab.rows import Cell, Row, row_key, run_cells

BAND = (0.1, 0.9)  # the quantiles of the repeats that a figure shows around the median


@dataclass(frozen=True)
class Study(ABC):
    """A frozen record of what is run; a subclass says how."""

    name: str  # in STUDIES and in the rows

    @abstractmethod
    def cells(self) -> list[Cell]:
        """All cells in order."""

    @abstractmethod
    def work(self, cell: Cell) -> dict[str, Any]:
        """The values of one cell."""

    @abstractmethod
    def quick(self) -> Study:
        """The same with a few values, repeats and samples, to see whether it runs."""

    @abstractmethod
    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """Records with study, value, curve, repeats, low, median and high; a value with missing rows is left out."""

    def run(self, path: str | Path, watch: Callable[[Cell], None] = lambda cell: None) -> int:
        """Run the cells that have no row in a file, with one BLAS thread; returns how many were run."""
        with one_blas_thread():
            return run_cells(path, self.cells(), self.work, watch)


@dataclass(frozen=True)
class Sweep(Study):
    """A study of one quantity over `values`, whose curves are ratios ‖φ − φ'‖² / 2 KL over repeats.

    `ratios` names the distance and the divergence of each curve.
    """

    values: tuple[float, ...]
    ratios: ClassVar[Mapping[str, tuple[str, str]]]

    @abstractmethod
    def cells_at(self, value: float) -> list[Cell]:
        """The cells at one value."""

    def cells(self) -> list[Cell]:
        """The cells at all values."""
        return [cell for value in self.values for cell in self.cells_at(value)]

    def repeats(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The distances and divergences of every repeat, from the values of the cells at one value."""
        return results

    def summarize(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """A record per value and curve, with the ratios of the repeats."""
        rows, table = list(rows), []
        for value in self.values:
            repeats = self.repeats(values_of(rows, self.cells_at(value)))
            for curve, (distance, divergence) in self.ratios.items():
                if repeats and distance in repeats[0]:
                    ratios = band(repeat[distance] / (2 * repeat[divergence]) for repeat in repeats)
                    table.append({"study": self.name, "value": value, "curve": curve, **ratios})
        return table


def band(values: Iterable[float]) -> dict[str, Any]:
    """The number of repeats, their median, and the two quantiles of `BAND`."""
    array = np.asarray(list(values), dtype=np.float64)
    low, median, high = np.quantile(array, (BAND[0], 0.5, BAND[1]))
    return {"repeats": len(array), "low": float(low), "median": float(median), "high": float(high)}


def values_of(rows: Iterable[Row], cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """The values of these cells in their order; empty unless all of them have rows."""
    values = {row_key(row): row["values"] for row in rows}
    keys = [cell.key for cell in cells]
    return [values[key] for key in keys] if values.keys() >= set(keys) else []
