"""The committed rows of Table 1: each once, no test score in a search, and the page shows the table that they give."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishergraph.lab.experiments.plan import FINAL, by_key, columns_of
from fishergraph.lab.experiments.report import FORMATS, table_entries
from fishergraph.lab.experiments.specs import DATASETS, SPECS
from fishergraph.lab.rows import read_rows, row_key

ROOT = Path(__file__).parents[3]
ROWS = ROOT / "results" / "table1.jsonl"

pytestmark = pytest.mark.skipif(not ROWS.exists(), reason="there are no rows of Table 1 beside the tests")


@pytest.fixture(scope="module")
def rows():
    return read_rows(ROWS)


def test_every_row_is_there_once(rows):
    keys = [row_key(row) for row in rows]
    assert len(keys) == len(set(keys))


def test_no_search_has_looked_at_the_test_nodes(rows):
    assert all(("test" in row["values"]) == (row["parameters"]["stage"] == FINAL) for row in rows)


def test_the_tables_beside_the_rows_and_on_the_page_are_those_of_the_rows(rows):
    entries = table_entries(columns_of(SPECS.values(), list(DATASETS)), by_key(rows))
    for suffix, render in FORMATS.items():
        assert ROWS.with_suffix(suffix).read_text(encoding="utf-8") == render(entries)
    assert FORMATS[".md"](entries).strip() in (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
