"""Faults of a table of edges or nodes, reported together: how many, the first five, and where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fishergraph._errors import EdgeFaultsError, FishergraphError, InputError, NodeFaultsError

SHOWN = 5  # faults of a kind that a message lists
ERRORS: dict[str, type[InputError]] = {"edges": EdgeFaultsError, "nodes": NodeFaultsError}
# Row numbers → the lines of the file, or None if it has none
Locate = Callable[[Sequence[int]], list[int] | None]


def no_lines(rows: Sequence[int]) -> None:
    """The lines of rows that are in no text file."""


@dataclass(frozen=True)
class TableFault:
    """Faults of one kind.

    error : the error for the first of them, if there are no others.
    words : what they are, as a phrase that follows their number; "{s}" is that of a plural.
    rows : where they are; lines of the file if `lines`.
    values : what is there in the first of them, in words; empty if there is nothing to show.
    count : their number, if not that of the rows.
    """

    error: FishergraphError
    words: str
    rows: np.ndarray
    values: Sequence[str] = ()
    lines: bool = False
    count: int | None = None

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.rows) if self.count is None else self.count

    @property
    def counted(self) -> str:
        """Their number and what they are."""
        return f"{self.number:,} {self.words.replace('{s}', '' if self.number == 1 else 's')}"

    def places(self, locate: Locate) -> tuple[str, list[int]]:
        """The word for a place, and the first places."""
        rows = self.rows[:SHOWN].tolist()
        lines = rows if self.lines else locate(rows)
        return ("row", rows) if lines is None else ("line", lines)


def raise_faults(faults: Sequence[TableFault], path: str = "", locate: Locate = no_lines, what: str = "edges") -> None:
    """Raise one error for all faults of some "edges" or "nodes"; nothing if there are none."""
    if len(faults) == 1:
        _raise_one(faults[0], locate)
    if faults:
        described, first = [], []
        for fault in faults:
            word, places = fault.places(locate)
            kind = fault.words.replace("{s}", "s")
            first.append({"what": kind, "count": fault.number, word + "s": places, "values": list(fault.values)})
            described.append(f"{fault.counted} ({_listed(fault, word, places)})")
        total = sum(fault.number for fault in faults)
        got = f"{total:,} faults: {'; '.join(described)}"
        error, advice = ERRORS[what], f"repair or drop these {what}"
        unknown = any("unknown=" in str(getattr(fault.error, "advice", "")) for fault in faults)
        advice += ", and pass unknown='drop' or 'add' (--unknown) for ids without a node" if unknown else ""
        parameter, expected = f"the {what} of '{path}'" if path else f"the {what}", "be complete and valid"
        raise error(
            parameter=parameter, value=total, expected=expected, got=got, advice=advice, path=path, faults=first
        )


def _listed(fault: TableFault, word: str, places: list[int]) -> str:
    """The first faults with their places."""
    more = f", … in all {fault.number:,}" if fault.number > len(places) else ""
    if not fault.values:
        return f"{word}{'s' if len(places) > 1 else ''} {', '.join(f'{place:,}' for place in places)}{more}"
    shown = zip(fault.values, places, strict=False)
    return ", ".join(f"{value} in {word} {place:,}" for value, place in shown) + more


def _raise_one(fault: TableFault, locate: Locate) -> NoReturn:
    """Raise the error of a single kind of faults, with their number and places."""
    error: Any = fault.error
    if not hasattr(error, "got"):  # it says where all of them are
        raise error
    word, places = fault.places(locate)
    more: dict[str, Any] = {"count": fault.number, word + "s": places}
    if fault.number > 1:
        more["got"] = f"{fault.counted}: {_listed(fault, word, places)}"
    elif word == "line":
        more["got"] = f"{error.got} (line {places[0]:,})"
    raise error.revised(**more)
