"""The families by name, and the choice of one."""

from __future__ import annotations

from typing import Any

from fishergraph._component import choose
from fishergraph._errors import InputTypeError
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


def choose_family(family: str | Family) -> Family:
    """Return the family of that name, or the component itself."""
    return choose(FAMILIES, family, Family, "family", example="DiagonalMixture(power=0.5)")


def family_of(theta: Any) -> Family:
    """The family that a parameter record belongs to, with the options it has by default."""
    for family in FAMILIES.values():
        if isinstance(theta, family.theta):
            return family()
    known = ", ".join(family.theta.__name__ for family in FAMILIES.values())
    raise InputTypeError(
        parameter="a parameter",
        expected=f"be one of {known}",
        got=f"{type(theta).__name__}",
        advice="learn it with learn_family",
    )
