"""What edges and nodes are read from: tables, arrays, and the layouts of OGB and PyTorch Geometric."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._records import check_edge_index, check_endpoints, check_weights
from fishergraph.datasets import read_graph
from fishergraph.datasets.formats import FORMATS
from fishergraph.datasets.ogb import UNREADABLE, holds_ogb, member_names, n_columns, number_blocks, read_numbers
from fishergraph.datasets.pyg import holds_pyg, processed_file
from fishergraph.io.archives import Members
from fishergraph.io.columns import check_ids
from fishergraph.io.npz import csr_names, misfit, npz_keys, read_features, read_npz
from fishergraph.scale.ingestion.matrices import NpzFile, StoredArray
from fishergraph.scale.ingestion.places import Place, find_files, is_url
from fishergraph.scale.ingestion.scratch import Ids, pick
from fishergraph.scale.ingestion.tables import SUFFIXES, EdgeBatch, EdgeReader, NodeReader

Advance = Callable[[int], Any]
Block = tuple[Ids | None, Any]  # the ids and the features of some nodes; ids are None if they are the row numbers
_NPZ_KEYS = ("edge_index", "edge_weight", "undirected", "ids", "names", "x", "x_data")
_OGB_KEYS = ("edge_index", "node_feat", "num_nodes_list")


@dataclass
class Nodes:
    """Nodes that are read in blocks.

    name : what messages call them.
    size : bytes that are read, for the progress.
    blocks : (advance) → blocks of ids and features, dense or CSR.
    names : () → the names of the features, when they were read.
    """

    name: str
    size: int
    blocks: Callable[[Advance], Iterator[Block]]
    names: Callable[[], list[str] | None] = lambda: None
    finish: Callable[[], None] = lambda: None


@dataclass
class Edges:
    """Edges that are read in blocks.

    name : what messages call them.
    size : bytes that are read, for the progress.
    batches : (advance) → batches of edges.
    numbered : whether the ends are row numbers.
    n_nodes : how many nodes there are, if the source says so.
    nodes : the nodes in the same source, if it has some.
    ids : their ids, if they are not the row numbers.
    """

    name: str
    size: int
    batches: Callable[[Advance], Iterator[EdgeBatch]]
    numbered: bool = False
    n_nodes: int | None = None
    nodes: Nodes | None = None
    ids: Ids | None = None
    finish: Callable[[], None] = lambda: None

    def named(self) -> Edges:
        """The same edges between ids in place of row numbers, if the source has ids."""
        ids = self.ids
        if ids is None:
            return self

        def batches(advance: Advance) -> Iterator[EdgeBatch]:
            for batch in self.batches(advance):
                check_endpoints(batch.source, batch.target, len(ids))  # type: ignore[arg-type]
                yield EdgeBatch(pick(ids, batch.source), pick(ids, batch.target), batch.weights)

        return Edges(self.name, self.size, batches, finish=self.finish)


@dataclass(frozen=True)
class Limits:
    """Edges and bytes of features that are read at once, their type, and the folder for copies of remote files."""

    batch_rows: int
    batch_bytes: int
    dtype: np.dtype
    folder: Path
    copies: ExitStack

    def hold(self, place: Place) -> Path:
        """A file on this machine, until the end of the work."""
        return self.copies.enter_context(place.local(self.folder))

    def rows(self, width: int, itemsize: int) -> int:
        """Rows of a matrix that are read at once."""
        return max(self.batch_bytes // max(width * itemsize, 1), 1)


# --- edges ----------------------------------------------------------------------------------------------


def open_edges(path: str | os.PathLike, reader: EdgeReader, limits: Limits) -> Edges:
    """The edges of a path: tables, an array, an npz file, or a folder or file in a layout of a dataset."""
    if not is_url(path) and isinstance(path, (str, os.PathLike)):
        for holds, read in _LAYOUTS:
            if os.path.exists(path) and holds(Path(path)):
                return read(Path(path), limits)
    places = find_files(path, SUFFIXES, "edges")
    suffix = _suffix(places, (*SUFFIXES, ".npy", ".npz"))
    if suffix in (".npy", ".npz"):
        return (_npy_edges if suffix == ".npy" else _npz_edges)(_only(places), limits)
    size = sum(place.size for place in places)

    def batches(advance: Advance) -> Iterator[EdgeBatch]:
        for place in places:
            with place.local(limits.folder) as file:
                yield from reader.read(file, place.path, suffix, advance)

    return Edges(str(path), size, batches, finish=reader.finish)


def _suffix(places: list[Place], known: tuple[str, ...]) -> str:
    """The suffix of all files."""
    found = set()
    for place in places:
        fits = [suffix for suffix in known if place.name.lower().endswith(suffix)]
        if not fits:
            expected, advice = f"end in {', '.join(known)}", "rename or convert the file"
            raise InputError(parameter="a file name", value=place.name, expected=expected, advice=advice)
        found.add(max(fits, key=len))
    if len(found) > 1:
        got = ", ".join(sorted(found))
        raise InputError(parameter="files that are read together", expected="be of one format", got=got)
    return found.pop()


def _only(places: list[Place]) -> Place:
    if len(places) > 1:
        got = f"{places[0].path}, {places[1].path}, …"
        raise InputError(parameter="an array", expected="be one file", got=got, advice="name one of them")
    return places[0]


def _npy_edges(place: Place, limits: Limits) -> Edges:
    array = StoredArray(limits.hold(place), place.path)
    return Edges(place.path, array.nbytes, lambda advance: _batches(array, None, limits, advance), numbered=True)


def _batches(
    pairs: StoredArray, weights: StoredArray | None, limits: Limits, advance: Advance, *, both: bool = False
) -> Iterator[EdgeBatch]:
    """The edges of an array; with `both` the reverse of all but self-loops after them."""
    for back in (False, True) if both else (False,):
        values = iter(()) if weights is None else weights.entries(limits.batch_rows)
        for source, target in pairs.pairs(limits.batch_rows):
            block = None if weights is None else _checked(next(values), source, target)
            if back:
                kept = source != target
                source, target = target[kept], source[kept]
                block = None if block is None else block[kept]
            yield EdgeBatch(source, target, block)
            advance(16 * len(source))


def _checked(weights: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The weights of some edges, if they are finite and not negative."""
    return check_weights(weights, len(source), lambda i: f"{source[i]} -> {target[i]}")


