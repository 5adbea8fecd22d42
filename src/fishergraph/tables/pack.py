"""A fitted encoder as JSON and arrays: in the model file of an estimator, or in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._validation import check_flag
from fishergraph._version import __version__
from fishergraph.io.array_file import Kind, only, read_file, reading_model, write_file
from fishergraph.tables.decide import KINDS, RECORDS
from fishergraph.tables.record import Record
from fishergraph.tables.schema import Schema, SchemaColumn

ENCODER = Kind("fishergraph-encoder", "an encoder file", "TableEncoder.save")
_FIELDS = ("name", "type", "kind", "outputs", "learned")

Arrays = dict[str, np.ndarray]


def pack_encoder(encoder: Any, name: str, arrays: Arrays) -> dict[str, Any]:
    """The header's entry of a fitted encoder; its arrays, whose names begin with `name`, go to `arrays`."""
    params = encoder.get_params(deep=False)
    return {
        "params": {**params, "kinds": dict(params["kinds"] or {}), "drop": list(params["drop"])},
        "sparse": bool(encoder.sparse_),
        "named": hasattr(encoder, "feature_names_in_"),
        "schema": [[getattr(column, field) for field in _FIELDS] for column in encoder.schema_.columns],
        "notes": list(encoder.schema_.notes),
        "records": [record.pack(f"{name}.{k}", arrays) for k, record in enumerate(encoder.records_)],
    }


def unpack_encoder(entry: Any, name: str, arrays: Arrays, make: Any = None) -> Any:
    """The encoder that `pack_encoder` wrote, validated; `make` is its class."""
    if make is None:
        from fishergraph.tables.encoder import TableEncoder as make
    only(entry, ("params", "sparse", "named", "schema", "notes", "records"))
    params = only(entry["params"], make().get_params(deep=False))
    encoder = make(**{**params, "kinds": params["kinds"] or None, "drop": tuple(params["drop"])})
    encoder._settings()
    if not all(isinstance(note, str) for note in entry["notes"]):
        raise TypeError("notes that are no texts")
    schema = Schema(tuple(_column(column) for column in entry["schema"]), tuple(entry["notes"]))
    records = tuple(
        RECORDS[record["tag"]].unpack(record, f"{name}.{k}", arrays) for k, record in enumerate(entry["records"])
    )
    _check_match(schema, records)
    encoder.schema_, encoder.records_ = schema, records
    encoder.sparse_, encoder.unseen_ = check_flag(entry["sparse"], "sparse"), {}
    encoder.n_features_in_ = len(schema.columns)
    if check_flag(entry["named"], "named"):
        encoder.feature_names_in_ = np.array([column.name for column in schema.columns], dtype=object)
    return encoder


def _column(values: Any) -> SchemaColumn:
    name, kind, use, outputs, learned = values
    texts = all(isinstance(value, str) for value in (name, kind, learned))
    if not texts or (use is not None and use not in KINDS) or type(outputs) is not int:
        raise TypeError(f"{values!r} is not a column")
    return SchemaColumn(name, kind, use, outputs, learned)


def _check_match(schema: Schema, records: tuple[Record, ...]) -> None:
    """Raise unless the records are those of the columns that are used."""
    used = [(column.name, column.kind, column.outputs) for column in schema.used]
    if used != [(record.name, record.kind, len(record.outputs)) for record in records] or not records:
        raise ValueError("the columns of the encoder must be those of its records; get the file again.")


def write_encoder(path: str | Path, encoder: Any) -> None:
    """Write a fitted encoder to a file of its own."""
    arrays: Arrays = {}
    header = {"fishergraph": __version__, "encoder": pack_encoder(encoder, "encoder", arrays)}
    write_file(path, header, arrays, ENCODER)


def read_encoder(path: str | Path, make: Any) -> Any:
    """The encoder of a file; `make` is its class."""
    header, arrays = read_file(path, ENCODER)
    with reading_model(path):
        only(header, ("fishergraph", "encoder"))
        encoder = unpack_encoder(header["encoder"], "encoder", arrays, make)
        for left in arrays:
            raise KeyError(left)
    return encoder
