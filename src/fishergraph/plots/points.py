"""Points in the plane: t-SNE maps of embeddings, and scatter plots coloured by label."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph.io.files import check_folder
from fishergraph.plots.style import INK, MARKERS, PALETTE, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_AXES = 50  # principal axes before t-SNE, as its authors advise


def tsne_map(Z: Any, seed: int) -> np.ndarray:
    """Project an embedding to the plane by t-SNE.

    It runs on one thread: its many short loops gain nothing from more.

    Parameters
    ----------
    Z : array of shape (n, n_features)
        An embedding of at least 50 rows and columns.
    seed : int
        Seed of t-SNE.

    Returns
    -------
    array of shape (n, 2)
        The coordinates.

    See Also
    --------
    scatter : Draw the coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.plots import tsne_map
    >>> tsne_map(np.random.default_rng(0).normal(size=(60, 50)), seed=0).shape
    (60, 2)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with one_blas_thread(), threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = PCA(_AXES, svd_solver="covariance_eigh").fit_transform(Z)
        return TSNE(init="pca", max_iter=500, angle=0.7, random_state=seed, n_jobs=1).fit_transform(axes)


def scatter(
    coordinates: Any,
    labels: Any,
    *,
    title: str = "",
    names: Sequence[str] | Mapping[Any, str] | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw points in the plane, coloured by label.

    Parameters
    ----------
    coordinates : array of shape (n, 2)
        The points, such as an embedding projected by t-SNE or PCA.
    labels : array of shape (n,)
        The class of each point: numbers or strings.
    title : str, default=""
        A line above the points.
    names : sequence or mapping, default=None
        The names of the classes in the legend: ``names[label]``.
    ax : Axes of Matplotlib, default=None
        Axes to draw on; None makes a new figure.
    path : str or path, default=None
        A file to write; its suffix decides the format. The file appears complete or not at all.

    Returns
    -------
    Figure
        The figure of Matplotlib.

    See Also
    --------
    tsne_map : Project an embedding to the plane.

    Examples
    --------
    >>> from fishergraph.plots import scatter
    >>> len(scatter([[0, 0], [1, 1]], ["a", "b"]).axes)
    1
    """
    points, classes, codes = check_points(coordinates, labels)
    legend = legend_names(classes, names)
    if path is not None:
        check_folder(Path(path))
    figure = ax.figure if ax is not None else new_figure()
    ax = ax if ax is not None else figure.add_subplot()
    draw_points(ax, points, codes, len(classes))
    _dress(ax, title, legend)
    if path is not None:
        save(figure, Path(path))
    return figure


def draw_points(ax: Any, points: np.ndarray, codes: np.ndarray, n_classes: int, size: float | None = None) -> None:
    """Put the points on the axes, in an order that lets no class lie on top of all others."""
    if size is None:
        size = float(np.clip(30_000 / max(len(points), 1), 3, 60))  # points², so that the ink stays about the same
    shuffled = np.random.default_rng(0).permutation(len(points))
    colours = np.array([PALETTE[k % len(PALETTE)] for k in range(n_classes)])
    for start in range(0, n_classes, len(PALETTE)):
        rows = shuffled[(codes[shuffled] >= start) & (codes[shuffled] < start + len(PALETTE))]
        ax.scatter(
            points[rows, 0],
            points[rows, 1],
            s=size,
            c=colours[codes[rows]],
            marker=_marker(start),
            alpha=0.8,
            linewidths=0,
            rasterized=len(points) > 5_000,  # a vector file of many points is slow to open
        )


def _marker(code: int) -> str:
    return MARKERS[code // len(PALETTE) % len(MARKERS)]


def _dress(ax: Any, title: str, legend: list[str]) -> None:
    """Equal scales, no frame or ticks (the coordinates mean nothing), and a legend beside the points."""
    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()
    ax.margins(0.02)
    if title:
        ax.set_title(title, loc="left", fontsize=12, color=INK, pad=10)
    handles = legend_handles(legend)
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=10,
        labelcolor=INK,
        handletextpad=0.3,
        labelspacing=0.7,
        ncols=1 + (len(handles) - 1) // 20,
    )


def legend_handles(names: Sequence[str], size: float = 7) -> list[Any]:
    """A coloured mark per class for a legend."""
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [], [], linestyle="none", marker=_marker(k), markersize=size, color=PALETTE[k % len(PALETTE)], label=name
        )
        for k, name in enumerate(names)
    ]


# The door.


def check_points(coordinates: Any, labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points (n, 2), the classes that occur, and the class number (n,) of each point."""
    points, labels = np.asarray(coordinates), np.asarray(labels)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiub":
        raise InputError(
            parameter="coordinates",
            expected="be numbers of shape (n, 2)",
            got=f"{points.dtype} of shape {points.shape}",
            advice="project the embedding to two dimensions first, with sklearn.manifold.TSNE for example",
        )
    if labels.shape != (len(points),):
        raise InputError(
            parameter="labels",
            expected=f"have shape ({len(points)},)",
            got=f"{labels.shape}",
            advice="pass one label per point",
        )
    check_finite_rows(points, "coordinates")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:  # they cannot be sorted
        raise InputError(
            parameter="labels",
            expected="be of one type",
            got="several, or some that are missing",
            advice="pass labels.astype(str), for example",
        ) from None
    return points, classes, codes


def legend_names(classes: np.ndarray, names: Sequence[str] | Mapping[Any, str] | None) -> list[str]:
    """The name of each class that occurs."""
    values = classes.tolist()
    if names is None:
        return [str(value) for value in values]
    try:
        found = names if isinstance(names, Mapping) else dict(enumerate(names))  # -1 is not the last of a list
        return [str(found[value]) for value in values]
    except (KeyError, TypeError):
        raise InputError(
            parameter="names",
            expected=f"hold a name for each of the labels {', '.join(map(repr, values))}",
            got=f"{names!r}",
            advice="add it",
        ) from None
