"""The families by name, and the parameter records that users pass: arrays, shapes, and what a density needs of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array

from fishergraph._arrays import as_floats, check_finite_rows, check_in_range, check_squares, unmasked
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._typing import Array, ThetaT
from fishergraph._validation import check_number, look_up
from fishergraph.family.base import LEAST_WEIGHT, Family
from fishergraph.family.diagonal_mixture import DiagonalMixture
from fishergraph.family.gaussian import Gaussian
from fishergraph.family.gaussian_mixture import GaussianMixture
from fishergraph.family.multinomial import MultinomialMixture
from fishergraph.family.von_mises_fisher import VonMisesFisherMixture, VonMisesFisherTheta

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (GaussianMixture, Gaussian, DiagonalMixture, VonMisesFisherMixture, MultinomialMixture)
}
# Components are immutable: those with a name are made once, and shared.
_NAMED = {name: family() for name, family in FAMILIES.items()}

# The axes of the arrays of all records; p is the number of components, d that of features. Other fields are numbers.
_ARRAYS = {
    **dict.fromkeys(("anchors", "means", "variances", "probabilities"), "pd"),
    **dict.fromkeys(("log_weights", "concentrations"), "p"),
    "covariances": "pdd",
    "origin": "d",
}
# (array, whether its entries are those of a density, what is expected otherwise)
_ENTRIES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("variances", lambda array: array > 0, "be positive"),
    ("concentrations", lambda array: array > -1e-30, "not be negative"),
    ("probabilities", lambda array: array > -1e-30, "not be negative"),
    ("probabilities", lambda array: abs(array.sum(-1) - 1) <= 1e-3, "sum to one"),
    ("covariances", lambda array: array_namespace(array).linalg.eigvalsh(array) > 0, "be positive definite"),
    (
        "log_weights",
        lambda array: (array <= 1e-3) & (array > math.log(LEAST_WEIGHT) - 1),
        "be logarithms of weights between 2**-126 and 1",
    ),
]


def choose_family(family: str | Family) -> Family:
    """Return the family of that name, or the component itself."""
    if isinstance(family, Family):
        return family
    return look_up(_NAMED, family, "family (or a component such as DiagonalMixture(power=0.5))")


def family_of(theta: object) -> Family:
    """The family that a parameter record belongs to, with its default options."""
    for family in _NAMED.values():
        if isinstance(theta, family.theta):
            return family
    expected = f"be one of {', '.join(family.theta.__name__ for family in FAMILIES.values())}"
    advice = "learn it with learn_family"
    raise InputTypeError(parameter="a parameter", expected=expected, got=type(theta).__name__, advice=advice)


def check_theta(theta: NamedTuple, name: str = "theta") -> Family:
    """The family of a parameter record, whose arrays are floats of shapes that go together, within their range.

    The arrays may have one more axis in front, the sets.
    """
    family, sizes = family_of(theta), theta_sizes(theta, name)
    fields = theta._asdict()
    arrays = {field: array for field, array in fields.items() if field in _ARRAYS and array is not None}
    for field, array in arrays.items():
        xp = array_namespace(array)
        _require(xp.isfinite(array), f"{name}.{field}", "hold finite numbers")
        check_squares(array, f"{name}.{field}")
    if 0 in sizes.values():
        raise InputError(parameter=name, expected="have components and features", got="none")
    dtype = next(iter(arrays.values())).dtype
    for field in fields.keys() - _ARRAYS.keys():
        number = check_number(fields[field], f"{name}.{field}", strict=True)
        check_in_range(number, dtype, f"{name}.{field}")
    for field, test, expected in _ENTRIES:
        if field in arrays:
            _require(test(arrays[field]), f"{name}.{field}", expected)
    if isinstance(theta, VonMisesFisherTheta):
        _require((theta.means**2).sum(-1) < 1, f"{name}.means", "be shorter than 1, as means of directions")
    _check_spread(fields, name)
    return family


def _require(valid: Any, name: str, expected: str) -> None:
    if not bool(valid.all()):
        raise InputError(parameter=name, expected=expected, got="others", advice="learn it with learn_family")


def _check_spread(fields: dict[str, Any], name: str) -> None:
    """Raise if squares of means, in units of the variances, leave the range of their dtype."""
    if "variance" in fields:
        check_squares(fields["anchors"], f"{name}.anchors", over=fields["variance"])
    elif "variances" in fields:
        least = float(fields["variances"].min())
        check_in_range(least, fields["variances"].dtype, f"{name}.variances")
        check_squares(fields["means"], f"{name}.means", over=least)
    elif "covariances" in fields:
        eigenvalues = array_namespace(fields["covariances"]).linalg.eigvalsh(fields["covariances"])
        check_squares(fields["means"], f"{name}.means", over=float(eigenvalues.min()))


def check_same_theta(theta_0: NamedTuple, theta: object, name: str) -> None:
    """Raise unless a record is valid and of the family, the components and the features of another one."""
    if type(theta) is not type(theta_0):
        expected, got = f"be a {type(theta_0).__name__} like the other parameters", type(theta).__name__
        raise InputTypeError(parameter=name, expected=expected, got=got, advice="pass records of one family")
    check_theta(theta, name)
    expected, got = theta_sizes(theta_0, "theta"), theta_sizes(theta, name)
    if expected != got:
        advice = "pass parameters that were learned together"
        raise InputError(parameter=name, expected=f"have {expected}", got=f"{got}", advice=advice)


def theta_sizes(theta: NamedTuple, name: str) -> dict[str, int]:
    """{"components": p, "features": d} of a record whose shapes go together."""
    sizes: dict[str, int] = {}
    fronts: set[tuple[int, ...]] = set()
    for field, array in theta._asdict().items():
        if field not in _ARRAYS or (array is None and field == "concentrations"):
            continue
        axes, shape = _ARRAYS[field], _float_shape(array, f"{name}.{field}")
        n_front = len(shape) - len(axes)  # the sets
        fits = n_front in ((0,) if field == "origin" else (0, 1))
        fits = fits and all(sizes.setdefault(axis, n) == n for axis, n in zip(axes, shape[n_front:], strict=True))
        if field != "origin":
            fronts.add(shape[: max(n_front, 0)])
        if not fits or len(fronts) > 1:
            raise InputError(
                parameter=f"{name}.{field}",
                expected=f"have the axes ({', '.join(axes)}) that go with the others, p components of d features",
                got=f"shape {shape}",
                advice="learn the record with learn_family",
            )
    return {"components": sizes["p"], "features": sizes["d"]}


def _float_shape(array: Any, name: str) -> tuple[int, ...]:
    """The shape of an array of floats."""
    unmasked(array, name)
    kind = str(getattr(array, "dtype", "")).removeprefix("torch.")
    if not is_array_api_obj(array) or kind not in ("float32", "float64"):
        expected, got = "be an array of float32 or float64", kind or type(array).__name__
        raise InputTypeError(parameter=name, expected=expected, got=got, advice="convert it")
    shape: Any = getattr(array, "shape", ())
    return tuple(shape)


@one_blas_thread()
def retract(family: Family[ThetaT], phi: Array, theta_0: ThetaT, *, root: Array | None = None) -> ThetaT:
    """Parameters of tangent vectors: θ = θ_0 + I(θ_0)^{-1/2} φ (Section 3.1).

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
    learn_family : Learns θ_0.
    em_estimate : Estimates θ of every multiset.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import GaussianMixture, learn_family, retract
    >>> theta = learn_family(GaussianMixture(), np.eye(4), 2, rng=0)
    >>> retract(GaussianMixture(), np.zeros((3, 8)), theta).anchors.shape
    (3, 2, 4)
    """
    expected = check_theta(theta_0, "theta_0")
    if type(family) is not type(expected):
        name, got = type(expected).__name__, type(family).__name__
        raise InputTypeError(parameter="family", expected=f"be that of theta_0, {name}", got=got)
    sizes = theta_sizes(theta_0, "theta_0")
    phi = _as_vectors(phi, family.width(sizes["components"], sizes["features"]), "phi")
    if root is not None:
        root = _as_vectors(root, phi.shape[1], "root")
        phi = phi @ array_namespace(phi).linalg.pinv(root).T
    return family.unwhitened(phi, theta_0)


def _as_vectors(values: Array, width: int, name: str) -> Any:
    """Rows of so many finite numbers; a tensor is only checked for its shape."""
    vectors = values if is_torch_array(values) else as_floats(values, name)
    if sp.issparse(vectors) or len(vectors.shape) != 2 or vectors.shape[1] != width:
        expected, got = f"be a dense matrix with {width} columns", f"shape {tuple(vectors.shape)}"
        raise InputError(parameter=name, expected=expected, got=got, advice="pass vectors of this family")
    if not is_torch_array(values):
        check_finite_rows(vectors, name)
        check_squares(vectors, name)
    return vectors
