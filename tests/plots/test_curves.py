"""Trainings and costs: the curves that are drawn, the fitted exponents, and rows that are none."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from fishergraph._errors import FileFormatError, InputError
from fishergraph.nn.history import History
from fishergraph.plots import PALETTE, scaling, training

rng = np.random.default_rng(0)

# --- training -------------------------------------------------------------------------------------------

ROWS = [
    {"epoch": e, "loss": 1 / e, "train_accuracy": a, "val_accuracy": a - 0.1, "val_loss": 2 / e, "lr": 0.1}
    for e, a in ((1, 0.3), (2, 0.8), (3, 0.8), (4, 0.6))
]


def curves_of(axes):
    lines = [line for ax in axes for line in ax.get_lines()]
    return {f"{line.axes.get_ylabel()} {line.get_label()}": line.get_ydata() for line in lines}


def test_the_curves_of_a_training():
    upper, lower = training(ROWS, title="Cora")
    curves = curves_of((upper, lower))
    np.testing.assert_array_equal(curves["loss training"], [1, 1 / 2, 1 / 3, 1 / 4])
    np.testing.assert_array_equal(curves["loss validation"], [2, 1, 2 / 3, 1 / 2])
    np.testing.assert_allclose(curves["accuracy training"], [0.3, 0.8, 0.8, 0.6])
    np.testing.assert_allclose(curves["accuracy validation"], [0.2, 0.7, 0.7, 0.5])
    assert upper.get_title(loc="left") == "Cora"
    styles = {line.get_linestyle() for line in upper.get_lines()}
    assert len(styles) == 3  # no two differ by their colour alone


def test_the_epoch_that_was_kept_is_marked():
    for ax in training(ROWS):
        assert ax.get_lines()[-1].get_label() == "best epoch, 3"  # equal accuracy, lower loss
        assert set(ax.get_lines()[-1].get_xdata()) == {3}
    assert "loss best epoch, 2" in curves_of(training(History(ROWS, best_epoch=2)))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_curves_of_a_log(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    rows = [{**row, "val_accuracy": None, "val_loss": None} for row in ROWS]
    if suffix == ".csv":
        lines = (",".join("" if value is None else str(value) for value in row.values()) for row in rows)
        path.write_text("\n".join([",".join(ROWS[0]), *lines]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    curves = curves_of(training(path))
    np.testing.assert_allclose(curves["loss training"], [1, 1 / 2, 1 / 3, 1 / 4])
    assert not any("validation" in name for name in curves)
    assert "loss best epoch, 4" in curves  # without validation the last one is kept


def test_axes_of_the_caller():
    pair = Figure().subplots(1, 2)
    assert training(ROWS, ax=pair) == tuple(pair)
    assert pair[0].get_xlabel() == pair[1].get_xlabel() == "epoch"
    one = Figure().subplots()
    assert scaling(COSTS, ax=one) is one
    with pytest.raises(InputError, match="two axes"):
        training(ROWS, ax=one)


def test_one_epoch_is_a_point():
    upper, _ = training(ROWS[:1])
    assert upper.get_lines()[0].get_marker() == "o"
    assert all(tick == int(tick) for tick in upper.get_xticks())


@pytest.mark.parametrize("rows", [[], [{"epoch": 1}], [3], [{**ROWS[0], "epoch": None}]])
def test_rows_that_are_not_of_a_training(rows):
    with pytest.raises(InputError, match="train_accuracy"):
        training(rows)


@pytest.mark.parametrize("text", ["{not json\n", "[1, 2]\n", "\0\0\n"])
def test_files_that_are_no_logs(tmp_path, text):
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(FileFormatError, match="log"):
        training(path)
    with pytest.raises(FileNotFoundError):
        training(tmp_path / "absent.csv")


# --- costs ----------------------------------------------------------------------------------------------

COSTS = [{"edges": n, "seconds": 3e-6 * n**1.5, "threads": 2} for n in (10, 100, 1000)]


def label_of(ax, k=0):
    return ax.get_legend().get_texts()[k].get_text()


def test_the_exponent_is_fitted():
    ax = scaling(COSTS, title="a power")
    assert label_of(ax) == "seconds ∝ edges$^{1.50}$"
    fitted, measured = ax.get_lines()
    np.testing.assert_allclose(fitted.get_xdata(), [10, 1000])
    np.testing.assert_allclose(fitted.get_ydata(), [3e-6 * n**1.5 for n in (10, 1000)])
    np.testing.assert_allclose(measured.get_ydata(), [row["seconds"] for row in COSTS])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("edges", "seconds")


def test_medians_and_the_range_of_repeated_runs():
    rows = [{"edges": n, "seconds": n * factor} for n in (100, 10) for factor in (1, 5, 2)]
    ax = scaling(rows)
    np.testing.assert_array_equal(ax.get_lines()[-1].get_xdata(), [10, 100])
    np.testing.assert_array_equal(ax.get_lines()[-1].get_ydata(), [20, 200])
    (band,) = ax.collections
    assert {tuple(point) for point in band.get_paths()[0].vertices} >= {(10, 10), (10, 50), (100, 100), (100, 500)}


def test_small_sizes_may_be_left_out_of_the_fit():
    rows = [{"edges": n, "seconds": 1 + n} for n in (0.001, 0.01, 1e6, 1e7, 1e8)]
    assert label_of(scaling(rows, fit_from=1e6)) == "seconds ∝ edges$^{1.00}$"
    assert label_of(scaling(rows)) != "seconds ∝ edges$^{1.00}$"
    assert label_of(scaling(rows, fit_from=1e8)) == "seconds"  # a single size has no exponent


def test_a_curve_for_each_value_of_a_column():
    rows = [{**row, "threads": k, "seconds": row["seconds"] * k} for k in (1, 2) for row in COSTS]
    ax = scaling(rows, by="threads")
    assert [label_of(ax, k) for k in (0, 1)] == ["threads 1 ∝ edges$^{1.50}$", "threads 2 ∝ edges$^{1.50}$"]
    lines = [line for line in ax.get_lines() if line.get_marker() != "None"]
    assert [line.get_color() for line in lines] == list(PALETTE[:2])
    assert len({line.get_marker() for line in lines}) == 2


def test_rows_of_any_kind(tmp_path):
    frame = pd.DataFrame(COSTS)
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    for rows in (frame, pl.DataFrame(COSTS), pa.table(frame), path, str(path)):
        assert label_of(scaling(rows)) == "seconds ∝ edges$^{1.50}$"


def test_plans_are_rows():
    from fishergraph import FisherEmbedding
    from fishergraph.scale import GraphSize, plan

    model = FisherEmbedding(dim=8, structure=None)
    small = plan(GraphSize(2_000, 10_000, 8), model, memory="16G")
    large = plan(GraphSize(20_000, 100_000, 8), model, memory="16G", rates=small.rates)
    ax = scaling([small, large], size="nodes", cost="memory_gb")
    np.testing.assert_allclose(ax.get_lines()[-1].get_xdata(), [2_000, 20_000])
    np.testing.assert_allclose(ax.get_lines()[-1].get_ydata(), [small.resident / 1e9, large.resident / 1e9])
    assert label_of(ax).startswith("memory, GB ∝ nodes")
    assert label_of(scaling(small)) == "seconds"


def test_rows_without_a_number_are_left_out():
    rows = [*COSTS, {"edges": 5, "seconds": ""}, {"seconds": 1.0}, {"edges": float("nan"), "seconds": 1.0}]
    assert len(scaling(rows).get_lines()[-1].get_xdata()) == 3


@pytest.mark.parametrize(
    ("rows", "options", "pattern"),
    [
        (COSTS, {"cost": "secnds"}, "'secnds'.*name 'seconds'"),
        (COSTS, {"by": "device"}, "'edges', 'seconds', 'threads'"),
        ([], {}, "rows"),
        ([3], {}, "int"),
        (3, {}, "int"),
        ([{"edges": 0, "seconds": 1}], {}, "'edges'.*positive"),
        ([{"edges": 1, "seconds": float("inf")}], {}, "'seconds'.*finite"),
        ([{"edges": None, "seconds": None}], {}, "none of 1"),
        (COSTS, {"fit_from": "x"}, "fit_from"),
    ],
)
def test_bad_input(rows, options, pattern):
    with pytest.raises(InputError, match=pattern):
        scaling(rows, **options)
