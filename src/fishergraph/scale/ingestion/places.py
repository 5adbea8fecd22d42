"""Where files are: a path, a folder or a pattern of files, here or behind a URL of fsspec."""

from __future__ import annotations

import csv
import glob
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fishergraph._errors import FileFormatError, InputError, InputTypeError
from fishergraph._optional import require
from fishergraph.io.files import check_readable, check_regular, unreadable

_BLOCK = 2**24
_UNREADABLE = (
    *(pa.ArrowException, OSError, EOFError, ValueError, RuntimeError, KeyError),
    *(zlib.error, zipfile.BadZipFile, csv.Error),
)


@dataclass(frozen=True)
class Place:
    """A file: its path or URL, and its size in bytes; `system` is the file system of a URL."""

    path: str
    size: int
    system: Any = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2] if self.system is not None else Path(self.path).name

    @contextmanager
    def local(self, folder: Path) -> Iterator[Path]:
        """A file on this machine: the file itself, or a copy in a folder that is removed afterwards."""
        if self.system is None:
            yield Path(self.path)
            return
        copy = folder / f"copy_{self.name}"
        try:
            with self.system.open(self.path, "rb") as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, _BLOCK)
            yield copy
        finally:
            copy.unlink(missing_ok=True)


def is_url(path: Any) -> bool:
    """Whether a path is a URL, for fsspec."""
    return isinstance(path, str) and "://" in path


def find_files(path: str | os.PathLike, suffixes: tuple[str, ...], parameter: str) -> list[Place]:
    """The files of a path: itself; those in a folder with one of the suffixes; or those that a pattern matches."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(parameter=parameter, value=path, expected="be a path or a URL")
    if is_url(path):
        return _find_remote(str(path), suffixes)
    text = os.fspath(path)
    if os.path.isdir(text):
        names = [os.path.join(folder, name) for folder, _, names in os.walk(text) for name in names]
        return [_here(name) for name in _of_one_kind(text, names, suffixes)]
    if not os.path.lexists(text) and glob.has_magic(text):
        found = sorted(name for name in glob.glob(text, recursive=True) if os.path.isfile(name))
        if not found:
            raise FileNotFoundError(f"no file matches '{text}'; check the pattern.")
        return [_here(name) for name in found]
    check_regular(Path(text))
    return [_here(text)]


def _here(path: str) -> Place:
    return Place(path, os.stat(path).st_size)


def _find_remote(url: str, suffixes: tuple[str, ...]) -> list[Place]:
    """The files of a URL."""
    fsspec = require("fsspec", extra="cloud")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise InputError(
            parameter="a URL", value=url, expected="be of a file system that is installed", got=str(error)
        ) from error
    except ValueError as error:
        raise InputError(parameter="a URL", value=url, expected="be one that fsspec knows", got=str(error)) from error
    if glob.has_magic(path):
        names = sorted(name for name in system.glob(path) if system.isfile(name))
    elif system.isdir(path):
        names = _of_one_kind(url, system.find(path), suffixes)
    else:
        names = [path] if system.exists(path) else []
    if not names:
        raise FileNotFoundError(f"'{url}' does not exist; check the URL.")
    return [Place(name, int(system.size(name) or 0), system) for name in names]


def _of_one_kind(folder: str, names: list[str], suffixes: tuple[str, ...]) -> list[str]:
    """The files of a folder that have a suffix, all the same; hidden files and markers do not count."""
    plain = sorted(name for name in names if not os.path.basename(name).startswith((".", "_")))
    found = {suffix: [name for name in plain if name.lower().endswith(suffix)] for suffix in suffixes}
    kinds = [suffix for suffix in suffixes if found[suffix]]
    if not kinds:
        reason = f"it holds no file that ends in {', '.join(suffixes)}"
        raise FileFormatError(path=folder, reason=reason, advice="name another folder, or the files")
    if len(kinds) > 1:
        reason = f"it holds files of several formats ({', '.join(kinds)})"
        raise FileFormatError(path=folder, reason=reason, advice=f"name one of them: {folder}/*{kinds[0]}")
    return found[kinds[0]]


@contextmanager
def explained(path: Path, name: str) -> Iterator[None]:
    """Errors in the block name the file, and what its first bytes look like."""
    head = check_readable(path)
    try:
        yield
    except (InputError, InputTypeError):
        raise
    except _UNREADABLE as error:
        raise unreadable(path, head, error).revised(path=name) from error
