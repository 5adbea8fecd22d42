"""What a training run has seen: a row per epoch, in memory and, where a path is given, in a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOBase
from pathlib import Path
from typing import Any

from fishergraph._repr import short_repr
from fishergraph.io.files import check_folder, check_suffix, naming

# The columns of a row. Accuracies are of the model without dropout; without validation nodes their two are None.
COLUMNS = ("epoch", "loss", "train_accuracy", "val_accuracy", "val_loss", "lr", "seconds")
SUFFIXES = (".csv", ".jsonl")


@dataclass
class History:
    """The rows of a run, and how it ended; `fishergraph.plots.training_curves` draws it.

    rows : a dictionary per epoch: epoch (from 1), loss (mean over the epoch, with dropout), train_accuracy,
        val_accuracy, val_loss, lr, seconds.
    best_epoch : the epoch whose weights the model has at the end; 0 are the weights it came with.
    stopped_early : the validation accuracy had not risen for `patience` epochs.
    interrupted : by Ctrl-C; the best weights so far were kept.
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
        """The row of the best epoch; None before the first one."""
        return self.rows[self.best_epoch - 1] if self.best_epoch else None

    def column(self, name: str) -> list[Any]:
        """One value per epoch."""
        return [row[name] for row in self.rows]

    def beats(self, row: dict[str, Any]) -> bool:
        """Whether a row is better than the best one: by validation accuracy, then by validation loss.

        Without validation nodes the last epoch is the best.
        """
        best = self.best
        if best is None or row["val_accuracy"] is None:
            return True
        return (row["val_accuracy"], -row["val_loss"]) > (best["val_accuracy"], -best["val_loss"])


def check_log(path: str | Path | None) -> Path | None:
    """The path of a log that can be written."""
    if path is None:
        return None
    check_suffix(Path(path), SUFFIXES)
    check_folder(Path(path))
    return Path(path)


class _Log:
    """Rows appended to an open file, each of them on disk before the next epoch begins."""

    def __init__(self, file: TextIOBase, path: Path):
        self.file, self.path = file, path
        table = path.suffix.lower() == ".csv"
        self.writer: Any = csv.DictWriter(file, COLUMNS) if table else None
        if table:
            self.writer.writeheader()

    def write(self, row: dict[str, Any]) -> None:
        with naming(self.path):
            if self.writer is not None:
                self.writer.writerow(row)
            else:
                self.file.write(json.dumps(row) + "\n")
            self.file.flush()


class _NoLog:
    def write(self, row: dict[str, Any]) -> None:
        pass


@contextmanager
def open_log(path: Path | None, rows: list[dict[str, Any]]) -> Iterator[_Log | _NoLog]:
    """A log with write(row), which begins with the rows of the run that is resumed; a log of nothing without a path."""
    if path is None:
        yield _NoLog()
        return
    file = path.open("w", encoding="utf-8", newline="")
    try:
        log = _Log(file, path)
        for row in rows:
            log.write(row)
        yield log
    finally:
        with naming(path):
            file.close()
