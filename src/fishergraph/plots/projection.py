"""Coordinates in the plane: principal axes, t-SNE and UMAP."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fishergraph._arrays import as_floats, check_finite_rows, is_table
from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Progress, Verbose, progress_bar
from fishergraph._typing import MatrixLike
from fishergraph._validation import check_integer, look_up

_FEWEST = 4  # rows whose neighbours can differ
_PRINCIPAL_AXES = 50  # before t-SNE and UMAP, as their authors advise
_LEARNED_FROM = 100_000  # rows
_MOST_COLUMNS = 2048  # whose covariance matrix is decomposed
_BLOCK = 2**25  # numbers of a block of rows


def project(
    Z: MatrixLike, method: str = "tsne", *, random_state: int | None = 0, verbose: Verbose = False
) -> np.ndarray:
    """Project an embedding to the plane.

    Parameters
    ----------
    Z : matrix of shape (n, n_columns)
        An embedding.
    method : {"pca", "tsne", "umap"}, default="tsne"
        Principal axes, which take seconds and show what differs most; t-SNE or UMAP (extra `umap`), which show what is
        near, of the first 50 principal axes. Axes of more than 100,000 rows are learned from so many of them.
    random_state : int or None, default=0
        Seed of UMAP, and of the rows that axes are learned from. t-SNE starts at principal axes and draws nothing.
    verbose : bool or callable, default=False
        Show a progress bar; see `FisherEmbedding`.

    Returns
    -------
    array of shape (n, 2)
        The coordinates; the same seed gives the same ones.

    See Also
    --------
    embedding_map : Draws them.

    Notes
    -----
    t-SNE of 20,000 rows takes half a minute, and so does UMAP; t-SNE of a million takes hours. Both run on one thread:
    with several the coordinates would differ from run to run.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.plots import project
    >>> project(np.random.default_rng(0).normal(size=(100, 64)), "pca").shape
    (100, 2)
    """
    function = _METHODS[check_method(method)]
    seed = None if random_state is None else check_integer(random_state, "random_state", least=0, most=2**32 - 1)
    Z = check_embedding(Z)
    progress = progress_bar(verbose)
    if (Z.min(axis=0) == Z.max(axis=0)).all():  # nothing differs, or there is one row
        return np.zeros((len(Z), 2), dtype=Z.dtype)
    with one_blas_thread():
        return function(Z, seed, progress)


def check_method(method: str) -> str:
    """The name of a method whose packages are installed."""
    look_up(_METHODS, method, "method")
    if method == "umap":
        require("umap", extra="umap")
    return method


def matrix_and_ids(Z: Any) -> tuple[Any, Any]:
    """The matrix of an embedding, and the ids of its rows: those of a record, or the index of a table of pandas."""
    if is_table(Z):  # whose columns may have any names
        return Z, Z.index if hasattr(Z, "iloc") else None
    return getattr(Z, "Z", Z), getattr(Z, "ids", None)


def check_embedding(Z: MatrixLike) -> np.ndarray:
    """The embedding as a dense array of finite floats with a row at least."""
    dense = as_floats(matrix_and_ids(Z)[0], "Z")
    if hasattr(dense, "indptr"):
        advice = "embed it first, or pass Z.toarray()"
        raise InputError(parameter="Z", expected="be dense", got="a sparse matrix", advice=advice)
    if dense.ndim != 2 or 0 in dense.shape:
        raise InputError(parameter="Z", value=dense.shape, expected="be a matrix with a row and a column at least")
    check_finite_rows(dense, "Z")
    return dense


def on_principal_axes(Z: np.ndarray, n_axes: int, seed: int | None) -> np.ndarray:
    """Coordinates of rows on their principal axes, (row, axis).

    Axes of more than 100,000 rows are learned from a sample, and rows are projected by blocks.
    """
    from sklearn.decomposition import PCA

    n_rows, n_columns = Z.shape
    n_axes = min(n_axes, n_rows, n_columns)
    rows: Any = slice(None)
    if n_rows > _LEARNED_FROM:
        rows = np.sort(np.random.default_rng(seed).choice(n_rows, _LEARNED_FROM, replace=False))
    solver = "covariance_eigh" if n_columns <= _MOST_COLUMNS else "randomized"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without variance there are no shares of it
        pca = PCA(n_axes, svd_solver=solver, random_state=seed).fit(Z[rows])
    step = max(_BLOCK // n_columns, 1)
    return np.concatenate([pca.transform(Z[start : start + step]) for start in range(0, n_rows, step)])


def _pca(Z: np.ndarray, seed: int | None, progress: Progress) -> np.ndarray:
    with _bar(progress, "PCA"):
        return _in_plane(on_principal_axes(Z, 2, seed))


def _tsne(Z: np.ndarray, seed: int | None, progress: Progress) -> np.ndarray:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if len(Z) < _FEWEST:
        return _pca(Z, seed, progress)
    with _bar(progress, "t-SNE"), threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = on_principal_axes(Z, _PRINCIPAL_AXES, seed)
        if not axes[:, 0].std() > 0:  # their squares are zeros, and t-SNE would divide by one
            return _in_plane(axes[:, :2])
        options: dict[str, Any] = {"init": "pca" if axes.shape[1] > 1 else "random", "max_iter": 500, "angle": 0.7}
        perplexity = min(30.0, (len(Z) - 1) / 3)
        return TSNE(perplexity=perplexity, random_state=seed, n_jobs=1, **options).fit_transform(axes)


def _umap(Z: np.ndarray, seed: int | None, progress: Progress) -> np.ndarray:
    if len(Z) < _FEWEST:
        return _pca(Z, seed, progress)
    with _bar(progress, "UMAP"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = on_principal_axes(Z, _PRINCIPAL_AXES, seed)
        kind: Any = require("umap", extra="umap").UMAP
        init = "spectral" if len(Z) > 15 else "random"  # the eigenvectors of a small graph do not converge
        return kind(n_neighbors=min(15, len(Z) - 1), init=init, random_state=seed, n_jobs=1).fit_transform(axes)


_METHODS = {"pca": _pca, "tsne": _tsne, "umap": _umap}


@contextmanager
def _bar(progress: Progress, title: str) -> Iterator[None]:
    """A part of the work in one step: the methods do not say how far they are."""
    with progress(title, 1) as bar:
        yield
        bar.update(1)


def _in_plane(coordinates: np.ndarray) -> np.ndarray:
    """The coordinates with a second column of zeros, if they have one column."""
    missing = 2 - coordinates.shape[1]
    return np.pad(coordinates, ((0, 0), (0, missing))) if missing else coordinates
