"""Room 7: scikit-learn estimators. They hold state and call the rooms; they contain no mathematics."""

from fishergraph.estimators.graph import FisherGraphEmbedding
from fishergraph.estimators.multiset import FisherSetEmbedding
from fishergraph.estimators.node import FisherEmbedding

__all__ = ["FisherEmbedding", "FisherGraphEmbedding", "FisherSetEmbedding"]
