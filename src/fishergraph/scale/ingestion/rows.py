"""An external counting sort: edges on disk in any order become compressed rows, bucket by bucket.

The targets are counted, then the edges are written to buckets of consecutive rows, each small enough for the budget.
A bucket is sorted by SciPy as `as_graph` sorts the whole graph, so the sums of parallel edges have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph.scale.arrays import FileArray, Growing

Advance = Callable[[int], Any]
Triples = Callable[[], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]]  # sources, targets, weights
_BLOCKS = 2**22  # the counts of targets
# Bytes for each edge of a bucket while it is sorted, and while it is joined with the reverse edges.
_SORT, _JOIN = 64, 112


class Counts(NamedTuple):
    """What became of the edges."""

    parallel: int
    weightless: int


class Buckets:
    """Edges in buckets of consecutive rows, on disk.

    Parameters
    ----------
    edges : function
        Returns the edges in blocks; it is called twice.
    n_nodes : int
        The number of rows.
    most : int
        Edges of a bucket, if no row has more.
    folder : Path
        A folder for scratch files.
    dtype : dtype or None
        The type of the weights, if there are any.
    beside : FileArray, optional
        Row offsets of other edges that are in memory together with a bucket.
    """

    def __init__(
        self,
        edges: Triples,
        n_nodes: int,
        most: int,
        folder: Path,
        dtype: np.dtype | None,
        advance: Advance,
        beside: FileArray | None = None,
    ):
        self.n_nodes, self.kind = n_nodes, np.dtype(np.int32 if n_nodes < 2**31 else np.int64)
        self._shift = max((max(n_nodes - 1, 1) // _BLOCKS).bit_length(), 0)
        counts = np.zeros(((n_nodes - 1) >> self._shift) + 1, np.int64)
        for _, target, _ in edges():
            counts += np.bincount(target >> self._shift, minlength=len(counts))
        self.n_edges = int(counts.sum())
        self.borders, self.starts = self._cut(counts, most, beside)
        self._paths = [folder / f"bucket_{name}.npy" for name in ("sources", "targets", "weights")]
        kinds = (self.kind, self.kind, dtype)
        self._files = [
            None if kind is None else FileArray.create(path, (self.n_edges,), kind)
            for path, kind in zip(self._paths, kinds, strict=True)
        ]
        self._fill(edges, advance)

    def _cut(self, counts: np.ndarray, most: int, beside: FileArray | None) -> tuple[np.ndarray, np.ndarray]:
        """The first row of every bucket and the last one's end, and the first edge of every bucket."""
        ends = np.cumsum(counts)
        rows = np.minimum((np.arange(len(counts)) + 1) << self._shift, self.n_nodes)
        load = ends + rows // 2  # the offsets of two rows take the bytes of an edge
        if beside is not None:
            load += np.concatenate([beside[part] for part in np.split(rows, range(2**16, len(rows), 2**16))])
        cuts, before = [0], 0
        while cuts[-1] < len(counts):
            cut = max(int(np.searchsorted(load, before + most, side="right")), cuts[-1] + 1)
            cuts.append(min(cut, len(counts)))
            before = load[cuts[-1] - 1]
        blocks = np.array(cuts)
        starts = np.concatenate(([0], ends))[blocks]
        return np.minimum(blocks << self._shift, self.n_nodes), starts

    def _fill(self, edges: Triples, advance: Advance) -> None:
        filled = self.starts.copy()
        for source, target, weights in edges():
            columns = [source, target, weights]
            bucket = np.searchsorted(self.borders, target, side="right") - 1
            sizes = np.bincount(bucket, minlength=len(self.borders))
            if len(self.borders) > 2:
                # NumPy sorts 16-bit integers by counting, and equal ones keep their order.
                order = np.argsort(bucket.astype(np.uint16 if len(self.borders) < 2**16 else np.int64), kind="stable")
                columns = [None if column is None else column[order] for column in columns]
            ends = np.cumsum(sizes)
            for k in np.flatnonzero(sizes):
                part, place = slice(ends[k] - sizes[k], ends[k]), slice(filled[k], filled[k] + sizes[k])
                for file, column in zip(self._files, columns, strict=True):
                    if file is not None and column is not None:
                        file[place] = column[part]
            filled += sizes
            advance(source.nbytes + target.nbytes)

    def __len__(self) -> int:
        return len(self.borders) - 1

    def rows(self, k: int) -> sp.csr_array:
        """The rows of a bucket, not sorted, with parallel edges one after the other in their order."""
        entries = slice(self.starts[k], self.starts[k + 1])
        source, target, weights = (None if file is None else file[entries] for file in self._files)
        assert source is not None
        assert target is not None
        data = np.ones(len(source), np.float32) if weights is None else weights
        shape = (int(self.borders[k + 1] - self.borders[k]), self.n_nodes)
        coo = sp.coo_array((data, ((target - self.borders[k]).astype(self.kind), source)), shape=shape)
        coo.has_canonical_format = True  # or SciPy would add parallel edges now
        rows = coo.tocsr()
        rows.has_canonical_format = False
        return rows

    def close(self) -> None:
        """Remove the files."""
        self._files = [None] * 3
        for path in self._paths:
            path.unlink(missing_ok=True)


