"""A small graph with labels, as the tables that people have."""

from __future__ import annotations

import numpy as np
import pandas as pd

N = 48
PARTS = ["train"] * 18 + ["val"] * 12 + ["test"] * 12 + [""] * 6


def frames():
    """Edges, nodes with features, a topic (empty for the last six nodes) and a part, and the true topics."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    ends = rng.integers(0, N, (2, 40 * N))
    ends = ends[:, (y[ends[0]] == y[ends[1]]) | (rng.random(ends.shape[1]) < 0.1)][:, : 6 * N]
    ids = np.array([f"paper {k:02d}" for k in rng.permutation(N)])
    X = (rng.normal(size=(N, 4)) + np.eye(4)[y]).astype(np.float32)
    topic = np.array(["ape", "bee", "cat"], dtype=object)[y]
    known = topic.copy()
    known[-6:] = None
    nodes = pd.DataFrame({"id": ids, **{f"f{j}": X[:, j] for j in range(4)}, "topic": known, "part": PARTS})
    return pd.DataFrame({"source": ids[ends[0]], "target": ids[ends[1]]}), nodes, topic


EDGES, NODES, TOPIC = frames()


def write_tables(folder):
    """Write both tables; returns the first arguments of a command that reads them."""
    EDGES.to_csv(folder / "edges.csv", index=False)
    NODES.to_csv(folder / "nodes.csv", index=False)
    return folder / "edges.csv", "-n", folder / "nodes.csv"


SMALL = ["--n-layers", "1", "--n-anchors", "2", "--dim", "8", "--head", "linear", "--dropout", "0", "--lr", "0.05"]
