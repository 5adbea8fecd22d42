"""What was tried, which of it is chosen, and the record of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._repr import short_value
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.probes.graph import GraphProbe
from fishergraph.probes.logistic import LogisticProbe

OPTIMISTIC = "The best of several validation accuracies is optimistic: judge the chosen setting on other nodes."


@dataclass(frozen=True)
class Tried:
    """A setting on the validation rows."""

    number: int  # of the setting
    accuracy: float
    loss: float  # after calibration
    seconds: float
    probe: LogisticProbe


def standard_error(accuracy: float, n_rows: int) -> float:
    """The standard error of an accuracy on so many rows, with one right and one wrong row more.

    Without these two rows it would be zero for an accuracy of 0 or 1.
    """
    p = (accuracy * n_rows + 1) / (n_rows + 2)
    return math.sqrt(p * (1 - p) / n_rows)


def choose(tried: Sequence[Tried], n_rows: int) -> Tried:
    """The first setting, unless another one is better by more than one standard error of its accuracy.

    Of several such settings it is the most accurate one, then the one with the smallest loss, then the first.
    """
    first = tried[0]
    better = [one for one in tried if one.accuracy > first.accuracy + standard_error(first.accuracy, n_rows)]
    return min(better, key=lambda one: (-one.accuracy, one.loss, one.number), default=first)


def in_words(setting: Mapping[str, Any]) -> str:
    """A setting on one line: its parameters, with the entries of block weights."""
    parts = [f"{name}={_value(value)}" for name, value in setting.items()]
    return ", ".join(parts) or "default"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {entry:g}' for name, entry in value.items())}}}"
    return short_value(value)


@dataclass(frozen=True, eq=False, repr=False)
class AutoEmbedding:
    """What `auto_embed` chose, and what it tried. ``print`` shows the table of all settings.

    Attributes
    ----------
    embedding : FisherEmbedding
        The fitted embedding with the chosen setting.
    Z : ndarray of shape (n_nodes, n_columns)
        The embedding of all rows.
    probe : GraphProbe or LogisticProbe
        The classifier on Z.
    setting : dict
        The chosen setting: the parameters that differ from the first one.
    report : list of dict
        A record of every setting: setting, val_accuracy, val_log_loss, seconds, skipped (None, "budget" or "memory"),
        and chosen. A setting that was skipped has no accuracy. The accuracies are those of logistic regression.
    train, val : ndarray of int
        The rows that trained, and the rows the setting was chosen on.
    budget : float
        The seconds that the settings had.
    seconds : dict
        The seconds that the settings and the probe took.
    """

    embedding: FisherEmbedding
    Z: np.ndarray
    probe: GraphProbe | LogisticProbe
    setting: dict[str, Any]
    report: list[dict[str, Any]]
    train: np.ndarray
    val: np.ndarray
    budget: float
    seconds: dict[str, float]

    @property
    def val_accuracy(self) -> float:
        """The validation accuracy of the chosen setting, which is optimistic."""
        return next(record["val_accuracy"] for record in self.report if record["chosen"])

    def __repr__(self) -> str:
        skipped = sum(record["skipped"] is not None for record in self.report)
        tried = f"{len(self.report) - skipped} settings tried, {skipped} skipped"
        chosen = f"{in_words(self.setting)}: validation accuracy {self.val_accuracy:.1%}"
        return f"AutoEmbedding({chosen}, {tried}, {sum(self.seconds.values()):.1f} s)"

    def __str__(self) -> str:
        rows = table(self.report)
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, OPTIMISTIC])


def table(report: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The cells of a report, with a row of titles; the chosen setting has a star."""
    rows = [["setting", "accuracy", "log-loss", "seconds"]]
    for record in report:
        name = in_words(record["setting"]) + (" *" if record["chosen"] else "")
        if record["skipped"] is None:
            numbers = [f"{record['val_accuracy']:.1%}", f"{record['val_log_loss']:.3f}", f"{record['seconds']:.1f}"]
        else:
            numbers = [f"skipped ({record['skipped']})", "", ""]
        rows.append([name, *numbers])
    return rows
