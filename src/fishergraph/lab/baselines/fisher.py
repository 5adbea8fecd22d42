"""Unsupervised Fisher information embeddings and a probe. `FisherEmbedding` is made here alone in the laboratory."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from fishergraph._validation import look_up
from fishergraph.estimators import FisherEmbedding
from fishergraph.family import GaussianMixture
from fishergraph.kernel_map import Nystrom
from fishergraph.lab.baselines.base import Probed, Task
from fishergraph.published import PublishedMixture, PublishedNystrom

SHARPNESS: float = GaussianMixture().sharpness  # of the calibrated variance

# The family and the kernel of a rule.
RULES = {"posterior": (GaussianMixture, Nystrom), "reference": (PublishedMixture, PublishedNystrom)}


def paper_embedding(
    seed: int,
    *,
    n_layers: int,
    n_anchors: int = 4,
    dim: int = 256,
    attention: str = "posterior",
    bandwidth: float = 1.5,
    **changes: Any,
) -> FisherEmbedding:
    """The estimator with the paper's layers alone: no averaged features, no structural columns.

    `changes` are its other parameters, those of components by their nested names.
    """
    family, kernel = look_up(RULES, attention, "attention")
    layers = {"family": family(), "kernel": kernel(bandwidth=bandwidth), "walk": None, "structure": None}
    return FisherEmbedding(n_layers, n_anchors, dim, random_state=seed).set_params(**{**layers, **changes})


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
    attention : {'posterior', 'reference'}, default='posterior'
        The rule: the equations of the paper, or the authors' code.
    bandwidth : float, default=1.5
        Bandwidth of the kernel map.
    options : dict, default=None
        Other parameters of `FisherEmbedding`, for instance {"multiset": "ppr", "em__n_iter": 3}.
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
