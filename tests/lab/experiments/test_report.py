"""The report: its numbers against hand-made rows, the test against SciPy on samples, the three formats."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from scipy.stats import ttest_ind

from fishergraph.lab.experiments.plan import FINAL, Column, by_key
from fishergraph.lab.experiments.report import COLUMNS, FORMATS, TABLE1, latex, markdown, table_csv, table_entries
from fishergraph.lab.experiments.specs import SPECS
from fishergraph.lab.rows import new_row
from small_table import FIE


def sample(mean, std, n=10):
    """n numbers of exactly that mean and deviation."""
    z = np.random.default_rng(0).normal(size=n)
    return mean + std * (z - z.mean()) / z.std(ddof=1)


def finished(method, dataset, tests, *, quick=False):
    """A column and its rows: a search whose first point is the best, and final runs with these accuracies."""
    column, rows = Column(SPECS[method], dataset, quick=quick), {}
    while missing := column.stages(rows)[-1].missing(rows):
        for k, cell in enumerate(missing):
            final = cell.parameters["stage"] == FINAL
            values = {"val": 0.8, "test": tests[cell.seed] / 100} if final else {"val": 0.9 - 0.001 * k}
            rows |= by_key([new_row(cell, values, 2.0 + final) | {"peak_mb": 100.0 + k}])
    return column, rows


def entry_of(method, dataset, tests):
    column, rows = finished(method, dataset, tests)
    (entry,) = table_entries([column], rows)
    return entry


def test_the_paper_is_typed_as_it_is_printed():
    assert TABLE1["fie"]["cora"] == (82.36, 0.28, False)
    assert TABLE1["fie-supervised"]["citeseer"] == (72.51, 0.34, False)
    assert TABLE1["mlp"]["pubmed"] == (71.4, None, True)
    assert TABLE1["gatv2"]["ogbn-products"] == (80.63, 0.70, True)
    assert "reddit" not in TABLE1["gcn"]
    assert set(TABLE1["sage"]) == {"reddit", "ogbn-arxiv", "ogbn-products"}
    assert all(set(row) <= set(COLUMNS) for row in TABLE1.values())


def test_mean_deviation_difference_and_cost():
    tests = sample(83.0, 0.5)
    entry = entry_of("fie", "cora", tests)
    assert (entry.runs, entry.seconds, entry.peak_mb) == (10, 3.0, 109.0)
    assert entry.mean == pytest.approx(tests.mean())
    assert entry.std == pytest.approx(tests.std(ddof=1))
    assert entry.val == pytest.approx(80.0)
    assert entry.difference == pytest.approx(0.64)


@pytest.mark.parametrize(("mean", "mark"), [(83.0, "▲"), (82.4, ""), (82.0, "▼")])
def test_the_mark_is_that_of_welchs_test(mean, mark):
    ours, paper = sample(mean, 0.2), TABLE1["fie"]["cora"]
    entry = entry_of("fie", "cora", ours)
    expected = ttest_ind(ours, sample(paper.mean, paper.std), equal_var=False).pvalue
    assert entry.p_value == pytest.approx(expected)
    assert entry.mark == mark


def test_numbers_taken_from_others_and_constant_ones_are_not_tested():
    assert entry_of("gcn", "cora", sample(70.0, 0.1)).p_value is None
    assert entry_of("mlp", "cora", sample(70.0, 0.1)).mark == ""
    assert entry_of("wwl", "cora", np.full(10, 70.0)).p_value is None
    assert entry_of("wwl", "cora", sample(70.0, 0.1)).mark == "▼"
    assert entry_of("sgc", "cora", sample(81.0, 0.1)).difference is None


def test_the_authors_rule_stands_beside_the_papers_unsupervised_line():
    assert entry_of("fie-reference", "pubmed", sample(79.0, 0.1)).paper == TABLE1["fie"]["pubmed"]


def test_a_column_that_is_not_finished_is_not_reported():
    column, rows = finished("gcn", "cora", sample(81.0, 0.1))
    last = next(key for key, row in rows.items() if row["seed"] == 9)
    del rows[last]
    assert table_entries([column], rows) == []
    assert table_entries([Column(FIE, "cora")], {}) == []


@pytest.fixture(scope="module")
def entries():
    columns, rows = [], {}
    for method, dataset, mean in (
        ("gcn", "cora", 81.0),
        ("fie", "citeseer", 75.0),
        ("fie", "cora", 82.25),
        ("s2gc", "cora", 80.0),
    ):
        column, more = finished(method, dataset, sample(mean, 0.3))
        columns.append(column)
        rows |= more
    return table_entries(columns, rows)


def test_markdown_has_ours_the_papers_and_the_difference(entries):
    lines = markdown(entries).splitlines()
    assert lines[0] == "| method | Cora ours | Cora paper | Cora Δ | Citeseer ours | Citeseer paper | Citeseer Δ |"
    assert "| FIE unsup | 82.25 ± 0.30 | 82.36 ± 0.28 | -0.11 | 75.00 ± 0.30 | 72.02 ± 1.34 | +2.98▲ |" in lines
    assert "| GCN | 81.00 ± 0.30 | 81.40 ± 0.50* | -0.40 | – | – | – |" in lines
    assert "Welch's t-test" in markdown(entries)
    assert "n_layers 2, dim 128, n_anchors 1" in markdown(entries)


def test_latex_is_balanced_and_has_no_symbol_that_it_cannot_set(entries):
    text = latex(entries)
    body = text.split("%")[0]
    assert body.isascii()
    assert body.count("{") == body.count("}")
    assert r"FIE unsup & 82.25 $\pm$ 0.30 & 82.36 $\pm$ 0.28 & -0.11 & 75.00" in body
    widths = {
        line.count("&") for line in body.splitlines() if line.rstrip().endswith(r"\\") and "multicolumn" not in line
    }
    assert widths == {6}
    assert body.count(r"\midrule") == 2  # the head, and between unsupervised and supervised


def test_csv_reads_back_in_full_precision(entries):
    records = list(csv.DictReader(io.StringIO(table_csv(entries))))
    assert [(r["method"], r["dataset"]) for r in records] == [
        ("s2gc", "cora"),
        ("fie", "cora"),
        ("fie", "citeseer"),
        ("gcn", "cora"),
    ]
    assert float(records[1]["difference"]) == pytest.approx(-0.11, abs=1e-9)
    assert records[2]["significant"] == "True"
    assert records[0]["paper_mean"] == ""


def test_a_quick_run_is_not_compared_with_the_paper():
    column, rows = finished("fie", "cora", sample(99.0, 0.01), quick=True)
    entries = table_entries([column], rows)
    assert (entries[0].paper, entries[0].p_value, entries[0].mark) == (None, None, "")
    for render in (markdown, latex):
        text = render(entries)
        assert "A quick run" in text
        assert not any(word in text for word in ("82.36", "Welch", "▲", "blacktriangle", "Δ", "Delta"))
    assert markdown(entries).splitlines()[0] == "| method | Cora ours |"
    assert latex(entries).splitlines()[0] == r"\begin{tabular}{lr}\toprule"


def test_an_empty_table_is_a_table():
    assert all(isinstance(render([]), str) for render in FORMATS.values())
