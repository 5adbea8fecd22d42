"""Figure 5: t-SNE maps of the last hidden layer, 64 columns, of GAT, supervised FIE and unsupervised FIE on Cora."""

from __future__ import annotations

from typing import Any

import numpy as np

from fishergraph.datasets import load_graph
from fishergraph.lab.baselines import baseline
from fishergraph.lab.baselines.fisher import paper_embedding
from fishergraph.lab.rows import Cell
from fishergraph.plots import project

STUDY, DATASET, WIDTH, SEED = "figure5", "cora", 64, 0

# The panels in order: their titles, and the settings of their models.
PANELS = {"gat": "GAT", "fie-supervised": "FIE, supervised", "fie": "FIE, unsupervised"}
_SETTINGS: dict[str, dict[str, Any]] = {
    "gat": {"hidden": WIDTH},
    "fie-supervised": {"hidden": WIDTH, "n_layers": 2, "heads": 4},
    "fie": {"dim": WIDTH, "n_layers": 2, "n_anchors": 4},
}
_QUICK: dict[str, dict[str, Any]] = {"gat": {"epochs": 15}, "fie-supervised": {"epochs": 15}, "fie": {}}


def map_cells(*, quick: bool = False) -> list[Cell]:
    """A cell per panel."""
    chosen = {name: {**_SETTINGS[name], **(_QUICK[name] if quick else {})} for name in PANELS}
    return [Cell(STUDY, {"dataset": DATASET, "method": n, "settings": s}, SEED) for n, s in chosen.items()]


def map_work(cell: Cell) -> dict[str, Any]:
    """The coordinates of all nodes, (node, 2) with two decimals, and the width of the hidden layer."""
    seed = cell.seed or 0
    Z = _last_hidden(cell.parameters["method"], cell.parameters["settings"], seed)
    return {"width": Z.shape[1], "coordinates": np.round(project(Z, random_state=seed).astype(np.float64), 2)}


def _last_hidden(method: str, settings: dict[str, Any], seed: int) -> np.ndarray:
    data = load_graph(DATASET)
    if method == "fie":
        Z = paper_embedding(seed, n_jobs=1, **settings).fit_transform(data.X, graph=data.graph)
        return Z[:, -WIDTH:]  # ψ_T
    train, val, _ = data.split()
    model: Any = baseline(method, **settings)
    model.fit(data.X, data.y, graph=data.graph, train=train, val=val, seed=seed)
    return model.last_hidden(data.X, data.graph)
