"""Arrays and texts as the strings in which a page holds them.

A part of a page is a base64 string of gzip-compressed bytes, which the browser decompresses. Arrays are little-endian.
Their bytes are put in planes, all first bytes before all second ones, because neighbouring numbers share their high
bytes; sorted arrays hold differences. Nothing of a part depends on the time or the machine.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np

_LEVEL = 9
_EXACT = 2**53  # integers up to here are exact in the browser
_MOST_DECIMALS = 6


class Parts:
    """The parts of a page, by their names.

    Attributes
    ----------
    texts : dict of str
        The base64 string of each part.
    """

    def __init__(self):
        self.texts: dict[str, str] = {}

    def array(self, values: np.ndarray, *, sorted_: bool = False) -> dict[str, Any]:
        """Add an array; returns what the browser needs to read it. `sorted_` stores differences."""
        values = np.ascontiguousarray(values).reshape(-1)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        kind = f"{values.dtype.kind}{values.dtype.itemsize}"
        bits = values.view(f"<u{values.dtype.itemsize}")
        if sorted_:
            bits = np.diff(bits, prepend=bits.dtype.type(0))
        planes = bits.view(np.uint8).reshape(-1, values.dtype.itemsize).T
        return {"part": self._add(planes.tobytes()), "type": kind, "n": len(values), "diff": sorted_}

    def integers(self, values: np.ndarray, *, sorted_: bool = False) -> dict[str, Any]:
        """Add integers of at least zero, in the smallest type that holds them."""
        most = int(values.max(initial=0))
        return self.array(values.astype(np.min_scalar_type(most) if most < 2**32 else np.float64), sorted_=sorted_)

    def strings(self, texts: Sequence[str]) -> dict[str, Any]:
        """Add texts, as one text and the length of each in the units of JavaScript's strings."""
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        units = np.array([len(text) + sum(char > "\uffff" for char in text) for text in clean], dtype=np.int64)
        return {"text": self._add("".join(clean).encode("utf-8")), "lengths": self.integers(units)}

    def numbers(self, values: np.ndarray, missing: np.ndarray) -> dict[str, Any]:
        """Add integers or floats, exact: as scaled integers if they have few decimals, else as floats.

        A scaled integer is stored plus one, and zero is a missing value; a missing float is NaN.
        """
        present = values[~missing]
        for decimals in range(_MOST_DECIMALS + 1):
            scaled = _scaled(present, decimals)
            if scaled is None:
                continue
            low, high = (int(scaled.min()), int(scaled.max())) if len(scaled) else (0, 0)
            if high - low < 2**32 - 1:
                stored = np.zeros(len(values), dtype=np.int64)
                stored[~missing] = scaled - low + 1
                return {"array": self.integers(stored), "low": low, "decimals": decimals}
        with np.errstate(over="ignore"):
            narrow = np.array_equal(present.astype(np.float32), present)
        floats = values.astype(np.float64)
        floats[missing] = np.nan
        floats = floats.astype(np.float32) if narrow else floats
        return {"array": self.array(floats), "low": 0, "decimals": None}

    def _add(self, data: bytes) -> str:
        name = f"part-{len(self.texts)}"
        # The time in the header would make every page differ.
        self.texts[name] = base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode("ascii")
        return name


def _scaled(values: np.ndarray, decimals: int) -> np.ndarray | None:
    """The values times a power of ten as integers, if dividing them again gives the same floats; else None."""
    if values.dtype.kind in "biu":
        exact = decimals == 0 and (not len(values) or max(int(values.max()), -int(values.min())) <= _EXACT)
        return values.astype(np.int64) if exact else None
    if not np.isfinite(values).all() or np.abs(values).max(initial=0) > _EXACT / 10**decimals:
        return None
    scaled = np.rint(values.astype(np.float64) * 10**decimals)
    same = (scaled / 10**decimals).astype(values.dtype) == values
    if not same.all() or (np.signbit(values) & (values == 0)).any():
        return None
    # Of float32 the shortest decimal that rounds to the value is the one that people wrote.
    return scaled.astype(np.int64)
