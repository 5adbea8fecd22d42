"""`TableEncoder`: a table with words, dates and gaps as rows of numbers, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config  # pyright: ignore[reportPrivateUsage]
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from fishergraph._arrays import is_table
from fishergraph._errors import InputError, InputTypeError
from fishergraph._repr import short_params
from fishergraph._validation import check_host_memory, check_integer, look_up, nearest
from fishergraph._warn import ColumnsWarning, SchemaWarning, each_warning_once, warn
from fishergraph.tables.columns import Column, as_columns, as_matrix, column_names
from fishergraph.tables.decide import KINDS
from fishergraph.tables.faults import Faults
from fishergraph.tables.learning import each_column, encode, learn, notes_of
from fishergraph.tables.pack import pack_encoder, read_encoder, write_encoder
from fishergraph.tables.record import Encoded, Record, Sizes
from fishergraph.tables.schema import Schema, SchemaColumn

T = TypeVar("T")
_DENSE = 0.2  # rows with a larger share of entries that are not zero are dense


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with words, dates and missing values into rows of numbers.

    Every column has a kind, which its type and its cells tell: "number" (a robust spread), "boolean", "category" (a
    column for each value that at least two rows have, and one for the others; hashed columns if there are very many),
    "date" (age, and the cycles of year, week and day), "text" (words in hashed columns, weighted by how rare they
    are), "tags" (lists of words, or words between semicolons or bars) and "vector" (lists of numbers of one length).
    If values are missing, a further column says where.

    No column dominates by its unit: its part of a row has the mean squared length one at most. Numbers are measured
    from their median in robust standard deviations and cut at ±3. What most rows share counts little: a category of a
    share p of the rows is √(1 − p), a flag 2(x − p).

    Columns that say nothing are left aside, with a warning: those of one value or none, and ids.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        The kinds of some columns by name, in place of those that the encoder would choose.
    drop : sequence of str, default=()
        Columns that are not used.
    max_categories : int, default=256
        The most values of a category, or tags, that have columns of their own; more are hashed.
    n_hashed : int, default=256
        The number of columns that hashed values, and the words of a text, share.
    sparse : bool, optional
        Return a CSR array, or a dense one. None is a CSR array if fewer than a fifth of the entries of the fit are
        not zero.

    Attributes
    ----------
    schema_ : Schema
        What became of every column; prints as a small table.
    unseen_ : dict
        By column, how many cells of the last `transform` held a category that the fit did not know, or were missing
        though none was in the fit.
    sparse_ : bool
        Whether rows are returned as a CSR array.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of str
        Their names, if the table had names.

    See Also
    --------
    fishergraph.FisherEmbedding : Encodes a table by itself.

    Examples
    --------
    >>> from fishergraph.datasets import load_tables
    >>> from fishergraph.tables import TableEncoder
    >>> flights = load_tables("flights")
    >>> encoder = TableEncoder(drop=["id", "year", "model", "speed"])
    >>> encoder.fit_transform(flights.nodes["planes"]).shape
    (3322, 30)
    >>> encoder.schema_
    column        type    kind      outputs  learned
    id            string  —               0  dropped
    year          int64   —               0  dropped
    type          string  category        4  3 values: Fixed wing multi eng, Fixed wing single en, Rotorc
    manufacturer  string  category       17  16 values: AIRBUS, AIRBUS INDUSTRIE, AMERICAN AIRCRAFT IN, …
    model         string  —               0  dropped
    engines       int64   number          1  median 2, spread 0.1176
    seats         int64   number          1  median 149, spread 31.13
    speed         int64   —               0  dropped
    engine        string  category        7  6 values: 4 Cycle, Reciprocating, Turbo-fan, …
    """

    schema_: Schema
    unseen_: dict[str, int]
    sparse_: bool
    records_: tuple[Record, ...]

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        max_categories: int = 256,
        n_hashed: int = 256,
        sparse: bool | None = None,
    ):
        self.kinds = kinds
        self.drop = drop
        self.max_categories = max_categories
        self.n_hashed = n_hashed
        self.sparse = sparse

    __repr__ = short_params

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the kinds of the columns and their scales.

        Parameters
        ----------
        X : table, or array of shape (n_rows, n_columns)
            A pandas, Polars or pyarrow table. The columns of an array are numbers, called x0, x1, ….
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        TableEncoder
            The fitted encoder.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fit, and return the rows.

        Parameters
        ----------
        X, y : table, ignored
            See `fit`.

        Returns
        -------
        array or CSR array of shape (n_rows, n_outputs), float32
            The rows.
        """
        return self._rows(*self._fit(X))

    @each_warning_once()
    def transform(self, X: Any) -> Any:
        """Return the rows of a table with the columns of the fit, in any order.

        Parameters
        ----------
        X : table
            See `fit`. Columns that the fit did not have are left aside, with a warning.

        Returns
        -------
        array or CSR array of shape (n_rows, n_outputs), float32
            The rows.
        """
        check_is_fitted(self)
        X, faults = _as_table(X), Faults()
        columns = self._matched(X, faults)
        pairs = [(record, columns[record.name]) for record in self.records_ if record.name in columns]
        encoded = each_column(faults, [record.name for record, _ in pairs], pairs, lambda pair: encode(*pair))
        faults.raise_all("have the columns of the fit", "pass the table of the fit, or fit again")
        self._count_unseen({record.name: found.unseen for (record, _), found in zip(pairs, encoded, strict=True)})
        return self._rows(encoded, X.shape[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the outputs, such as age, "age missing" and "team=red".

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        names: dict[str, None] = {}
        for name in (name for record in self.records_ for name in record.outputs):
            while name in names:  # of another column
                name += "'"
            names[name] = None
        return np.array(list(names), dtype=object)

    def pack_into(self, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the encoder as JSON for the header of a model file.

        Parameters
        ----------
        name : str
            What the names of its arrays begin with.
        arrays : dict
            Takes its arrays.

        Returns
        -------
        dict
            The entry that `fishergraph.tables.pack.unpack_encoder` reads.
        """
        return pack_encoder(self, name, arrays)

    def save(self, path: str | Path) -> None:
        """Write the fitted encoder to one safetensors file.

        Parameters
        ----------
        path : str or path
            The file; it appears complete or not at all.
        """
        check_is_fitted(self)
        write_encoder(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an encoder that `save` wrote; it gives the same bits.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        TableEncoder
            The fitted encoder.
        """
        return read_encoder(path, cls)

    # --- fit ---------------------------------------------------------------------------------------------

    @each_warning_once()
    def _fit(self, X: Any) -> tuple[list[Encoded], int]:
        """Learn; returns the rows of every column, and their number."""
        sizes, kinds, drop = self._settings()
        X, faults = _as_table(X), Faults()
        if is_table(X):
            _check_named([*kinds, *drop], column_names(X), faults)
        columns = [column for column in as_columns(X, faults) if column.name not in drop]
        names = [column.name for column in columns]
        learned = each_column(faults, names, columns, lambda column: learn(column, kinds.get(column.name), sizes))
        faults.raise_all()
        validate_data(self, X, reset=True, skip_check_array=True)
        self.records_ = tuple(found.record for found in learned if found.record is not None)
        entries = dict(zip(names, (found.entry for found in learned), strict=True))
        every = column_names(X) if is_table(X) else names
        types = _types(X, every)
        dropped = {name: SchemaColumn(name, types[name], None, 0, "dropped") for name in every}
        notes = notes_of(learned)
        schema = tuple(entries.get(name, dropped[name]) for name in every)
        self.schema_ = Schema(schema, tuple(note for _, note in notes))
        self.unseen_ = {}
        if not self.records_:
            raise _nothing_left(self.schema_, X.shape[0])
        encoded = [found.encoded for found in learned if found.encoded is not None]
        self.sparse_ = _is_sparse(encoded) if self.sparse is None else self.sparse
        self._tell(tuple(name for name, _ in notes))
        return encoded, X.shape[0]

    def _settings(self) -> tuple[Sizes, dict[str, str], list[str]]:
        """The parameters, validated."""
        if isinstance(self.drop, str) or not all(isinstance(name, str) for name in self.drop):
            raise InputError(parameter="drop", value=self.drop, expected="be a list of names of columns")
        if self.kinds is not None and not isinstance(self.kinds, Mapping):
            raise InputTypeError(parameter="kinds", value=self.kinds, expected="be a dict from columns to kinds")
        kinds = dict(self.kinds or {})
        for name, kind in kinds.items():
            look_up(KINDS, kind, f"the kind of the column {name!r}")
        if self.sparse not in (None, True, False):
            raise InputError(parameter="sparse", value=self.sparse, expected="be True, False or None")
        categories = check_integer(self.max_categories, "max_categories", least=1, most=2**20)
        return Sizes(categories, check_integer(self.n_hashed, "n_hashed", least=1, most=2**20)), kinds, list(self.drop)

    def _tell(self, cut: tuple[str, ...]) -> None:
        """Warn once of columns that are left aside, cut, or partly read."""
        aside = [column for column in self.schema_.aside if column.learned != "dropped"]
        notes = [f"{column.name!r} is left aside ({column.learned})" for column in aside]
        if notes or cut:
            text = f"{'; '.join([*notes, *self.schema_.notes])}. To use a column otherwise, name its kind."
            warn(ColumnsWarning(text, columns=(*(column.name for column in aside), *cut)))

    # --- transform ---------------------------------------------------------------------------------------

    def _matched(self, X: Any, faults: Faults) -> dict[str, Column]:
        """The columns of a table by name, where they are those of the fit."""
        if not is_table(X):
            if hasattr(self, "feature_names_in_"):
                names = vars(self)["feature_names_in_"].tolist()
                got = f"{type(X).__name__} without names"
                expected = f"be a table with the columns {', '.join(map(repr, names[:4]))}{', …' * (len(names) > 4)}"
                raise InputTypeError(parameter="X", expected=expected, got=got)
            validate_data(self, X, reset=False, skip_check_array=True)
        wanted = {record.name for record in self.records_}
        columns = {column.name: column for column in as_columns(X, faults)}
        known = {column.name for column in self.schema_.columns}
        broken = {name for name, _ in faults.found}
        faults.found = [fault for fault in faults.found if fault[0] in wanted]  # others are not read
        for column in self.schema_.used:
            if column.name not in columns and column.name not in broken:
                faults.add(column.name, f"is missing (a {column.kind} in the fit)")
        new = [name for name in (column_names(X) if is_table(X) else ()) if name not in known]
        if new and not faults.found:
            text = (
                f"the columns {', '.join(map(repr, new[:5]))}{', …' * (len(new) > 5)} are left aside: the fit had none."
            )
            warn(SchemaWarning(text, kind="new columns", columns=tuple(new)))
        return columns

    def _count_unseen(self, unseen: dict[str, int]) -> None:
        """Remember what the fit did not know, and warn of it."""
        found = {name: count for name, count in unseen.items() if count}
        self.unseen_ = found
        if found:
            shown = ", ".join(f"{name!r} in {count:,} rows" for name, count in list(found.items())[:5])
            text = f"values that the fit did not know count as others or missing: {shown}."
            warn(SchemaWarning(text, kind="unseen values", columns=tuple(found)))

    def _rows(self, encoded: list[Encoded], n_rows: int) -> Any:
        """The blocks of all columns side by side."""
        blocks = [block for found in encoded for block in found.blocks]
        if self.sparse_ and _get_output_config("transform", self)["dense"] == "default":
            return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr", dtype=np.float32))
        width = sum(block.shape[1] for block in blocks)
        advice = "keep rows sparse with sparse=True, or write the table as numbers and use fishergraph ingest"
        check_host_memory(4 * n_rows * width, "the rows of the table take", "as dense numbers", advice)
        rows, first = np.zeros((n_rows, width), np.float32), 0
        for block in blocks:
            if sp.issparse(block):
                at = np.repeat(np.arange(n_rows), np.diff(block.indptr))
                rows[at, first + block.indices] = block.data
            else:
                rows[:, first : first + block.shape[1]] = block
            first += block.shape[1]
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _is_sparse(encoded: list[Encoded]) -> bool:
    blocks = [block for found in encoded for block in found.blocks]
    cells = sum(block.shape[0] * block.shape[1] for block in blocks)
    filled = sum(block.nnz if sp.issparse(block) else int(np.count_nonzero(block)) for block in blocks)
    return filled < _DENSE * cells


def _check_named(named: list[str], names: list[str], faults: Faults) -> None:
    """Remember names of columns that the table does not have."""
    for name in named:
        if name not in names:
            alike = " or ".join(map(repr, nearest(name, names)))
            faults.add(name, "is not a column of the table" + (f" (but {alike} is)" if alike else ""))


def _types(X: Any, names: list[str]) -> dict[str, str]:
    """The types of the columns of a table by name."""
    if not is_table(X):
        return dict.fromkeys(names, "")
    kinds = X.schema.types if hasattr(X, "column_names") else list(X.dtypes)
    return {name: str(kind) for name, kind in zip(names, kinds, strict=True)}


def _as_table(X: Any) -> Any:
    """A table as it is; anything else as a matrix of numbers."""
    if sp.issparse(X):
        raise InputTypeError(
            parameter="X",
            expected="be a table or a dense array",
            got="a sparse matrix",
            advice="sparse features need no encoding; pass them as they are",
        )
    return X if is_table(X) else as_matrix(X)


def _nothing_left(schema: Schema, n_rows: int) -> InputError:
    reasons = [f"{column.name!r} ({column.learned})" for column in schema.columns[:6]]
    more = ", …" if len(schema.columns) > 6 else ""
    return InputError(
        parameter="X",
        expected="have a column that tells rows apart",
        got=f"{n_rows:,} sample{'s' * (n_rows != 1)} of {', '.join(reasons)}{more}",
        advice="add columns, or leave X out to use the edges alone",
    )
