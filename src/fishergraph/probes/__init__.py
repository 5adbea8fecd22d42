"""Probes: small classifiers that measure how much of the labels an embedding holds.

logistic     LogisticProbe: linear, its C chosen on validation rows from the paper's grid
boosted      BoostedProbe: LightGBM, tuned on validation rows by FLAML, as in the paper, or by Optuna
graph        GraphProbe: the mixture of heads that suits an embedding and its graph
heads        the heads that it tries, on a problem; models: what they become
             built of block_fit, soft, sharpen, self_training, mlp and optional_heads
mixture      how much each candidate counts: greedy ensemble selection on validation rows
smooth       PageRank of probabilities, Correct & Smooth
calibrate    the temperature of probabilities, and expected_calibration_error
base         Probe: fit(Z, y, train, val), predict(Z), predict_proba(Z), and `val_score_`
validation   validation of embeddings, labels and rows
"""

from fishergraph.probes.boosted import BoostedProbe
from fishergraph.probes.calibrate import expected_calibration_error
from fishergraph.probes.graph import GraphProbe
from fishergraph.probes.logistic import PAPER_CS, LogisticProbe

# By the names that settings use.
PROBES = {"logistic": LogisticProbe, "lightgbm": BoostedProbe}

__all__ = ["PAPER_CS", "PROBES", "BoostedProbe", "GraphProbe", "LogisticProbe", "expected_calibration_error"]
