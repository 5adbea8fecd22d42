"""A run that is killed at any moment goes on, and ends with the bytes of a run in memory."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fishergraph import FisherEmbedding
from fishergraph.scale import StoredEmbedding
from scale.stores import random_store

SCRIPT = Path(__file__).with_name("killed.py")


def run_killed(path: Path, delays: list[float]) -> int:
    """Kill as many runs as there are delays, then let one end; returns how many were running when they were killed."""
    killed = 0
    for delay in [*delays, None]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(path), "4096", "8"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if delay is not None:
            time.sleep(delay)
            killed += process.poll() is None
            process.kill()
        _, errors = process.communicate()
        if delay is None:
            assert process.returncode == 0, errors.decode()
    return killed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_killed_runs_end_with_the_same_bytes(tmp_path, seed):
    store, graph, X = random_store(tmp_path / "s", n_nodes=5000, seed=seed)
    expected = FisherEmbedding(dim=16, random_state=3).fit_transform(X, graph=graph)
    draws = random.Random(seed)
    killed = run_killed(store.path, [draws.uniform(0, 3) for _ in range(3)])
    assert killed > 0
    embedding = StoredEmbedding(store.path / "embeddings" / "default")
    np.testing.assert_array_equal(np.asarray(embedding), expected)
    assert not list(store.path.rglob("*.new"))
