"""The laboratory of the paper: other methods, its experiments and its figures. No other package imports it.

    baselines      published classifiers of nodes with one interface: the table BASELINES
    experiments    Table 1 and Figure 4: specifications, plan, runner and report
    rows           the files of results
    studies        simulations and studies of close densities and of attention; the maps of Figure 5
    nested         nested cross-validation of classifiers of whole graphs
    figures        the figures of the paper
    cli            fishergraph lab run | report | simulate; commands, what they do

Names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fishergraph.lab.baselines import BASELINES as BASELINES
    from fishergraph.lab.baselines import Baseline as Baseline
    from fishergraph.lab.baselines import baseline as baseline
    from fishergraph.lab.nested import NestedScores as NestedScores
    from fishergraph.lab.nested import inner_scores as inner_scores
    from fishergraph.lab.nested import nested_scores as nested_scores
    from fishergraph.lab.studies import STUDIES as STUDIES

_MODULES = {
    "BASELINES": "baselines",
    "Baseline": "baselines",
    "NestedScores": "nested",
    "STUDIES": "studies",
    "baseline": "baselines",
    "inner_scores": "nested",
    "nested_scores": "nested",
}
__all__ = [*_MODULES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"fishergraph.lab.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_MODULES)}")


def __dir__() -> list[str]:
    return sorted(_MODULES)
