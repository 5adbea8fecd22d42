"""Which columns of an edge table hold the sources, the targets, the weights and the times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fishergraph._errors import InputError
from fishergraph._validation import nearest
from fishergraph.io.columns import EDGE_COLUMNS, WEIGHT_COLUMNS, check_edge_columns, listed
from fishergraph.io.text_options import TextOptions

ROLES = ("source", "target", "weight", "time")
Name = str | int | None


@dataclass(frozen=True)
class EdgeOptions:
    """What a user says of an edge table; what is None is found.

    source, target, weight, time : a column, by its name, or by its number from 1 if the file has no header. A weight
        of False, or "none", makes every edge weigh 1.
    separator : what separates the columns of a text file.
    header : whether the first line holds the names of the columns.
    encoding : that of a text file.
    """

    source: Name = None
    target: Name = None
    weight: Name | bool = None
    time: Name = None
    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None

    @property
    def text(self) -> TextOptions:
        """What it says of a text file."""
        return TextOptions(self.separator, self.header, self.encoding)

    @property
    def named(self) -> dict[str, Any]:
        """The columns that are named, by role."""
        return {role: value for role in ROLES if (value := getattr(self, role)) is not None and value is not False}


@dataclass(frozen=True)
class Roles:
    """The positions of the columns of an edge table; None if it does not have one."""

    source: int
    target: int
    weight: int | None = None
    time: int | None = None

    @property
    def used(self) -> dict[str, int]:
        """The positions that are not None, by role."""
        return {role: place for role in ROLES if (place := getattr(self, role)) is not None}

    def left(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names of the other columns."""
        return tuple(name for place, name in enumerate(names) if place not in self.used.values())


ANY = EdgeOptions()  # nothing is said


def find_columns(names: list[str], options: EdgeOptions = ANY, *, numbers: Sequence[bool] = ()) -> Roles:
    """The columns of an edge table: those that are named, and the others by their names in any case.

    `numbers` is for a file without header, whose names are "1", "2", …: whether a column holds numbers. The first two
    are the ends there, and a third one of numbers the weights.
    """
    places = {role: _place(role, value, names) for role, value in options.named.items() if not _is_none(value, names)}
    taken = list(places.values())
    repeated = [role for role, place in places.items() if taken.count(place) > 1]
    if repeated:
        value, expected = names[places[repeated[0]]], "name different columns"
        raise InputError(parameter=" and ".join(repeated), value=value, expected=expected)
    if numbers:
        found = _by_number(numbers, taken)
    elif {"source", "target"} <= places.keys():
        found = {"weight": _by_name(names, WEIGHT_COLUMNS, taken)}
    else:
        found = _by_names(names, places)
    if options.weight is False or (options.weight is not None and "weight" not in places):
        found["weight"] = None
    return Roles(**({"weight": None, "time": None} | found | places))  # type: ignore[arg-type]


def _is_none(value: Any, names: list[str]) -> bool:
    """Whether a name says that there is no such column."""
    return isinstance(value, str) and value.lower() == "none" and value not in names


def _place(role: str, value: Any, names: list[str]) -> int:
    """The position of a column that is named."""
    name = str(value)
    if name in names:
        return names.index(name)
    folded = [other.strip().lower() for other in names]
    if folded.count(name.strip().lower()) == 1:
        return folded.index(name.strip().lower())
    near = nearest(name, names)
    alike = f"name {' or '.join(map(repr, near))}" if near else "name one of them"
    expected = "be a column of the edge table"
    raise InputError(
        parameter=role, value=value, expected=expected, got=f"{value!r} among {listed(names)}", advice=alike
    )


def _by_name(names: list[str], wanted: Sequence[str], taken: list[int]) -> int | None:
    """The first column with one of the wanted names that is not taken."""
    folded = [name.strip().lower() for name in names]
    return next((folded.index(w) for w in wanted if w in folded and folded.index(w) not in taken), None)


def _by_number(numbers: Sequence[bool], taken: list[int]) -> dict[str, int | None]:
    """The columns of a file without header."""
    ends = [place for place in range(len(numbers)) if place not in taken]
    third = 2 if len(numbers) > 2 and numbers[2] and 2 not in taken else None
    first, second = (*ends, -1, -1)[:2]
    return {"source": 0 if 0 not in taken else first, "target": 1 if 1 not in taken else second, "weight": third}


def _by_names(names: list[str], places: dict[str, int]) -> dict[str, int | None]:
    """The columns by their names; one end may have been named."""
    others = [name if place not in places.values() else "" for place, name in enumerate(names)]
    weight = _by_name(names, WEIGHT_COLUMNS, list(places.values()))
    if "source" not in places and "target" not in places:
        first, second, third = check_edge_columns(others)
        return {"source": first, "target": second, "weight": third}
    missing, side = ("target", 1) if "source" in places else ("source", 0)
    found = _by_name(others, [pair[side] for pair in EDGE_COLUMNS], list(places.values()))
    if found is None:
        expected = f"be named, for no column is one of {', '.join(pair[side] for pair in EDGE_COLUMNS)}"
        advice = f"pass {missing}= (--{missing})"
        raise InputError(parameter=missing, expected=expected, got=listed(names), advice=advice)
    return {missing: found, "weight": weight}
