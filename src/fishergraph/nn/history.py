"""The history of a training: a row per epoch, in memory and, if there is a path, in a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fishergraph._repr import short_repr
from fishergraph._validation import check_flag, check_integer
from fishergraph.io.array_file import only
from fishergraph.io.files import as_path, check_folder, check_suffix, naming

# The columns of a row. Accuracies are of the model without dropout; without validation nodes their two are None.
COLUMNS = ("epoch", "loss", "train_accuracy", "val_accuracy", "val_loss", "lr", "seconds")
SUFFIXES = (".csv", ".jsonl")


@dataclass
class History:
    """The rows of a training, and how it ended.

    Parameters
    ----------
    rows : list of dict
        One per epoch: epoch (from 1), loss (mean over the epoch, with dropout), train_accuracy, val_accuracy, val_loss,
        lr, seconds.
    best_epoch : int, default=0
        The epoch whose weights the model has in the end; 0 are the weights before the first epoch.
    stopped_early : bool, default=False
        Whether the validation accuracy had not risen for `patience` epochs.
    interrupted : bool, default=False
        Whether Ctrl-C ended the training; the model has the best weights so far.

    See Also
    --------
    train : Returns it.
    fishergraph.plots.training : Draws it.

    Examples
    --------
    >>> from fishergraph.nn import History
    >>> row = {"epoch": 1, "loss": 0.7, "train_accuracy": 0.9, "val_accuracy": 0.8, "val_loss": 0.6}
    >>> History([row], best_epoch=1).column("val_accuracy")
    [0.8]
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int = 0
    stopped_early: bool = False
    interrupted: bool = False

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> dict[str, Any] | None:
        """The row of the best epoch; None before the first epoch."""
        return self.rows[self.best_epoch - 1] if self.best_epoch else None

    def column(self, name: str) -> list[Any]:
        """Return one value per epoch.

        Parameters
        ----------
        name : str
            A key of the rows.

        Returns
        -------
        list
            The values, in the order of the epochs.
        """
        return [row[name] for row in self.rows]

    def beats(self, row: dict[str, Any]) -> bool:
        """Return whether a row is better than the best one.

        The higher validation accuracy is better, then the lower validation loss.

        Without validation nodes the last epoch is the best.

        Parameters
        ----------
        row : dict
            The row of an epoch.

        Returns
        -------
        bool
            True if it is better.
        """
        best = self.best
        if best is None or row["val_accuracy"] is None:
            return True
        return (row["val_accuracy"], -row["val_loss"]) > (best["val_accuracy"], -best["val_loss"])


def check_log(path: str | Path | None) -> Path | None:
    """The path of a log that can be written."""
    if path is None:
        return None
    path = as_path(path, "log")
    check_suffix(path, SUFFIXES)
    check_folder(path)
    return path


@contextmanager
def open_log(path: Path | None, rows: list[dict[str, Any]]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that appends a row to the log, which begins with these rows; without a path it does nothing.

    Every row is on disk before the next epoch begins.
    """
    if path is None:
        yield lambda row: None
        return
    file = path.open("w", encoding="utf-8", newline="")
    table: Any = csv.DictWriter(file, COLUMNS) if path.suffix.lower() == ".csv" else None

    def write(row: dict[str, Any]) -> None:
        with naming(path):
            if table is not None:
                table.writerow(row)
            else:
                file.write(json.dumps(row) + "\n")
            file.flush()

    try:
        if table is not None:
            table.writeheader()
        for row in rows:
            write(row)
        yield write
    finally:
        with naming(path):
            file.close()


def read_history(entry: Any) -> History:
    """The history of a file, validated."""
    only(entry, ("rows", "best_epoch", "stopped_early", "interrupted"))
    rows = entry["rows"]
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        raise TypeError("a history with rows that cannot be read")
    best = check_integer(entry["best_epoch"], "best_epoch", least=0, most=len(rows))
    flags = (check_flag(entry.get(name, False), name) for name in ("stopped_early", "interrupted"))
    return History(rows, best, *flags)


def _is_row(row: Any) -> bool:
    numbers = (int, float, type(None))
    return isinstance(row, dict) and set(row) == set(COLUMNS) and all(isinstance(row[c], numbers) for c in COLUMNS)
