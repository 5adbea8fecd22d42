"""Text and Parquet files, read and written as Arrow tables."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import scipy.sparse as sp
from pyarrow.compute import call_function

from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.cells import are_numbers, as_integers, distinct_names
from fishergraph.io.faults import Locate, TableFault, no_lines, raise_faults
from fishergraph.io.files import Advance, check_readable, count_nothing, unreadable
from fishergraph.io.id_column import usual_id_column
from fishergraph.io.memory import check_parquet_fits
from fishergraph.io.npz import SUFFIXES
from fishergraph.io.parquet import BlockTable, MemoryBlocks, ParquetBlocks
from fishergraph.io.text_columns import Choice, load_text, load_words, ragged_faults
from fishergraph.io.text_options import ANY_TEXT, TextOptions
from fishergraph.io.text_table import TEXT_SUFFIXES, Lines, open_text

_READ_ERRORS = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error, FileFormatError)
# (path, fields of the first line) → the names of the columns, if that line is data
Header = Callable[[Path, list[str]], list[str] | None]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors in the block name the file, and what its first bytes look like."""
    head = check_readable(path)
    try:
        yield
    except _READ_ERRORS as error:
        raise unreadable(path, head, error) from error


class Opened(NamedTuple):
    """A table in a file.

    blocks : its rows.
    notes : what was found in a text file, in words.
    faults : what is wrong with its lines.
    locate : rows of the table → lines of a text file.
    """

    blocks: BlockTable
    notes: tuple[str, ...] = ()
    faults: tuple[TableFault, ...] = ()
    locate: Locate = no_lines


def open_rows(
    path: Path,
    suffix: str,
    header: Header,
    ids: Choice,
    advance: Advance = count_nothing,
    text: TextOptions = ANY_TEXT,
) -> Opened:
    """A text or Parquet file, or the nodes of a graph's; `ids(names)` hold ids, whose text is kept as written.

    Blanks around names and ids of a text file are removed. `advance(n)` is called with the bytes of a text file that
    were read.
    """
    if suffix in TEXT_SUFFIXES:
        file, table = load_text(open_text(path, suffix, TableLayout(header), text, advance), ids)
        faults = tuple(ragged_faults(file))
        return Opened(MemoryBlocks(table), file.notes, faults, file.lines_if_readable)
    if suffix not in SUFFIXES:
        from fishergraph.io.graph_files import read_graph_file

        return Opened(MemoryBlocks(read_graph_file(path, suffix, advance).nodes))
    with explained(path):
        blocks = ParquetBlocks(path)
        ids(distinct_names(path, blocks.schema.names))
        return Opened(blocks)


def open_table(path: Path, suffix: str, header: Header, ids: Choice, advance: Advance = count_nothing) -> BlockTable:
    """The table of `open_rows`; faults of its lines are raised."""
    opened = open_rows(path, suffix, header, ids, advance)
    raise_faults(opened.faults, str(path), opened.locate)
    return opened.blocks


def read_table(path: Path, suffix: str, header: Header, ids: Choice, advance: Advance = count_nothing) -> pa.Table:
    """All columns of a file, as `open_rows` describes them."""
    table = open_table(path, suffix, header, ids, advance)
    with explained(path) if suffix == ".parquet" else nullcontext():
        if suffix == ".parquet":
            check_parquet_fits(path)
        columns = table.columns(table.schema.names)
    if suffix == ".parquet":
        advance(path.stat().st_size)
    return columns


def column_names(path: Path, suffix: str, header: Header, text: TextOptions = ANY_TEXT) -> list[str]:
    """The names of the columns of a text or Parquet file."""
    if suffix == ".parquet":
        with explained(path):
            return pq.read_schema(path).names
    return open_text(path, suffix, TableLayout(header), text).names


def read_cells(
    path: Path, suffix: str, header: Header, wanted: Choice, text: TextOptions = ANY_TEXT
) -> dict[str, tuple[list[Any], list[str]]]:
    """Some columns of a text file: the cells (None if missing) and the words that mark missing cells, such as NA.

    A word in quotes is never missing. Cells are integers if all cells of a column are, each written as it is printed,
    else text.
    """
    file = open_text(path, suffix, TableLayout(header), text)
    table, words = load_words(file, wanted(file.names))
    cells = {}
    for name, column, text_column in zip(table.column_names, table.columns, words.columns, strict=True):
        column = as_integers(column)
        marks = {word.strip() for word in text_column.filter(column.is_null()).to_pylist()}
        cells[name] = (column.to_pylist(), sorted(marks - {""}))
    return cells


@dataclass(frozen=True)
class TableLayout:
    """The layout of a table with names above its columns.

    made : names the columns if the first line is data, or raises.
    """

    made: Header
    least: int = 1

    def is_header(self, cells: list[str], below: list[str]) -> bool:
        """Whether a line that begins as a comment does has a cell for each of the next line."""
        return 1 < len(cells) == len(below)

    def header(self, path: Path, lines: Lines) -> tuple[list[str] | None, tuple[bool, ...], list[str]]:
        """The names of the columns if the first line is data; `Layout.header` describes the others."""
        named = [usual_id_column(cells) is not None for cells in (lines.above, lines.fields)]
        if named == [True, False]:
            return lines.above, (), ["names from the comment above them"]
        return self.made(path, lines.fields), (), []


