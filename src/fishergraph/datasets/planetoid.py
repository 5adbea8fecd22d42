"""Cora, Citeseer and Pubmed from the original Planetoid files `ind.<name>.<part>`.

Seven of the eight parts are Python pickles, and a pickle can call anything it can name. These are read by an
unpickler that can name only NumPy arrays, a SciPy CSR matrix and built-in containers.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import check_compressed
from fishergraph.datasets.prepare import check_nodes, undirected_graph
from fishergraph.datasets.record import GraphData
from fishergraph.datasets.sources import PLANETOID_PARTS

PARTS = PLANETOID_PARTS
N_VALIDATION = 500


def file_name(name: str, part: str) -> str:
    """The published name of one part."""
    return f"ind.{name}.{part}"


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """The bytes of a text: Python 3 writes bytes in old pickles as a call to `_codecs.encode`."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it encodes bytes as {encoding!r}, not as latin1")
    return text.encode("latin1")


_RECONSTRUCT = np.empty(0).__reduce__()[0]  # numpy's own function, under whichever module name this numpy has
_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("collections", "defaultdict"): defaultdict,
    ("_codecs", "encode"): _encode_latin1,
    **{
        (module, kind.__name__): kind
        for module in ("builtins", "__builtin__")  # the latter in files written by Python 2
        for kind in (list, dict, tuple, set, frozenset, int, float, bool)
    },
}
_CSR_NAMES = {("scipy.sparse.csr", "csr_matrix"), ("scipy.sparse._csr", "csr_matrix")}


class _SafeUnpickler(pickle.Unpickler):
    """An unpickler that admits only arrays, CSR matrices and built-in containers."""

    def __init__(self, stream: io.BytesIO):
        super().__init__(stream, encoding="latin1")

        class CSRPieces:
            """A stand-in for csr_matrix: a pickle may alter a class it names, so it gets one of its own."""

        self.csr_class = CSRPieces

    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) in _CSR_NAMES:
            return self.csr_class
        if (module_name, global_name) in _ADMITTED:
            return _ADMITTED[module_name, global_name]
        raise pickle.UnpicklingError(
            f"it names {module_name}.{global_name}, which is no array, CSR matrix or built-in container"
        )


def load_pickle(path: Path) -> Any:
    """The array, CSR matrix or container of a pickle file; anything else is refused and not run."""
    unpickler = _SafeUnpickler(io.BytesIO(path.read_bytes()))
    try:
        value = unpickler.load()
        return _as_csr(vars(value)) if isinstance(value, unpickler.csr_class) else value
    except Exception as error:  # a broken pickle can raise anything, though it calls only what is admitted
        raise ValueError(
            f"{path} must be a Planetoid pickle of arrays and lists, but it was refused ({error}); "
            "replace it with the published file."
        ) from error


def _as_csr(pieces: dict[str, Any]) -> sp.csr_array:
    """The matrix of a pickled csr_matrix's attributes; every index is checked."""
    matrix = sp.csr_array((pieces["data"], pieces["indices"], pieces["indptr"]), shape=pieces["_shape"])
    return check_compressed(matrix, "its matrix")


def planetoid_names(folder: Path) -> list[str]:
    """The names of the graphs all of whose files are in the folder."""
    if not folder.is_dir():
        return []
    names = sorted(path.name.removeprefix("ind.").removesuffix(".allx") for path in folder.glob("ind.*.allx"))
    return [name for name in names if all((folder / file_name(name, part)).is_file() for part in PARTS)]


def read_planetoid(folder: str | Path, name: str | None = None) -> GraphData:
    """The graph of the eight files of `name` in `folder` (by default of the only one there), with the public split.

    Nodes that the test index skips (15 in Citeseer) become isolated nodes with zero features and class 0, as
    in other readers; self-loops and repeated edges are dropped; features are not normalised.
    """
    folder = Path(folder)
    name = _only(folder) if name is None else name
    parts = _read_parts(folder, name)
    try:
        return _assemble(name, parts)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the files {folder / file_name(name, '*')} must be the eight parts of one Planetoid graph, "
            f"but they do not fit together ({error}); replace them with the published files."
        ) from error


def _only(folder: Path) -> str:
    """The name of the one graph in the folder."""
    names = planetoid_names(folder)
    if len(names) != 1:
        raise ValueError(
            f"'{folder}' must hold the files of one Planetoid graph, got {', '.join(names) or 'none'}; say which, as "
            "in load_graph(name, data_home=folder)."
        )
    return names[0]


def _read_parts(folder: Path, name: str) -> SimpleNamespace:
    """The parts as attributes x, y, tx, ty, allx, ally, graph and test."""
    parts = {part: load_pickle(folder / file_name(name, part)) for part in PARTS if part != "test.index"}
    index_file = folder / file_name(name, "test.index")
    try:
        test = np.array(index_file.read_text().split(), dtype=np.int64)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{index_file} must hold one node number a line, but it does not ({error}); "
            "replace it with the published file."
        ) from error
    return SimpleNamespace(**parts, test=test)


def _assemble(name: str, parts: SimpleNamespace) -> GraphData:
    """The record: rows of allx first, row i of tx at node test[i]."""
    n_first = parts.allx.shape[0]
    n_nodes = max(n_first, int(parts.test.max()) + 1)
    if parts.test.min() < n_first or parts.tx.shape[0] != len(parts.test) or parts.x.shape[0] != len(parts.y):
        raise IndexError("the test index does not follow the rows of allx, or a part has too few rows")
    first, last = parts.allx.tocoo(), parts.tx.tocoo()  # (node, feature) triples
    values = np.concatenate([first.data, last.data]).astype(np.float32)
    rows = np.concatenate([first.row, parts.test[last.row]])
    columns = np.concatenate([first.col, last.col])
    y = np.zeros(n_nodes, dtype=np.int64)
    y[:n_first] = parts.ally.argmax(axis=1)
    y[parts.test] = parts.ty.argmax(axis=1)
    n_train = parts.x.shape[0]
    return GraphData(
        name=name,
        X=sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(n_nodes, first.shape[1]))),
        graph=_graph(parts.graph, n_nodes, file_name(name, "graph")),
        y=y,
        train=np.arange(n_train),
        val=np.arange(n_train, n_train + N_VALIDATION),
        test=np.sort(parts.test),
    )


def _graph(neighbours: dict[int, list[int]], n_nodes: int, file: str) -> sp.csr_array:
    """The symmetric adjacency of neighbour lists, without self-loops."""
    counts = [len(targets) for targets in neighbours.values()]
    sources = np.repeat(np.array(list(neighbours), dtype=np.int64), counts)
    targets = np.array([target for row in neighbours.values() for target in row], dtype=np.int64)
    check_nodes(file, n_nodes, sources, targets)
    proper = sources != targets
    return undirected_graph(sources[proper], targets[proper], n_nodes)
