"""`training`: losses and accuracies over the epochs; `scaling`: time or memory against the size of a graph."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError
from fishergraph._validation import check_number, nearest
from fishergraph.io.files import check_readable, unreadable
from fishergraph.plots.figures import axes_of, check_axes, new_axes
from fishergraph.plots.style import (
    INK,
    MARKERS,
    colour_of,
    draw_title,
    legend_look,
    literal,
    log_ticks,
    plain_axes,
    text_size,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = list[dict[str, Any]]
_LINES = ("-", "--")


# --- trainings --------------------------------------------------------------------------------------------

_LOSSES = {"loss": "training", "val_loss": "validation"}
_ACCURACIES = {"train_accuracy": "training", "val_accuracy": "validation"}


def training(history: Any, *, title: str = "", ax: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """Draw the losses and the accuracies of a training over its epochs.

    A line marks the epoch whose weights were kept.

    Parameters
    ----------
    history : History, list of dict, str or Path
        What `fishergraph.nn.train` returns, its rows, or the path of its log (.csv or .jsonl).
    title : str, default=''
        A line above the curves.
    ax : sequence of two matplotlib.axes.Axes, optional
        Where the losses and the accuracies are drawn; by default in a new figure, below each other.

    Returns
    -------
    tuple of two matplotlib.axes.Axes
        The axes of the losses and of the accuracies.

    See Also
    --------
    fishergraph.nn.train : Trains a network.

    Examples
    --------
    >>> from fishergraph.plots import training
    >>> row = {"loss": 1.0, "train_accuracy": 0.5, "val_accuracy": 0.4, "val_loss": 1.1}
    >>> losses, accuracies = training([{"epoch": 1, **row}, {"epoch": 2, **row}])
    >>> accuracies.get_ylabel()
    'accuracy'
    """
    rows = _training_rows(history)
    upper, lower = new_axes(2, 1, height=3.3) if ax is None else _check_pair(ax)
    best = _best_epoch(history, rows)
    for axes, columns, name in ((upper, _LOSSES, "loss"), (lower, _ACCURACIES, "accuracy")):
        _draw_epochs(axes, rows, columns, name)
        axes.axvline(best, color=INK, linewidth=0.8, linestyle=":", label=f"best epoch, {best:g}")
    if ax is None:
        upper.label_outer()
    size = text_size(upper)
    draw_title(upper, title, pad=6 + 1.8 * size)
    look = {**legend_look(size), "handlelength": 1.8, "borderpad": 0}
    upper.legend(loc="lower left", bbox_to_anchor=(0, 1.02), ncols=3, **look)  # above, where no curve is
    return upper, lower


def _check_pair(ax: Any) -> tuple[Axes, Axes]:
    pair = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(pair) != 2:
        expected, got = "be two axes, for the losses and the accuracies", f"{len(pair)}"
        raise InputError(parameter="ax", expected=expected, got=got, advice="pass figure.subplots(2, 1)")
    return check_axes(pair[0]), check_axes(pair[1])


def _draw_epochs(ax: Any, rows: Rows, columns: Mapping[str, str], ylabel: str) -> None:
    """A line per column that has values, over the epochs; no two differ by their colour alone."""
    for k, (column, label) in enumerate(columns.items()):
        values = [(row["epoch"], row[column]) for row in rows if row[column] is not None]
        if values:
            x, y = zip(*values, strict=True)
            point = {"marker": "o", "markersize": 3} if len(values) == 1 else {}
            ax.plot(x, y, color=colour_of(k), linestyle=_LINES[k], linewidth=1.2, label=label, **point)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    _name_axes(ax, "epoch", ylabel)


def _best_epoch(history: Any, rows: Rows) -> float:
    """The epoch whose weights were kept: of the highest validation accuracy, then of the lowest loss; else the last."""
    if getattr(history, "best_epoch", 0):
        return history.best_epoch
    validated = [row for row in rows if row["val_accuracy"] is not None] or rows[-1:]
    return max(validated, key=lambda row: (row["val_accuracy"] or 0, -(row["val_loss"] or 0)))["epoch"]


def _training_rows(history: Any) -> Rows:
    """The rows of a history, of a log, or as they are."""
    wanted = {"epoch", *_LOSSES, *_ACCURACIES}
    if isinstance(history, (str, Path)):
        rows = [{name: _number(value) for name, value in row.items()} for row in read_rows(history)]
    else:
        rows = list(getattr(history, "rows", history))
    if not rows or not all(isinstance(row, dict) and wanted <= row.keys() and row["epoch"] for row in rows):
        got = "none" if not rows else ", ".join(map(str, rows[0])) if isinstance(rows[0], dict) else repr(rows[0])
        expected = f"have rows with {', '.join(sorted(wanted))}"
        raise InputError(parameter="history", expected=expected, got=got, advice="pass what train returns, or its log")
    return rows


# --- costs ------------------------------------------------------------------------------------------------


def scaling(
    rows: Any,
    size: str = "edges",
    cost: str = "seconds",
    *,
    by: str | None = None,
    fit_from: float = 0,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw time or memory against size on logarithmic axes, with the exponent.

    Parameters
    ----------
    rows : list of dict, table, str, Path, Plan or list of Plan
        A row per measurement: mappings, a table, the path of a CSV or JSON-lines file, or plans of
        `fishergraph.scale.plan`, whose columns are nodes, edges, features, seconds, memory_gb and disk_gb.
    size : str, default="edges"
        The column of the sizes.
    cost : str, default="seconds"
        The column of what is drawn. Rows without a size or a cost are left out.
    by : str, optional
        A column whose values become curves of their own.
    fit_from : float, default=0
        The least size that the exponent is fitted to: small graphs take what does not depend on their size.
    title : str, default=''
        A line above the curves.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Points are medians of the rows of one size, and a band reaches from the least to the most. Dashed
        lines are powers of the size that fit the medians best, by least squares of the logarithms.

    See Also
    --------
    fishergraph.scale.plan : Predicts what an embedding takes.

    Examples
    --------
    >>> from fishergraph.plots import scaling
    >>> rows = [{"edges": n, "seconds": 2e-6 * n} for n in (1_000, 10_000, 100_000)]
    >>> ax = scaling(rows)
    >>> ax.get_legend().get_texts()[0].get_text()
    'seconds ∝ edges$^{1.00}$'
    """
    table = _cost_rows(rows)
    for name in (size, cost, *([] if by is None else [by])):
        _check_column(table, name)
    curves = _curves(table, size, cost, by)
    fit_from = check_number(fit_from, "fit_from")
    ax = axes_of(ax)
    for k, (name, curve) in enumerate(curves.items()):
        _draw_curve(ax, k, name, curve, _words(size), fit_from)
    _name_axes(ax, _words(size), _words(cost))
    ax.set(xscale="log", yscale="log")
    for axis, part in ((ax.xaxis, "sizes"), (ax.yaxis, "median")):
        values = np.concatenate([getattr(curve, part) for curve in curves.values()])
        log_ticks(axis, values.min(), values.max())
    ax.legend(**{**legend_look(text_size(ax)), "handlelength": 1.8})
    draw_title(ax, title)
    return ax


