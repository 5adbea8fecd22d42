"""Explanations: why two nodes are alike, whom a node attends to, and what the anchors stand for."""

from fishergraph._listing import Listing
from fishergraph.explain.anchors import AnchorDescriptions
from fishergraph.explain.anomaly import AnomalyScores
from fishergraph.explain.attention import AttentionRows
from fishergraph.explain.explainer import Explainer
from fishergraph.explain.records import Attention, Similarity
from fishergraph.explain.surprise import NeighbourhoodScores

__all__ = [
    "AnchorDescriptions",
    "AnomalyScores",
    "Attention",
    "AttentionRows",
    "Explainer",
    "Listing",
    "NeighbourhoodScores",
    "Similarity",
]
