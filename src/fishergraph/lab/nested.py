"""Nested cross-validation of classifiers on embeddings of whole graphs; no choice is made on test folds.

For every fold, each candidate (an embedding, a classifier, its γ and C) is scored by cross-validation inside the
training part. The best one, of equals the first, is fitted to the whole training part and scored on the test part once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.svm import SVC, LinearSVC

from fishergraph._arrays import check_in_range, plain_array
from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._typing import MatrixLike
from fishergraph._validation import check_integer, check_number, look_up
from fishergraph.probes.validation import encode, validate_embedding, validate_split

# Steps of a support vector machine's solver. If it needs more, C is far too large for its kernel.
_MAX_STEPS = 300_000

CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
GAMMAS = (0.1, 0.3, 1.0, 2.0)
PROBES = ("rbf-svm",)


@dataclass(frozen=True)
class Choice:
    """What one fold chose, and its accuracy inside the training part and on the test part."""

    embedding: str
    probe: str
    gamma: float | None
    C: float
    inner: float
    test: float


@dataclass(frozen=True)
class NestedScores:
    """The result of nested cross-validation.

    Parameters
    ----------
    choices : tuple of Choice
        What each fold chose, in the order of the folds.

    See Also
    --------
    nested_scores : Computes them.

    Examples
    --------
    >>> from fishergraph.lab.nested import Choice, NestedScores
    >>> NestedScores((Choice("ring", "rbf-svm", 1.0, 3.0, inner=0.9, test=0.8),))
    NestedScores(80.0 ± 0.0 over 1 folds)
    """

    choices: tuple[Choice, ...]

    @property
    def test(self) -> np.ndarray:
        """The test accuracy of every fold, (fold,)."""
        return np.array([choice.test for choice in self.choices])

    @property
    def inner(self) -> np.ndarray:
        """The inner accuracy of every fold's choice, (fold,); optimistic, since it is the best of many."""
        return np.array([choice.inner for choice in self.choices])

    def __repr__(self) -> str:
        spread = np.std(self.test, ddof=1) if len(self.choices) > 1 else 0.0
        return f"NestedScores({100 * self.test.mean():.1f} ± {100 * spread:.1f} over {len(self.choices)} folds)"


def nested_scores(
    embeddings: MatrixLike | Mapping[str, MatrixLike],
    y: ArrayLike,
    folds: Sequence[tuple[Any, Any]],
    *,
    probes: Sequence[str] = PROBES,
    Cs: Sequence[float] = CS,
    gammas: Sequence[float] = GAMMAS,
    inner: int = 5,
    repeats: int = 1,
    random_state: int = 0,
    progress: Callable[[int, Choice], Any] | None = None,
) -> NestedScores:
    """Score classifiers of embeddings by nested cross-validation.

    Embedding, classifier, γ and C are chosen inside the training part of each fold.

    Parameters
    ----------
    embeddings : array or sparse matrix of shape (n, n_features), or dict of these
        Candidates, by name.
    y : array of shape (n,)
        Labels.
    folds : sequence of (train, test)
        Row numbers. A row in neither is not used.
    probes : sequence of {'rbf-svm', 'linear-svm', 'logistic'}, default=('rbf-svm',)
        Candidates.
    Cs : sequence of float
        Candidates. Before a linear classifier, rows are centred and scaled to a mean squared length of one.
    gammas : sequence of float
        Candidates for γ of exp(−γ ‖z − z'‖² / m), where m is the median squared distance of the training rows.
    inner : int, default=5
        Number of parts of the inner stratified cross-validation.
    repeats : int, default=1
        How often the inner cross-validation is repeated with other parts.
    random_state : int, default=0
        Seed of the parts.
    progress : callable, default=None
        Called with the number of a fold and its `Choice`.

    Returns
    -------
    NestedScores
        The choice and the accuracies of every fold.

    See Also
    --------
    inner_scores : Compares embeddings without the test parts.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.lab import nested_scores
    >>> y = np.arange(40) % 2
    >>> nested_scores(y[:, None] + 0.0, y, [(np.arange(30), np.arange(30, 40))])
    NestedScores(100.0 ± 0.0 over 1 folds)
    """
    named = embeddings if isinstance(embeddings, Mapping) else {"embedding": embeddings}
    candidates = {"probes": probes, "Cs": Cs, "gammas": gammas}
    parts = {"inner": inner, "repeats": repeats, "random_state": random_state}
    search, trials = _search(named, y, folds, **candidates, **parts)
    choices = []
    with one_blas_thread():
        for number, (train, test) in enumerate(trials):
            choices.append(search.choice(train, test))
            if progress is not None:
                progress(number, choices[-1])
    return NestedScores(tuple(choices))


