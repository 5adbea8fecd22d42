"""Estimators for tests, with the options of components by their nested names: `node_model(em__n_iter=3)`."""

from __future__ import annotations

from typing import Any

from fishergraph import FisherEmbedding, FisherGraphEmbedding, FisherSetEmbedding
from fishergraph.published import PublishedMixture, PublishedNystrom

# The parameters of `FisherEmbedding.published_code()`.
PUBLISHED = {"family": PublishedMixture(), "kernel": PublishedNystrom(), "walk": None, "structure": None}


def _made(kind: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    plain = {name: value for name, value in params.items() if "__" not in name}
    nested = {name: value for name, value in params.items() if "__" in name}
    return kind(*args, **plain).set_params(**nested)


def node_model(*args: Any, **params: Any) -> FisherEmbedding:
    """A node embedding, of the features alone unless a structure is named."""
    return _made(FisherEmbedding, args, {"structure": None, **params})


def set_model(*args: Any, **params: Any) -> FisherSetEmbedding:
    """A set embedding."""
    return _made(FisherSetEmbedding, args, params)


def graph_model(**params: Any) -> FisherGraphEmbedding:
    """A graph embedding."""
    return _made(FisherGraphEmbedding, (), params)
