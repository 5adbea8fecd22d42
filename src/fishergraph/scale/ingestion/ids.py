"""From ids to row numbers, within a budget of memory.

Ids are sorted in ranges that fit the budget: a range takes the smallest ids that were not in the last one, and one
sequential pass over the ids on disk finds them. Another pass gives every end of an edge its row. Texts are compared as
they are and not by hashes, so that two of them are never taken for one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import MatchSubstringOptions, SetLookupOptions, call_function

from fishergraph._errors import InputError, UnknownNodeError, shown
from fishergraph._repr import counted
from fishergraph.scale.ingestion.scratch import (
    EdgeSpool,
    IdColumn,
    Ids,
    Piece,
    Scratch,
    concatenated,
    pick,
    sorted_order,
    take,
)

Advance = Callable[[int], Any]
Range = tuple[Ids, np.ndarray]  # sorted ids, and their rows
# Arrays as large as a range while it is made, and the ids that are compared with an unknown one.
_COPIES, _CANDIDATES, _SHOWN = 8, 20_000, 5
UNKNOWN = {"unknown": ("drop", "add")}  # what helps against unknown ends


# --- ranges of ids --------------------------------------------------------------------------------------


def distinct_ranges(
    column: IdColumn, work: int, advance: Advance, keep: Callable[[int], np.ndarray] | None = None
) -> Iterator[Ids]:
    """The distinct ids of a column in order, in ranges; `keep(k)` marks the ids of chunk k that count."""

    def ids(k: int) -> tuple[Ids, None]:
        values, codes = column.ids(k)
        if keep is not None:
            marks = keep(k)
            values = _filter(values, marks if codes is None else np.bincount(codes[marks], minlength=len(values)) > 0)
        return values, None

    return (found for found, _ in _ranges(column, ids, work, advance))


def node_ranges(column: IdColumn, work: int, advance: Advance, name: str) -> Iterator[Range]:
    """The ids of nodes in order with their rows, in ranges; raises if an id occurs twice."""
    borders = column.borders

    def ids(k: int) -> tuple[Ids, np.ndarray]:
        return column.ids(k)[0], np.arange(borders[k], borders[k + 1])

    for found, rows in _ranges(column, ids, work, advance):
        assert rows is not None
        again = np.flatnonzero(_repeats(found))
        if len(again):
            second = again[np.argmin(rows[again + 1])] + 1
            value = take(found, np.array([second])).tolist()[0]
            got, advice = f"{shown(value)} again in row {rows[second]}", "drop repeated rows"
            raise InputError(
                parameter=f"the ids of {name}", value=value, expected="be distinct", got=got, advice=advice
            )
        yield found, rows


def _ranges(
    column: IdColumn, ids: Callable[[int], tuple[Ids, np.ndarray | None]], work: int, advance: Advance
) -> Iterator[tuple[Ids, np.ndarray | None]]:
    """Sorted ids (and their rows) in consecutive ranges, each of which fits into the budget."""
    low, more = None, bool(column.chunks)
    while more:
        parts: list[tuple[Ids, np.ndarray | None]] = []
        size, high = 0, None
        for k, chunk in enumerate(column.chunks):
            part = _between(*ids(k), low, high)
            # The texts of a chunk are distinct already; numbers are made so.
            part = (_distinct(part[0]), None) if part[1] is None and isinstance(part[0], np.ndarray) else part
            parts.append(part)
            size += part[0].nbytes
            advance(8 * chunk.count)
            if size > work // _COPIES:
                found = _merged(parts)
                while found[0].nbytes > work // _COPIES // 2 and len(found[0]) > 1:
                    half = len(found[0]) // 2
                    high = take(found[0], np.array([half])).tolist()[0]
                    found = found[0][:half], None if found[1] is None else found[1][:half]
                parts, size = [found], found[0].nbytes
        yield _merged(parts)
        low, more = high, high is not None


def _merged(parts: list[tuple[Ids, np.ndarray | None]]) -> tuple[Ids, np.ndarray | None]:
    """Sorted ids: distinct ones, or all of them with their rows."""
    ids = concatenated([part for part, _ in parts])
    if parts[0][1] is None:
        return (_distinct(ids) if len(parts) > 1 or not isinstance(ids, np.ndarray) else ids), None
    rows = np.concatenate([rows for _, rows in parts if rows is not None])
    order = sorted_order(ids)
    return pick(ids, order), rows[order]


def _distinct(ids: Ids) -> Ids:
    """Sorted distinct ids; numbers that lie close are marked in a table."""
    if not isinstance(ids, np.ndarray):
        unique = ids.unique()
        return pick(unique, sorted_order(unique))
    if len(ids) == 0:
        return ids
    low, high = int(ids.min()), int(ids.max())
    if high - low > 4 * len(ids) + 1024:
        ids = np.sort(ids)
        return ids[np.concatenate(([True], ids[1:] != ids[:-1]))]
    present = np.zeros(high - low + 1, dtype=bool)
    present[ids - low] = True
    return np.flatnonzero(present) + low


def _between(ids: Ids, rows: np.ndarray | None, low: Any, high: Any) -> tuple[Ids, np.ndarray | None]:
    """Ids from `low` and below `high`, where these are given, and their rows."""
    if low is None and high is None:
        return ids, rows
    marks = np.ones(len(ids), dtype=bool)
    for border, name in ((low, "greater_equal"), (high, "less")):
        if border is None:
            continue
        if isinstance(ids, np.ndarray):
            marks &= (ids >= border) if name == "greater_equal" else (ids < border)
        else:
            border = pa.scalar(border, ids.type)
            marks &= call_function(name, [ids, border]).to_numpy(zero_copy_only=False)
    return _filter(ids, marks), None if rows is None else rows[marks]


def _filter(ids: Ids, marks: np.ndarray) -> Ids:
    return ids[marks] if isinstance(ids, np.ndarray) else ids.filter(pa.array(marks))


def _repeats(ids: Ids) -> np.ndarray:
    """Whether each sorted id but the last is the same as the next one."""
    if isinstance(ids, np.ndarray):
        return ids[1:] == ids[:-1]
    return call_function("equal", [ids[1:], ids[:-1]]).to_numpy(zero_copy_only=False)


# --- rows of the ends of edges --------------------------------------------------------------------------


class EndRows:
    """The rows of the ends of edges, −1 for an end whose node is not known.

    Parameters
    ----------
    spool : EdgeSpool
        The edges.
    n_nodes : int
        The number of known nodes. Without `codes` they are 0 … n_nodes − 1.
    codes : Scratch, optional
        The rows on disk.
    """

    def __init__(self, spool: EdgeSpool, n_nodes: int, codes: Scratch | None = None):
        self.spool, self.n_nodes, self.codes = spool, n_nodes, codes
        self.pieces: list[Piece] = []
        self.has_unknown = codes is None and (spool.ids.low < 0 or spool.ids.high >= n_nodes) and spool.n_edges > 0

    def ends(self, k: int) -> np.ndarray:
        """The rows of the sources, then those of the targets, of a chunk of edges."""
        if self.codes is not None:
            return self.codes.get(self.pieces[k])
        rows, _ = self.spool.ids.ids(k)
        assert isinstance(rows, np.ndarray)
        return np.where((rows >= 0) & (rows < self.n_nodes), rows, -1) if self.has_unknown else rows

    def find(self, ranges: Iterable[Range], dtype: Any, work: int, advance: Advance) -> None:
        """Look up the rows of all ends in sorted ranges of ids."""
        assert self.codes is not None
        first = True
        for ids, rows in ranges:
            find = _finder(ids)
            for group in self._groups(work):
                wanted, codes = zip(*(self.spool.ids.ids(k) for k in group), strict=True)
                positions = find(concatenated(list(wanted)))
                found = np.where(positions >= 0, rows[positions] if len(rows) else -1, -1).astype(dtype)
                parts = np.split(found, np.cumsum([len(part) for part in wanted])[:-1])
                for k, part, inner in zip(group, parts, codes, strict=True):
                    part = part if inner is None else part[inner]
                    if first:
                        self.pieces.append(self.codes.put(part))
                    else:
                        self.set(k, np.maximum(part, self.ends(k)))
                    advance(8 * len(part))
            first = False
        self.has_unknown = any((self.ends(k) < 0).any() for k in self.spool)

    def _groups(self, work: int) -> Iterator[list[int]]:
        """Chunks that are looked up together: Arrow makes a hash table of a range each time it looks something up."""
        group, size = [], 0
        for k in self.spool:
            group.append(k)
            size += self.spool.ids.text_bytes(k)
            if not self.spool.ids.is_text or size > work // _COPIES:
                yield group
                group, size = [], 0
        if group:
            yield group

    def set(self, k: int, ends: np.ndarray) -> None:
        """Replace the rows of a chunk."""
        assert self.codes is not None
        self.codes.replace(self.pieces[k], ends)

    def unknown(self) -> tuple[int, list[tuple[int, Any]]]:
        """The number of edges with an unknown end, and the first of these: (edge, id)."""
        count, first, before = 0, [], 0
        for k in self.spool:
            ends = self.ends(k)
            m = len(ends) // 2
            bad = np.flatnonzero((ends[:m] < 0) | (ends[m:] < 0))
            count += len(bad)
            for edge in bad[: _SHOWN - len(first)].tolist():
                end = edge if ends[edge] < 0 else m + edge
                first.append((before + edge, self.spool.ids.id_at(k, np.array([end]))[0]))
            before += m
        return count, first


def _finder(ids: Ids) -> Callable[[Ids], np.ndarray]:
    """A function that returns the positions of ids among sorted ones, −1 for one that is not there."""
    if not isinstance(ids, np.ndarray):
        options = SetLookupOptions(value_set=ids)
        return lambda wanted: call_function("index_in", [wanted], options).fill_null(-1).to_numpy()
    if len(ids) == 0:
        return lambda wanted: np.full(len(wanted), -1)
    low, high = int(ids[0]), int(ids[-1])
    if high - low > 4 * len(ids) + 1024:

        def search(wanted: Any) -> np.ndarray:
            order = np.argsort(wanted)  # neighbours are found near each other, which is many times faster
            asked, found = wanted[order], np.empty(len(wanted), np.int64)
            positions = np.minimum(np.searchsorted(ids, asked), len(ids) - 1)
            found[order] = np.where(ids[positions] == asked, positions, -1)
            return found

        return search
    table = np.full(high - low + 1, -1, np.int32 if len(ids) < 2**31 else np.int64)
    table[ids - low] = np.arange(len(ids))

    def look_up(wanted: Any) -> np.ndarray:
        inside = (wanted >= low) & (wanted <= high)
        return np.where(inside, table[np.where(inside, wanted, low) - low], -1)

    return look_up


# --- unknown nodes --------------------------------------------------------------------------------------


def unknown_nodes(count: int, first: list[tuple[int, Any]], nodes: IdColumn | None, name: str, n: int) -> InputError:
    """The error for edges that end at nodes which are not in the table of nodes."""
    described = []
    for edge, node in first:
        near = near_matches(node, nodes) if nodes is not None else []
        described.append(f"{shown(node)} of edge {edge}" + (f" (near {', '.join(map(shown, near))})" if near else ""))
    return UnknownNodeError(
        parameter="an edge",
        value=first[0][1],
        expected=f"end at two of the {n:,} nodes of {name}",
        got=another_end(count, described),
        settings=UNKNOWN,
        count=count,
        first=first,
    )


def another_end(count: int, described: list[str]) -> str:
    """So many edges that end at unknown nodes, in words; some of them are described."""
    more = ", …" if count > len(described) else ""
    return f"{counted(count, 'edge')} with another end: {', '.join(described)}{more}"


def near_matches(node: Any, nodes: IdColumn) -> list[Any]:
    """Up to two known ids that are written much like this one."""
    word, chosen = str(node), {}
    step = max(nodes.n_ids // _CANDIDATES, 1)
    for k, chunk in enumerate(nodes.chunks):
        ids, _ = nodes.ids(k)
        texts = call_function("utf8_lower", [pa.array(ids).cast(pa.large_string())])
        start, end = word.lower()[:3], word.lower()[-3:]
        marks = np.zeros(chunk.count, dtype=bool)
        marks[::step] = True
        for name, part in (("starts_with", start), ("ends_with", end)):
            options = MatchSubstringOptions(part)
            marks |= call_function(name, [texts], options).to_numpy(zero_copy_only=False)
        found = take(ids, np.flatnonzero(marks)[:_CANDIDATES]).tolist()
        chosen |= {str(value): value for value in found}
        if len(chosen) > 2 * _CANDIDATES:
            break
    folded = {text.lower().strip(): text for text in chosen}
    return [chosen[folded[text]] for text in difflib.get_close_matches(word.lower().strip(), folded, n=2)]
