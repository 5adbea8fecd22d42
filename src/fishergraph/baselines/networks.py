"""Baselines that `fishergraph.nn.train` trains: the stacks of PyTorch Geometric, and `FisherNet`.

The weights are those of the epoch that was best on the validation nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fishergraph._optional import require
from fishergraph._validation import MOST_LAYERS, check_flag, check_integer
from fishergraph.baselines.base import Baseline
from fishergraph.baselines.door import HIDDEN, Task, features
from fishergraph.graph import as_graph
from fishergraph.probes.door import check_embedding, check_same_columns, check_split, encode

require("torch", extra="torch")
require("torch_geometric", extra="torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from fishergraph.baselines.stacks import Stack  # noqa: E402
from fishergraph.nn import FisherNet, train  # noqa: E402
from fishergraph.nn.rows import as_tensor, is_sparse  # noqa: E402
from fishergraph.nn.training import own_randomness  # noqa: E402
from fishergraph.ops.torch_threads import bounded  # noqa: E402

WIDEST = 2**15  # hidden columns or heads: their square is a matrix of 4 GB


class Network(Baseline):
    """A stack of PyG's layers, trained by Adam with early stopping on validation accuracy.

    kind        a name of `stacks.STACKS`
    hidden      width between the layers, of all heads together
    n_layers    number of layers
    heads       of attention; the last layer has as many, and takes their mean
    dropout     of what enters a layer, and of attention
    lr, weight_decay, epochs, patience, batch_size, device, n_jobs   as in `fishergraph.nn.train`
    fan_out     with batch_size, neighbours that are sampled at each distance
    rows        divide rows of X by their sums; None does it where X has no negative entry
    norm        None, "batch" or "layer"

    GCN alone reads edge weights. Fitted: `net_` and `history_`, on top of what every baseline has.
    """

    def __init__(
        self, kind: str = "gcn", hidden: int = 16, n_layers: int = 2, *, heads: int = 1, dropout: float = 0.5,
        lr: float = 0.01, weight_decay: float = 5e-4, epochs: int = 500, patience: int | None = 100,
        rows: bool | None = None, norm: str | None = None, batch_size: int | None = None, fan_out: Any = None,
        device: str = "cpu", n_jobs: int | None = None,
    ):  # fmt: skip
        self.kind = kind
        self.hidden = hidden
        self.n_layers = n_layers
        self.heads = heads
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.rows = rows
        self.norm = norm
        self.batch_size = batch_size
        self.fan_out = fan_out
        self.device = device
        self.n_jobs = n_jobs

    @property
    def _near(self) -> bool:
        """Whether full-batch steps are made on what labelled nodes hear."""
        return False

    @property
    def needs_graph(self) -> bool:
        """Whether the kind looks at edges."""
        return self.kind != "mlp"

    @bounded
    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        x, edges, weights = self._tensors(task.X, task.A)
        with own_randomness(torch.device("cpu"), seed):
            self.net_: Any = self._build(x, edges, len(task.classes), seed)
        y, val = _known(task)
        self.history_ = train(
            self.net_, x, y, edges, edge_weight=weights if self.kind == "gcn" else None, train=task.train, val=val,
            epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay, patience=self.patience, near=self._near,
            batch_size=self.batch_size, num_neighbors=self.fan_out, device=self.device, seed=seed, n_jobs=self.n_jobs,
            progress=progress,
        )  # fmt: skip
        return _probabilities(self.net_, x, edges, weights if self.kind == "gcn" else None)

    @bounded
    def last_hidden(self, X: Any, graph: Any) -> np.ndarray:
        """What enters the last layer, (node, hidden), for the nodes of a graph: that of `fit`, or one like it."""
        check_is_fitted(self)
        x, edges, weights = self._tensors(features(X), as_graph(graph).adjacency)
        seen: list[Tensor] = []
        listening = self._last_layer().register_forward_pre_hook(lambda module, given: seen.append(given[0]))
        try:
            _probabilities(self.net_, x, edges, weights if self.kind == "gcn" else None)
        finally:
            listening.remove()
        return seen[0][:, -self.hidden :].cpu().numpy()

    def _last_layer(self) -> nn.Module:
        check_integer(self.n_layers, "n_layers of a network with hidden rows", least=2)
        layers: Any = self.net_.net.lins if self.kind == "mlp" else self.net_.net.convs
        return layers[-1]

    def _tensors(self, X: Any, A: Any) -> tuple[Tensor, Tensor, Tensor]:
        return _tensors(X, A, sparse=self.batch_size is None and self.device == "cpu")

    def _build(self, x: Tensor, edges: Tensor, n_classes: int, seed: int) -> nn.Module:
        entries = x.values() if is_sparse(x) else x
        rows = bool((entries >= 0).all()) if self.rows is None else check_flag(self.rows, "rows (or None)")
        return Stack(
            self.kind, x.shape[1], check_integer(self.hidden, "hidden", least=1, most=WIDEST),
            check_integer(self.n_layers, "n_layers", least=1, most=MOST_LAYERS), n_classes, dropout=self.dropout,
            heads=check_integer(self.heads, "heads", least=1, most=WIDEST), rows=rows, norm=self.norm,
        )  # fmt: skip


class SupervisedFIE(Network):
    """`FisherNet`, trained end to end from anchors and landmarks that k-means has found: the supervised mode.

    `heads` are the mixture components of a layer (the paper's p); `options` other arguments of `FisherNet`.
    """

    def __init__(
        self, hidden: int = 64, n_layers: int = 2, *, heads: int = 4, dropout: float = 0.5, lr: float = 0.001,
        weight_decay: float = 5e-4, epochs: int = 600, patience: int | None = 100, batch_size: int | None = None,
        fan_out: Any = None, device: str = "cpu", n_jobs: int | None = None, options: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(
            "fisher", hidden, n_layers, heads=heads, dropout=dropout, lr=lr, weight_decay=weight_decay, epochs=epochs,
            patience=patience, batch_size=batch_size, fan_out=fan_out, device=device, n_jobs=n_jobs,
        )  # fmt: skip
        self.options = options

    def _build(self, x: Tensor, edges: Tensor, n_classes: int, seed: int) -> nn.Module:
        net = FisherNet(
            x.shape[1], self.hidden, self.n_layers, n_classes, num_anchors=self.heads, dropout=self.dropout,
            **(self.options or {}),
        )  # fmt: skip
        return net.init_from_data(x, edges, seed=seed)

    @property
    def _near(self) -> bool:
        return self.batch_size is None

    def _last_layer(self) -> nn.Module:
        return self.net_.classifier  # it sees ψ_0 … ψ_T, of which ψ_T is the last


class MLPProbe(ClassifierMixin, BaseEstimator):
    """A network of fully connected layers as a probe, with the calls of `LogisticProbe`; settings as in `Network`.

    Fitted: `net_`, `history_`, `val_score_`, `classes_`.
    """

    def __init__(
        self, hidden: int = 256, n_layers: int = 2, *, dropout: float = 0.5, norm: str | None = None, lr: float = 0.01,
        weight_decay: float = 5e-4, epochs: int = 500, patience: int | None = 100, device: str = "cpu",
        n_jobs: int | None = None, random_state: int = 0, verbose: Any = False,
    ):  # fmt: skip
        self.hidden = hidden
        self.n_layers = n_layers
        self.dropout = dropout
        self.norm = norm
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @bounded
    def fit(self, Z: Any, y: Any, train: Any, val: Any) -> MLPProbe:
        """self, trained on rows `train` of Z until it is best on rows `val` (index arrays or masks)."""
        Z = check_embedding(Z)
        y, rows, val = check_split(y, train, val, Z.shape[0])
        self.classes_, codes = encode(y[rows])
        known = np.full(Z.shape[0], HIDDEN, dtype=np.int64)
        known[rows] = codes
        val = val[np.isin(y[val], self.classes_)]
        known[val] = np.searchsorted(self.classes_, y[val])
        self.n_features_in_ = Z.shape[1]
        with own_randomness(torch.device("cpu"), self.random_state):
            hidden = check_integer(self.hidden, "hidden", least=1, most=WIDEST)
            n_layers = check_integer(self.n_layers, "n_layers", least=1, most=MOST_LAYERS)
            self.net_ = Stack(
                "mlp", Z.shape[1], hidden, n_layers, len(self.classes_), dropout=self.dropout,
                rows=False, norm=self.norm,
            )  # fmt: skip
        self.history_ = _train(
            self.net_, _dense(Z), known, _NO_EDGES, train=rows, val=val, epochs=self.epochs, lr=self.lr,
            weight_decay=self.weight_decay, patience=self.patience, device=self.device, seed=self.random_state,
            n_jobs=self.n_jobs, progress=self.verbose,
        )  # fmt: skip
        self.val_score_ = self.history_.best["val_accuracy"] if self.history_.best else 0.0
        return self

    @bounded
    def predict_proba(self, Z: Any) -> np.ndarray:
        """The class probabilities, (row, class); rows sum to 1."""
        check_is_fitted(self)
        Z = check_same_columns(check_embedding(Z), self.n_features_in_)
        return _probabilities(self.net_, _dense(Z), _NO_EDGES)

    def predict(self, Z: Any) -> np.ndarray:
        """The most probable class of each row."""
        return self.classes_[np.argmax(self.predict_proba(Z), axis=1)]


_train = train  # under a name that the argument of `fit` does not hide
_NO_EDGES = torch.zeros((2, 0), dtype=torch.int64)


def _tensors(X: Any, A: Any, *, sparse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """x, edge_index and edge_weight; an edge goes from what is heard to who hears."""
    targets = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    edges = torch.from_numpy(np.stack([A.indices.astype(np.int64), targets]))
    x = as_tensor(X.astype(np.float32)) if sparse and sp.issparse(X) else _dense(X)
    return x, edges, torch.from_numpy(A.data.astype(np.float32))


def _dense(X: Any) -> Tensor:
    return torch.from_numpy(np.array(X.toarray() if sp.issparse(X) else X, dtype=np.float32))


def _known(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Labels and validation nodes, without those of classes that no training node has."""
    known = np.isin(task.codes, task.codes[task.train])
    return np.where(known, task.codes, HIDDEN), task.val[known[task.val]]


@torch.no_grad()
def _probabilities(net: nn.Module, x: Tensor, edges: Tensor, weights: Tensor | None = None) -> np.ndarray:
    place = next(net.parameters()).device
    given = {} if weights is None else {"edge_weight": weights.to(place)}
    return torch.softmax(net(x.to(place), edges.to(place), **given), dim=1).double().cpu().numpy()
