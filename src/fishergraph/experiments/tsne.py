"""Figure 5: t-SNE maps of the last hidden layer, 64 columns, of GAT, supervised FIE and unsupervised FIE on Cora."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fishergraph._parallel import one_blas_thread
from fishergraph.baselines import baseline
from fishergraph.datasets import GraphData, load_graph
from fishergraph.estimators import FisherEmbedding
from fishergraph.experiments.rows import Cell

STUDY, DATASET, WIDTH, SEED = "figure5", "cora", 64, 0
AXES = 50  # principal axes that t-SNE sees, as its authors advise

# The panels, in order: what each is called, and the settings of its model.
PANELS = {"gat": "GAT", "fie-supervised": "FIE, supervised", "fie": "FIE, unsupervised"}
SETTINGS: dict[str, dict[str, Any]] = {
    "gat": {"hidden": WIDTH},
    "fie-supervised": {"hidden": WIDTH, "n_layers": 2, "heads": 4},
    "fie": {"dim": WIDTH, "n_layers": 2, "n_anchors": 4},
}
_QUICK = {"gat": {"epochs": 15}, "fie-supervised": {"epochs": 15}, "fie": {}}


def map_cells(*, quick: bool = False) -> list[Cell]:
    """A cell per panel."""
    chosen = {name: {**SETTINGS[name], **(_QUICK[name] if quick else {})} for name in PANELS}
    return [Cell(STUDY, {"dataset": DATASET, "method": n, "settings": s}, SEED) for n, s in chosen.items()]


def map_work(cell: Cell) -> dict[str, Any]:
    """The coordinates of all nodes, (node, 2) with two decimals."""
    data, method, settings = load_graph(DATASET), cell.parameters["method"], cell.parameters["settings"]
    hidden = _unsupervised if method == "fie" else _trained
    Z = hidden(data, method, settings, cell.seed or 0)
    return {"width": Z.shape[1], "coordinates": np.round(tsne_map(Z, cell.seed or 0).astype(np.float64), 2)}


def _unsupervised(data: GraphData, method: str, settings: dict[str, Any], seed: int) -> np.ndarray:
    model = FisherEmbedding(**settings, teleport=None, random_state=seed, n_jobs=1)  # the paper's layers
    Z = model.fit_transform(data.X, graph=data.graph)
    return Z[:, -WIDTH:]  # ψ_T


def _trained(data: GraphData, method: str, settings: dict[str, Any], seed: int) -> np.ndarray:
    train, val, _ = data.split()
    model: Any = baseline(method, **settings)
    model.fit(data.X, data.y, graph=data.graph, train=train, val=val, seed=seed)
    return model.last_hidden(data.X, data.graph)


def tsne_map(Z: Any, seed: int) -> np.ndarray:
    """t-SNE coordinates (node, 2); on one thread, since its many short loops gain nothing from more."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with one_blas_thread(), threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = PCA(AXES, svd_solver="covariance_eigh").fit_transform(Z)
        return TSNE(init="pca", max_iter=500, angle=0.7, random_state=seed, n_jobs=1).fit_transform(axes)