class RowFiles:
    """Sorted rows that are appended to files; weights are written only if one of them is not 1."""

    def __init__(self, growing: Callable[..., Growing], n_nodes: int, dtype: np.dtype):
        self.kind = np.dtype(np.int32 if n_nodes < 2**31 else np.int64)
        self._growing, self._dtype = growing, dtype
        self.indptr, self.indices = growing("indptr", np.int64), growing("indices", self.kind)
        self.weights: Growing | None = None
        self.indptr.append(np.zeros(1, np.int64))

    def append(self, rows: sp.csr_array) -> None:
        """Write the next rows."""
        before = self.indices.n_rows
        self.indptr.append(rows.indptr[1:].astype(np.int64) + before)
        if self.weights is None and not (rows.data == 1).all():
            self.weights = self._growing("weights", self._dtype)
            for start in range(0, before, 2**22):
                self.weights.append(np.ones(min(2**22, before - start)))
        if self.weights is not None:
            self.weights.append(rows.data)
        self.indices.append(rows.indices)


class SortedRows:
    """Sorted rows in scratch files, as the edges of their reverse."""

    def __init__(self, files: RowFiles):
        self.indptr, self.indices = files.indptr.finish(), files.indices.finish()
        self.weights = None if files.weights is None else files.weights.finish()
        self._paths = [array.path for array in (self.indptr, self.indices, self.weights) if array is not None]

    def rows(self, start: int, stop: int, n_nodes: int) -> sp.csr_array:
        """Some rows as a matrix."""
        indptr = self.indptr[start : stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        indices = self.indices[entries]
        data = np.ones(len(indices), np.float32) if self.weights is None else self.weights[entries]
        pieces = (data, indices, (indptr - indptr[0]).astype(indices.dtype))
        return sp.csr_array(pieces, shape=(stop - start, n_nodes))

    def reverse(self, size: int) -> Triples:
        """The edges with source and target exchanged, about so many at a time, in the order of the rows."""

        def edges() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
            for block in self.indptr.blocks(2**24):
                indptr = self.indptr[block.start : block.stop + 1]
                begin = 0
                while begin < len(indptr) - 1:
                    end = max(int(np.searchsorted(indptr, indptr[begin] + size, side="right")) - 1, begin + 1)
                    entries = slice(int(indptr[begin]), int(indptr[end]))
                    rows = np.repeat(
                        np.arange(block.start + begin, block.start + end, dtype=self.indices.dtype),
                        np.diff(indptr[begin : end + 1]),
                    )
                    yield rows, self.indices[entries], None if self.weights is None else self.weights[entries]
                    begin = end

        return edges

    def close(self) -> None:
        """Remove the files."""
        for path in self._paths:
            path.unlink(missing_ok=True)


# --- the rows of a graph --------------------------------------------------------------------------------


def write_rows(
    edges: Triples,
    n_nodes: int,
    dtype: np.dtype | None,
    growing: Callable[..., Growing],
    scratch: Path,
    *,
    undirected: bool,
    once: bool,
    work: int,
    advance: Advance,
) -> Counts:
    """Write the graph of edges: indptr, indices, and weights if not all are 1.

    Parameters
    ----------
    edges : function
        Returns sources, targets and weights in blocks; it is called twice.
    n_nodes : int
        The number of nodes.
    dtype : dtype or None
        The type of the weights, if there are any.
    growing : function
        `growing(name, dtype)` makes an array of the store.
    scratch : Path
        A folder for scratch files.
    undirected : bool
        Add the reverse of every edge, with the larger weight of the two.
    once : bool
        Keep the largest of parallel edges instead of their sum.
    work : int
        Bytes for the arrays of a bucket.
    advance : function
        Called with bytes that were sorted or written.

    Returns
    -------
    Counts
        Of edges that were joined with parallel ones, and of edges without weight.
    """
    kind = dtype or np.dtype(np.float32)
    if not undirected:
        return _sort(edges, n_nodes, dtype, RowFiles(growing, n_nodes, kind), scratch, once, work, advance)
    one_way = RowFiles(lambda name, dtype: Growing(scratch / f"one_way_{name}.npy", dtype), n_nodes, kind)
    counts = _sort(edges, n_nodes, dtype, one_way, scratch, once, work, advance)
    forward = SortedRows(one_way)
    weights = None if forward.weights is None else kind
    most = max(work // _JOIN, 1)
    reverse = forward.reverse(min(most, 2**21))
    backward = Buckets(reverse, n_nodes, most, scratch, weights, advance, beside=forward.indptr)
    files = RowFiles(growing, n_nodes, kind)
    for k in range(len(backward)):
        rows = backward.rows(k)  # sorted, as they come in the order of their sources
        first, last = (int(row) for row in backward.borders[k : k + 2])
        joined = sp.csr_array(forward.rows(first, last, n_nodes).maximum(rows))
        files.append(joined)
        advance(joined.indices.nbytes)
    backward.close()
    forward.close()
    return counts


def _sort(
    edges: Triples,
    n_nodes: int,
    dtype: np.dtype | None,
    files: RowFiles,
    scratch: Path,
    once: bool,
    work: int,
    advance: Advance,
) -> Counts:
    """Sort edges into rows, one way."""
    buckets = Buckets(edges, n_nodes, max(work // _SORT, 1), scratch, dtype, advance)
    # SciPy sorts all rows or none. Sorting can exchange parallel edges, which shows in the last bit of their sums.
    sort = dtype is not None and not all(buckets.rows(k).has_sorted_indices for k in range(len(buckets)))
    parallel = weightless = 0
    for k in range(len(buckets)):
        rows, first = buckets.rows(k), int(buckets.borders[k])
        before = rows.nnz
        rows = _joined(rows, sort=sort, once=once, weighted=dtype is not None)
        parallel += before - rows.nnz
        _check_sums(rows, first)
        if rows.nnz and rows.data.min() == 0:
            weightless += int((rows.data == 0).sum())
            rows.eliminate_zeros()
        files.append(rows)
        advance(rows.indices.nbytes)
    buckets.close()
    return Counts(parallel, weightless)


def _joined(rows: sp.csr_array, *, sort: bool, once: bool, weighted: bool) -> sp.csr_array:
    """Sorted rows whose parallel edges are one: their sum, or with `once` the largest of them."""
    if sort:
        rows.has_sorted_indices = False
    rows.sort_indices()
    if once and weighted and rows.nnz:
        new = np.ones(rows.nnz, dtype=bool)
        np.not_equal(rows.indices[1:], rows.indices[:-1], out=new[1:])
        starts = rows.indptr[:-1]
        new[starts[starts < rows.nnz]] = True
        first = np.flatnonzero(new)
        indptr = np.concatenate(([0], np.cumsum(new)))[rows.indptr].astype(rows.indptr.dtype)
        data = np.maximum.reduceat(rows.data, first)
        return sp.csr_array((data, rows.indices[first], indptr), shape=rows.shape)
    rows.sum_duplicates()
    if once:
        rows.data[:] = 1
    return rows


def _check_sums(rows: sp.csr_array, first: int) -> None:
    """Raise if the weights of parallel edges overflow; the first row of the block has number `first`."""
    if rows.nnz and not rows.data.max() < np.inf:
        entry = int(np.argmax(rows.data))
        row = first + int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        raise InputError(
            parameter="the weights of parallel edges",
            expected="have a finite sum",
            got=f"more than {rows.data.dtype} holds on edge {rows.indices[entry]} -> {row}",
            advice="rescale the weights",
        )
