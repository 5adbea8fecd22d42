"""k-means on vectors: their coordinates, the best of several starts, and how many clusters there are.

Unit rows are turned to their leading principal axes first, which keeps their distances and costs a fraction. Every sum
has a fixed order, so the threads change no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fishergraph._errors import FewPointsWarning
from fishergraph._parallel import map_blocks, one_blas_thread, row_blocks
from fishergraph._progress import Progress, silent
from fishergraph._warn import each_warning_once
from fishergraph.axes import principal_axes
from fishergraph.em.kmeans import kmeans
from fishergraph.em.unit import unit_rows
from fishergraph.vectors.points import BLOCK, Points

AUTO = (*range(2, 13), 15, 20, 25, 30)  # numbers of clusters that "auto" tries
_AXES = 64
_LEARNED_FROM = 20_000  # rows that the axes are learned from
_ITERATIONS = 50
STARTS, _FEW_STARTS = 10, 3  # of the result, and while numbers of clusters are compared
_COMPARED = 5000  # rows on which numbers of clusters are compared
_JUDGED = 2500  # rows whose silhouette is taken
_HALVES = 4


@dataclass(frozen=True)
class Clustering:
    """Centres and labels, clusters in the order of their sizes.

    labels : (row,) the cluster of every row.
    centres : (cluster, axis).
    squares : (row,) ‖x − c‖².
    """

    labels: np.ndarray
    centres: np.ndarray
    squares: np.ndarray

    @property
    def loss(self) -> float:
        """Σ ‖x − c‖²."""
        return float(self.squares.sum())


def coordinates(points: Points, *, unit: bool, rng: np.random.Generator, n_jobs: int | None) -> np.ndarray:
    """The rows, or their directions, on at most 64 principal axes, (row, axis)."""
    chosen = np.sort(rng.permutation(points.n_rows)[:_LEARNED_FROM])
    sample = _rows(points, chosen, unit)
    centre = sample.mean(axis=0, dtype=np.float64).astype(sample.dtype)
    axes = None if points.n_columns <= _AXES else principal_axes(sample - centre, _AXES, rng)[1].T
    out = np.empty((points.n_rows, points.n_columns if axes is None else axes.shape[1]), sample.dtype)

    def fill(rows: slice) -> None:
        centred = _rows(points, rows, unit) - centre
        out[rows] = centred if axes is None else centred @ axes

    map_blocks(fill, row_blocks(points.n_rows, BLOCK), n_jobs=n_jobs)
    return out


def _rows(points: Points, rows: Any, unit: bool) -> np.ndarray:
    block = points.read(rows)
    return unit_rows(block) if unit else block


def best_clusters(
    rows: np.ndarray,
    k: int,
    rng: np.random.Generator,
    *,
    starts: int = STARTS,
    n_jobs: int | None = None,
    done: Callable[[int], Any] = lambda n: None,
) -> Clustering:
    """k-means of the rows, the best of several starts."""
    best: Clustering | None = None
    for stream in rng.spawn(starts):
        centres = kmeans(rows, k, rng=stream, init="k-means++", n_iter=_ITERATIONS, n_jobs=n_jobs, what="clusters")
        found = Clustering(*assign(rows, centres, n_jobs))
        best = found if best is None or found.loss < best.loss else best
        done(1)
    assert best is not None
    return _by_size(best)


def assign(rows: np.ndarray, centres: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nearest centre of every row, of equally near ones the first; the centres; and ‖x − c‖² in float64."""
    labels, squares, wide = np.empty(len(rows), np.int64), np.empty(len(rows)), centres.astype(np.float64)
    halves = 0.5 * np.einsum("ij,ij->i", wide, wide)

    def fill(part: slice) -> None:
        block = rows[part].astype(np.float64)
        labels[part] = (block @ wide.T - halves).argmax(axis=1)
        gaps = block - wide[labels[part]]
        squares[part] = np.einsum("ij,ij->i", gaps, gaps)

    map_blocks(fill, row_blocks(len(rows), BLOCK), n_jobs=n_jobs)
    return labels, centres, squares


def _by_size(found: Clustering) -> Clustering:
    """The same clusters, the largest first and empty ones left out."""
    sizes = np.bincount(found.labels, minlength=len(found.centres))
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    rank = np.zeros(len(sizes), np.int64)
    rank[order] = np.arange(len(order))
    return Clustering(rank[found.labels], found.centres[order], found.squares)


# --- how many -------------------------------------------------------------------------------------------


def choose_k(
    rows: np.ndarray,
    candidates: Sequence[int],
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[int, list[dict[str, Any]]]:
    """The number of clusters of the largest score, the smallest of equal ones, and a record of every candidate.

    The score is silhouette × stability, on a sample of the rows. The silhouette says how far apart clusters are: the
    mean of (b − a) / max(a, b), a the mean distance to the rows of the own cluster, b to those of the nearest other.
    The stability says how reproducible they are: the mean adjusted Rand index of clusterings of four random halves, by
    which all rows are labelled.
    """
    sample = rows[np.sort(rng.permutation(len(rows))[:_COMPARED])]
    halves = [np.sort(rng.permutation(len(sample))[: -(-len(sample) // 2)]) for _ in range(_HALVES)]
    judged = np.sort(rng.permutation(len(sample))[:_JUDGED])

    def judge(task: tuple[int, np.random.Generator]) -> dict[str, Any]:
        k, stream = task
        labels = best_clusters(sample, k, stream, starts=_FEW_STARTS, n_jobs=1).labels
        apart, stable = silhouette(sample[judged], labels[judged]), _stability(sample, halves, k, stream)
        return {"k": k, "silhouette": apart, "stability": stable, "score": max(apart, 0.0) * stable}

    tasks = list(zip(candidates, rng.spawn(len(candidates)), strict=True))
    with progress("choosing k", len(tasks)) as bar, each_warning_once(silence=(FewPointsWarning,)):
        report = map_blocks(judge, tasks, n_jobs=n_jobs, advance=bar.update)
    best = max(report, key=lambda record: (record["score"], -record["k"]))
    return int(best["k"]), report


def silhouette(rows: np.ndarray, labels: np.ndarray) -> float:
    """The mean silhouette of the rows; 0 if they are in one cluster, or each in its own."""
    from sklearn.metrics import silhouette_score

    if not 1 < len(np.unique(labels)) < len(labels):
        return 0.0
    with one_blas_thread():
        return float(silhouette_score(rows.astype(np.float64), labels))


def _stability(rows: np.ndarray, halves: list[np.ndarray], k: int, rng: np.random.Generator) -> float:
    """The mean adjusted Rand index of the labels of all rows by clusterings of several halves."""
    from sklearn.metrics import adjusted_rand_score

    labels = []
    for half, stream in zip(halves, rng.spawn(len(halves)), strict=True):
        centres = best_clusters(rows[half], min(k, len(half)), stream, starts=_FEW_STARTS, n_jobs=1).centres
        labels.append(assign(rows, centres, 1)[0])
    return float(np.mean([adjusted_rand_score(first, second) for first, second in combinations(labels, 2)]))
