"""Figures from embeddings, from logs of training and from rows of experiments; nothing is computed or trained here.

Colours are those of Okabe and Ito, which people with any form of colour vision can tell apart; beyond eight
classes the marker changes too. Figures are made without pyplot, so no window opens and no backend is chosen.
"""

from fishergraph.plots.components import draw_components
from fishergraph.plots.maps import draw_maps
from fishergraph.plots.points import scatter
from fishergraph.plots.studies import FIGURES, draw_figure
from fishergraph.plots.style import MARKERS, PALETTE
from fishergraph.plots.training import training_curves

__all__ = ["FIGURES", "MARKERS", "PALETTE", "draw_components", "draw_figure", "draw_maps", "scatter", "training_curves"]
