"""Cora, Citeseer and Pubmed from the original Planetoid files `ind.<name>.<part>`.

Seven of the eight parts are Python pickles, and a pickle can call anything it can name. These are read by an
unpickler that can name only NumPy arrays, a SciPy CSR matrix and built-in containers.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tempfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph.datasets.record import GraphData, undirected_graph

ADDRESS = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/"
PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
N_VALIDATION = 500

# SHA-256 of the published files, in the order of PARTS.
CHECKSUMS = {
    "cora": (
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    ),
    "citeseer": (
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    ),
    "pubmed": (
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    ),
}
PLANETOID = tuple(CHECKSUMS)


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
    matrix.check_format(full_check=True)
    return matrix


def find_planetoid(folder: Path, name: str) -> Path | None:
    """The folder that holds all files of `name`: `folder` or its `planetoid` subfolder, else None."""
    for place in (folder, folder / "planetoid"):
        if all((place / file_name(name, part)).is_file() for part in PARTS):
            return place
    return None


def read_planetoid(folder: str | Path, name: str) -> GraphData:
    """The graph of the eight files of `name` in `folder`, with the public split.

    Nodes that the test index skips (15 in Citeseer) become isolated nodes with zero features and class 0, as
    in other readers; self-loops and repeated edges are dropped; features are not normalised.
    """
    folder = Path(folder)
    parts = _read_parts(folder, name)
    try:
        return _assemble(name, parts)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the files {folder / file_name(name, '*')} must be the eight parts of one Planetoid graph, "
            f"but they do not fit together ({error}); replace them with the published files."
        ) from error


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
        graph=_graph(parts.graph, n_nodes),
        y=y,
        train=np.arange(n_train),
        val=np.arange(n_train, n_train + N_VALIDATION),
        test=np.sort(parts.test),
        licence="MIT",
        source="https://github.com/kimiyoung/planetoid",
    )


def _graph(neighbours: dict[int, list[int]], n_nodes: int) -> sp.csr_array:
    """The symmetric adjacency of neighbour lists, without self-loops."""
    counts = [len(targets) for targets in neighbours.values()]
    sources = np.repeat(np.array(list(neighbours), dtype=np.int64), counts)
    targets = np.array([target for row in neighbours.values() for target in row], dtype=np.int64)
    if targets.size and (min(sources.min(), targets.min()) < 0 or max(sources.max(), targets.max()) >= n_nodes):
        raise IndexError(f"the graph names nodes outside 0 to {n_nodes - 1}")
    proper = sources != targets
    return undirected_graph(sources[proper], targets[proper], n_nodes)


def download_planetoid(name: str, folder: Path) -> Path:
    """The folder that now holds the eight checked files of `name`; a file already there is kept."""
    place = folder / "planetoid"
    for part, checksum in zip(PARTS, CHECKSUMS[name], strict=True):
        target = place / file_name(name, part)
        if not target.is_file():
            _fetch(ADDRESS + target.name, target, checksum)
    return place


def _fetch(url: str, target: Path, checksum: str) -> None:
    """Download one file; it appears under its name only when complete and equal to the published one."""
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=60) as response:
            content = response.read()
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"{url} could not be downloaded ({error}); connect to the network, or set FISHERGRAPH_DATA to a "
            "folder that holds the files."
        ) from error
    got = hashlib.sha256(content).hexdigest()
    if got != checksum:
        raise ValueError(
            f"{url} must have the SHA-256 checksum {checksum}, got {got}; set FISHERGRAPH_DATA to a folder "
            "that holds the published files."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part_file = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(part_file, target)
    except BaseException:
        Path(part_file).unlink(missing_ok=True)
        raise
