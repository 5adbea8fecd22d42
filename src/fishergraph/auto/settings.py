"""The settings that `auto_embed` tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import type_name
from fishergraph.auto.shared import SharedEmbeddings
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.graph import Graph
from fishergraph.multiset import Differences, Neighbourhood, Rule
from fishergraph.presets import choose_preset

Setting = dict[str, Any]

# Weights of blocks, which share the embedding of the default: structure beside features, neighbours without averages
# over the whole graph, and nodes without their neighbours.
_WEIGHTS: tuple[dict[str, float], ...] = (
    {"factors": 1.0, "local": 1.0},
    {"walk": 0.0, "smooth": 0.0},
    {"psi1": 0.0, "psi2": 0.0, "walk": 0.0, "smooth": 0.0},
)

# Of a node: neighbours that count less if others have them too, neighbours without the node, how they differ from it.
_MULTISETS: tuple[Rule, ...] = (Neighbourhood(weights="symmetric"), Neighbourhood(closed=False), Differences())


def default_settings(shared: SharedEmbeddings, params: Mapping[str, Any]) -> list[Setting]:
    """The default, and what is worth trying beside it: cheap settings first.

    A setting that changes one of the parameters `params`, or does nothing for these inputs, is left out.
    """
    names = shared.settings(FisherEmbedding().set_params(**params)).names
    weights = [{name: weight for name, weight in some.items() if name in names} for some in _WEIGHTS]
    settings: list[Setting] = [{"block_weights": some} for some in weights if some]
    if shared.graph is not None:
        settings += [{"multiset": rule} for rule in _MULTISETS]
        if has_directions(shared.graph):
            settings += [{"multiset": Neighbourhood(undirected=True)}, {"multiset": Neighbourhood(direction="both")}]
    settings.append(choose_preset("best"))
    fixed = {name.partition("__")[0] for name in params}
    return [{}, *(setting for setting in settings if fixed.isdisjoint(setting))]


def has_directions(graph: Graph) -> bool:
    """Whether some edge has no reverse of the same weight."""
    A = graph.adjacency
    return (A.T.tocsr() != A).nnz > 0


def estimators(
    shared: SharedEmbeddings, settings: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
) -> list[FisherEmbedding]:
    """The unfitted embedding of every setting, with parameters that all of them have; validates them."""
    if isinstance(settings, Mapping) or not isinstance(settings, Sequence) or isinstance(settings, str):
        advice = "pass [{}, {'dim': 512}]"
        expected = "be a list of dicts of parameters"
        raise InputTypeError(parameter="settings", expected=expected, got=type_name(settings), advice=advice)
    if not len(settings):
        raise InputError(parameter="settings", expected="hold at least one setting", got="none", advice="pass [{}]")
    models = []
    for setting in settings:
        if not isinstance(setting, Mapping):
            expected = "be a list of dicts of parameters"
            raise InputTypeError(parameter="settings", expected=expected, got=f"a {type_name(setting)} in it")
        model = FisherEmbedding().set_params(**{**params, **setting})
        shared.settings(model)
        models.append(model)
    return models
