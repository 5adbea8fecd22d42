"""A change of a store that is done whole or not at all: prepared in a hidden folder, then put in place.

The folder is renamed to `update.commit` when everything in it is on the disk. From then on the change is made. If the
process is killed while the files are put in place, whoever opens the store next goes on: every step can be repeated.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from fishergraph._errors import FileFormatError
from fishergraph.io.files import naming
from fishergraph.scale.arrays import FileArray

COMMIT = "update.commit"
_STEPS = "commit.json"
_ROWS = 4096  # of a patch that are in memory together


class Commit:
    """The steps of a change, which are written to its folder.

    Parameters
    ----------
    folder : Path
        The hidden folder of the change.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.files: list[str] = []
        self.patches: list[dict[str, Any]] = []
        self.removed: list[str] = []

    def replace(self, *files: str) -> None:
        """Put files of the folder at the same paths of the store."""
        self.files += files

    def patch(self, array: str, rows: np.ndarray, places: np.ndarray, values: str, n_rows: int) -> None:
        """Write rows into an array of the store: `rows[k]` becomes row `places[k]` of the array `values`."""
        kept = Path(values).with_suffix("")
        for name, numbers in (("rows", rows), ("places", places)):
            np.save(self.folder / f"{kept}.{name}.npy", numbers.astype(np.int64))
        names = {"array": array, "values": values, "rows": f"{kept}.rows.npy", "places": f"{kept}.places.npy"}
        self.patches.append({**names, "n_rows": n_rows})

    def remove(self, *paths: str) -> None:
        """Remove files or folders of the store."""
        self.removed += paths

    def apply(self, store: Path) -> None:
        """Make the change."""
        steps = {"files": self.files, "patches": self.patches, "remove": self.removed}
        (self.folder / _STEPS).write_text(json.dumps(steps))
        for path in [
            *self.files,
            *(patch[key] for patch in self.patches for key in ("values", "rows", "places")),
            _STEPS,
        ]:
            _sync(self.folder / path)
        with naming(store):
            os.replace(self.folder, store / COMMIT)
            _sync(store)
        _put_in_place(store)


def finish_commit(store: Path) -> None:
    """Put the files of a change in place whose process was killed while it did so."""
    if (store / COMMIT / _STEPS).is_file():
        with naming(store), _waiting(store):
            _put_in_place(store)


def _put_in_place(store: Path) -> None:
    folder = store / COMMIT
    if not (folder / _STEPS).is_file():  # another process has done it
        return
    steps = json.loads((folder / _STEPS).read_text())
    for patch in steps["patches"]:
        _write_rows(store / patch["array"], patch["n_rows"], *(folder / patch[k] for k in ("rows", "places", "values")))
    for path in steps["files"]:
        if (folder / path).is_file():
            (store / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / path, store / path)
    for path in steps["remove"]:
        (shutil.rmtree if (store / path).is_dir() else _unlink)(store / path)
    _sync(store)
    (folder / _STEPS).unlink()  # nothing is left to repeat
    shutil.rmtree(folder, ignore_errors=True)


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


def _write_rows(path: Path, n_rows: int, rows_file: Path, places_file: Path, values_file: Path) -> None:
    """Write rows of an array of values into an array, which gets longer if it must."""
    array, values = FileArray(path, writable=True), FileArray(values_file)
    if len(array) < n_rows:
        array = grown(array, n_rows)
    rows, places = np.load(rows_file), np.load(places_file)
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        array.put(rows[part], values[places[part]])
    array.sync()


def grown(array: FileArray, n_rows: int) -> FileArray:
    """The array with more rows, zeros at first, in the same file."""
    shape = (n_rows, *array.shape[1:])
    header = {"descr": npy.dtype_to_descr(array.dtype), "fortran_order": False, "shape": tuple(map(int, shape))}
    buffer = io.BytesIO()
    npy.write_array_header_2_0(buffer, header)
    if buffer.tell() != array.start:
        raise FileFormatError(path=array.path, reason="its header has no room", advice="embed again")
    size = array.start + array.dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    handle = os.open(array.path, os.O_RDWR)
    try:
        with naming(array.path):
            os.ftruncate(handle, size)
            os.pwrite(handle, buffer.getvalue(), 0)
    finally:
        os.close(handle)
    return FileArray(array.path, writable=True)


@contextmanager
def _waiting(store: Path) -> Iterator[None]:
    """Wait until no other process changes the store."""
    handle = os.open(store / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        except (ImportError, OSError):  # a system or a file system without locks
            pass
        yield
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def linked(sources: Sequence[Path], folder: Path) -> None:
    """Make files appear in another folder too, without a copy."""
    for source in sources:
        try:
            os.link(source, folder / source.name)
        except OSError:  # a file system without links between names
            os.symlink(source.resolve(), folder / source.name)
