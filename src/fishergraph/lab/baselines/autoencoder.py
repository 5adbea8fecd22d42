"""Graph autoencoders (Kipf and Welling 2016), which learn vectors of nodes such that products say which edges exist.

    z = GCN(A, X),    p(u, v) = σ(⟨z_u, z_v⟩),    loss = −mean log p(edges) − mean log(1 − p(random pairs))

The variational one draws z from a normal distribution and adds KL(q ‖ N(0, I)) / n. With decoder="mlp" a network with
one hidden layer reads z_u ∘ z_v in place of their sum. The weights are those with the largest area under the ROC curve
on the validation edges.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from fishergraph._optional import require
from fishergraph._progress import progress_bar
from fishergraph._validation import check_integer, check_number, check_seed, look_up
from fishergraph.probes import EdgeSplit, Links
from fishergraph.probes.validation import validate_embedding
from fishergraph.structural.columns import power_or_zero

require("torch", extra="torch")
require("torch_geometric", extra="torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn.functional import binary_cross_entropy_with_logits  # noqa: E402
from torch_geometric.nn import GCNConv  # noqa: E402

from fishergraph.nn.rows import as_tensor, dropped  # noqa: E402
from fishergraph.nn.training import own_randomness  # noqa: E402
from fishergraph.ops.torch_threads import bounded  # noqa: E402

_CHECKED = 5  # epochs between two looks at the validation edges
_DECODERS = ("product", "mlp")


class _Autoencoder(nn.Module):
    """Two GCN layers and a decoder of pairs."""

    def __init__(self, n_inputs: int, hidden: int, dim: int, *, variational: bool, decoder: str, rate: float):
        super().__init__()
        self.first, self.mean = GCNConv(n_inputs, hidden), GCNConv(hidden, dim)
        self.spread = GCNConv(hidden, dim) if variational else None
        layers = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))
        self.decoder = layers if look_up(dict.fromkeys(_DECODERS, decoder), decoder, "decoder") == "mlp" else None
        self.rate = rate

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors, and the divergence of their distribution from the prior."""
        h = self.first(dropped(x, self.rate, self.training), edges).relu()
        h = dropped(h, self.rate, self.training)
        mean = self.mean(h, edges)
        if self.spread is None:
            return mean, mean.new_zeros(())
        log_spread = self.spread(h, edges).clamp(max=10)
        divergence = -0.5 * (1 + 2 * log_spread - mean**2 - (2 * log_spread).exp()).sum(dim=1).mean() / len(x)
        return (mean + torch.randn_like(mean) * log_spread.exp() if self.training else mean), divergence

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """The logits of pairs, (2, pair)."""
        products = z[pairs[0]] * z[pairs[1]]
        return products.sum(dim=1) if self.decoder is None else self.decoder(products)[:, 0]


@dataclass(eq=False)
class GraphAutoencoder:
    """A GCN whose products of vectors say which edges exist.

    Parameters
    ----------
    hidden, dim : int, default=32, 16
        Widths of the two layers.
    variational : bool, default=False
        Whether vectors are drawn from a distribution that is learned.
    decoder : {'product', 'mlp'}, default='product'
        What reads a pair of vectors.
    dropout : float, default=0.0
        Dropout of the inputs of both layers.
    lr : float, default=0.01
        Learning rate of Adam.
    epochs : int, default=400
        Epochs. Variational ones learn nothing in the first hundred, so they are all run.
    device : str, default="cpu"
        The device of PyTorch.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    val_score_ : float
        The area under the ROC curve on the validation edges.
    vectors_ : array of shape (n_nodes, dim)
        The vectors.
    """

    hidden: int = 32
    dim: int = 16
    _: KW_ONLY
    variational: bool = False
    decoder: str = "product"
    dropout: float = 0.0
    lr: float = 0.01
    epochs: int = 400
    device: str = "cpu"
    n_jobs: int | None = None

    @bounded
    def fit(self, X: Any, split: EdgeSplit, *, seed: int = 0, progress: Any = False) -> GraphAutoencoder:
        """Train on the training edges; the validation edges choose the epoch. Edges count both ways."""
        device, rows = torch.device(self.device), validate_embedding(X, "X")
        sums = np.asarray(rows.sum(axis=1)) if rows.min() >= 0 else np.ones(rows.shape[0])  # of bags of words
        x = as_tensor((sp.diags_array(power_or_zero(sums, -1.0)) @ rows).astype(np.float32)).to(device)
        sizes = [check_integer(getattr(self, name), name, least=1, most=2**15) for name in ("hidden", "dim")]
        epochs = check_integer(self.epochs, "epochs", least=1)
        rate = check_number(self.dropout, "dropout", most=1.0)
        positive = self._pairs(split.train.pairs[split.train.edges])
        edges = torch.cat([positive, positive.flip(0)], dim=1)
        best: tuple[float, Any] = (-1.0, None)
        with own_randomness(device, check_seed(seed)), progress_bar(progress)("training", epochs) as bar:
            options: dict[str, Any] = {"variational": self.variational, "decoder": self.decoder, "rate": rate}
            self._net = _Autoencoder(x.shape[1], *sizes, **options).to(device)
            optimizer = torch.optim.Adam(self._net.parameters(), lr=self.lr)
            for epoch in range(1, epochs + 1):
                self._step(optimizer, x, edges, positive)
                bar.update(1)
                if epoch % _CHECKED == 0:
                    score = self._score(x, edges, split.val)
                    best = (score, deepcopy(self._net.state_dict())) if score > best[0] else best
        if best[1] is not None:
            self._net.load_state_dict(best[1])
        self.val_score_ = self._score(x, edges, split.val)
        return self

    def _step(self, optimizer: Any, x: Tensor, edges: Tensor, positive: Tensor) -> None:
        """One step of Adam, with new random pairs."""
        self._net.train()
        optimizer.zero_grad()
        z, divergence = self._net(x, edges)
        drawn = torch.randint(len(x), positive.shape, device=x.device)
        logits = torch.cat([self._net.logits(z, positive), self._net.logits(z, drawn)])
        targets = (torch.arange(len(logits), device=x.device) < positive.shape[1]).float()
        (binary_cross_entropy_with_logits(logits, targets) + divergence).backward()
        optimizer.step()

    @torch.no_grad()
    def _score(self, x: Tensor, edges: Tensor, links: Links) -> float:
        """The area under the ROC curve of some pairs; sets the vectors."""
        self._net.eval()
        self._z = self._net(x, edges)[0]
        self.vectors_ = self._z.cpu().numpy()
        return float(roc_auc_score(links.edges, self.decision_function(links)))

    @torch.no_grad()
    def decision_function(self, links: Links) -> np.ndarray:
        """Return the logits of pairs."""
        return self._net.logits(self._z, self._pairs(links.pairs)).cpu().numpy()

    def _pairs(self, pairs: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(pairs.T)).to(self.device)
