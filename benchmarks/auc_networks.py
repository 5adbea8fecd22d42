"""GCN and GAT of PyTorch Geometric with early stopping on the area under the ROC curve.

Layers and settings are those of `fishergraph.lab.baseline`, which stops on accuracy. On a graph with one large class
the accuracy is that of a constant for many epochs, so it would stop at an untrained network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import require
from sklearn.metrics import roc_auc_score

from fishergraph import as_graph
from fishergraph.datasets import GraphData
from fishergraph.lab import baseline


def best_probabilities(data: GraphData, name: str, train: np.ndarray, val: np.ndarray, seed: int) -> np.ndarray:
    """Class probabilities of all nodes, (node, class), at the epoch with the largest area on `val`."""
    torch = require("torch")
    require("torch_geometric")
    from fishergraph.lab.baselines.networks import PyGNetwork

    settings: Any = baseline(name)
    A = as_graph(data.graph).adjacency
    targets = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    edges = torch.from_numpy(np.stack([A.indices.astype(np.int64), targets]))
    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    x, y = torch.from_numpy(np.asarray(X, dtype=np.float32)), torch.from_numpy(data.y.astype(np.int64))
    torch.manual_seed(seed)
    options = {"dropout": settings.dropout, "heads": settings.heads, "rows": bool((x >= 0).all())}
    net = PyGNetwork(name, x.shape[1], settings.hidden, settings.n_layers, data.n_classes, **options)
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    best, score, since = np.empty(0), -np.inf, 0
    for _ in range(settings.epochs):
        net.train()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x, edges)[train], y[train]).backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            P = torch.softmax(net(x, edges), dim=1).double().numpy()
        now = float(roc_auc_score(data.y[val], P[val, 1]))
        best, score, since = (P, now, 0) if now > score else (best, score, since + 1)
        if since >= settings.patience:
            break
    return best
