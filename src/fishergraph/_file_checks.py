"""The door for files: what a path must be before anything is read from it or written to it, and safe writing."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISREG: "a file",
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}
MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "npz or zip", b"\x1f\x8b": "gz", b"<": "HTML or XML"}


def check_suffix(path: Path, suffixes: Iterable[str]) -> str:
    """The suffix of a file name, in lower case, out of the known ones."""
    known = list(suffixes)
    for suffix in sorted(known, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"a file name must end in {', '.join(known)}, got {path.name!r}; rename or convert the file.")


def check_regular(path: Path) -> None:
    """Raise unless a path leads to a regular file that may be read.

    It is not opened for that: opening a pipe waits for its writer.
    """
    try:
        kind = _kind(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"a file was expected at '{path}', got nothing there; check the path.") from None
    except OSError as error:
        reason = "symbolic links that lead in a circle" if error.errno == errno.ELOOP else error.strerror
        raise _same_kind(error)(f"a file was expected at '{path}', got {reason}; check the path.") from None
    except ValueError:
        raise ValueError(f"a path must not hold a null character, got {str(path)!r}; remove it.") from None
    if kind == "a folder":
        raise IsADirectoryError(f"a file was expected at '{path}', got a folder; name a file in it.")
    if kind != "a file":
        raise OSError(f"a file was expected at '{path}', got {kind}; copy its content to a file and name that.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"'{path}' must be readable, got a file that is not; change its rights.")


def check_readable(path: Path) -> bytes:
    """The first bytes of a regular file that can be read and is not empty."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise _same_kind(error)(f"'{path}' must be readable, got {error.strerror}; copy it elsewhere.") from None
    if not head:
        raise ValueError(f"data was expected in '{path}', got an empty file; write it again.")
    return head


def _kind(path: Path) -> str:
    """What a path leads to, in words."""
    mode = path.stat().st_mode
    return next((words for is_one, words in _KINDS.items() if is_one(mode)), "something that is no file")


def _same_kind(error: OSError) -> type[OSError]:
    return PermissionError if isinstance(error, PermissionError) else OSError


def check_folder(path: Path) -> None:
    """Raise if a file cannot be written at `path`."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"the output must be a file, got the folder '{path}'; name a file in it.")
    if os.path.exists(path) and _kind(path) != "a file":
        raise OSError(f"the output must be a file, got {_kind(path)} at '{path}'; choose another path.")
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


def check_text(path: Path, head: bytes, *, zipped: bool) -> None:
    """Raise if the first bytes of a file are not those of plain (or gzipped) text."""
    binary = b"\0" in head or head.lstrip().startswith(tuple(MAGIC))
    if head.startswith(b"\x1f\x8b") != zipped or (binary and not zipped):
        raise unreadable(path, head, "other bytes")


def unreadable(path: Path, head: bytes, reason: Any) -> ValueError:
    """The error for a file that is not what its name says; its first bytes may tell what it is instead."""
    looks = next((kind for magic, kind in MAGIC.items() if head.lstrip().startswith(magic)), None)
    other = looks and not any(kind.lower() in path.name.lower() for kind in looks.split(" or "))
    got = f"what looks like {looks}" if other else str(reason).split("\n")[0].rstrip(". ")
    return ValueError(f"'{path}' must be what its name says, got {got}; repair or rename it.")


# --- writing --------------------------------------------------------------------------------------------

SLOTS = 16  # parts of one file at once, by as many writers
_LOCKED, _HELD, _NO_LOCKS = range(3)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new path in the same folder, moved onto `path` at the end and removed if the work fails."""
    with replacing_all(path) as (part,), naming(path):
        yield part


@contextmanager
def replacing_all(*paths: Path) -> Iterator[list[Path]]:
    """New paths in the same folders, all of them moved onto `paths` at the end, and removed if the work fails.

    A part has a name that follows from its target, and its writer holds a lock on it. So the next call finds and
    removes what a killed one has left, and leaves alone what is still being written.
    """
    with ExitStack() as stack:
        parts = [stack.enter_context(_part(path)) for path in paths]
        yield parts
        _move(parts, paths)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in the errors of the system while it is written: they name no file, or a hidden one."""
    try:
        yield
    except OSError as error:
        part = str(error.filename or "").endswith(".part")
        if error.errno is None or not (error.filename is None or part):
            raise
        raise _same_kind(error)(
            f"'{path}' could not be written ({os.strerror(error.errno)}); make room, change its rights, or choose "
            "another path."
        ) from error


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    """A new, empty file beside `path`, locked until it is moved or removed."""
    with naming(path):
        part, handle = _claim(path)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _claim(path: Path) -> tuple[Path, int | None]:
    """The path of a new part and its lock, after the parts that dead writers left behind are removed."""
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]  # `path` may have the longest name there is
    claimed = None
    for slot in range(SLOTS):
        part = path.with_name(f".fishergraph-{digest}-{slot}.part")
        remove_dead(part)
        claimed = claimed or _create(part)
    return claimed or (path.with_name(f".fishergraph-{uuid.uuid4().hex}.part"), None)


def _create(part: Path) -> tuple[Path, int | None] | None:
    """A new file and its lock; None where another writer has it."""
    try:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return None
    locked = _lock(handle)
    if locked == _NO_LOCKS:
        os.close(handle)
        return part, None
    if locked == _HELD or not _is_at(handle, part):  # taken for a dead one before it was locked
        os.close(handle)
        return None
    return part, handle


def remove_dead(part: Path) -> None:
    """Remove a part that no writer holds."""
    try:
        handle = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # there is none, or it is not ours
        return
    try:
        if _lock(handle) == _LOCKED and _is_at(handle, part):
            part.unlink()
    finally:
        os.close(handle)


def _lock(handle: int) -> int:
    """Lock an open file without waiting: _LOCKED, _HELD by another, or _NO_LOCKS on this system."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _HELD
    except (ImportError, OSError):
        return _NO_LOCKS
    return _LOCKED


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _move(parts: Sequence[Path], paths: Sequence[Path]) -> None:
    """Move every part onto its path; where one cannot be moved, those before it are as they were."""
    with ExitStack() as kept, ExitStack() as moved:
        for part, path in zip(parts, paths, strict=True):
            with naming(path):
                bring_back = _keep(path, part.with_suffix(".old.part"), kept) if len(paths) > 1 else None
                os.replace(part, path)
            if bring_back is not None:
                moved.callback(bring_back)
        moved.pop_all()


def _keep(path: Path, old: Path, kept: ExitStack) -> Callable[[], Any]:
    """Keep what is at `path` under a second name until `kept` is closed; returns what brings it back."""
    old.unlink(missing_ok=True)
    kept.callback(old.unlink, missing_ok=True)
    try:
        os.link(path, old, follow_symlinks=False)
    except FileNotFoundError:
        return lambda: path.unlink(missing_ok=True)
    except OSError:  # a file system without links
        shutil.copy2(path, old, follow_symlinks=False)
    return lambda: os.replace(old, path)
