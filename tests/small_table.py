"""A table that runs in a moment: a small graph under the name of a graph of the table, and methods with small grids."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fishergraph.datasets import GraphData, write_npz
from fishergraph.lab.experiments.specs import Protocol, Rung, Spec

DATASET = "citeseer"
N = 90


def small_graph(seed=0) -> GraphData:
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 3
    ends = rng.integers(0, N, (2, 30 * N))
    ends = ends[:, (y[ends[0]] == y[ends[1]]) | (rng.random(ends.shape[1]) < 0.15)][:, : 3 * N]
    A = sp.csr_array((np.ones(ends.shape[1], np.float32), tuple(ends)), shape=(N, N))
    A = sp.csr_array(((A + A.T) > 0).astype(np.float32))
    X = (np.abs(rng.normal(size=(N, 6))) + 1.5 * np.eye(6)[y]).astype(np.float32)
    nodes = rng.permutation(N)
    return GraphData(DATASET, X, A, y, np.sort(nodes[:24]), np.sort(nodes[24:54]), np.sort(nodes[54:]))


def data_home(folder):
    """The folder, with the graph in it."""
    write_npz(small_graph(), folder / f"{DATASET}.npz")
    return folder


FIE = Spec(
    "fie",
    "FIE",
    nested="n_layers",
    components="n_anchors",
    component_seeds=2,
    small=Protocol(grid={"n_layers": (1, 2), "dim": (4, 8), "n_anchors": (1, 2)}, seeds=3),
)
REFERENCE = Spec("fie-reference", "reference", small=Protocol(grid={"n_anchors": (1, 2)}, settings={"dim": 8}, seeds=2))
WWL = Spec(
    "wwl", "WWL", small=Protocol(grid={"n_iter": (1, 2, 3, 4)}, rungs=(Rung({"rows": True}, keep=2), Rung()), seeds=2)
)
SPREAD = Spec("label-propagation", "Label propagation", supervised=True, small=Protocol(seeds=2))
ALL = (FIE, REFERENCE, WWL, SPREAD)
