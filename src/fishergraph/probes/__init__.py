"""Probes: how much of the labels an embedding holds, read off by a small classifier.

logistic   LogisticProbe: linear, its C chosen on validation rows from the paper's grid
boosted    BoostedProbe: LightGBM, tuned on validation rows by FLAML, as in the paper, or by Optuna
door       what both are given, checked

All have fit(Z, y, train, val), predict(Z), predict_proba(Z), and `val_score_`, the accuracy on the validation rows of
the model that was chosen there. No other row is looked at.
"""

from fishergraph.probes.boosted import BoostedProbe
from fishergraph.probes.logistic import PAPER_CS, LogisticProbe

# By the names that settings use.
PROBES = {"logistic": LogisticProbe, "lightgbm": BoostedProbe}

__all__ = ["PAPER_CS", "PROBES", "BoostedProbe", "LogisticProbe"]