class _Curve(NamedTuple):
    """The least, median and largest cost of each size, ascending."""

    sizes: np.ndarray
    least: np.ndarray
    median: np.ndarray
    most: np.ndarray

    def power(self, fit_from: float) -> tuple[float, np.ndarray, np.ndarray] | None:
        """The exponent of the power that fits the medians of the larger sizes, and its ends; None for a single size."""
        fitted = self.sizes >= fit_from
        if fitted.sum() < 2:
            return None
        exponent, offset = np.polyfit(np.log(self.sizes[fitted]), np.log(self.median[fitted]), 1)
        ends = self.sizes[fitted][[0, -1]]
        return float(exponent), ends, np.exp(offset) * ends**exponent


def _curves(rows: Rows, size: str, cost: str, by: str | None) -> dict[str, _Curve]:
    """A curve for each value of the column `by`, or one."""
    groups: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        x, y = _number(row.get(size)), _number(row.get(cost))
        if x is None or y is None:
            continue
        if not (0 < x < np.inf and 0 < y < np.inf):
            name, value = (size, x) if not 0 < x < np.inf else (cost, y)
            raise InputError(parameter=f"column {name!r}", value=value, expected="hold positive finite numbers")
        groups.setdefault(_words(cost) if by is None else f"{_words(by)} {row.get(by)}", {}).setdefault(x, []).append(y)
    if not groups:
        expected = f"have a row with numbers in {size!r} and {cost!r}"
        raise InputError(parameter="rows", expected=expected, got=f"none of {len(rows)}")
    curves = {}
    for name, costs in groups.items():
        sizes = sorted(costs)
        columns = ([function(costs[x]) for x in sizes] for function in (min, np.median, max))
        curves[name] = _Curve(np.array(sizes), *map(np.array, columns))
    return curves


