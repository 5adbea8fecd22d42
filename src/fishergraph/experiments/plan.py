"""The plan of a column of Table 1, from its rows alone: rounds of a search, the choice on validation, the final runs.

    search 1 … k   every point of the grid, then the best of it with longer runs: other seeds, no test nodes
    final          the chosen point with the final seeds; the test nodes are looked at here
    components     the chosen point with other numbers of mixture components (Figure 4): no test nodes

A plan is a function of the rows: whatever was killed, the next cell is what they lack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph.experiments.rows import Cell, row_key
from fishergraph.experiments.specs import SEARCH_SEED, Protocol, Settings, Spec, point_cost

STUDY, FINAL, COMPONENTS = "table1", "final", "components"
Rows = Mapping[str, Mapping[str, Any]]  # by the key of their cell


def by_key(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The rows of the table by the key of their cell; of equal ones the first."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["study"] == STUDY:
            found.setdefault(row_key(row), row)
    return found


@dataclass(frozen=True)
class Stage:
    """Points that are run with some seeds, and how many of them go on."""

    name: str
    points: tuple[Settings, ...]  # of the grid
    cells: Mapping[int, tuple[Cell, ...]]  # by the place of the point
    keep: int

    def missing(self, rows: Rows) -> list[Cell]:
        """The cells without a row."""
        return [cell for cells in self.cells.values() for cell in cells if cell.key not in rows]

    def values(self, place: int, rows: Rows, name: str) -> list[float]:
        """A value of the point in that place, for every seed."""
        return [rows[cell.key]["values"][name] for cell in self.cells[place]]

    def best(self, rows: Rows) -> tuple[Settings, ...]:
        """The points that go on: those of the highest mean validation accuracy; of equal ones the cheapest."""

        def rank(place: int) -> tuple[float, float]:
            return -float(np.mean(self.values(place, rows, "val"))), point_cost(self.points[place])

        return tuple(self.points[place] for place in sorted(self.cells, key=rank)[: self.keep])


@dataclass(frozen=True)
class Column:
    """One method on one graph."""

    spec: Spec
    dataset: str
    quick: bool = False
    components: bool = False  # whether Figure 4 is asked for too

    @property
    def protocol(self) -> Protocol:
        """What is run here."""
        return self.spec.protocol(self.dataset, quick=self.quick)

    def cell(self, stage: str, point: Settings, seed: int, more: Settings | None = None) -> Cell:
        """A cell of this column; its settings are in it in full."""
        settings = {**self.protocol.settings, **point, **(more or {})}
        return Cell(
            STUDY, {"dataset": self.dataset, "method": self.spec.method, "stage": stage, "settings": settings}, seed
        )

    def stages(self, rows: Rows) -> list[Stage]:
        """The stages that are known: all until the first one with a cell missing, and that one."""
        points: tuple[Settings, ...] = tuple(self.protocol.points())
        found: list[Stage] = []
        rungs = self.protocol.rungs if points[1:] else ()  # of one point there is nothing to choose
        for number, rung in enumerate(rungs, start=1):
            name = f"search {number}"
            seeds = range(SEARCH_SEED, SEARCH_SEED + rung.seeds)
            cells = {k: tuple(self.cell(name, p, seed, rung.settings) for seed in seeds) for k, p in enumerate(points)}
            found.append(Stage(name, points, cells, rung.keep))
            if found[-1].missing(rows):
                return found
            points = found[-1].best(rows)
        chosen, seeds = points[0], range(self.protocol.seeds)
        found.append(Stage(FINAL, (chosen,), {0: tuple(self.cell(FINAL, chosen, seed) for seed in seeds)}, 1))
        if self.components and self.spec.components and not found[-1].missing(rows):
            found.append(self._components(chosen))
        return found

    def _components(self, chosen: Settings) -> Stage:
        """The chosen point with each number of components of the grid; where it is the chosen one, its final runs."""
        name = self.spec.components or ""
        points = tuple({**chosen, name: number} for number in self.protocol.grid[name])
        seeds = range(min(self.spec.component_seeds, self.protocol.seeds))
        cells = {
            k: tuple(self.cell(FINAL if point == chosen else COMPONENTS, point, seed) for seed in seeds)
            for k, point in enumerate(points)
        }
        return Stage(COMPONENTS, points, cells, len(points))

    def final(self, rows: Rows) -> Stage | None:
        """The final runs, where all of them have rows."""
        return next((s for s in self.stages(rows) if s.name == FINAL and not s.missing(rows)), None)


@dataclass(frozen=True)
class Status:
    """Where a column stands: its last stage, how much of it has rows, and the best or chosen point so far."""

    column: Column
    stage: str
    done: int
    total: int
    val: float | None
    test: float | None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to run."""
        last = COMPONENTS if self.column.components and self.column.spec.components else FINAL
        return self.stage == last and self.done == self.total


def status(column: Column, rows: Rows) -> Status:
    """Where a column stands."""
    stages = column.stages(rows)
    last, final = stages[-1], next((stage for stage in stages if stage.name == FINAL), None)
    cells = [cell for some in last.cells.values() for cell in some]
    seen = [rows[cell.key]["values"] for cell in cells if cell.key in rows]
    tests = [rows[c.key]["values"]["test"] for c in final.cells[0] if c.key in rows] if final else []
    best = max((values["val"] for values in seen), default=None)
    val = float(np.mean([values["val"] for values in seen])) if last.name == FINAL and seen else best
    return Status(column, last.name, len(seen), len(cells), val, float(np.mean(tests)) if tests else None)
