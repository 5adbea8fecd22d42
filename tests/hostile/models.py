"""Mutated model files and checkpoints: an error of ours, or a finite result. The same bits where nothing was changed.

Small models of every kind are fitted once per process. A case takes the bytes of one, changes them, loads the file and
uses the model.
"""

from __future__ import annotations

import copy
import json
import struct
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph.io.array_file import _checksum
from hostile import model_kinds, network_models, probe_models
from hostile.rule import Fault

MODELS = {**model_kinds.MODELS, **network_models.MODELS, **probe_models.MODELS}


@cache
def _saved(name: str) -> tuple[bytes, Callable[[Path], Any], Callable[[Any], Any], Any]:
    """(the bytes of the file, load, use, what the unchanged file gives)."""
    model, use = MODELS[name]()
    path = Path("model.safetensors")
    model.save(path)
    data = path.read_bytes()
    load = type(model).load
    return data, load, use, use(load(path))


def prepare() -> None:
    """Fit all models now, so that no case takes longer than the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODELS:
            _saved(name)


# --- files as pieces ---------------------------------------------------------------------------------------

Pieces = tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]  # metadata, the model's header, arrays
_KINDS = {"F16": np.float16, "F32": np.float32, "F64": np.float64}
_KINDS |= {"U8": np.uint8, "I32": np.int32, "I64": np.int64, "U64": np.uint64}


def _taken_apart(data: bytes) -> Pieces:
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        raw = data[8 + size + first : 8 + size + last]
        arrays[name] = np.frombuffer(raw, _KINDS[entry["dtype"]]).reshape(entry["shape"]).copy()
    return metadata, json.loads(metadata["model"]), arrays


def _put_together(pieces: Pieces) -> bytes:
    """The file of these pieces, consistent in itself, with its checksum."""
    from safetensors.numpy import save

    metadata, model, arrays = pieces
    metadata = {**metadata, "model": model if isinstance(model, str) else json.dumps(model)}
    if "checksum" in metadata:
        metadata["checksum"] = _checksum(metadata["model"], arrays)
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    return save(arrays, metadata={str(key): str(value) for key, value in metadata.items()})


# --- mutations: (rng, bytes) → bytes -----------------------------------------------------------------------


def _flip(rng: np.random.Generator, data: bytes) -> bytes:
    """Bits of the header or of the data."""
    size = struct.unpack("<Q", data[:8])[0]
    low, high = (0, 8 + size) if rng.random() < 0.5 else (8 + size, len(data))
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        out[int(rng.integers(low, high))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def _cut(rng: np.random.Generator, data: bytes) -> bytes:
    """A file that ends early, or late."""
    if rng.random() < 0.2:
        return data + bytes(int(rng.integers(1, 64)))
    return data[: int(rng.integers(len(data)))]


def _splice(rng: np.random.Generator, data: bytes) -> bytes:
    """A part of the file over another one."""
    out, size = bytearray(data), int(rng.integers(1, 200))
    first, second = (int(rng.integers(max(len(data) - size, 1))) for _ in range(2))
    out[first : first + size] = data[second : second + size]
    return bytes(out)


def _declare(rng: np.random.Generator, data: bytes) -> bytes:
    """Shapes, types and places that the header of the file declares and the data do not have."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    entry = header[_pick(rng, [name for name in header if name != "__metadata__"])]
    shape = entry["shape"]
    entry["shape"] = _pick(
        rng, [[10**9, *shape[1:]], [2**62], [-1], [], [0], [1.5], ["4"], None, shape[::-1], [*shape, 1]]
    )
    if rng.random() < 0.3:
        entry["dtype"] = _pick(rng, ["F64", "I8", "BF16", "F8_E4M3", "BOOL", "U16", "C64", "nothing", 3])
    if rng.random() < 0.3:
        entry["data_offsets"] = _pick(rng, [[0, 2**63], [8, 0], [-1, 4], [0], None])
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def _numbers(rng: np.random.Generator, pieces: Pieces) -> Pieces:
    """Values that no model has learned, or others than it has."""
    metadata, model, arrays = pieces
    name = _pick(rng, list(arrays))
    array = arrays[name]
    if array.size == 0:
        return pieces
    where = rng.random(array.shape) < _pick(rng, [0.05, 0.5, 1.1])
    where.reshape(-1)[int(rng.integers(array.size))] = True
    values = [np.nan, np.inf, -np.inf, 0, -1, 1e30, -1e30, 1e-30, 1e300, 3.0, 1e-45, float(rng.normal())]
    with np.errstate(all="ignore"):
        if rng.random() < 0.5:
            array[where] = np.asarray(_pick(rng, values), dtype=np.float64).astype(array.dtype)
        else:
            array[where] = (
                array[where].astype(np.float64) * _pick(rng, [-1, 0, 1.5, 1e10, 1e-10, 1e20, 1e-20])
            ).astype(array.dtype)
    return metadata, model, arrays


