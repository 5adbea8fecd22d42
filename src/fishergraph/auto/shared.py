"""`SharedEmbeddings`: fitted embeddings, each for all settings that differ in depth and block weights alone.

A layer does not depend on the layers after it, and a block does not depend on its weight. So an embedding with T layers
contains the embeddings with fewer layers, and every choice of block weights.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph._typing import MatrixLike
from fishergraph.costs import stack_costs
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.node_probe import on_host
from fishergraph.graph import Graph
from fishergraph.multiset import Multisets, neighbourhoods
from fishergraph.multiset.members import singletons
from fishergraph.stack import Stack
from fishergraph.structural import choose_structure

_SHARED = ("n_layers", "block_weights")


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted embedding with all its blocks, each of weight one."""

    key: dict[str, Any]  # the parameters that settings must have in common to share it
    model: FisherEmbedding
    blocks: dict[str, np.ndarray]

    def serves(self, asked: FisherEmbedding) -> bool:
        """Whether the embedding of these parameters is a part of this one."""
        return self.key == _key(asked) and asked.n_layers <= self.model.n_layers

    def part(self, asked: FisherEmbedding, stack: Stack) -> tuple[FisherEmbedding, np.ndarray]:
        """The fitted embedding with the depth and the block weights of `asked`, whose settings are `stack`."""
        fitted, weights = self.model.stack_, stack.block_weights
        model = copy.copy(self.model).set_params(n_layers=asked.n_layers, block_weights=asked.block_weights)
        layers = fitted.layers[: stack.n_layers]
        model.stack_ = replace(fitted, n_layers=stack.n_layers, layers=layers, block_weights=weights)
        blocks = [self.blocks[name] for name in stack.names]
        used = [(weight, block) for weight, block in zip(weights, blocks, strict=True) if weight > 0]
        return model, np.hstack([block if weight == 1 else block * math.sqrt(weight) for weight, block in used])


class SharedEmbeddings:
    """The embeddings of the settings of a search, over the same rows and graph.

    Parameters
    ----------
    X : matrix or None
        The features.
    graph : Graph or None
        The graph of the rows.
    n_rows : int
        Number of rows.
    """

    def __init__(self, X: MatrixLike, graph: Graph | None, n_rows: int):
        self.X, self.graph, self.n_rows = X, graph, n_rows
        self.fits: list[Fit] = []

    def settings(self, asked: FisherEmbedding) -> Stack:
        """The validated settings of an embedding of these rows."""
        return asked.settings(features=self.X is not None, graph=self.graph is not None)

    def shared(self, asked: FisherEmbedding) -> Fit | None:
        """The fitted embedding that contains the one that is asked for, if there is one."""
        return next((fit for fit in self.fits if fit.serves(asked)), None)

    def embed(self, asked: FisherEmbedding) -> tuple[FisherEmbedding, np.ndarray]:
        """The fitted embedding with these parameters, and the embedding of all rows in host memory."""
        fit = self.shared(asked) or self._fit(asked)
        return fit.part(asked, self.settings(asked))

    def _fit(self, asked: FisherEmbedding) -> Fit:
        names = self.settings(asked).names
        model = copy.copy(asked).set_params(block_weights=dict.fromkeys(names, 1.0))
        Z = on_host(model.fit_transform(self.X, graph=self.graph))
        ends = np.cumsum([width for _, width in model.blocks_])[:-1]
        fit = Fit(_key(asked), model, dict(zip(names, np.split(Z, ends, axis=1), strict=True)))
        self.fits.append(fit)
        return fit

    def keep(self, *models: FisherEmbedding) -> None:
        """Forget the embeddings that none of these models needs."""
        self.fits = [fit for fit in self.fits if any(fit.serves(model) for model in models)]

    def work(self, asked: FisherEmbedding) -> float:
        """The multiplications of an embedding, with neighbourhoods as multisets; 0 if it is shared."""
        if self.shared(asked) is not None:
            return 0.0
        stack = self.settings(asked)
        X: Any = self.X
        if X is None:
            structure = choose_structure(asked.structure)
            width = 0 if structure is None else structure.n_columns(stack.layer.dim, features=False)
            X = np.broadcast_to(np.float32(0), (self.n_rows, width))
        return sum(stack_costs(stack, X, self._sets(), fitting=True).values())

    def _sets(self) -> Multisets:
        return singletons(self.n_rows) if self.graph is None else neighbourhoods(self.graph)


def _key(asked: FisherEmbedding) -> dict[str, Any]:
    """The parameters that settings must have in common to share an embedding.

    The last layer of some kernels has no map, so that it is not a layer of a deeper embedding.
    """
    params: Mapping[str, Any] = asked.get_params(deep=False)
    own = _SHARED if asked.settings().layer.kernel.maps_last else ("block_weights",)
    return {name: value for name, value in params.items() if name not in own}
