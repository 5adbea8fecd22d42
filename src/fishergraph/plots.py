"""Figures of embeddings and of trainings. The figures of the paper are in `fishergraph.lab.figures`.

The colours are those of Okabe and Ito, which people with any form of colour vision can tell apart; beyond eight classes
the marker changes too. Figures are made without pyplot, so no window opens and no backend is chosen.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._parallel import one_blas_thread
from fishergraph.io.files import check_folder, check_readable, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MARKERS", "PALETTE", "scatter", "training_curves", "tsne_map"]

# Okabe and Ito's eight colours; yellow, the faintest on white, comes last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
INK = "#333333"
_PRINCIPAL_AXES = 50  # before t-SNE, as its authors advise


# --- points in the plane ----------------------------------------------------------------------------------


def tsne_map(Z: np.ndarray, seed: int) -> np.ndarray:
    """Project an embedding to the plane by t-SNE.

    It runs on one thread, because its many short loops gain nothing from more.

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
    scatter : Draws them.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.plots import tsne_map
    >>> tsne_map(np.random.default_rng(0).normal(size=(100, 64)), seed=0).shape
    (100, 2)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with one_blas_thread(), threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = PCA(_PRINCIPAL_AXES, svd_solver="covariance_eigh").fit_transform(Z)
        return TSNE(init="pca", max_iter=500, angle=0.7, random_state=seed, n_jobs=1).fit_transform(axes)


def scatter(
    coordinates: ArrayLike,
    labels: ArrayLike,
    *,
    title: str = "",
    names: Sequence[str] | Mapping[Any, str] | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw points in the plane, coloured by label.

    Parameters
    ----------
    coordinates : array of shape (n, 2)
        For example those of `tsne_map`.
    labels : array of shape (n,)
        The class of each point: numbers or strings.
    title : str, default=''
        A line above the points.
    names : sequence or mapping of str, default=None
        Names of the classes in the legend: `names[label]` is the name of a label.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes a new figure.
    path : str or Path, default=None
        Where to save the figure; the suffix is the format. The file appears complete or not at all.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    tsne_map : Coordinates of an embedding.

    Examples
    --------
    >>> from fishergraph.plots import scatter
    >>> figure = scatter([[0, 0], [1, 0], [0, 1]], ["a", "b", "b"], title="three points")
    """
    points, classes, codes = check_points(coordinates, labels)
    legend = legend_names(classes, names)
    _check_output(path)
    axes: Any = new_figure().add_subplot() if ax is None else ax
    draw_points(axes, points, codes, len(classes))
    axes.set_aspect("equal", adjustable="box")
    axes.set_axis_off()  # the coordinates have no meaning of their own
    axes.margins(0.02)
    if title:
        axes.set_title(title, loc="left", fontsize=12, color=INK, pad=10)
    look = {"frameon": False, "fontsize": 10, "labelcolor": INK, "handletextpad": 0.3, "labelspacing": 0.7}
    columns = 1 + (len(legend) - 1) // 20
    axes.legend(handles=legend_handles(legend), loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=columns, **look)
    save(axes.figure, path)
    return axes.figure


def draw_points(ax: Any, points: np.ndarray, codes: np.ndarray, n_classes: int, size: float | None = None) -> None:
    """Draw the points in random order, so that no class covers all others."""
    if size is None:
        size = float(np.clip(30_000 / max(len(points), 1), 3, 60))  # points², so that the inked area stays similar
    shuffled = np.random.default_rng(0).permutation(len(points))
    colours = np.array([PALETTE[k % len(PALETTE)] for k in range(n_classes)])
    # A vector file of many points opens slowly, so these become an image.
    look = {"s": size, "alpha": 0.8, "linewidths": 0, "rasterized": len(points) > 5_000}
    for start in range(0, n_classes, len(PALETTE)):
        rows = shuffled[(codes[shuffled] >= start) & (codes[shuffled] < start + len(PALETTE))]
        ax.scatter(points[rows, 0], points[rows, 1], c=colours[codes[rows]], marker=_marker(start), **look)


def _marker(code: int) -> str:
    return MARKERS[code // len(PALETTE) % len(MARKERS)]


def legend_handles(names: Sequence[str], size: float = 7) -> list[Any]:
    """A coloured mark per class for a legend."""
    from matplotlib.lines import Line2D

    look = {"linestyle": "none", "markersize": size}
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(names))]
    return [Line2D([], [], marker=_marker(k), color=colours[k], label=name, **look) for k, name in enumerate(names)]


def check_points(coordinates: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points (n, 2), the classes that occur, and the class number (n,) of each point."""
    points, labels = np.asarray(coordinates), np.asarray(labels)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiub":
        got = f"{points.dtype} of shape {points.shape}"
        advice = "project the embedding to two dimensions first, with sklearn.manifold.TSNE for example"
        raise InputError(parameter="coordinates", expected="be numbers of shape (n, 2)", got=got, advice=advice)
    if labels.shape != (len(points),):
        raise InputError(parameter="labels", value=labels.shape, expected=f"have shape ({len(points)},)")
    check_finite_rows(points, "coordinates")
    try:
        return points, *np.unique(labels, return_inverse=True)
    except TypeError:  # they cannot be sorted
        advice = "pass labels.astype(str), for example"
        raise InputError(parameter="labels", expected="be of one type", got="several", advice=advice) from None


def legend_names(classes: np.ndarray, names: Sequence[str] | Mapping[Any, str] | None) -> list[str]:
    """The name of each class that occurs."""
    values = classes.tolist()
    if names is None:
        return [str(value) for value in values]
    try:
        table = names if isinstance(names, Mapping) else dict(enumerate(names))  # -1 is not the last of a list
        return [str(table[value]) for value in values]
    except (KeyError, TypeError):
        expected = f"hold a name for each of the labels {', '.join(map(repr, values))}"
        raise InputError(parameter="names", value=names, expected=expected) from None


# --- trainings --------------------------------------------------------------------------------------------


def training_curves(history: Any, *, title: str = "", path: str | Path | None = None) -> Figure:
    """Draw the losses and accuracies of a training.

    A line marks the epoch whose weights were kept.

    Parameters
    ----------
    history : History, list of dict, str or Path
        What `fishergraph.nn.train` returns, its rows, or the path of its log (.csv or .jsonl).
    title : str, default=''
        A line above the curves.
    path : str or Path, default=None
        Where to save the figure, as in `scatter`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    fishergraph.nn.train : Trains a network.

    Examples
    --------
    >>> from fishergraph.plots import training_curves
    >>> row = {"loss": 1.0, "train_accuracy": 0.5, "val_accuracy": 0.4, "val_loss": 1.1}
    >>> figure = training_curves([{"epoch": 1, **row}, {"epoch": 2, **row}])
    """
    rows = _training_rows(history)
    _check_output(path)
    figure = new_figure()
    left, right = figure.subplots(1, 2)
    _draw_curves(left, rows, {"loss": "training", "val_loss": "validation"}, "loss")
    _draw_curves(right, rows, {"train_accuracy": "training", "val_accuracy": "validation"}, "accuracy")
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, color=INK)
    best = _best_epoch(history, rows)
    for ax in (left, right):
        ax.axvline(best, color=INK, linewidth=1, linestyle=":", label=f"best epoch, {best:g}")
    left.legend(frameon=False, fontsize=10, labelcolor=INK)
    save(figure, path)
    return figure


