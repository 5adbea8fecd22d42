"""Text files of columns: separator, header, comments, encoding and packing, found in the first lines or as asked for.

The columns are read by Arrow. A file with comments between its lines, or with runs of blanks between its columns, is
cleaned as it is read.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.csv as pacsv

from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.archives import Unpacked, check_columns, check_packed
from fishergraph.io.cells import MISSING, bare_name, distinct_names
from fishergraph.io.files import Advance, check_readable, check_text, count_nothing, unreadable
from fishergraph.io.memory import check_text_fits
from fishergraph.io.text_options import ANY_TEXT, TextOptions
from fishergraph.io.text_streams import CHUNK, MARKS, Cleaned, Raw, check_magic, open_bytes

# Suffixes of text files, and the separator that a suffix promises.
TEXTS = {".csv": ",", ".tsv": "\t", ".txt": "", ".edges": "", ".el": "", ".edgelist": ""}
PACKED = {"": "", ".gz": "gzip", ".zst": "zstd"}
TEXT_SUFFIXES = {text + packed: text for text in TEXTS for packed in PACKED}
_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "blank": " ", "bar": "|"}
_WORDS = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "blanks", "|": "bars"}
_SAMPLE = 1 << 16  # bytes of the first lines
_LONGEST = 1 << 24  # bytes of the first line
_LINES = 100  # lines that are looked at
_COMMENT = ("#", "%")
OVERLAP = 20  # bytes that two pieces of text share, for what a cut would hide
_TABLES = (".csv", ".tsv")  # whose ids may begin with the mark of a comment


class Lines(NamedTuple):
    """The first lines of a text file.

    rows : the cells of the first lines of data, the names among them if there are any.
    comments : the lines before them.
    separator, kind : what separates the columns; the suffix of a text file, without that of its packing.
    """

    rows: list[list[str]]
    comments: list[str]
    separator: str
    kind: str

    @property
    def fields(self) -> list[str]:
        """The cells of the first line."""
        return self.rows[0]

    @property
    def above(self) -> list[str]:
        """The cells of the comment above them, if there are as many."""
        found = cells_of(self.comments[-1].lstrip("#% \t"), self.separator) if self.comments else []
        return [name.strip() for name in found] if len(found) == len(self.fields) else []


class Layout(Protocol):
    """What the first line of a file may be."""

    @property
    def least(self) -> int:
        """The fewest columns."""
        ...

    def is_header(self, cells: list[str], below: list[str]) -> bool:
        """Whether a first line that begins as a comment does is that of the names; `below` is the next line."""
        ...

    def header(self, path: Path, lines: Lines) -> tuple[list[str] | None, tuple[bool, ...], list[str]]:
        """The names of the columns if the first line is data, whether they hold numbers, and what to say of them."""
        ...


class _OtherWidths:
    """Keeps the lines with another number of columns, and lets Arrow go on behind them."""

    def __init__(self, lines: list[str]):
        self._lines = lines

    def __call__(self, row: Any) -> str:
        self._lines.append(row.text)
        return "skip"


def _wait_until_gone(handler: weakref.ref[_OtherWidths], most: float = 5.0) -> None:
    """Wait for the threads that still parse after an error: they abort a process that ends meanwhile."""
    end = time.monotonic() + most
    while handler() is not None and time.monotonic() < end:
        time.sleep(0.001)


@dataclass(frozen=True)
class TextTable:
    """A text file of columns whose first lines were read.

    `header` are the names of the columns if the first line is data, else None; `fields` are those of the first line.

    packing : "gzip", "zstd" or "".
    encoding : that of the text.
    skip : lines before the names, or before the data.
    clean : whether comments and runs of blanks are removed as it is read.
    numbers : of a file without header, whether a column holds numbers.
    kept_marks : whether ids may begin with the mark of a comment, as in a CSV or TSV file.
    found : what was found in the first lines, in words.
    decimals : the columns with decimal commas, in the last reading.
    """

    path: Path
    separator: str
    header: list[str] | None
    fields: list[str]
    names: list[str]
    advance: Advance = count_nothing
    packing: str = ""
    encoding: str = "utf-8"
    skip: int = 0
    clean: bool = False
    numbers: tuple[bool, ...] = ()
    kept_marks: bool = False
    found: tuple[str, ...] = ()
    decimals: list[str] = field(default_factory=list, repr=False)
    _ragged: list[str] = field(default_factory=list, repr=False)

    def read(self) -> pa.Table:
        """The table as Arrow infers it, which is fast; raises ArrowInvalid if a type changes late."""
        return self._read(pacsv.ParseOptions(delimiter=self.separator), pacsv.ConvertOptions())

    def read_words(self, chosen: list[int], *, only: bool = False, missing: Iterable[str] = MISSING) -> pa.Table:
        """The table with some columns as text, or `only` these columns; unquoted words in `missing` are null."""
        columns = [(self.header or self.fields)[k] for k in chosen]
        convert = pacsv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns if only else [],
            null_values=list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        table = self._read(pacsv.ParseOptions(delimiter=self.separator, newlines_in_values=True), convert)
        return table.rename_columns([self.names[k] for k in chosen] if only else self.names)

    def _read(self, parse: pacsv.ParseOptions, convert: pacsv.ConvertOptions) -> pa.Table:
        skip = 0 if self.clean else self.skip
        options = pacsv.ReadOptions(block_size=CHUNK, column_names=self.header, skip_rows=skip)
        self._ragged.clear()
        handler = _OtherWidths(self._ragged)
        parse.invalid_row_handler, handled = handler, weakref.ref(handler)
        del handler
        with open_bytes(self.path, self.packing, self.encoding, self.advance) as stream:
            source: Any = Cleaned(stream, self.skip, blanks=self.separator == " ") if self.clean else stream
            try:
                return pacsv.read_csv(source, options, parse, convert)
            finally:
                parse.invalid_row_handler = None
                _wait_until_gone(handled)

    @property
    def ragged(self) -> list[str]:
        """The lines with another number of columns, in the last reading."""
        return self._ragged

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found in the file, in words."""
        commas = f"decimal commas in {', '.join(self.decimals[:5])}{', …' * (len(self.decimals) > 5)}"
        return (*self.found, *([commas] if self.decimals else []))

    def pieces(self) -> Iterator[bytes]:
        """The text between two line ends, in pieces that overlap."""
        with open_bytes(self.path, self.packing, self.encoding) as stream:
            before = b"\n"
            while chunk := stream.read(CHUNK):
                piece = before + chunk
                yield piece
                before = piece[-OVERLAP:]
            yield before + b"\n"

    def cleaned(self) -> TextTable:
        """The same file, to be read without comments and runs of blanks."""
        return replace(self, clean=True, decimals=[], _ragged=[])

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The number of every line of data, counted from 1, and its cells."""
        with open_bytes(self.path, self.packing, self.encoding) as stream:
            text = io.TextIOWrapper(io.BufferedReader(Raw(stream), _SAMPLE), "utf-8", errors="replace", newline="")
            for _ in range(self.skip):
                text.readline()
            reader = csv.reader(text, delimiter=self.separator)
            skip_names, line = self.header is None, 0
            for cells in reader:
                first, line = line + 1, reader.line_num
                if self.clean and self.separator == " ":
                    cells = [cell for cell in " ".join(cells).replace("\t", " ").split(" ") if cell]
                if not cells or (self.clean and cells[0].startswith(_COMMENT)):
                    continue
                if skip_names:
                    skip_names = False
                    continue
                yield self.skip + first, cells

    def lines(self, rows: Sequence[int]) -> list[int]:
        """The lines of rows of the table."""
        wanted, found = set(rows), {}
        width = len(self.names)
        kept = (line for line, cells in self.records() if len(cells) == width)
        for row, line in enumerate(kept):
            if row in wanted:
                found[row] = line
                if len(found) == len(wanted):
                    break
        return [found.get(row, -1) for row in rows]

    def lines_if_readable(self, rows: Sequence[int]) -> list[int] | None:
        """The lines of rows; None if the file cannot be read any more."""
        try:
            return self.lines(rows)
        except (OSError, ValueError, pa.ArrowException):
            return None

    def other_widths(self) -> tuple[int, list[tuple[int, int]]]:
        """How many lines have another number of columns, and the first five with theirs."""
        bad = [(line, len(cells)) for line, cells in self.records() if len(cells) != len(self.names)]
        return len(bad), bad[:5]


# --- the first lines ------------------------------------------------------------------------------------


def open_text(
    path: Path, suffix: str, layout: Layout, options: TextOptions = ANY_TEXT, advance: Advance = count_nothing
) -> TextTable:
    """A text file of columns, of which the first lines are read."""
    head = check_readable(path)
    kind = TEXT_SUFFIXES[suffix]
    packing = PACKED[suffix.removeprefix(kind)]
    check_text_fits(path, packed=bool(packing))
    encoding = _encoding(path, head, packing, options.encoding)
    lines = _first_lines(path, packing, encoding, head)
    data = [line for line in lines if line.strip() and not line.startswith(_COMMENT)]
    skip = next((k for k, line in enumerate(lines) if line.strip() and not line.startswith(_COMMENT)), len(lines))
    notes = [] if encoding in ("utf-8", "utf-8-sig") else [f"encoding {encoding}"]
    usual = TEXTS[kind]
    below = cells_of(data[0], usual) if data else []
    if lines and kind in _TABLES and skip and layout.is_header(cells_of(lines[0], usual), below):
        skip, data = 0, [line for line in lines if line.strip()]  # a name that begins with "#"
    elif skip and any(line.strip() for line in lines[:skip]):
        notes.append(f"{skip} line{'s' if skip > 1 else ''} of comments")
    if not data:
        raise FileFormatError(path=path, reason="it has no line of data", advice="name another file")
    separator = _separator(data, usual, options.separator, layout.least)
    if separator != usual:
        notes.append(f"separated by {_WORDS.get(separator, repr(separator))}")
    clean = separator == " " and any(re.search(r"^\s|\s\s|\t|\s$", line) for line in data[:_LINES])
    rows = [cells_of(" ".join(line.split()) if clean else line, separator) for line in data[:_LINES]]
    check_columns(len(rows[0]), f"'{path}'")
    if len(rows[0]) < layout.least:
        reason = f"it must have two columns or more, got the first line {data[0][:60]!r}"
        advice = "name the separator with separator= (--separator), or name another file"
        raise FileFormatError(path=path, line=skip + 1, reason=reason, advice=advice)
    header, numbers, note = layout.header(path, Lines(rows, lines[:skip], separator, kind))
    names = distinct_names(path, [bare_name(name) for name in header or rows[0]])
    return TextTable(
        path, separator, header, rows[0], names, advance,
        packing=packing, encoding=encoding, skip=skip, clean=clean, numbers=numbers,
        kept_marks=kind in _TABLES, found=(*notes, *note),
    )  # fmt: skip


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of one line."""
    return next(csv.reader([line], delimiter=separator or ","), [])


