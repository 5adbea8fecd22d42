"""Parameter records that users make, checked: arrays, their shapes, and what a density needs of their entries."""

from __future__ import annotations

import math
from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array

from fishergraph._arrays import as_floats, check_finite_rows, check_in_range, check_squares, unmasked
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._validation import check_number
from fishergraph.family.base import LEAST_WEIGHT, Family
from fishergraph.family.choice import family_of

# The axes of the parts of all records; p is the number of components, d that of features.
_AXES: dict[str, str] = {
    "anchors": "pd", "means": "pd", "variances": "pd", "probabilities": "pd", "covariances": "pdd", "log_weights": "p",
    "concentrations": "p", "origin": "d",
}  # fmt: skip
_NUMBERS = ("variance", "trials")
_OPTIONAL = ("concentrations",)


def check_theta(theta: Any, name: str = "theta") -> Family:
    """The family of a parameter record, whose parts are float arrays of shapes that go together, within their range.

    The arrays may have one more axis in front, the sets.
    """
    family = family_of(theta)
    sizes = theta_sizes(theta, name)
    parts = theta._asdict()
    for part, value in parts.items():
        if part not in _NUMBERS and value is not None:
            xp = array_namespace(value)
            if not bool(xp.all(xp.isfinite(value))):
                raise InputError(
                    parameter=f"{name}.{part}",
                    expected="hold finite numbers",
                    got="others",
                    advice="learn it with learn_family",
                )
            check_squares(value, f"{name}.{part}")
    if sizes["components"] == 0 or sizes["features"] == 0:
        raise InputError(
            parameter=name,
            expected="have components and features",
            got="none",
            advice="learn it with learn_family",
        )
    _check_density(parts, name)
    return family


def check_same_theta(theta_0: Any, theta: Any, name: str) -> None:
    """Raise unless a record is sound and of the family, the components and the features of another one."""
    if type(theta) is not type(theta_0):
        raise InputTypeError(
            parameter=name,
            expected=f"be parameters of one family with the others, {type(theta_0).__name__}",
            got=f"{type(theta).__name__}",
            advice="pass records of one family",
        )
    check_theta(theta, name)
    known, sizes = theta_sizes(theta_0, "theta"), theta_sizes(theta, name)
    if (known["components"], known["features"]) != (sizes["components"], sizes["features"]):
        raise InputError(
            parameter=name,
            expected=f"have {known}",
            got=f"{sizes}",
            advice="pass parameters that were learned together",
        )


def theta_sizes(theta: Any, name: str) -> dict[str, int]:
    """{"components": p, "features": d} of a record whose shapes go together."""
    sizes: dict[str, int] = {}
    lead: dict[str, tuple] = {}
    parts: dict[str, Any] = theta._asdict()
    for part, value in parts.items():
        if part in _NUMBERS or (value is None and part in _OPTIONAL):
            continue
        axes, shape = _AXES[part], _shape(value, f"{name}.{part}")
        found = shape[len(shape) - len(axes) :] if len(shape) >= len(axes) else ()
        front = shape[: len(shape) - len(axes)]
        same = len(found) == len(axes) and all(sizes.setdefault(a, n) == n for a, n in zip(axes, found, strict=True))
        alike = front == () if part == "origin" else lead.setdefault("sets", front) == front and len(front) < 2
        if not same or not alike:
            raise InputError(
                parameter=f"{name}.{part}",
                expected=f"have the axes ({', '.join(axes)}) that go with the other parts, p components of d features",
                got=f"shape {shape}",
                advice="learn the record with learn_family",
            )
    return {"components": sizes["p"], "features": sizes["d"]}


def _shape(value: Any, name: str) -> tuple[int, ...]:
    """The shape of an array of floats."""
    unmasked(value, name)
    kind = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if not is_array_api_obj(value) or kind not in ("float32", "float64"):
        raise InputTypeError(
            parameter=name,
            expected="be an array of float32 or float64",
            got=f"{kind or type(value).__name__}",
            advice="convert it",
        )
    shape: Any = getattr(value, "shape", ())
    return tuple(shape)


