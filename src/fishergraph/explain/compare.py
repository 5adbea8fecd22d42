"""The similarity of two rows, put together from the parts of its blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fishergraph._listing import Listing, strongest
from fishergraph.explain.binding import Binding
from fishergraph.explain.parts import Parts
from fishergraph.explain.records import Similarity

_NO_COLUMN = "(weights and counts)"  # the name of what belongs to no column

Rows = dict[str, np.ndarray]
# (block, the arrays of its part, what their values are multiplied by, whose nodes they are) → columns
Build = Callable[[str, Rows, float, Binding], Rows]


def similarity(binding: Binding, views: dict[str, Any], v: int, w: int, *, cosine: bool) -> Similarity:
    """The similarity of two rows in these blocks, with everything it is a sum of."""
    weights = dict(zip(binding.stack.names, binding.stack.block_weights, strict=True))
    parts: dict[str, Parts] = {name: view.compare(v, w) for name, view in views.items() if weights[name] > 0}
    lengths = [math.sqrt(sum(weights[name] * part.kernel.squares[k] for name, part in parts.items())) for k in (0, 1)]
    scale = lengths[0] * lengths[1] if cosine else 1.0
    factors = {name: weights[name] / scale if scale > 0 else 0.0 for name in parts}
    blocks = _blocks(parts, weights, factors)
    first, second = binding.names[[v, w]].tolist()
    listings = {}
    for part, (build, keys) in _BUILDERS.items():
        slopes = {name: factors[name] * of.kernel.slope for name, of in parts.items() if getattr(of, part)}
        found = [build(name, getattr(parts[name], part), slope, binding) for name, slope in slopes.items()]
        listings[part] = Listing(_joined([*found, build("", dict.fromkeys(keys, np.zeros(0, np.int64)), 1.0, binding)]))
    return Similarity(first, second, (v, w), float(blocks["value"].sum()), cosine, blocks, **listings)


def member_names(binding: Binding, rows: np.ndarray) -> np.ndarray:
    """The ids of members; those of lifted ones joined by an arrow."""
    if rows.ndim == 1:
        return binding.member_names[rows]
    texts = [" → ".join(str(node) for node in binding.member_names[row[row >= 0]].tolist()) for row in rows]
    return np.array(texts, dtype=object)


def _blocks(parts: dict[str, Parts], weights: dict[str, float], factors: dict[str, float]) -> Listing:
    """A row per block."""
    rows = []
    for name, part in parts.items():
        factor, kernel = factors[name], part.kernel
        products = factor * kernel.slope
        numbers = (part.value, kernel.lengths, kernel.slope * part.inner, kernel.remainder)
        rows.append((weights[name], *(factor * number for number in numbers), products * part.other))
    values = np.array(rows, dtype=np.float64).reshape(len(rows), 6)
    names = ("weight", "value", "lengths", "product", "remainder", "unlisted")
    return Listing({"block": np.array(list(parts), dtype=object), **dict(zip(names, values.T, strict=True))})


def _pairs(name: str, part: Rows, factor: float, binding: Binding) -> Rows:
    """Pairs of members, the strongest first."""
    order = strongest(part["value"])
    first, second = part["first"][order], part["second"][order]
    return {
        **_block(name, order),
        "anchor": part["anchor"][order],
        "first_row": _rows(first),
        "first": member_names(binding, first),
        "second_row": _rows(second),
        "second": member_names(binding, second),
        "value": factor * part["value"][order],
    }


def _members(name: str, part: Rows, factor: float, binding: Binding) -> Rows:
    """Members on their own, the strongest first."""
    order = strongest(part["value"])
    members = part["member"][order]
    return {
        **_block(name, order),
        "of": part["side"][order] + 1,
        "row": _rows(members),
        "member": member_names(binding, members),
        "anchor": part["anchor"][order],
        "attention": part["attention"][order].astype(np.float64),
        "value": factor * part["value"][order],
    }


def _columns(name: str, part: Rows, factor: float, binding: Binding) -> Rows:
    """Columns with a value, the strongest first."""
    order = _some(part["value"])
    columns = part["column"][order]
    names = np.append(binding.names_of_columns(name), _NO_COLUMN)  # −1 is the last
    return {**_block(name, order), "column": columns, "name": names[columns], "value": factor * part["value"][order]}


def _nodes(name: str, part: Rows, factor: float, binding: Binding) -> Rows:
    """Nodes with a value, the strongest first."""
    order = _some(part["value"])
    rows = part["node"][order]
    return {**_block(name, order), "row": rows, "node": binding.names[rows], "value": factor * part["value"][order]}


def _block(name: str, order: np.ndarray) -> Rows:
    return {"block": np.full(len(order), name, dtype=object)}


def _some(values: np.ndarray) -> np.ndarray:
    """The places of the values that are not zero, the largest first."""
    order = strongest(values)
    return order[: np.count_nonzero(values)]


def _rows(members: np.ndarray) -> np.ndarray:
    """The rows of members; of lifted ones a list for each."""
    if members.ndim == 1:
        return members
    rows = np.empty(len(members), dtype=object)
    rows[:] = [tuple(row[row >= 0].tolist()) for row in members]
    return rows


def _joined(parts: list[Rows]) -> Rows:
    """The rows of all parts; the last one is empty and does not change a type."""
    used = parts[:-1] or parts
    return {name: np.concatenate([part[name] for part in used]) for name in used[0]}


_BUILDERS: dict[str, tuple[Build, tuple[str, ...]]] = {
    "pairs": (_pairs, ("first", "second", "anchor", "value")),
    "members": (_members, ("side", "member", "anchor", "attention", "value")),
    "columns": (_columns, ("column", "value")),
    "nodes": (_nodes, ("node", "value")),
}
