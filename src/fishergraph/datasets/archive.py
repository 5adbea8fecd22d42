"""A folder or a zip file, seen alike: members are found by their path and read without being unpacked."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fishergraph._archive_checks import check_zip
from fishergraph._file_checks import check_readable, unreadable


class Members:
    """The files of a folder or of a zip file."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.archive: zipfile.ZipFile | None = None
        if not self.path.is_dir():
            head = check_readable(self.path)
            try:
                self.archive = zipfile.ZipFile(self.path)
                check_zip(self.archive)
            except Exception as error:  # a damaged list of members can fail in any way
                self.__exit__()
                raise unreadable(self.path, head, error) from error

    def __enter__(self) -> Members:
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.archive is not None:
            self.archive.close()

    def find(self, *names: str) -> str | None:
        """The member that has one of these paths, the first that is there, or None.

        The paths begin at the root, or in the one folder that the root has.
        """
        for name in names:
            if self.archive is not None:
                found = [m for m in self.archive.namelist() if m == name or m.endswith("/" + name)]
            else:
                found = [
                    (base / name).relative_to(self.path).as_posix() for base in self._bases() if (base / name).is_file()
                ]
            if found:
                return min(found, key=lambda member: (member.count("/"), member))
        return None

    def _bases(self) -> list[Path]:
        folders = [path for path in self.path.iterdir() if path.is_dir()]
        return [self.path, *folders] if len(folders) == 1 else [self.path]

    def need(self, *names: str) -> str:
        """The member that `find` finds; an error that names it where there is none."""
        member = self.find(*names)
        if member is None:
            raise FileNotFoundError(
                f"'{self.path}' must hold a file {names[0]}, got none; it is incomplete: download or copy it again."
            )
        return member

    def size(self, member: str) -> int:
        """The bytes of a member; those of a zip file are counted unpacked."""
        if self.archive is None:
            return (self.path / member).stat().st_size
        return self.archive.getinfo(member).file_size

    def where(self, member: str) -> str:
        """The path of a member, for people."""
        return f"{self.path}/{member}"

    @contextmanager
    def open(self, member: str, *, seekable: bool = False) -> Iterator[IO[bytes]]:
        """The bytes of a member; those of a zip file are copied to a temporary file where they must be seekable."""
        if self.archive is None:
            with (self.path / member).open("rb") as stream:
                yield stream
        elif not seekable:
            with self.archive.open(member) as stream:
                yield stream
        else:
            with tempfile.TemporaryFile() as copy:
                self._unpack(member, copy)
                yield copy

    def _unpack(self, member: str, copy: IO[bytes]) -> None:
        """Copy the bytes of a member of the zip file."""
        assert self.archive is not None
        try:
            with self.archive.open(member) as stream:
                shutil.copyfileobj(stream, copy, 1 << 20)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"'{self.where(member)}' must be a whole member of a zip file, but it cannot be unpacked ({error}); "
                "download or copy the file again."
            ) from error
        copy.seek(0)
