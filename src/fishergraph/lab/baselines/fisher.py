"""Unsupervised Fisher information embeddings and a probe. `FisherEmbedding` is made here alone in the laboratory."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from fishergraph.estimators import FisherEmbedding
from fishergraph.lab.baselines.base import Probed, Task

SHARPNESS: float = FisherEmbedding().sharpness  # of the calibrated variance


def paper_embedding(seed: int, *, n_layers: int, n_anchors: int = 4, dim: int = 256, **changes: Any) -> FisherEmbedding:
    """The estimator with the paper's layers, without PageRank-smoothed features; `changes` are its other arguments."""
    return FisherEmbedding(n_layers, n_anchors, dim, **{"teleport": None, "random_state": seed, **changes})


@dataclass(eq=False, repr=False)
class FIE(Probed):
    """Unsupervised Fisher information embedding.

    Parameters
    ----------
    n_layers : int, default=3
        Number of layers.
    n_anchors : int, default=4
        Mixture components of a layer.
    dim : int, default=256
        Width of a layer.
    attention : str, default='posterior'
        The E-step. 'reference' is the rule of the authors' code.
    bandwidth : float, default=1.5
        Bandwidth of the kernel map.
    options : dict, default=None
        Other arguments of `FisherEmbedding`, for instance {"multiset": "ppr"}.
    """

    n_layers: int = 3
    n_anchors: int = 4
    dim: int = 256
    _: KW_ONLY
    attention: str = "posterior"
    bandwidth: float = 1.5
    options: dict[str, Any] | None = None

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        return self.embedding(seed, verbose=progress).fit_transform(task.X, graph=task.A)

    def embedding(self, seed: int, **changes: Any) -> FisherEmbedding:
        """The estimator of these settings; `options` take precedence over `changes`."""
        sizes = {"n_layers": self.n_layers, "n_anchors": self.n_anchors, "dim": self.dim}
        settings = {"attention": self.attention, "bandwidth": self.bandwidth, **changes, **(self.options or {})}
        return paper_embedding(seed, **sizes, **settings)