def _draw_curves(ax: Any, rows: list[dict[str, Any]], columns: Mapping[str, str], ylabel: str) -> None:
    """Draw a line per column that has values, over the epochs."""
    for colour, (column, label) in zip(PALETTE, columns.items(), strict=False):
        values = [(row["epoch"], row[column]) for row in rows if row[column] is not None]
        if values:
            ax.plot(*zip(*values, strict=True), color=colour, label=label)
    ax.set_xlabel("epoch", color=INK)
    ax.set_ylabel(ylabel, color=INK)
    ax.spines[["top", "right"]].set_visible(False)


def _best_epoch(history: Any, rows: list[dict[str, Any]]) -> float:
    """The epoch whose weights were kept: of the highest validation accuracy, then of the lowest loss; else the last."""
    if getattr(history, "best_epoch", 0):
        return history.best_epoch
    validated = [row for row in rows if row["val_accuracy"] is not None] or rows[-1:]
    return max(validated, key=lambda row: (row["val_accuracy"] or 0, -(row["val_loss"] or 0)))["epoch"]


def _training_rows(history: Any) -> list[dict[str, Any]]:
    """The rows of a history, of a log, or as they are."""
    if isinstance(history, (str, Path)):
        check_readable(Path(history))
        with Path(history).open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file) if Path(history).suffix.lower() == ".csv" else map(json.loads, file)
            rows = [{key: None if value in ("", None) else float(value) for key, value in row.items()} for row in lines]
    else:
        rows = list(getattr(history, "rows", history))
    wanted = {"epoch", "loss", "train_accuracy", "val_accuracy", "val_loss"}
    if not rows or not all(isinstance(row, dict) and wanted <= row.keys() for row in rows):
        got = "none" if not rows else ", ".join(rows[0]) if isinstance(rows[0], dict) else repr(rows[0])
        expected = f"have rows with {', '.join(sorted(wanted))}"
        raise InputError(parameter="history", expected=expected, got=got, advice="pass what train returns")
    return rows


# --- files ------------------------------------------------------------------------------------------------


def new_figure(size: tuple[float, float] = (8.0, 5.6), pad: float = 0.15, dpi: int = 160) -> Figure:
    """An empty figure, made without pyplot; size and padding are in inches."""
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=size, dpi=dpi, layout=ConstrainedLayoutEngine(w_pad=pad, h_pad=pad), facecolor="white")


def _check_output(path: str | Path | None) -> None:
    if path is not None:
        check_folder(Path(path))


def save(figure: Figure, path: str | Path | None) -> None:
    """Write the figure, if there is a path, in the format of its suffix; the file appears complete or not at all."""
    if path is not None:
        with replacing(Path(path)) as temporary:
            figure.savefig(temporary, format=Path(path).suffix.lstrip(".").lower() or "png")
