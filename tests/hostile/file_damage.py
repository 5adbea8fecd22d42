"""What can be wrong with a file: its bytes, its cells, its arrays, its columns, or what stands at its path."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

Rng = np.random.Generator
IDS = (
    "007",
    "7",
    "-0",
    "0",
    "0x1F",
    "31",
    "NA",
    "null",
    "nan",
    "None",
    "",
    "x\0",
    "x",
    " a",
    "a ",
    "é",
    "e\u0301",
    "\ufeffb",
    "a,b",
    "a\tb",
    'q"q',
    "l\nm",
    "r\rs",
    "1e5",
    "1.0",
    "true",
    "9223372036854775808",
    "1_000",
    "\u00a0",
    "\u202e",
    "😀",
    "long" * 300,
    "=1+1",
    "#c",
    "\\",
    "'",
    "\x1a",
    "\x85",
    "-9223372036854775809",
    '"',
    "inf",
)
NUMBERS = (
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-1e999",
    "1e-999",
    "0x1F",
    '"1,234"',
    '"1.234,5"',
    "1_000",
    "1e5",
    "+5",
    "--5",
    "٣",
    "1/2",
    "5%",
    "$5",
    "true",
    "",
    "  ",
    "NA",
    "1e308",
    "3.5e38",
    "16777217",
    "1700000000",
    "9007199254740993",
    "text",
    "99999999999999999999",
    "1.8e308",
    "0b1",
    "1d3",
    "-0",
    '"',
    "a\0b",
    "2024-01-01",
    "1" * 5000,
)
HTML = b"<!DOCTYPE html>\n<html><body>404</body></html>"


# --- bytes ----------------------------------------------------------------------------------------------


def _flipped(rng: Rng, content: bytes) -> bytes:
    data = bytearray(content)
    for at in rng.integers(0, max(len(data), 1), int(rng.integers(1, 8))):
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _cut(rng: Rng, content: bytes) -> bytes:
    return content[: int(rng.integers(0, max(len(content), 1)))]


def _hole(rng: Rng, content: bytes) -> bytes:
    at = int(rng.integers(0, max(len(content), 1)))
    return content[:at] + content[at + int(rng.integers(1, 40)) :]


def _inside(rng: Rng, content: bytes) -> bytes:
    at, piece = int(rng.integers(0, len(content) + 1)), (b"\0", b"\xff", b"\r", b'"', b"\n\n", b"\xef\xbb\xbf", b",")
    return content[:at] + piece[int(rng.integers(len(piece)))] * int(rng.integers(1, 4)) + content[at:]


def _recoded(rng: Rng, content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(("utf-16", "utf-16-le", "latin-1", "utf-32", "utf-7")[int(rng.integers(5))], "replace")


def _unpacked(rng: Rng, content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError):
        return gzip.compress(content)


BYTES: dict[str, Callable[[Rng, bytes], bytes]] = {
    "flipped bits": _flipped,
    "cut": _cut,
    "a hole": _hole,
    "other bytes inside": _inside,
    "another encoding": _recoded,
    "packed otherwise": _unpacked,
    "empty": lambda rng, content: b"",
    "zeros": lambda rng, content: bytes(len(content)),
    "noise": lambda rng, content: rng.bytes(200),
    "more behind": lambda rng, content: content + rng.bytes(50),
    "twice": lambda rng, content: content + content,
    "byte-order mark": lambda rng, content: b"\xef\xbb\xbf" + content,
    "CR line ends": lambda rng, content: content.replace(b"\n", b"\r"),
    "HTML": lambda rng, content: HTML,
    "one byte": lambda rng, content: content[:1],
    "a zip file": lambda rng, content: _zip({"a.txt": b"text"}),
    "a pickle": lambda rng, content: pickle.dumps(Path("x")),
    "parquet's mark": lambda rng, content: b"PAR1" + content + b"PAR1",
    "line ends only": lambda rng, content: b"\n" * 50,
    "commas only": lambda rng, content: b",,,,\n" * 5,
    "deep brackets": lambda rng, content: b"[" * 100_000,
}


def _zip(members: dict[str, bytes], *, method: int = zipfile.ZIP_STORED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


# --- texts of graphs ------------------------------------------------------------------------------------

_LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (k, b"&l%d;" % (k - 1) * 10) for k in range(1, 10))
_XML = b"<graphml><key id='a'/><graph><node id='1'><data key='a'>%s</data></node></graph></graphml>"
_JSON = b'{"nodes": [{"id": 1, "x": %s}, {"id": 2, "x": %s}], "links": [{"source": 1, "target": 2}]}'
_WIDE = b",".join(b'{"id": %d, "a%d": 1}' % (k, k) for k in range(20_000))
TEXTS: dict[str, bytes] = {
    "a billion laughs": b'<!DOCTYPE g [<!ENTITY l0 "ha">' + _LAUGHS + b"]>" + _XML % b"&l9;",
    "a quadratic blowup": b'<!DOCTYPE g [<!ENTITY a "' + b"x" * 50_000 + b'">]>' + _XML % (b"&a;" * 5000),
    "an outer file": b'<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + _XML % b"&a;",
    "deep elements": b"<graphml>" + b"<graph>" * 100_000,
    "deep data": _XML.partition(b"%s")[0] + b"<a>" * 100_000,
    "a long attribute": b'<graphml><graph><node id="' + b"x" * 3_000_000 + b'"/></graph></graphml>',
    "a long value": _XML % (b"x" * 3_000_000),
    "many keys": b"<graphml>" + b"".join(b'<key id="k%d"/>' % k for k in range(20_000)) + b"<graph/></graphml>",
    "deep lists": b"graph [ " * 100_000,
    "a long number": b"graph [ node [ id " + b"9" * 100_000 + b" ] ]",
    "digits and blanks": b"graph [ node [ id 1e" + b"1" * 300 + b" ] ]",
    "deep JSON": b'{"nodes": ' + b"[" * 100_000,
    "a large JSON number": b'{"nodes": [{"id": ' + b"9" * 5000 + b'}], "links": []}',
    "numbers that are none": _JSON % (b"NaN", b"Infinity"),
    "lists of several lengths": _JSON % (b"[1]", b"[1, 2]"),
    "halves of letters": b'{"nodes": [{"id": "\\ud800"}, {"id": "b"}], "links": []}',
    "a column for each node": b'{"nodes": [' + _WIDE + b'], "links": []}',
    "a large matrix": b"%%MatrixMarket matrix coordinate pattern general\n999999999999 999999999999 1\n1 1\n",
    "a matrix without entries": b"%%MatrixMarket matrix coordinate real general\n9000 9000 0\n",
    "comments alone": b"%%MatrixMarket matrix coordinate real general\n" + b"% x\n" * 100_000,
}


# --- paths ----------------------------------------------------------------------------------------------

PATHS: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a FIFO": os.mkfifo,
    "a loop of links": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing at all": lambda path: path.symlink_to("/dev/null"),
    "nothing": lambda path: None,
}


# --- arrays of an npz -----------------------------------------------------------------------------------


def _objects(rng: Rng, array: np.ndarray) -> np.ndarray:
    out = np.empty(array.shape, dtype=object)
    out[...] = None
    return out


def _changed(value: Any) -> Callable[[Rng, np.ndarray], np.ndarray]:
    def change(rng: Rng, array: np.ndarray) -> np.ndarray:
        wide = np.dtype(np.uint64) if value == 2**64 - 1 else np.dtype(np.float64 if value != value else type(value))
        if array.dtype.kind not in "biuf" or not array.size:
            return np.full(array.shape, value, dtype=wide)
        array = array.astype(np.result_type(wide, array.dtype) if wide.kind == "f" else wide)
        array.reshape(-1)[int(rng.integers(array.size))] = value
        return array

    return change


ARRAYS: dict[str, Callable[[Rng, np.ndarray], Any]] = {
    "big-endian": lambda rng, array: array.astype(array.dtype.newbyteorder(">")),
    "objects": _objects,
    "0-d": lambda rng, array: array.reshape(-1)[0] if array.size else np.array(0),
    "another axis": lambda rng, array: array[None],
    "flat": lambda rng, array: array.reshape(-1),
    "transposed": lambda rng, array: array.T,
    "a row less": lambda rng, array: array[:-1] if array.ndim else array,
    "none": lambda rng, array: array[:0] if array.ndim else array,
    "empty floats": lambda rng, array: np.zeros((0,) * max(array.ndim, 1)),
    "structured": lambda rng, array: np.zeros(array.shape, dtype=[("a", "i4"), ("b", "f8")]),
    "complex": lambda rng, array: np.ones(array.shape, dtype=complex),
    "dates": lambda rng, array: np.zeros(array.shape, dtype="M8[s]"),
    "text": lambda rng, array: np.full(array.shape, "x"),
    "bytes": lambda rng, array: np.full(array.shape, b"x"),
    "void": lambda rng, array: np.zeros(array.shape, dtype="V4"),
    "halves": lambda rng, array: np.ones(array.shape, dtype=np.float16),
    "long doubles": lambda rng, array: np.ones(array.shape, dtype=np.longdouble),
    "uint64": lambda rng, array: np.arange(array.size, dtype=np.uint64).reshape(array.shape),
    "uint8": lambda rng, array: np.zeros(array.shape, dtype=np.uint8),
    "true": lambda rng, array: np.ones(array.shape, dtype=bool),
    "NaN": _changed(float("nan")),
    "infinity": _changed(float("inf")),
    "negative": _changed(-1),
    "large": _changed(2**62),
    "larger": _changed(2**64 - 1),
    "1e300": _changed(1e300),
    "columns first": lambda rng, array: np.asfortranarray(array),
}


def odd_npz(rng: Rng, arrays: dict[str, Any]) -> tuple[str, bytes]:
    """(what is wrong, an npz file in which it is)."""
    keys = list(arrays)
    key = keys[int(rng.integers(len(keys)))]
    name = list(ARRAYS)[int(rng.integers(len(ARRAYS)))]
    kind = int(rng.integers(10))
    sink = io.BytesIO()
    if kind == 0:
        np.savez(sink, **{other: array for other, array in arrays.items() if other != key})
        return f"no {key}", sink.getvalue()
    if kind == 1:
        np.savez(sink, **arrays)
        return _odd_member(rng, sink.getvalue(), key)
    np.savez(sink, **{**arrays, key: ARRAYS[name](rng, np.asarray(arrays[key]))})
    return f"{key}: {name}", sink.getvalue()


def _odd_member(rng: Rng, content: bytes, key: str) -> tuple[str, bytes]:
    """An npz with a member that is not what NumPy writes there."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"
    odd = {
        "no array": b"plain text",
        "no bytes": b"",
        "cut": members[f"{key}.npy"][:-3],
        "a huge shape": (head % b"1000000000000, 3").ljust(127) + b"\n" + bytes(80),
        "a large shape": (head % b"300000000,").ljust(127) + b"\n" + bytes(80),
        "a negative shape": (head % b"-5,").ljust(127) + b"\n" + bytes(80),
        "a deep shape": (head % (b"(" * 40 + b"1" + b")" * 40)).ljust(127) + b"\n" + bytes(80),
        "another version": b"\x93NUMPY\x09\x00" + members[f"{key}.npy"][8:],
        "a pickle": pickle.dumps([1]),
    }
    name = list(odd)[int(rng.integers(len(odd)))]
    members[f"{key}.npy"] = odd[name]
    if rng.random() < 0.3:
        members[key] = members.pop(f"{key}.npy")  # without the suffix NumPy gives the bytes
    return f"{key}: {name}", _zip(members, method=zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED)


