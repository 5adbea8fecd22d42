"""`StoredEmbedding`: the embedding of a store, read by rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph.io.files import as_path
from fishergraph.scale.arrays import FileArray, StoredIds
from fishergraph.scale.commit import finish_commit
from fishergraph.scale.folders import read_json
from fishergraph.scale.store import Store

_ROWS = 2**14  # of a slice that `blocks` yields


class StoredEmbedding:
    """The embedding of a store, in files.

    It is the blocks of a run side by side, each times the root of its weight. Slices of rows, single rows and rows by
    their numbers are NumPy arrays. `numpy.asarray` reads all of it.

    Parameters
    ----------
    path : path
        The folder of the run, ``STORE/embeddings/NAME``.

    Attributes
    ----------
    blocks_ : list of tuple
        Name and number of columns of every block.
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        The type of the numbers.

    See Also
    --------
    Store : The graph that was embedded.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph import FisherEmbedding, load_graph
    >>> from fishergraph.scale import write_store
    >>> cora = load_graph("cora")
    >>> store = write_store(pathlib.Path(tempfile.mkdtemp()) / "cora", cora.graph, cora.X)
    >>> Z = FisherEmbedding(dim=16, structure=None, random_state=0).fit_transform(store)
    >>> Z
    StoredEmbedding(2,708 rows x 80 columns, float32)
    >>> Z[:3].shape
    (3, 80)
    """

    ndim = 2

    def __init__(self, path: str | Path):
        self.path = as_path(path, "path")
        finish_commit(self.path.resolve().parents[1])
        if not (self.path / "manifest.json").is_file():
            reason = "the run has not ended, or it is not the folder of a run"
            raise FileFormatError(path=self.path, reason=reason, advice="run the same command again to go on")
        entries = read_json(self.path / "manifest.json")["arrays"]
        kept = [(name, entry) for name, entry in entries.items() if entry["weight"] > 0]
        self._arrays = [(FileArray(self.path / f"{name}.npy"), math.sqrt(entry["weight"])) for name, entry in kept]
        self.blocks_: list[tuple[str, int]] = [(name, entry["shape"][1]) for name, entry in kept]
        self.dtype = self._arrays[0][0].dtype
        self.shape = (self._arrays[0][0].shape[0], sum(width for _, width in self.blocks_))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes of all rows."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def ids(self) -> Any:
        """The ids of the nodes, read by slices; None if they are the row numbers."""
        ids: StoredIds | None = Store(self.path.parents[1]).ids
        return ids

    def __getitem__(self, key: Any) -> np.ndarray:
        """Rows by a slice, by one number, or by an array of numbers."""
        if isinstance(key, (int, np.integer)):
            return self[np.array([int(key) % max(len(self), 1)])][0]
        parts = [array[key] for array, _ in self._arrays]
        for part, (_, scale) in zip(parts, self._arrays, strict=True):
            if scale != 1:
                part *= scale
        return np.concatenate(parts, axis=1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self[:]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def block(self, name: str) -> FileArray:
        """Return the values of a block, without its weight.

        Parameters
        ----------
        name : str
            Of the block, such as "psi1".

        Returns
        -------
        FileArray
            The array in its file.
        """
        return FileArray(self.path / f"{name}.npy")

    def slices(self, n_rows: int = _ROWS) -> Iterator[slice]:
        """Return slices of rows that cover the embedding, for reading it in order.

        Parameters
        ----------
        n_rows : int, default=16384
            Rows of a slice.

        Returns
        -------
        iterator of slice
            The slices.
        """
        return (slice(start, min(start + n_rows, len(self))) for start in range(0, len(self), n_rows))

    def __repr__(self) -> str:
        return f"StoredEmbedding({self.shape[0]:,} rows x {self.shape[1]:,} columns, {self.dtype})"
