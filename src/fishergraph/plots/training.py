"""The curves of a training."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph._errors import InputError
from fishergraph.io.files import check_folder, check_readable
from fishergraph.plots.style import INK, PALETTE, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def training_curves(history: Any, *, title: str = "", path: str | Path | None = None) -> Figure:
    """Draw the losses and accuracies of a training, and its best epoch.

    Parameters
    ----------
    history : History, list of dict, str or path
        The result of `fishergraph.nn.train`, its rows, or the path of its log (.csv or .jsonl).
    title : str, default=""
        A line above the curves.
    path : str or path, default=None
        A file to write, as in `scatter`.

    Returns
    -------
    Figure
        The figure of Matplotlib.

    See Also
    --------
    fishergraph.nn.train : Train a network.

    Examples
    --------
    >>> from fishergraph.plots import training_curves
    >>> row = {"epoch": 1, "loss": 0.7, "train_accuracy": 0.9, "val_accuracy": 0.8, "val_loss": 0.6}
    >>> len(training_curves([row]).axes)
    2
    """
    rows = _training_rows(history)
    if path is not None:
        check_folder(Path(path))
    figure = new_figure()
    left, right = figure.subplots(1, 2)
    _curves(left, rows, {"loss": "training", "val_loss": "validation"}, "loss")
    _curves(right, rows, {"train_accuracy": "training", "val_accuracy": "validation"}, "accuracy")
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, color=INK)
    best = _best_epoch(history, rows)
    for ax in (left, right):
        ax.axvline(best, color=INK, linewidth=1, linestyle=":", label=f"best epoch, {best:g}")
    left.legend(frameon=False, fontsize=10, labelcolor=INK)
    if path is not None:
        save(figure, Path(path))
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
        raise InputError(
            parameter="a training",
            expected=f"have rows with {', '.join(sorted(wanted))}",
            got=f"{got}",
            advice="pass a log of train",
        )
    return rows
