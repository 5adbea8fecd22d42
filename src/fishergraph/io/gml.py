"""GML: a list of keys with numbers, texts and lists."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
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

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*                       # blanks and comments
    |(?P<key>[A-Za-z_][0-9A-Za-z_]*)
    |(?P<real>[+-]?(?:[0-9]*\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE])|INF|NAN)(?:[eE][+-]?[0-9]+)?)
    |(?P<integer>[+-]?[0-9]{1,400})
    |"(?P<text>[^"]*)"
    |(?P<open>\[)|(?P<close>\])""",
    re.VERBOSE,
)
_DEEPEST = 100


def read_gml(stream: Any, path: Path) -> GraphFile:
    """The graph in an open GML file.

    The ids are the labels of the nodes if every node has one and no two are the same, else their numbers.
    """
    text = as_text(read_all(stream, path), path)
    graphs = [value for key, value in _parse(text, path) if key == "graph" and isinstance(value, list)]
    if len(graphs) != 1:
        reason = f"it must have one graph, got {len(graphs)}"
        raise FileFormatError(path=path, reason=reason, advice="name another file, or write each graph into one")
    graph = graphs[0]
    directed = bool(_one(graph, "directed", 0))
    nodes = [dict_of(value) for key, value in graph if key == "node" and isinstance(value, list)]
    edges = [dict_of(value) for key, value in graph if key == "edge" and isinstance(value, list)]
    numbers = [node.pop("id", None) for node in nodes]
    if None in numbers:
        raise FileFormatError(path=path, reason=f"node number {numbers.index(None)} has no id", advice="repair it")
    check_distinct(path, numbers)
    ends: tuple[list[Any], list[Any]] = ([], [])
    for number, edge in enumerate(edges):
        for end, role in zip(ends, ("source", "target"), strict=True):
            value = edge.pop(role, None)
            if value is None:
                raise FileFormatError(path=path, reason=f"edge number {number} has no {role}", advice="repair it")
            end.append(value)
    check_known(path, numbers, ends)
    labels = [node.get("label") for node in nodes]
    named = all(isinstance(label, (str, int)) and label != "" for label in labels) and len(set(labels)) == len(labels)
    notes = []
    if named and nodes:
        name = dict(zip(numbers, labels, strict=True))
        ends, ids = ([name[end] for end in ends[0]], [name[end] for end in ends[1]]), labels
        for node in nodes:
            del node["label"]
        notes = ["labels are the ids"]
    else:
        ids = numbers
    columns = [Attributes(path), Attributes(path)]
    for rows, attributes in zip((nodes, edges), columns, strict=True):
        for row in rows:
            attributes.add(row)
    return graph_file(path, ids, columns[0], ends, columns[1], [directed] * len(edges), notes)


def dict_of(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """Entries by key; a key that occurs several times has a list, and lists inside are dictionaries."""
    found: dict[str, list[Any]] = {}
    for key, value in entries:
        found.setdefault(key, []).append(dict_of(value) if isinstance(value, list) else value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def _one(entries: list[tuple[str, Any]], key: str, default: Any) -> Any:
    return next((value for name, value in entries if name == key), default)


def _tokens(text: str, path: Path) -> Iterator[tuple[str, str, int]]:
    """The kind, the text and the position of every token."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _fault(
                path, text, at, f"a key, a number, a text or a bracket is expected, got {text[at : at + 20]!r}"
            )
        if match.lastgroup is not None:
            yield match.lastgroup, match[match.lastgroup], at
        at = match.end()


def _fault(path: Path, text: str, at: int, reason: str) -> FileFormatError:
    return FileFormatError(path=path, line=text.count("\n", 0, at) + 1, reason=reason, advice="repair it")


def _parse(text: str, path: Path) -> list[tuple[str, Any]]:
    """The keys and values of a file; a list of keys and values is a value."""
    levels: list[list[tuple[str, Any]]] = [[]]
    key, key_at = None, 0
    for kind, word, at in _tokens(text, path):
        if kind == "close":
            if key is not None or len(levels) == 1:
                raise _fault(path, text, at, "a bracket closes that was not opened, or a value is missing")
            levels.pop()
        elif key is None:
            if kind != "key":
                raise _fault(path, text, at, f"a key is expected, got {word[:40]!r}")
            key, key_at = word, at
        elif kind == "open":
            inner: list[tuple[str, Any]] = []
            levels[-1].append((key, inner))
            levels.append(inner)
            key = None
            if len(levels) > _DEEPEST:
                raise _fault(path, text, at, f"its lists lie more than {_DEEPEST} inside each other")
        else:
            value = _value(kind, word)
            if value is None:
                raise _fault(path, text, at, f"a value of {key[:40]!r} is expected, got {word[:40]!r}")
            levels[-1].append((key, value))
            key = None
    if key is not None or len(levels) > 1:
        raise _fault(path, text, key_at if key is not None else len(text), "it ends before its lists do")
    return levels[0]


def _value(kind: str, word: str) -> Any:
    """A number or a text; None for a word that is neither."""
    if kind == "integer":
        return int(word)
    if kind == "real":
        return float(word.replace("INF", "inf").replace("NAN", "nan"))
    if kind == "key":  # without a sign they look like words
        return {"INF": float("inf"), "NAN": float("nan")}.get(word.upper())
    return html.unescape(word)
