"""Bounds that are proved for the kernels: the margin of Lemma 3.2, the Lipschitz constant of Theorem 4.5.

Both are computed as they are true; docs/deviations.md says where the printed statements are not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fishergraph._arrays import as_floats, check_finite_result, check_finite_rows, check_squares, real_array
from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._validation import check_flag, check_number
from fishergraph.family import fisher_root as mixture_root

# The smallest radius that is looked at, 2^-60 in units of 1/√K: below it the complexity vanishes in rounding.
_SMALLEST = -60


class MarginBound(NamedTuple):
    """The bound on the error of new samples, and its terms.

    Attributes
    ----------
    bound : float
        min(1, training_error + complexity + deviation).
    training_error : float
        L_N^γ, the fraction of training samples with y f < γ.
    complexity : float
        2 R B̄ / √N.
    deviation : float
        3 √(log(2/δ') / 2N).
    """

    bound: float
    training_error: float
    complexity: float
    deviation: float


def margin_bound(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    norm: float,
    diagonal: ArrayLike,
    margin: float = 1.0,
    delta: float = 0.05,
    chosen: bool = True,
) -> MarginBound:
    """Bound on the error of a margin classifier (Lemma 3.2, corrected).

    L(f) ≤ L_N^γ(f) + 2 R B̄ / √N + 3 √(log(2/δ') / 2N) with probability at least 1 − δ. L(f) is the probability of y f
    < 0 on a new sample, L_N^γ(f) the fraction of the N training samples with y f < γ, and B̄ = √(1/N Σ_i K(v_i, v_i)).
    The printed lemma divides by N; √N is true.

    Parameters
    ----------
    scores : array of shape (n_samples,)
        The values f(v_i) of the training samples.
    y : array of shape (n_samples,)
        Their labels, −1 or 1.
    norm : float
        ‖f‖_K: ‖w‖ of a linear classifier on the embedding, √(cᵀKc) for f = Σ_i c_i K(v_i, ·). A bias b is one more
        feature that is always 1: norm √(‖w‖² + b²), diagonal K + 1.
    diagonal : array of shape (n_samples,)
        K(v_i, v_i), the squared lengths of the embeddings of the training samples.
    margin : float, default=1.0
        The margin γ > 0.
    delta : float, default=0.05
        The probability δ that the bound fails.
    chosen : bool, default=True
        True: the bound holds for all f and γ at once, so both may be chosen on the training samples. R is the next
        power of two from ‖f‖/γ, or a larger one if that is better, and δ' = δ · (2/3) / ((k + 1)(k + 2)) for R = 2^±k.
        False: γ and `norm`, as the radius that f was sought in, were fixed before the samples were seen; R = norm/γ, δ'
        = δ.

    Returns
    -------
    MarginBound
        The bound and its three terms.

    See Also
    --------
    lipschitz_constant : How far φ moves with the parameters.

    Notes
    -----
    The samples are independent and the kernel is fixed before they are drawn. Anchors and landmarks must therefore come
    from other data, and nodes of one graph are independent only as draws from a fixed graph.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import margin_bound
    >>> from sklearn.svm import LinearSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([-1, 1], 500)
    >>> Z = y[:, None] + 0.3 * rng.normal(size=(1000, 2))
    >>> svm = LinearSVC(fit_intercept=False).fit(Z, y)
    >>> parts = margin_bound(svm.decision_function(Z), y, norm=np.linalg.norm(svm.coef_), diagonal=(Z**2).sum(axis=1))
    >>> round(parts.bound, 2)
    0.36
    """
    values, labels, squares = _check_samples(scores, y, diagonal)
    margin = check_number(margin, "margin", least=1e-100, most=1e100)
    delta = check_number(delta, "delta", strict=True, most=1.0)
    radius = check_number(norm, "norm", most=1e100) / margin
    error = float(np.mean(labels * values < margin))
    check_squares(squares, "diagonal")
    spread, n = math.sqrt(float(np.mean(squares))), len(values)
    terms = [_terms(radius, spread, delta, n)]
    if check_flag(chosen, "chosen"):
        terms = _chosen_terms(radius, spread, delta, n)
    complexity, deviation = min(terms, key=sum)
    return MarginBound(min(1.0, error + complexity + deviation), error, complexity, deviation)


def _chosen_terms(radius: float, spread: float, delta: float, n: int) -> list[tuple[float, float]]:
    """The terms for the powers of two from the radius on, up to one; δ is divided among all powers of two."""
    least = max(_SMALLEST, math.ceil(math.log2(radius))) if radius > 0 else _SMALLEST
    # The strata k = …, −1, 0, 1, … hold at once: Σ_k 1/((|k| + 1)(|k| + 2)) = 3/2.
    strata = range(least, max(least, 0) + 1)
    return [_terms(2.0**k, spread, delta * (2 / 3 / ((abs(k) + 1) * (abs(k) + 2))), n) for k in strata]


def _terms(radius: float, spread: float, delta: float, n: int) -> tuple[float, float]:
    """(complexity, deviation): twice the bound R B̄ / √N on the Rademacher average, and McDiarmid's term."""
    return 2 * radius * spread / math.sqrt(n), 3 * math.sqrt(math.log(2 / delta) / (2 * n))


def _check_samples(scores: ArrayLike, y: ArrayLike, diagonal: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three float64 arrays of one length: finite scores, labels of −1 and 1, a diagonal that is not negative."""
    arrays = [real_array(array, name) for array, name in ((scores, "scores"), (y, "y"), (diagonal, "diagonal"))]
    shapes = [array.shape for array in arrays]
    if len(shapes[0]) != 1 or len(set(shapes)) > 1 or shapes[0] == (0,):
        got, advice = f"shapes {shapes[0]}, {shapes[1]} and {shapes[2]}", "pass flat arrays of one length"
        name = "scores, y and diagonal"
        raise InputError(parameter=name, expected="have one number per sample", got=got, advice=advice)
    if not np.isin(arrays[1], (-1, 1)).all():
        got, advice = f"{np.unique(arrays[1])[:5]}", "for two classes pass 2 * (y == c) - 1"
        raise InputError(parameter="y", expected="hold -1 and 1", got=got, advice=advice)
    values, labels, squares = (array.astype(np.float64) for array in arrays)
    if not np.isfinite(values).all() or not np.isfinite(squares).all() or squares.min() < 0:
        expected, advice = "be finite and the diagonal finite and not negative", "pass f(v_i) and K(v_i, v_i)"
        raise InputError(parameter="scores", expected=expected, got="other numbers", advice=advice)
    return values, labels, squares


def _check_anchors(anchors: ArrayLike) -> np.ndarray:
    """The anchors, (anchor, feature) in float64, at least one of them and all finite."""
    points = as_floats(anchors, "anchors")
    points = (points.toarray() if sp.issparse(points) else points).astype(np.float64)
    if points.ndim != 2 or 0 in points.shape:
        expected, advice = "be of shape (anchor, feature)", "pass at least one as a row"
        raise InputError(parameter="anchors", expected=expected, got=f"{points.shape}", advice=advice)
    check_finite_rows(points, "anchors")
    return points


def lipschitz_constant(anchors: ArrayLike, *, fisher_root: ArrayLike | None = None) -> float:
    """Lipschitz constant of φ in the parameters, ‖I(θ_0)^{1/2}‖_2 (Theorem 4.5).

    ‖φ(p_θ) − φ(p_θ')‖ ≤ ‖I(θ_0)^{1/2}‖_2 ‖θ − θ'‖, and the bound is attained.

    Parameters
    ----------
    anchors : array of shape (n_anchors, n_features)
        The anchors θ_0.
    fisher_root : float or matrix, optional
        See `fisher_embedding`.

    Returns
    -------
    float
        The constant.

    See Also
    --------
    set_lipschitz_constant : The constant in the members of a multiset.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import lipschitz_constant
    >>> lipschitz_constant(np.eye(4))
    0.5
    """
    points = _check_anchors(anchors)
    root = mixture_root(len(points)) if fisher_root is None else fisher_root
    root = real_array(root, "fisher_root").astype(np.float64)
    check_finite_rows(root, "fisher_root")
    if root.shape not in ((), (points.size, points.size)):
        raise InputError(
            parameter="fisher_root",
            expected=f"be a number or a matrix of shape {(points.size, points.size)}",
            got=f"shape {root.shape}",
            advice="pass a root over the flattened anchors",
        )
    with one_blas_thread():
        constant = float(abs(root)) if root.ndim == 0 else float(np.linalg.norm(root, 2))
    return check_finite_result(constant, "the constant")


def set_lipschitz_constant(anchors: ArrayLike, *, variance: float, radius: float) -> float:
    """Lipschitz constant of φ in the members of a multiset.

    L = √(1/p Σ_j (1 + R D_j / σ²)²). Theorem 4.5 is about parameters; here the estimate moves with the members, too.
    For two multisets with matched members of equal weights, ‖φ(x) − φ(x')‖ ≤ L max_i ‖x_i − x'_i‖, after one EM
    iteration with the posterior E-step.

    Parameters
    ----------
    anchors : array of shape (n_anchors, n_features)
        The anchors θ_0; D_j is the largest distance from anchor j to another one.
    variance : float
        The variance σ² of the components.
    radius : float
        R of a ball that holds the members of both sets, and the anchors if there is a prior.

    Returns
    -------
    float
        The constant L.

    See Also
    --------
    lipschitz_constant : The constant in the parameters.

    Notes
    -----
    The average of the M-step moves with its members (the 1), and so does the attention: ‖∇ log α_ij‖ ≤ D_j / σ², and
    the members lie at most R from their mean on average. A small variance makes the attention sharp and the constant
    large: L grows like 1/σ², and two members halfway between two anchors attain half of it.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import set_lipschitz_constant
    >>> set_lipschitz_constant(np.array([[0.0], [2.0]]), variance=2.0, radius=1.0)
    2.0
    """
    variance = check_number(variance, "variance", strict=True)
    radius = check_number(radius, "radius")
    points = _check_anchors(anchors)
    check_squares(points, "anchors")
    reach = np.linalg.norm(points[:, None] - points[None], axis=2).max(axis=1)  # (anchor,)
    with np.errstate(over="ignore"):
        constant = float(np.sqrt(np.mean((1 + radius * reach / variance) ** 2)))
    return check_finite_result(constant, "the constant")
