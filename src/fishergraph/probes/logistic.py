"""`LogisticProbe`: how much of the labels a linear model finds in an embedding.

The probe is L2-penalised multinomial logistic regression, its strength chosen on validation rows:

    minimise over W, b:   Σ_i −log softmax(W z_i + b)[y_i]  +  ‖W‖² / (2 C).

The minimiser W lies in the span of the centred training rows, so the problem is solved in coordinates of that span,
which are few if there are few labels. Along the principal axes of the rows the Hessian is almost diagonal, so each axis
is scaled by its curvature, and a quasi-Newton method needs a few dozen steps for each C. It starts at an extrapolation
of the minimisers for the two values of C before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import progress_bar
from fishergraph._typing import MatrixLike
from fishergraph._validation import check_integer, check_number, look_up
from fishergraph._warn import warn
from fishergraph.io.array_file import only
from fishergraph.probes.base import Probe
from fishergraph.probes.validation import FIT_ON, encode, take

PAPER_CS = np.logspace(-4, 5, 19)
_STEPS = 200  # quasi-Newton steps after which the curvature is computed again


class LogisticProbe(Probe):
    """Multinomial logistic regression whose C is chosen on validation accuracy.

    The result does not depend on the number of threads: BLAS uses one.

    Parameters
    ----------
    Cs : sequence of float, default=None
        Candidate values of C; None is the 19 values 10^-4, 10^-3.5, …, 10^5.
    max_iter : int, default=2000
        Largest number of quasi-Newton steps for one value of C.
    tol : float, default=1e-7
        Largest entry of the curvature-scaled gradient of the mean loss at which a solve ends.
    fit_on : {'train', 'train+val'}, default='train'
        Keep the model of the training rows with the chosen C, or fit it once more on training and validation rows.
    patience : int, default=None
        Stop after this many ascending values of C that are not better than the best before; None tries all.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Attributes
    ----------
    C_ : float
        The chosen C, the smallest of equally good ones.
    Cs_ : array of shape (n_Cs,)
        The values that were tried, ascending.
    val_scores_ : array of shape (n_Cs,)
        Their accuracies on the validation rows.
    val_score_ : float
        The accuracy of the chosen C.
    coef_, intercept_ : array
        As in scikit-learn's `LogisticRegression`, which has the same minimiser.
    classes_ : array of shape (n_classes,)
        Labels of the training rows.

    See Also
    --------
    fishergraph.probes.BoostedProbe : Gradient-boosted trees.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import LogisticProbe
    >>> Z, y = np.arange(12.0)[:, None], np.repeat(["low", "high"], 6)
    >>> probe = LogisticProbe().fit(Z, y, train=[0, 1, 10, 11], val=[3, 4, 7, 8])
    >>> probe.score(Z, y)
    1.0
    """

    def __init__(
        self,
        Cs: Sequence[float] | None = None,
        max_iter: int = 2000,
        *,
        tol: float = 1e-7,
        fit_on: str = "train",
        patience: int | None = None,
        verbose: Any = False,
    ):
        self.Cs = Cs
        self.max_iter = max_iter
        self.tol = tol
        self.fit_on = fit_on
        self.patience = patience
        self.verbose = verbose

    def _fit(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> None:
        Cs, refit = _validate_Cs(self.Cs), look_up(FIT_ON, self.fit_on, "fit_on")
        with one_blas_thread():
            path = self._path(Z, y, train, val, Cs, self.patience)
            scores = [score for _, score in path]
            best = int(np.argmax(scores))
            model = path[best][0]
            if refit:
                rows = np.concatenate([train, val])
                [(model, _)] = self._path(Z, y, rows, rows, Cs[best : best + 1], None)
        self.coef_, self.intercept_ = model
        self.Cs_, self.val_scores_ = Cs[: len(scores)], np.array(scores)
        self.C_, self.val_score_ = float(Cs[best]), scores[best]

    def _path(
        self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray, Cs: np.ndarray, patience: int | None
    ) -> list[tuple[tuple[np.ndarray, np.ndarray], float]]:
        """((coef, intercept), accuracy on val) of each C until patience ends; sets `classes_`."""
        max_iter = check_integer(self.max_iter, "max_iter", least=1, most=1_000_000)
        tol = check_number(self.tol, "tol", least=1e-15, most=1.0)
        patience = len(Cs) if patience is None else check_integer(patience, "patience (or None)", least=1)
        self.classes_, codes = encode(y[train])
        rows = _dense(Z, train)
        span = _span(rows)
        val_rows = span.coordinates(_dense(Z, val))
        path, scores = [], []
        with progress_bar(self.verbose, unit="C")("probing", len(Cs)) as bar:
            for W, b in _solve_path(span.coordinates(rows), codes, len(self.classes_), Cs, max_iter, tol):
                scores.append(float(np.mean(self.classes_[_choose(val_rows @ W + b)] == y[val])))
                path.append((span.back(W, b), scores[-1]))
                bar.set_postfix(C=Cs[len(path) - 1], best=max(scores))
                bar.update(1)
                if len(scores) - 1 - int(np.argmax(scores)) >= patience:
                    break
        return path

    def _pack(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        arrays |= {"coef": self.coef_, "intercept": self.intercept_, "Cs": self.Cs_, "val_scores": self.val_scores_}
        return {"C": self.C_}

    def _unpack(self, entry: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.C_ = check_number(only(entry, ("C",))["C"], "C", strict=True)
        n_rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        self.coef_ = take(arrays, "coef", (n_rows, self.n_features_in_))
        self.intercept_ = take(arrays, "intercept", (n_rows,))
        self.Cs_ = _validate_Cs(arrays.pop("Cs"))
        self.val_scores_ = take(arrays, "val_scores", self.Cs_.shape)

    def decision_function(self, Z: MatrixLike) -> np.ndarray:
        """Compute the logits.

        Parameters
        ----------
        Z : array or sparse matrix of shape (n, n_features)
            Rows of the embedding.

        Returns
        -------
        array of shape (n, n_classes), or (n,) for two classes
            Logits; for two classes those of `classes_[1]`.
        """
        logits = self._logits(self._checked(Z))
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def _codes(self, Z: Any) -> np.ndarray:
        return _choose(self._logits(Z))

    def _logits(self, Z: Any) -> np.ndarray:
        with one_blas_thread():
            return Z @ self.coef_.T + self.intercept_

    def _proba(self, Z: Any) -> np.ndarray:
        logits = self._logits(Z)
        return softmax(np.hstack([0 * logits, logits]) if logits.shape[1] == 1 else logits, axis=1)


# --- the mathematics --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Span:
    """Orthonormal principal axes of the centred training rows."""

    mean: np.ndarray  # (feature,)
    axes: np.ndarray  # (feature, axis)

    def coordinates(self, Z: np.ndarray) -> np.ndarray:
        """The coordinates of rows of Z, (row, axis); parts orthogonal to the span do not change a logit."""
        return (Z - self.mean) @ self.axes

    def back(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (class, feature) and intercepts (class,) for rows of Z."""
        coef = (self.axes @ W).T
        return coef, b - coef @ self.mean


