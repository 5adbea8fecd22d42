"""The fitted records of an estimator as arrays and a JSON header, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph._validation import check_integer
from fishergraph._version import __version__
from fishergraph.axes import Axes, Sharpening, Smooth
from fishergraph.estimators.graph_input import NodeCode
from fishergraph.estimators.model_checks import check_code, check_map, check_smooth, check_theta, check_walk
from fishergraph.estimators.model_file import given_params, pack_attributes, plain_params, unpack_attributes
from fishergraph.family import FAMILIES, family_of
from fishergraph.io.array_file import foreign, only, read_file, write_file
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap, ProjectionMap, StandardMap
from fishergraph.layer import Layer
from fishergraph.stack import Stack
from fishergraph.walk import WalkMap

Arrays = dict[str, np.ndarray]


def write_model(
    path: str | Path, name: str, params: Mapping[str, Any], fitted: Mapping[str, Any], state: Any, weights: Arrays
) -> None:
    """Write a model: the name of its class, its parameters, fitted attributes, records and other arrays."""
    arrays = dict(weights)
    header = {
        "class": name,
        "fishergraph": __version__,
        "params": plain_params(params),
        "fitted": pack_attributes(fitted),
        "state": {part: _pack(record, part, arrays) for part, record in state.items()},
    }
    write_file(path, header, arrays)


class ModelState:
    """The contents of a model file, of which every array is used once."""

    def __init__(self, path: str | Path, header: dict[str, Any], arrays: Arrays):
        only(header, ("class", "fishergraph", "params", "fitted", "state"))
        self.path, self.arrays = path, arrays
        self.params = given_params(header["params"])
        self.attributes = unpack_attributes(header["fitted"])
        self.parts = header["state"]

    @classmethod
    def read(cls, path: str | Path, name: str) -> Self:
        """Read the model of that class; use it inside `reading_model`."""
        header, arrays = read_file(path)
        found = header.get("class")
        if not isinstance(found, str):
            raise foreign(path, "one with parts missing or unknown ('class')")
        if found != name:
            raise FileFormatError(f"{path} must hold a {name}, got a {found}; load it with {found}.load.", path=path)
        return cls(path, header, arrays)

    def fitted(self, names: Sequence[str]) -> dict[str, Any]:
        """The fitted attributes, which must be these, and perhaps the names of the columns."""
        for name in names:
            self.attributes[name]
        return only(self.attributes, (*names, "feature_names_in_"))

    def stack(self, name: str, settings: Stack) -> Stack:
        """The fitted stack of these settings."""
        return _unpack_stack(self.parts.pop(name), name, self.arrays, settings)

    def layer(self, name: str, settings: Layer) -> Layer:
        """The fitted layer of these settings."""
        return _unpack_layer(self.parts.pop(name), name, self.arrays, settings)

    def layers(self, name: str, settings: Layer) -> tuple[Layer | None, ...]:
        """Fitted layers of these settings, some of them missing."""
        entries = self.parts.pop(name)
        return tuple(
            None if entry is None else _unpack_layer(entry, f"{name}.{t}", self.arrays, settings)
            for t, entry in enumerate(entries)
        )

    def code(self, name: str) -> NodeCode:
        """The fitted code of the nodes of graphs."""
        return _unpack_code(self.parts.pop(name), name, self.arrays)

    def finish(self) -> None:
        """Raise if a part or an array is left over: it belongs to no such model."""
        for left in (*self.parts, *self.arrays):
            raise KeyError(left)


# --- maps --------------------------------------------------------------------------------------------------


def _pack_map(kernel_map: KernelMap, name: str, arrays: Arrays) -> dict[str, Any]:
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


def _unpack_map(entry: dict[str, Any], name: str, arrays: Arrays) -> KernelMap:
    kernel_map: KernelMap
    if entry["kind"] == "nystrom":
        only(entry, ("kind", "bandwidth"))
        kernel_map = NystromMap(arrays.pop(f"{name}.landmarks"), arrays.pop(f"{name}.root"), entry["bandwidth"])
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


# --- layers and stacks -------------------------------------------------------------------------------------


def _pack_layer(layer: Layer, name: str, arrays: Arrays) -> dict[str, Any]:
    entry: dict[str, Any] = {"family": family_of(layer.theta).name}
    for part, value in layer.theta._asdict().items():
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{part}"] = np.ascontiguousarray(value)
        else:
            entry[part] = value
    if layer.root is not None:
        arrays[f"{name}.fisher_root"] = np.ascontiguousarray(layer.root)
    assert layer.kernel_map is not None
    return {**entry, "map": _pack_map(layer.kernel_map, name, arrays)}


def _unpack_layer(entry: dict[str, Any], name: str, arrays: Arrays, settings: Layer) -> Layer:
    kind: Any = FAMILIES[entry["family"]].theta
    numbers = only(entry, ("family", "map", *kind._fields))
    theta = kind(**{part: numbers[part] if part in numbers else arrays.pop(f"{name}.{part}") for part in kind._fields})
    check_theta(theta, name)
    kernel_map = _unpack_map(entry["map"], name, arrays)
    return replace(settings, theta=theta, root=arrays.pop(f"{name}.fisher_root", None), kernel_map=kernel_map)


def _pack_layers(layers: tuple[Layer | None, ...], name: str, arrays: Arrays) -> list[Any]:
    return [None if layer is None else _pack_layer(layer, f"{name}.{t}", arrays) for t, layer in enumerate(layers)]


def _pack_walk(walk: WalkMap, name: str, arrays: Arrays) -> dict[str, Any]:
    arrays[f"{name}.mean"] = np.ascontiguousarray(walk.centre)
    return {
        "directions": _pack_map(walk.directions, name, arrays),
        "map": _pack_map(walk.kernel_map, f"{name}.kernel", arrays),
    }


def _unpack_walk(entry: dict[str, Any], name: str, arrays: Arrays) -> WalkMap:
    only(entry, ("directions", "map"))
    directions, kernel_map = (
        _unpack_map(entry[part], prefix, arrays) for part, prefix in (("directions", name), ("map", f"{name}.kernel"))
    )
    walk = WalkMap(directions, arrays.pop(f"{name}.mean"), kernel_map)
    check_walk(walk, name)
    return walk


_SMOOTH = {"axes": ("column_weights", "directions"), "sharpening": ("centre", "rotation")}  # arrays of its parts


def _pack_smooth(smooth: Smooth, name: str, arrays: Arrays) -> bool:
    for part, fields in _SMOOTH.items():
        for field in fields:
            arrays[f"{name}.{field}"] = np.ascontiguousarray(getattr(getattr(smooth, part), field))
    return True


def _unpack_smooth(name: str, arrays: Arrays, *, unit: bool) -> Smooth:
    axes, sharpening = ([arrays.pop(f"{name}.{field}") for field in fields] for fields in _SMOOTH.values())
    smooth = Smooth(Axes(axes[0], axes[1], unit), Sharpening(sharpening[0], sharpening[1], unit))
    check_smooth(smooth, name)
    return smooth


def _pack_stack(stack: Stack, name: str, arrays: Arrays) -> dict[str, Any]:
    assert stack.input_map is not None
    return {
        "input": _pack_map(stack.input_map, f"{name}.input", arrays),
        "walk": None if stack.walk_map is None else _pack_walk(stack.walk_map, f"{name}.walk", arrays),
        "layers": [_pack_layer(layer, f"{name}.layer{t}", arrays) for t, layer in enumerate(stack.layers, 1)],
        "smooth": stack.smooth is not None and _pack_smooth(stack.smooth, f"{name}.smooth", arrays),
    }


def _unpack_stack(entry: dict[str, Any], name: str, arrays: Arrays, settings: Stack) -> Stack:
    only(entry, ("input", "walk", "layers", "smooth"))
    walk = None if entry["walk"] is None else _unpack_walk(entry["walk"], f"{name}.walk", arrays)
    layers = tuple(
        _unpack_layer(layer, f"{name}.layer{t}", arrays, settings.layer_at(t))
        for t, layer in enumerate(entry["layers"], 1)
    )
    input_map = _unpack_map(entry["input"], f"{name}.input", arrays)
    smooth = _unpack_smooth(f"{name}.smooth", arrays, unit=settings.normalize) if entry["smooth"] is True else None
    return replace(settings, input_map=input_map, walk_map=walk, layers=layers, smooth=smooth)


# --- codes -------------------------------------------------------------------------------------------------

_LISTS = ("tags", "degrees", "cores", "edge_tags")  # of a `NodeCode`: what it can name


def _pack_code(code: NodeCode, name: str, arrays: Arrays) -> dict[str, Any]:
    """The header's entry of a code; tags may be texts, so they are in the header."""
    values = {part: getattr(code, part) for part in _LISTS}
    lists = {part: None if entries is None else entries.tolist() for part, entries in values.items()}
    standard = None if code.standard is None else _pack_map(code.standard, name, arrays)
    return {"parts": list(code.parts), "standard": standard, **lists}


def _unpack_code(entry: dict[str, Any], name: str, arrays: Arrays) -> NodeCode:
    only(entry, ("parts", "standard", *_LISTS))
    values = {part: _listed(entry[part], part) for part in _LISTS}
    standard: Any = None if entry["standard"] is None else _unpack_map(entry["standard"], name, arrays)
    code = NodeCode(tuple(entry["parts"]), standard=standard, **values)
    check_code(code)
    return code


def _listed(entries: Any, name: str) -> np.ndarray | None:
    """Integers or, of tags, texts as an array."""
    if entries is None:
        return None
    texts = name.endswith("tags") and all(isinstance(value, str) and "\0" not in value for value in entries)
    if not texts and not all(isinstance(value, int) and not isinstance(value, bool) for value in entries):
        raise TypeError(f"{name} that are neither integers nor texts")
    return np.array(entries, dtype=np.str_ if texts else np.int64)


def _pack(record: Any, name: str, arrays: Arrays) -> Any:
    """The header's entry of a record; anything else is JSON already."""
    return _PACK[type(record)](record, name, arrays) if type(record) in _PACK else record


_PACK: dict[type, Any] = {Stack: _pack_stack, Layer: _pack_layer, tuple: _pack_layers, NodeCode: _pack_code}
