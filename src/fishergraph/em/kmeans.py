"""k-means for anchors and landmarks: few blocked Lloyd iterations with ordered sums, plain or spherical."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import look_up
from fishergraph.blocks import map_blocks, one_blas_thread, row_blocks

# k-means++ over more points than this costs more than it brings (it reads all of them once per centre).
_PLUSPLUS_POINTS = 16_384
_CHUNKS = 8
_BLOCK = 2048
# Columns of the random projection in which many clusters of long vectors are told apart.
_SKETCH = 128
# Multiplications below which the vectors themselves are compared: a projection would save a tenth of a second.
_SKETCH_WORK = 15_000_000_000


def unit_rows(points: Any) -> Any:
    """The rows divided by their lengths; a zero row stays zero. Dense or canonical CSR.

    A row is divided by its largest entry first, so that no square can overflow or vanish.
    """
    if sp.issparse(points):
        counts = np.diff(points.indptr)
        largest = abs(points).max(axis=1).toarray().ravel()
        data = points.data / np.repeat(np.where(largest > 0, largest, 1), counts)
        scaled = sp.csr_array((data, points.indices, points.indptr), shape=points.shape)
        lengths = _row_lengths(scaled)
        data /= np.repeat(np.where(lengths > 0, lengths, 1), counts)
        return scaled
    largest = np.max(np.abs(points), axis=1, keepdims=True, initial=0)
    scaled = np.divide(points, largest, out=np.zeros_like(points), where=largest > 0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, lengths, out=scaled, where=lengths > 0)


def kmeans(
    points: Any,
    n_clusters: int,
    *,
    rng: np.random.Generator,
    spherical: bool = False,
    init: str = "random",
    n_iter: int = 4,
    n_jobs: int | None = None,
    what: str = "anchors",
) -> np.ndarray:
    """Centres (cluster, feature) that lower Σ_i min_j ‖x_i − c_j‖², or raise Σ_i max_j ⟨x_i, c_j⟩ on unit vectors.

    Fewer distinct points than clusters give as many centres as there are distinct points, with a warning.
    """
    start = look_up(INITS, init, "init")
    if spherical:
        points = unit_rows(points)
        live = _row_lengths(points) > 0 if sp.issparse(points) else points.any(axis=1)
        points = points if live.all() else points[live]
    centres = start(points, n_clusters, rng)
    if len(centres) < n_clusters:
        warnings.warn(
            f"asked for {n_clusters} {what}, but the data hold only {len(centres)} distinct points: "
            f"{max(len(centres), 1)} are used.",
            stacklevel=2,
        )
    if len(centres) == 0:  # nothing but zero vectors, which have no direction: any one will do
        return np.eye(1, points.shape[1], dtype=points.dtype)
    with one_blas_thread():
        return _iterate(points, centres, spherical, n_iter if len(centres) > 1 or not spherical else 1, rng, n_jobs)


def _iterate(
    points: Any, centres: np.ndarray, spherical: bool, n_iter: int, rng: np.random.Generator, n_jobs: int | None
) -> np.ndarray:
    """The centres after `n_iter` Lloyd iterations.

    Many clusters of many long vectors are told apart in a random projection, which keeps distances; only the last
    average is taken over the vectors themselves.
    """
    work = points.shape[0] * points.shape[1] * len(centres) * n_iter
    if work < _SKETCH_WORK or points.shape[1] < 4 * _SKETCH or len(centres) * n_iter < 4 * _SKETCH:
        for _ in range(n_iter):
            centres = _lloyd(points, centres, points, centres, spherical, n_jobs)
        return centres
    projection = rng.standard_normal((points.shape[1], _SKETCH), dtype=np.float32).astype(points.dtype, copy=False)
    project = (lambda rows: unit_rows(rows @ projection)) if spherical else (lambda rows: rows @ projection)
    sketch, seen = np.empty((points.shape[0], _SKETCH), points.dtype), project(centres)

    def fill(rows: slice) -> None:
        sketch[rows] = project(points[rows])

    map_blocks(fill, row_blocks(points.shape[0], _BLOCK), n_jobs=n_jobs)
    for _ in range(n_iter - 1):
        seen = _lloyd(sketch, seen, sketch, seen, spherical, n_jobs)
    return _lloyd(sketch, seen, points, centres, spherical, n_jobs)


def _row_lengths(points: Any) -> np.ndarray:
    squares = points.multiply(points) if sp.issparse(points) else points * points
    return np.sqrt(np.asarray(squares.sum(axis=1))).ravel()


def _squares_from(points: Any, origin: np.ndarray) -> np.ndarray:
    """‖x_i − o‖² of every row."""
    if sp.issparse(points):
        return _row_lengths(points) ** 2 - 2 * (points @ origin) + origin @ origin
    return _row_lengths(points - origin) ** 2


def _dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sp.issparse(rows) else np.ascontiguousarray(rows)


def _distinct(points: Any, order: np.ndarray, n: int) -> np.ndarray:
    """The first `n` row numbers along `order` whose rows differ from each other."""
    seen: set[bytes] = set()
    kept: list[int] = []
    for start in range(0, len(order), n):
        chunk = order[start : start + n]
        rows = _dense(points[chunk]) + 0.0  # −0.0 and 0.0 are one point
        for number, row in zip(chunk, rows, strict=True):
            key = row.tobytes()
            if key not in seen:
                seen.add(key)
                kept.append(int(number))
                if len(kept) == n:
                    return np.array(kept)
    return np.array(kept, dtype=np.int64)


def _random_start(points: Any, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Distinct rows, at random."""
    return _dense(points[_distinct(points, rng.permutation(points.shape[0]), n_clusters)])


