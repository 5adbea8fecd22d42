"""The committed rows: every cell of every study is there, and what docs/reproduction.md says of them holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishergraph.lab.rows import read_rows, remaining, row_key
from fishergraph.lab.studies import STUDIES

ROOT = Path(__file__).parents[3]
ROWS = ROOT / "results" / "simulations.jsonl"
RATIOS = ("modes", "shift", "spread", "iterations", "anchors", "anchors-one-step", "closeness")

pytestmark = pytest.mark.skipif(not ROWS.exists(), reason="the tests stand outside a checkout")


@pytest.fixture(scope="module")
def records():
    rows = read_rows(ROWS)
    return {name: study.summarize(rows) for name, study in STUDIES.items()}


def medians(records, study, curve):
    return {record["value"]: record["median"] for record in records[study] if record["curve"] == curve}


def test_every_cell_is_there_once_and_no_other():
    cells = [cell for study in STUDIES.values() for cell in study.cells()]
    assert remaining(ROWS, cells) == []
    keys = [row_key(row) for row in read_rows(ROWS)]
    assert len(keys) == len(set(keys))
    assert set(keys) == {cell.key for cell in cells}


def test_the_rows_come_from_one_commit_without_changes():
    commits = {row["git"] for row in read_rows(ROWS)}
    assert len(commits) == 1
    assert not commits.pop().endswith("+")


_ENDS = (("median", "median"), ("low", "high"))


def range_table(records) -> str:
    """A table in Markdown: for each study and curve, where the medians lie over all values, and the bands."""
    lines = ["| study | curve | values | medians | bands |", "|---|---|---|---|---|"]
    groups = {}
    for record in records:
        groups.setdefault((record["study"], record["curve"]), []).append(record)
    for (study, curve), group in groups.items():
        ends = [(min(r[low] for r in group), max(r[high] for r in group)) for low, high in _ENDS]
        spans = [f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}" for low, high in ends]
        lines.append(f"| {study} | {curve} | {len(group)} | {' | '.join(spans)} |")
    return "\n".join(lines)


def test_the_table_of_the_page_is_that_of_the_rows(records):
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert range_table(record for name in RATIOS for record in records[name]) in page


@pytest.mark.parametrize("study", ["modes", "shift", "spread"])
def test_the_ratios_of_figure_2_lie_in_the_band_of_the_paper(records, study):
    result = medians(records, study, "paper")
    assert len(result) == len(STUDIES[study].values)  # pyright: ignore
    assert all(0.98 < ratio < 1.1 for ratio in result.values())
    outside = [r for r in records[study] if r["curve"] == "paper" and not 0.8 <= r["low"] <= r["high"] <= 1.2]
    assert [r["value"] for r in outside] == ([1] if study == "shift" else [])
    assert all(r["high"] < 1.22 for r in outside)


def test_the_ratios_of_figure_3(records):
    result = medians(records, "iterations", "paper")
    assert result[0] == 0
    assert 0.45 < result[1] < 0.55 < result[2] < result[3] < 0.98
    assert all(0.98 < result[m] < 1.02 for m in range(4, 11))
    anchors = medians(records, "anchors", "paper")
    assert all(0.99 < ratio < 1.02 for p, ratio in anchors.items() if p != 2)
    assert anchors[2] < 1.12
    one_step = medians(records, "anchors-one-step", "paper")
    assert all(0.45 < ratio < 0.55 for p, ratio in one_step.items() if p != 1)


def test_the_exact_matrix_is_right_where_the_theorem_is(records):
    far = [ratio for study in ("modes", "shift", "spread") for ratio in medians(records, study, "exact").values()]
    assert 0.3 < min(far) < max(far) < 0.9
    near = medians(records, "closeness", "exact")
    assert all(0.95 < ratio < 1.06 for ratio in near.values())
    assert medians(records, "closeness", "forward")[0.1] > 4


def test_the_published_code_is_where_the_page_says(records):
    table = {record["curve"]: record for record in records["attention"]}
    assert 1e-12 < table["published"]["median"] < 1e-10
    assert 0.5e-5 < table["paper"]["median"] < 2e-5
    assert 0.02 < table["auto"]["median"] < 0.05
