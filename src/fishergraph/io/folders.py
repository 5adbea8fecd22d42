"""Embeddings in folders: Lance datasets and Zarr groups, written and read if their extras are installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fishergraph._errors import FileFormatError
from fishergraph._optional import require
from fishergraph.io.archives import check_cells, fixed_size
from fishergraph.io.files import check_folder, replacing_folder
from fishergraph.io.npz import Arrays, misfit
from fishergraph.io.parquet import BLOCK_ROWS, METADATA, row_slices

if TYPE_CHECKING:
    from fishergraph.io.embedding_file import Target

# Suffix → the extra, its module, and an entry that every such folder has.
_KINDS = {".lance": ("lance", "lance", "_versions"), ".zarr": ("zarr", "zarr", "zarr.json")}
_ID_CHUNK = 2**16  # ids of a chunk


def check_replaceable(path: Path, suffix: str) -> None:
    """Raise if a folder of this kind cannot be written at `path`; only one of the same kind is replaced."""
    extra, module, entry = _KINDS[suffix]
    require(module, extra=extra)
    if os.path.isdir(path) and not path.joinpath(entry).exists() and any(path.iterdir()):
        raise FileExistsError(f"the folder '{path}' is not a {suffix} folder and is not replaced; choose another path.")
    check_folder(path / "x" if os.path.isdir(path) else path)
    if os.path.isfile(path):
        raise FileExistsError(f"'{path}' is a file, and {suffix} is a folder; choose another path.")


def _opened(path: Path, suffix: str) -> Any:
    """The module that reads a folder, which is one of this kind."""
    extra, module, entry = _KINDS[suffix]
    if not path.is_dir():
        if path.exists():
            raise FileFormatError(path=path, reason=f"a {suffix} path must be a folder", advice="check the path")
        raise FileNotFoundError(f"'{path}' does not exist; check the path.")
    if not path.joinpath(entry).exists():
        raise FileFormatError(path=path, reason=f"it has no {entry}, so it is no {suffix} folder", advice="check it")
    return require(module, extra=extra)


def folder_bytes(path: Path) -> int:
    """The bytes of all files of a folder, or of a file."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# --- Lance ----------------------------------------------------------------------------------------------


@contextmanager
def write_lance(target: Target) -> Iterator[Callable[[slice, np.ndarray], Any]]:
    """A dataset of one fragment per group of rows."""
    module = require("lance", extra="lance")
    schema, fragments = target.schema, []
    with replacing_folder(target.path) as folder:

        def put(rows: slice, values: np.ndarray) -> None:
            batch = target.batch(rows, values, schema)
            fragments.append(module.LanceFragment.create(str(folder), pa.Table.from_batches([batch])))
            if target.advance is not None:
                target.advance(values.nbytes)

        yield put
        module.LanceDataset.commit(str(folder), module.LanceOperation.Overwrite(schema, fragments))


class LanceBlocks:
    """A Lance dataset, read by blocks of rows."""

    def __init__(self, path: Path):
        self._path, module = path, _opened(path, ".lance")
        with _explained(path):
            self._data = module.dataset(str(path))
            self.schema = self._data.schema
            n_rows = self._data.count_rows()
        check_cells(n_rows * sum(map(fixed_size, self.schema.types)), folder_bytes(path))
        self.blocks = row_slices(n_rows, BLOCK_ROWS)

    def __len__(self) -> int:
        return self.blocks[-1].stop if self.blocks else 0

    def read(self, k: int, names: Sequence[str]) -> pa.Table:
        """The columns of the k-th block."""
        rows = self.blocks[k]
        with _explained(self._path):
            return self._data.to_table(columns=list(names), offset=rows.start, limit=rows.stop - rows.start)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns."""
        with _explained(self._path):
            return self._data.to_table(columns=list(names))


# --- Zarr -----------------------------------------------------------------------------------------------


@contextmanager
def write_zarr(target: Target) -> Iterator[Callable[[slice, np.ndarray], Any]]:
    """A group of the arrays `ids` and `embedding`, uncompressed."""
    module = require("zarr", extra="zarr")
    (n_rows, n_columns), ids = target.shape, target.ids
    with replacing_folder(target.path) as folder:
        group = module.open_group(str(folder), mode="w", attributes={METADATA.decode(): target.about})
        kept = group.create_array("ids", shape=(n_rows,), dtype=str if ids.text else np.int64, chunks=(_ID_CHUNK,))
        for rows in ids.slices():
            kept[rows] = ids.as_numpy(rows)
        chunks = (min(max(n_rows, 1), target.group_rows), max(n_columns, 1))
        array = group.create_array("embedding", shape=target.shape, dtype=target.dtype, chunks=chunks, compressors=None)

        def put(rows: slice, values: np.ndarray) -> None:
            array[rows] = values
            if target.advance is not None:
                target.advance(values.nbytes)

        yield put


def read_zarr(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays `ids` and `x` of a Zarr group, and what it says of them."""
    module = _opened(path, ".zarr")
    with _explained(path):
        group = module.open_group(str(path), mode="r")
        names = set(group.array_keys())
        if "embedding" not in names:
            raise misfit(path, "an array 'embedding'", f"only {', '.join(sorted(names)) or 'no array'}")
        check_cells(sum(group[name].size for name in names), folder_bytes(path))
        arrays: Arrays = {"x": np.asarray(group["embedding"][:])}
        if "ids" in names:
            ids = np.asarray(group["ids"][:])
            arrays["ids"] = ids if ids.dtype.kind in "iuU" else ids.astype(object)
        about = dict(group.attrs).get(METADATA.decode(), {})
    return arrays, about if isinstance(about, dict) else {}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of the packages name the folder."""
    try:
        yield
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:  # the packages have errors of many types
        reason = str(error).split("\n")[0].rstrip(". ")
        raise FileFormatError(path=path, reason=f"it cannot be read ({reason})", advice="write it again") from error
