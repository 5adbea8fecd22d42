"""How each format of an embedding is written: functions that open a file and yield what writes a group of rows."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from fishergraph.io.arrow import CountedFile, table_writer
from fishergraph.io.embedding_file import RowIds, Target, ids_path
from fishergraph.io.files import naming, replacing, replacing_all
from fishergraph.io.folders import write_lance, write_zarr
from fishergraph.io.npz import SUFFIXES

Put = Callable[[slice, np.ndarray], Any]


def _counted(file: IO[bytes], target: Target) -> Any:
    return file if target.advance is None else CountedFile(file, target.suffix, target.advance)


@contextmanager
def table(target: Target) -> Iterator[Put]:
    """CSV, TSV and Parquet."""
    schema = target.schema
    with (
        replacing(target.path) as part,
        part.open("wb") as opened,
        table_writer(_counted(opened, target), target.suffix, schema) as write,
    ):
        yield lambda rows, values: write(pa.Table.from_batches([target.batch(rows, values, schema)]))


@contextmanager
def npz(target: Target) -> Iterator[Put]:
    """Arrays in an uncompressed zip file."""
    with (
        replacing(target.path) as part,
        part.open("wb") as opened,
        zipfile.ZipFile(_counted(opened, target), "w") as archive,
    ):
        with _member(archive, "ids") as stream:
            _write_ids(stream, target.ids, target.shape[0])
        with _member(archive, "names") as stream:
            npy.write_array(stream, np.array(target.names, dtype=np.str_), allow_pickle=False)
        with _member(archive, "x") as stream:
            _write_header(stream, target.shape, target.dtype)
            yield lambda rows, values: stream.write(_bytes(values))


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    return archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)


@contextmanager
def array(target: Target) -> Iterator[Put]:
    """A matrix in a .npy file, and the ids in another."""
    other = ids_path(target.path)
    with replacing_all(target.path, other) as (part, ids_part):
        with naming(other), ids_part.open("wb") as file:
            _write_ids(file, target.ids, target.shape[0])
        with naming(target.path), part.open("wb") as opened:
            file = _counted(opened, target)
            _write_header(file, target.shape, target.dtype)
            yield lambda rows, values: file.write(_bytes(values))


def _write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    entries = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, entries)


def _write_ids(file: Any, ids: RowIds, n_rows: int) -> None:
    dtype = ids.numpy_type
    _write_header(file, (n_rows,), dtype)
    for rows in ids.slices():
        file.write(_bytes(ids.as_numpy(rows, dtype)))


def _bytes(values: np.ndarray) -> memoryview:
    """The bytes of an array, without a copy if it is contiguous."""
    flat: Any = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return memoryview(flat)


FORMATS: dict[str, Callable[[Target], Any]] = {
    **dict.fromkeys(SUFFIXES, table),
    ".npz": npz,
    ".npy": array,
    ".lance": write_lance,
    ".zarr": write_zarr,
}
