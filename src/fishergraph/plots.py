"""Figures from embeddings and from logs of training; nothing is embedded, projected or trained here.

Colours are those of Okabe and Ito, which people with any form of colour vision can tell apart; beyond eight
classes the marker changes too. Figures are made without pyplot, so no window opens and no backend is chosen.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._checks import check_finite_rows
from fishergraph._file_checks import check_folder, replacing
from fishergraph._optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's eight colours; yellow, the faintest on white, comes last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
INK = "#333333"
SIZE = (8.0, 5.6)  # inches, legend included
PAD = 0.15  # inches
DPI = 160


def scatter(
    coordinates: Any,
    labels: Any,
    *,
    title: str = "",
    names: Sequence[str] | Mapping[Any, str] | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Figure:
    """The figure of points in the plane, coloured by label.

    Args:
        coordinates: (n, 2), of an embedding projected by t-SNE or PCA for example.
        labels: (n,), the class of each point: numbers or strings.
        title: a line above the points.
        names: what the legend calls the classes: a sequence, `names[label]`, or a mapping from label to name.
        ax: Matplotlib axes to draw on; None makes a new figure.
        path: where to save the figure; its suffix gives the format, and the file appears whole or not at all.
    """
    points, classes, codes = _check_points(coordinates, labels)
    legend = _legend_names(classes, names)
    if path is not None:
        check_folder(Path(path))
    figure = ax.figure if ax is not None else _new_figure()
    ax = ax if ax is not None else figure.add_subplot()
    _draw(ax, points, codes, len(classes))
    _dress(ax, title, legend)
    if path is not None:
        _save(figure, Path(path))
    return figure


def training_curves(history: Any, *, title: str = "", path: str | Path | None = None) -> Figure:
    """The figure of a training: its losses, its accuracies, and a line at the epoch whose weights were kept.

    Args:
        history: what `fishergraph.nn.train` returns, its rows, or the path of its log (.csv or .jsonl).
        title: a line above the curves.
        path: where to save the figure, as in `scatter`.
    """
    rows = _training_rows(history)
    if path is not None:
        check_folder(Path(path))
    figure = _new_figure()
    left, right = figure.subplots(1, 2)
    _curves(left, rows, {"loss": "training", "val_loss": "validation"}, "loss")
    _curves(right, rows, {"train_accuracy": "training", "val_accuracy": "validation"}, "accuracy")
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, color=INK)
    best = _best_epoch(history, rows)
    for ax in (left, right):
        ax.axvline(best, color=INK, linewidth=1, linestyle=":", label=f"best epoch, {best:g}")
    left.legend(frameon=False, fontsize=10, labelcolor=INK)
    if path is not None:
        _save(figure, Path(path))
    return figure


def _curves(ax: Any, rows: list[dict[str, Any]], columns: Mapping[str, str], what: str) -> None:
    """A line per column that has values, over the epochs."""
    for colour, (column, name) in zip(PALETTE, columns.items(), strict=False):
        known = [(row["epoch"], row[column]) for row in rows if row[column] is not None]
        if known:
            ax.plot(*zip(*known, strict=True), color=colour, label=name)
    ax.set_xlabel("epoch", color=INK)
    ax.set_ylabel(what, color=INK)
    ax.spines[["top", "right"]].set_visible(False)


def _best_epoch(history: Any, rows: list[dict[str, Any]]) -> float:
    """The epoch whose weights were kept: of the highest validation accuracy, then of the lowest loss; else the last."""
    if getattr(history, "best_epoch", 0):
        return history.best_epoch
    validated = [row for row in rows if row["val_accuracy"] is not None] or rows[-1:]
    return max(validated, key=lambda row: (row["val_accuracy"] or 0, -(row["val_loss"] or 0)))["epoch"]


def _new_figure() -> Figure:
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=PAD, h_pad=PAD)
    return Figure(figsize=SIZE, dpi=DPI, layout=layout, facecolor="white")


def _draw(ax: Any, points: np.ndarray, codes: np.ndarray, n_classes: int) -> None:
    """The points, in an order that lets no class lie on top of all others."""
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
    from matplotlib.lines import Line2D

    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()
    ax.margins(0.02)
    if title:
        ax.set_title(title, loc="left", fontsize=12, color=INK, pad=10)
    handles = [
        Line2D([], [], linestyle="none", marker=_marker(k), markersize=7, color=PALETTE[k % len(PALETTE)], label=name)
        for k, name in enumerate(legend)
    ]
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


def _save(figure: Figure, path: Path) -> None:
    with replacing(path) as part:
        figure.savefig(part, format=path.suffix.lstrip(".").lower() or "png")


# The door.


def _training_rows(history: Any) -> list[dict[str, Any]]:
    """The rows of a history, of a log, or as they are."""
    if isinstance(history, (str, Path)):
        with Path(history).open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file) if Path(history).suffix.lower() == ".csv" else map(json.loads, file)
            rows = [{key: None if value in ("", None) else float(value) for key, value in row.items()} for row in lines]
    else:
        rows = list(getattr(history, "rows", history))
    wanted = {"epoch", "loss", "train_accuracy", "val_accuracy", "val_loss"}
    if not rows or not all(isinstance(row, dict) and wanted <= row.keys() for row in rows):
        got = "none" if not rows else ", ".join(rows[0]) if isinstance(rows[0], dict) else repr(rows[0])
        raise ValueError(f"a training must have rows with {', '.join(sorted(wanted))}, got {got}; pass a log of train.")
    return rows


def _check_points(coordinates: Any, labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points (n, 2), the classes that occur, and the class number (n,) of each point."""
    points, labels = np.asarray(coordinates), np.asarray(labels)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiub":
        raise ValueError(
            f"coordinates must be numbers of shape (n, 2), got {points.dtype} of shape {points.shape}; "
            "project the embedding to two dimensions first, with sklearn.manifold.TSNE for example."
        )
    if labels.shape != (len(points),):
        raise ValueError(f"labels must have shape ({len(points)},), got {labels.shape}; pass one label per point.")
    check_finite_rows(points, "coordinates")
    classes, codes = np.unique(labels, return_inverse=True)
    return points, classes, codes


def _legend_names(classes: np.ndarray, names: Sequence[str] | Mapping[Any, str] | None) -> list[str]:
    """The name of each class that occurs."""
    values = classes.tolist()
    if names is None:
        return [str(value) for value in values]
    try:
        return [str(names[value]) for value in values]
    except (KeyError, IndexError, TypeError):
        raise ValueError(
            f"names must hold a name for each of the labels {', '.join(map(repr, values))}, got {names!r}; add it."
        ) from None