def inner_scores(Z: MatrixLike, y: ArrayLike, folds: Sequence[tuple[Any, Any]], **options: Any) -> np.ndarray:
    """Compute the best inner accuracy of one embedding in every fold.

    It compares embeddings without the test parts.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, n_features)
        The embedding.
    y : array of shape (n,)
        Labels.
    folds : sequence of (train, test)
        Row numbers. A row in neither is not used.
    **options
        Options of `nested_scores` other than `progress`.

    Returns
    -------
    array of shape (n_folds,)
        Accuracies.

    See Also
    --------
    nested_scores : Scores the choices on the test parts.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.lab import inner_scores
    >>> y = np.arange(40) % 2
    >>> inner_scores(y[:, None] + 0.0, y, [(np.arange(30), np.arange(30, 40))])
    array([1.])
    """
    search, trials = _search({"embedding": Z}, y, folds, **options)
    with one_blas_thread():
        return np.array([search.best(train)[1] for train, _ in trials])


# --- one fold ---------------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    embedding: str
    probe: str
    gamma: float | None


@dataclass(frozen=True)
class _Search:
    """The rows, the candidates, and the inner cross-validation."""

    embeddings: dict[str, np.ndarray]
    y: np.ndarray
    candidates: list[_Candidate]
    Cs: list[float]
    splitter: RepeatedStratifiedKFold

    def choice(self, train: np.ndarray, test: np.ndarray) -> Choice:
        """The best candidate of the training part, and its score on the test part."""
        (candidate, C), inner = self.best(train)
        score = self._scorer(candidate, train, np.concatenate([train, test]))
        first, last = np.arange(len(train)), len(train) + np.arange(len(test))
        labels = np.concatenate([self.y[train], self.y[test]])
        return Choice(*candidate, C, inner, score(first, last, labels, C))

    def best(self, train: np.ndarray) -> tuple[tuple[_Candidate, float], float]:
        """The candidate and the C of the highest inner accuracy, and that accuracy."""
        splits = list(self.splitter.split(train, self.y[train]))
        best, highest = (self.candidates[0], self.Cs[0]), -1.0
        for candidate in self.candidates:
            score = self._scorer(candidate, train, train)
            for C in self.Cs:
                accuracy = float(np.mean([score(fit, val, self.y[train], C) for fit, val in splits]))
                if accuracy > highest:
                    best, highest = (candidate, C), accuracy
        return best, highest

    def _scorer(self, candidate: _Candidate, train: np.ndarray, rows: np.ndarray) -> _Scorer:
        prepare = _CLASSIFIERS[candidate.probe]
        return prepare(self.embeddings[candidate.embedding], train, rows, candidate.gamma)


# (rows to fit, rows to score, labels, C) → accuracy
_Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray, float], float]


def _rbf(Z: np.ndarray, train: np.ndarray, rows: np.ndarray, gamma: float) -> _Scorer:
    """A support vector machine with exp(−γ D / m) of the rows, computed once for all solves."""
    distances = squared_distances(Z[rows])
    median = float(np.median(distances[: len(train), : len(train)])) or 1.0  # the training rows come first
    gram = np.exp(-gamma / median * distances)

    def accuracy(fit: np.ndarray, val: np.ndarray, labels: np.ndarray, C: float) -> float:
        model = SVC(C=C, kernel="precomputed", cache_size=500, max_iter=_MAX_STEPS)
        return _score(model, gram[np.ix_(fit, fit)], labels[fit], gram[np.ix_(val, fit)], labels[val])

    return accuracy


def squared_distances(Z: np.ndarray) -> np.ndarray:
    """‖z − z'‖² of all pairs of rows, at least zero."""
    squares = np.sum(Z * Z, axis=1)
    return np.maximum(squares[:, None] + squares[None, :] - 2 * (Z @ Z.T), 0.0)


