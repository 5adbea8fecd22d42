"""`RunFolder`: the files of one run over a store, from which a killed run goes on.

    embeddings/NAME/
      run.json               what is computed: parameters, seed, graph, versions, processor
      learned.safetensors    maps and anchors, written after each stage has learned
      psi0.npy, psi1.npy, …  the values of every stage, a row per node
      walk.npy, smooth.npy, factors.npy, local.npy
      parts/psi0.npy, …      for every part of a stage, whether it is written, and its checksum
      work/                  arrays between stages, removed at the end
      manifest.json          shapes and checksums, once everything is there
      model.safetensors      the fitted model

A part is a few row blocks. It is marked after its rows are on the disk, so a run that is killed at any moment loses the
parts that were being written and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import FileFormatError, InputError, shown
from fishergraph.estimators.state import write_learned
from fishergraph.io.files import naming
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.folders import read_json
from fishergraph.scale.store import write_json
from fishergraph.stack import Stack
from fishergraph.structural import StructureMap

_DONE = np.uint64(1 << 32)
_CHECKSUM = np.uint64((1 << 32) - 1)

# The entries of run.json that are compared before the parameters.
_FIRST = ("format", "version")
# What an entry of run.json is called in an error, and what to do if it differs, beside another name.
_WORDS = {
    "format": ("the work", ""),
    "store": ("the graph with its features", "ingest the same files again"),
    "cpu": ("the processor with its numerical libraries", "continue on the same kind of machine"),
    "fishergraph": ("the version of fishergraph", "install that version"),
    "words": ("random_state", "restore it"),
    "weights": ("block_weights", "restore them"),
    "model": ("the model", "use the same one"),
}


class PartLog:
    """Which parts of an array are written, with their checksums.

    Parameters
    ----------
    array : FileArray
        A number for each part: its CRC-32 and a bit that says that it is written.
    """

    def __init__(self, array: FileArray):
        self._array = array
        self._entries = array[:]

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return len(self._entries)

    @property
    def missing(self) -> list[int]:
        """The parts that are not written."""
        return np.flatnonzero(self._entries < _DONE).tolist()

    @property
    def is_complete(self) -> bool:
        """Whether all parts are written."""
        return bool((self._entries >= _DONE).all())

    def checksum(self, part: int) -> int:
        """The CRC-32 of a part that is written."""
        return int(self._entries[part] & _CHECKSUM)

    def mark(self, part: int, checksum: int) -> None:
        """Note that a part is on the disk."""
        self._entries[part] = _DONE | np.uint64(checksum)
        self._array[part : part + 1] = self._entries[part : part + 1]

    def clear(self, parts: Any) -> None:
        """Note that parts must be written again."""
        self._entries[parts] = 0
        self._array[:] = self._entries


class RunFolder:
    """The folder of a run.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path):
        self.path = path

    @classmethod
    def begin(cls, path: Path, identity: Mapping[str, Any], *, overwrite: bool) -> RunFolder:
        """Return the folder of a new run, or of one that was begun with the same settings on the same input.

        Parameters
        ----------
        path : Path
            The folder.
        identity : mapping
            All that the values depend on, as JSON.
        overwrite : bool
            Remove a run with other settings. One without a finished part is removed in any case.

        Returns
        -------
        RunFolder
            The folder.
        """
        folder, is_stale = cls(path), overwrite and path.exists()
        if (path / "run.json").is_file():
            try:
                _check_same(path, read_json(path / "run.json"), json.loads(json.dumps(identity)))
                return folder
            except InputError:
                if folder.has_values and not overwrite:
                    raise
                is_stale = True
        if is_stale:
            with folder.locked():
                shutil.rmtree(path)
        with naming(path):
            path.mkdir(parents=True, exist_ok=True)
            write_json(path / "run.json", identity)
        return folder

    @property
    def identity(self) -> dict[str, Any]:
        """What the run computes."""
        return read_json(self.path / "run.json")

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended."""
        return (self.path / "manifest.json").is_file()

    @property
    def has_values(self) -> bool:
        """Whether a part of the run is on the disk."""
        logs = (PartLog(FileArray(path)) for path in (self.path / "parts").glob("*.npy"))
        return self.is_complete or any(len(log.missing) < log.n_parts for log in logs)

    def array(self, name: str, shape: tuple[int, ...], dtype: Any, *, work: bool = False) -> FileArray:
        """Return an array of the run, created unless it is there."""
        path = self._array_path(name, work=work)
        if path.is_file():
            array = FileArray(path, writable=True)
            if array.shape == tuple(shape) and array.dtype == np.dtype(dtype):
                return array
            raise FileFormatError(
                path=path, reason=f"it has shape {array.shape}, not {shape}", advice="start the run again"
            )
        return _create(path, shape, dtype)

    def opened(self, name: str, *, work: bool = False) -> FileArray:
        """Return an array of the run that is there."""
        return FileArray(self._array_path(name, work=work))

    def has(self, name: str, *, work: bool = False) -> bool:
        """Whether an array of the run is there."""
        return self._array_path(name, work=work).is_file()

    def _array_path(self, name: str, *, work: bool) -> Path:
        return (self.path / "work" if work else self.path) / f"{name}.npy"

    @property
    def learned(self) -> Path:
        """The file of what was learned."""
        return self.path / "learned.safetensors"

    def save_learned(self, stack: Stack, structure: StructureMap | None) -> None:
        """Write what was learned so far."""
        write_learned(self.learned, stack, structure)

    def existing_log(self, name: str) -> PartLog:
        """Return the log of an array that was begun."""
        return PartLog(FileArray(self.path / "parts" / f"{name}.npy"))

    def log(self, name: str, n_parts: int) -> PartLog:
        """Return the log of an array's parts, a new one unless it is there."""
        path = self.path / "parts" / f"{name}.npy"
        if path.is_file():
            array = FileArray(path, writable=True)
            if array.shape == (n_parts,):
                return PartLog(array)
            raise FileFormatError(path=path, reason=f"it is not of {n_parts} parts", advice="start the run again")
        return PartLog(_create(path, (n_parts,), np.uint64))

    def forget_unless(self, name: str, shape: tuple[int, ...]) -> None:
        """Remove an array between stages that has another shape, since a run before had another amount of memory."""
        if self.has(name, work=True) and self.opened(name, work=True).shape != tuple(shape):
            (self.path / "parts" / f"{name}.npy").unlink(missing_ok=True)
            self._array_path(name, work=True).unlink()

    def remove_work(self) -> None:
        """Remove the arrays between stages."""
        shutil.rmtree(self.path / "work", ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process write to the folder inside."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(handle, self.path)
            yield
        finally:
            os.close(handle)


class BegunFolder(RunFolder):
    """The folder of a run as workers see it: all arrays were created before, and others write to them too."""

    def array(self, name: str, shape: tuple[int, ...], dtype: Any, *, work: bool = False) -> FileArray:
        """Return an array of the run that is there, to be written."""
        array = FileArray(self._array_path(name, work=work), writable=True, shared=True)
        if array.shape != tuple(shape):
            reason = f"it has shape {array.shape}, not {shape}"
            raise FileFormatError(path=array.path, reason=reason, advice="start the run again")
        return array

    def log(self, name: str, n_parts: int) -> PartLog:
        """Return the log of an array that was begun."""
        return self.existing_log(name)

    def forget_unless(self, name: str, shape: tuple[int, ...]) -> None:
        """Nothing: arrays are as they were created."""


def _create(path: Path, shape: tuple[int, ...], dtype: Any) -> FileArray:
    """A new array of zeros, which is there whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_suffix(".new")
    FileArray.create(hidden, shape, dtype)
    os.replace(hidden, path)
    return FileArray(path, writable=True)


def _lock(handle: int, path: Path) -> None:
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        expected, advice = "be written by one process at a time", "wait for the other one, or choose another name"
        raise InputError(
            parameter="name",
            value=path.name,
            expected=expected,
            got=f"{path.name!r}, which another process writes",
            advice=advice,
        ) from None
    except (ImportError, OSError):  # a system or a file system without locks
        return


def _check_same(path: Path, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise if a run was begun with other settings or on other input."""
    settings: dict[str, Any] = {"overwrite": True}
    before, after = found.get("parameters", {}), asked.get("parameters", {})
    changed = [key for key in asked if key != "parameters" and found.get(key) != asked[key]]
    if not set(changed) & set(_FIRST):
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                expected = f"be {shown(before.get(name))}, with which the run '{path.name}' was begun"
                advice = "restore it, choose another name"
                raise InputError(
                    parameter=name, value=after.get(name), expected=expected, advice=advice, settings=settings
                )
    if not changed:
        return
    key = next((key for key in _FIRST if key in changed), changed[0])
    if key == "words" and found.get(key) is None:
        expected, got = "be that of a fit", f"'{path.name}', which transform or an update made"
        advice = "call transform with its model, choose another one"
        raise InputError(
            parameter="name", value=path.name, expected=expected, got=got, advice=advice, settings=settings
        )
    parameter, advice = _WORDS.get(key, (key, ""))
    raise InputError(
        parameter=parameter,
        value=asked[key],
        expected=f"be as when the run '{path.name}' was begun",
        got="another",
        advice=", ".join(filter(None, (advice, "choose another name"))),
        settings=settings,
    )


def parts_of(blocks: list[slice], row_bytes: int, n_bytes: int) -> list[list[slice]]:
    """Consecutive row blocks, in parts of about so many bytes."""
    parts: list[list[slice]] = []
    size = n_bytes
    for rows in blocks:
        if size >= n_bytes:
            parts.append([])
            size = 0
        parts[-1].append(rows)
        size += (rows.stop - rows.start) * row_bytes
    return parts
