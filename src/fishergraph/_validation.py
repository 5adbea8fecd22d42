"""Validation of parameters: every function returns the checked value or raises an `InputError` that names it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np

from fishergraph._errors import InputError, NotEnoughMemory, gigabytes

T = TypeVar("T")

# What parameters may be at most: more layers or iterations take days, and sizes are counted in 32 bits.
MOST_LAYERS = 1000
MOST_ITERATIONS = 10_000
_MOST_WEIGHT = 1e12
MOST_ANCHORS = MOST_COLUMNS = 2**31 - 1


def look_up(table: Mapping[str, T], name: Any, what: str) -> T:
    """The entry `name` of a table of named choices."""
    if isinstance(name, str) and name in table:
        return table[name]
    known = ", ".join(repr(key) for key in table)
    raise InputError(parameter=what, value=name, expected=f"be one of {known}")


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """The known names that resemble a name, at most three, the most alike first."""
    folded = {entry.strip().lower(): entry for entry in reversed(known)}
    return [folded[entry] for entry in get_close_matches(name.strip().lower(), folded, n=3, cutoff=0.5)]


def check_integer(value: Any, name: str, *, least: int, most: float = math.inf) -> int:
    """`value` as an int from `least` to `most`."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integer or not least <= value <= most:
        bound = f"of at least {least}" + (f" and at most {most}" if integer and value > most else "")
        raise InputError(parameter=name, value=value, expected=f"be an integer {bound}")
    return int(value)


def check_seed(value: Any, name: str = "seed") -> int:
    """`value` as a seed of 64 bits."""
    return check_integer(value, name, least=0, most=2**64 - 1)


def check_random_seed(value: Any) -> Any:
    """`random_state` unchanged; an integer must be a seed that scikit-learn's generators accept."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return check_integer(value, "random_state", least=0, most=2**32 - 1)
    return value


def check_number(value: Any, name: str, *, least: float = 0.0, most: float = np.inf, strict: bool = False) -> float:
    """`value` as a finite float from `least` (above it when `strict`) to `most`."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most or (strict and value == least):
        bound = f"greater than {least:g}" if strict else f"of at least {least:g}"
        bound += f" and at most {most:g}" if np.isfinite(most) else ""
        raise InputError(parameter=name, value=value, expected=f"be a finite number {bound}")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """`value` as a bool; nothing but True and False is accepted."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(parameter=name, value=value, expected="be True or False")
    return bool(value)


def check_n_jobs(value: Any) -> int | None:
    """A number of threads: None, or an integer that is not zero (−1 is every core)."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0):
        expected = "be None or an integer other than 0"
        raise InputError(parameter="n_jobs", value=value, expected=expected, advice="-1 uses every core")
    return None if value is None else int(value)


def check_host_memory(n_bytes: int, what: str, purpose: str, advice: str) -> None:
    """Raise if more bytes are needed than the machine has, or than this process may take.

    The message reads "{what} about 12.0 GB {purpose}, got 4.0 GB of memory; {advice}."
    """
    available = host_bytes()
    if n_bytes > available:
        text = f"{what} about {gigabytes(n_bytes)} {purpose}, got {gigabytes(available)} of memory; {advice}."
        raise NotEnoughMemory(text, purpose=purpose, needed=n_bytes, available=available, advice=advice)


def host_bytes() -> float:
    """The memory of the machine, or the limit of the process; infinite if the system does not tell."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ImportError, ValueError, OSError, AttributeError):
        return math.inf
    return total if limit in (-1, resource.RLIM_INFINITY) else min(total, limit)


def check_block_weights(
    weights: Any, names: Sequence[str], defaults: Mapping[str, float] | None = None
) -> tuple[float, ...]:
    """One non-negative weight per block of the output, at least one of them positive.

    `weights` has one for every block, or is a mapping of some names; blocks without a weight have their default, or 1.
    """
    usual = {**dict.fromkeys(names, 1.0), **(defaults or {})}
    if weights is None:
        return tuple(usual.values())
    if isinstance(weights, Mapping):
        for name in weights:
            look_up(dict.fromkeys(names), name, "a block in block_weights")
        values: Any = list({**usual, **weights}.values())
    else:
        values = np.asarray(weights, dtype=object).ravel()
    n_blocks = len(names)
    if len(values) != n_blocks:
        shown = names if n_blocks <= 8 else [*names[:3], "…", *names[-2:]]
        expected = f"hold {n_blocks} weights, one for each of {', '.join(shown)}"
        raise InputError(parameter="block_weights", value=weights, expected=expected, got=f"{len(values)}")
    checked = tuple(check_number(value, "a block weight") for value in values)
    if max(checked, default=0) > _MOST_WEIGHT:
        expected, advice = f"be at most {_MOST_WEIGHT:g}", "divide all of them by one number"
        raise InputError(parameter="block_weights", value=max(checked), expected=expected, advice=advice)
    if not any(checked):
        raise InputError(parameter="block_weights", value=weights, expected="have a positive entry", got="zeros only")
    return checked
