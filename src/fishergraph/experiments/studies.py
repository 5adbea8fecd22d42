"""The studies by name."""

from __future__ import annotations

from fishergraph._validation import look_up
from fishergraph.experiments.attention import AttentionStudy
from fishergraph.experiments.closeness import Closeness, Divergence
from fishergraph.experiments.simulations import SIMULATIONS
from fishergraph.experiments.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *SIMULATIONS,
        Divergence("divergence", "components of p′"),
        Closeness("closeness", "distance among the components"),
        AttentionStudy("attention", "variance σ²"),
    )
}


def choose_study(name: str, *, quick: bool = False) -> Study:
    """The study of that name, or its quick version; an unknown name lists the known ones."""
    study = look_up(STUDIES, name, "a study")
    return study.quick() if quick else study