# --- columns of a Parquet file --------------------------------------------------------------------------

COLUMNS: dict[str, Callable[[int], pa.Array]] = {
    "uint64": lambda n: pa.array([2**64 - 1 - k for k in range(n)], pa.uint64()),
    "int8": lambda n: pa.array(range(n), pa.int8()),
    "decimals": lambda n: pa.array([Decimal(k) for k in range(n)]),
    "times": lambda n: pa.array(range(n), pa.timestamp("ns")),
    "days": lambda n: pa.array(range(n), pa.date32()),
    "lists": lambda n: pa.array([[k] for k in range(n)]),
    "records": lambda n: pa.array([{"a": k} for k in range(n)]),
    "categories": lambda n: pa.array([f"c{k}" for k in range(n)]).dictionary_encode(),
    "bytes": lambda n: pa.array([b"\xff\xfe"] * n),
    "bad text": lambda n: pa.array([b"\xff\xfe" + bytes([k]) for k in range(n)]).view(pa.string()),
    "nulls": lambda n: pa.nulls(n),
    "some nulls": lambda n: pa.array([None if k == 2 else float(k) for k in range(n)]),
    "halves": lambda n: pa.array(np.arange(n, dtype=np.float16)),
    "NaN": lambda n: pa.array([float("nan")] * n),
    "infinite": lambda n: pa.array([float("inf")] * n),
    "true and false": lambda n: pa.array([k % 2 == 0 for k in range(n)]),
    "large text": lambda n: pa.array([f"c{k}" for k in range(n)], pa.large_string()),
    "text views": lambda n: pa.array([f"c{k}" for k in range(n)], pa.large_string()),
    "empty text": lambda n: pa.array([""] * n),
    "large integers": lambda n: pa.array([2**62 + k for k in range(n)]),
}


