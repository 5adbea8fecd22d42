"""The state of an estimator as arrays and a JSON header, and back."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fishergraph._version import __version__
from fishergraph.estimators.graph_input import NodeCode
from fishergraph.estimators.model_file import (
    given_params,
    load_model,
    pack_features,
    plain_params,
    unpack_features,
    write_file,
)
from fishergraph.estimators.stack_spec import Stack
from fishergraph.family import FAMILIES, family_of
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap, ProjectionMap, StandardMap
from fishergraph.layer import Layer

E = TypeVar("E")


def save_state(estimator: Any, path: str | Path) -> None:
    """Write the estimator to `path`; the file appears whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    stack: Stack = estimator.stack_
    header = {
        "class": type(estimator).__name__,
        "fishergraph": __version__,
        "params": plain_params(estimator),
        **pack_features(estimator),
        "input_map": _pack_map(stack.input_map, "input", arrays),
        "walk_map": None if stack.walk_map is None else _pack_map(stack.walk_map, "walk", arrays),
        "layers": [pack_layer(layer, f"layer{t}", arrays) for t, layer in enumerate(stack.layers, 1)],
        **estimator._pack_more(arrays),
    }
    write_file(path, header, arrays)


def load_state(cls: type[E], path: str | Path) -> E:
    """The estimator a file holds, or a sentence that says why it does not."""
    return load_model(cls, path, _restore)


def _restore(cls: type[E], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> E:
    params = given_params(header)
    if "teleport" in signature(cls).parameters:
        params.setdefault("teleport", None)  # files from before there were walks
    estimator: Any = cls(**params)
    unpack_features(estimator, header)
    layers = tuple(unpack_layer(entry, f"layer{t}", arrays) for t, entry in enumerate(header["layers"], 1))
    walk = header.get("walk_map")
    walk_map = None if walk is None else _unpack_map(walk, "walk", arrays)
    estimator.stack_ = Stack(_unpack_map(header["input_map"], "input", arrays), layers, walk_map)
    estimator._unpack_more(header, arrays)
    return estimator


def _pack_map(kernel_map: KernelMap, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(kernel_map, NystromMap):
        arrays[f"{name}.landmarks"] = np.ascontiguousarray(kernel_map.landmarks)
        arrays[f"{name}.root"] = np.ascontiguousarray(kernel_map.root)
        return {"kind": "nystrom", "bandwidth": kernel_map.bandwidth}
    if isinstance(kernel_map, StandardMap):
        arrays[f"{name}.centre"] = np.ascontiguousarray(kernel_map.centre)
        arrays[f"{name}.scale"] = np.ascontiguousarray(kernel_map.scale)
        return {"kind": "standardize"}
    if isinstance(kernel_map, ProjectionMap):
        arrays[f"{name}.directions"] = np.ascontiguousarray(kernel_map.directions)
        return {"kind": "projection"}
    return {"kind": "identity", "n_outputs": kernel_map.n_outputs}


def _unpack_map(entry: dict[str, Any], name: str, arrays: dict[str, np.ndarray]) -> KernelMap:
    if entry["kind"] == "nystrom":
        return NystromMap(arrays[f"{name}.landmarks"], arrays[f"{name}.root"], entry["bandwidth"])
    if entry["kind"] == "standardize":
        return StandardMap(arrays[f"{name}.centre"], arrays[f"{name}.scale"])
    if entry["kind"] == "projection":
        return ProjectionMap(arrays[f"{name}.directions"])
    return IdentityMap(entry["n_outputs"])


def pack_layer(layer: Layer, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The header's entry of a layer, whose arrays are put among the others under `name`."""
    entry: dict[str, Any] = {"family": family_of(layer.theta).name}
    for part, value in layer.theta._asdict().items():
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{part}"] = np.ascontiguousarray(value)
        else:
            entry[part] = value
    if layer.root is not None:
        arrays[f"{name}.fisher_root"] = np.ascontiguousarray(layer.root)
    return {**entry, "map": _pack_map(layer.kernel_map, name, arrays)}


def unpack_layer(entry: dict[str, Any], name: str, arrays: dict[str, np.ndarray]) -> Layer:
    """The layer that `pack_layer` put away."""
    kind: Any = FAMILIES[entry.get("family", "gaussian-mixture")].theta  # files of 0.1.0 hold no other
    parts = {part: arrays.get(f"{name}.{part}", entry.get(part)) for part in kind._fields}
    if any(part is None for part in parts.values()):
        raise KeyError(next(part for part, value in parts.items() if value is None))
    return Layer(kind(**parts), _unpack_map(entry["map"], name, arrays), arrays.get(f"{name}.fisher_root"))


_KNOWN = ("tags", "degrees", "cores", "edge_tags")  # of a `NodeCode`: lists of what it can name


def pack_code(code: NodeCode, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The header's entry of what is known of nodes; tags may be texts, so they stand in the header."""
    known = {name: getattr(code, name) for name in _KNOWN}
    lists = {name: None if values is None else values.tolist() for name, values in known.items()}
    standard = None if code.standard is None else _pack_map(code.standard, "code", arrays)
    return {"parts": list(code.parts), "standard": standard, **lists}


def unpack_code(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> NodeCode:
    """The code that `pack_code` put away."""
    known = {name: entry.get(name) for name in _KNOWN}  # older files lack cores
    values = {name: None if found is None else np.array(found) for name, found in known.items()}
    standard: Any = None if entry["standard"] is None else _unpack_map(entry["standard"], "code", arrays)
    return NodeCode(tuple(entry["parts"]), standard=standard, **values)
