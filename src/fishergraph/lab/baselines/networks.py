"""Networks trained by `fishergraph.nn.train`: layers of PyTorch Geometric, and `FisherNet`.

The weights are those of the epoch with the highest validation accuracy.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fishergraph._optional import require
from fishergraph._validation import MOST_LAYERS, check_flag, check_integer, look_up
from fishergraph.graph import as_graph
from fishergraph.lab.baselines.base import HIDDEN, Baseline, Task
from fishergraph.probes.base import Probe
from fishergraph.probes.validation import encode, validate_embedding

require("torch", extra="torch")
require("torch_geometric", extra="torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch_geometric.nn import GAT, GCN, MLP, GraphSAGE  # noqa: E402

from fishergraph.nn import FisherNet, train  # noqa: E402
from fishergraph.nn.rows import as_tensor, dropped, is_sparse, with_values  # noqa: E402
from fishergraph.nn.training import own_randomness  # noqa: E402
from fishergraph.ops.torch_threads import bounded  # noqa: E402

WIDEST = 2**15  # hidden columns or heads: the square is a matrix of 4 GB
NORMS = {"batch": "batch_norm", "layer": "layer_norm"}
KINDS = {"mlp": MLP, "gcn": GCN, "sage": GraphSAGE, "gat": GAT, "gatv2": GAT}
_NO_EDGES = torch.zeros((2, 0), dtype=torch.int64)


class PyGNetwork(nn.Module):
    """Layers of PyTorch Geometric with dropout of their inputs and ELU after attention.

    `kind` is a name of `KINDS`, `norm` one of `NORMS` or None. `hidden_channels` is the width of all heads together.
    `rows` divides the rows of x, which are bags of words, by their sums, and drops entries of them.
    """

    def __init__(
        self,
        kind: str,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        dropout: float,
        heads: int = 1,
        rows: bool = True,
        norm: str | None = None,
    ):
        super().__init__()
        make: Any = look_up(KINDS, kind, "kind")
        self.num_layers, self.in_channels, self.out_channels = num_layers, in_channels, out_channels
        self.dropout, self.rows = dropout, rows
        options: dict[str, Any] = {"heads": heads, "v2": kind == "gatv2", "act": "elu"} if "gat" in kind else {}
        options |= {"in_channels": in_channels, "hidden_channels": hidden_channels, "out_channels": out_channels}
        options["norm"] = None if norm is None else look_up(NORMS, norm, "norm (or None)")
        self.net = make(num_layers=num_layers, dropout=dropout, **options)
        self.needs_edges, self.needs_dense = kind != "mlp", kind == "sage"  # GraphSAGE averages the rows of x

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        **hops: Any,
    ) -> Tensor:
        """The logits of all nodes, or of the first `batch_size` nodes of a sampled batch."""
        if self.rows:
            x = _dropped_bags(x, self.dropout, self.training)
        if self.needs_dense and is_sparse(x):
            x = x.to_dense()
        z = self.net(x, edge_index, edge_weight=edge_weight, **hops) if self.needs_edges else self.net(x)
        return z if batch_size is None else z[:batch_size]


def _dropped_bags(x: Tensor, dropout: float, training: bool) -> Tensor:
    """Rows divided by their sums, unless these are below one, with dropout; dense or sparse like x."""
    if not is_sparse(x):
        return dropped(x / x.sum(dim=1, keepdim=True).clamp(min=1), dropout, training)
    lengths = torch.diff(x.crow_indices())
    sums = torch.segment_reduce(x.values(), "sum", lengths=lengths, initial=0).clamp(min=1)
    return with_values(x, dropped(x.values() / torch.repeat_interleave(sums, lengths), dropout, training))


@dataclass(eq=False, repr=False)
class _Training:
    """Settings of every training."""

    hidden: int = 16
    n_layers: int = 2
    _: KW_ONLY
    dropout: float = 0.5
    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 500
    patience: int | None = 100
    device: str = "cpu"
    n_jobs: int | None = None

    def _network(self, kind: str, in_channels: int, n_classes: int, **options: Any) -> PyGNetwork:
        hidden = check_integer(self.hidden, "hidden", least=1, most=WIDEST)
        n_layers = check_integer(self.n_layers, "n_layers", least=1, most=MOST_LAYERS)
        return PyGNetwork(kind, in_channels, hidden, n_layers, n_classes, dropout=self.dropout, **options)

    def _train(self, *data: Any, **options: Any) -> Any:
        """The history of the training of a network on x, y and edges."""
        for name in ("epochs", "lr", "weight_decay", "patience", "device", "n_jobs"):
            options[name] = getattr(self, name)
        return train(*data, **options)


@dataclass(eq=False, repr=False)
class GraphNetwork(_Training, Baseline):
    """Base class of trained networks.

    Parameters
    ----------
    hidden : int
        Width between the layers, of all heads together.
    n_layers : int
        Number of layers.
    heads : int
        Heads of attention, or mixture components. The last layer takes the mean of its heads.
    dropout : float
        Dropout of the input of a layer, and of attention.
    lr, weight_decay, epochs, patience, batch_size, device, n_jobs
        As in `fishergraph.nn.train`.
    fan_out : int or list of int, default=None
        With `batch_size`, the number of sampled neighbours at each distance.

    Attributes
    ----------
    net_ : torch.nn.Module
        The trained network.
    history_ : History
        What `fishergraph.nn.train` returned.
    """

    _: KW_ONLY
    heads: int = 1
    batch_size: int | None = None
    fan_out: Any = None

    @abstractmethod
    def _build(self, x: Tensor, edges: Tensor, n_classes: int, seed: int) -> nn.Module:
        """The network before training."""

    @abstractmethod
    def _last_layer(self) -> nn.Module:
        """The last layer of the trained network."""

    _uses_weights = False  # whether edge weights enter
    _near = False  # whether a full-batch step uses the surroundings of the labelled nodes alone

    @bounded
    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        x, edges, weights = self._tensors(task.X, task.A)
        with own_randomness(torch.device("cpu"), seed):
            self.net_: Any = self._build(x, edges, len(task.classes), seed)
        learnable = np.isin(task.codes, task.codes[task.train])  # validation nodes of other classes count as wrong
        labels, val = np.where(learnable, task.codes, HIDDEN), task.val[learnable[task.val]]
        batches = {"batch_size": self.batch_size, "num_neighbors": self.fan_out, "near": self._near}
        split = {"train": task.train, "val": val, "seed": seed, "progress": progress}
        self.history_ = self._train(self.net_, x, labels, edges, edge_weight=weights, **split, **batches)
        return _probabilities(self.net_, x, edges, weights)

    @bounded
    def last_hidden(self, X: Any, graph: Any) -> np.ndarray:
        """The input of the last layer, (node, hidden), for the graph of `fit` or a similar one."""
        check_is_fitted(self)
        x, edges, weights = self._tensors(validate_embedding(X, "X"), as_graph(graph).adjacency)
        inputs: list[Tensor] = []
        hook = self._last_layer().register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
        try:
            _probabilities(self.net_, x, edges, weights)
        finally:
            hook.remove()
        return inputs[0][:, -self.hidden :].cpu().numpy()

    def _tensors(self, X: Any, A: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """x, edge_index and, if they are used, edge_weight; an edge goes from the neighbour to the node."""
        targets = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        edges = torch.from_numpy(np.stack([A.indices.astype(np.int64), targets]))
        sparse = self.batch_size is None and self.device == "cpu" and sp.issparse(X)
        x = as_tensor(X.astype(np.float32)) if sparse else _dense(X)
        return x, edges, torch.from_numpy(A.data.astype(np.float32)) if self._uses_weights else None


@dataclass(eq=False, repr=False)
class Network(GraphNetwork):
    """Layers of PyTorch Geometric. Only GCN uses edge weights.

    Other parameters are those of `GraphNetwork`.

    Parameters
    ----------
    kind : {'mlp', 'gcn', 'sage', 'gat', 'gatv2'}, default='gcn'
        The layers.
    rows : bool, default=None
        Divide rows of X by their sums; None does so if X has no negative entry.
    norm : {'batch', 'layer'}, default=None
        Normalisation between the layers.
    """

    _: KW_ONLY
    kind: str = "gcn"
    rows: bool | None = None
    norm: str | None = None

    @property
    def needs_graph(self) -> bool:
        return self.kind != "mlp"

    @property
    def _uses_weights(self) -> bool:
        return self.kind == "gcn"

    def _build(self, x: Tensor, edges: Tensor, n_classes: int, seed: int) -> nn.Module:
        entries = x.values() if is_sparse(x) else x
        rows = bool((entries >= 0).all()) if self.rows is None else check_flag(self.rows, "rows (or None)")
        heads = check_integer(self.heads, "heads", least=1, most=WIDEST)
        return self._network(self.kind, x.shape[1], n_classes, heads=heads, rows=rows, norm=self.norm)

    def _last_layer(self) -> nn.Module:
        check_integer(self.n_layers, "n_layers of a network with hidden rows", least=2)
        layers: Any = self.net_.net.lins if self.kind == "mlp" else self.net_.net.convs
        return layers[-1]


@dataclass(eq=False, repr=False)
class SupervisedFIE(GraphNetwork):
    """`FisherNet`, trained end to end: the supervised mode of the paper.

    Anchors and landmarks start from k-means. Other parameters are those of `GraphNetwork`.

    Parameters
    ----------
    heads : int, default=4
        Mixture components of a layer, the paper's p.
    options : dict, default=None
        Other arguments of `FisherNet`.
    """

    hidden: int = 64
    _: KW_ONLY
    heads: int = 4
    lr: float = 0.001
    epochs: int = 600
    options: dict[str, Any] | None = None

    @property
    def _near(self) -> bool:
        return self.batch_size is None

    def _build(self, x: Tensor, edges: Tensor, n_classes: int, seed: int) -> nn.Module:
        options = {"num_anchors": self.heads, "dropout": self.dropout, **(self.options or {})}
        net = FisherNet(x.shape[1], self.hidden, self.n_layers, n_classes, **options)
        return net.init_from_data(x, edges, seed=seed)

    def _last_layer(self) -> nn.Module:
        return self.net_.classifier  # its input is ψ_0 … ψ_T; the last columns are ψ_T


@dataclass(eq=False, repr=False)
class MLPProbe(_Training, Probe):
    """A fully connected network as a probe; parameters as in `Network`."""

    hidden: int = 256
    _: KW_ONLY
    norm: str | None = None
    random_state: int = 0
    verbose: Any = False

    @bounded
    def _fit(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> None:
        self.classes_, codes = encode(y[train])
        val = val[np.isin(y[val], self.classes_)]
        labels = np.full(Z.shape[0], HIDDEN, dtype=np.int64)
        labels[train], labels[val] = codes, np.searchsorted(self.classes_, y[val])
        with own_randomness(torch.device("cpu"), self.random_state):
            self.net_ = self._network("mlp", Z.shape[1], len(self.classes_), rows=False, norm=self.norm)
        split = {"train": train, "val": val, "seed": self.random_state, "progress": self.verbose}
        self.history_ = self._train(self.net_, _dense(Z), labels, _NO_EDGES, **split)
        self.val_score_ = self.history_.best["val_accuracy"] if self.history_.best else 0.0

    @bounded
    def _proba(self, Z: Any) -> np.ndarray:
        return _probabilities(self.net_, _dense(Z), _NO_EDGES)


def _dense(X: Any) -> Tensor:
    return torch.from_numpy(np.array(X.toarray() if sp.issparse(X) else X, dtype=np.float32))


@torch.no_grad()
def _probabilities(net: nn.Module, x: Tensor, edges: Tensor, weights: Tensor | None = None) -> np.ndarray:
    device = next(net.parameters()).device
    options = {} if weights is None else {"edge_weight": weights.to(device)}
    return torch.softmax(net(x.to(device), edges.to(device), **options), dim=1).double().cpu().numpy()
