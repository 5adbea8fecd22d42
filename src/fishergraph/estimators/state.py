"""The state of an estimator as arrays and a JSON header, and back."""

from __future__ import annotations

from copy import copy
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fishergraph._validation import check_device, check_integer, look_up
from fishergraph._version import __version__
from fishergraph.estimators.graph_input import NodeCode
from fishergraph.estimators.model_checks import check_code, check_map, check_theta
from fishergraph.estimators.model_file import (
    COMMON,
    given_params,
    load_model,
    only,
    pack_features,
    plain_params,
    unpack_features,
    write_file,
)
from fishergraph.estimators.stack_spec import Stack
from fishergraph.family import FAMILIES, family_of
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap, ProjectionMap, StandardMap
from fishergraph.layer import Layer
from fishergraph.ops import known_backends

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
    only(header, (*COMMON, "input_map", "walk_map", "layers", *cls._more))  # type: ignore[attr-defined]
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
    _check_state(estimator)
    return estimator


def _check_state(estimator: Any) -> None:
    """Raise where parameters are not possible, or do not fit what was learned; on no device, for it may be absent."""
    check_device(estimator.device, estimator.precision)
    if estimator.backend is not None:
        look_up(dict.fromkeys(known_backends()), estimator.backend, "backend (or None)")
    here = copy(estimator).set_params(device="cpu", precision="float32", backend=None)
    here._check_fitted()


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
        only(entry, ("kind", "bandwidth"))
        kernel_map: KernelMap = NystromMap(
            arrays.pop(f"{name}.landmarks"), arrays.pop(f"{name}.root"), entry["bandwidth"]
        )
    elif entry["kind"] == "standardize":
        only(entry, ("kind",))
        kernel_map = StandardMap(arrays.pop(f"{name}.centre"), arrays.pop(f"{name}.scale"))
    elif entry["kind"] == "projection":
        only(entry, ("kind",))
        kernel_map = ProjectionMap(arrays.pop(f"{name}.directions"))
    elif entry["kind"] == "identity":
        only(entry, ("kind", "n_outputs"))
        kernel_map = IdentityMap(check_integer(entry["n_outputs"], "n_outputs", least=1))
    else:
        raise KeyError(entry["kind"])
    check_map(kernel_map, name)
    return kernel_map


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
    family = FAMILIES[entry.get("family", "gaussian-mixture")]  # files of 0.1.0 hold no other
    kind: Any = family.theta
    numbers = only(entry, ("family", "map", *kind._fields))
    theta = kind(**{part: numbers[part] if part in numbers else arrays.pop(f"{name}.{part}") for part in kind._fields})
    check_theta(theta, name)
    return Layer(theta, _unpack_map(entry["map"], name, arrays), arrays.pop(f"{name}.fisher_root", None))


_KNOWN = ("tags", "degrees", "cores", "edge_tags")  # of a `NodeCode`: lists of what it can name


def pack_code(code: NodeCode, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The header's entry of what is known of nodes; tags may be texts, so they stand in the header."""
    known = {name: getattr(code, name) for name in _KNOWN}
    lists = {name: None if values is None else values.tolist() for name, values in known.items()}
    standard = None if code.standard is None else _pack_map(code.standard, "code", arrays)
    return {"parts": list(code.parts), "standard": standard, **lists}


def unpack_code(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> NodeCode:
    """The code that `pack_code` put away."""
    only(entry, ("parts", "standard", *_KNOWN))
    values = {name: _known_values(entry.get(name), name) for name in _KNOWN}  # older files lack cores
    standard: Any = None if entry["standard"] is None else _unpack_map(entry["standard"], "code", arrays)
    code = NodeCode(tuple(entry["parts"]), standard=standard, **values)
    check_code(code)
    return code


def _known_values(found: Any, name: str) -> np.ndarray | None:
    """Integers or, of tags, texts as an array."""
    if found is None:
        return None
    texts = name.endswith("tags") and all(isinstance(value, str) and "\0" not in value for value in found)
    if not texts and not all(isinstance(value, int) and not isinstance(value, bool) for value in found):
        raise TypeError(f"{name} that are neither integers nor texts")
    return np.array(found, dtype=np.str_ if texts else np.int64)
