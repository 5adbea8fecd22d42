"""The rows of the ends of edges: their ids are row numbers, numbers or text, with a table of nodes or without."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fishergraph._errors import InputError
from fishergraph._progress import Progress
from fishergraph.scale.ingestion.features import write_ids
from fishergraph.scale.ingestion.ids import EndRows, distinct_ranges, node_ranges, unknown_nodes
from fishergraph.scale.ingestion.scratch import EdgeSpool, IdColumn, Scratch
from fishergraph.scale.ingestion.sources import Edges, Nodes
from fishergraph.scale.writer import StoreWriter

_MOST_NODES = 2**36  # that row numbers may count


class Numbering:
    """Gives every end of an edge its row.

    Parameters
    ----------
    edges : Edges
        Where the edges come from.
    nodes : Nodes or None
        Where the nodes come from.
    unknown : {"error", "drop", "add"}
        What happens to edges that end at other nodes.
    work : int
        Bytes for arrays.
    writer : StoreWriter
        The store.
    folder : Path
        A folder for scratch files.
    progress : function
        Shows progress.
    """

    def __init__(
        self,
        edges: Edges,
        nodes: Nodes | None,
        unknown: str,
        work: int,
        writer: StoreWriter,
        folder: Path,
        progress: Progress,
    ):
        self.edges, self.unknown, self.work, self.writer = edges, unknown, work, writer
        self.folder, self.progress = folder, progress
        self.numbered = edges.numbered and nodes is edges.nodes  # the ends of the edges are rows
        self.name = f"'{(nodes or edges).name}'"
        self.n_added = 0

    def number(self, spool: EdgeSpool, ids: IdColumn | None) -> EndRows:
        """The rows of the ends of all edges; the ids of the nodes are written to the store."""
        if self.numbered:
            n_nodes = self.counted(spool) if ids is None else ids.n_ids
            if n_nodes != (self.edges.n_nodes or n_nodes):
                expected, got = f"have the {self.edges.n_nodes:,} nodes that it declares", f"features of {n_nodes:,}"
                raise InputError(parameter=self.name, expected=expected, got=got, advice="download it again")
            return self.known(spool, n_nodes, ids)
        if ids is None:
            return self.sorted(spool)
        if not ids.is_text and not spool.ids.is_text:
            if ids.counts:
                return self.known(spool, ids.n_ids, ids)
            return self.matched(spool, ids)
        if self.unknown != "add":
            write_ids(self.writer, ids)  # numbers stay numbers, although they are compared as text
        spool.ids.unify(text=True)
        ids.unify(text=True)
        return self.matched(spool, ids, written=self.unknown != "add")

    def counted(self, spool: EdgeSpool) -> int:
        """The number of nodes of a source whose edges end at row numbers."""
        if self.edges.n_nodes is not None:
            return self.edges.n_nodes
        if spool.n_edges == 0:
            expected, advice = "have at least one edge", "pass the nodes"
            raise InputError(parameter=f"'{self.edges.name}'", expected=expected, got="none", advice=advice)
        if spool.ids.low < 0 or spool.ids.high >= _MOST_NODES:
            bad = spool.ids.low if spool.ids.low < 0 else spool.ids.high
            raise InputError(
                parameter=f"the nodes in '{self.edges.name}'",
                value=bad,
                expected="be counted from 0",
                advice="write other ids to a table with the columns source and target",
            )
        return spool.ids.high + 1

    def sorted(self, spool: EdgeSpool) -> EndRows:
        """Rows in the order of the ids, if there is no table of nodes."""
        if spool.n_edges == 0:
            expected, advice = "have at least one edge", "check the file, or pass the nodes"
            raise InputError(parameter=f"'{self.edges.name}'", expected=expected, got="none", advice=advice)
        spool.ids.unify(text=False)
        ids = IdColumn(self.folder / "node_ids", repeating=False)
        with self.progress("sorting ids", 8 * spool.ids.n_ids) as bar:
            for found in distinct_ranges(spool.ids, self.work, bar.update):
                ids.add(found)
        write_ids(self.writer, ids)
        if ids.counts:
            return EndRows(spool, ids.n_ids)
        rows, dtype = self.on_disk(spool, ids.n_ids)
        borders = ids.borders
        ranges = ((ids.ids(k)[0], np.arange(borders[k], borders[k + 1])) for k in range(len(ids.chunks)))
        with self.progress("numbering nodes", 8 * spool.ids.n_ids * len(ids.chunks)) as bar:
            rows.find(ranges, dtype, self.work, bar.update)
        return rows

    def matched(self, spool: EdgeSpool, ids: IdColumn, *, written: bool = False) -> EndRows:
        """Rows in the order of the table of nodes."""
        rows, dtype = self.on_disk(spool, ids.n_ids)
        with self.progress("numbering nodes", 8 * (ids.n_ids + spool.ids.n_ids)) as bar:
            ranges = node_ranges(ids, self.work, bar.update, self.name)
            rows.find(ranges, dtype, self.work, bar.update)
        return self.checked(spool, rows, ids, written=written)

    def known(self, spool: EdgeSpool, n_nodes: int, ids: IdColumn | None) -> EndRows:
        """Rows that are the ids, 0 … n_nodes − 1."""
        return self.checked(spool, EndRows(spool, n_nodes), ids)

    def on_disk(self, spool: EdgeSpool, n_nodes: int) -> tuple[EndRows, np.dtype]:
        """Rows that are looked up, on disk."""
        dtype = np.dtype(np.int32 if n_nodes + 2 * spool.n_edges < 2**31 else np.int64)
        return EndRows(spool, n_nodes, Scratch(self.folder / "end_rows")), dtype

    def checked(self, spool: EdgeSpool, rows: EndRows, ids: IdColumn | None, *, written: bool = False) -> EndRows:
        """Rows of known nodes, after unknown ones were refused, left out or added."""
        if rows.has_unknown and self.unknown == "error":
            raise unknown_nodes(*rows.unknown(), ids, self.name, rows.n_nodes)
        if rows.has_unknown and self.unknown == "add":
            rows = self.added(spool, rows, ids)
        if ids is not None and not written:
            write_ids(self.writer, ids)
        return rows

    def added(self, spool: EdgeSpool, rows: EndRows, ids: IdColumn | None) -> EndRows:
        """Rows of all nodes: those that were not known have the last ones, in the order of their ids."""
        n_known = rows.n_nodes
        if ids is None:
            raise InputError(
                parameter="unknown",
                value="add",
                expected="be drop or error for nodes that are row numbers",
                advice="check the ends of the edges",
                settings={"unknown": "drop"},
            )
        new = IdColumn(self.folder / "new_ids", repeating=False)
        for found in distinct_ranges(spool.ids, self.work, ignored, keep=lambda k: rows.ends(k) < 0):
            new.add(found)
            ids.add(found)
        complete = EndRows(spool, n_known + new.n_ids, Scratch(self.folder / "all_rows"))
        borders = new.borders + n_known
        ranges = ((new.ids(k)[0], np.arange(borders[k], borders[k + 1])) for k in range(len(new.chunks)))
        dtype = np.dtype(np.int32 if complete.n_nodes < 2**31 else np.int64)
        complete.find(ranges, dtype, self.work, ignored)
        for k in spool:
            complete.set(k, np.maximum(complete.ends(k), rows.ends(k)).astype(dtype))
        complete.has_unknown = False
        self.n_added = new.n_ids
        return complete


def ignored(n: int) -> None:
    """No progress."""
