"""Coordinates in the plane: PCA, t-SNE and UMAP, and which nodes of very many a page shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import InputError, InputTypeError
from fishergraph._optional import require
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Progress
from fishergraph._repr import short_repr

CELLS = 256  # along each side of the raster of a map
_AXES = 50  # before t-SNE and UMAP, as their authors advise
_SAMPLED = 100_000  # rows from which principal axes are learned
_BLOCK = 16_384  # rows that are projected at once
MOST_TSNE = 10_000  # nodes that t-SNE places in less than a minute
_STEPS = 65_535  # of a coordinate on the page
_BORDER = 0.97  # from where on far points are moved closer
_ROOM = 0.25  # that is left around nearly all points, in their width
_FEW = 5  # nodes that need no map but PCA
_MANY = 1000  # points of which a few do not count

NAMES = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}
NOTES = {
    "pca": "The two principal axes of the embedding.",
    "tsne": "t-SNE keeps neighbours together; distances between far groups mean little.",
    "umap": "UMAP keeps neighbours together; distances between far groups mean little.",
}


@dataclass(frozen=True, eq=False, repr=False)
class Map:
    """Nodes in the plane.

    Attributes
    ----------
    name : str
        How it was made.
    points : array of shape (n, 2)
        Coordinates in [−1, 1].
    note : str
        What a reader must know of it.
    """

    name: str
    points: np.ndarray
    note: str = ""

    __repr__ = short_repr

    @property
    def steps(self) -> np.ndarray:
        """The coordinates as integers of two bytes, (n, 2)."""
        return np.rint((self.points + 1) / 2 * _STEPS).astype(np.uint16)

    @property
    def cells(self) -> np.ndarray:
        """The cell of the raster that each point is in, row by row from below."""
        column, row = np.minimum(((self.points + 1) / 2 * CELLS).astype(np.int64), CELLS - 1).T
        return row * CELLS + column

    def raster(self, weights: np.ndarray) -> np.ndarray:
        """The nodes in every cell, if a point stands for so many."""
        return np.bincount(self.cells, weights=weights, minlength=CELLS * CELLS)

    def take(self, rows: np.ndarray) -> Map:
        """The map of some nodes."""
        return Map(self.name, self.points[rows], self.note)


def in_square(coordinates: np.ndarray) -> np.ndarray:
    """Coordinates moved and scaled into [−1, 1]², both axes alike.

    A few points that are far from all others do not push these together: they are drawn at the border, in their order.
    """
    coordinates = np.asarray(coordinates, dtype=np.float64)
    low, high = _frame(coordinates)
    half = float((high - low).max()) / 2 or 1.0
    scaled = (coordinates - (low + high) / 2) / half
    if np.abs(scaled).max(initial=0.0) > 1 + 1e-9:
        beyond = np.abs(scaled) > _BORDER
        excess = np.abs(scaled[beyond]) - _BORDER
        scaled[beyond] = np.sign(scaled[beyond]) * (_BORDER + (1 - _BORDER) * np.tanh(excess / (1 - _BORDER)))
    return scaled.clip(-1, 1)


def _frame(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper corner of what is shown: of all points, unless a few are far away."""
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    if len(coordinates) > _MANY:
        inner = np.quantile(coordinates, [0.001, 0.999], axis=0)
        room = _ROOM * (inner[1] - inner[0])
        low, high = np.maximum(low, inner[0] - room), np.minimum(high, inner[1] + room)
    return low, high


# --- which maps ---------------------------------------------------------------------------------------------


def chosen_maps(maps: Any, n_shown: int, n: int) -> tuple[list[str], dict[str, np.ndarray]]:
    """The names of the maps to compute, the first shown, and coordinates that were passed.

    "auto" is PCA with t-SNE, or UMAP if it is installed and the nodes that are shown are many.
    """
    if isinstance(maps, Mapping) and maps:
        return [], {str(name): _given(points, str(name), n) for name, points in maps.items()}
    if isinstance(maps, str):
        maps = _automatic(n_shown) if maps == "auto" else [maps]
    if not isinstance(maps, Sequence) or not maps:
        expected = f"be 'auto', names among {', '.join(NAMES)}, or a mapping of names to coordinates"
        raise InputTypeError(parameter="maps", value=maps, expected=expected)
    names = [str(name).lower().replace("-", "") for name in maps]
    for name in names:
        if name not in NAMES:
            raise InputError(parameter="maps", value=name, expected=f"be among {', '.join(NAMES)}, or 'auto'")
    if "umap" in names:
        require("umap", extra="umap")
    return list(dict.fromkeys(names)), {}


def _automatic(n: int) -> list[str]:
    if n < _FEW:
        return ["pca"]
    if n <= MOST_TSNE:
        return ["tsne", "pca"]
    try:
        require("umap", extra="umap")
    except ImportError:
        return ["pca"]
    return ["umap", "pca"]


def _given(points: Any, name: str, n: int) -> np.ndarray:
    points = np.asarray(points, dtype=np.float64)
    if points.shape != (n, 2):
        expected = f"have shape ({n}, 2), a row per node"
        raise InputError(parameter=f"maps[{name!r}]", value=points.shape, expected=expected)
    check_finite_rows(points, f"maps[{name!r}]")
    return points


