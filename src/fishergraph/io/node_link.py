"""JSON of nodes and links, as NetworkX and d3 write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fishergraph._errors import FileFormatError
from fishergraph.io.graph_columns import (
    Attributes,
    GraphFile,
    as_text,
    check_distinct,
    check_known,
    graph_file,
    read_all,
)

_LINKS = ("links", "edges")


def read_node_link(stream: Any, path: Path) -> GraphFile:
    """The graph in an open JSON file: an object with "nodes" and "links" or "edges".

    The ends of links are ids of nodes. Without ids they are the names of the nodes, or their positions if they are
    integers, as in older versions of d3. Links have no direction unless the object says "directed".
    """
    try:
        data = json.loads(as_text(read_all(stream, path), path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        line, reason = getattr(error, "lineno", None), getattr(error, "msg", "it is nested too deeply")
        raise FileFormatError(path=path, line=line, reason=f"it is not JSON ({reason})", advice="repair it") from None
    links = next((name for name in _LINKS if isinstance(data, dict) and isinstance(data.get(name), list)), None)
    if links is None or not isinstance(data.get("nodes"), list):
        got = (
            f"an object with {', '.join(sorted(map(repr, data))[:8]) or 'nothing'}"
            if isinstance(data, dict)
            else "another value"
        )
        reason = f"it must be an object with the lists 'nodes' and 'links' or 'edges', got {got[:200]}"
        raise FileFormatError(path=path, reason=reason, advice="write it with networkx.node_link_data")
    directed = data.get("directed", False)
    if not isinstance(directed, bool):
        raise FileFormatError(path=path, reason="'directed' must be true or false", advice="repair it")
    ids, nodes, positions, notes = _nodes(data["nodes"], path)
    ends, edges = _edges(data[links], path)
    flat = [end for pair in ends for end in pair]
    known = set(ids)
    if positions and flat and not all(end in known for end in flat):
        ends = [_at(ids, end, path) for end in ends[0]], [_at(ids, end, path) for end in ends[1]]
        notes.append("links name nodes by their positions")
    check_known(path, ids, ends)
    return graph_file(path, ids, nodes, ends, edges, [directed] * len(ends[0]), notes)


def _plain(value: Any) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool) and value != ""


def _nodes(entries: list[Any], path: Path) -> tuple[list[Any], Attributes, bool, list[str]]:
    """The ids of the nodes, their attributes, whether links may name them by position, and what to say."""
    if all(_plain(entry) for entry in entries):
        entries = [{"id": entry} for entry in entries]
    bad = next((k for k, entry in enumerate(entries) if not isinstance(entry, dict)), None)
    if bad is not None:
        raise FileFormatError(path=path, reason=f"node number {bad} must be an object", advice="repair it")
    key = next((name for name in ("id", "name") if all(_plain(entry.get(name)) for entry in entries)), None)
    ids: list[Any] = [entry[key] for entry in entries] if key is not None else list(range(len(entries)))
    notes = []
    if key == "name" and len(set(ids)) < len(ids):
        key, ids = None, list(range(len(entries)))
    if key != "id" and entries:
        notes = ["names are the ids"] if key == "name" else ["positions are the ids"]
    if key == "id":
        check_distinct(path, ids)
    nodes = Attributes(path)
    for entry in entries:
        nodes.add({name: value for name, value in entry.items() if name != key})
    return ids, nodes, key != "id", notes


def _edges(entries: list[Any], path: Path) -> tuple[tuple[list[Any], list[Any]], Attributes]:
    """The ends of the links and their attributes."""
    ends: tuple[list[Any], list[Any]] = ([], [])
    edges = Attributes(path)
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise FileFormatError(path=path, reason=f"link number {number} must be an object", advice="repair it")
        for end, role in zip(ends, ("source", "target"), strict=True):
            value = entry.get(role)
            if isinstance(value, dict):  # as d3 leaves them after a layout
                value = value.get("id", value.get("name"))
            if not _plain(value):
                reason = f"link number {number} must have a {role}, an integer or a text"
                raise FileFormatError(path=path, reason=reason, advice="repair it")
            end.append(value)
        edges.add({name: value for name, value in entry.items() if name not in ("source", "target")})
    return ends, edges


def _at(ids: list[Any], position: Any, path: Path) -> Any:
    """The id of the node at a position."""
    if isinstance(position, int) and 0 <= position < len(ids):
        return ids[position]
    reason = f"a link must end at one of the {len(ids):,} nodes, got {position!r}"
    raise FileFormatError(path=path, reason=reason, advice="repair it")
