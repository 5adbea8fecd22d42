"""What is read from files of edges and nodes, on disk until it is sorted: ids as numbers or text, and weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function

from fishergraph.io.files import naming

Ids = np.ndarray | pa.Array  # int64, or large_string


class Piece(NamedTuple):
    """An array in a scratch file."""

    offset: int
    count: int
    dtype: np.dtype


class Scratch:
    """A file of arrays, written one after the other and read in any order; it is gone when it is closed."""

    def __init__(self, path: Path):
        self.path, self.size = path, 0
        with naming(path):
            self._file = path.open("w+b")

    def put(self, values: np.ndarray) -> Piece:
        """Write an array behind the others."""
        piece = Piece(self.size, values.size, values.dtype)
        self.replace(piece, values)
        self.size += values.nbytes
        return piece

    def replace(self, piece: Piece, values: np.ndarray) -> None:
        """Write other values of the same size and type in place of an array."""
        with naming(self.path):
            self._file.seek(piece.offset)
            if values.nbytes:
                content: Any = np.ascontiguousarray(values, piece.dtype)
                self._file.write(memoryview(content).cast("B"))

    def get(self, piece: Piece) -> np.ndarray:
        """Read an array."""
        with naming(self.path):
            self._file.flush()
        self._file.seek(piece.offset)
        return np.fromfile(self._file, piece.dtype, piece.count)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)


class _Chunk(NamedTuple):
    """Some ids: numbers; or texts, each id by its position among them, or one after the other if `codes` is None."""

    count: int
    numbers: Piece | None
    text: Piece | None = None
    offsets: Piece | None = None
    codes: Piece | None = None


class IdColumn:
    """Ids on disk, in chunks.

    Parameters
    ----------
    path : Path
        The scratch file.
    repeating : bool
        Whether ids repeat, as those at the ends of edges do: then each text of a chunk is kept once.
    """

    def __init__(self, path: Path, *, repeating: bool):
        self.repeating = repeating
        self.scratch = Scratch(path)
        self.chunks: list[_Chunk] = []
        self.n_ids = 0
        self.low, self.high = 2**63 - 1, -(2**63)  # of the numbers
        self.counts = True  # whether the ids are 0, 1, 2, …
        self.is_text = False

    def add(self, *parts: Ids) -> None:
        """Append a chunk of ids; text makes text of the numbers beside it."""
        if all(isinstance(part, np.ndarray) for part in parts):
            numbers = np.concatenate(parts)
            self._add_numbers(numbers)
        else:
            self._add_texts(pa.concat_arrays([as_text(part) for part in parts]))
        self.n_ids += self.chunks[-1].count

    def _add_numbers(self, numbers: np.ndarray) -> None:
        if len(numbers):
            low, high = int(numbers.min()), int(numbers.max())
            self.low, self.high = min(self.low, low), max(self.high, high)
            if low >= -(2**31) and high < 2**31:
                numbers = numbers.astype(np.int32)
        if self.counts and not self.repeating:
            self.counts = np.array_equal(numbers, np.arange(self.n_ids, self.n_ids + len(numbers)))
        self.chunks.append(_Chunk(len(numbers), self.scratch.put(numbers)))

    def _add_texts(self, texts: pa.Array) -> None:
        self.is_text, self.counts = True, False
        self.chunks.append(self._text_chunk(texts))

    def _text_chunk(self, texts: pa.Array) -> _Chunk:
        count, codes = len(texts), None
        if self.repeating:
            coded = texts.dictionary_encode()
            codes = self.scratch.put(coded.indices.to_numpy())
            texts = coded.dictionary
        offsets, text = text_buffers(texts)
        return _Chunk(count, None, self.scratch.put(text), self.scratch.put(offsets), codes)

    def unify(self, *, text: bool) -> None:
        """Make text of the numbers if some ids are text, or if `text`."""
        self.is_text = self.is_text or text
        if self.is_text:
            self.counts = False
            for k, chunk in enumerate(self.chunks):
                if chunk.numbers is not None:
                    self.chunks[k] = self._text_chunk(as_text(self.scratch.get(chunk.numbers)))

    def ids(self, k: int) -> tuple[Ids, np.ndarray | None]:
        """The ids of a chunk; or its texts, and the position of each id among them."""
        chunk = self.chunks[k]
        if chunk.numbers is not None:
            return self.scratch.get(chunk.numbers).astype(np.int64), None
        assert chunk.text is not None
        assert chunk.offsets is not None
        offsets, text = (pa.py_buffer(self.scratch.get(piece)) for piece in (chunk.offsets, chunk.text))
        texts = pa.LargeStringArray.from_buffers(chunk.offsets.count - 1, offsets, text)
        return texts, None if chunk.codes is None else self.scratch.get(chunk.codes)

    def text_bytes(self, k: int) -> int:
        """The bytes of the texts of a chunk, with their offsets."""
        chunk = self.chunks[k]
        return 0 if chunk.text is None or chunk.offsets is None else chunk.text.count + 8 * chunk.offsets.count

    def id_at(self, k: int, positions: np.ndarray) -> list[Any]:
        """Some ids of a chunk."""
        ids, codes = self.ids(k)
        return take(ids, positions if codes is None else codes[positions]).tolist()

    @property
    def borders(self) -> np.ndarray:
        """The number of the first id of each chunk."""
        return np.concatenate(([0], np.cumsum([chunk.count for chunk in self.chunks]))).astype(np.int64)


class EdgeSpool:
    """Edges on disk: the ids of their sources and targets, and their weights.

    Parameters
    ----------
    folder : Path
        A folder for scratch files.
    """

    def __init__(self, folder: Path):
        self.ids = IdColumn(folder / "edge_ids", repeating=True)
        self.weights: list[Piece | None] = []
        self._scratch = Scratch(folder / "edge_weights")
        self.n_edges = 0
        self.weight_dtype: np.dtype | None = None

    def add(self, source: Ids, target: Ids, weights: np.ndarray | None) -> None:
        """Append edges."""
        if len(source) == 0:
            return
        self.ids.add(source, target)
        self.weights.append(None if weights is None else self._scratch.put(weights))
        self.n_edges += len(source)
        if weights is not None:
            self.weight_dtype = np.promote_types(weights.dtype, self.weight_dtype or weights.dtype)

    def weights_of(self, k: int) -> np.ndarray | None:
        """The weights of a chunk; 1 if other chunks have some."""
        if self.weight_dtype is None:
            return None
        piece = self.weights[k]
        if piece is None:
            return np.ones(self.ids.chunks[k].count // 2, self.weight_dtype)
        return self._scratch.get(piece).astype(self.weight_dtype, copy=False)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.weights)))

    def close(self) -> None:
        """Remove the files."""
        self.ids.scratch.close()
        self._scratch.close()


# --- ids ------------------------------------------------------------------------------------------------


def as_text(ids: Ids) -> pa.Array:
    """Ids as large_string."""
    array = pa.array(ids) if isinstance(ids, np.ndarray) else ids
    return array if array.type == pa.large_string() else array.cast(pa.large_string())


def pick(ids: Ids, positions: Any) -> Ids:
    """Some of the ids."""
    return ids[positions] if isinstance(ids, np.ndarray) else ids.take(pa.array(positions))


def take(ids: Ids, positions: Any) -> np.ndarray:
    """Some of the ids, as an array of numbers or of objects."""
    chosen = pick(ids, positions)
    return chosen if isinstance(chosen, np.ndarray) else np.array(chosen.to_pylist(), dtype=object)


def text_buffers(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The offsets (int64, from 0) and the bytes of large_string texts."""
    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], np.int64, len(texts) + 1, 8 * texts.offset) if len(texts) else np.zeros(1, int)
    text = np.frombuffer(buffers[2], np.uint8)[offsets[0] : offsets[-1]] if offsets[-1] else np.empty(0, np.uint8)
    return offsets - offsets[0], text


def concatenated(parts: list[Ids]) -> Ids:
    """Several arrays of ids as one."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def sorted_order(ids: Ids) -> np.ndarray:
    """The positions that sort ids; equal ones keep their order. Texts are ordered by their code points."""
    if isinstance(ids, np.ndarray):
        return np.argsort(ids, kind="stable")
    return call_function("array_sort_indices", [ids]).to_numpy()