def _shapes(rng: np.random.Generator, pieces: Pieces) -> Pieces:
    """Arrays of other shapes, types and names, in a file that is consistent."""
    metadata, model, arrays = pieces
    name = _pick(rng, list(arrays))
    array = arrays[name]
    how = int(rng.integers(8))
    if how == 0:
        other = _pick(rng, list(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif how == 1:
        arrays[f"{name}x"] = arrays.pop(name)
    elif how == 2:
        del arrays[name]
    elif how == 3:
        arrays[_pick(rng, ["extra", "stack.layer9.anchors", "stack.input.scale", "stack.layer1.fisher_root", ""])] = (
            array
        )
    elif how == 4 and array.ndim:
        axis = int(rng.integers(array.ndim))
        arrays[name] = np.concatenate([array] * 2, axis=axis) if rng.random() < 0.5 else array.take([0], axis=axis)
    elif how == 5 and array.ndim:
        arrays[name] = _pick(rng, [array[None], array.reshape(-1), array[..., :0], array[0], array.T])
    else:
        kind = _pick(rng, [np.float16, np.float64, np.float32, np.int64, np.uint8, np.int32, bool])
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(kind)
    return metadata, model, arrays


_STRANGE = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    10**9,
    10**30,
    -(2**70),
    1e300,
    1e-300,
    -1.5,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "kmeans",
    "identity",
    "neighbourhood",
    "cuda",
    "\0",
    "é" * 50,
    [],
    [1],
    [None],
    {},
    {"kind": "Hops"},
    {"kind": "Paths", "length": 10**9},
    {"kind": "PageRank", "members": 2**70},
    {"kind": "nothing"},
    {"kind": ["EM"]},
    {"kind": "DiagonalMixture", "power": "x"},
    {"kind": "EM", "n_iter": 2},
    {"kind": "EM", "nothing": 2},
    {"kind": "Walk", "teleport": {"kind": "Walk"}},
    {"kind": "Readout", "family": {"kind": "EM"}},
    {"kind": "FisherEmbedding"},
    {"kind": "FisherEmbedding", "dim": -1},
    {"kind": "FisherGraphEmbedding"},
    {"kind": "MultinomialMixture", "following": {"kind": "MultinomialMixture"}},
    {"kind": "Device", "name": "tpu"},
    [[1, 2], [3]],
    "a" * 5000,
    {"a": {"b": 1}},
]


def _json(rng: np.random.Generator, pieces: Pieces) -> Pieces:
    """Another value, a key more or a key less, somewhere in the header."""
    metadata, model, arrays = pieces
    model = copy.deepcopy(model)
    place: Any = model
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = _pick(rng, keys)
        if isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        how = rng.random()
        if how < 0.1:
            del place[key]
        elif how < 0.2 and isinstance(place, dict):
            place[_pick(rng, ["extra", "n_layers", "family", "kind", "variance"])] = _pick(rng, _STRANGE)
        elif how < 0.4:
            place[key] = _moved(rng, place[key])
        else:
            place[key] = _pick(rng, _STRANGE)
        break
    return metadata, model, arrays


def _moved(rng: np.random.Generator, value: Any) -> Any:
    """A value near the one that it was."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return _pick(rng, [value + 1, value - 1, -value, value * 2, value * 1e6, value / 1e6, str(value), float(value)])
    if isinstance(value, str):
        return value[:-1]
    if isinstance(value, list):
        return value[::-1] + value[:1]
    return [value]


def _meta(rng: np.random.Generator, pieces: Pieces) -> Pieces:
    """Another format, version, checksum, or a header that is no object."""
    metadata, model, arrays = pieces
    strange = ["", "0", "1", "2", "-1", "1e9", "9" * 5000, "fishergraph-model", "fishergraph-checkpoint", "x" * 1000]
    headers = ["[" * 100_000, "{}", "[]", "3", "nan", '"x"', "null", "9" * 10_000, '{"class": ' * 5000, "{'a': 1}"]
    if rng.random() < 0.5:
        return metadata, _pick(rng, headers), arrays
    key = _pick(rng, [*metadata, "checksum", "extra"])
    if rng.random() < 0.3:
        metadata.pop(key, None)
    else:
        metadata[key] = _pick(rng, strange)
    return metadata, model, arrays


BYTES = {"flip": _flip, "cut": _cut, "splice": _splice, "declare": _declare}
PIECES = {"numbers": _numbers, "shapes": _shapes, "json": _json, "meta": _meta}


def _pick(rng: np.random.Generator, choices: list) -> Any:
    return choices[int(rng.integers(len(choices)))]


def make(seed: int) -> tuple[str, Callable[[], Any]]:
    """(label, action): one model, one mutation, with or without a checksum that fits."""
    rng = np.random.default_rng(seed)
    name, how = _pick(rng, list(MODELS)), _pick(rng, [*BYTES, *PIECES, "numbers", "shapes", "json"])
    label = f"{name}: {how}"
    data, load, use, expected = _saved(name)
    if how in BYTES:
        # Without its checksum, a file must be told by its content alone.
        metadata, model, arrays = _taken_apart(data)
        bare = rng.random() < 0.5
        if bare:
            metadata.pop("checksum", None)
        whole = _put_together((metadata, model, arrays)) if bare else data
        mutated = BYTES[how](rng, whole)
        untouched = mutated == whole
    else:
        pieces = _taken_apart(data)
        before = _put_together(copy.deepcopy(pieces))
        mutated = _put_together(PIECES[how](rng, pieces))
        untouched, bare = mutated == before, True

    def action() -> Any:
        path = Path(f"case{zlib.crc32(label.encode())}.safetensors")
        path.write_bytes(mutated)
        try:
            found = use(load(path))
        finally:
            path.unlink(missing_ok=True)
        if (untouched or not bare) and not _same(found, expected):
            raise Fault("another result from a file whose checksum should have told")
        return found

    return label, action


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two, strict=True))
    return bool(np.array_equal(np.asarray(one), np.asarray(two)))


prepare()
