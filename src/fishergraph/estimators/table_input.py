"""Tables as rows: complete numbers of one scale as they are, others by a `TableEncoder` that the estimator keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._arrays import as_floats, check_column_names
from fishergraph._typing import MatrixLike
from fishergraph._warn import ColumnsWarning, warn
from fishergraph.io.spreads import needs_scale, notes_of_numbers
from fishergraph.io.vectors import expand_vectors

if TYPE_CHECKING:
    from fishergraph.tables import TableEncoder


class TypeEncoders(dict[str, Any]):
    """The encoders of the tables of several types of nodes, by type; a type of complete numbers has none."""

    def pack_into(self, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """The header's entry of a model file."""
        return {"types": {one: encoder.pack_into(f"{name}.{one}", arrays) for one, encoder in self.items()}}

    def get_feature_names_out(self) -> dict[str, np.ndarray]:
        """The names of the columns after the encoding, by type."""
        return {name: encoder.get_feature_names_out() for name, encoder in self.items()}


def fit_table(table: MatrixLike) -> tuple[TableEncoder | None, Any]:
    """The encoder of a table and its rows; None, and the table, if it has complete numbers of one scale, or vectors."""
    from fishergraph.tables import TableEncoder, needs_encoder

    if not needs_encoder(table) and not needs_scale(table):
        table = numeric_table(table)
        _warn_of_numbers(table)
        return None, table
    encoder = TableEncoder()
    return encoder, encoder.fit_transform(table)


def fit_members(table: MatrixLike) -> tuple[TableEncoder | None, Any]:
    """The encoder of the rows of a long table and these rows; none for numbers, which the input map scales."""
    from fishergraph.tables import TableEncoder, needs_encoder

    if not needs_encoder(table):
        return None, table
    encoder = TableEncoder()
    return encoder, encoder.fit_transform(table)


def read_table(table: MatrixLike, encoder: TableEncoder | None) -> Any:
    """The rows of a table for a model that was fitted with this encoder, or with numbers."""
    return numeric_table(table) if encoder is None else encoder.transform(table)


def numeric_table(table: MatrixLike) -> Any:
    """A table of numbers with distinct names, and a column for every entry of a vector."""
    table = expand_vectors(table)
    check_column_names(table)
    return table


def _warn_of_numbers(table: MatrixLike) -> None:
    """Warn once of columns of numbers that are constant, ids, or nearly all of the length of the rows."""
    from fishergraph.tables.columns import column_names

    notes = notes_of_numbers(column_names(table), as_floats(table, "X").astype(np.float64, copy=False))
    if notes:
        text = (
            f"{'; '.join(note.text for note in notes)}. Drop what says nothing; if units differ, put the columns on "
            "one scale, as TableEncoder().fit_transform(X) does."
        )
        warn(ColumnsWarning(text, columns=tuple(dict.fromkeys(name for note in notes for name in note.columns))))


def names_of_features(model: object) -> np.ndarray | None:
    """The names of the columns of X, after the encoding of a table; None if they have none."""
    encoder = getattr(model, "encoder_", None)
    return getattr(model, "feature_names_in_", None) if encoder is None else encoder.get_feature_names_out()
