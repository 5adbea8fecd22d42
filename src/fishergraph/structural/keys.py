"""Keys of nodes: 64-bit integers that stand for ids of any kind, so that a node is known again in another graph."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def node_keys(ids: Any, n_nodes: int) -> np.ndarray:
    """The key of every node, uint64, (node,): an integer id itself, a hash of any other, the row number without ids.

    A text that is written as an integer has the key of that integer.
    """
    if ids is None:
        return np.arange(n_nodes, dtype=np.uint64)
    values = np.asarray(ids)
    if values.dtype.kind in "iu":
        return values.astype(np.int64).astype(np.uint64)
    return np.array([_key(value) for value in values.tolist()], dtype=np.uint64)


def _key(value: object) -> int:
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else repr(value)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and str(number := int(text)) == text and -(2**63) <= number < 2**63:
        return number % 2**64
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def known_rows(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The row of each key among the known ones, int64; −1 if it is not one of them."""
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    rows = order[places]
    return np.where(known[rows] == keys, rows, -1)
