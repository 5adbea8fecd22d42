"""The statistical manifolds (Section 4.4). A family says what a density is; it does not know multisets."""

from fishergraph.family.base import Family, power_normalize, unit_normalize
from fishergraph.family.diagonal_mixture import DiagonalMixture
from fishergraph.family.divergence import goldberger, kl_bound, kl_divergence, monte_carlo_kl
from fishergraph.family.exact import exact_root, fisher_ratio
from fishergraph.family.gaussian import Gaussian
from fishergraph.family.gaussian_mixture import (
    GaussianMixture,
    fisher_root,
    log_joint,
    log_likelihood,
    relative_log_joint,
)
from fishergraph.family.multinomial import MultinomialMixture
from fishergraph.family.theta import (
    FAMILIES,
    check_same_theta,
    check_theta,
    choose_family,
    family_of,
    retract,
    theta_sizes,
)
from fishergraph.family.von_mises_fisher import VonMisesFisherMixture

__all__ = [
    "FAMILIES",
    "DiagonalMixture",
    "Family",
    "Gaussian",
    "GaussianMixture",
    "MultinomialMixture",
    "VonMisesFisherMixture",
    "check_same_theta",
    "check_theta",
    "choose_family",
    "exact_root",
    "family_of",
    "fisher_ratio",
    "fisher_root",
    "goldberger",
    "kl_bound",
    "kl_divergence",
    "log_joint",
    "log_likelihood",
    "monte_carlo_kl",
    "power_normalize",
    "relative_log_joint",
    "retract",
    "theta_sizes",
    "unit_normalize",
]
