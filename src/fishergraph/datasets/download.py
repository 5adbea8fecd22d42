"""Data folders, and downloads into them: resumed after a broken connection, verified, and complete or absent.

During a download there is `name.part`, and `name.part.tag` with the server's tag of this version of the file. A
complete file has a `name.sha256`, in the format of `sha256sum`: the published checksum if the table has one, else that
of the first download, which later ones must match.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import IO, Any

from fishergraph._errors import FileFormatError
from fishergraph.datasets.sources import File, Source
from fishergraph.io.files import check_folder, check_regular, remove_dead, replacing

CHUNK = 1 << 20
ATTEMPTS = 5
TIMEOUT = 60  # seconds without a byte
Progress = Callable[[str, int | None], Any]  # (title, bytes) → a context manager with update(n)


# --- data folders ---------------------------------------------------------------------------------------


def data_folders(data_home: str | Path | None = None) -> list[Path]:
    """Return the folders to search, in order.

    Parameters
    ----------
    data_home : str or path, default=None
        The only folder, if it is given. By default that of the environment variable FISHERGRAPH_DATA, if it is set, and
        the cache folder.

    Returns
    -------
    list of paths
        The folders; downloads go into the last one.

    See Also
    --------
    cache_folder : The folder of downloads.

    Examples
    --------
    >>> from fishergraph.datasets import data_folders
    >>> data_folders("graphs")
    [PosixPath('graphs')]
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get("FISHERGRAPH_DATA")
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def cache_folder() -> Path:
    """Return the folder for downloads.

    Returns
    -------
    path
        `fishergraph` in $XDG_CACHE_HOME, else in ~/.cache.

    See Also
    --------
    data_folders : All folders that are searched.

    Examples
    --------
    >>> from fishergraph.datasets import cache_folder
    >>> cache_folder().name
    'fishergraph'
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fishergraph"


def existing_folders(data_home: str | Path | None = None) -> list[Path]:
    """The data folders that exist; one that is not readable is an error."""
    folders = []
    for folder in data_folders(data_home):
        try:
            exists = folder.exists()
            readable = not exists or (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK))
        except OSError:  # a parent folder is not readable
            exists, readable = True, False
        if not readable:
            raise PermissionError(
                f"the data folder '{folder}' is not a readable folder; change its permissions, or name another with "
                "FISHERGRAPH_DATA or data_home."
            )
        folders += [folder] if exists else []
    return folders


def npz_files(data_home: str | Path | None = None) -> dict[str, Path]:
    """The `.npz` files in the data folders, by name; the first folder takes precedence."""
    files = [path for folder in existing_folders(data_home) for path in sorted(folder.glob("*.npz"))]
    return {path.stem: path for path in reversed(files)}


def source_paths(source: Source, data_home: str | Path | None = None) -> Iterator[Path]:
    """The existing paths at which the data folders may have a dataset."""
    for folder in existing_folders(data_home):
        yield from (folder / path for path in source.paths if (folder / path).exists())


# --- one file -------------------------------------------------------------------------------------------


def fetch_file(file: File, folder: Path, verbose: Any = False) -> Path:
    """The path of the file in a data folder, downloaded if it does not exist, with the checksum of the table."""
    target = folder / file.path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        check_folder(target.parent / "file")
    except OSError as error:
        raise PermissionError(
            f"the data folder '{target.parent}' is not writable ({error.strerror or error}); name another as "
            "data_home (--data on the command line)."
        ) from error
    part = target.with_name(target.name + ".part")
    if os.path.lexists(target):
        check_file(target, file, again=True)
        remove_dead(part)
        if not part.exists():
            _tag(part).unlink(missing_ok=True)
        return target
    if os.path.lexists(part):
        check_regular(part)
    with part.open("ab") as stream, _alone(stream):
        if target.is_file():  # another process was quicker
            part.unlink(missing_ok=True)
            return target
        _complete(file, part, stream, verbose)
        if os.name == "nt":  # which cannot move an open file
            stream.close()
        _accept(file, part, target)
    return target


def check_file(path: Path, file: File | None = None, *, again: bool = False) -> None:
    """Raise, and rename the file, if its checksum is not that of the download or of the table.

    A file older than its checksum file is not read again, unless `again`; a file without one is the user's own and is
    not checked, unless the table has a checksum and `again` is true.
    """
    check_regular(path)
    note = _note(path)
    published = file.sha256 if file is not None and again else None
    if not note.is_file() and published is None:
        return
    if not again and note.is_file() and path.stat().st_mtime_ns <= note.stat().st_mtime_ns:
        return
    expected, got = published or _noted(path), _sha256(path)
    if got != expected:
        names = (f"{path.name}.old{'' if k == 1 else f'-{k}'}" for k in count(1))
        free = next(target for name in names if not os.path.lexists(target := path.with_name(name)))
        os.rename(path, free)
        reason = f"its SHA-256 checksum must be {expected}, got {got}, so it was changed or cut"
        advice = f"it was renamed to '{free}': download it again"
        raise FileFormatError(path=path, reason=reason, advice=advice)


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _noted(path: Path) -> str | None:
    """The checksum of the first download, if there was one."""
    words = _note(path).read_text(encoding="utf-8").split() if _note(path).is_file() else []
    return words[0] if words else None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _accept(file: File, part: Path, target: Path) -> None:
    """Move a complete part to its name and write its checksum; a part with another checksum is removed."""
    got = _sha256(part)
    _tag(part).unlink(missing_ok=True)
    expected = file.sha256 or _noted(target) or got
    if got != expected:
        part.unlink()
        advice = "try again later or put the published file into a data folder"
        if file.sha256 is None:
            advice += f", or remove '{_note(target)}' if the publisher has replaced the file"
        reason = f"its SHA-256 checksum must be {expected}, got {got}, so the download was removed"
        raise FileFormatError(path=file.url, reason=reason, advice=advice)
    with replacing(_note(target)) as note:  # before the file, so that it always has one
        note.write_text(f"{got}  {target.name}\n", encoding="utf-8")
    os.replace(part, target)


# --- one part -------------------------------------------------------------------------------------------


def _complete(file: File, part: Path, stream: IO[bytes], verbose: Any) -> None:
    """Download the rest of a part, again if the connection breaks; received bytes are kept."""
    reason: Any = "the connection broke"
    for _ in range(ATTEMPTS):
        before = stream.tell()
        try:
            if _download(file, part, stream, verbose):
                return
        except (OSError, ValueError, HTTPException) as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise OSError(
                    f"the disk of '{part.parent}' has no space for {part.stem} ({error.strerror}); free some space, or "  # type: ignore
                    "name another folder as data_home (--data on the command line)."
                ) from error
            reason = error
        if stream.tell() == before:
            break
    have = part.stat().st_size
    kept = f"; {have:,} bytes are kept, and the next call continues from there" if have else ""
    if not have:
        stream.close()
        part.unlink()
    raise ConnectionError(
        f"{file.url} could not be downloaded ({reason}){kept}; connect to the network, or put the file into a folder "
        "that FISHERGRAPH_DATA names."
    )


def _download(file: File, part: Path, stream: IO[bytes], verbose: Any) -> bool:
    """Request the rest of a part once; returns whether it is complete."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    have = stream.seek(0, os.SEEK_END)
    # The tag identifies the version; without one, only a published checksum can detect a mixture of two versions.
    tag = _tag(part).read_text(encoding="utf-8").strip() if _tag(part).is_file() else ""
    headers = {"User-Agent": "fishergraph", "Accept-Encoding": "identity"}
    if have and (tag or file.sha256):
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": tag} if tag else {})
    try:
        with urlopen(Request(file.url, headers=headers), timeout=TIMEOUT) as response:
            partial = getattr(response, "status", 200) == 206
            if partial and not _continues(response, stream.tell()):
                raise ValueError("the server sent another range than requested")
            if not partial:  # the complete file: it has changed, or the server does not support ranges
                stream.truncate(0)
                stream.seek(0)
            return _receive(file, part, stream, response, verbose)
    except HTTPError as error:
        if error.code != 416:
            raise ValueError(f"the server says {error.code} {error.reason}") from None
        if error.headers.get("Content-Range") == f"bytes */{stream.tell()}":  # complete already
            return True
        stream.truncate(0)  # these bytes belong to another file
        stream.seek(0)
        return False


