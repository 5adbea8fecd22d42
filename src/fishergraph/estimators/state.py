"""Model files: one safetensors file with the arrays, and the parameters as JSON in its header. Never pickle."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fishergraph._file_checks import check_folder, replacing
from fishergraph._version import __version__
from fishergraph.estimators.stack import Stack
from fishergraph.kernel_map import IdentityMap, KernelMap, NystromMap
from fishergraph.layer import Layer
from fishergraph.multiset import DIFFUSIONS, Diffusion

FORMAT = "fishergraph-model"
FORMAT_VERSION = 1

E = TypeVar("E")


def save_state(estimator: Any, path: str | Path) -> None:
    """Write the estimator to `path`; the file appears whole or not at all."""
    from safetensors.numpy import save

    path = Path(path)
    check_folder(path)
    arrays: dict[str, np.ndarray] = {}
    stack: Stack = estimator.stack_
    header = {
        "class": type(estimator).__name__,
        "fishergraph": __version__,
        "params": _plain_params(estimator),
        "n_features_in": int(estimator.n_features_in_),
        "structure_seed": estimator._structure_seed,
        "input_map": _pack_map(stack.input_map, "input", arrays),
        "layers": [_pack_layer(layer, f"layer{t}", arrays) for t, layer in enumerate(stack.layers, 1)],
    }
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names_in"] = list(estimator.feature_names_in_)
    metadata = {"format": FORMAT, "format_version": str(FORMAT_VERSION), "model": json.dumps(header)}
    with replacing(path) as part:
        part.write_bytes(save(arrays, metadata=metadata))  # save_file would hide the file from other users


def load_state(cls: type[E], path: str | Path) -> E:
    """The estimator a file holds, or a sentence that says why it does not."""
    header, arrays = _read(Path(path))
    try:
        name = header["class"]
        if name == cls.__name__:
            return _restore(cls, header, arrays)
    except (KeyError, TypeError) as error:
        raise _foreign(path, f"one with parts missing or unknown ({error})") from None
    raise ValueError(f"{path} must hold a {cls.__name__}, got a {name}; load it with {name}.load.")


def _restore(cls: type[E], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> E:
    estimator: Any = cls(**{name: _from_plain(value) for name, value in header["params"].items()})
    estimator.n_features_in_ = header["n_features_in"]
    if "feature_names_in" in header:
        estimator.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
    estimator._structure_seed = header["structure_seed"]
    layers = tuple(_unpack_layer(entry, f"layer{t}", arrays) for t, entry in enumerate(header["layers"], 1))
    estimator.stack_ = Stack(_unpack_map(header["input_map"], "input", arrays), layers)
    return estimator


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a model file."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"a model file is expected at {path}, got none; check the path.")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata)
            return json.loads(metadata["model"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise _foreign(path, f"a truncated or foreign file ({error})") from None
    except json.JSONDecodeError as error:
        raise _foreign(path, f"one whose header cannot be read ({error})") from None


def _foreign(path: str | Path, got: str) -> ValueError:
    return ValueError(f"{path} must be a model file written by save, got {got}; save it again.")


def _check_format(path: Path, metadata: dict[str, str]) -> None:
    version = metadata.get("format_version", "")
    if metadata.get("format") != FORMAT or "model" not in metadata or not version.isdigit():
        raise _foreign(path, "a safetensors file of another program")
    if int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} must have model format {FORMAT_VERSION} or older, got format {version}; "
            "upgrade fishergraph to read it."
        )


def _plain_params(estimator: Any) -> dict[str, Any]:
    """The constructor's parameters as JSON; a random generator or a callable is not a value and becomes None."""
    params = estimator.get_params(deep=False)
    if not isinstance(params["random_state"], (int, np.integer, type(None))):
        params["random_state"] = None
    if callable(params["verbose"]):
        params["verbose"] = False
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Diffusion):
        return {"record": type(value).__name__, **{name: _plain(entry) for name, entry in asdict(value).items()}}
    return value


def _from_plain(value: Any) -> Any:
    """A parameter as it was; an object of the JSON is a record."""
    if not isinstance(value, dict):
        return value
    records = {record.__name__: record for record in DIFFUSIONS}
    return records[value["record"]](**{name: entry for name, entry in value.items() if name != "record"})


def _pack_map(kernel_map: KernelMap, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(kernel_map, NystromMap):
        arrays[f"{name}.landmarks"] = np.ascontiguousarray(kernel_map.landmarks)
        arrays[f"{name}.root"] = np.ascontiguousarray(kernel_map.root)
        return {"kind": "nystrom", "bandwidth": kernel_map.bandwidth}
    return {"kind": "identity", "n_outputs": kernel_map.n_outputs}


def _unpack_map(entry: dict[str, Any], name: str, arrays: dict[str, np.ndarray]) -> KernelMap:
    if entry["kind"] == "nystrom":
        return NystromMap(arrays[f"{name}.landmarks"], arrays[f"{name}.root"], entry["bandwidth"])
    return IdentityMap(entry["n_outputs"])


def _pack_layer(layer: Layer, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays[f"{name}.anchors"] = np.ascontiguousarray(layer.anchors)
    return {"variance": layer.variance, "map": _pack_map(layer.kernel_map, name, arrays)}


def _unpack_layer(entry: dict[str, Any], name: str, arrays: dict[str, np.ndarray]) -> Layer:
    return Layer(arrays[f"{name}.anchors"], entry["variance"], _unpack_map(entry["map"], name, arrays))
