"""k-means for anchors and landmarks: few blocked Lloyd iterations with ordered sums, plain or spherical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph._arrays import check_dense
from fishergraph._errors import FewPointsWarning
from fishergraph._parallel import block_rows, map_blocks, one_blas_thread, progress_steps, row_blocks
from fishergraph._typing import Array, Rng, Rows
from fishergraph._validation import look_up
from fishergraph._warn import warn
from fishergraph.device import device_kind
from fishergraph.em.unit import directions, row_lengths, stored, unit_rows

# k-means++ over more points than this costs more than it brings (it reads all of them once per centre).
_PLUSPLUS_POINTS = 16_384
CHUNKS = 8
# Rows that are searched together for more distinct ones.
_MORE = 64
_BLOCK = 2048
# Columns of the random projection in which many clusters of long vectors are told apart.
SKETCH = 128
# Multiplications below which the vectors themselves are compared: a projection would save a tenth of a second.
_SKETCH_WORK = 15_000_000_000


def kmeans(
    points: Rows,
    n_clusters: int,
    *,
    rng: Rng,
    spherical: bool = False,
    init: str = "random",
    n_iter: int = 4,
    n_jobs: int | None = None,
    what: str = "anchors",
) -> Any:
    """Centres (cluster, feature) that lower Σ_i min_j ‖x_i − c_j‖², or raise Σ_i max_j ⟨x_i, c_j⟩ on unit vectors.

    Fewer distinct points than clusters give as many centres as there are distinct points, with a warning. `rng` is a
    NumPy generator, or for tensors a `TensorStream`.
    """
    start = look_up(INITS, init, "init")
    if spherical:
        points = directions(points, n_jobs)
    chosen = start(points, n_clusters, rng)
    centres = dense_rows(points[chosen])
    used = max(len(centres), 1)
    if used < n_clusters:
        warn(FewPointsWarning(what=what, asked=n_clusters, used=used))
    if len(centres) == 0:  # nothing but zero vectors, which have no direction: any one will do
        return array_namespace(centres).eye(1, points.shape[1], dtype=centres.dtype, device=device_of(centres))
    n_iter = n_iter if len(centres) > 1 or not spherical else 1
    work = 0 if is_torch_array(points) else points.shape[0] * points.shape[1] * len(centres) * n_iter
    with one_blas_thread():
        if work >= _SKETCH_WORK and points.shape[1] >= 4 * SKETCH and len(centres) * n_iter >= 4 * SKETCH:
            return _iterate_sketched(points, centres, chosen, spherical, n_iter, rng, n_jobs)
        xp = array_namespace(centres)
        for _ in range(n_iter):
            before, centres = centres, _lloyd(points, centres, points, centres, spherical, n_jobs)
            if bool(xp.all(before == centres)):
                break  # no point changes its cluster any more
        return centres


def kmeans_work(n_points: int, n_features: int, n_clusters: int, n_iter: int = 4) -> float:
    """The multiplications of `kmeans`, which tells many clusters of long vectors apart in a projection."""
    work = float(n_iter * n_points * n_features * n_clusters)
    if work >= _SKETCH_WORK and n_features >= 4 * SKETCH and n_clusters * n_iter >= 4 * SKETCH:
        return float(n_points * SKETCH * (n_features + n_iter * n_clusters))
    return work


def _iterate_sketched(
    points: Any, centres: Array, chosen: np.ndarray, spherical: bool, n_iter: int, rng: Any, n_jobs: int | None
) -> Any:
    """The centres after `n_iter` Lloyd iterations from the chosen rows.

    Many clusters of many long vectors are told apart in a random projection, which keeps distances; only the last
    average is taken over the vectors themselves. Tensors are compared as they are: a GPU multiplies fast.
    """
    bits = np.unpackbits(rng.integers(256, size=(points.shape[1], SKETCH // 8), dtype=np.uint8), axis=1)
    projection = 2 * bits.astype(points.dtype) - 1
    sketch, (vectors, _) = np.empty((points.shape[0], SKETCH), centres.dtype), stored(points)

    def fill(rows: slice) -> None:
        sketch[rows] = unit_rows(vectors[rows] @ projection) if spherical else vectors[rows] @ projection

    blocks = row_blocks(points.shape[0], _block_size(points, centres))
    map_blocks(
        fill, blocks, n_jobs=n_jobs, advance=progress_steps(points.shape[0] * points.shape[1] * SKETCH, len(blocks))
    )
    seen = sketch[chosen]
    for _ in range(n_iter - 1):
        seen = _lloyd(sketch, seen, sketch, seen, spherical, n_jobs)
    return _lloyd(sketch, seen, points, centres, spherical, n_jobs)


def _squares_from(points: Any, origin: Array) -> Any:
    """‖x_i − o‖² of every row."""
    if sp.issparse(points):
        return row_lengths(points) ** 2 - 2 * (points @ origin) + origin @ origin
    return row_lengths(points - origin) ** 2


def dense_rows(rows: Any) -> Any:
    """The rows as an array in row order."""
    if is_torch_array(rows):
        return rows
    if not sp.issparse(rows):
        return np.ascontiguousarray(rows)
    check_dense(rows)
    return rows.toarray()


def _distinct(points: Rows, order: Array, n: int) -> Any:
    """The first `n` row indices along `order` whose rows differ from each other."""
    if is_torch_array(points):
        return _distinct_on_device(points, order, n)
    first: dict[bytes, Any] = {}  # the first row with these first entries: most rows differ early
    seen: set[bytes] = set()  # the rows that share their first entries
    kept: list[int] = []
    start = 0
    while start < len(order):
        chunk = order[start : start + max(n - len(kept), _MORE)]
        start += len(chunk)
        rows = dense_rows(points[chunk])
        rows += 0.0  # −0.0 and 0.0 are one point
        for number, row in zip(chunk, rows, strict=True):
            other = first.setdefault(row[:16].tobytes(), row)
            if other is not row:
                seen.add(other.tobytes())
                key = row.tobytes()
                if key in seen:
                    continue
                seen.add(key)
            kept.append(int(number))
            if len(kept) == n:
                return np.array(kept)
    return np.array(kept, dtype=np.int64)


def _distinct_on_device(points: Rows, order: Array, n: int) -> Any:
    """The same without a row leaving its device: four times as many rows nearly always hold enough that differ."""
    from fishergraph.ops.tensor_rows import first_distinct

    kept = first_distinct(points[order[: 4 * n]])
    if len(kept) < n < len(order):
        kept = first_distinct(points[order])
    return order[kept[:n]]


def _random_start(points: Rows, n_clusters: int, rng: Rng) -> Any:
    """The indices of distinct rows, at random."""
    return _distinct(points, rng.permutation(points.shape[0]), n_clusters)


def _plusplus_start(points: Rows, n_clusters: int, rng: Rng) -> Any:
    """The indices of the rows that k-means++ takes, of at most 16,384 of them."""
    from sklearn.cluster import kmeans_plusplus

    rows = rng.permutation(points.shape[0])[: max(_PLUSPLUS_POINTS, n_clusters)]
    distinct = _distinct(points, rows, n_clusters)
    if len(distinct) < n_clusters:
        return distinct
    sample = points[rows]
    # scikit-learn takes NumPy arrays: the sample of a tensor is copied to the host once.
    seen = np.asarray(sample.cpu()) if is_torch_array(sample) else sample
    with one_blas_thread():
        _, chosen = kmeans_plusplus(seen, n_clusters, random_state=int(rng.integers(2**31)))
    return rows[chosen]


INITS: dict[str, Callable[[Rows, int, Rng], Any]] = {
    "random": _random_start,
    "k-means++": _plusplus_start,
}


def _lloyd(seen: Rows, seen_centres: Array, points: Rows, centres: Array, spherical: bool, n_jobs: int | None) -> Any:
    """The centres after one assignment and one average.

    Assignment compares `seen`, the points or a projection of them; the average is taken over the points.
    """
    xp, device = array_namespace(centres), device_of(centres)
    n, k = seen.shape[0], len(centres)
    origin, shifted, offset, coarse = _measured(seen_centres, spherical)
    # ⟨x − o, c − o⟩ − ‖c − o‖²/2 at the best centre: (‖x − o‖² − ‖x − c‖²)/2
    gains = xp.empty(n, dtype=centres.dtype, device=device)
    size = _block_size(points, centres)
    (rows_seen, seen_scales), (rows_stored, scales) = stored(seen), stored(points)

    def chunk_sums(chunk: slice) -> tuple[Any, Any]:
        sums, counts = xp.zeros_like(centres), xp.zeros(k, dtype=xp.int64, device=device)
        for rows in row_blocks(chunk.stop - chunk.start, size):
            block = slice(chunk.start + rows.start, chunk.start + rows.stop)
            scores = rows_seen[block] @ shifted.T - offset
            if not spherical:
                scores = (scores + coarse) - coarse
            labels = xp.argmax(scores, axis=1)
            gains[block] = scores[xp.arange(len(labels), device=device), labels]
            counts += _add_segments(rows_stored[block], labels, sums, None if scales is None else scales[block])
        return sums, counts

    # The chunks are fixed, and their sums are added in order: the threads cannot change a bit.
    chunks = row_blocks(n, max(size, _BLOCK, -(-n // CHUNKS)))
    parts = map_blocks(chunk_sums, chunks, n_jobs=n_jobs, advance=progress_steps(n * seen.shape[1] * k, len(chunks)))
    sums, counts = parts[0]
    for more_sums, more_counts in parts[1:]:
        sums += more_sums
        counts += more_counts
    new = _averages(centres, sums, counts, spherical)
    if bool((counts == 0).any()):
        gains = gains if seen_scales is None else gains * seen_scales
        loss = -gains if spherical else 0.5 * _squares_from(seen, origin) - gains
        _restart(new, counts, points, loss)
    return new


def _measured(centres: Array, spherical: bool) -> tuple[Any, Any, Any, Any]:
    """(o, c − o, offset, grain): the score of a point is ⟨x, c − o⟩ − offset, rounded to 64 units in the last place of
    the largest ‖c − o‖². A zero point ties between unit centres; rounding must not decide for one of them."""
    xp = array_namespace(centres)
    if spherical:
        return xp.zeros_like(centres[0]), centres, xp.zeros_like(centres[:, 0]), 0.0
    # Measured from the mean centre o: far from the origin, ⟨x, c⟩ − ‖c‖²/2 would drown in its own rounding.
    origin = xp.mean(centres, axis=0)
    shifted = centres - origin
    exact = xp.astype(shifted, xp.float64)
    squares = xp.sum(exact * exact, axis=1)
    offset = exact @ xp.astype(origin, xp.float64) + 0.5 * squares
    return origin, shifted, xp.astype(offset, centres.dtype), 64 * xp.astype(xp.max(squares), centres.dtype)


def _averages(centres: Array, sums: Array, counts: Array, spherical: bool) -> Any:
    """The mean of each cluster, or its direction if spherical; the old centre if it has none. Overwrites the sums."""
    xp = array_namespace(centres)
    # Opposite vectors have no mean direction.
    sizes = row_lengths(sums) if spherical else xp.astype(counts, sums.dtype)
    full = (counts > 0) & (sizes > 0)
    sums /= xp.where(full, sizes, xp.ones_like(sizes))[:, None]
    return sums if bool(full.all()) else xp.where(full[:, None], sums, centres)


def _block_size(points: Rows, centres: Array) -> int:
    """Rows whose scores fill a block on a GPU; on the CPU rows that take 4 MB, at least 256."""
    rows = 2**22 // max(1, points.shape[1] * centres.dtype.itemsize)
    return block_rows(device_kind(centres), 8 * len(centres), min(_BLOCK, max(256, rows)))


def _restart(centres: Array, counts: Any, points: Rows, loss: Array) -> None:
    """The points of largest loss become the centres of the empty clusters."""
    xp = array_namespace(centres)
    (empty,) = xp.nonzero(counts == 0)
    worst = xp.argsort(-loss, stable=True)[: len(empty)]
    centres[empty[: len(worst)]] = dense_rows(points[worst])


def _add_segments(rows: Any, labels: Any, sums: Any, scales: Array | None) -> Any:
    """sums[labels[i]] += [scales[i] ·] rows[i], in the order of the rows; returns how many rows each label has."""
    if is_torch_array(sums):
        xp = array_namespace(sums)
        # A product with the indicators has one order of summation; scattered additions on a GPU have none.
        picks = labels[None, :] == xp.arange(len(sums), device=device_of(sums))[:, None]  # (cluster, row)
        sums += xp.astype(picks, sums.dtype) @ rows
        return xp.sum(picks, axis=1)
    if sp.issparse(rows):
        pick = sp.csr_array(
            (np.ones(len(labels), sums.dtype), (labels, np.arange(len(labels)))), (len(sums), len(labels))
        )
        sums += (pick @ rows).toarray()
    elif scales is not None:
        from fishergraph.ops.segment_sums.numba import add_scaled_segments

        add_scaled_segments(rows, scales, labels, sums)
    else:
        from fishergraph.ops.segment_sums.numba import add_segments

        add_segments(np.ascontiguousarray(rows), labels, sums)
    return np.bincount(labels, minlength=len(sums))
