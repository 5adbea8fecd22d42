"""Figures: maps of embeddings, explanations, trainings and costs. Those of the paper are in `fishergraph.lab.figures`.

Every function draws on Matplotlib's axes, new ones unless some are passed, and returns them. Figures are made without
pyplot, so no window opens and no display is needed.

    style        colours, markers and sizes
    figures      figures and axes without pyplot; shown, axes that a notebook shows
    columns      what a column of values says: classes, or numbers and dates
    colours      points in the colours of classes or of a scale
    projection   project: coordinates in the plane
    maps         embedding_map
    curves       training, scaling
    explanations attention, similarity, anchors
"""

from fishergraph.plots.curves import scaling, training
from fishergraph.plots.explanations import anchors, attention, similarity
from fishergraph.plots.maps import embedding_map
from fishergraph.plots.projection import project
from fishergraph.plots.style import MARKERS, PALETTE

__all__ = [
    "MARKERS",
    "PALETTE",
    "anchors",
    "attention",
    "embedding_map",
    "project",
    "scaling",
    "similarity",
    "training",
]