def _linear(make: Callable[[float], Any]) -> Callable[..., _Scorer]:
    """A linear model on centred rows of mean squared length one."""

    def prepare(Z: np.ndarray, train: np.ndarray, rows: np.ndarray, gamma: None) -> _Scorer:
        centred = Z[rows] - Z[train].mean(axis=0)
        size = np.sqrt(np.mean(np.sum(centred[: len(train)] ** 2, axis=1)))
        scaled = centred / (size or 1.0)

        def accuracy(fit: np.ndarray, val: np.ndarray, labels: np.ndarray, C: float) -> float:
            return _score(make(C), scaled[fit], labels[fit], scaled[val], labels[val])

        return accuracy

    return prepare


def _score(model: Any, Z: np.ndarray, y: np.ndarray, Z_val: np.ndarray, y_val: np.ndarray) -> float:
    """The accuracy on the validation rows. At the ends of a grid a solver need not converge: its score decides.

    Rows of one class, which small inner parts may have, predict that class.
    """
    if (y == y[0]).all():
        return float(np.mean(y_val == y[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(Z, y)
    return float(model.score(Z_val, y_val))


# (Z, training rows, all rows, γ) → the scorer on all rows
_CLASSIFIERS: dict[str, Callable[..., _Scorer]] = {
    "rbf-svm": _rbf,
    "linear-svm": _linear(lambda C: LinearSVC(C=C, dual="auto", random_state=0)),
    "logistic": _linear(lambda C: LogisticRegression(C=C, max_iter=2000)),
}


# --- validation -------------------------------------------------------------------------------------------


def _search(
    named: Mapping[str, Any],
    y: Any,
    folds: Any,
    *,
    probes: Any = PROBES,
    Cs: Any = CS,
    gammas: Any = GAMMAS,
    inner: int = 5,
    repeats: int = 1,
    random_state: int = 0,
) -> tuple[_Search, list[tuple[np.ndarray, np.ndarray]]]:
    """The search, and the rows of the folds."""
    y, embeddings = _validate_rows(named, y)
    probes, Cs, gammas = (
        _validate_list(probes, "probes"),
        _validate_numbers(Cs, "Cs"),
        _validate_numbers(gammas, "gammas"),
    )
    splitter = RepeatedStratifiedKFold(
        n_splits=check_integer(inner, "inner", least=2, most=2**31 - 1),
        n_repeats=check_integer(repeats, "repeats", least=1, most=1000),
        random_state=check_integer(random_state, "random_state", least=0, most=2**32 - 1),
    )
    candidates = [
        _Candidate(name, probe, gamma)
        for name, probe in product(embeddings, probes)
        for gamma in (gammas if look_up(_CLASSIFIERS, probe, "probes") is _rbf else [None])
    ]
    return _Search(embeddings, y, candidates, Cs, splitter), _validate_folds(folds, y, inner)


def _validate_list(values: Any, name: str) -> list:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0:
        raise InputError(parameter=name, value=values, expected="be a list")
    if not len(values := list(values)):
        raise InputError(parameter=name, expected="hold at least one entry", got="an empty list")
    return values


def _validate_numbers(values: Any, name: str) -> list[float]:
    numbers = (check_number(value, name, strict=True) for value in _validate_list(values, name))
    return [check_in_range(number, "float32", name) for number in numbers]


def _validate_rows(named: Mapping[str, Any], y: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Labels, and embeddings as finite float64 matrices with a row per label."""
    y, embeddings = plain_array(y, "y"), {}
    for name in _validate_list(list(named), "embeddings"):
        rows = validate_embedding(named[name], str(name))
        if y.shape != rows.shape[:1]:
            got = f"{rows.shape[0]} rows and labels of shape {y.shape}"
            raise InputError(parameter=str(name), expected="have one row for each label", got=got)
        embeddings[name] = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    return y, embeddings


def _validate_folds(folds: Any, y: np.ndarray, inner: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The row numbers of every fold: labelled and disjoint, with enough training rows for the inner parts."""
    trials = []
    for number, fold in enumerate(_validate_list(folds, "folds")):
        if not isinstance(fold, (tuple, list)) or len(fold) != 2:
            raise InputError(parameter=f"fold {number}", value=fold, expected="be a pair (train, test) of row numbers")
        try:
            _, train, test = validate_split(y, fold[0], fold[1], len(y), names=("train", "test"))
            largest = np.bincount(encode(y[train])[1]).max()
        except InputError as error:
            raise error.revised(parameter=f"in fold {number} {error.parameter}") from None
        if largest < inner:
            expected = f"have a class with at least inner = {inner} training rows"
            raise InputError(parameter=f"fold {number}", value=largest, expected=expected, advice="lower inner")
        trials.append((train, test))
    return trials
