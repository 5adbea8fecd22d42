"""Room 4: φ, the whitened tangent vector of a multiset, and the kernel it is the map of."""

from __future__ import annotations

import math
from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array

from fishergraph._arrays import as_floats, check_finite_result, check_finite_rows, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._validation import check_number
from fishergraph.family import check_same_theta, check_theta
from fishergraph.family import fisher_root as mixture_root


@one_blas_thread()
def fisher_embedding(
    means: Any, anchors: Any, *, fisher_root: Any = None, mass: Any = None, overwrite: bool = False
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
    >>> from fishergraph import em_means, fisher_embedding, neighbourhoods
    >>> points, path = np.array([[0.0], [1.0], [4.0]]), np.array([[0, 1], [1, 2]])
    >>> fisher_embedding(em_means(points, neighbourhoods(path), points[:1]).means, points[:1])
    array([[0. ],
           [0.5],
           [2.5]])
    """
    means, anchors, root, mass = _checked_means(means, anchors, fisher_root, mass)
    overwrite = overwrite and getattr(getattr(means, "flags", None), "writeable", True)
    return check_finite_result(mixture_phi(means, anchors, root, mass=mass, overwrite=overwrite), "φ")


def mixture_phi(means: Any, anchors: Any, root: Any, *, mass: Any = None, overwrite: bool = False) -> Any:
    """`fisher_embedding` of arrays that go together."""
    xp = array_namespace(means, anchors)
    n_sets, n_anchors, n_features = means.shape
    if overwrite:
        means -= anchors
    difference = means if overwrite else means - anchors
    if getattr(root, "ndim", 0) != 2:
        difference *= root
    phi = xp.reshape(difference, (n_sets, n_anchors * n_features))
    phi = phi @ root.T if getattr(root, "ndim", 0) == 2 else phi
    return phi if mass is None else append_counts(phi, mass)


def _checked_means(means: Any, anchors: Any, root: Any, mass: Any) -> tuple[Any, Any, Any, Any]:
    """The arguments of `fisher_embedding` as arrays whose shapes go together."""
    means, anchors = _array(means, "means"), _array(anchors, "anchors")
    if len(means.shape) != 3 or tuple(anchors.shape) != tuple(means.shape[1:]):
        raise InputError(
            parameter="means",
            expected="have the shape (set, anchor, feature) and anchors (anchor, feature)",
            got=f"{tuple(means.shape)} and {tuple(anchors.shape)}",
            advice="pass what em_means returns, with its anchors",
        )
    check_squares(means, "means")
    check_squares(anchors, "anchors")
    if mass is not None:
        mass = _array(mass, "mass")
        if tuple(mass.shape) != tuple(means.shape[:2]) or bool((mass < 0).any()):
            raise InputError(
                parameter="mass",
                expected=f"hold a number of at least 0 for each set and anchor, shape {tuple(means.shape[:2])}",
                got=f"shape {tuple(mass.shape)}",
                advice="pass the mass that em_means returns",
            )
    return means, anchors, _checked_root(root, anchors), mass


def _checked_root(root: Any, anchors: Any) -> Any:
    """I(θ_0)^{1/2}: a number, or a matrix over the flattened anchors."""
    if root is None:
        return mixture_root(anchors.shape[0])
    if isinstance(root, (int, float)):
        return check_number(root, "fisher_root", least=-1e300)
    width = math.prod(anchors.shape)
    root = _array(root, "fisher_root")
    if tuple(root.shape) not in ((), (width, width)):
        raise InputError(
            parameter="fisher_root",
            expected=f"be a number or a matrix of shape {(width, width)}",
            got=f"shape {tuple(root.shape)}",
            advice="pass a root over the flattened anchors",
        )
    return root


def _array(values: Any, name: str) -> Any:
    """Floats with finite entries; a tensor as it is."""
    if is_torch_array(values):
        return values
    if sp.issparse(values):
        raise InputTypeError(
            parameter=name,
            expected="be a dense array",
            got="a sparse one",
            advice=f"pass {name}.toarray()",
        )
    values = as_floats(values, name)
    check_finite_rows(values, name)
    return values


def append_counts(phi: Any, mass: Any) -> Any:
    """φ with the soft counts log(1 + mass_j) after it, (set, coordinate + anchor)."""
    xp = array_namespace(phi, mass)
    return xp.concat([phi, log_counts(mass)], axis=1)


def log_counts(mass: Any) -> Any:
    """log(1 + mass_j), the soft counts of the components, (set, anchor)."""
    return array_namespace(mass).log1p(mass)


def root_shares(mass: Any) -> Any:
    """√(mass_j / Σ_l mass_l), (set, anchor); zeros for an empty set.

    On the unit sphere of these roots the Fisher metric Σ_j dπ_j² / π_j of the weights π is 4 times the Euclidean one.
    """
    xp = array_namespace(mass)
    total = xp.sum(mass, axis=1, keepdims=True)
    return xp.sqrt(mass / xp.where(total > 0, total, xp.ones_like(total)))


@one_blas_thread()
def tangent_kernel(means: Any, other_means: Any, anchors: Any, *, fisher_root: Any = None) -> Any:
    """Inner products of tangent vectors: (θ − θ_0)ᵀ I(θ_0) (θ' − θ_0) (Eq. 4, 9, 12).

    Parameters
    ----------
    means, other_means : array of shape (n_sets, n_anchors, n_features), or parameter records
        Estimated means from `em_means`, or the records θ of two blocks of sets from `em_estimate`.
    anchors : array of shape (n_anchors, n_features), or parameter record
        The anchor distribution θ_0.
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
    >>> from fishergraph import em_means, neighbourhoods, tangent_kernel
    >>> points, path = np.array([[0.0], [1.0], [4.0]]), np.array([[0, 1], [1, 2]])
    >>> means = em_means(points, neighbourhoods(path), points[:1]).means
    >>> tangent_kernel(means[1:], means[2:], points[:1])
    array([[1.25],
           [6.25]])
    """
    if isinstance(anchors, tuple) and hasattr(anchors, "_fields"):
        family = check_theta(anchors, "anchors")
        check_same_theta(anchors, means, "means")
        check_same_theta(anchors, other_means, "other_means")
        phi, other_phi = (family.whitened(theta, anchors) for theta in (means, other_means))
        if fisher_root is not None:
            root = _array(fisher_root, "fisher_root")
            _check_phi_root(root, phi.shape[1])
            phi, other_phi = phi @ root.T, other_phi @ root.T
    else:
        phi = fisher_embedding(means, anchors, fisher_root=fisher_root)
        other_phi = fisher_embedding(other_means, anchors, fisher_root=fisher_root)
    return check_finite_result(phi @ other_phi.T, "the kernel")


def _check_phi_root(root: Any, width: int) -> None:
    if tuple(root.shape) != (width, width):
        raise InputError(
            parameter="fisher_root",
            expected=f"be a matrix over φ, of shape {(width, width)}",
            got=f"shape {tuple(root.shape)}",
            advice="pass what exact_root gives",
        )
