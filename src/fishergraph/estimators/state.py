"""The fitted records of an estimator as arrays and a JSON header, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph._validation import check_flag, check_integer
from fishergraph._version import __version__
from fishergraph.axes import Axes, ScaledMap, Sharpening
from fishergraph.estimators.graph_input import NodeCode
from fishergraph.estimators.model_checks import (
    check_axes,
    check_code,
    check_column_map,
    check_map,
    check_structure,
    check_theta,
)
from fishergraph.estimators.model_file import given_params, pack_attributes, plain_params, unpack_attributes
from fishergraph.estimators.table_input import TypeEncoders
from fishergraph.family import FAMILIES, family_of
from fishergraph.io.array_file import Kind, foreign, only, read_file, reading_model, write_file
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap, StandardMap
from fishergraph.layer import Layer
from fishergraph.relational import Layout, RelationalStack
from fishergraph.relational.stack import Mix
from fishergraph.stack import ColumnMap, Stack
from fishergraph.structural import Structure, StructureMap
from fishergraph.structural.factors import OPERATORS, Factors

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

    def stack_maker(self, name: str) -> Callable[..., Stack]:
        """What makes the settings of a stack in the file."""
        layout = self.parts[name].get("layout")
        return Stack if layout is None else partial(RelationalStack, layout=Layout.read(layout))

    def stack(self, name: str, settings: Stack) -> Stack:
        """The fitted stack of these settings."""
        return _UNPACK_STACK[type(settings)](self.parts.pop(name), name, self.arrays, settings)

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

    def structure(self, name: str, settings: Structure | None) -> StructureMap | None:
        """What structural columns learned with these settings, or None."""
        entry = self.parts.pop(name)
        return None if entry is None else _unpack_structure(entry, name, self.arrays, settings)

    def encoder(self, n_features: int) -> Any:
        """The encoder of a table, whose rows have so many columns; None if the model has none."""
        entry = self.parts.pop("encoder", None)
        if entry is None:
            return None
        from fishergraph.tables.pack import unpack_encoder

        if "types" in entry:
            parts = only(entry, ("types",))["types"].items()
            return TypeEncoders({one: unpack_encoder(part, f"encoder.{one}", self.arrays) for one, part in parts})
        encoder = unpack_encoder(entry, "encoder", self.arrays)
        width = len(encoder.get_feature_names_out())
        if width != n_features:
            raise ValueError(f"the encoder must make {n_features} columns, got {width}; get the file again.")
        return encoder

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
    return {"kind": "identity", "n_outputs": kernel_map.n_outputs}


def _unpack_map(entry: dict[str, Any], name: str, arrays: Arrays) -> KernelMap:
    kernel_map: KernelMap
    if entry["kind"] == "nystrom":
        only(entry, ("kind", "bandwidth"))
        kernel_map = NystromMap(arrays.pop(f"{name}.landmarks"), arrays.pop(f"{name}.root"), entry["bandwidth"])
    elif entry["kind"] == "standardize":
        only(entry, ("kind",))
        kernel_map = StandardMap(arrays.pop(f"{name}.centre"), arrays.pop(f"{name}.scale"))
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


_AXES = ("column_weights", "directions", "spread")


def _pack_axes(axes: Axes, name: str, arrays: Arrays) -> bool:
    arrays.update({f"{name}.{part}": np.ascontiguousarray(getattr(axes, part)) for part in _AXES})
    return True


def _unpack_axes(name: str, arrays: Arrays, *, unit: bool) -> Axes:
    axes = Axes(*(arrays.pop(f"{name}.{part}") for part in _AXES), unit=unit)
    check_axes(axes, name)
    return axes


def _pack_column_map(column_map: ColumnMap, name: str, arrays: Arrays) -> dict[str, Any]:
    arrays[f"{name}.centre"] = np.ascontiguousarray(column_map.centre)
    if isinstance(column_map, Sharpening):
        arrays[f"{name}.rotation"] = np.ascontiguousarray(column_map.rotation)
        return {"unit": column_map.unit}
    arrays[f"{name}.scale"] = np.ascontiguousarray(column_map.scale)
    return {"unit": column_map.unit, "map": _pack_map(column_map.kernel_map, f"{name}.kernel", arrays)}


def _unpack_column_map(entry: dict[str, Any], name: str, arrays: Arrays) -> ColumnMap:
    unit, centre = check_flag(only(entry, ("unit", "map"))["unit"], "unit"), arrays.pop(f"{name}.centre")
    column_map: ColumnMap
    if "map" in entry:
        scale, kernel_map = arrays.pop(f"{name}.scale"), _unpack_map(entry["map"], f"{name}.kernel", arrays)
        column_map = ScaledMap(scale, centre, unit, kernel_map)
    else:
        column_map = Sharpening(centre, arrays.pop(f"{name}.rotation"), unit)
    check_column_map(column_map, name)
    return column_map


def _pack_stack(stack: Stack, name: str, arrays: Arrays) -> dict[str, Any]:
    columns = zip(stack.column_names, stack.columns, strict=False)  # a run has not learned all of them at first
    return {
        "input": None if stack.input_map is None else _pack_map(stack.input_map, f"{name}.input", arrays),
        "layers": [_pack_layer(layer, f"{name}.layer{t}", arrays) for t, layer in enumerate(stack.layers, 1)],
        "axes": stack.axes is not None and _pack_axes(stack.axes, f"{name}.axes", arrays),
        "columns": {part: _pack_column_map(column_map, f"{name}.{part}", arrays) for part, column_map in columns},
    }


def _unpack_stack(entry: Any, name: str, arrays: Arrays, settings: Stack, *, whole: bool = True) -> Stack:
    """The fitted stack of these settings; if not `whole`, what a run has learned of it."""
    only(entry, ("input", "layers", "axes", "columns"))
    layers = tuple(
        _unpack_layer(layer, f"{name}.layer{t}", arrays, settings.layer_at(t))
        for t, layer in enumerate(entry["layers"], 1)
    )
    axes = _unpack_axes(f"{name}.axes", arrays, unit=settings.normalize) if entry["axes"] is True else None
    parts = only(entry["columns"], settings.column_names)
    learned = settings.column_names if whole else settings.column_names[: len(parts)]
    columns = tuple(_unpack_column_map(parts[part], f"{name}.{part}", arrays) for part in learned)
    empty = entry["input"] is None and not whole
    input_map = None if empty else _unpack_map(entry["input"], f"{name}.input", arrays)
    return replace(settings, input_map=input_map, layers=layers, axes=axes, columns=columns)


# --- relations ---------------------------------------------------------------------------------------------


def _pack_relational(stack: RelationalStack, name: str, arrays: Arrays) -> dict[str, Any]:
    for i, mixes in enumerate(stack.mixes):
        for t, mix in enumerate(mixes):
            for part, axes in enumerate(() if mix is None else mix.axes):
                arrays[f"{name}.mix{i}.{t}.{part}"] = np.ascontiguousarray(axes)
    learned = _pack_stack(stack.of_columns(), name, arrays)
    return {
        "layout": stack.layout.plain(),
        "inputs": [_pack_map(one, f"{name}.input{i}", arrays) for i, one in enumerate(stack.inputs)],
        "layers": [_pack_layers(one, f"{name}.relation{i}", arrays) for i, one in enumerate(stack.relation_layers)],
        "mixes": [[0 if mix is None else len(mix.axes) for mix in mixes] for mixes in stack.mixes],
        "axes": learned["axes"],
        "columns": learned["columns"],
    }


def _unpack_relational(entry: dict[str, Any], name: str, arrays: Arrays, settings: RelationalStack) -> RelationalStack:
    only(entry, ("layout", "inputs", "layers", "mixes", "axes", "columns"))
    plain = {"input": None, "layers": [], "axes": entry["axes"], "columns": entry["columns"]}
    columns = _unpack_stack(plain, name, arrays, settings.of_columns(), whole=False)
    inputs = tuple(_unpack_map(one, f"{name}.input{i}", arrays) for i, one in enumerate(entry["inputs"]))
    relations = enumerate(entry["layers"])
    layers = tuple(_unpack_relation(one, f"{name}.relation{i}", arrays, settings) for i, one in relations)
    mixes = tuple(
        tuple(_unpack_mix(n_parts, f"{name}.mix{i}.{t}", arrays) for t, n_parts in enumerate(one))
        for i, one in enumerate(entry["mixes"])
    )
    learned = {"axes": columns.axes, "columns": columns.columns}
    return replace(settings, inputs=inputs, relation_layers=layers, mixes=mixes, **learned)


def _unpack_relation(entry: list[Any], name: str, arrays: Arrays, settings: Stack) -> tuple[Layer, ...]:
    """The layers of one relation."""
    return tuple(_unpack_layer(layer, f"{name}.{t}", arrays, settings.layer_at(t + 1)) for t, layer in enumerate(entry))


def _unpack_mix(n_parts: Any, name: str, arrays: Arrays) -> Mix | None:
    n_parts = check_integer(n_parts, "the parts of points", least=0)
    return Mix(tuple(arrays.pop(f"{name}.{part}") for part in range(n_parts))) if n_parts else None


_UNPACK_STACK: dict[type, Callable[..., Any]] = {Stack: _unpack_stack, RelationalStack: _unpack_relational}


# --- runs --------------------------------------------------------------------------------------------------

RUN = Kind("fishergraph-run", "the state of a run", "fit_transform")


def write_learned(path: Path, stack: Stack, structure: StructureMap | None) -> None:
    """Write what a run has learned so far."""
    arrays: Arrays = {}
    header = {name: _pack(record, name, arrays) for name, record in (("stack", stack), ("structure", structure))}
    write_file(path, header, arrays, RUN)


def read_learned(path: Path, settings: Stack, structure: Structure | None) -> tuple[Stack, StructureMap | None]:
    """What `write_learned` wrote, for these settings."""
    header, arrays = read_file(path, RUN)
    with reading_model(path):
        stack = _unpack_stack(header["stack"], "stack", arrays, settings, whole=False)
        entry = header["structure"]
        return stack, None if entry is None else _unpack_structure(entry, "structure", arrays, structure)


# --- structure ---------------------------------------------------------------------------------------------


def _pack_structure(structure: StructureMap, name: str, arrays: Arrays) -> dict[str, Any]:
    arrays[f"{name}.keys"] = structure.keys
    for kind, factors in zip(structure.structure.kinds, structure.factors, strict=True):
        if factors is not None:
            arrays |= {f"{name}.{kind}.{part}": np.ascontiguousarray(v) for part, v in factors._asdict().items()}
    return {"width": structure.width, "seed": structure.seed}


def _unpack_structure(entry: dict[str, Any], name: str, arrays: Arrays, settings: Structure | None) -> StructureMap:
    only(entry, ("width", "seed"))
    if settings is None:
        raise KeyError("structure")
    factors = tuple(
        Factors(*(arrays.pop(f"{name}.{kind}.{part}") for part in Factors._fields)) if kind in OPERATORS else None
        for kind in settings.kinds
    )
    structure = StructureMap(settings, entry["width"], entry["seed"], arrays.pop(f"{name}.keys"), factors)
    check_structure(structure, name)
    return structure


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


def encoder_part(encoder: object) -> dict[str, Any]:
    """The records of a model with this encoder; none without, as in files of earlier versions."""
    return {} if encoder is None else {"encoder": encoder}


def _pack(record: Any, name: str, arrays: Arrays) -> Any:
    """The header's entry of a record; anything else is JSON already."""
    if hasattr(record, "pack_into"):
        return record.pack_into(name, arrays)
    return _PACK[type(record)](record, name, arrays) if type(record) in _PACK else record


_PACK: dict[type, Any] = {
    Stack: _pack_stack,
    RelationalStack: _pack_relational,
    Layer: _pack_layer,
    tuple: _pack_layers,
    NodeCode: _pack_code,
    StructureMap: _pack_structure,
}
