"""Probes: small classifiers that measure how much of the labels an embedding holds.

logistic     LogisticProbe: linear, its C chosen on validation rows from the paper's grid
boosted      BoostedProbe: LightGBM, tuned on validation rows by FLAML, as in the paper, or by Optuna
graph        GraphProbe: the mixture of heads that suits an embedding and its graph
heads        the heads that it tries, on a problem; models: what they become
             built of block_fit, soft, sharpen, self_training, mlp and optional_heads
mixture      how much each candidate counts: greedy ensemble selection on validation rows
smooth       PageRank of probabilities, Correct & Smooth
calibrate    the temperature of probabilities, and expected_calibration_error
edges        split_edges: edges that are held out; ranking: link_metrics, how well edges are ranked
links        LinkProbe: which pairs of nodes have an edge; pairs: their features; link_heads: what is learned from them
base         Probe: fit(Z, y, train, val), predict(Z), predict_proba(Z), and `val_score_`
validation   validation of embeddings, labels and rows
"""

from fishergraph.probes.boosted import BoostedProbe
from fishergraph.probes.calibrate import expected_calibration_error
from fishergraph.probes.edges import EdgeSplit, Links, split_edges
from fishergraph.probes.graph import GraphProbe
from fishergraph.probes.links import LinkProbe
from fishergraph.probes.logistic import PAPER_CS, LogisticProbe
from fishergraph.probes.ranking import link_metrics

# By the names that settings use.
PROBES = {"logistic": LogisticProbe, "lightgbm": BoostedProbe}

__all__ = [
    "PAPER_CS",
    "PROBES",
    "BoostedProbe",
    "EdgeSplit",
    "GraphProbe",
    "LinkProbe",
    "Links",
    "LogisticProbe",
    "expected_calibration_error",
    "link_metrics",
    "split_edges",
]