def _npz_edges(place: Place, limits: Limits) -> Edges:
    path = limits.hold(place)
    file = NpzFile(path, place.path, _NPZ_KEYS)
    pairs = file.array("edge_index")
    weights = file.array("edge_weight", pairs.shape[-1]) if "edge_weight" in file.keys else None
    flag = _flag(path, file)
    nodes = _npz_nodes(path, place.path, limits) if file.keys & {"x", "x_data", "ids"} else None
    ids = _npz_ids(path, place.path)
    edges = Edges(place.path, pairs.nbytes * (1 + flag), lambda a: _batches(pairs, weights, limits, a, both=flag))
    edges.numbered, edges.nodes, edges.ids = True, nodes, ids
    return edges


def _flag(path: Path, file: NpzFile) -> bool:
    """Whether every edge of an npz file stands for both directions."""
    flag = read_npz(path, ["undirected"]).get("undirected", np.array(False))
    if flag.shape != () or flag.dtype != bool:
        raise misfit(file.name, "true or false in 'undirected'", f"{flag.dtype} of shape {flag.shape}")
    return bool(flag)


# --- nodes ----------------------------------------------------------------------------------------------


def open_nodes(path: str | os.PathLike, reader: NodeReader, limits: Limits) -> Nodes:
    """The nodes of a path: tables, a matrix in an npy file, or an npz file."""
    places = find_files(path, SUFFIXES, "nodes")
    suffix = _suffix(places, (*SUFFIXES, ".npy", ".npz"))
    if suffix == ".npz":
        place = _only(places)
        return _npz_nodes(limits.hold(place), place.path, limits)
    if suffix == ".npy":
        place = _only(places)
        return _matrix(StoredArray(limits.hold(place), place.path), limits)
    size = sum(place.size for place in places)

    def blocks(advance: Advance) -> Iterator[Block]:
        for place in places:
            with place.local(limits.folder) as file:
                yield from reader.read(file, place.path, suffix, advance)

    return Nodes(str(path), size, blocks, lambda: reader.feature_names, reader.finish)


