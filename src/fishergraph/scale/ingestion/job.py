"""`ingest`: files of edges and nodes of any size become a store, within a budget of memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fishergraph._errors import InputError, NotEnoughMemory
from fishergraph._progress import Progress, Verbose, progress_bar
from fishergraph._validation import check_flag, look_up
from fishergraph._warn import each_warning_once
from fishergraph.io.files import as_path
from fishergraph.scale.ingestion.features import FeatureWriter
from fishergraph.scale.ingestion.ids import EndRows
from fishergraph.scale.ingestion.numbering import Numbering
from fishergraph.scale.ingestion.rows import write_rows
from fishergraph.scale.ingestion.scratch import EdgeSpool, IdColumn
from fishergraph.scale.ingestion.sources import Edges, Limits, Nodes, open_edges, open_nodes
from fishergraph.scale.ingestion.tables import EdgeReader, NodeReader
from fishergraph.scale.memory import memory_text, parse_memory, taken_bytes
from fishergraph.scale.store import Store
from fishergraph.scale.writer import StoreWriter

PathLike = str | os.PathLike
_CHOICES = {"duplicates": ("add", "once"), "self_loops": ("keep", "drop"), "unknown": ("error", "drop", "add")}
_DTYPES = {name: np.dtype(name) for name in ("float32", "float16", "float64")}
# Libraries and buffers beside the arrays of the work, and the least that is left for these.
_BASE, _LEAST = 380 * 10**6, 120 * 10**6


def ingest(
    edges: PathLike,
    store: PathLike,
    nodes: PathLike | None = None,
    *,
    memory: int | float | str | None = None,
    undirected: bool = False,
    duplicates: str = "add",
    self_loops: str = "keep",
    unknown: str = "error",
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    id_column: str | None = None,
    drop: Iterable[str] = (),
    dtype: str = "float32",
    overwrite: bool = False,
    verbose: Verbose = False,
) -> Store:
    """Make a store of files of edges and nodes, within a budget of memory.

    The arrays are, to the last bit, those of `write_store(store, as_graph(table), X)`. Rows are in the order of the
    nodes; without nodes, in that of the sorted ids. The store appears when it is complete.

    Parameters
    ----------
    edges : path or URL
        Edges: .parquet, .csv, .tsv, .txt (text with .gz too) with columns source, target[, weight]; a folder or a
        pattern of such files; .npy of shape (2, E) or (E, 2); .npz with edge_index; a folder of OGB; a .pt file of
        PyTorch Geometric. URLs such as s3:// need fsspec.
    store : path
        The folder of the store.
    nodes : path or URL, optional
        Nodes: tables with an id column and numbers, or lists of numbers; or a matrix in a .npy file, whose row v is
        node v. By default those in the file of the edges, if it has some.
    memory : int or str, optional
        Bytes that the process may use, such as "4G"; by default half of the free memory.
    undirected : bool, default=False
        List every edge in both directions, with the larger weight of the two.
    duplicates : {"add", "once"}, default="add"
        Parallel edges add their weights, or count once, with the largest weight.
    self_loops : {"keep", "drop"}, default="keep"
        What happens to edges from a node to itself.
    unknown : {"error", "drop", "add"}, default="error"
        What happens to edges that end at a node which is not among the nodes: an error; they are left out; or the
        node is added behind the others, with features of zero.
    source, target, weight : str, optional
        Columns of the edges; by default source and target (or src/dst, from/to, u/v, node1/node2) and weight.
    id_column : str, optional
        Column of the ids of the nodes; by default id, node or node_id, else the row numbers.
    drop : iterable of str, default=()
        Columns of the nodes that are not features.
    dtype : {"float32", "float16", "float64"}, default="float32"
        Type of the features.
    overwrite : bool, default=False
        Replace a store at `store`.
    verbose : bool or callable, default=False
        Show progress.

    Returns
    -------
    Store
        The store; its `facts` say what was read and what was left out.

    See Also
    --------
    write_store : Make a store from arrays in memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph.scale import ingest
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("source,target\\nann,bob\\nbob,eve\\n")
    >>> store = ingest(folder / "edges.csv", folder / "store", undirected=True)
    >>> store
    Store(3 nodes, 4 edges)
    >>> store.ids[:].tolist()
    ['ann', 'bob', 'eve']
    """
    chosen = {"duplicates": duplicates, "self_loops": self_loops, "unknown": unknown}
    for name, value in chosen.items():
        look_up(dict.fromkeys(_CHOICES[name]), value, name)
    if isinstance(drop, str):
        drop = [drop]
    options = _Options(
        check_flag(undirected, "undirected"), duplicates, self_loops, unknown, look_up(_DTYPES, dtype, "dtype")
    )
    work = _work(parse_memory(memory))
    progress, path = progress_bar(verbose, unit="B"), _local(store)
    with (
        each_warning_once(),
        ExitStack() as last,
        StoreWriter(path, overwrite=check_flag(overwrite, "overwrite")) as writer,
        ExitStack() as copies,
    ):
        scratch = writer.scratch("copies").parent
        rows = int(np.clip(work // 400, 2**12, 2**20))
        limits = Limits(rows, int(np.clip(work // 8, 2**20, 2**26)), options.dtype, scratch, copies)
        opened = open_edges(edges, EdgeReader(source, target, weight, limits.batch_rows), limits)
        opened_nodes = opened.nodes
        if nodes is not None:
            reader = NodeReader(id_column, list(drop), limits.batch_bytes, options.dtype)
            opened, opened_nodes = opened.named(), open_nodes(nodes, reader, limits)
        elif id_column is not None or drop:
            raise InputError(parameter="id_column and drop", expected="belong to a table of nodes", got="no nodes")
        _Ingest(opened, opened_nodes, options, work, writer, scratch, progress).run(
            str(edges), None if nodes is None else str(nodes)
        )
        size = sum(path.stat().st_size for path in writer.folder.glob("*.npy"))
        writer.advance = last.enter_context(progress("checksums", size)).update
    return Store(path)


def _local(store: PathLike) -> Path:
    """The path of a store on this machine."""
    if isinstance(store, str) and "://" in store:
        advice = "write it here and copy the folder"
        raise InputError(parameter="store", value=store, expected="be a folder on this machine", advice=advice)
    return as_path(store, "store")


def _work(memory: int) -> int:
    """The bytes for arrays, of those that the process may have."""
    base = taken_bytes(_BASE, _BASE // 2)
    if memory < base + _LEAST:
        raise NotEnoughMemory(
            purpose="ingest",
            needed=base + _LEAST,
            available=memory,
            settings={"memory": memory_text(base + _LEAST)},
        )
    return int(0.9 * (memory - base))


@dataclass(frozen=True)
class _Options:
    """How edges and features are treated."""

    undirected: bool
    duplicates: str
    self_loops: str
    unknown: str
    dtype: np.dtype


class _Ingest:
    """The work of `ingest`, in steps."""

    def __init__(
        self,
        edges: Edges,
        nodes: Nodes | None,
        options: _Options,
        work: int,
        writer: StoreWriter,
        folder: Path,
        progress: Progress,
    ):
        self.edges, self.nodes, self.options, self.work = edges, nodes, options, work
        self.writer, self.folder, self.progress = writer, folder, progress
        self.facts: dict[str, Any] = {}

    def run(self, edges: str, nodes: str | None) -> None:
        """Read, number, sort, write."""
        ids, features = self.read_nodes()
        spool = self.read_edges()
        pa.default_memory_pool().release_unused()
        numbering = Numbering(
            self.edges, self.nodes, self.options.unknown, self.work, self.writer, self.folder, self.progress
        )
        rows = numbering.number(spool, ids)
        if features is not None:
            features.fill(rows.n_nodes)
        self.sort(spool, rows)
        self.writer.facts = {
            "source": "files",
            "edges": edges,
            "nodes": nodes,
            "undirected": self.options.undirected,
            "duplicates": self.options.duplicates,
            "edges_read": spool.n_edges,
            "nodes_added": numbering.n_added,
            **self.facts,
        }

    # --- reading ---

    def read_nodes(self) -> tuple[IdColumn | None, FeatureWriter | None]:
        """The ids of the nodes, on disk; their features are written to the store."""
        nodes = self.nodes
        if nodes is None:
            return None, None
        ids = IdColumn(self.folder / "node_ids", repeating=False)
        features = FeatureWriter(self.writer, self.options.dtype, f"'{nodes.name}'")
        with self.progress("reading nodes", nodes.size) as bar:
            for names, X in nodes.blocks(bar.update):
                start = features.n_rows
                features.add(X)
                ids.add(np.arange(start, features.n_rows) if names is None else names)
        nodes.finish()
        if features.n_rows == 0:
            expected = "have at least one row"
            raise InputError(parameter=f"the nodes of '{nodes.name}'", expected=expected, got="none")
        if features.width > 0:
            self.writer.n_features, self.writer.feature_names = features.width, nodes.names()
        return ids, features

    def read_edges(self) -> EdgeSpool:
        """The edges, on disk."""
        spool = EdgeSpool(self.folder)
        with self.progress("reading edges", self.edges.size) as bar:
            for batch in self.edges.batches(bar.update):
                spool.add(batch.source, batch.target, batch.weights)
        self.edges.finish()
        return spool

    # --- rows ---

    def sort(self, spool: EdgeSpool, rows: EndRows) -> None:
        """Write the compressed rows."""
        dropped = {"unknown": 0, "self_loops": 0}
        drop_loops = self.options.self_loops == "drop"

        def triples() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
            dropped.update(unknown=0, self_loops=0)
            for k in spool:
                ends = rows.ends(k)
                source, target = ends[: len(ends) // 2], ends[len(ends) // 2 :]
                weights = spool.weights_of(k)
                keep = np.ones(len(source), dtype=bool)
                if rows.has_unknown:
                    keep = (source >= 0) & (target >= 0)
                    dropped["unknown"] += len(keep) - int(keep.sum())
                if drop_loops:
                    loops = keep & (source == target)
                    dropped["self_loops"] += int(loops.sum())
                    keep &= ~loops
                if not keep.all():
                    source, target = source[keep], target[keep]
                    weights = None if weights is None else weights[keep]
                yield source, target, weights

        passes = 8 if self.options.undirected else 3
        with self.progress("sorting edges", 8 * passes * max(spool.n_edges, 1)) as bar:
            counts = write_rows(
                triples,
                rows.n_nodes,
                spool.weight_dtype,
                self.writer.growing,
                self.folder,
                undirected=self.options.undirected,
                once=self.options.duplicates == "once",
                work=self.work,
                advance=bar.update,
            )
        self.facts["dropped"] = dropped | {"weight_zero": counts.weightless}
        self.facts["parallel"] = counts.parallel
        spool.close()
