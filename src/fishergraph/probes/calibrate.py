"""Calibration of class probabilities: one temperature, chosen on validation rows, and the error that is left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from fishergraph._arrays import real_array
from fishergraph._errors import InputError
from fishergraph._validation import check_integer

LEAST = 1e-6  # of a probability: a wrong row that was certain costs a finite loss
_RANGE = (-3.0, 3.0)  # of the logarithm of a temperature


def log_loss(P: np.ndarray, codes: np.ndarray) -> float:
    """The mean of −log P[i, codes[i]]; a class number of −1, which no column has, costs as much as can be."""
    known = codes >= 0
    p = np.where(known, P[np.arange(len(codes)), np.where(known, codes, 0)], 0.0)
    return float(-np.mean(np.log(np.maximum(p, LEAST))))


def at_temperature(P: np.ndarray, temperature: float) -> np.ndarray:
    """Rows ∝ P^{1 / temperature}: the same order of classes, more or less certain."""
    return softmax(np.log(np.maximum(P, LEAST)) / temperature, axis=1)


def fit_temperature(P: np.ndarray, codes: np.ndarray) -> float:
    """The temperature with the least log-loss on rows of known class; 1 if there is no such row."""
    known = codes >= 0
    if not known.any():
        return 1.0
    logits = np.log(np.maximum(np.ascontiguousarray(P[known].T), LEAST))  # (class, row)
    shifted = logits - logits.max(axis=0)
    true = float(np.mean(shifted[codes[known], np.arange(shifted.shape[1])]))

    def loss(log_t: float) -> float:
        t = np.exp(log_t)
        return float(np.mean(np.log(np.add.reduce(np.exp(shifted / t), axis=0)))) - true / t

    result: Any = minimize_scalar(loss, bounds=_RANGE, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(result.x))


def expected_calibration_error(P: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, n_bins: int = 15) -> float:
    """Compute the expected calibration error of predicted probabilities.

    Rows are put into bins of equal width by the probability of their most probable class. The error is the mean, over
    all rows, of the difference between the accuracy and the mean probability of a row's bin.

    Parameters
    ----------
    P : array of shape (n, n_classes)
        Probabilities.
    y : array of shape (n,)
        True labels.
    classes : array of shape (n_classes,), default=None
        The label of each column, such as `probe.classes_`; None is 0, 1, ….
    n_bins : int, default=15
        Number of bins.

    Returns
    -------
    float
        A number from 0, perfect, to 1.

    See Also
    --------
    GraphProbe : Its probabilities are calibrated on validation rows.

    Examples
    --------
    >>> from fishergraph.probes import expected_calibration_error
    >>> expected_calibration_error([[0.75, 0.25]] * 4, [0, 0, 0, 1])
    0.0
    """
    P, y = real_array(P, "P"), np.asarray(y)
    labels = np.arange(P.shape[-1]) if classes is None else np.asarray(classes)
    if P.ndim != 2 or y.shape != P.shape[:1] or labels.shape != P.shape[1:] or len(y) == 0:
        got = f"shapes {P.shape}, {y.shape} and {labels.shape}"
        raise InputError(parameter="P, y and classes", expected="be of shapes (n, k), (n,) and (k,)", got=got)
    if P.min() < 0 or P.max() > 1 + 1e-6:
        got = f"{P.min():g} to {P.max():g}"
        raise InputError(parameter="P", expected="hold probabilities", got=got, advice="pass predict_proba(Z)")
    n_bins = check_integer(n_bins, "n_bins", least=1)
    confidence, right = P.max(axis=1), labels[P.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(np.intp), n_bins - 1)
    gaps = np.bincount(bins, right - confidence, n_bins)  # of each bin: rows × (accuracy − mean probability)
    return float(np.abs(gaps).sum() / len(y))