def odd_column(rng: Rng, table: pa.Table) -> tuple[str, pa.Table]:
    """(what is odd, a table with one column that is)."""
    place, name = int(rng.integers(table.num_columns)), list(COLUMNS)[int(rng.integers(len(COLUMNS)))]
    field = table.column_names[place]
    kind = int(rng.integers(8))
    if kind == 0:
        return f"{field} twice", table.append_column(field, table.column(place))
    if kind == 1:
        return f"no {field}", table.drop_columns([field])
    return f"{field}: {name}", table.set_column(place, field, COLUMNS[name](len(table)))


# --- cells of a text file -------------------------------------------------------------------------------


def odd_rows(rng: Rng, rows: list[list[str]]) -> tuple[str, list[list[str]]]:
    """(what is odd, rows of cells, the first of them the names, with something odd in them)."""
    rows = [list(row) for row in rows]
    row, column = int(rng.integers(len(rows))), int(rng.integers(len(rows[0])))
    words = (*NUMBERS, *IDS)
    word = words[int(rng.integers(len(words)))]
    kind = int(rng.integers(8))
    if kind < 4:
        rows[row][column] = word
        return f"{word[:20]!r} in row {row}, column {column}", rows
    if kind == 4:
        for other in rows[1:]:
            other[column] = word
        return f"{word[:20]!r} in all of column {column}", rows
    if kind == 5:
        rows[row] = rows[row][: int(rng.integers(len(rows[row])))] if rng.random() < 0.5 else [*rows[row], word]
        return f"a row of {len(rows[row])} cells", rows
    if kind == 6:
        return "no names", rows[1:]
    rows[0][column] = rows[0][column - 1]
    return "a name twice", rows


