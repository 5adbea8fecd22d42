"""CSV and TSV files: their first line, the whole of them by way of Arrow, and how the numbers in them are written."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from fishergraph import _archive_checks
from fishergraph._npz_files import SUFFIXES

MISSING = frozenset(pacsv.ConvertOptions().null_values)  # what stands for a missing value: nothing, NA, NaN, null, …
_CHUNK = 1 << 24  # bytes that are read at once
_BOM = b"\xef\xbb\xbf"
# What may stand before the first digit of a number, and behind its last one.
_STARTS = np.frombuffer(b',\t\n\r" -+', np.uint8)
_ENDS = np.frombuffer(b',\t\n\r" ', np.uint8)
# A hexadecimal number, which Arrow takes for an integer, and the most bytes it can have with its neighbours.
_HEX, _HEX_BYTES = re.compile(rb'(?<=[\s,"])0[xX][0-9a-fA-F]{1,16}(?=[\s,"])'), 20
# (the path, the fields of the first line) → the names of the columns, where that line is data
Header = Callable[[Path, list[str]], list[str] | None]


@dataclass(frozen=True)
class TextFile:
    """A CSV or TSV file whose first line was read."""

    path: Path
    zipped: bool
    mark: str  # between the fields
    header: list[str] | None  # the names of the columns, where the first line is data
    fields: list[str]  # of the first line
    names: list[str]  # of the columns

    @classmethod
    def open(cls, path: Path, suffix: str, header: Header) -> TextFile:
        """The file at a path; its names are those of its first line, or of `header` where that line is data."""
        zipped, mark = suffix.endswith(".gz"), SUFFIXES[suffix]
        if zipped:
            _archive_checks.check_gzip(path)
        with gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig") as file:
            fields = next((fields for fields in csv.reader(file, delimiter=mark) if fields), [])
        _archive_checks.check_columns(len(fields), f"'{path}'")
        _check_separator(path, fields, mark)
        given = header(path, fields)
        names = distinct_names(path, [_bare(name) for name in given or fields])
        return cls(path, zipped, mark, given, fields, names)

    def read(self) -> pa.Table:
        """The table as Arrow understands it, which is quick; raises ArrowInvalid where a type changes late."""
        return self._read(pacsv.ParseOptions(delimiter=self.mark), pacsv.ConvertOptions())

    def read_words(self, places: list[int], *, only: bool = False, missing: Iterable[str] = MISSING) -> pa.Table:
        """The table (of these columns `only`) with some columns as text; bare words in `missing` are null."""
        columns = [(self.header or self.fields)[place] for place in places]
        convert = pacsv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns if only else [],
            null_values=list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        table = self._read(pacsv.ParseOptions(delimiter=self.mark, newlines_in_values=True), convert)
        return table.rename_columns([self.names[place] for place in places] if only else self.names)

    def _read(self, parse: pacsv.ParseOptions, convert: pacsv.ConvertOptions) -> pa.Table:
        options = pacsv.ReadOptions(block_size=_CHUNK, column_names=self.header)
        return pacsv.read_csv(self.path, options, parse, convert)

    def pieces(self) -> Iterator[bytes]:
        """The text between two line ends, in pieces that overlap as much as a hexadecimal number is long."""
        with gzip.open(self.path) if self.zipped else self.path.open("rb") as file:
            start = file.read(len(_BOM))
            before = b"\n" if start == _BOM else b"\n" + start
            while chunk := file.read(_CHUNK):
                piece = before + chunk
                yield piece
                before = piece[-_HEX_BYTES:]
            yield before + b"\n"


def _bare(name: str) -> str:
    """The name of a column without blanks around it, and without quotes that were none for the blanks before them."""
    bare = name.strip()
    return bare[1:-1] if name[:1].isspace() and len(bare) > 1 and bare[0] == bare[-1] == '"' else bare


def distinct_names(path: Path, names: list[str]) -> list[str]:
    """The names of columns as they came; raises where two are the same."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"column names must differ, got {repeated[0][:60]!r} twice in '{path}'; rename one.")
    return names


def _check_separator(path: Path, fields: list[str], mark: str) -> None:
    """Raise where a line is one field that another separator would cut."""
    if len(fields) == 1 and any(other in fields[0] for other in ",;\t|"):
        named = {",": "commas", "\t": "tabs"}[mark]
        raise ValueError(
            f"'{path}' must have its columns separated by {named}, got the first line {fields[0][:60]!r}; "
            "replace the separators, or name a file of commas .csv and one of tabs .tsv."
        )


def loses_zeros(file: TextFile) -> bool:
    """Whether some integer is written with a zero or a sign that it would lose, as 007 and -0 are."""
    for piece in file.pieces():
        text = np.frombuffer(piece, np.uint8)
        zeros = np.flatnonzero(text[1:-1] == ord("0"))
        before, behind = text[zeros], text[zeros + 2]
        longer = ((behind >= ord("0")) & (behind <= ord("9"))) | (behind | 32 == ord("x"))
        if np.isin(before[longer], _STARTS).any() or np.isin(behind[before == ord("-")], _ENDS).any():
            return True
    return False


def has_hex(file: TextFile) -> bool:
    """Whether there is a hexadecimal number, which Arrow takes for an integer."""
    return any(_has_hex(piece) for piece in file.pieces())


def _has_hex(text: bytes) -> bool:
    # The first tests are quick, and few files pass them.
    likely = (b"x" in text and b"0x" in text) or (b"X" in text and b"0X" in text)
    return likely and _HEX.search(text) is not None
