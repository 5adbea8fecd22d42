"""Probes: how much of the labels an embedding holds, read off by a linear model.

The probe is L2-penalised multinomial logistic regression, its strength chosen on validation nodes:

    minimise over W, b:   Σ_i −log softmax(W z_i + b)[y_i]  +  ‖W‖² / (2 C).

Few labels make this cheap and exact. The minimiser W lies in the span of the centred training rows, so the
problem is solved in coordinates of that span; along the principal axes of the rows its Hessian is almost
diagonal, so each axis is scaled by its curvature and a quasi-Newton method needs a few dozen steps for each
C, starting where the minimisers for the two values before point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import progress_bar
from fishergraph._repr import short_params
from fishergraph._validation import check_integer, check_number, look_up
from fishergraph._warn import each_warning_once, warn
from fishergraph.probes.door import FIT_ON, check_embedding, check_label_order, check_same_columns, check_split, encode

PAPER_CS = np.logspace(-4, 5, 19)
STAGE = 200  # quasi-Newton steps after which the curvature is taken anew


class LogisticProbe(ClassifierMixin, BaseEstimator):
    """Multinomial logistic regression whose C is chosen on validation accuracy.

    The result does not depend on the number of threads: BLAS is held to one.

    Parameters
    ----------
    Cs : sequence of float, optional
        Candidate values of C; None is the 19 values 10^-4, 10^-3.5, …, 10^5.
    max_iter : int, default=2000
        The most quasi-Newton steps for one value of C.
    tol : float, default=1e-7
        Largest entry of the curvature-scaled gradient of the mean loss at which a solve ends.
    fit_on : {"train", "train+val"}, default="train"
        Keep the model of the training rows with the chosen C, or fit it once more on training and validation rows.
    patience : int, optional
        End the ascending path of Cs after so many that were no better than the best before; None solves for all of
        them.
    verbose : bool or callable, default=False
        Show a progress bar; see `FisherEmbedding`.

    Attributes
    ----------
    C_ : float
        The chosen C, the smallest of equally good ones; `val_score_` is its validation accuracy.
    Cs_, val_scores_ : ndarray
        The values that were solved for, ascending, and their validation accuracies.
    coef_, intercept_, classes_ : ndarray
        As in scikit-learn's `LogisticRegression`, whose minimiser this is.

    See Also
    --------
    fishergraph.FisherEmbedding : Embeddings to probe.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import LogisticProbe
    >>> Z, y = np.arange(20.0)[:, None], np.arange(20) // 10
    >>> probe = LogisticProbe().fit(Z, y, train=np.arange(0, 20, 2), val=np.arange(1, 20, 2))
    >>> probe.predict([[3.0], [16.0]])
    array([0, 1])
    """

    def __init__(
        self, Cs: Any = None, max_iter: int = 2000, *, tol: float = 1e-7, fit_on: str = "train",
        patience: int | None = None, verbose: Any = False,
    ):  # fmt: skip
        self.Cs = Cs
        self.max_iter = max_iter
        self.tol = tol
        self.fit_on = fit_on
        self.patience = patience
        self.verbose = verbose

    __repr__ = short_params

    @each_warning_once()
    def fit(self, Z: Any, y: Any, train: Any, val: Any) -> LogisticProbe:
        """Fit on some rows of Z, with the C that is best on other rows.

        Parameters
        ----------
        Z : array of shape (n_rows, n_features)
            The embedding.
        y : array of shape (n_rows,)
            Labels.
        train, val : mask or row numbers
            The rows to fit on, and the rows that choose C.

        Returns
        -------
        LogisticProbe
            The fitted probe.
        """
        Cs = _check_Cs(self.Cs)
        solver = {
            "max_iter": check_integer(self.max_iter, "max_iter", least=1, most=1_000_000),
            "tol": check_number(self.tol, "tol", least=1e-15, most=1.0),
        }
        refit = look_up(FIT_ON, self.fit_on, "fit_on")
        patience = None if self.patience is None else check_integer(self.patience, "patience (or None)", least=1)
        check_label_order(y, Z)
        Z = check_embedding(Z)
        y, train, val = check_split(y, train, val, Z.shape[0])
        with one_blas_thread():
            path = self._fit_path(Z, y, train, val, Cs, solver, patience)
            scores = [score for _, score in path]
            best = int(np.argmax(scores))
            if refit:
                nodes = np.concatenate([train, val])
                path = self._fit_path(Z, y, nodes, nodes, Cs[best : best + 1], solver, None)
        self.coef_, self.intercept_ = path[0 if refit else best][0]
        self.Cs_, self.val_scores_ = Cs[: len(scores)], np.array(scores)
        self.C_, self.val_score_ = float(Cs[best]), float(scores[best])
        self.n_features_in_ = Z.shape[1]
        return self

    def _fit_path(
        self, Z: Any, y: np.ndarray, train: Any, val: Any, Cs: np.ndarray, solver: dict, patience: int | None
    ):
        """For each C until patience ends: ((coef, intercept), accuracy on val); sets `classes_`."""
        self.classes_, codes = encode(y[train])
        rows = _dense(Z, train)
        span = _span(rows)
        val_rows = span.coordinates(_dense(Z, val))
        path, scores = [], []
        with progress_bar(self.verbose, unit="C")("probing", len(Cs)) as bar:
            for W, b in _solve_path(span.coordinates(rows), codes, len(self.classes_), Cs, **solver):
                scores.append(float(np.mean(self.classes_[_choose(val_rows @ W + b)] == y[val])))
                path.append((span.back(W, b), scores[-1]))
                bar.set_postfix(C=Cs[len(path) - 1], best=max(scores))
                bar.update(1)
                if patience is not None and len(scores) - 1 - int(np.argmax(scores)) >= patience:
                    break
        return path

    def decision_function(self, Z: Any) -> np.ndarray:
        """Return the logits.

        Parameters
        ----------
        Z : array of shape (n_rows, n_features)
            The embedding.

        Returns
        -------
        array of shape (n_rows, n_classes) or (n_rows,)
            For two classes one number per row, positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        Z = check_same_columns(check_embedding(Z), self.n_features_in_)
        with one_blas_thread():
            logits = Z @ self.coef_.T + self.intercept_
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def predict(self, Z: Any) -> np.ndarray:
        """Return the most likely class of every row.

        Parameters
        ----------
        Z : array of shape (n_rows, n_features)
            The embedding.

        Returns
        -------
        array of shape (n_rows,)
            One class per row.
        """
        logits = self.decision_function(Z)
        return self.classes_[_choose(logits[:, None] if logits.ndim == 1 else logits)]

    def predict_proba(self, Z: Any) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        Z : array of shape (n_rows, n_features)
            The embedding.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        logits = self.decision_function(Z)
        return softmax(np.stack([0 * logits, logits], axis=1) if logits.ndim == 1 else logits, axis=1)


