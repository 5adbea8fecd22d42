"""The mixture of heads: how much of each fitted candidate goes into the prediction.

    P = Σ_k w_k P_k,    w chosen to make the log-loss on the validation rows small.

The weights come from greedy ensemble selection (Caruana et al., 2004). It starts with nothing, adds the candidate that
lowers the loss most, again and again and with replacement, and keeps the best number of additions; w_k is how often
candidate k was added. This is done for twenty random halves of the candidates, and the weights are averaged. So a few
validation rows cannot single out one lucky candidate.

Candidate 0 is plain logistic regression. The mixture is never less accurate on the validation rows: if it were, it is
moved, in quarters, towards a candidate that is as accurate as candidate 0, so that the loss stays as small as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fishergraph.probes.calibrate import LEAST, at_temperature, fit_temperature, log_loss

N_BAGS, N_ADDITIONS = 20, 15
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of a candidate that makes a mixture accurate enough
_LEAST_WEIGHT = 0.01  # candidates with less are left out


@dataclass(frozen=True)
class Blend:
    """The mixture of some candidates, by number."""

    weights: np.ndarray  # (candidate,), of sum one
    temperatures: np.ndarray  # (candidate,), which calibrate the candidates
    temperature: float  # which calibrates the mixture
    accuracy: float
    loss: float

    @property
    def used(self) -> np.ndarray:
        """The numbers of the candidates that have weight."""
        return np.flatnonzero(self.weights)

    def of_used(self) -> Blend:
        """The same mixture of the candidates that have weight alone."""
        return replace(self, weights=self.weights[self.used], temperatures=self.temperatures[self.used])

    def proba(self, probas: Sequence[np.ndarray]) -> np.ndarray:
        """The probabilities of the mixture, (row, class), from those of the candidates."""
        parts = zip(self.weights, self.temperatures, probas, strict=True)
        P = sum((w * at_temperature(Q, t) for w, t, Q in parts if w > 0), np.zeros(1))
        return at_temperature(P, self.temperature)


def blend(probas: Sequence[np.ndarray], codes: np.ndarray, rng: np.random.Generator | None = None) -> Blend:
    """The mixture of candidates with these probabilities on the validation rows, whose class numbers are `codes`.

    Without a random stream all candidates are selected from together, which suits a few of them: a half that lacks the
    best one would add a worse one. A row of class −1, which no candidate can predict, has no influence on weights and
    temperatures.
    """
    temperatures = np.array([fit_temperature(P, codes) for P in probas])
    calibrated = [at_temperature(P, t) for P, t in zip(probas, temperatures, strict=True)]
    known = np.flatnonzero(codes >= 0)
    true = np.array([P[known, codes[known]] for P in calibrated])  # (candidate, row)
    weights = _pruned(bagged_weights(true, rng))
    weights = at_least_as_accurate(weights, calibrated, codes)
    P = np.tensordot(weights, calibrated, axes=1)
    temperature = fit_temperature(P, codes)
    loss = log_loss(at_temperature(P, temperature), codes)
    return Blend(weights, temperatures, temperature, _accuracy(P, codes), loss)


def greedy_weights(true: np.ndarray, n_additions: int = N_ADDITIONS) -> np.ndarray:
    """Weights (candidate,) by greedy selection; `true` (candidate, row) is the probability of the true class."""
    counts, total = np.zeros(len(true)), np.zeros(true.shape[1])
    best, least = counts, np.inf
    for added in range(1, n_additions + 1):
        losses = -np.log(np.maximum((total + true) / added, LEAST)).mean(axis=1)
        k = int(np.argmin(losses))
        counts, total = counts + (np.arange(len(true)) == k), total + true[k]
        if losses[k] < least:
            best, least = counts / added, losses[k]
    return best


def bagged_weights(true: np.ndarray, rng: np.random.Generator | None, n_bags: int = N_BAGS) -> np.ndarray:
    """The mean of `greedy_weights` over random halves of the candidates, or over one bag of all of them.

    All weight goes to the first if there is no row.
    """
    if true.shape[1] == 0:
        return np.eye(len(true))[0]
    if rng is None:
        return greedy_weights(true)
    weights = np.zeros(len(true))
    for _ in range(n_bags):
        half = np.sort(rng.permutation(len(true))[: -(-len(true) // 2)])
        weights[half] += greedy_weights(true[half]) / n_bags
    return weights


def at_least_as_accurate(weights: np.ndarray, probas: Sequence[np.ndarray], codes: np.ndarray) -> np.ndarray:
    """The weights if their mixture is as accurate as candidate 0, else those of least loss that are.

    They are moved, in quarters, towards one of the candidates that are as accurate.
    """
    mixed, needed = np.tensordot(weights, probas, axes=1), _accuracy(probas[0], codes)
    if _accuracy(mixed, codes) >= needed:
        return weights
    ones, least = np.eye(len(weights)), np.inf
    moved = ones[0]
    for k in (k for k, P in enumerate(probas) if _accuracy(P, codes) >= needed):
        for share in _SHARES:
            P = (1 - share) * mixed + share * probas[k]
            if _accuracy(P, codes) >= needed and (loss := log_loss(P, codes)) < least:
                least, moved = loss, (1 - share) * weights + share * ones[k]
    return moved


def _pruned(weights: np.ndarray) -> np.ndarray:
    kept = np.where(weights >= min(_LEAST_WEIGHT, weights.max()), weights, 0.0)
    return kept / kept.sum()


def _accuracy(P: np.ndarray, codes: np.ndarray) -> float:
    return float(np.mean(P.argmax(axis=1) == codes))
