"""The rows of a store for networks: features and multisets, in memory if they fit, and the arrays between layers."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import InputError, NotEnoughMemory
from fishergraph._version import __version__
from fishergraph.io.files import naming
from fishergraph.multiset import Multisets, Rule
from fishergraph.scale.arrays import Features, FileArray, FileRows
from fishergraph.scale.budget import BASE, BUFFERS
from fishergraph.scale.cpu import cpu_target
from fishergraph.scale.embedding import StoredEmbedding
from fishergraph.scale.folders import writer_lives
from fishergraph.scale.memory import memory_text, parse_memory, taken_bytes
from fishergraph.scale.run import FloatRows, run_path
from fishergraph.scale.run_folder import RunFolder
from fishergraph.scale.sets import StoredSets, build_sets
from fishergraph.scale.store import Store, array_entry, read_manifest, write_json

NETWORK_FORMAT, NETWORK_VERSION = "fishergraph-network-run", 1
# Bytes of every node: its label, its offset, and its local number in a batch.
_NODE_BYTES = 24
_LEAST = 2**27  # for batches and blocks
_BLOCK_PART = 3  # a block takes this part of what is left for rows
# Arrays between layers that exist at once.
_LAYERS = 4


@dataclass(frozen=True)
class StoreRows:
    """What networks read of a store.

    Parameters
    ----------
    store : Store
        The graph and its features.
    """

    store: Store

    @contextmanager
    def open(self, rule: Rule, dtype: Any) -> Iterator[OpenRows]:
        """Return the rows with the multisets of a rule for points of this dtype.

        Half of the memory holds multisets and features if they fit. The rest is for batches, or for a block of rows.

        Parameters
        ----------
        rule : Rule
            Which multiset belongs to a node.
        dtype : dtype
            Of the points.

        Returns
        -------
        context manager of OpenRows
            The rows; arrays between layers are removed at the end.
        """
        store = self.store
        assert store.features is not None
        if rule.kinds > 1:
            expected = "be None, 'in' or 'out' for the training on a store"
            raise InputError(parameter="direction", value="both", expected=expected, advice="train in memory")
        if read_manifest(store.path)["arrays"] != store.manifest["arrays"]:
            text = f"the store at '{store.path}' was written again after it was opened; open it again with Store(path)."
            raise InputError(text, parameter="store", value=str(store.path))
        with ExitStack() as stack:
            spare = _spare_bytes(store)
            sets: Any = build_sets(store, rule, dtype, memory=spare)
            held, features = spare // 2, FloatRows(store.features)
            if sets.nbytes <= held:
                held -= sets.nbytes
                sets = sets.loaded()
            else:
                offsets: Any = sets.indptr[:]
                sets = replace(sets, indptr=offsets)
            size = _feature_bytes(store.features, features.dtype)
            if size <= held:
                held -= size
                features = features[:]
            folder = stack.enter_context(_work_folder(store.path))
            yield OpenRows(store, features, sets, spare // _BLOCK_PART, held // _LAYERS, folder)


@dataclass
class OpenRows:
    """The rows of a store while a network reads them.

    Parameters
    ----------
    store : Store
        The graph.
    features : array or rows
        X by rows, in float32 or float64.
    sets : Multisets or StoredSets
        The multisets.
    block_bytes : int
        What the arrays of a block of rows may take.
    array_bytes : int
        Smaller arrays between layers are in memory.
    folder : Path
        Of the other arrays.
    """

    store: Store
    features: Any
    sets: Multisets | StoredSets
    block_bytes: int
    array_bytes: int
    folder: Path
    output: RunFolder | None = field(default=None, init=False)

    def array(self, shape: tuple[int, int], dtype: Any) -> Any:
        """Return a new array, in memory or in a file."""
        if shape[0] * shape[1] * np.dtype(dtype).itemsize <= self.array_bytes:
            return np.empty(shape, dtype)
        return FileArray.create(self.folder / f"{uuid.uuid4().hex}.npy", shape, dtype)

    def drop(self, array: Any) -> None:
        """Remove the file of an array."""
        if isinstance(array, FileArray):
            array.path.unlink()

    def kept(self, identity: Mapping[str, Any]) -> StoredEmbedding | None:
        """Return the output of a network that was kept under the name of the store; None if it is not there."""
        store, words = self.store, {"format": NETWORK_FORMAT, "version": NETWORK_VERSION, "fishergraph": __version__}
        words |= {"store": store.digest, "cpu": cpu_target(), **identity}
        self.output = RunFolder.begin(run_path(store, store.name), words, overwrite=store.overwrite)
        return StoredEmbedding(self.output.path) if self.output.is_complete else None

    def keep(self, outputs: Mapping[str, Any]) -> StoredEmbedding:
        """Keep the output of a network; `kept` was called before."""
        assert self.output is not None
        entries, path = {}, self.output.path
        with self.output.locked():
            for name, array in outputs.items():
                if not isinstance(array, FileArray):
                    values, array = array, FileArray.create(self.folder / f"{name}.npy", array.shape, array.dtype)
                    array[:] = values
                array.sync()
                with naming(path):
                    os.replace(array.path, path / f"{name}.npy")
                entries[name] = {**array_entry(array), "weight": 1.0}
            write_json(path / "manifest.json", {"store": self.store.digest, "arrays": entries})
        return StoredEmbedding(path)


def _spare_bytes(store: Store) -> int:
    """The memory that is left for rows, beside libraries and what is held of every node."""
    memory, base = parse_memory(store.memory), taken_bytes(BASE, BUFFERS)
    spare = memory - base - _NODE_BYTES * store.n_nodes
    if spare < _LEAST:
        smallest = memory - spare + _LEAST
        settings = {"memory": memory_text(smallest)}
        purpose = f"a network on {store.n_nodes:,} nodes"
        raise NotEnoughMemory(purpose=purpose, needed=smallest, available=memory, settings=settings)
    return spare


def _feature_bytes(features: Features, dtype: np.dtype) -> int:
    """The bytes of all features in memory."""
    if isinstance(features, FileRows):
        return features.indices.nbytes + features.indptr.nbytes + features.nnz * dtype.itemsize
    return features.shape[0] * features.shape[1] * dtype.itemsize


@contextmanager
def _work_folder(path: Path) -> Iterator[Path]:
    """A folder in a store that is removed at the end; those of killed processes are removed before."""
    for left in path.glob(".rows.*.work"):
        if not writer_lives(left, path / "rows"):
            shutil.rmtree(left, ignore_errors=True)
    folder = path / f".rows.{os.getpid()}-{uuid.uuid4().hex[:8]}.work"
    try:
        with naming(path):
            folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
