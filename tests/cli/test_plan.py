"""`fishergraph plan`: what it predicts, and what it refuses."""

from __future__ import annotations

import pytest

from commands import fails, ok, wrong
from fishergraph.cli.plan import read_count
from scale.stores import random_store

SMALL = ("--dim", "16", "--jobs", "1")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Probes of a few rows."""
    for name, value in {"_WORK": 10**5, "_MOST_ENTRIES": 2**12, "_FILE_PARTS": 8, "PART_BYTES": 2**18}.items():
        monkeypatch.setattr(f"fishergraph.scale.probe.{name}", value)


def test_a_store_is_planned_and_left_as_it_is(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    before = sorted(path.name for path in store.path.iterdir())
    text = ok("plan", store.path, "--memory", "16G", *SMALL).stdout
    assert "900 nodes" in text
    for name in ("psi0", "psi2", "walk", "smooth", "factors", "all"):
        assert f"\n{name} " in text
    assert sorted(path.name for path in store.path.iterdir()) == before


def test_sizes_are_planned_without_a_store(tmp_path):
    sizes = ("--nodes", "10k", "--edges", "1e5", "--features", "20", "--undirected", "--folder", tmp_path)
    text = ok("plan", *sizes, "--memory", "16G", "--structure", "none", "--workers", 4, *SMALL).stdout
    assert "10,000 nodes, 200,000 edges, 20 features" in text
    assert "4 workers" in text
    assert "ingest" in text


def test_a_memory_that_cannot_work_is_refused_with_the_smallest(tmp_path):
    fails(tmp_path, r"set --memory \d", "plan", "--nodes", "1G", "--edges", "2G", "--memory", "4G", *SMALL)


@pytest.mark.parametrize(
    ("pattern", "arguments"),
    [
        ("STORE", ()),
        ("--edges", ("--nodes", "10")),
        ("--nodes", ("--nodes", "many", "--edges", "3")),
        ("nodes", ("--nodes", "0", "--edges", "3")),
        ("nodes", ("--nodes", "1e30", "--edges", "3")),
        ("--features", ("--nodes", "9", "--edges", "3", "--features", "-1")),
        ("memory", ("--nodes", "9", "--edges", "3", "--memory", "lots")),
        ("--workers", ("--nodes", "9", "--edges", "3", "--workers", "0")),
        ("--preset", ("--nodes", "9", "--edges", "3", "--preset", "none")),
        ("--dim", ("--nodes", "9", "--edges", "3", "--dim", "wide")),
    ],
)
def test_wrong_calls(pattern, arguments):
    wrong(pattern, "plan", *arguments)


def test_a_store_has_its_own_sizes(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    wrong("--nodes", "plan", store.path, "--nodes", "7")


def test_a_path_that_is_no_store(tmp_path):
    fails(tmp_path, "no manifest", "plan", tmp_path, "--memory", "16G")
    fails(tmp_path, "no folder", "plan", tmp_path / "missing", "--memory", "16G")


@pytest.mark.parametrize(
    ("text", "count"),
    [("1500", 1500), ("111_059_956", 111_059_956), ("1e8", 10**8), ("111M", 111 * 10**6), ("1.6g", 1_600_000_000)],
)
def test_counts_in_words(text, count):
    assert read_count(text, "--nodes") == count