def _matrix(array: StoredArray, limits: Limits) -> Nodes:
    """The nodes of a matrix, whose rows are the nodes 0, 1, 2, …."""
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError(parameter=array.what, expected="be a matrix of numbers, (node, feature)", got=got)

    def blocks(advance: Advance) -> Iterator[Block]:
        for rows in array.rows(limits.rows(array.shape[1], array.dtype.itemsize)):
            yield None, rows
            advance(rows.nbytes)

    return Nodes(array.name, array.nbytes, blocks)


def _npz_nodes(path: Path, name: str, limits: Limits) -> Nodes:
    """The nodes of an npz file: dense features as a stream, sparse ones and ids at once."""
    file = NpzFile(path, name, _NPZ_KEYS)
    small, ids = read_npz(path, ["names", *csr_names("x")]), _npz_ids(path, name)
    names = [str(word) for word in small["names"]] if "names" in small else None
    if "x" in file.keys:
        return _with_ids(_matrix(file.array("x"), limits), ids, names)
    if "x_data" in file.keys:
        return _with_ids(_in_memory(name, read_features(name, small), limits), ids, names)
    assert ids is not None
    return _with_ids(_in_memory(name, np.empty((len(ids), 0), np.float32), limits), ids, names)


def _npz_ids(path: Path, name: str) -> Ids | None:
    """The ids in an npz file."""
    small = read_npz(path, ["ids"])
    if "ids" not in small:
        return None
    column = check_ids(small["ids"], f"ids in '{name}'")
    return column.to_numpy() if column.type == pa.int64() else column


