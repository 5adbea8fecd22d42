"""Files of arrays with a JSON header, in safetensors: models, and the checkpoints of a training. Never pickle."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fishergraph._validation import check_flag, check_integer, check_seed
from fishergraph.family import FAMILIES, Family
from fishergraph.io.files import check_folder, check_regular, replacing
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
    text = json.dumps(header)
    metadata = {"format": kind.format, "format_version": str(FORMAT_VERSION), "model": text}
    metadata["checksum"] = _checksum(text, arrays)
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
            arrays = _arrays(file, path, kind)
    except SafetensorError as error:
        raise foreign(path, f"a truncated or foreign file ({error})", kind) from None
    if metadata.get("checksum", "") not in ("", _checksum(metadata["model"], arrays)):
        raise foreign(path, "a damaged one, whose checksum differs", kind)
    try:
        header = json.loads(metadata["model"])
    except (ValueError, RecursionError) as error:
        raise foreign(path, f"one whose header cannot be read ({error})", kind) from None
    if not isinstance(header, dict):
        raise foreign(path, f"one whose header is a {type(header).__name__}", kind)
    return header, arrays


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    """A number that another header, or another name, type, shape or byte of an array would change."""
    found = zlib.crc32(header.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")  # of no axes too
        found = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode(), found)
        found = zlib.crc32(array.reshape(-1).view(np.uint8).data if array.size else b"", found)
    return f"{found:08x}"


def _arrays(file: Any, path: Path, kind: Kind) -> dict[str, np.ndarray]:
    """The arrays of a file, all of them finite numbers."""
    arrays = {}
    for name in file.keys():  # noqa: SIM118
        try:
            array = file.get_tensor(name)
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # a type of numbers that NumPy does not have
            raise foreign(path, f"one whose array {name!r} cannot be read ({error})", kind) from None
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise foreign(path, f"one whose array {name!r} does not hold finite numbers", kind)
        arrays[name] = array
    return arrays


def load_model(cls: type[E], path: str | Path, restore: Callable[[type[E], dict[str, Any], dict[str, Any]], E]) -> E:
    """The estimator a file holds, made by `restore(cls, header, arrays)`, or a sentence that says why it does not.

    `restore` takes every array out of `arrays` that it uses; one that is left over belongs to no such model.
    """
    header, arrays = read_file(path)
    name = header.get("class")
    if not isinstance(name, str):
        raise foreign(path, "one with parts missing or unknown ('class')")
    if name != cls.__name__:
        raise ValueError(f"{path} must hold a {cls.__name__}, got a {name}; load it with {name}.load.")
    try:
        model = restore(cls, header, arrays)
        if arrays:
            raise KeyError(next(iter(arrays)))
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise foreign(path, f"one with parts missing or unknown ({error})") from None
    except ValueError as error:  # its parts do not fit each other, or their values are not possible
        raise ValueError(f"{path} holds a model that cannot be used: {error}") from None
    return model


def only(entry: Any, known: Iterable[str]) -> dict[str, Any]:
    """An object of the header; raises KeyError for a name in it that is not known."""
    if not isinstance(entry, dict):
        raise TypeError(f"{entry!r} instead of an object")
    unknown = set(entry) - set(known)
    if unknown:
        raise KeyError(min(unknown))
    return entry


def foreign(path: str | Path, got: str, kind: Kind = MODEL) -> ValueError:
    """The error for a file that is not what was expected."""
    return ValueError(f"{path} must be {kind.noun} written by {kind.writer}, got {got}; write it again.")


def _check_format(path: Path, metadata: dict[str, str], kind: Kind) -> None:
    version = metadata.get("format_version", "")
    counted = version.isascii() and version.isdecimal() and len(version) < 10
    if metadata.get("format") != kind.format or "model" not in metadata or not counted:
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
    if hasattr(estimator, "needs_graph_"):
        header["needs_graph"] = estimator.needs_graph_
    return header


def unpack_features(estimator: Any, header: dict[str, Any]) -> None:
    """Give an estimator back what it knew of its features."""
    estimator.n_features_in_ = check_integer(header["n_features_in"], "n_features_in", least=1)
    if "feature_names_in" in header:
        names = header["feature_names_in"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("feature_names_in is no list of names")
        if len(names) != estimator.n_features_in_:
            raise ValueError(f"the {estimator.n_features_in_} features have {len(names)} names; save it again.")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if "structure_seed" in header:
        estimator.structure_seed_ = check_seed(header["structure_seed"], "structure_seed")
    if "structural" in header:
        estimator.structural_ = check_flag(header["structural"], "structural")
        if estimator.structural_ and "structure_seed" not in header:
            raise KeyError("structure_seed")
    if "needs_graph" in header:
        estimator.needs_graph_ = check_flag(header["needs_graph"], "needs_graph")


# The entries of a header that the functions above write.
COMMON = (
    "class", "fishergraph", "params", "n_features_in", "feature_names_in", "structure_seed", "structural",
    "needs_graph",
)  # fmt: skip
