"""The studies of simulated data and of attention, by name.

study          the base classes: cells, their work, the table of the rows
simulations    Section 5.1 and Appendix D: embedding distances over KL divergences; close densities; Goldberger's bound
attention      the concentration of the attention against the variance
maps           the t-SNE maps of Figure 5
"""

from __future__ import annotations

from fishergraph._validation import look_up
from fishergraph.lab.studies.attention import AttentionStudy
from fishergraph.lab.studies.simulations import SIMULATIONS
from fishergraph.lab.studies.study import Study

__all__ = ["STUDIES", "Study", "choose_study"]

STUDIES: dict[str, Study] = {study.name: study for study in (*SIMULATIONS, AttentionStudy("attention"))}


def choose_study(name: str, *, quick: bool = False) -> Study:
    """The study of that name, or its quick version; an unknown name raises ValueError."""
    study = look_up(STUDIES, name, "a study")
    return study.quick() if quick else study
