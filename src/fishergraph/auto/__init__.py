"""Choose the settings of an embedding on validation labels: `auto_embed`."""

from fishergraph.auto.choice import AutoEmbedding
from fishergraph.auto.search import auto_embed

__all__ = ["AutoEmbedding", "auto_embed"]