# The mathematics.


@dataclass(frozen=True)
class _Span:
    """Orthonormal principal axes of the centred training rows."""

    mean: np.ndarray  # (feature,)
    axes: np.ndarray  # (feature, axis)

    def coordinates(self, Z: np.ndarray) -> np.ndarray:
        """The coordinates of rows of Z, (row, axis); what is orthogonal to the span cannot change a logit."""
        return (Z - self.mean) @ self.axes

    def back(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (class, feature) and intercepts (class,) for the rows as given."""
        coef = (self.axes @ W).T
        return coef, b - coef @ self.mean


def _span(Z: np.ndarray) -> _Span:
    """The span of the centred rows of Z; its axes are orthonormal, so the penalty is the same in them."""
    mean = Z.mean(axis=0)
    centred = Z - mean
    if Z.shape[0] < Z.shape[1]:
        # Z' = Q R with Q (feature, row); the principal axes are found in the small factor.
        Q, R = np.linalg.qr(centred.T)
        return _Span(mean, Q @ np.linalg.svd(R)[0])
    return _Span(mean, np.linalg.eigh(centred.T @ centred)[1])


def _solve_path(
    rows: np.ndarray, codes: np.ndarray, n_classes: int, Cs: np.ndarray, *, max_iter: int, tol: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The minimisers (W (axis, class), b (class,)) for each C, each started from those of the two before, as if they
    moved on by the same step in log C: with many labels and large C that saves a quarter of the steps.

    For two classes W and b have one column, the difference of the two: softmax shares out its penalty as
    2 · (1/2)² = 1/2, which C / 2 makes whole.
    """
    targets = np.eye(n_classes)[codes]  # (row, class)
    design = np.hstack([rows, np.ones((rows.shape[0], 1))])
    theta = before = np.zeros((design.shape[1], n_classes))
    for C in Cs:
        start, before = 2 * theta - before, theta
        theta, gradient = _solve(design, targets, C / 2 if n_classes == 2 else C, start, max_iter, tol)
        if gradient > 10 * tol:
            warn(
                "probe",
                f"the probe with C = {C:g} should end at a gradient below {tol:g}, got {gradient:.1e}; "
                "raise max_iter or scale the embedding.",
                ConvergenceWarning,
            )
        # Softmax leaves a common shift of the intercepts open; scikit-learn's sum to zero.
        origin = theta[:, :1] if n_classes == 2 else theta.mean(axis=1, keepdims=True)
        solution = (theta - origin)[:, 1 if n_classes == 2 else 0 :]
        yield solution[:-1], solution[-1]


def _solve(
    design: np.ndarray, targets: np.ndarray, C: float, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, float]:
    """The minimiser (axis + 1, class) of the mean penalised loss, and its largest scaled gradient entry."""
    penalty = np.full((design.shape[1], 1), 1 / (C * design.shape[0]))
    penalty[-1] = 0.0  # the intercept is free
    extent = np.mean(design**2, axis=0)[:, None]
    theta, steps = start, 0
    while True:
        # Each axis is scaled by its curvature at the present point. Where a solve moved far, the curvature is
        # another: there the gradient is judged, and the solve goes on, in the new scale.
        p = softmax(design @ theta, axis=1)
        spread = max(np.mean(p * (1 - p)), 1e-12)  # it underflows where every row is certain
        scale = 1 / np.sqrt(spread * extent + penalty)
        arguments = (scale, design, targets, penalty)
        flat = (theta / scale).ravel()
        gradient = float(np.abs(_loss(flat, *arguments)[1]).max())
        if gradient <= tol or steps >= max_iter:
            return theta, gradient
        options = {"maxiter": min(STAGE, max_iter - steps), "maxcor": 20, "gtol": tol / 2, "ftol": 0}
        result = minimize(_loss, flat, args=arguments, jac=True, method="L-BFGS-B", options=options)
        theta = scale * result.x.reshape(theta.shape)
        steps += result.nit if result.nit else max_iter  # no step taken: rounding, not the bound, ended it


def _loss(
    flat: np.ndarray, scale: np.ndarray, design: np.ndarray, targets: np.ndarray, penalty: np.ndarray
) -> tuple[float, np.ndarray]:
    """The mean penalised loss at theta = scale · flat, and its gradient in `flat`."""
    theta = scale * flat.reshape(design.shape[1], -1)
    log_p = log_softmax(design @ theta, axis=1)  # (row, class)
    value = -np.vdot(targets, log_p) / design.shape[0] + 0.5 * np.sum(penalty * theta**2)
    gradient = design.T @ ((np.exp(log_p) - targets) / design.shape[0]) + penalty * theta
    return float(value), (scale * gradient).ravel()


def _choose(logits: np.ndarray) -> np.ndarray:
    """The class number of each row; a single column is the logit of class 1."""
    return (logits[:, 0] > 0).astype(np.intp) if logits.shape[1] == 1 else np.argmax(logits, axis=1)


def _dense(Z: Any, nodes: np.ndarray) -> np.ndarray:
    """Rows `nodes` of Z, dense float64."""
    rows = Z[nodes]
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


# The door.


def _check_Cs(Cs: Any) -> np.ndarray:
    """The candidate values of C, ascending."""
    try:
        values = PAPER_CS if Cs is None else np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or values.size == 0 or not np.all((values >= 1e-12) & (values <= 1e12)):
        raise InputError(
            parameter="Cs",
            expected="be a list of positive finite numbers, from 1e-12 to 1e12",
            got=f"{Cs!r}",
            advice="pass such a list, or None",
        )
    return np.sort(values)
