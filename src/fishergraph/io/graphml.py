"""GraphML, read as a stream of XML events: nothing is looked up, no entity is expanded, no other file is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from fishergraph._errors import FileFormatError
from fishergraph.io.graph_columns import Attributes, GraphFile, check_distinct, graph_file

_DEEPEST = 200  # elements inside each other
_LONGEST = 1 << 20  # characters of a value
_READ = 1 << 16
_TRUE = {"true": True, "1": True, "false": False, "0": False}
_KINDS: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _TRUE[text.strip().lower()],
    **dict.fromkeys(("int", "integer", "long", "short", "byte"), int),
    **dict.fromkeys(("float", "double", "real"), float),
    "string": str,
}


@dataclass
class _Key:
    """An attribute that the file declares: its name, what reads its values, what has it, and its default."""

    name: str
    read: Callable[[str], Any]
    owner: str
    default: Any = None


class _Reader:
    """What the events of a GraphML file add up to."""

    def __init__(self, path: Path):
        self.path, self.depth = path, 0
        self.keys: dict[str, _Key] = {}
        self.ids: list[str] = []
        self.ends: tuple[list[str], list[str]] = ([], [])
        self.directed: list[bool] = []
        self.nodes, self.edges = Attributes(path), Attributes(path)
        self.graphs, self.default = 0, True
        self.open: dict[str, Any] | None = None  # the node or edge whose data are read
        self.open_kind, self.key, self.text = "", "", [""]
        self.length = 0
        self.stack: list[str] = []

    def fail(self, reason: str, advice: str = "repair it") -> NoReturn:
        """Raise the error for something that GraphML does not have."""
        raise FileFormatError(path=self.path, line=self.parser.CurrentLineNumber, reason=reason, advice=advice)

    def parse(self, stream: Any) -> None:
        """Read all events."""
        self.parser: Any = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self.start, self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.EntityDeclHandler = lambda *_: self.fail("it declares entities, which are not read")
        self.parser.SkippedEntityHandler = lambda *_: self.fail("it refers to an entity that it does not have")
        try:
            while data := stream.read(_READ):
                self.parser.Parse(data, False)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            reason = f"it is not well-formed XML ({expat.ErrorString(error.code)})"
            raise FileFormatError(path=self.path, line=error.lineno, reason=reason, advice="repair it") from None
        except (LookupError, UnicodeError, ValueError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(path=self.path, reason=f"its text cannot be decoded ({error})") from None

    # --- events -----------------------------------------------------------------------------------------

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        name = tag.rpartition(":")[2]
        if not self.stack and name != "graphml":
            self.fail(f"its first element must be graphml, got {name[:40]!r}", "name a GraphML file")
        self.stack.append(name)
        if len(self.stack) > _DEEPEST:
            self.fail(f"its elements lie more than {_DEEPEST} inside each other")
        if name in ("hyperedge", "port") and self.key == "":
            self.fail(f"it has a {name}, which a graph does not", "write the graph without it")
        if name == "graph":
            self._start_graph(attributes)
        elif name == "key":
            self._start_key(attributes)
        elif name in ("node", "edge") and not self.key:
            self._start_element(name, attributes)
        elif name in ("data", "default") and not self.key:
            self.key = attributes.get("key", "") if name == "data" else self.key_id
            self.text, self.length, self.data_depth = [], 0, len(self.stack)

    def _start_graph(self, attributes: dict[str, str]) -> None:
        self.graphs += 1
        if self.graphs > 1:
            self.fail("it has more than one graph", "write each graph into a file of its own")
        kind = attributes.get("edgedefault", "directed")
        if kind not in ("directed", "undirected"):
            self.fail(f"edgedefault must be directed or undirected, got {kind[:40]!r}")
        self.default = kind == "directed"

    def _start_key(self, attributes: dict[str, str]) -> None:
        name = attributes.get("attr.name") or attributes.get("id", "")
        kind = attributes.get("attr.type", "string").lower()
        self.key_id = attributes.get("id", "")
        if kind not in _KINDS:
            self.fail(f"the type of {name[:40]!r} must be one of {', '.join(_KINDS)}, got {kind[:40]!r}")
        self.keys[self.key_id] = _Key(name, _KINDS[kind], attributes.get("for", "all"))

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        if self.open is not None:
            self.fail(f"a {name} must not lie inside a {self.open_kind}", "write the graph without nested elements")
        self.open, self.open_kind = {}, name
        if name == "node":
            if not attributes.get("id"):
                self.fail("a node must have an id")
            self.ids.append(attributes["id"])
            return
        for end, role in zip(self.ends, ("source", "target"), strict=True):
            if not attributes.get(role):
                self.fail(f"an edge must have a {role}")
            end.append(attributes[role])
        word = attributes.get("directed")
        if word is not None and word.lower() not in _TRUE:
            self.fail(f"directed must be true or false, got {word[:40]!r}")
        self.directed.append(self.default if word is None else _TRUE[word.lower()])

    def characters(self, text: str) -> None:
        """Text inside an element."""
        if self.key and len(self.stack) == self.data_depth:
            self.length += len(text)
            if self.length > _LONGEST:
                self.fail(f"a value must have at most {_LONGEST:,} characters", "write long values as a table")
            self.text.append(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        name = self.stack.pop()
        if name in ("data", "default") and self.key and len(self.stack) + 1 == self.data_depth:
            self._end_value(name)
        elif name in ("node", "edge") and self.open is not None and not self.key:
            known = {
                key.name: key.default
                for key in self.keys.values()
                if key.default is not None and key.owner in (name, "all")
            }
            (self.nodes if name == "node" else self.edges).add({**known, **self.open})
            self.open = None

    def _end_value(self, name: str) -> None:
        key, text = self.keys.get(self.key), "".join(self.text)
        self.key = ""
        if key is None:
            self.fail("a value refers to a key that the file does not declare")
        if not text.strip() and key.read is not str:
            return  # elements of a drawing program, or nothing
        try:
            value = key.read(text)
        except (ValueError, KeyError):
            self.fail(f"{key.name[:40]!r} must hold values of its type, got {text.strip()[:40]!r}")
        if name == "default":
            key.default = value
        elif self.open is not None and (text.strip() or key.read is str):
            self.open[key.name] = value


def read_graphml(stream: Any, path: Path) -> GraphFile:
    """The graph in an open GraphML file."""
    reader = _Reader(path)
    reader.parse(stream)
    if not reader.graphs:
        raise FileFormatError(path=path, reason="it has no graph", advice="name another file")
    check_distinct(path, reader.ids)
    known = set(reader.ids)
    unlisted = [end for pair in zip(*reader.ends, strict=True) for end in pair if end not in known]
    added = list(dict.fromkeys(unlisted))  # as in NetworkX, an edge makes the nodes that it names
    reader.ids += added
    for _ in added:
        reader.nodes.add({})
    notes = [f"{len(added):,} nodes that only edges name"] if added else []
    return graph_file(path, reader.ids, reader.nodes, reader.ends, reader.edges, reader.directed, notes)