def edge_header(path: Path, fields: list[str]) -> list[str] | None:
    """Column names of an edge file whose first line is data, that is two or three numbers."""
    return ["source", "target", "weight"][: len(fields)] if are_numbers(fields) and 2 <= len(fields) <= 3 else None


def node_header(path: Path, fields: list[str]) -> None:
    """None; raises for a node file whose first line is data. The names 0, 1, 2, … are those of pandas."""
    if are_numbers(fields) and fields != [str(k) for k in range(len(fields))]:
        reason, advice = "a line of column names is expected, not of numbers", "add one, such as id,x0,x1"
        raise FileFormatError(path=path, line=1, reason=reason, advice=advice)


# --- writing --------------------------------------------------------------------------------------------

# Approximate bytes of a file per byte of the float32 numbers in it; 1 for other files.
_BYTES_PER_BYTE = {".csv": 2.6, ".tsv": 2.6, ".csv.gz": 1.2, ".tsv.gz": 1.2}
Column = Callable[[slice], Any]  # the values of some rows
CELLS = 1 << 25  # of a block of rows


class CountedFile:
    """An open file that calls `advance(n)` as it is written to, with the bytes of the numbers in it."""

    def __init__(self, file: IO[bytes], suffix: str, advance: Advance):
        self._file, self._advance, self._per_byte = file, advance, _BYTES_PER_BYTE.get(suffix, 1.0)

    def write(self, data: Any) -> int:
        written = self._file.write(data)
        self._advance(int(written / self._per_byte))
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def table_writer(file: Any, suffix: str, schema: pa.Schema) -> Iterator[Callable[[pa.Table], Any]]:
    """A function that writes rows of a CSV, TSV or Parquet table into an open file; rows of one call are one group."""
    with pa.output_stream(file, compression="gzip" if suffix.endswith(".gz") else None) as sink:
        if suffix == ".parquet":
            writer: Any = pq.ParquetWriter(sink, schema, **_parquet_options(schema))
        else:
            writer = pacsv.CSVWriter(sink, schema, write_options=pacsv.WriteOptions(delimiter=SUFFIXES[suffix]))

        def write(table: pa.Table) -> None:
            check_kept(suffix, table)
            writer.write_table(table, len(table))

        with writer:
            yield write


def _parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Floats that nearly all differ are stored as they are; other columns have dictionaries, and are compressed."""
    kinds = [kind.value_type if pa.types.is_fixed_size_list(kind) else kind for kind in schema.types]
    others = [name for name, kind in zip(schema.names, kinds, strict=True) if not pa.types.is_floating(kind)]
    return {"use_dictionary": others, "compression": dict.fromkeys(others, "snappy"), "write_statistics": others}


def write_table(
    file: Any, suffix: str, columns: Mapping[str, Column], n_rows: int, X: Any = None, names: Sequence[str] = ()
) -> None:
    """Write columns, then those of a matrix X, as one CSV, TSV or Parquet table into an open file.

    The table is made by blocks of rows, so that a memory-mapped or sparse X is never dense at once.
    """
    schema = _block(columns, slice(0, 1), X, names).schema
    step = max(CELLS // len(schema), 1)
    with table_writer(file, suffix, schema) as write:
        for start in range(0, n_rows, step):
            write(_block(columns, slice(start, min(start + step, n_rows)), X, names))


def _block(columns: Mapping[str, Column], rows: slice, X: Any, names: Sequence[str]) -> pa.Table:
    """Some rows of the table; masked values are null."""
    arrays = []
    for column in columns.values():
        values = column(rows)
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        arrays.append(pa.array(np.asarray(values), mask=mask))
    if X is not None:
        block = X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows])
        dtype = (
            np.dtype(np.float32) if block.dtype == np.float16 else block.dtype.newbyteorder("=")
        )  # CSV has no float16
        arrays += [pa.array(column) for column in np.ascontiguousarray(block.T, dtype=dtype)]
    return pa.table(arrays, names=[*columns, *names])


def check_kept(suffix: str, table: pa.Table) -> None:
    """Raise for text that a CSV or TSV file would change: `read_table` drops blanks around it."""
    if not SUFFIXES.get(suffix):  # not a text file
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        if str(column.type) not in ("string", "large_string"):
            continue
        bare = call_function("utf8_trim_whitespace", [column])
        changed = column.filter(call_function("not_equal", [bare, column]))
        if len(changed):
            expected = f"have no blanks around its words in a {suffix} file"
            advice = "remove them, or write a .parquet file"
            word = changed[0].as_py()
            raise InputError(parameter=f"column {name!r}", value=word, expected=expected, advice=advice)
