"""Paths and files: validation before reading and writing, and files that appear complete or not at all."""

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
from typing import IO, Any

from fishergraph._errors import FileFormatError, InputError, InputTypeError

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
    """The suffix of a file name, in lower case, one of `suffixes`."""
    suffixes = list(suffixes)
    for suffix in sorted(suffixes, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return suffix
    expected, advice = f"end in {', '.join(suffixes)}", "rename or convert the file"
    raise InputError(parameter="a file name", value=path.name, expected=expected, advice=advice)


def check_regular(path: Path) -> None:
    """Raise unless a path leads to a regular, readable file.

    The file is not opened: opening a pipe waits for its writer.
    """
    try:
        kind = _kind(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"'{path}' does not exist; check the path.") from None
    except OSError as error:
        reason = "its symbolic links form a cycle" if error.errno == errno.ELOOP else error.strerror
        raise _same_kind(error)(f"'{path}' cannot be read ({reason}); check the path.") from None
    except ValueError:
        raise InputError(parameter="a path", value=str(path), expected="have no null character") from None
    if kind == "a folder":
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it.")
    if kind != "a file":
        raise OSError(f"'{path}' is {kind}; copy its content to a file and name that.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"'{path}' is not readable; change its permissions.")


def check_readable(path: Path) -> bytes:
    """The first bytes of a regular file that can be read and is not empty."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise _same_kind(error)(f"'{path}' cannot be read ({error.strerror}); copy it elsewhere.") from None
    if not head:
        raise FileFormatError(path=path, reason="it is empty", advice="write it again")
    return head


def _kind(path: Path) -> str:
    """What a path leads to, in words."""
    mode = path.stat().st_mode
    return next((words for is_one, words in _KINDS.items() if is_one(mode)), "not a file")


def _same_kind(error: OSError) -> type[OSError]:
    return PermissionError if isinstance(error, PermissionError) else OSError


def as_path(path: Any, name: str) -> Path:
    """`path` as a path; `name` is the parameter that holds it."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(parameter=name, value=path, expected="be a path")
    return Path(path)


def check_folder(path: Path) -> None:
    """Raise if a file cannot be written at `path`."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"the output '{path}' is a folder; name a file in it.")
    if os.path.exists(path) and _kind(path) != "a file":
        raise OSError(f"the output '{path}' is {_kind(path)}; choose another path.")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"the folder of '{path}' does not exist; create '{path.parent}' first.")
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OSError(
            f"the file name '{path.name}' cannot be written ({error.strerror}); choose a shorter one."
        ) from None
    try:
        writable = os.access(path.parent, os.W_OK)
        tempfile.TemporaryFile(dir=path.parent).close()  # some file systems answer yes and then refuse
    except OSError:
        writable = False
    if not writable:
        raise PermissionError(f"the folder '{path.parent}' is not writable; choose another.")


def check_text(path: Path, head: bytes, *, zipped: bool) -> None:
    """Raise if the first bytes of a file are not those of plain (or gzipped) text."""
    binary = b"\0" in head or head.lstrip().startswith(tuple(MAGIC))
    if head.startswith(b"\x1f\x8b") != zipped or (binary and not zipped):
        raise unreadable(path, head, "it is not text")


def unreadable(path: Path, head: bytes, reason: str | Exception) -> FileFormatError:
    """The error for a file that is not what its name says; its first bytes may tell what it is.

    `reason` is a phrase, a `FileFormatError` without path, or another error, whose text is quoted.
    """
    if isinstance(reason, FileFormatError):
        return reason.revised(path=path)
    if isinstance(reason, UnicodeDecodeError):
        return not_utf8(path, f"byte {reason.object[reason.start]:#04x}")
    looks = next((kind for magic, kind in MAGIC.items() if head.lstrip().startswith(magic)), None)
    other = looks and not any(kind.lower() in path.name.lower() for kind in looks.split(" or "))
    phrase = f"its content looks like {looks}" if other else str(reason).split("\n")[0].rstrip(". ")
    return FileFormatError(path=path, reason=phrase, advice="repair or rename it")


def not_utf8(path: Path, where: str) -> FileFormatError:
    """The error for a file of text in another encoding; `where` names its first bad byte or column."""
    advice = "save it as UTF-8, for example with iconv -f latin1 -t utf-8"
    return FileFormatError(path=path, reason=f"its text is not UTF-8 ({where})", advice=advice)


Advance = Callable[[int], Any]  # is called with how much was read or written


def count_nothing(n: int) -> None:
    """The `advance` of somebody who does not count."""


class CountedReader:
    """An open file that calls `advance(n)` with the bytes that are read from it."""

    def __init__(self, file: IO[bytes], advance: Advance):
        self._file, self._advance = file, advance

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._advance(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


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

    The name of a part follows from its target, and its writer holds a lock on it. The next call removes the parts of a
    killed writer and leaves those that are still being written.
    """
    with ExitStack() as stack:
        parts = [stack.enter_context(_part(path)) for path in paths]
        yield parts
        _move(parts, paths)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, moved onto it at the end and removed if the work fails.

    A folder at `path` is removed once the new one is complete. Folders of killed writers are removed too.
    """
    with _part(path) as part, naming(path):
        _remove_dead_folders(path, part)
        folder, old = (part.with_suffix(suffix) for suffix in (".new", ".old"))
        folder.mkdir()
        try:
            yield folder
            if os.path.lexists(path):
                os.replace(path, old)
            try:
                os.replace(folder, path)
            except OSError:
                if os.path.lexists(old):
                    os.replace(old, path)
                raise
        finally:
            for left in (folder, old):
                shutil.rmtree(left, ignore_errors=True)


def _remove_dead_folders(path: Path, part: Path) -> None:
    """Remove the folders of writers of `path` that hold no part; the part of a living writer exists."""
    for left in path.parent.glob(f"{part.name.rpartition('-')[0]}-*.*"):
        if left.suffix in (".new", ".old") and (left.stem == part.stem or not left.with_suffix(".part").exists()):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in system errors during writing, which name no file or a hidden one."""
    try:
        yield
    except OSError as error:
        part = str(error.filename or "").endswith(".part")
        if error.errno is None or not (error.filename is None or part):
            raise
        raise _same_kind(error)(
            f"'{path}' could not be written ({os.strerror(error.errno)}); free some space, change its permissions, or "
            "choose another path."
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
    """The path of a new part and its lock; parts of dead writers are removed."""
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]  # `path` may have the longest possible name
    claimed = None
    for slot in range(SLOTS):
        part = path.with_name(f".fishergraph-{digest}-{slot}.part")
        remove_dead(part)
        claimed = claimed or _create(part)
    return claimed or (path.with_name(f".fishergraph-{uuid.uuid4().hex}.part"), None)


def _create(part: Path) -> tuple[Path, int | None] | None:
    """A new file and its lock; None if another writer has it."""
    try:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return None
    locked = _lock(handle)
    if locked == _NO_LOCKS:
        os.close(handle)
        return part, None
    if locked == _HELD or not _is_at(handle, part):  # removed as dead before it was locked
        os.close(handle)
        return None
    return part, handle


def remove_dead(part: Path) -> None:
    """Remove a part that no writer holds."""
    try:
        handle = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # it does not exist, or is not ours
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
    """Move every part onto its path; if one move fails, the earlier ones are undone."""
    with ExitStack() as kept, ExitStack() as moved:
        for part, path in zip(parts, paths, strict=True):
            with naming(path):
                restore = _keep(path, part.with_suffix(".old.part"), kept) if len(paths) > 1 else None
                os.replace(part, path)
            if restore is not None:
                moved.callback(restore)
        moved.pop_all()


def _keep(path: Path, old: Path, kept: ExitStack) -> Callable[[], Any]:
    """Keep the file at `path` under a second name until `kept` is closed; returns the function that restores it."""
    old.unlink(missing_ok=True)
    kept.callback(old.unlink, missing_ok=True)
    try:
        os.link(path, old, follow_symlinks=False)
    except FileNotFoundError:
        return lambda: path.unlink(missing_ok=True)
    except OSError:  # a file system without links
        shutil.copy2(path, old, follow_symlinks=False)
    return lambda: os.replace(old, path)
