"""Files of arrays with a JSON header, in safetensors: models, and the checkpoints of a training. Never pickle."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph.io.files import check_folder, check_regular, replacing

FORMAT_VERSION = 2


class Kind(NamedTuple):
    """A kind of file: the name of its format, what people call it, and the function that writes it."""

    format: str
    noun: str
    writer: str


MODEL = Kind("fishergraph-model", "a model file", "save")


def write_file(path: str | Path, header: dict[str, Any], arrays: dict[str, np.ndarray], kind: Kind = MODEL) -> None:
    """Write the arrays and the header to `path`; the file appears whole or not at all."""
    path = Path(path)
    check_folder(path)
    text = json.dumps(header)
    metadata = {"format": kind.format, "format_version": str(FORMAT_VERSION), "model": text}
    metadata["checksum"] = _checksum(text, arrays)
    with replacing(path) as part, part.open("wb") as file:
        _write_safetensors(file, metadata, arrays)


def _write_safetensors(file: BinaryIO, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> None:
    """Write the format of safetensors without a copy of the arrays, which `safetensors.numpy.save` makes twice."""
    entries: dict[str, Any] = {"__metadata__": metadata}
    order, offset = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)), 0  # aligned
    for name in order:
        array = arrays[name]
        kind = "BOOL" if array.dtype.kind == "b" else f"{array.dtype.kind.upper()}{8 * array.dtype.itemsize}"  # "F32"
        place = [offset, offset + array.nbytes]
        entries[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": place}
        offset += array.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        array = arrays[name]
        array = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        file.write(array.reshape(-1).view(np.uint8).data)


def read_file(path: str | Path, kind: Kind = MODEL) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not os.path.lexists(path) or path.is_dir():
        raise FileNotFoundError(f"{kind.noun} is expected at {path}, got none; check the path.")
    check_regular(path)
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata, kind)
            arrays = _arrays(file, path, kind)
    except SafetensorError as error:
        raise foreign(path, f"a truncated or foreign file ({error})", kind) from None
    if metadata.get("checksum", "") not in ("", _checksum(metadata["model"], arrays)):
        raise foreign(path, "a damaged one, whose checksum differs", kind)
    try:
        header = json.loads(metadata["model"])
    except (ValueError, RecursionError) as error:
        raise foreign(path, f"one whose header cannot be read ({error})", kind) from None
    if not isinstance(header, dict):
        raise foreign(path, f"one whose header is a {type(header).__name__}", kind)
    return header, arrays


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    """A number that another header, or another name, type, shape or byte of an array would change."""
    found = zlib.crc32(header.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")  # of no axes too
        found = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode(), found)
        found = zlib.crc32(array.reshape(-1).view(np.uint8).data if array.size else b"", found)
    return f"{found:08x}"


def _arrays(file: Any, path: Path, kind: Kind) -> dict[str, np.ndarray]:
    """The arrays of a file, all of them finite numbers."""
    arrays = {}
    for name in file.keys():  # noqa: SIM118
        try:
            array = file.get_tensor(name)
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # a type of numbers that NumPy does not have
            raise foreign(path, f"one whose array {name!r} cannot be read ({error})", kind) from None
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise foreign(path, f"one whose array {name!r} does not hold finite numbers", kind)
        arrays[name] = array
    return arrays


@contextmanager
def reading_model(path: str | Path) -> Generator[None]:
    """Turn whatever goes wrong while a model is made of a file into a `FileFormatError` of that file."""
    try:
        yield
    except FileFormatError:
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise foreign(path, f"one with parts missing or unknown ({error})") from None
    except ValueError as error:  # its parts do not fit each other, or their values are not possible
        raise FileFormatError(f"{path} holds a model that cannot be used: {error}", path=path) from None


def only(entry: object, known: Iterable[str]) -> dict[str, Any]:
    """An object of the header; raises KeyError for a name in it that is not known."""
    if not isinstance(entry, dict):
        raise TypeError(f"{entry!r} instead of an object")
    unknown = set(entry) - set(known)
    if unknown:
        raise KeyError(min(unknown))
    return entry


def foreign(path: str | Path, got: str, kind: Kind = MODEL) -> FileFormatError:
    """The error for a file that is not what was expected."""
    return FileFormatError(
        f"{path} must be {kind.noun} written by {kind.writer}, got {got}; write it again.", path=path
    )


def _check_format(path: Path, metadata: dict[str, str], kind: Kind) -> None:
    version = metadata.get("format_version", "")
    counted = version.isascii() and version.isdecimal() and len(version) < 10
    if metadata.get("format") != kind.format or "model" not in metadata or not counted:
        raise foreign(path, "a safetensors file of another program or purpose", kind)
    if int(version) > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} must have format {FORMAT_VERSION} or older, got format {version}; upgrade fishergraph to read it.",
            path=path,
        )
    if int(version) < FORMAT_VERSION:
        raise FileFormatError(
            f"{path} must have format {FORMAT_VERSION}, got format {version}; fit the model again.",
            path=path,
        )
