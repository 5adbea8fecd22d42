"""A run that is killed at any moment goes on, and ends with the bytes of a run in memory."""

from __future__ import annotations

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


def run_killed(path: Path, moments: list[str]) -> int:
    """Kill a run when each of these files appears, then let one end; returns how many were running when killed."""
    killed = 0
    for moment in [*moments, None]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(path), "4096", "8"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        while moment is not None and process.poll() is None:
            if (path / "embeddings" / "default" / moment).exists():
                process.kill()
                killed += 1
                break
            time.sleep(0.002)
        _, errors = process.communicate()
        if moment is None:
            assert process.returncode == 0, errors.decode()
    return killed


@pytest.mark.slow
def test_killed_runs_end_with_the_same_bytes(tmp_path):
    store, graph, X = random_store(tmp_path / "s", n_nodes=5000)
    expected = FisherEmbedding(dim=16, random_state=3).fit_transform(X, graph=graph)
    moments = ["work/structure-factors.npy", "parts/psi1.npy", "parts/axes-averaged.npy", "parts/local.npy"]
    assert run_killed(store.path, moments) >= 3
    embedding = StoredEmbedding(store.path / "embeddings" / "default")
    np.testing.assert_array_equal(np.asarray(embedding), expected)
    assert not list(store.path.rglob("*.new"))
