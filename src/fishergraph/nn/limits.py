"""The largest sizes that a network and its training may have: more would run for ever, or not fit into memory."""

from __future__ import annotations

MOST_LAYERS = 1000
WIDEST = 2**20  # channels, anchors or heads
MOST_EM_STEPS = 10_000
MOST_EPOCHS = 10**7
MOST_NUMBERS = 2**31 - 1  # of one parameter; also of rows in a batch and of neighbours that are sampled
STEEPEST = 1e30  # a learning rate or a penalty: float32 holds its products with weights

# (least, most) of the integers of `FisherClassifier`, which the network knows under other names
CLASSIFIER = {
    "n_layers": (0, MOST_LAYERS),
    "n_anchors": (1, WIDEST),
    "dim": (1, WIDEST),
    "n_em_iter": (0, MOST_EM_STEPS),
    "max_epochs": (1, MOST_EPOCHS),
}