def _tag(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _continues(response: Any, have: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _receive(file: File, part: Path, stream: IO[bytes], response: Any, verbose: Any) -> bool:
    """Append the response to the part; returns whether it is complete."""
    tag = response.headers.get("ETag", "")
    tag = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
    _tag(part).write_text(tag, encoding="utf-8")
    length = response.headers.get("Content-Length")
    total = stream.tell() + int(length) if length is not None else file.size
    if total is not None:
        free, needed = shutil.disk_usage(part.parent).free, total - stream.tell()
        if needed > free:
            raise OSError(errno.ENOSPC, f"{free:,} bytes free, {needed:,} needed")
    with _bar(verbose)(Path(file.path).name, total) as bar:
        bar.update(stream.tell())
        while chunk := response.read(CHUNK):
            stream.write(chunk)
            bar.update(len(chunk))
    stream.flush()
    return total is None or stream.tell() >= total


# --- folders, locks and progress ------------------------------------------------------------------------


@contextmanager
def _alone(stream: IO[bytes]) -> Iterator[None]:
    """Wait until no other process writes to this part, if the system has file locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(stream, fcntl.LOCK_EX)
    yield  # closing the stream releases the lock


def _bar(verbose: Any) -> Progress:
    """A progress bar of bytes; a callable `verbose` makes its own."""
    if callable(verbose):
        return verbose
    from tqdm.auto import tqdm

    return lambda title, total: tqdm(total=total, desc=title, unit="B", unit_scale=True, disable=not verbose)
