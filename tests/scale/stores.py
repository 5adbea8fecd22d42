"""Random graphs and stores for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fishergraph.scale.run as run
from fishergraph.graph import as_graph
from fishergraph.scale import Store, write_store


def random_graph(n_nodes: int = 900, seed: int = 0, *, weighted: bool = False, sparse: bool = False) -> tuple[Any, Any]:
    """A graph with hubs, isolated nodes and loops, and features."""
    rng = np.random.default_rng(seed)
    targets = (n_nodes * rng.random(6 * n_nodes) ** 3).astype(int)
    sources = rng.integers(n_nodes - 5, size=6 * n_nodes)
    values = rng.integers(1, 9, size=6 * n_nodes).astype(np.float32) if weighted else np.ones(6 * n_nodes, np.float32)
    A = sp.csr_array((values, (sources, targets)), shape=(n_nodes, n_nodes))
    if not weighted:
        A.sum_duplicates()
        A.data[:] = 1
    X = rng.standard_normal((n_nodes, 20)).astype(np.float32)
    if sparse:
        X = sp.csr_array(np.where(X > 0.8, X, 0).astype(np.float32))
    return as_graph(A, undirected=True), X


def random_store(path: Path, **options: Any) -> tuple[Store, Any, Any]:
    """A store, its graph and its features."""
    graph, X = random_graph(**options)
    return write_store(path, graph, X), graph, X


def small_budget(monkeypatch: pytest.MonkeyPatch, *, tile: int | None = 8, walk_tile: int = 8) -> None:
    """Make runs read a few columns at a time, and multisets from files."""
    plan = run.plan_budget

    def smaller(*args: Any, **options: Any) -> Any:
        budget = plan(*args, **options)
        tiles, groups = dict.fromkeys(budget.tiles, tile), dict.fromkeys(budget.tiles, 300)
        return replace(budget, tiles=tiles, group_rows=groups, walk_tile=walk_tile, sets_in_memory=False)

    monkeypatch.setattr(run, "plan_budget", smaller)


def small_parts(monkeypatch: pytest.MonkeyPatch, n_bytes: int = 2**13) -> None:
    """Make parts of a few row blocks, and row blocks of a few rows."""
    monkeypatch.setattr("fishergraph.scale.stored_pass.PART_BYTES", n_bytes)