def _plusplus_start(points: Any, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ on at most 16,384 of the rows."""
    from sklearn.cluster import kmeans_plusplus

    rows = rng.permutation(points.shape[0])[: max(_PLUSPLUS_POINTS, n_clusters)]
    distinct = _distinct(points, rows, n_clusters)
    if len(distinct) < n_clusters:
        return _dense(points[distinct])
    with one_blas_thread():
        centres, _ = kmeans_plusplus(points[rows], n_clusters, random_state=int(rng.integers(2**31)))
    return _dense(centres)


INITS: dict[str, Callable[[Any, int, np.random.Generator], np.ndarray]] = {
    "random": _random_start,
    "k-means++": _plusplus_start,
}


def _lloyd(
    seen: Any, seen_centres: np.ndarray, points: Any, centres: np.ndarray, spherical: bool, n_jobs: int | None
) -> np.ndarray:
    """The centres after one assignment, of what is `seen` of the points, and one average, of the points themselves."""
    n = seen.shape[0]
    # Measured from the mean centre o: far from the origin, ⟨x, c⟩ − ‖c‖²/2 would drown in its own rounding.
    origin = np.zeros_like(seen_centres[0]) if spherical else seen_centres.mean(axis=0)
    shifted = seen_centres - origin
    exact = shifted.astype(np.float64)
    offset = np.zeros(len(centres)) if spherical else exact @ origin + 0.5 * np.sum(exact**2, axis=1)
    offset = offset.astype(centres.dtype)
    gains = np.empty(n, centres.dtype)  # ⟨x − o, c − o⟩ − ‖c − o‖²/2 at the best centre: (‖x − o‖² − ‖x − c‖²)/2

    def chunk_sums(chunk: slice) -> tuple[np.ndarray, np.ndarray]:
        sums = np.zeros_like(centres)
        counts = np.zeros(len(centres), np.int64)
        for rows in row_blocks(chunk.stop - chunk.start, _BLOCK):
            block = slice(chunk.start + rows.start, chunk.start + rows.stop)
            scores = seen[block] @ shifted.T - offset
            labels = np.argmax(scores, axis=1)
            gains[block] = scores[np.arange(len(labels)), labels]
            _add_segments(points[block], labels, sums)
            counts += np.bincount(labels, minlength=len(centres))
        return sums, counts

    # The chunks are fixed, and their sums are added in order: the threads cannot change a bit.
    parts = map_blocks(chunk_sums, row_blocks(n, max(_BLOCK, -(-n // _CHUNKS))), n_jobs=n_jobs)
    sums, counts = parts[0]
    for more_sums, more_counts in parts[1:]:
        sums += more_sums
        counts += more_counts
    loss = -gains if spherical or counts.all() else 0.5 * _squares_from(seen, origin) - gains
    return _averages(points, centres, sums, counts, loss, spherical)


def _averages(
    points: Any,
    centres: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    loss: np.ndarray,
    spherical: bool,
) -> np.ndarray:
    """The mean of each cluster (its direction when spherical); the points of largest loss restart the empty ones."""
    full = counts > 0
    new = centres.copy()
    if spherical:
        lengths = np.linalg.norm(sums, axis=1)
        full &= lengths > 0  # opposite vectors have no mean direction: the old centre stays
        new[full] = sums[full] / lengths[full, None]
    else:
        new[full] = sums[full] / counts[full, None].astype(sums.dtype)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        worst = np.argsort(-loss, kind="stable")[: len(empty)]
        new[empty[: len(worst)]] = _dense(points[worst])
    return new


def _add_segments(rows: Any, labels: np.ndarray, sums: np.ndarray) -> None:
    """sums[labels[i]] += rows[i], in the order of the rows."""
    if sp.issparse(rows):
        pick = sp.csr_array(
            (np.ones(len(labels), sums.dtype), (labels, np.arange(len(labels)))), (len(sums), len(labels))
        )
        sums += (pick @ rows).toarray()
        return
    from fishergraph.ops.numba_cpu import add_segments

    add_segments(np.ascontiguousarray(rows), labels, sums)
