"""φ, the whitened tangent vector of a multiset, and the kernel it is the map of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from numpy.typing import ArrayLike

from fishergraph._arrays import as_floats, check_finite_result, check_finite_rows, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._typing import Array
from fishergraph._validation import check_number
from fishergraph.family import check_same_theta, check_theta
from fishergraph.family import fisher_root as mixture_root


@one_blas_thread()
def fisher_embedding(
    means: ArrayLike | Array,
    anchors: ArrayLike | Array,
    *,
    fisher_root: float | ArrayLike | Array | None = None,
    mass: ArrayLike | Array | None = None,
    overwrite: bool = False,
) -> Any:
    """Whitened tangent vectors of estimated means (Eq. 13; Eq. 18 for the mixture).

    φ_v = fisher_root · (μ_v − w), flattened in (anchor, feature) order.

    Parameters
    ----------
    means : array of shape (n_sets, n_anchors, n_features)
        Estimated means μ of every multiset, from `em_means`.
    anchors : array of shape (n_anchors, n_features)
        The anchor distribution θ_0.
    fisher_root : float or matrix, optional
        Square root of the Fisher information: a number, or a matrix over the flattened axes. None is p^{-1/2}.
    mass : array of shape (n_sets, n_anchors), optional
        Appends the soft counts log(1 + mass_j). `{x}` and `{x, x}` have one estimate; only the counts tell them apart.
    overwrite : bool, default=False
        Write φ over the means, which are then lost.

    Returns
    -------
    array of shape (n_sets, n_anchors * n_features)
        One row per multiset; n_anchors more columns with `mass`.

    See Also
    --------
    em_means : The means.
    tangent_kernel : Inner products of φ.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import fisher_embedding
    >>> fisher_embedding(np.ones((1, 4, 1)), np.zeros((4, 1)))
    array([[0.5, 0.5, 0.5, 0.5]])
    """
    mu, w = _array(means, "means"), _array(anchors, "anchors")
    if len(mu.shape) != 3 or tuple(w.shape) != tuple(mu.shape[1:]):
        raise InputError(
            parameter="means",
            expected="have the shape (set, anchor, feature) and anchors (anchor, feature)",
            got=f"{tuple(mu.shape)} and {tuple(w.shape)}",
            advice="pass what em_means returns, with its anchors",
        )
    check_squares(mu, "means")
    check_squares(w, "anchors")
    masses = None if mass is None else _array(mass, "mass")
    if masses is not None and (tuple(masses.shape) != tuple(mu.shape[:2]) or bool((masses < 0).any())):
        expected = f"hold a number of at least 0 for each set and anchor, shape {tuple(mu.shape[:2])}"
        advice = "pass the mass that em_means returns"
        raise InputError(parameter="mass", expected=expected, got=f"shape {tuple(masses.shape)}", advice=advice)
    root = _as_root(fisher_root, w)
    if overwrite and getattr(getattr(mu, "flags", None), "writeable", True):
        mu -= w
    else:
        mu = mu - w
    n_sets, n_anchors, n_features = mu.shape
    is_matrix = getattr(root, "ndim", 0) == 2
    if not is_matrix:
        mu *= root
    phi = array_namespace(mu).reshape(mu, (n_sets, n_anchors * n_features))
    phi = phi @ root.T if is_matrix else phi
    return check_finite_result(phi if masses is None else append_counts(phi, masses), "φ")


def _as_root(root: float | ArrayLike | Array | None, anchors: Array) -> Any:
    """I(θ_0)^{1/2}: a number, or a matrix over the flattened anchors."""
    if root is None:
        return mixture_root(anchors.shape[0])
    if isinstance(root, (int, float)):
        return check_number(root, "fisher_root", least=-1e300)
    matrix, width = _array(root, "fisher_root"), math.prod(anchors.shape)
    if tuple(matrix.shape) not in ((), (width, width)):
        expected, got = f"be a number or a matrix of shape {(width, width)}", f"shape {tuple(matrix.shape)}"
        raise InputError(
            parameter="fisher_root", expected=expected, got=got, advice="pass a root over the flattened anchors"
        )
    return matrix


def _array(values: object, name: str) -> Any:
    """Floats with finite entries; a tensor as it is."""
    if is_torch_array(values):
        return values
    if sp.issparse(values):
        advice = f"pass {name}.toarray()"
        raise InputTypeError(parameter=name, expected="be a dense array", got="a sparse one", advice=advice)
    floats = as_floats(values, name)
    check_finite_rows(floats, name)
    return floats


def append_counts(phi: Array, mass: Array) -> Any:
    """φ with the soft counts log(1 + mass_j) after it, (set, coordinate + anchor)."""
    xp = array_namespace(phi, mass)
    return xp.concat([phi, log_counts(mass)], axis=1)


def log_counts(mass: Array) -> Any:
    """log(1 + mass_j), the soft counts of the components, (set, anchor)."""
    return array_namespace(mass).log1p(mass)


def root_weights(mass: Array) -> Any:
    """√(mass_j / Σ_l mass_l), (set, anchor); zeros for an empty set.

    On the unit sphere of these roots the Fisher metric Σ_j dπ_j² / π_j of the weights π is 4 times the Euclidean one.
    """
    xp = array_namespace(mass)
    total = xp.sum(mass, axis=1, keepdims=True)
    return xp.sqrt(mass / xp.where(total > 0, total, xp.ones_like(total)))


@one_blas_thread()
def tangent_kernel(
    means: ArrayLike | Array | NamedTuple,
    other_means: ArrayLike | Array | NamedTuple,
    anchors: ArrayLike | Array | NamedTuple,
    *,
    fisher_root: float | ArrayLike | Array | None = None,
) -> Any:
    """Inner products of tangent vectors: (θ − θ_0)ᵀ I(θ_0) (θ' − θ_0) (Eq. 4, 9, 12).

    Parameters
    ----------
    means, other_means : array of shape (n_sets, n_anchors, n_features), or parameter records
        Estimated means from `em_means`, or the records θ of two blocks of sets from `em_estimate`.
    anchors : array of shape (n_anchors, n_features), or parameter record
        The anchors θ_0.
    fisher_root : float or matrix, optional
        See `fisher_embedding`. For records a matrix over φ that is applied after the closed form's, as `exact_root`
        gives.

    Returns
    -------
    array of shape (n_sets, n_other_sets)
        The kernel matrix.

    See Also
    --------
    fisher_embedding : The tangent vectors themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import tangent_kernel
    >>> tangent_kernel(np.ones((2, 4, 1)), np.ones((1, 4, 1)), np.zeros((4, 1)))
    array([[1.],
           [1.]])
    """
    if isinstance(anchors, tuple) and hasattr(anchors, "_fields"):
        phi, other_phi = _record_phi(cast(NamedTuple, anchors), means, other_means, fisher_root)
    else:
        phi = fisher_embedding(means, anchors, fisher_root=fisher_root)
        other_phi = fisher_embedding(other_means, anchors, fisher_root=fisher_root)
    return check_finite_result(phi @ other_phi.T, "the kernel")


def _record_phi(theta_0: NamedTuple, theta: object, other_theta: object, root: object) -> tuple[Any, Any]:
    """φ of two blocks of parameter records."""
    family = check_theta(theta_0, "anchors")
    check_same_theta(theta_0, theta, "means")
    check_same_theta(theta_0, other_theta, "other_means")
    phi, other_phi = (family.whitened(cast(NamedTuple, record), theta_0) for record in (theta, other_theta))
    if root is None:
        return phi, other_phi
    matrix, width = _array(root, "fisher_root"), phi.shape[1]
    if tuple(matrix.shape) != (width, width):
        expected, got = f"be a matrix over φ, of shape {(width, width)}", f"shape {tuple(matrix.shape)}"
        raise InputError(parameter="fisher_root", expected=expected, got=got, advice="pass what exact_root gives")
    return phi @ matrix.T, other_phi @ matrix.T
