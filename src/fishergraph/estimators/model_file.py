"""Files of arrays with a JSON header, in safetensors: models, and the checkpoints of a training. Never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fishergraph._file_checks import check_folder, check_regular, replacing
from fishergraph.family import FAMILIES, Family
from fishergraph.multiset import RULES, Rule

FORMAT_VERSION = 1

# The records that parameters may be.
_RECORDS = {record.__name__: record for record in (*RULES, *FAMILIES.values())}


class Kind(NamedTuple):
    """A kind of file: the name of its format, what people call it, and the function that writes it."""

    format: str
    noun: str
    writer: str


MODEL = Kind("fishergraph-model", "a model file", "save")

E = TypeVar("E")


def write_file(path: str | Path, header: dict[str, Any], arrays: dict[str, np.ndarray], kind: Kind = MODEL) -> None:
    """Write the arrays and the header to `path`; the file appears whole or not at all."""
    from safetensors.numpy import save

    path = Path(path)
    check_folder(path)
    metadata = {"format": kind.format, "format_version": str(FORMAT_VERSION), "model": json.dumps(header)}
    with replacing(path) as part:
        part.write_bytes(save(arrays, metadata=metadata))  # save_file would hide the file from other users


def read_file(path: str | Path, kind: Kind = MODEL) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not os.path.lexists(path) or path.is_dir():
        raise FileNotFoundError(f"{kind.noun} is expected at {path}, got none; check the path.")
    check_regular(path)
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata, kind)
            return json.loads(metadata["model"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise foreign(path, f"a truncated or foreign file ({error})", kind) from None
    except json.JSONDecodeError as error:
        raise foreign(path, f"one whose header cannot be read ({error})", kind) from None


def load_model(cls: type[E], path: str | Path, restore: Callable[[type[E], dict[str, Any], dict[str, Any]], E]) -> E:
    """The estimator a file holds, made by `restore(cls, header, arrays)`, or a sentence that says why it does not."""
    header, arrays = read_file(path)
    try:
        name = header["class"]
        if name == cls.__name__:
            return restore(cls, header, arrays)
    except (KeyError, TypeError) as error:
        raise foreign(path, f"one with parts missing or unknown ({error})") from None
    raise ValueError(f"{path} must hold a {cls.__name__}, got a {name}; load it with {name}.load.")


def foreign(path: str | Path, got: str, kind: Kind = MODEL) -> ValueError:
    """The error for a file that is not what was expected."""
    return ValueError(f"{path} must be {kind.noun} written by {kind.writer}, got {got}; write it again.")


def _check_format(path: Path, metadata: dict[str, str], kind: Kind) -> None:
    version = metadata.get("format_version", "")
    if metadata.get("format") != kind.format or "model" not in metadata or not version.isdigit():
        raise foreign(path, "a safetensors file of another program or purpose", kind)
    if int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} must have format {FORMAT_VERSION} or older, got format {version}; upgrade fishergraph to read it."
        )


def plain_params(estimator: Any) -> dict[str, Any]:
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
    if isinstance(value, (Rule, Family)):
        if type(value) not in _RECORDS.values():
            raise ValueError(
                f"a record in a model file must be one of {', '.join(_RECORDS)}, got {type(value).__name__}, which "
                "load could not find; keep the model with pickle or joblib."
            )
        return {"record": type(value).__name__, **{name: _plain(entry) for name, entry in asdict(value).items()}}
    return value


def given_params(header: dict[str, Any]) -> dict[str, Any]:
    """The constructor's parameters of a header as they were; an object of the JSON is a record."""
    return {name: _from_plain(value) for name, value in header["params"].items()}


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_plain(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    return _RECORDS[value["record"]](**{name: _from_plain(entry) for name, entry in value.items() if name != "record"})


def pack_features(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator knows of its features, for the header."""
    header: dict[str, Any] = {"n_features_in": int(estimator.n_features_in_)}
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names_in"] = list(estimator.feature_names_in_)
    if hasattr(estimator, "structure_seed_"):
        header["structure_seed"] = estimator.structure_seed_
    if hasattr(estimator, "structural_"):
        header["structural"] = estimator.structural_
    return header


def unpack_features(estimator: Any, header: dict[str, Any]) -> None:
    """Give an estimator back what it knew of its features."""
    estimator.n_features_in_ = header["n_features_in"]
    if "feature_names_in" in header:
        estimator.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
    if "structure_seed" in header:
        estimator.structure_seed_ = header["structure_seed"]
    if "structural" in header:
        estimator.structural_ = header["structural"]
