"""Figures of embeddings and of trainings. The figures of the paper are in `fishergraph.lab.figures`.

Colours are those of Okabe and Ito, which people with any form of colour vision can tell apart; beyond eight classes the
marker changes too. Figures are made without pyplot, so no window opens and no backend is chosen.
"""

from fishergraph.plots.points import scatter, tsne_map
from fishergraph.plots.style import MARKERS, PALETTE
from fishergraph.plots.training import training_curves

__all__ = ["MARKERS", "PALETTE", "scatter", "training_curves", "tsne_map"]