def _encoding(path: Path, head: bytes, packing: str, asked: str | None) -> str:
    """The encoding of the byte-order mark, else the one that was asked for, else UTF-8."""
    if asked is not None:
        try:
            codecs.getincrementaldecoder(asked)
            "".encode(asked)
        except (LookupError, TypeError, ValueError, AssertionError):
            expected, advice = "be an encoding that Python knows", "such as latin-1, cp1252 or utf-16"
            raise InputError(parameter="encoding", value=asked, expected=expected, advice=advice) from None
    if packing:
        check_magic(path, packing, head)
        check_packed(path, packing)
        try:
            with path.open("rb") as raw:
                head = Unpacked(raw, packing, len(head)).read(4096)
        except OSError as error:
            raise unreadable(path, head, error) from error
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), asked or "utf-8")


def _first_lines(path: Path, packing: str, encoding: str, head: bytes) -> list[str]:
    """The first complete lines of a file."""
    if not packing and encoding in ("utf-8", "utf-8-sig"):
        if _looks_wide(head):
            reason = "it is text in UTF-16 without a byte-order mark, or no text"
            advice = "pass encoding='utf-16-le' (--encoding utf-16-le), or write it as UTF-8"
            raise FileFormatError(path=path, reason=reason, advice=advice)
        check_text(path, head, zipped=False)
    try:
        with open_bytes(path, packing, encoding) as stream:
            sample = data = b""
            while (len(sample) < _SAMPLE or (b"\n" not in sample and len(sample) < _LONGEST)) and (
                data := stream.read(_SAMPLE)
            ):
                sample += data
            ended = not data
    except (pa.ArrowException, OSError, EOFError, FileFormatError, UnicodeError) as error:
        raise unreadable(path, head, error) from error
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(sample, final=ended)
    except UnicodeDecodeError as error:
        raise not_utf8(path, sample[: error.start].count(b"\n") + 1, sample[error.start]) from None
    if "\0" in text:
        raise unreadable(path, head, "it is not text")
    if text.lstrip().startswith("<"):
        raise unreadable(path, b"<", "it is not text")
    lines = re.split(r"\r\n|\r|\n", text)
    if ended and lines[-1:] == [""]:
        lines.pop()
    return lines if ended or len(lines) == 1 else lines[:-1]


