"""Packed files: how much they may unpack to, and how much a header may declare, checked before memory is taken.

A file that unpacks to `UNPACKED_BYTES` or less is always read. A larger one may unpack to `UNPACK_RATIO` times its own
size, or as many times as the environment variable FISHERGRAPH_UNPACK_RATIO says.
"""

from __future__ import annotations

import gzip
import math
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from fishergraph._file_checks import check_readable, check_regular, unreadable

UNPACKED_BYTES = 1 << 28
UNPACK_RATIO = 500
RATIO_VARIABLE = "FISHERGRAPH_UNPACK_RATIO"
FREE_COUNT = 1 << 20  # columns or nodes that may be declared without anything in them
TABLE_COLUMNS = 1 << 17  # of a table, each of which takes some 10 kB while it is read
DEFLATE_RATIO = 1032  # the most that gzip and zip files can reach
_BLOCK, _BUFFER = 1 << 20, 1 << 18  # bytes


def unpack_limit(packed: int) -> int:
    """The bytes that a file of `packed` bytes may unpack to."""
    given = os.environ.get(RATIO_VARIABLE, "")
    if given and not (given.isdecimal() and int(given) > 0):
        raise ValueError(f"{RATIO_VARIABLE} must be a positive integer, got {given!r}; correct or remove it.")
    return max(UNPACKED_BYTES, packed * int(given or UNPACK_RATIO))


def _too_large(unpacked: int, packed: int) -> str:
    return (
        f"more than {unpacked:,} bytes packed into {packed:,} (to read it all the same, set {RATIO_VARIABLE} to more "
        f"than {UNPACK_RATIO})"
    )


def check_zip(archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo] | None = None) -> None:
    """Raise where the members of a zip file, all or those given, are encrypted or unpack to too much."""
    members = archive.infolist() if members is None else list(members)
    if any(member.flag_bits & 1 for member in members):
        raise ValueError("an encrypted file")
    stream: Any = archive.fp
    packed = stream.seek(0, os.SEEK_END)
    limit = unpack_limit(packed)
    # Reading stops at the declared size, so that the sum holds whatever the packed bytes are.
    if sum(member.file_size for member in members) > limit:
        raise ValueError(_too_large(limit, packed))


def check_npz(source: Path | IO[bytes], keys: Collection[str] | None = None) -> None:
    """Raise where a member of an npz file, any or one of `keys`, is no array of as many bytes as its header declares.

    The error is a reason, for the caller to put behind the name of the file.
    """
    with zipfile.ZipFile(source) as archive:
        members = [member for member in archive.infolist() if keys is None or _key(member) in keys]
        check_zip(archive, members)
        for member in members:
            with archive.open(member) as stream:
                shape, dtype = read_npy_header(stream, member)
                declared = stream.tell() + math.prod(shape) * dtype.itemsize
            if declared != member.file_size:
                raise ValueError(
                    f"{_key(member)!r} of shape {shape} and type {dtype} in {member.file_size:,} bytes instead of "
                    f"{declared:,}"
                )


def npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of an npz file, from their headers alone."""
    check_regular(path)
    with zipfile.ZipFile(path) as archive:
        members = {_key(member): member for member in archive.infolist()}
        shapes = {}
        for key, member in members.items():
            with archive.open(member) as stream:
                shapes[key] = read_npy_header(stream, member)[0]
    return shapes


def read_npy_header(stream: IO[bytes], member: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the type that the header of an array declares; pickled objects are refused."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        shape, _, dtype = readers[np.lib.format.read_magic(stream)](stream)
    except Exception:  # a header is parsed as Python, which has many ways to fail
        raise ValueError(f"{_key(member)!r}, which is no array of numbers or texts") from None
    if dtype.hasobject:
        raise ValueError(f"{_key(member)!r} as pickled objects, which are not read")
    empty = dtype.itemsize == 0 or 0 in shape
    if min(shape, default=0) < 0 or (empty and max(shape, default=0) > FREE_COUNT):
        raise ValueError(f"{_key(member)!r} of shape {shape} without content")
    return shape, dtype


def _key(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def check_gzip(path: Path) -> None:
    """Raise where a gzip file unpacks to too much; unpacks as little of it as will tell."""
    head = check_readable(path)
    packed, unpacked = path.stat().st_size, 0
    limit = unpack_limit(packed)
    try:
        with path.open("rb") as file, gzip.GzipFile(fileobj=file) as stream:
            # What is buffered counts as not yet unpacked.
            while unpacked + min(packed, packed - file.tell() + _BUFFER) * DEFLATE_RATIO > limit:
                block = stream.read(_BLOCK)
                if not block:
                    return
                unpacked += len(block)
                if unpacked > limit:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, head, error) from error
    if unpacked > limit:
        raise unreadable(path, b"", _too_large(limit, packed))


def check_parquet(path: Path) -> None:
    """Raise where a Parquet file declares more cells than a file of its size may unpack to, at 8 bytes each.

    The error is a reason, for the caller to put behind the name of the file.
    """
    import pyarrow.parquet as pq

    facts, packed = pq.read_metadata(path), path.stat().st_size
    if facts.num_rows * facts.num_columns * 8 > unpack_limit(packed):
        raise ValueError(_too_large(unpack_limit(packed), packed))


def check_width(n_columns: int, n_entries: int, what: str) -> None:
    """Raise where a sparse matrix declares many more columns than it has entries: what is fitted to them is dense."""
    if n_columns > max(FREE_COUNT, n_entries):
        raise ValueError(
            f"{what} must have at most {max(FREE_COUNT, n_entries):,} columns beside {n_entries:,} entries, got "
            f"{n_columns:,}; leave out columns without entries."
        )


def check_columns(n_columns: int, what: str) -> None:
    """Raise where a table has too many columns to be read or written."""
    if n_columns > TABLE_COLUMNS:
        raise ValueError(
            f"{what} must have at most {TABLE_COLUMNS:,} columns, got {n_columns:,}; use an npz file with a CSR matrix."
        )
