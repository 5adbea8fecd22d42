"""`StoreWriter`: a new store, array by array, which appears when it is complete."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from fishergraph._errors import InputError
from fishergraph._version import __version__
from fishergraph.io.files import as_path, naming
from fishergraph.scale.arrays import FileArray, Growing
from fishergraph.scale.folders import ASIDE, HIDDEN, remove_left
from fishergraph.scale.store import FORMAT, FORMAT_VERSION, MANIFEST, array_entry, write_json

_TAKEN = "choose another folder, or overwrite this one"


class StoreWriter:
    """A new store, which appears under its name when it is complete.

    Use it in a `with` statement. The folder has a hidden name until then. It is removed if the work fails. That of a
    killed writer is removed by the next one.

    Parameters
    ----------
    path : path
        The folder of the store. It must not exist, unless `overwrite`.
    overwrite : bool, default=False
        Replace the store that is there, with its embeddings.

    See Also
    --------
    write_store : Make a store from arrays in memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from fishergraph.scale import Store, StoreWriter
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "path"
    >>> with StoreWriter(path) as writer:
    ...     writer.array("indptr", (4,), np.int64)[:] = [0, 1, 3, 4]
    ...     writer.array("indices", (4,), np.int32)[:] = [1, 0, 2, 1]
    >>> Store(path)
    Store(3 nodes, 4 edges)
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False):
        self.path, self.overwrite = as_path(path, "store"), overwrite
        self.facts: dict[str, Any] = {}
        self.feature_names: list[str] | None = None
        self.n_features: int | None = None
        self.advance: Callable[[int], Any] = lambda n: None
        self._arrays: dict[str, FileArray] = {}
        self._growing: dict[str, Growing] = {}

    def __enter__(self) -> Self:
        path = self.path
        if path.exists() and self.overwrite and not (path / MANIFEST).is_file():
            raise FileExistsError(f"'{path}' is not a store and is not overwritten; choose another path.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"the folder of '{path}' does not exist; create '{path.parent}' first.")
        remove_left(path)
        if path.exists() and not self.overwrite:
            raise InputError(parameter="store", value=str(path), expected="not exist yet", advice=_TAKEN)
        self.folder = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}{HIDDEN}")
        with naming(path):
            self.folder.mkdir()
        return self

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> FileArray:
        """Return a new array of the store.

        Parameters
        ----------
        name : str
            Its name, of those in the description of the module.
        shape : tuple of int
            Its shape.
        dtype : dtype
            Its dtype.

        Returns
        -------
        FileArray
            The array, to be filled.
        """
        self._arrays[name] = FileArray.create(self.folder / f"{name}.npy", shape, dtype)
        return self._arrays[name]

    def growing(self, name: str, dtype: Any, row_shape: tuple[int, ...] = ()) -> Growing:
        """Return a new array of the store, to which rows are appended.

        Parameters
        ----------
        name : str
            Its name, of those in the description of the module.
        dtype : dtype
            Its dtype.
        row_shape : tuple of int, default=()
            The shape of a row.

        Returns
        -------
        Growing
            The array, which ends with its last row.
        """
        self._growing[name] = Growing(self.folder / f"{name}.npy", dtype, row_shape)
        return self._growing[name]

    def scratch(self, name: str) -> Path:
        """Return the path of a file that is removed with the writer.

        Parameters
        ----------
        name : str
            The name of the file.

        Returns
        -------
        Path
            A path in the folder of the store.
        """
        (self.folder / "scratch").mkdir(exist_ok=True)
        return self.folder / "scratch" / name

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self) -> None:
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)
        entries = {}
        self._arrays |= {name: array.finish() for name, array in self._growing.items()}
        for name, array in self._arrays.items():
            array.sync()
            entries[name] = array_entry(array, self.advance)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "fishergraph": __version__,
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "facts": self.facts,
            "arrays": entries,
        }
        write_json(self.folder / MANIFEST, manifest)
        with naming(self.path):
            if self.path.exists():
                old = self.folder.with_suffix(ASIDE)
                os.replace(self.path, old)
                os.replace(self.folder, self.path)
                shutil.rmtree(old, ignore_errors=True)
            else:
                os.replace(self.folder, self.path)
