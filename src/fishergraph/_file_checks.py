"""The door for files: what a path must be before anything is read from it or written to it, and safe writing."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "npz or zip", b"\x1f\x8b": "gz", b"<": "HTML or XML"}


def check_suffix(path: Path, suffixes: Iterable[str]) -> str:
    """The suffix of a file name, in lower case, out of the known ones."""
    known = list(suffixes)
    for suffix in sorted(known, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"a file name must end in {', '.join(known)}, got {path.name!r}; rename or convert the file.")


def check_readable(path: Path) -> bytes:
    """The first bytes of a file that exists, is no folder and is not empty."""
    if not path.exists():
        raise FileNotFoundError(f"a file was expected at '{path}', got nothing there; check the path.")
    if path.is_dir():
        raise IsADirectoryError(f"a file was expected at '{path}', got a folder; name a file in it.")
    with path.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise ValueError(f"data was expected in '{path}', got an empty file; write it again.")
    return head


def check_folder(path: Path) -> None:
    """Raise if a file cannot be written at `path`."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"the output must be a file, got the folder '{path}'; name a file in it.")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"the folder of '{path}' must exist, got no '{path.parent}'; create it first.")
    _check_name(path)
    try:
        writable = os.access(path.parent, os.W_OK)
        tempfile.TemporaryFile(dir=path.parent).close()  # some file systems answer yes and then refuse
    except OSError:
        writable = False
    if not writable:
        raise PermissionError(f"the folder '{path.parent}' must be writable, got one that is not; choose another.")


def _check_name(path: Path) -> None:
    """Raise for a name that the file system does not take, such as one of too many letters."""
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OSError(
            f"a file must have a name that can be written, got '{path.name}' ({error.strerror}); choose a shorter one."
        ) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new path in the same folder, moved onto `path` at the end and removed if the work fails."""
    part = path.with_name(f".{uuid.uuid4().hex}.part")  # of its own length: `path` may have the longest name there is
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system that name no file, such as that of a full disk, name this one."""
    try:
        yield
    except OSError as error:
        if error.strerror is not None and error.filename is None:
            error.filename = str(path)
        raise


def check_text(path: Path, head: bytes, *, zipped: bool) -> None:
    """Raise if the first bytes of a file are not those of plain (or gzipped) text."""
    binary = b"\0" in head or head.lstrip().startswith(tuple(MAGIC))
    if head.startswith(b"\x1f\x8b") != zipped or (binary and not zipped):
        raise unreadable(path, head, "other bytes")


def unreadable(path: Path, head: bytes, reason: Any) -> ValueError:
    """The error for a file that is not what its name says; its first bytes may tell what it is instead."""
    looks = next((kind for magic, kind in MAGIC.items() if head.lstrip().startswith(magic)), None)
    other = looks and looks.split()[0].lower() not in path.name.lower()
    got = f"what looks like {looks}" if other else str(reason).split("\n")[0].rstrip(". ")
    return ValueError(f"'{path}' must be what its name says, got {got}; repair or rename it.")