def _check_density(parts: dict[str, Any], name: str) -> None:
    """Raise where the entries are not the parameters of a density."""
    for part in _NUMBERS:
        if part in parts:
            like = next(value for other, value in parts.items() if other not in _NUMBERS and value is not None)
            check_in_range(check_number(parts[part], f"{name}.{part}", strict=True), like.dtype, f"{name}.{part}")
    least = {"variances": 0.0, "concentrations": -1e-30, "probabilities": -1e-30}
    for part, value in parts.items():
        if part in least and value is not None and not bool((value > least[part]).all()):
            raise InputError(
                parameter=f"{name}.{part}",
                expected="be positive",
                got="other numbers",
                advice="learn it with learn_family",
            )
    weights = parts.get("log_weights")
    if weights is not None and not bool(((weights <= 1e-3) & (weights > math.log(LEAST_WEIGHT) - 1)).all()):
        raise InputError(
            parameter=f"{name}.log_weights",
            expected="be logarithms of shares between 2**-126 and 1",
            got="others",
            advice="pass the logarithms of weights that sum to one",
        )
    if "probabilities" in parts:
        totals = parts["probabilities"].sum(-1)
        if bool((abs(totals - 1) > 1e-3).any()):
            raise InputError(
                parameter=f"{name}.probabilities",
                expected="sum to one",
                got="other sums",
                advice="divide them by their sums",
            )
    if "trials" not in parts and "log_weights" in parts and "variances" not in parts:
        lengths = (parts["means"] ** 2).sum(-1)
        if bool((lengths >= 1).any()):
            raise InputError(
                parameter=f"{name}.means",
                expected="be shorter than 1",
                got="longer ones",
                advice="they are means of directions",
            )
    if "covariances" in parts:
        xp = array_namespace(parts["covariances"])
        if not bool((xp.linalg.eigvalsh(parts["covariances"]) > 0).all()):
            raise InputError(
                parameter=f"{name}.covariances",
                expected="be positive definite",
                got="others",
                advice="add a ridge to the diagonal",
            )
    _check_spread(parts, name)


def _check_spread(parts: dict[str, Any], name: str) -> None:
    """Raise where squares of means, in units of the variances, leave the range of their dtype."""
    means = parts.get("anchors", parts.get("means"))
    if "variance" in parts:
        check_squares(means, f"{name}.anchors", over=parts["variance"])
    elif "variances" in parts:
        check_in_range(float(parts["variances"].min()), parts["variances"].dtype, f"{name}.variances")
        check_squares(means, f"{name}.means", over=float(parts["variances"].min()))
    elif "covariances" in parts:
        xp = array_namespace(parts["covariances"])
        check_squares(means, f"{name}.means", over=float(xp.linalg.eigvalsh(parts["covariances"]).min()))


@one_blas_thread()
def retract(family: Family, phi: Any, theta_0: Any, *, root: Any = None) -> Any:
    """Parameters of a tangent vector, θ = θ_0 + I(θ_0)^{-1/2} φ (Section 3.1).

    It inverts φ of "estimate" without normalisations. Coordinates outside the family (a negative weight, a variance
    below its bound, a mean outside the ball) are brought back to its border.

    Parameters
    ----------
    family : Family
        The family.
    phi : array of shape (n_sets, width)
        Tangent vectors.
    theta_0 : parameter record
        The parameters they are tangent at.
    root : matrix, optional
        The root of the exact Fisher matrix, if φ was whitened with it.

    Returns
    -------
    parameter record
        One θ per tangent vector.

    See Also
    --------
    fishergraph.fisher_embedding : Tangent vectors of estimated means.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import DiagonalMixture, learn_family, retract
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> theta = learn_family(DiagonalMixture(), points, 3, rng=0)
    >>> retract(DiagonalMixture(), np.zeros((1, 15)), theta).means.shape
    (1, 3, 2)
    """
    known = check_theta(theta_0, "theta_0")
    if type(family) is not type(known):
        raise InputTypeError(
            parameter="family",
            expected=f"be that of theta_0, {type(known).__name__}",
            got=f"{type(family).__name__}",
            advice=f"pass {known!r}",
        )
    sizes = theta_sizes(theta_0, "theta_0")
    phi = _checked_phi(phi, family.width(sizes["components"], sizes["features"]), "phi")
    if root is not None:
        root = _checked_phi(root, phi.shape[1], "root")
        phi = phi @ array_namespace(phi).linalg.pinv(root).T
    return family.unwhitened(phi, theta_0)


def _checked_phi(phi: Any, width: int, name: str) -> Any:
    """Rows of finite numbers, so many of them; a tensor as it is."""
    if not is_torch_array(phi):
        phi = as_floats(phi, name)
    if sp.issparse(phi) or len(phi.shape) != 2 or phi.shape[1] != width:
        raise InputError(
            parameter=name,
            expected=f"be a dense matrix with {width} columns",
            got=f"shape {tuple(phi.shape)}",
            advice="pass vectors of this family",
        )
    if not is_torch_array(phi):
        check_finite_rows(phi, name)
        check_squares(phi, name)
    return phi
