"""The parameters and fitted attributes of an estimator as the JSON of a model file, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._validation import check_flag, check_integer
from fishergraph.device import Device
from fishergraph.em.settings import EM
from fishergraph.family import FAMILIES
from fishergraph.io.array_file import only
from fishergraph.kernel_map import Identity, Nystrom, Standardize
from fishergraph.multiset import RULES
from fishergraph.published import PublishedMixture, PublishedNystrom
from fishergraph.structural import Structure
from fishergraph.walk import Walk

# --- parameters --------------------------------------------------------------------------------------------


_MAPPING = "mapping"  # the kind of a parameter that is one, such as `block_weights` by name
_OF_NETWORKS = ("Network", "Training", "WeightedMixture")  # components of fishergraph.nn, which imports torch


def _kind(name: str) -> type:
    """The component or estimator of that name that a parameter may be; raises KeyError if there is none."""
    if name in _OF_NETWORKS:
        from fishergraph import nn

        return getattr(nn, name)
    return _kinds()[name]


@cache
def _kinds() -> dict[str, type]:
    from fishergraph.estimators.graphs import FisherGraphEmbedding
    from fishergraph.estimators.node import FisherEmbedding
    from fishergraph.estimators.readout import Readout

    components = (*RULES, *FAMILIES.values(), EM, Nystrom, Identity, Standardize, Walk, Structure, Device, Readout)
    kinds = (*components, PublishedMixture, PublishedNystrom, FisherEmbedding, FisherGraphEmbedding)
    return {kind.__name__: kind for kind in kinds}


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON; a random generator or a callable is not a value and becomes its default."""
    replaced = dict(params)
    if not isinstance(replaced.get("random_state"), (int, np.integer, type(None))):
        replaced["random_state"] = None
    if callable(replaced.get("verbose")):
        replaced["verbose"] = False
    return {name: _plain(value) for name, value in replaced.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "get_params"):
        name = type(value).__name__
        if name not in (*_kinds(), *_OF_NETWORKS) or _kind(name) is not type(value):
            raise InputError(
                f"a component in a model file must be one of the library's, got {name}, which load could not find; "
                "keep the model with pickle or joblib.",
                value=value,
            )
        return {"kind": name, **plain_params(value.get_params(deep=False))}
    if isinstance(value, Mapping):
        return {"kind": _MAPPING, **{name: _plain(entry) for name, entry in value.items()}}
    return value


def given_params(params: Any) -> dict[str, Any]:
    """The parameters of a header as they were; an object of the JSON is a component."""
    return {name: _from_plain(value) for name, value in params.items()}


def _from_plain(value: object) -> Any:
    if isinstance(value, list):
        return tuple(_from_plain(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    entries = given_params({name: entry for name, entry in value.items() if name != "kind"})
    return entries if value["kind"] == _MAPPING else _kind(value["kind"])(**entries)


# --- what an estimator knows of its features ----------------------------------------------------------------

# Attributes of fitted estimators that a header holds, with the checks of their values.
_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "n_features_in_": lambda value: check_integer(value, "n_features_in_", least=1),
    "n_samples_fit_": lambda value: check_integer(value, "n_samples_fit_", least=0),
    "feature_names_in_": lambda value: np.array([_text(name) for name in value], dtype=object),
    "structural_": lambda value: check_flag(value, "structural_"),
    "needs_graph_": lambda value: check_flag(value, "needs_graph_"),
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a name")
    return value


def pack_attributes(fitted: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a fitted estimator that a header holds."""
    packed = {name: fitted[name] for name in _ATTRIBUTES if name in fitted}
    return {name: list(value) if name == "feature_names_in_" else _plain(value) for name, value in packed.items()}


def unpack_attributes(entry: object) -> dict[str, Any]:
    """The attributes that `pack_attributes` wrote, validated."""
    attributes = {name: _ATTRIBUTES[name](value) for name, value in only(entry, _ATTRIBUTES).items()}
    names, n_features = attributes.get("feature_names_in_"), attributes["n_features_in_"]
    if names is not None and len(names) != n_features:
        raise ValueError(f"the {n_features} features have {len(names)} names; save it again.")
    return attributes
