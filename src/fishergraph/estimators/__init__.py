"""scikit-learn estimators: they hold parameters and fitted state, and contain no mathematics."""

from fishergraph.estimators.classifier import FisherClassifier
from fishergraph.estimators.graphs import FisherGraphEmbedding
from fishergraph.estimators.long_table import GroupedSets, group_sets
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.readout import Readout
from fishergraph.estimators.sets import FisherSetEmbedding

__all__ = [
    "FisherClassifier",
    "FisherEmbedding",
    "FisherGraphEmbedding",
    "FisherSetEmbedding",
    "GroupedSets",
    "Readout",
    "group_sets",
]
