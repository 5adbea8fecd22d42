"""Which columns of an embedding belong to which block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fishergraph._errors import InputError, InputTypeError
from fishergraph.probes.found_blocks import find_blocks

_MOST_NAMED = 16  # blocks by column names: more of them are not blocks, but features with names of their own

Blocks = tuple[tuple[str, slice], ...]  # (name, columns), side by side


def read_blocks(blocks: Any, Z: Any, n_columns: int) -> Blocks:
    """The blocks that a user named, those of the column names of a table Z, or one block of all columns.

    `blocks` holds widths, pairs (name, width), slices, or one column name per column; a mapping holds name: width.
    """
    if blocks is None:
        names: list[Any] = list(getattr(Z, "columns", ()))
        named = len(names) > 0 and all(isinstance(name, str) for name in names)
        return _from_names(names, n_columns) if named else (("all", slice(0, n_columns)),)
    if isinstance(blocks, (str, bytes)) or not hasattr(blocks, "__iter__") or getattr(blocks, "ndim", 1) == 0:
        raise _not_blocks(blocks)
    entries: list[Any] = list(blocks.items() if isinstance(blocks, Mapping) else blocks)
    if entries and all(isinstance(entry, str) for entry in entries):
        return _from_names(entries, n_columns)
    if entries and all(isinstance(entry, slice) for entry in entries):
        return _from_slices(entries, n_columns)
    return _from_widths([_pair(entry, k, blocks) for k, entry in enumerate(entries)], n_columns)


def blocks_of(blocks: Any, Z: Any, rows: Any) -> Blocks:
    """The blocks as `read_blocks` has them, or if nothing names them those that the values of Z tell, `rows`."""
    read = read_blocks(blocks, Z, rows.shape[1])
    if blocks is not None or len(read) > 1:
        return read
    found = find_blocks(rows)
    return read if len(found) == 1 else _from_slices(list(found), rows.shape[1])


def columns_of(blocks: Blocks, chosen: Sequence[str]) -> np.ndarray:
    """The numbers of the columns of the chosen blocks, ascending."""
    return np.concatenate([np.arange(part.start, part.stop) for name, part in blocks if name in chosen])


def _not_blocks(blocks: Any) -> InputTypeError:
    expected = "be a list of widths, of (name, width) pairs, of slices, or of one name per column such as 'psi0_3'"
    return InputTypeError(parameter="blocks", value=blocks, expected=expected)


def _pair(entry: Any, k: int, blocks: Any) -> tuple[str, int]:
    """(name, width) of one entry; blocks without a name are called by their number."""
    name, width = entry if isinstance(entry, (tuple, list)) and len(entry) == 2 else (f"block{k}", entry)
    if not isinstance(name, str) or isinstance(width, bool) or not isinstance(width, (int, np.integer)):
        raise _not_blocks(blocks)
    if width < 1:
        raise InputError(parameter="blocks", value=width, expected="have widths of at least 1")
    return name, int(width)


def _from_widths(pairs: list[tuple[str, int]], n_columns: int) -> Blocks:
    ends = np.cumsum([0, *(width for _, width in pairs)]).tolist()
    _check_covers(ends[-1], n_columns)
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InputError(parameter="blocks", value=names, expected="have different names")
    return tuple((name, slice(*ends[k : k + 2])) for k, name in enumerate(names))


def _from_slices(slices: list[slice], n_columns: int) -> Blocks:
    """Slices that follow each other."""
    ranges = [part.indices(n_columns) for part in slices]
    starts, stops = [0, *(stop for _, stop, _ in ranges[:-1])], [start for start, _, _ in ranges]
    longest = max((part.stop or 0) for part in slices)
    if starts != stops or any(step != 1 for *_, step in ranges) or longest > n_columns:
        expected = f"be slices that follow each other from 0 to {n_columns}, the number of columns"
        raise InputError(parameter="blocks", value=slices, expected=expected)
    return _from_widths([(f"block{k}", stop - start) for k, (start, stop, _) in enumerate(ranges)], n_columns)


def _from_names(names: list[str], n_columns: int) -> Blocks:
    """Runs of columns whose names differ in the number after the last underscore alone."""
    _check_covers(len(names), n_columns)
    stems = [name.rpartition("_")[0] or name for name in names]
    starts = [k for k in range(len(stems)) if k == 0 or stems[k] != stems[k - 1]]
    if len({stems[k] for k in starts}) < len(starts) or len(starts) > _MOST_NAMED:
        return (("all", slice(0, n_columns)),)
    return tuple((stems[a], slice(a, b)) for a, b in zip(starts, [*starts[1:], n_columns], strict=True))


def _check_covers(width: int, n_columns: int) -> None:
    if width != n_columns:
        got, advice = f"{width}", "pass the widths of the blocks of this embedding"
        expected = f"cover the {n_columns} columns of the embedding"
        raise InputError(parameter="blocks", value=width, expected=expected, got=got, advice=advice)
