"""`Listing`: columns of one length with names, as text, as HTML and as a DataFrame; the records are made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._optional import require

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 20  # rows of a text or an HTML table
_WIDEST = 40  # characters of a cell


class Listing:
    """Columns of one length, by name.

    Parameters
    ----------
    columns : mapping of str to array
        The columns, in order.

    Attributes
    ----------
    columns : dict of str to array
        The same.

    See Also
    --------
    Similarity : A record that consists of listings.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.explain import Listing
    >>> print(Listing({"node": np.array(["ann", "bob"]), "value": np.array([0.5, -0.25])}))
    node  value
    ann     0.5
    bob   -0.25
    """

    def __init__(self, columns: Mapping[str, np.ndarray]):
        self.columns = {name: np.asarray(column) for name, column in columns.items()}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> np.ndarray:
        """The column of that name."""
        return self.columns[name]

    def take(self, rows: Any) -> Listing:
        """Return some rows.

        Parameters
        ----------
        rows : slice, mask or array of int
            The rows, as NumPy takes them.

        Returns
        -------
        Listing
            These rows of every column.
        """
        return Listing({name: column[rows] for name, column in self.columns.items()})

    def to_pandas(self) -> Any:
        """Return the columns as a pandas DataFrame, with their types.

        Returns
        -------
        DataFrame
            A row per row; it needs pandas.
        """
        require("pandas", extra="pandas")
        import pandas

        return pandas.DataFrame({name: _plain(column) for name, column in self.columns.items()})

    def to_arrow(self) -> pa.Table:
        """Return the columns as an Arrow table.

        Returns
        -------
        pyarrow.Table
            A row per row.
        """
        import pyarrow as pa

        return pa.table({name: column.tolist() for name, column in self.columns.items()})

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain values, for JSON.

        Returns
        -------
        dict of str to list
            A list for each column; None stands for NaN.
        """
        return {name: plain(column) for name, column in self.columns.items()}

    def __repr__(self) -> str:
        return f"Listing({len(self):,} rows: {', '.join(self.columns)})"

    def __str__(self) -> str:
        return lines(self)

    def _repr_html_(self) -> str:
        return html(self)


class Listed(ABC):
    """A record that prints as one line and the first rows of its `listing`."""

    @abstractmethod
    def listing(self) -> Listing:
        """Return the rows of the record."""

    def __str__(self) -> str:
        return f"{self!r}\n{lines(self.listing())}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{html(self.listing())}"

    def to_pandas(self) -> Any:
        """Return the listing as a pandas DataFrame.

        Returns
        -------
        DataFrame
            The columns of `listing`, with their types.
        """
        return self.listing().to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the listing as an Arrow table.

        Returns
        -------
        pyarrow.Table
            The columns of `listing`.
        """
        return self.listing().to_arrow()


def lines(listing: Listing, most: int = _SHOWN) -> str:
    """The first rows in aligned columns; numbers are set right."""
    cells = {name: [name, *map(cell, column[:most].tolist())] for name, column in listing.columns.items()}
    right = {name: column.dtype.kind in "iuf" for name, column in listing.columns.items()}
    widths = {name: max(map(len, entries)) for name, entries in cells.items()}
    rows = []
    for k in range(min(len(listing), most) + 1):
        line = (
            entries[k].rjust(widths[n]) if right[n] else entries[k].ljust(widths[n]) for n, entries in cells.items()
        )
        rows.append("  ".join(line).rstrip())
    return "\n".join([*rows, *_more(len(listing), most)])


def html(listing: Listing, most: int = _SHOWN) -> str:
    """The first rows as an HTML table; every text is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in listing)
    body = []
    for k in range(min(len(listing), most)):
        cells = (escape(cell(column[k : k + 1].tolist()[0])) for column in listing.columns.values())
        body.append("<tr>" + "".join(f"<td>{text}</td>" for text in cells) + "</tr>")
    more = "".join(f"<p>{text}</p>" for text in _more(len(listing), most))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}"


def _more(n_rows: int, most: int) -> list[str]:
    return [f"… and {n_rows - most:,} more"] if n_rows > most else []


def cell(value: object) -> str:
    """A value in a few characters on one line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _plain(column: np.ndarray) -> Any:
    """A column as pandas takes it: one of several axes becomes one of rows."""
    return column if column.ndim == 1 else list(column)


def strongest(values: np.ndarray) -> np.ndarray:
    """The order of values by size, the largest first; equal ones stay in their order."""
    return np.argsort(-np.abs(values), kind="stable")


def plain(values: np.ndarray) -> list[Any]:
    """An array as nested lists of plain values; None stands for NaN."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.isnan(array).any():
        missing, array = np.isnan(array), array.astype(object)
        array[missing] = None
    return array.tolist()
