"""Tables as rows: complete numbers as they are, other columns by a `TableEncoder` that the estimator keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._arrays import as_floats, check_column_names
from fishergraph._typing import MatrixLike
from fishergraph._warn import ColumnsWarning, warn
from fishergraph.io.vectors import expand_vectors

if TYPE_CHECKING:
    from fishergraph.tables import TableEncoder

_SEVERAL, _DOMINATES = 3, 0.99  # columns, and the share of one of them that is worth a word


class TypeEncoders(dict[str, Any]):
    """The encoders of the tables of several types of nodes, by type; a type of complete numbers has none."""

    def pack_into(self, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """The header's entry of a model file."""
        return {"types": {one: encoder.pack_into(f"{name}.{one}", arrays) for one, encoder in self.items()}}

    def get_feature_names_out(self) -> dict[str, np.ndarray]:
        """The names of the columns after the encoding, by type."""
        return {name: encoder.get_feature_names_out() for name, encoder in self.items()}


def fit_table(table: MatrixLike) -> tuple[TableEncoder | None, Any]:
    """The encoder of a table and its rows; None, and the table, if its columns are complete numbers or vectors."""
    from fishergraph.tables import TableEncoder, needs_encoder

    if not needs_encoder(table):
        table = numeric_table(table)
        _warn_of_dominating(table)
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


def _warn_of_dominating(table: MatrixLike) -> None:
    """Warn if one of several columns of numbers is nearly all of the length of the rows."""
    from fishergraph.tables.columns import column_names

    rows = as_floats(table, "X").astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->j", rows, rows)
        share = squares / squares.sum() if len(squares) >= _SEVERAL else squares * 0
    if share.max(initial=0) > _DOMINATES:
        name = column_names(table)[int(share.argmax())]
        text = (
            f"the column {name!r} is {share.max():.1%} of the squared length of the rows, so the others hardly count. "
            "If units differ, put the columns on one scale, as TableEncoder().fit_transform(X) does."
        )
        warn(ColumnsWarning(text, columns=(name,)))


def names_of_features(model: object) -> np.ndarray | None:
    """The names of the columns of X, after the encoding of a table; None if they have none."""
    encoder = getattr(model, "encoder_", None)
    return getattr(model, "feature_names_in_", None) if encoder is None else encoder.get_feature_names_out()