# --- computing them -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axes:
    """The principal axes of an embedding: `mean` (d,), `basis` (d, k)."""

    mean: np.ndarray
    basis: np.ndarray

    def project(self, Z: np.ndarray, width: int) -> np.ndarray:
        """The first coordinates of every row, by blocks of rows."""
        basis, shift = self.basis[:, :width], self.mean @ self.basis[:, :width]
        out = np.zeros((len(Z), width), dtype=np.float32)
        for start in range(0, len(Z), _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block, : basis.shape[1]] = Z[block] @ basis - shift
        return out


def principal_axes(Z: np.ndarray, seed: int) -> Axes:
    """The leading principal axes, learned from a sample of the rows; their signs follow a rule."""
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(seed)
    sample = Z if len(Z) <= _SAMPLED else Z[np.sort(rng.choice(len(Z), _SAMPLED, replace=False))]
    width = min(_AXES, *sample.shape)
    if len(sample) < 2:
        return Axes(sample[0], np.zeros((sample.shape[1], 0), dtype=np.float32))
    solver = "covariance_eigh" if sample.shape[1] <= 2000 else "randomized"
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that are all alike
        pca = PCA(width, svd_solver=solver, random_state=seed).fit(sample)
    basis: Any = pca.components_
    return Axes(pca.mean_.astype(np.float32), np.ascontiguousarray(basis.T, dtype=np.float32))


def computed_map(name: str, axes: np.ndarray, seed: int, progress: Progress) -> Map:
    """One of the maps, from the coordinates of the nodes on the principal axes."""
    with progress(NAMES[name], 1) as bar:
        points = _COMPUTE[name](axes, seed)
        bar.update(1)
    return Map(NAMES[name], in_square(points), NOTES[name])


def _pca(axes: np.ndarray, seed: int) -> np.ndarray:
    return axes[:, :2]


def _tsne(axes: np.ndarray, seed: int) -> np.ndarray:
    """t-SNE on one thread, whose many short loops gain nothing from more."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    spread = float(axes[:, 0].std())
    if len(axes) < _FEW or spread == 0:
        return axes[:, :2]
    # The init that scikit-learn calls "pca", but nodes that are alike, or on a line, do not begin at one place.
    init = 1e-4 / spread * axes[:, :2] + 1e-6 * np.random.default_rng(seed).normal(size=(len(axes), 2))
    perplexity = min(30.0, (len(axes) - 1) / 3)
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start: Any = init.astype(np.float32)
        model = partial(TSNE, init=start)
        return model(perplexity=perplexity, max_iter=500, angle=0.7, random_state=seed, n_jobs=1).fit_transform(axes)


def _umap(axes: np.ndarray, seed: int) -> np.ndarray:
    umap = require("umap", extra="umap")
    if len(axes) < _FEW or not axes.std():
        return axes[:, :2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that a seed costs it its threads
        return umap.UMAP(n_neighbors=min(15, len(axes) - 1), random_state=seed).fit_transform(axes)


_COMPUTE: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {"pca": _pca, "tsne": _tsne, "umap": _umap}


# --- very many nodes ----------------------------------------------------------------------------------------


def density_sample(cells: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, in order, and how many rows each stands for: the denser a cell of the map, the fewer of its rows.

    A cell of c rows keeps about f √c of them, and all of them if that is more; f gives the size. Sparse regions stay
    as they are, and dense ones still look denser.
    """
    counts = np.bincount(cells, minlength=CELLS * CELLS).astype(np.float64)
    low, high = 0.0, float(np.sqrt(counts.max()))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(counts, middle * np.sqrt(counts)).sum() < size else (low, middle)
    rng = np.random.default_rng(seed)
    wanted = np.minimum(counts, high * np.sqrt(counts))
    quota = np.floor(wanted + rng.random(len(wanted))).clip(max=counts).astype(np.int64)
    quota[(counts > 0) & (quota == 0)] = 1
    shuffled = rng.permutation(len(cells))
    by_cell = shuffled[np.argsort(cells[shuffled], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
    place = np.arange(len(cells)) - np.repeat(starts, counts.astype(np.int64))
    kept = np.sort(by_cell[place < np.repeat(quota, counts.astype(np.int64))])
    if len(kept) > size:
        kept = np.sort(rng.choice(kept, size, replace=False))
    stands = counts / np.maximum(np.bincount(cells[kept], minlength=CELLS * CELLS), 1)
    return kept, stands[cells[kept]]


def curve_order(points: np.ndarray) -> np.ndarray:
    """The rows along a curve that fills the map, so that nodes that are near each other have near numbers."""
    x, y = np.rint((points + 1) / 2 * 1023).astype(np.uint64).T
    key = np.zeros(len(points), dtype=np.uint64)
    for bit in range(10):
        key |= ((x >> np.uint64(bit)) & np.uint64(1)) << np.uint64(2 * bit)
        key |= ((y >> np.uint64(bit)) & np.uint64(1)) << np.uint64(2 * bit + 1)
    return np.argsort(key, kind="stable")