def _in_memory(name: str, X: Any, limits: Limits) -> Nodes:
    """The nodes of a matrix in memory, dense or CSR."""
    size = 64 if sp.issparse(X) else X.dtype.itemsize
    step = limits.rows(X.shape[1] if not sp.issparse(X) else 1 + X.nnz // max(X.shape[0], 1), size)

    def blocks(advance: Advance) -> Iterator[Block]:
        for start in range(0, X.shape[0], step):
            yield None, X[start : start + step]
            advance(1)

    return Nodes(name, -(-X.shape[0] // step), blocks)


def _with_ids(nodes: Nodes, ids: Ids | None, names: list[str] | None) -> Nodes:
    """Nodes with ids that are in memory."""

    def blocks(advance: Advance) -> Iterator[Block]:
        start = 0
        for _, X in nodes.blocks(advance):
            yield None if ids is None else ids[start : start + X.shape[0]], X
            start += X.shape[0]
        if ids is not None and start != len(ids):
            raise misfit(nodes.name, "an id for every row of features", f"{len(ids)} ids and {start} rows")

    return Nodes(nodes.name, nodes.size, blocks, lambda: names)


# --- datasets -------------------------------------------------------------------------------------------


def _arrays(name: str, source: np.ndarray, target: np.ndarray, weights: Any, X: Any, limits: Limits) -> Edges:
    """A graph that is in memory."""

    def batches(advance: Advance) -> Iterator[EdgeBatch]:
        for start in range(0, len(source), limits.batch_rows):
            part = slice(start, start + limits.batch_rows)
            ends = source[part].astype(np.int64), target[part].astype(np.int64)
            yield EdgeBatch(*ends, None if weights is None else weights[part])
            advance(16 * len(ends[0]))

    nodes = None if X is None or X.shape[1] == 0 else _in_memory(name, X, limits)
    return Edges(name, 16 * len(source), batches, numbered=True, nodes=nodes)


def _pyg(path: Path, limits: Limits) -> Edges:
    """The graph of a processed file of PyTorch Geometric, which is read at once."""
    require("torch_geometric", extra="torch")
    from fishergraph.nn.pyg_file import load_processed

    data = load_processed(processed_file(path))
    source, target = check_edge_index(np.asarray(data.edge_index), f"edge_index of '{path}'")
    weights = data.get("edge_weight")
    if weights is None and (tags := data.get("edge_attr")) is not None and tags.numel() == len(source):
        weights = tags.reshape(-1)
    if weights is not None:
        weights = _checked(np.asarray(weights), source, target)
    X = None if data.get("x") is None else np.asarray(data.x)
    edges = _arrays(str(path), source, target, weights, X, limits)
    edges.n_nodes = int(data.num_nodes or 0) or None
    return edges


def _dataset(path: Path, limits: Limits) -> Edges:
    """A graph in another layout that `read_graph` knows, which is read at once; edges go both ways."""
    data = read_graph(path)
    rows = np.repeat(np.arange(data.n_nodes), np.diff(data.graph.indptr))
    edges = _arrays(str(path), data.graph.indices, rows, None, data.X, limits)
    edges.n_nodes = data.n_nodes
    return edges


def _ogb_text(path: Path, limits: Limits) -> Edges:
    """A graph of OGB in text: raw/edge.csv.gz, raw/node-feat.csv.gz and raw/num-node-list.csv.gz."""
    members = limits.copies.enter_context(Members(path))
    n_nodes = int(read_numbers(members, "raw/num-node-list", np.int64, 1)[0, 0])
    table, features = (members.find(*member_names(f"raw/{stem}")) for stem in ("edge", "node-feat"))
    assert table is not None

    def blocks(member: str, kind: Any, width: int) -> Iterator[np.ndarray]:
        try:
            yield from number_blocks(members, member, kind, width, None)
        except (pa.ArrowException, *UNREADABLE) as error:
            raise misfit(members.where(member), f"lines of {width} numbers", str(error)) from error

    def batches(advance: Advance) -> Iterator[EdgeBatch]:
        for block in blocks(table, np.int64, 2):
            yield EdgeBatch(block[:, 0].copy(), block[:, 1].copy(), None)
            advance(block.nbytes)

    def rows(advance: Advance) -> Iterator[Block]:
        assert features is not None
        for block in blocks(features, np.float32, n_columns(members, features)):
            yield None, block
            advance(block.nbytes)

    n_edges = int(read_numbers(members, "raw/num-edge-list", np.int64, 1)[0, 0])
    nodes = None
    if features is not None:
        nodes = Nodes(members.where(features), 4 * n_nodes * n_columns(members, features), rows)
    return Edges(str(path), 16 * n_edges, batches, numbered=True, n_nodes=n_nodes, nodes=nodes)


def _ogb_file(path: Path) -> Path | None:
    """The arrays of a graph of OGB in a folder, as ogbn-papers100M has them."""
    files = [path] if path.is_file() else [path / "raw" / "data.npz", path / "data.npz"]
    keys = {"edge_index", "num_nodes_list"}
    return next((file for file in files if file.suffix == ".npz" and file.is_file() and keys <= npz_keys(file)), None)


def _ogb_arrays(path: Path, limits: Limits) -> Edges:
    """A graph of OGB in arrays: edge_index, node_feat and num_nodes_list."""
    found = _ogb_file(path)
    assert found is not None
    file = NpzFile(found, str(found), _OGB_KEYS)
    counts = next(file.array("num_nodes_list").entries(2))
    if len(counts) != 1 or counts.dtype.kind not in "iu":
        raise misfit(str(found), "the number of nodes of one graph in 'num_nodes_list'", f"{len(counts)} numbers")
    pairs = file.array("edge_index")
    nodes = _matrix(file.array("node_feat"), limits) if "node_feat" in file.keys else None
    batches = lambda advance: _batches(pairs, None, limits, advance)  # noqa: E731
    return Edges(str(found), pairs.nbytes, batches, numbered=True, n_nodes=int(counts[0]), nodes=nodes)


def _other(path: Path) -> bool:
    return any(FORMATS[name].holds(path, None) for name in ("shchur", "planetoid", "reddit"))


_LAYOUTS: list[tuple[Callable[[Path], bool], Callable[[Path, Limits], Edges]]] = [
    (lambda path: _ogb_file(path) is not None, _ogb_arrays),
    (holds_ogb, _ogb_text),
    (holds_pyg, _pyg),
    (_other, _dataset),
]
