"""Room 4: φ, the whitened tangent vector of a multiset, and the kernel it is the map of."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from fishergraph.family import family_of
from fishergraph.family import fisher_root as mixture_root


def fisher_embedding(
    means: Any, anchors: Any, *, fisher_root: Any = None, mass: Any = None, overwrite: bool = False
) -> Any:
    """φ(x) = I(θ_0)^{1/2} (θ_ML(x) − θ_0) (Eq. 13; Eq. 18 for the mixture), (set, anchor·feature).

    Parameters
    ----------
    means : (set, anchor, feature), from `em_means`.
    anchors : (anchor, feature).
    fisher_root : a number, or a matrix over the flattened (anchor, feature) axes; p^{-1/2} by default.
    mass : (set, anchor); when given, the soft counts log(1 + mass_j) are appended, (set, anchor·feature + anchor).
        `{x}` and `{x, x}` have one maximum-likelihood estimate; only the counts tell them apart.
    overwrite : write φ over the means, which are then lost; a block of them need not leave the cache.
    """
    xp = array_namespace(means, anchors)
    n_sets, n_anchors, n_features = means.shape
    root: Any = mixture_root(n_anchors) if fisher_root is None else fisher_root
    if overwrite:
        means -= anchors
    difference = means if overwrite else means - anchors
    if getattr(root, "ndim", 0) != 2:
        difference *= root
    phi = xp.reshape(difference, (n_sets, n_anchors * n_features))
    phi = phi @ root.T if getattr(root, "ndim", 0) == 2 else phi
    return phi if mass is None else append_counts(phi, mass)


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


def tangent_kernel(means: Any, other_means: Any, anchors: Any, *, fisher_root: Any = None) -> Any:
    """K_{θ_0}(x, x') = (θ − θ_0)ᵀ I(θ_0) (θ' − θ_0) = ⟨φ(x), φ(x')⟩ (Eq. 4, 9, 12), (set, other set).

    The arguments are means (set, anchor, feature) and anchors as in `fisher_embedding`; or, for any family, the records
    θ of two blocks of sets, from `em_estimate`, and θ_0. The root is then a matrix over φ that is applied after the
    closed form's, as `exact_root` gives it.
    """
    if not isinstance(anchors, tuple):
        phi = fisher_embedding(means, anchors, fisher_root=fisher_root)
        other_phi = fisher_embedding(other_means, anchors, fisher_root=fisher_root)
        return phi @ other_phi.T
    phi, other_phi = (family_of(anchors).whitened(theta, anchors) for theta in (means, other_means))
    return phi @ other_phi.T if fisher_root is None else (phi @ fisher_root.T) @ (other_phi @ fisher_root.T).T
