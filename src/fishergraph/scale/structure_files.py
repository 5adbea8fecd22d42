"""Structural columns of a store, computed in files within a memory: `FileStorage`, `write_structure`.

The arrays between are in the work folder of the run, each marked when it is complete. A run that was killed goes on
behind the last of them.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from fishergraph._parallel import row_blocks
from fishergraph._progress import costing
from fishergraph.estimators.source import NodeJob
from fishergraph.scale.arrays import FileArray, Growing
from fishergraph.scale.memory import resident_bytes
from fishergraph.scale.run_folder import RunFolder
from fishergraph.scale.sets import loaded_graph
from fishergraph.scale.store import Store
from fishergraph.scale.structure_size import StructureRoom
from fishergraph.scale.tiles import ColumnTiles, tile_shape
from fishergraph.structural import BY_ROWS, StructureMap, fit_structure
from fishergraph.structural.factors import OPERATORS, Factors
from fishergraph.structural.keys import node_keys
from fishergraph.structural.rows import Chunk, Rows

_PARTS = ("indptr", "indices", "weights")
_ID_ROWS = 2**16  # ids that are read at once


class FileStorage:
    """Arrays of structural columns in the work folder of a run.

    Parameters
    ----------
    folder : RunFolder
        The run.
    room : StructureRoom
        What is held.
    """

    def __init__(self, folder: RunFolder, room: StructureRoom):
        self.folder, self.room = folder, room
        self.most_entries, self.block_edges = room.most_entries, room.block_edges
        self._mapped: list[mmap.mmap] = []

    def rows(self, name: str, chunks: Callable[[], Iterator[Chunk]]) -> Rows:
        """Compressed rows in files, from consecutive (sizes, indices, weights), unless they were made before."""
        if not self.has(name):
            self._write_rows(name, chunks())
            self._mark(name)
        arrays = [self._opened(f"{name}-{part}") for part in _PARTS]
        return Rows(arrays[0][:], arrays[1], arrays[2])

    def _write_rows(self, name: str, chunks: Iterator[Chunk]) -> None:
        growing: list[Growing] = []
        last = 0
        for sizes, *entries in chunks:
            ends = np.append(0, np.cumsum(sizes, dtype=np.int64)) + last
            arrays = [ends if not growing else ends[1:], *entries]
            if not growing:
                (self.folder.path / "work").mkdir(exist_ok=True)
                paths = [self._path(f"{name}-{part}") for part in _PARTS]
                growing = [Growing(path, array.dtype) for path, array in zip(paths, arrays, strict=True)]
            for array, values in zip(growing, arrays, strict=True):
                array.append(values)
            last = int(ends[-1])
        for array in growing:
            array.finish().sync()

    def matrix(self, name: str, shape: tuple[int, int], dtype: Any, fill: Callable[[Any], object]) -> ColumnTiles:
        """A matrix in tiles of columns, unless it was made before in tiles of the same width."""
        if self.has(name):
            return ColumnTiles(self._opened(name), shape)
        width = min(max(self.room.column_bytes // np.dtype(dtype).itemsize, 1), max(shape[1], 1))
        self.forget(name)
        array = self.folder.array(f"structure-{name}", tile_shape(*shape, width), dtype, work=True)
        tiles = ColumnTiles(array, shape)
        fill(tiles)
        array.sync()
        self._mark(name, self.room.column_bytes)
        return tiles

    def table(self, name: str, shape: tuple[int, int], fill: Callable[[Any], object]) -> FileArray:
        """A float32 array of whole rows, unless it was made before."""
        if not self.has(name):
            array = self.folder.array(f"structure-{name}", shape, np.float32, work=True)
            fill(array)
            array.sync()
            self._mark(name)
        return self._opened(name)

    def keep(self, name: str, values: np.ndarray) -> None:
        """Write an array, unless it was written before."""
        if self.has(name):
            return
        array = self.folder.array(f"structure-{name}", values.shape, values.dtype, work=True)
        array[:] = values
        array.sync()
        self._mark(name)

    def has(self, name: str) -> bool:
        """Whether an array is complete."""
        if not (self.folder.path / "parts" / f"structure-{name}.npy").is_file():
            return False
        log = self.folder.log(f"structure-{name}", 1)
        return log.is_complete and log.checksum(0) in (0, self.room.column_bytes)

    @contextmanager
    def whole(self, rows: Rows) -> Iterator[Chunk]:
        """(offsets, indices, weights) of rows in files, mapped into memory."""
        mapped = [None if array is None else _mapped(array) for array in (rows.indices, rows.weights)]
        self._mapped = [one[1] for one in mapped if one is not None]
        indptr = rows.indptr.view()
        indptr.flags.writeable = False
        try:
            assert mapped[0] is not None
            yield indptr, mapped[0][0], None if mapped[1] is None else mapped[1][0]
        finally:
            self._mapped = []

    def give_back(self) -> None:
        """Give mapped pages back to the system if this process has much memory; they are read again when needed."""
        if hasattr(mmap, "MADV_DONTNEED") and self._mapped and resident_bytes() > self.room.limit:
            for pages in self._mapped:
                pages.madvise(mmap.MADV_DONTNEED)

    def forget(self, *names: str) -> None:
        """Remove arrays."""
        for name in names:
            (self.folder.path / "parts" / f"structure-{name}.npy").unlink(missing_ok=True)
            for file in (name, *(f"{name}-{part}" for part in _PARTS)):
                self._path(file).unlink(missing_ok=True)

    def _path(self, name: str) -> Any:
        return self.folder.path / "work" / f"structure-{name}.npy"

    def _opened(self, name: str) -> FileArray:
        return self.folder.opened(f"structure-{name}", work=True)

    def _mark(self, name: str, column_bytes: int = 0) -> None:
        """Note that an array is complete; of a matrix in tiles with the bytes that decide their width."""
        self.folder.log(f"structure-{name}", 1).mark(0, column_bytes)


def _mapped(array: FileArray) -> tuple[np.ndarray, mmap.mmap]:
    """An array mapped into memory, read-only, and the pages."""
    with array.path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(array) == 0:
        return np.frombuffer(b"", array.dtype), pages
    return np.frombuffer(pages, array.dtype, len(array), array.start), pages


def write_structure(store: Store, folder: RunFolder, job: NodeJob, room: StructureRoom) -> dict[str, FileArray]:
    """The structural columns of a store in files, by kind; those that are not there are computed."""
    assert job.structure is not None
    storage, kinds = FileStorage(folder, room), job.structure.kinds
    if not all(map(storage.has, kinds)):
        with costing(job.progress, "structure", 1.0):
            if set(kinds) <= BY_ROWS:
                _write_columns(store, store, job, storage)
            else:
                _write_columns(store, loaded_graph(store), job, storage)
        storage.forget("both-ways")
    return {kind: folder.opened(f"structure-{kind}", work=True) for kind in kinds}


def _write_columns(store: Store, graph: Any, job: NodeJob, storage: FileStorage) -> None:
    """Write the columns of every kind that is missing, from the store or from its graph in memory."""
    assert job.structure is not None
    keys, fitted = store_keys(store), job.fitted_structure
    in_files = storage if graph is store else None
    for k, kind in enumerate(job.structure.kinds):
        if storage.has(kind):
            continue
        settings = replace(job.structure, columns=kind)
        if fitted is None:
            assert job.words is not None
            width = structure_width(store, job)
            options: dict[str, Any] = {"width": width, "seed": job.words[0], "n_jobs": job.n_jobs, "storage": in_files}
            learned, columns = fit_structure(settings, graph, keys, **options)
        else:
            learned = StructureMap(settings, fitted.width, fitted.seed, fitted.keys, fitted.factors[k : k + 1])
            columns = learned.columns(graph, keys, job.n_jobs, in_files)
        if in_files is None:
            for part, array in () if learned.factors[0] is None else learned.factors[0]._asdict().items():
                storage.keep(f"{kind}-{part}", array)
            storage.keep(kind, columns[kind])


def learned_structure(store: Store, folder: RunFolder, job: NodeJob) -> StructureMap | None:
    """What the structural columns learned, from the files of the run."""
    if job.structure is None or job.fitted_structure is not None:
        return job.fitted_structure
    assert job.words is not None

    def factors(kind: str) -> Factors:
        return Factors(*(folder.opened(f"structure-{kind}-{part}", work=True)[:] for part in Factors._fields))

    learned = tuple(factors(kind) if kind in OPERATORS else None for kind in job.structure.kinds)
    return StructureMap(job.structure, structure_width(store, job), job.words[0], store_keys(store), learned)


def structure_width(store: Store, job: NodeJob) -> int:
    """The columns that tell nodes apart."""
    assert job.structure is not None
    return job.structure.n_columns(job.stack.layer.dim, features=store.features is not None)


def store_keys(store: Store) -> np.ndarray:
    """The keys of the nodes of a store, read by parts."""
    ids = store.ids
    if ids is None:
        return node_keys(None, store.n_nodes)
    parts = row_blocks(store.n_nodes, _ID_ROWS)
    return np.concatenate([node_keys(ids[rows], rows.stop - rows.start) for rows in parts])
