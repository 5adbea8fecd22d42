"""Nested cross-validation: how well labels of whole graphs are read off embeddings, with nothing chosen on test folds.

For every fixed fold, each candidate (an embedding, a probe, its γ and C) is scored by cross-validation inside the
training part. The best one, of equals the first, is fitted on the whole training part and meets the test part once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.svm import SVC, LinearSVC

from fishergraph._arrays import check_in_range, plain_array
from fishergraph._parallel import one_blas_thread
from fishergraph._validation import check_integer, check_number, look_up
from fishergraph.probes.door import check_embedding, check_split, encode

# Steps of a support vector machine's solver. One that has not ended by then has a C far too large for its kernel.
_MAX_STEPS = 300_000

CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
GAMMAS = (0.1, 0.3, 1.0, 2.0)


@dataclass(frozen=True)
class Choice:
    """What one fold chose, its accuracy inside the training part and on the test part."""

    embedding: str
    probe: str
    gamma: float | None
    C: float
    inner: float
    test: float


@dataclass(frozen=True)
class NestedScores:
    """The choices of all folds, in their order."""

    choices: tuple[Choice, ...]

    @property
    def test(self) -> np.ndarray:
        """The test accuracy of every fold, (fold,)."""
        return np.array([choice.test for choice in self.choices])

    @property
    def inner(self) -> np.ndarray:
        """The inner accuracy of what every fold chose, (fold,); optimistic, being the best of many."""
        return np.array([choice.inner for choice in self.choices])

    def __repr__(self) -> str:
        spread = np.std(self.test, ddof=1) if len(self.choices) > 1 else 0.0
        return f"NestedScores({100 * self.test.mean():.1f} ± {100 * spread:.1f} over {len(self.choices)} folds)"


def nested_scores(
    embeddings: Any,
    y: Any,
    folds: Sequence[tuple[Any, Any]],
    *,
    probes: Sequence[str] = ("rbf-svm",),
    Cs: Sequence[float] = CS,
    gammas: Sequence[float] = GAMMAS,
    inner: int = 5,
    repeats: int = 1,
    random_state: int = 0,
    progress: Callable[[int, Choice], Any] | None = None,
) -> NestedScores:
    """The test accuracy of every fold, with embedding, probe, γ and C chosen inside its training part.

    Parameters
    ----------
    embeddings : (row, column), or a dictionary of several by name, candidates all of them.
    y : (row,), the labels.
    folds : pairs (train, test) of row numbers; a row in neither is not used.
    probes : candidates out of "rbf-svm", "linear-svm", "logistic".
    Cs : candidates for C. Rows are centred and scaled to a mean squared length of one before a linear probe.
    gammas : candidates for γ of exp(−γ ‖z − z'‖² / m), m the median squared distance of the training rows.
    inner, repeats : parts of the inner stratified cross-validation, and how often it is repeated with other parts.
    random_state : of these parts.
    progress : called with the fold's number and its choice.
    """
    named = dict(embeddings) if isinstance(embeddings, Mapping) else {"embedding": embeddings}
    y, named = _check_rows(named, y)
    candidates = _candidates(named, probes, Cs, gammas)
    parts = _parts(inner, repeats, random_state)
    checked = _check_folds(folds, y, inner)
    choices = []
    with one_blas_thread():
        for number, (train, test) in enumerate(checked):
            choices.append(_one_fold(named, y, train, test, candidates, parts))
            if progress is not None:
                progress(number, choices[-1])
    return NestedScores(tuple(choices))


def inner_scores(
    Z: Any,
    y: Any,
    folds: Sequence[tuple[Any, Any]],
    *,
    probes: Sequence[str] = ("rbf-svm",),
    Cs: Sequence[float] = CS,
    gammas: Sequence[float] = GAMMAS,
    inner: int = 5,
    repeats: int = 1,
    random_state: int = 0,
) -> np.ndarray:
    """The best inner accuracy of one embedding in every fold, (fold,); the test parts are not looked at.

    This is what embeddings are compared by. The parameters are those of `nested_scores`.
    """
    y, named = _check_rows({"embedding": Z}, y)
    candidates = _candidates(named, probes, Cs, gammas)
    parts = _parts(inner, repeats, random_state)
    trains = [train for train, _ in _check_folds(folds, y, inner)]
    with one_blas_thread():
        return np.array([_best(named, y, train, candidates, parts)[1] for train in trains])


# --- one fold ---------------------------------------------------------------------------------------------


def _one_fold(named: dict, y: np.ndarray, train: np.ndarray, test: np.ndarray, candidates: list, parts: Any) -> Choice:
    """The best candidate of the training part, and what it scores on the test part."""
    (name, probe, gamma, C), inner = _best(named, y, train, candidates, parts)
    problem = PROBES[probe].prepare(named[name], train, np.concatenate([train, test]), gamma)
    here, there = np.arange(len(train)), len(train) + np.arange(len(test))
    labels = np.concatenate([y[train], y[test]])
    return Choice(name, probe, gamma, C, inner, problem(here, there, labels, C))


def _best(named: dict, y: np.ndarray, train: np.ndarray, candidates: list, parts: Any) -> tuple[Any, float]:
    """(embedding, probe, γ, C) of the highest inner accuracy, and that."""
    splits = list(parts.split(train, y[train]))
    best, highest = None, -1.0
    for name, probe, gamma, Cs in candidates:
        problem = PROBES[probe].prepare(named[name], train, train, gamma)
        for C in Cs:
            score = float(np.mean([problem(fit, val, y[train], C) for fit, val in splits]))
            if score > highest:
                best, highest = (name, probe, gamma, C), score
    return best, highest


# A problem: (rows to fit, rows to score, labels, C) → accuracy.
Problem = Callable[[np.ndarray, np.ndarray, np.ndarray, float], float]


@dataclass(frozen=True)
class _Probe:
    """A probe: whether it has a γ, and (Z, training rows, all rows, γ) → the problem on all rows."""

    has_gamma: bool
    prepare: Callable[[np.ndarray, np.ndarray, np.ndarray, Any], Problem]


def _rbf(Z: np.ndarray, train: np.ndarray, rows: np.ndarray, gamma: float) -> Problem:
    """exp(−γ D / m) of the rows, once for all solves."""
    distances = squared_distances(Z[rows])
    known = distances[: len(train), : len(train)]  # the training rows stand in front
    middle = float(np.median(known)) or 1.0
    gram = np.exp(-gamma / middle * distances)

    def accuracy(fit: np.ndarray, val: np.ndarray, labels: np.ndarray, C: float) -> float:
        model = SVC(C=C, kernel="precomputed", cache_size=500, max_iter=_MAX_STEPS)
        with _quiet():
            model.fit(gram[np.ix_(fit, fit)], labels[fit])
        return float(model.score(gram[np.ix_(val, fit)], labels[val]))

    return accuracy


def squared_distances(Z: np.ndarray) -> np.ndarray:
    """‖z − z'‖² of all pairs of rows, not below zero."""
    squares = np.sum(Z * Z, axis=1)
    return np.maximum(squares[:, None] + squares[None, :] - 2 * (Z @ Z.T), 0.0)


def _linear(make: Callable[[float], Any]) -> Callable[..., Problem]:
    """The problem of a linear model on centred rows of mean squared length one."""

    def prepare(Z: np.ndarray, train: np.ndarray, rows: np.ndarray, gamma: None) -> Problem:
        centred = Z[rows] - Z[train].mean(axis=0)
        size = np.sqrt(np.mean(np.sum(centred[: len(train)] ** 2, axis=1)))
        scaled = centred / (size or 1.0)

        def accuracy(fit: np.ndarray, val: np.ndarray, labels: np.ndarray, C: float) -> float:
            model = make(C)
            with _quiet():
                model.fit(scaled[fit], labels[fit])
            return float(model.score(scaled[val], labels[val]))

        return accuracy

    return prepare


@contextmanager
def _quiet() -> Iterator[None]:
    """Solves at the edge of a grid need not converge: what they score is what counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


PROBES: dict[str, _Probe] = {
    "rbf-svm": _Probe(True, _rbf),
    "linear-svm": _Probe(False, _linear(lambda C: LinearSVC(C=C, dual="auto", random_state=0))),
    "logistic": _Probe(False, _linear(lambda C: LogisticRegression(C=C, max_iter=2000))),
}


# --- the door ---------------------------------------------------------------------------------------------


def _candidates(named: dict, probes: Sequence[str], Cs: Sequence[float], gammas: Sequence[float]) -> list:
    """(embedding, probe, γ or None, Cs) of all candidates."""
    probes, Cs, gammas = (
        _listed(values, name) for values, name in ((probes, "probes"), (Cs, "Cs"), (gammas, "gammas"))
    )
    for probe in probes:
        look_up(PROBES, probe, "probes")
    if not len(probes) or not len(Cs) or not len(gammas):
        raise ValueError("probes, Cs and gammas must each hold at least one candidate, got an empty list; name some.")
    Cs = [check_in_range(check_number(C, "Cs", strict=True), "float32", "Cs") for C in Cs]
    gammas = [check_in_range(check_number(gamma, "gammas", strict=True), "float32", "gammas") for gamma in gammas]
    found = []
    for name, probe in product(named, probes):
        found += [(name, probe, gamma, Cs) for gamma in (gammas if PROBES[probe].has_gamma else [None])]
    return found


def _listed(values: Any, name: str) -> list:
    """Candidates, or folds, as a list."""
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0:
        raise ValueError(f"{name} must be a list, got {values!r}; put what it holds into brackets.")
    return list(values)


def _parts(inner: int, repeats: int, random_state: int) -> RepeatedStratifiedKFold:
    """The parts of the inner cross-validation."""
    return RepeatedStratifiedKFold(
        n_splits=check_integer(inner, "inner", least=2, most=2**31 - 1),
        n_repeats=check_integer(repeats, "repeats", least=1, most=1000),
        random_state=check_integer(random_state, "random_state", least=0, most=2**32 - 1),
    )


def _check_rows(named: dict[str, Any], y: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Labels, and embeddings as finite float64 matrices with a row per label."""
    y = plain_array(y, "y")
    checked = {}
    for name, Z in named.items():
        rows = check_embedding(Z, name)
        if y.shape != rows.shape[:1]:
            raise ValueError(
                f"{name} must have one row for each label, got {rows.shape[0]} rows and labels of shape {y.shape}; "
                "pass an embedding and its labels."
            )
        checked[name] = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    if not checked:
        raise ValueError("embeddings must hold at least one embedding, got none; pass a matrix.")
    return y, checked


def _check_folds(folds: Any, y: np.ndarray, inner: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The row numbers of every fold: labelled and disjoint, with enough training rows to choose inside."""
    checked = []
    for number, fold in enumerate(_listed(folds, "folds")):
        if not isinstance(fold, (tuple, list)) or len(fold) != 2:
            raise ValueError(f"fold {number} must be a pair (train, test) of rows, got {fold!r}; pass such pairs.")
        train, test = fold
        try:
            _, train, test = check_split(y, train, test, len(y), names=("train", "test"), what="row")
            codes = encode(y[train])[1]
        except ValueError as error:
            raise ValueError(f"in fold {number} {error}") from None
        if np.bincount(codes).max() < inner:
            raise ValueError(
                f"fold {number} must have a class with at least inner = {inner} training rows, got at most "
                f"{np.bincount(codes).max()}; lower inner, or correct the folds."
            )
        checked.append((train, test))
    if not checked:
        raise ValueError("folds must hold at least one pair (train, test), got none; pass the rows of some.")
    return checked
