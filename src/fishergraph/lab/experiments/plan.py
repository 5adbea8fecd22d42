"""The plan of a column of Table 1, a method on a graph, as a function of its rows.

    search 1 … k   every point of the grid, then the best points with longer runs: seeds of their own, no test nodes
    final          the chosen point with the final seeds; the test nodes are scored here only
    components     the chosen point with other numbers of mixture components (Figure 4): no test nodes

After a kill, the next cells are those that have no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph.lab.experiments.specs import DATASETS, SEARCH_SEED, Protocol, Settings, Spec, point_cost
from fishergraph.lab.rows import Cell, Row, row_key

STUDY, FINAL, COMPONENTS = "table1", "final", "components"
Rows = Mapping[str, Row]  # by the key of the cell


def by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """The rows of the table by the key of their cell; the first one if there are several."""
    table: dict[str, Row] = {}
    for row in rows:
        if row["study"] == STUDY:
            table.setdefault(row_key(row), row)
    return table


@dataclass(frozen=True)
class Stage:
    """Points of the grid that are run with some seeds."""

    name: str  # "search 1", …, "final" or "components"
    points: tuple[Settings, ...]
    cells: tuple[tuple[Cell, ...], ...]  # of each point, one per seed
    keep: int = 1  # how many points go on

    def all_cells(self) -> list[Cell]:
        """The cells of all points."""
        return [cell for cells in self.cells for cell in cells]

    def missing(self, rows: Rows) -> list[Cell]:
        """The cells without a row."""
        return [cell for cell in self.all_cells() if cell.key not in rows]

    def values(self, index: int, rows: Rows, name: str) -> list[float]:
        """A value of the point with this index, for every seed."""
        return [rows[cell.key]["values"][name] for cell in self.cells[index]]

    def best(self, rows: Rows) -> tuple[Settings, ...]:
        """The points of the highest mean validation accuracy; the cheaper one of equals."""

        def rank(index: int) -> tuple[float, float]:
            return -float(np.mean(self.values(index, rows, "val"))), point_cost(self.points[index])

        return tuple(self.points[index] for index in sorted(range(len(self.points)), key=rank)[: self.keep])


@dataclass(frozen=True)
class Column:
    """One method on one graph."""

    spec: Spec
    dataset: str
    quick: bool = False
    components: bool = False  # whether the runs of Figure 4 are included

    @property
    def name(self) -> str:
        """The method and the graph, for messages."""
        return f"{self.spec.method} on {self.dataset}"

    @property
    def protocol(self) -> Protocol:
        """The protocol of this method for this graph."""
        return self.spec.protocol(self.dataset, quick=self.quick)

    def cell(self, stage: str, point: Settings, seed: int, more: Settings | None = None) -> Cell:
        """A cell of this column, with all its settings."""
        settings = {**self.protocol.settings, **point, **(more or {})}
        parameters = {"dataset": self.dataset, "method": self.spec.method, "stage": stage, "settings": settings}
        return Cell(STUDY, parameters, seed)

    def stages(self, rows: Rows) -> list[Stage]:
        """All stages up to the first one with a missing cell; the later ones depend on its rows."""
        points: tuple[Settings, ...] = tuple(self.protocol.points())
        stages: list[Stage] = []
        rungs = self.protocol.rungs if points[1:] else ()
        for number, rung in enumerate(rungs, start=1):
            name, seeds = f"search {number}", range(SEARCH_SEED, SEARCH_SEED + rung.seeds)
            cells = tuple(tuple(self.cell(name, p, seed, rung.settings) for seed in seeds) for p in points)
            stages.append(Stage(name, points, cells, rung.keep))
            if stages[-1].missing(rows):
                return stages
            points = stages[-1].best(rows)
        chosen = points[0]
        stages.append(Stage(FINAL, (chosen,), (self._final_cells(chosen, FINAL, self.protocol.seeds),)))
        if self.components and self.spec.components and not stages[-1].missing(rows):
            stages.append(self._component_stage(chosen, self.spec.components))
        return stages

    def _final_cells(self, point: Settings, stage: str, n_seeds: int) -> tuple[Cell, ...]:
        return tuple(self.cell(stage, point, seed) for seed in range(n_seeds))

    def _component_stage(self, chosen: Settings, name: str) -> Stage:
        """The chosen point with each number of components of the grid; its final runs for the chosen number."""
        points = tuple({**chosen, name: number} for number in self.protocol.grid[name])
        n_seeds = min(self.spec.component_seeds, self.protocol.seeds)
        cells = tuple(self._final_cells(p, FINAL if p == chosen else COMPONENTS, n_seeds) for p in points)
        return Stage(COMPONENTS, points, cells)

    def final(self, rows: Rows) -> Stage | None:
        """The final stage, if all of its cells have rows."""
        return next((s for s in self.stages(rows) if s.name == FINAL and not s.missing(rows)), None)


def columns_of(specs: Iterable[Spec], datasets: Sequence[str], **options: Any) -> list[Column]:
    """A column per method and graph, those of the highest cost first; `options` are `quick` and `components`."""
    size = {name: index for index, name in enumerate(DATASETS)}
    columns = [Column(spec, name, **options) for name in datasets for spec in specs]
    return sorted(columns, key=lambda column: (-column.spec.cost, -size[column.dataset]))


@dataclass(frozen=True)
class Status:
    """The progress of a column: its last stage, the accuracies so far, and the number of rows."""

    column: Column
    stage: str
    done: int
    total: int
    val: float | None
    test: float | None

    @property
    def finished(self) -> bool:
        """Whether every cell has a row."""
        last = COMPONENTS if self.column.components and self.column.spec.components else FINAL
        return self.stage == last and self.done == self.total


def status(column: Column, rows: Rows) -> Status:
    """The progress of a column; `val` is the mean of the final runs, and the best run of another stage."""
    stages = column.stages(rows)
    last, final = stages[-1], next((stage for stage in stages if stage.name == FINAL), None)
    values = [rows[cell.key]["values"] for cell in last.all_cells() if cell.key in rows]
    vals = [value["val"] for value in values]
    tests = [rows[c.key]["values"]["test"] for c in final.cells[0] if c.key in rows] if final else []
    val = (float(np.mean(vals)) if last.name == FINAL else max(vals)) if vals else None
    return Status(column, last.name, len(values), len(last.all_cells()), val, float(np.mean(tests)) if tests else None)
