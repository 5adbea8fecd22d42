"""The ids of the nodes of a store."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph.scale.arrays import FileArray

if TYPE_CHECKING:
    import pyarrow as pa


class StoredIds:
    """The ids of the nodes of a store: integers, or texts in UTF-8."""

    def __init__(self, numbers: FileArray | None, text: FileArray | None = None, offsets: FileArray | None = None):
        self._numbers, self._text, self._offsets = numbers, text, offsets

    def __len__(self) -> int:
        return len(self._numbers) if self._numbers is not None else len(self._offsets or ()) - 1

    def __getitem__(self, rows: slice) -> np.ndarray:
        """The ids of a slice of rows, int64 or an array of texts."""
        if self._numbers is not None:
            return self._numbers[rows]
        assert self._text is not None
        assert self._offsets is not None
        start, stop, _ = rows.indices(len(self))
        offsets = self._offsets[start : max(stop, start) + 1]
        text = self._text[int(offsets[0]) : int(offsets[-1])].tobytes()
        ends = (offsets - offsets[0]).tolist()
        ids = np.empty(len(ends) - 1, dtype=object)
        ids[:] = [text[a:b].decode() for a, b in pairwise(ends)]
        return ids

    @property
    def is_text(self) -> bool:
        """Whether the ids are texts."""
        return self._numbers is None

    def texts(self, rows: slice) -> pa.LargeStringArray:
        """The ids of a slice of rows, which are texts, as an Arrow array."""
        import pyarrow as pa

        assert self._text is not None
        assert self._offsets is not None
        start, stop, _ = rows.indices(len(self))
        offsets = self._offsets[start : max(stop, start) + 1]
        text = self._text[int(offsets[0]) : int(offsets[-1])]
        buffers = pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text)
        return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        ids = self[:]
        return ids if dtype is None else ids.astype(dtype)
