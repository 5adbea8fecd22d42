"""Ids and features of nodes, written to a store block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import InputError
from fishergraph.scale.arrays import Growing
from fishergraph.scale.ingestion.scratch import IdColumn, as_text, text_buffers
from fishergraph.scale.writer import StoreWriter


class FeatureWriter:
    """The rows of X, dense or sparse.

    Parameters
    ----------
    writer : StoreWriter
        The store.
    dtype : dtype
        The type of the numbers.
    name : str
        What messages call the nodes.
    """

    def __init__(self, writer: StoreWriter, dtype: np.dtype, name: str):
        self.writer, self.dtype, self.name = writer, dtype, name
        self.n_rows, self.width, self.n_entries = 0, -1, 0
        self._files: list[Growing] = []

    def add(self, X: Any) -> None:
        """Write the next rows."""
        if self.width < 0:
            self._begin(X)
        if X.shape[1] != self.width:
            raise InputError(
                parameter=f"the features of {self.name}",
                value=X.shape[1],
                expected=f"have {self.width} numbers in every row",
                got=f"{X.shape[1]} from row {self.n_rows} on",
                advice="repair these rows",
            )
        rows: np.ndarray | sp.csr_array = self._converted(X)
        done = self.n_rows
        check_finite_rows(rows, f"the features of {self.name}", name_row=lambda row: f"row {done + row}")
        self.n_rows += X.shape[0]
        if isinstance(rows, np.ndarray):
            for file in self._files:
                file.append(rows)
        else:
            self._add_sparse(rows)

    def _add_sparse(self, rows: sp.csr_array) -> None:
        rows.sum_duplicates()
        for file, values in zip(self._files, (rows.data, rows.indices, rows.indptr[1:] + self.n_entries), strict=True):
            file.append(values)
        self.n_entries += rows.nnz

    def _converted(self, X: Any) -> Any:
        """The rows in the type of the features; what that cannot hold becomes infinite."""
        with np.errstate(over="ignore"):
            return (sp.csr_array(X) if sp.issparse(X) else np.asarray(X)).astype(self.dtype, copy=False)

    def _begin(self, X: Any) -> None:
        self.width = int(X.shape[1])
        if self.width == 0:
            return
        growing = self.writer.growing
        if not sp.issparse(X):
            self._files = [growing("features", self.dtype, (self.width,))]
            return
        kinds = {"data": self.dtype, "indices": X.indices.dtype, "indptr": np.int64}
        self._files = [growing(f"features_{name}", kind) for name, kind in kinds.items()]
        self._files[2].append(np.zeros(1, np.int64))

    def fill(self, n_nodes: int) -> None:
        """Write rows of zeros for the nodes after the last one."""
        step = max(2**24 // max(self.width, 1), 1)
        while self.width > 0 and self.n_rows < n_nodes:
            count = min(step, n_nodes - self.n_rows)
            sparse = len(self._files) > 1
            self.add(sp.csr_array((count, self.width)) if sparse else np.zeros((count, self.width), np.float32))


def write_ids(writer: StoreWriter, nodes: IdColumn) -> None:
    """Write the ids of all nodes, unless they are the row numbers."""
    if nodes.counts:
        return
    if not nodes.is_text:
        numbers = writer.growing("ids", np.int64)
        for k in range(len(nodes.chunks)):
            ids, _ = nodes.ids(k)
            numbers.append(ids)
        return
    text, offsets = writer.growing("ids_text", np.uint8), writer.growing("ids_offsets", np.int64)
    offsets.append(np.zeros(1, np.int64))
    for k in range(len(nodes.chunks)):
        ends, letters = text_buffers(as_text(nodes.ids(k)[0]))
        offsets.append(ends[1:] + text.n_rows)
        text.append(letters)