# --- files of PyTorch -----------------------------------------------------------------------------------


def pt_contents(fields: dict[str, Any]) -> dict[str, Any]:
    """What a .pt file can hold in place of a graph."""
    import torch

    return {
        "a list": [1, 2],
        "a text": "x",
        "a number": 3,
        "a tensor": torch.ones(3),
        "tensors": {"w": torch.ones(2)},
        "a model": torch.nn.Linear(2, 2).state_dict(),
        "nothing": None,
        "numbers as keys": {1: torch.ones(2), "edge_index": 3},
        "a module": torch.nn.Linear(2, 2),
        "three things": (fields, None, 3),
        "other borders": (fields, {"x": 3}),
        "two graphs": (fields, {"edge_index": torch.tensor([0, 2, 4])}),
    }


def pt_tensors(fields: dict[str, Any]) -> dict[str, Any]:
    """What can stand in place of a tensor of a graph."""
    import torch

    n = len(fields["y"])
    return {
        "text": "x",
        "a list": [1],
        "NaN": torch.full((n, 2), torch.nan),
        "complex": torch.ones(3, dtype=torch.cfloat),
        "sparse": torch.eye(n).to_sparse(),
        "0-d": torch.tensor(1),
        "none": torch.zeros(0),
        "negative": -torch.ones(2, 5).long(),
        "large": torch.full((2, 4), 2**62),
        "bf16": torch.ones(n, 3).bfloat16(),
        "float8": torch.ones(n).to(torch.float8_e5m2),
        "three axes": torch.ones(n, 2, 2),
        "another": fields["x"],
    }
