"""Which of the tried heads is kept: validation accuracy, and log-loss among those that it cannot tell apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fishergraph.probes.calibrate import at_temperature, fit_temperature, log_loss


class Scores(NamedTuple):
    """What a candidate achieves on the validation rows, calibrated there."""

    right: np.ndarray  # (row,) bool
    temperature: float
    loss: float

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is found."""
        return float(self.right.mean())


def score(P: np.ndarray, codes: np.ndarray) -> Scores:
    """The scores of probabilities on the validation rows."""
    temperature = fit_temperature(P, codes)
    return Scores(P.argmax(axis=1) == codes, temperature, log_loss(at_temperature(P, temperature), codes))


def choose(scores: list[Scores]) -> int:
    """The number of the candidate to keep; the first one is plain logistic regression.

    Of the candidates that are at least as accurate as the first, and within one standard error of the most accurate,
    the one with the smallest log-loss. The error is that of the difference of two accuracies on the same rows. Of
    equally good candidates the earlier, simpler one is kept.
    """
    best = max(scores, key=lambda s: s.accuracy)
    least = scores[0].accuracy
    near = [k for k, s in enumerate(scores) if s.accuracy >= least and best.accuracy - s.accuracy <= _error(best, s)]
    return min(near, key=lambda k: scores[k].loss)


def _error(one: Scores, other: Scores) -> float:
    """The standard error of the difference of two accuracies."""
    difference = one.right.astype(np.float64) - other.right
    return float(difference.std() / np.sqrt(len(difference)))
