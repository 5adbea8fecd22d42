"""`__repr__` of records and estimators in one line: arrays by their type and shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

# The largest number of characters of a line, and of one value in it.
MOST, _MOST_VALUE = 280, 60


def short_repr(self: Any) -> str:
    """`Name(field=value, …)` of a dataclass or a named tuple, cut to one line; fields that are None are omitted."""
    names = [field.name for field in fields(self) if field.repr] if is_dataclass(self) else self._fields
    values = ((name, getattr(self, name)) for name in names)
    parts = [f"{name}={short_value(value)}" for name, value in values if value is not None]
    return _cut(f"{type(self).__name__}({', '.join(parts)})", MOST)


def short_params(self: Any, N_CHAR_MAX: int = MOST) -> str:
    """`Name(parameter=value, …)` of a scikit-learn estimator, for the parameters that are not the defaults.

    The second parameter is that of scikit-learn's own `__repr__`.
    """
    defaults = {name: short_value(parameter.default) for name, parameter in signature(type(self)).parameters.items()}
    values = {name: short_value(value) for name, value in self.get_params(deep=False).items()}
    changed = ", ".join(f"{name}={values[name]}" for name, default in defaults.items() if values[name] != default)
    return _cut(f"{type(self).__name__}({changed})", min(MOST, N_CHAR_MAX))


def short_value(value: Any) -> str:
    """A short form of a value: type and shape of an array, length of a long list."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        kind = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
        return f"{kind} {' × '.join(f'{size:,}' for size in shape)}"
    if isinstance(value, (list, tuple, Mapping)) and not hasattr(value, "_fields"):
        text = repr(value) if all(isinstance(entry, (int, float, str, type(None))) for entry in value) else ""
        plain = 0 < len(text) <= _MOST_VALUE and not isinstance(value, Mapping)
        return text if plain else f"{type(value).__name__} of {len(value):,}"
    return _cut(repr(value), _MOST_VALUE)


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 2]}…{line[-1]}"


def counted(count: int, noun: str) -> str:
    """So many things in words: "1 edge", "2,000 edges"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