def _span(Z: np.ndarray) -> _Span:
    """The span of the centred rows of Z; its axes are orthonormal, so the penalty is the same in them."""
    mean = Z.mean(axis=0)
    centred = Z - mean
    if Z.shape[0] < Z.shape[1]:
        # Z' = Q R with Q (feature, row); the principal axes are those of the small factor.
        Q, R = np.linalg.qr(centred.T)
        return _Span(mean, Q @ np.linalg.svd(R)[0])
    return _Span(mean, np.linalg.eigh(centred.T @ centred)[1])


def _solve_path(
    rows: np.ndarray, codes: np.ndarray, n_classes: int, Cs: np.ndarray, max_iter: int, tol: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The minimisers (W (axis, class), b (class,)) for each C.

    A solve starts at the extrapolation of the two before; with many labels and large C that saves a quarter of the
    steps. For two classes W and b have one column, the difference of the two. Softmax splits its penalty into
    2 · (1/2)² = 1/2, which C / 2 compensates.
    """
    targets = np.eye(n_classes)[codes]  # (row, class)
    design = np.hstack([rows, np.ones((rows.shape[0], 1))])
    theta = before = np.zeros((design.shape[1], n_classes))
    for C in Cs:
        start, before = 2 * theta - before, theta
        theta, gradient = _solve(design, targets, C / 2 if n_classes == 2 else C, start, max_iter, tol)
        if gradient > 10 * tol:
            text = f"the probe with C = {C:g} should end at a gradient below {tol:g}, got {gradient:.1e}"
            warn("probe", f"{text}; raise max_iter or scale the embedding.", ConvergenceWarning)
        # Softmax does not fix a common shift of the intercepts; scikit-learn's sum to zero.
        origin = theta[:, :1] if n_classes == 2 else theta.mean(axis=1, keepdims=True)
        solution = (theta - origin)[:, 1 if n_classes == 2 else 0 :]
        yield solution[:-1], solution[-1]


def _solve(
    design: np.ndarray, targets: np.ndarray, C: float, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, float]:
    """The minimiser (axis + 1, class) of the mean penalised loss, and its largest scaled gradient entry."""
    penalty = np.full((design.shape[1], 1), 1 / (C * design.shape[0]))
    penalty[-1] = 0.0  # the intercept is not penalised
    extent = np.mean(design**2, axis=0)[:, None]
    theta, steps = start, 0
    while True:
        # Each axis is scaled by its curvature at the current point. If a solve moved far, the curvature has changed:
        # the gradient is then judged, and the solve continues, in the new scale.
        p = softmax(design @ theta, axis=1)
        spread = max(np.mean(p * (1 - p)), 1e-12)  # it underflows if every row is certain
        scale = 1 / np.sqrt(spread * extent + penalty)
        arguments = (scale, design, targets, penalty)
        flat = (theta / scale).ravel()
        gradient = float(np.abs(_loss(flat, *arguments)[1]).max())
        if gradient <= tol or steps >= max_iter:
            return theta, gradient
        options = {"maxiter": min(_STEPS, max_iter - steps), "maxcor": 20, "gtol": tol / 2, "ftol": 0}
        result = minimize(_loss, flat, args=arguments, jac=True, method="L-BFGS-B", options=options)
        theta = scale * result.x.reshape(theta.shape)
        steps += result.nit if result.nit else max_iter  # without a step, rounding has ended the solve


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


def _validate_Cs(Cs: Any) -> np.ndarray:
    """The candidate values of C, ascending."""
    try:
        values = PAPER_CS if Cs is None else np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or values.size == 0 or not np.all((values >= 1e-12) & (values <= 1e12)):
        raise InputError(parameter="Cs", value=Cs, expected="be a list of positive numbers from 1e-12 to 1e12, or None")
    return np.sort(values)
