"""A folder or a zip file behind one interface; members of a zip file are read without unpacking it."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fishergraph._errors import FileFormatError
from fishergraph.io.archives import check_zip
from fishergraph.io.files import check_readable, unreadable


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
        """The member at the first of these paths that exists, or None.

        Paths start at the root, or in the only folder of the root.
        """
        for name in names:
            if self.archive is not None:
                matches = [m for m in self.archive.namelist() if m == name or m.endswith("/" + name)]
            else:
                paths = (base / name for base in self._bases())
                matches = [path.relative_to(self.path).as_posix() for path in paths if path.is_file()]
            if matches:
                return min(matches, key=lambda member: (member.count("/"), member))
        return None

    def _bases(self) -> list[Path]:
        folders = [path for path in self.path.iterdir() if path.is_dir()]
        return [self.path, *folders] if len(folders) == 1 else [self.path]

    def need(self, *names: str) -> str:
        """The member that `find` returns; raises if there is none."""
        member = self.find(*names)
        if member is None:
            raise FileNotFoundError(
                f"'{self.path}' has no file {names[0]}, so it is incomplete; download or copy it again."
            )
        return member

    def size(self, member: str) -> int:
        """The size of a member in bytes, unpacked."""
        if self.archive is None:
            return (self.path / member).stat().st_size
        return self.archive.getinfo(member).file_size

    def where(self, member: str) -> str:
        """The path of a member, for messages."""
        return f"{self.path}/{member}"

    @contextmanager
    def open(self, member: str, *, seekable: bool = False) -> Iterator[IO[bytes]]:
        """The bytes of a member; a seekable stream of a zip file is a temporary copy."""
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
            raise FileFormatError(path=self.where(member), reason=f"it cannot be unpacked ({error})") from error
        copy.seek(0)
