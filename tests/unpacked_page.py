"""What the browser does with the parts of a page, in plain Python: the reference of `fishergraph.explore.pack`."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from typing import Any

_CODES = {"u1": "B", "u2": "H", "u4": "I", "i1": "b", "i2": "h", "i4": "i", "f4": "f", "f8": "d"}


class Unpacked:
    """The description of a page, and its parts, each read once at most."""

    def __init__(self, html: str):
        self.about: dict[str, Any] = json.loads(
            re.search(r'<script type="application/json" id="about">(.*?)</script>', html, re.DOTALL)[1]  # type: ignore
        )
        self.parts = dict(re.findall(r'<script type="text/plain" id="([\w-]+)">(.*?)</script>', html, re.DOTALL))


def bytes_of(parts: dict[str, str], name: str) -> bytes:
    return gzip.decompress(base64.b64decode(parts[name], validate=True))


def array(parts: dict[str, str], spec: dict[str, Any]) -> list[Any]:
    """The numbers of an array."""
    data, code = bytes_of(parts, spec["part"]), _CODES[spec["type"]]
    size, n = struct.calcsize(code), spec["n"]
    values = []
    for i in range(n):
        chunk = bytes(data[plane * n + i] for plane in range(size))
        values.append(struct.unpack("<" + code, chunk)[0])
    if spec["diff"]:
        for i in range(1, n):
            values[i] = (values[i] + values[i - 1]) % 256**size
    return values


def numbers(parts: dict[str, str], spec: dict[str, Any]) -> list[float | None]:
    """Numbers, None if missing."""
    stored = array(parts, spec["array"])
    if spec["decimals"] is None:
        return [None if value != value else value for value in stored]
    scale = 10 ** spec["decimals"]
    return [None if value == 0 else (value - 1 + spec["low"]) / scale for value in stored]


def strings(parts: dict[str, str], spec: dict[str, Any]) -> list[str]:
    """Texts; lengths count UTF-16 units, as JavaScript does."""
    units = bytes_of(parts, spec["text"]).decode("utf-8").encode("utf-16-le")
    found, start = [], 0
    for length in array(parts, spec["lengths"]):
        end = start + 2 * length
        found.append(units[start:end].decode("utf-16-le"))
        start = end
    assert start == len(units)
    return found


def column(page: Unpacked, name: str) -> list[Any]:
    """The values of a column as the browser has them."""
    about = next(entry for entry in page.about["columns"] if entry["name"] == name)
    if about["kind"] == "category":
        codes = array(page.parts, about["codes"])
        return [None if code == 0 else about["categories"][code - 1] for code in codes]
    if about["kind"] == "text":
        gone = array(page.parts, about["missing"]) if about["missing"] else []
        texts = strings(page.parts, about["strings"])
        return [None if gone and gone[i] else text for i, text in enumerate(texts)]
    return numbers(page.parts, about["numbers"])


def ids(page: Unpacked) -> list[Any]:
    about = page.about["ids"]
    if "strings" in about:
        return strings(page.parts, about["strings"])
    return [int(value) for value in numbers(page.parts, about["numbers"]) if value is not None]


def edges(page: Unpacked) -> list[tuple[int, int]]:
    """The stored edges (row, column)."""
    about = page.about["edges"]
    counts, steps = array(page.parts, about["counts"]), array(page.parts, about["steps"])
    found, e = [], 0
    for v, count in enumerate(counts):
        last = -1 if about["directed"] else v - 1
        for _ in range(count):
            last += steps[e] + 1
            found.append((v, last))
            e += 1
    return found


def nearest(page: Unpacked) -> list[list[int]]:
    """The nearest nodes of every node."""
    about = page.about["nearest"]
    steps = array(page.parts, about["steps"])
    k = about["k"]
    rows = [i // k + (code // 2 if code % 2 == 0 else -(code + 1) // 2) for i, code in enumerate(steps)]
    return [rows[v * k : (v + 1) * k] for v in range(page.about["n"])]