def _draw_curve(ax: Any, k: int, name: str, curve: _Curve, size: str, fit_from: float) -> None:
    """Medians with their band, and the power that fits them."""
    colour, label, power = colour_of(k), literal(name), curve.power(fit_from)
    if power is not None:
        exponent, ends, fitted = power
        ax.plot(ends, fitted, color=colour, linestyle="--", linewidth=0.9, zorder=1.5)
        label = f"{label} ∝ {literal(size)}$^{{{exponent:.2f}}}$"
    ax.fill_between(curve.sizes, curve.least, curve.most, color=colour, alpha=0.2, linewidth=0)
    look = {"marker": MARKERS[k % len(MARKERS)], "markersize": 3.5, "linewidth": 1.1}
    ax.plot(curve.sizes, curve.median, color=colour, label=label, **look)


# --- rows -------------------------------------------------------------------------------------------------


def read_rows(path: str | Path) -> Rows:
    """The rows of a CSV or JSON-lines file; the cells of a CSV are texts."""
    path = Path(path)
    head = check_readable(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file) if path.suffix.lower() == ".csv" else map(json.loads, file))
    except (ValueError, csv.Error) as error:
        raise unreadable(path, head, "its lines are not JSON" if path.suffix.lower() != ".csv" else error) from error
    if not all(isinstance(row, dict) for row in rows):
        raise unreadable(path, head, "its lines are not JSON objects")
    return rows


def _cost_rows(rows: Any) -> Rows:
    """The rows of a file, a table, plans, or as they are."""
    if isinstance(rows, (str, Path)):
        return read_rows(rows)
    for method, arguments in (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",))):  # Polars, Arrow, pandas
        if hasattr(rows, method):
            return getattr(rows, method)(*arguments)
    single = hasattr(rows, "stages") or not isinstance(rows, Iterable) or isinstance(rows, Mapping)
    entries = [rows] if single else list(rows)
    table = [_plan_row(entry) if hasattr(entry, "stages") else entry for entry in entries]
    if not table or not all(isinstance(row, Mapping) for row in table):
        got = "none" if not table else type(next(row for row in table if not isinstance(row, Mapping))).__name__
        raise InputError(parameter="rows", expected="be mappings, a table, a file or plans", got=got)
    return [dict(row) for row in table]


def _plan_row(plan: Any) -> dict[str, Any]:
    graph = plan.graph
    sizes = {"nodes": graph.n_nodes, "edges": graph.n_edges, "features": graph.n_features}
    disk = plan.kept + plan.scratch
    return {**sizes, "seconds": plan.seconds, "memory_gb": plan.resident / 1e9, "disk_gb": disk / 1e9}


def _check_column(rows: Rows, name: str) -> None:
    known = list(dict.fromkeys(str(key) for row in rows for key in row))
    if name not in known:
        alike = " or ".join(map(repr, nearest(name, known)))
        expected, advice = f"be one of {', '.join(map(repr, known))}", f"name {alike}" if alike else ""
        raise InputError(parameter="a column", value=name, expected=expected, advice=advice)


def _number(value: Any) -> float | None:
    """A cell as a number; None if it is empty or holds none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if np.isnan(number) else number


# --- axes -------------------------------------------------------------------------------------------------


def _name_axes(ax: Any, xlabel: str, ylabel: str) -> None:
    plain_axes(ax)
    ax.set_xlabel(literal(xlabel), fontsize=text_size(ax), color=INK, labelpad=2)
    ax.set_ylabel(literal(ylabel), fontsize=text_size(ax), color=INK)


def _words(column: str) -> str:
    """The name of a column as words, with its unit."""
    name, _, unit = column.rpartition("_")
    return f"{name.replace('_', ' ')}, {unit.upper()}" if unit in ("mb", "gb") else column.replace("_", " ")
