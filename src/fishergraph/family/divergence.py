"""Divergences between densities of one family: closed forms, Goldberger's approximation, a bound, Monte Carlo.

The order of the arguments is that of the formula: `kl_divergence(p, q)` is KL(p‖q) = ∫ p log(p/q).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from fishergraph._arrays import check_finite_result
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._typing import Array
from fishergraph._validation import check_integer
from fishergraph.family.base import Family
from fishergraph.family.theta import check_theta, theta_sizes

_MOST_SAMPLES = 2**31 - 1


class MonteCarlo(NamedTuple):
    """An estimate and its standard error."""

    value: float
    standard_error: float


def kl_divergence(p: NamedTuple, q: NamedTuple) -> Any:
    """Kullback–Leibler divergence KL(p‖q) = ∫ p log(p/q), in that order.

    Single densities have a closed form, mixtures Goldberger's approximation.

    Parameters
    ----------
    p, q : parameter records
        Parameters of one family (for multinomials: of one number of counts, that of p).

    Returns
    -------
    float
        The divergence.

    See Also
    --------
    fishergraph.family.kl_bound : An upper bound.
    fishergraph.family.monte_carlo_kl : An estimate with its error.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import GaussianMixture, kl_divergence
    >>> p, q = (GaussianMixture.theta(np.full((1, 2), value), 1.0) for value in (0.0, 1.0))
    >>> float(kl_divergence(p, q))
    1.0
    """
    return goldberger(p, q)


@one_blas_thread()
def goldberger(p: NamedTuple, q: NamedTuple) -> Any:
    """Σ_a π_a min_b (KL(p_a‖q_b) + log(π_a/ω_b)), Goldberger et al. (2003): each component against its match.

    With one component each it is the closed form; with the same weights and order for both it is at most the bound.
    """
    pairs, log_p, log_q = _pairs(p, q)
    xp = array_namespace(pairs)
    return xp.sum(xp.exp(log_p) * xp.min(pairs + log_p[:, None] - log_q[None, :], axis=1))


@one_blas_thread()
def kl_bound(p: NamedTuple, q: NamedTuple) -> Any:
    """Σ_j π_j (KL(p_j‖q_j) + log(π_j/ω_j)) ≥ KL(p‖q), the divergence of (x, z), for mixtures of as many components.

    It is the one that the Fisher matrix of the pair (x, z), fisher="approximate", expands.
    """
    pairs, log_p, log_q = _pairs(p, q)
    xp, shape = array_namespace(pairs), tuple(pairs.shape)
    if shape[0] != shape[1]:
        raise InputError(
            parameter="p and q", expected="have as many components", got=f"{shape}", advice="use goldberger"
        )
    return xp.sum(xp.exp(log_p) * (xp.linalg.diagonal(pairs) + log_p - log_q))


@one_blas_thread()
def monte_carlo_kl(
    p: NamedTuple, q: NamedTuple, *, n_samples: int = 100_000, rng: int | np.random.Generator | None = None
) -> MonteCarlo:
    """KL(p‖q) as the mean of log p(x) − log q(x) over samples of p, with its standard error; NumPy parameters."""
    family = _one_family(p, q)
    n_samples = check_integer(n_samples, "n_samples", least=2, most=_MOST_SAMPLES)
    points = family.sample(p, n_samples, np.random.default_rng(rng))
    gaps = family.log_likelihood(points, p) - family.log_likelihood(points, q)
    with np.errstate(over="ignore"):
        error = gaps.std(ddof=1) / math.sqrt(n_samples)
    check_finite_result(error, "the error of the estimate")
    return MonteCarlo(float(gaps.mean()), float(error))


def _pairs(p: NamedTuple, q: NamedTuple) -> tuple[Any, Any, Any]:
    """KL of all pairs of components, and the log-weights of both mixtures."""
    pairs = check_finite_result(_one_family(p, q).component_divergences(p, q), "divergences")
    return pairs, _log_weights(p, pairs[:, 0]), _log_weights(q, pairs[0, :])


def _log_weights(theta: NamedTuple, like: Array) -> Any:
    """log π, (component,); equal weights if they are not parameters."""
    equal = array_namespace(like).full_like(like, -math.log(like.shape[0]))
    return theta._asdict().get("log_weights", equal)


def _one_family(p: NamedTuple, q: NamedTuple) -> Family:
    """The family of two single parameter records with equally many features."""
    family = check_theta(p, "p")
    if type(p) is not type(q):
        got = f"{type(p).__name__} and {type(q).__name__}"
        raise InputTypeError(parameter="p and q", expected="be parameters of one family", got=got)
    check_theta(q, "q")
    first, second = (theta_sizes(theta, name)["features"] for theta, name in ((p, "p"), (q, "q")))
    if first != second or any(len(theta[0].shape) > 2 for theta in (p, q)):
        expected, got = "be single parameters with equally many features", f"{first} and {second} features"
        raise InputError(parameter="p and q", expected=expected, got=got, advice="pass one record each")
    return family
