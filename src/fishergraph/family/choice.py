"""The families by name, and the choice of one."""

from __future__ import annotations

from typing import Any

from fishergraph._validation import look_up
from fishergraph.family.base import Family
from fishergraph.family.diagonal_mixture import DiagonalMixture
from fishergraph.family.gaussian import Gaussian
from fishergraph.family.gaussian_mixture import GaussianMixture
from fishergraph.family.multinomial import MultinomialMixture
from fishergraph.family.von_mises_fisher import VonMisesFisherMixture

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (GaussianMixture, Gaussian, DiagonalMixture, VonMisesFisherMixture, MultinomialMixture)
}


def choose_family(family: str | Family, fisher: str = "approximate", tangent: str = "estimate") -> Family:
    """The family of that name with these options, or a record such as `DiagonalMixture(power=0.5)` with its own."""
    given: dict[str, Any] = {"fisher": fisher, "tangent": tangent}
    if isinstance(family, Family):
        for name, value in given.items():
            if not isinstance(value, str) or value != getattr(Family, name):
                raise ValueError(
                    f"{name} goes with the name of a family, got {name}={value!r} beside a record; "
                    f"write {type(family).__name__}({name}={value!r}) instead."
                )
        chosen = family
    else:
        chosen = look_up(FAMILIES, family, "family (or a record such as DiagonalMixture(power=0.5))")(**given)
    chosen.check()
    return chosen


def family_of(theta: Any) -> Family:
    """The family that a parameter record belongs to, with the options it has by default."""
    for family in FAMILIES.values():
        if isinstance(theta, family.theta):
            return family()
    known = ", ".join(family.theta.__name__ for family in FAMILIES.values())
    raise TypeError(f"a parameter must be one of {known}, got {type(theta).__name__}; learn it with learn_family.")