def _looks_wide(head: bytes) -> bool:
    """Whether every other byte of the beginning is zero."""
    return len(head) > 3 and (not any(head[1:40:2]) or not any(head[0:40:2])) and any(head)


def not_utf8(path: Path, line: int | None, byte: int | None = None) -> FileFormatError:
    """The error for text in an encoding that is not known."""
    what = "" if byte is None else f" (byte 0x{byte:02x})"
    advice = "pass encoding='latin-1' (--encoding) if it was written in that, or convert it: iconv -f latin1 -t utf-8"
    return FileFormatError(path=path, line=line, reason=f"it is not text in UTF-8{what}", advice=advice)


def first_bad_line(file: TextTable) -> FileFormatError:
    """The error for the first line that is not UTF-8."""
    line = 1
    with open_bytes(file.path, file.packing, file.encoding) as stream:
        for text in io.BufferedReader(Raw(stream), _SAMPLE):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError as error:
                return not_utf8(file.path, line, text[error.start])
            line += 1
    return not_utf8(file.path, None)


def _separator(data: list[str], usual: str, asked: str | None, least: int) -> str:
    """The separator that was asked for, that of the suffix if the first line has it, or the most regular one."""
    first, lines = data[0], data[:_LINES]
    if asked is not None:
        word = _SEPARATORS.get(asked.lower() if isinstance(asked, str) else "", asked)
        if not isinstance(word, str) or len(word) != 1 or word in '"\r\n#%' or ord(word) > 127:
            expected = f"be one character, or one of {', '.join(_SEPARATORS)}"
            raise InputError(parameter="separator", value=asked, expected=expected)
        if least > 1 or word in first:  # a table of nodes may have one column
            return word
    # Names of columns have blanks: they separate those of a CSV file of edges alone.
    marks = "\t,;| " if least > 1 or not usual else "\t,;|"
    possible = [one for one in marks if one in first.strip()]
    widths = {one: _width(lines, one) for one in possible}
    regular = [one for one in possible if widths[one] > 1]
    if usual and usual in first:
        others = [one for one in regular if one not in (usual, " ") and widths[one] >= widths[usual]]
        decimals = usual == "," and all(re.search(r"\d,\d", line) for line in lines[1:] or lines)
        return others[0] if others and others[0] != usual and (widths[usual] < 2 or decimals) else usual
    return (*regular, *possible, usual or " ")[0]


def _width(lines: list[str], separator: str) -> int:
    """How many cells all lines have; 0 if they differ."""
    counts = {len(line.split()) if separator == " " else len(cells_of(line, separator)) for line in lines}
    return counts.pop() if len(counts) == 1 else 0
