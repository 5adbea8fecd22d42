"""Text files of edges: separator, header, comments, encoding and packing, found in the first lines or as asked for.

The columns are read by Arrow. A file with comments between its lines, or with runs of blanks between its columns, is
cleaned as it is read.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.archives import Unpacked, check_columns, check_packed
from fishergraph.io.arrow import TextFile, are_numbers, distinct_names
from fishergraph.io.columns import check_edge_columns
from fishergraph.io.edge_columns import EdgeOptions
from fishergraph.io.files import Advance, check_readable, check_text, count_nothing, unreadable
from fishergraph.io.text_streams import CHUNK, MARKS, Cleaned, Raw, check_magic, open_bytes

# Suffixes of text files of edges, and the separator that a suffix promises.
TEXTS = {".csv": ",", ".tsv": "\t", ".txt": "", ".edges": "", ".el": "", ".edgelist": ""}
PACKED = {"": "", ".gz": "gzip", ".zst": "zstd"}
TEXT_SUFFIXES = {text + packed: text for text in TEXTS for packed in PACKED}
_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "blank": " ", "bar": "|"}
_WORDS = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "blanks", "|": "bars"}
_SAMPLE = 1 << 16  # bytes of the first lines
_LINES = 100  # lines that are looked at
_COMMENT = ("#", "%")


@dataclass(frozen=True)
class EdgeText(TextFile):
    """A text file of edges whose first lines were read; see `TextFile` for the first fields.

    packing : "gzip", "zstd" or "".
    encoding : that of the text.
    skip : lines before the names, or before the data.
    clean : whether comments and runs of blanks are removed as it is read.
    numbers : of a file without header, whether a column holds numbers.
    kept_marks : whether ids may begin with the mark of a comment, as in a CSV or TSV file.
    notes : what was found, in words.
    """

    packing: str = ""
    encoding: str = "utf-8"
    skip: int = 0
    clean: bool = False
    numbers: tuple[bool, ...] = ()
    kept_marks: bool = False
    notes: tuple[str, ...] = ()
    _ragged: list[str] = field(default_factory=list, repr=False)

    def _read(self, parse: pacsv.ParseOptions, convert: pacsv.ConvertOptions) -> pa.Table:
        skip = 0 if self.clean else self.skip
        options = pacsv.ReadOptions(block_size=CHUNK, column_names=self.header, skip_rows=skip)
        self._ragged.clear()
        parse.invalid_row_handler = self._other_width
        with open_bytes(self.path, self.packing, self.encoding, self.advance) as stream:
            source: Any = Cleaned(stream, self.skip, blanks=self.separator == " ") if self.clean else stream
            return pacsv.read_csv(source, options, parse, convert)

    def _other_width(self, row: Any) -> str:
        self._ragged.append(row.text)
        return "skip"

    @property
    def ragged(self) -> list[str]:
        """The lines with another number of columns, in the last reading."""
        return self._ragged

    def pieces(self) -> Iterator[bytes]:
        """The text between two line ends, in pieces that overlap by the length of a hexadecimal number."""
        with open_bytes(self.path, self.packing, self.encoding) as stream:
            before = b"\n"
            while chunk := stream.read(CHUNK):
                piece = before + chunk
                yield piece
                before = piece[-20:]
            yield before + b"\n"

    def cleaned(self) -> EdgeText:
        """The same file, to be read without comments and runs of blanks."""
        return replace(self, clean=True, _ragged=[])

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

    def other_widths(self) -> tuple[int, list[tuple[int, int]]]:
        """How many lines have another number of columns, and the first five with theirs."""
        bad = [(line, len(cells)) for line, cells in self.records() if len(cells) != len(self.names)]
        return len(bad), bad[:5]


# --- the first lines ------------------------------------------------------------------------------------


def open_edge_text(path: Path, suffix: str, options: EdgeOptions, advance: Advance = count_nothing) -> EdgeText:
    """A text file of edges, of which the first lines are read."""
    head = check_readable(path)
    kind = TEXT_SUFFIXES[suffix]
    packing = PACKED[suffix.removeprefix(kind)]
    encoding = _encoding(path, head, packing, options.encoding)
    lines = _first_lines(path, packing, encoding, head)
    data = [line for line in lines if line.strip() and not line.startswith(_COMMENT)]
    skip = next((k for k, line in enumerate(lines) if line.strip() and not line.startswith(_COMMENT)), len(lines))
    notes = [] if encoding in ("utf-8", "utf-8-sig") else [f"encoding {encoding}"]
    if lines and kind in (".csv", ".tsv") and skip and _names_edges(_cells(lines[0], TEXTS[kind])):
        skip, data = 0, [line for line in lines if line.strip()]  # a name that begins with "#"
    elif skip:
        notes.append(f"{skip} line{'s' if skip > 1 else ''} of comments")
    if not data:
        raise FileFormatError(path=path, reason="it has no line of data", advice="name another file")
    separator = _separator(path, data, TEXTS[kind], options.separator)
    if separator != TEXTS[kind]:
        notes.append(f"separated by {_WORDS.get(separator, repr(separator))}")
    clean = separator == " " and any(re.search(r"^\s|\s\s|\t|\s$", line) for line in data[:_LINES])
    rows = [_cells(" ".join(line.split()) if clean else line, separator) for line in data[:_LINES]]
    fields = rows[0]
    check_columns(len(fields), f"'{path}'")
    if len(fields) < 2:
        reason = f"it must have two columns or more, got the first line {data[0][:60]!r}"
        advice = "name the separator with separator= (--separator), or name another file"
        raise FileFormatError(path=path, line=skip + 1, reason=reason, advice=advice)
    header, numbers, note = _header(rows, lines[:skip], separator, kind, options)
    notes += note
    own = header or fields
    names = distinct_names(path, [name.strip().strip('"') if name != name.strip() else name for name in own])
    return EdgeText(
        path, packing == "gzip", separator, header, fields, names, advance,
        packing=packing, encoding=encoding, skip=skip, clean=clean, numbers=numbers,
        kept_marks=kind in (".csv", ".tsv"), notes=tuple(notes),
    )  # fmt: skip


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator or ","), [])


def _names_edges(fields: list[str]) -> bool:
    """Whether some cells are the names of the columns of an edge table."""
    try:
        check_edge_columns(fields)
    except InputError:
        return False
    return True


def _encoding(path: Path, head: bytes, packing: str, asked: str | None) -> str:
    """The encoding that was asked for, that of the byte-order mark, or UTF-8."""
    if asked is not None:
        try:
            codecs.getincrementaldecoder(asked)
            "".encode(asked)
        except (LookupError, TypeError, ValueError, AssertionError):
            expected, advice = "be an encoding that Python knows", "such as latin-1, cp1252 or utf-16"
            raise InputError(parameter="encoding", value=asked, expected=expected, advice=advice) from None
        return asked
    if packing:
        check_magic(path, packing, head)
        check_packed(path, packing)
        try:
            with path.open("rb") as raw:
                head = Unpacked(raw, packing, len(head)).read(4096)
        except OSError as error:
            raise unreadable(path, head, error) from error
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), "utf-8")


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
            sample = b""
            while len(sample) < _SAMPLE and (data := stream.read(_SAMPLE)):
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


def first_bad_line(file: EdgeText) -> FileFormatError:
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


def _separator(path: Path, data: list[str], usual: str, asked: str | None) -> str:
    """The separator that was asked for, that of the suffix if the first line has it, or the most regular one."""
    if asked is not None:
        word = _SEPARATORS.get(asked.lower() if isinstance(asked, str) else "", asked)
        if not isinstance(word, str) or len(word) != 1 or word in '"\r\n#%' or ord(word) > 127:
            expected = f"be one character, or one of {', '.join(_SEPARATORS)}"
            raise InputError(parameter="separator", value=asked, expected=expected)
        return word
    if usual and usual in data[0]:
        return usual
    possible = [one for one in "\t,;| " if one in data[0].strip()]
    regular = [one for one in possible if _regular(data[:_LINES], one)]
    return (*regular, *possible, usual or " ")[0]


def _regular(lines: list[str], separator: str) -> bool:
    """Whether all lines have the same number of cells, of at least two."""
    counts = {len(line.split()) if separator == " " else len(_cells(line, separator)) for line in lines}
    return len(counts) == 1 and counts.pop() > 1


def _header(
    rows: list[list[str]], comments: list[str], separator: str, kind: str, options: EdgeOptions
) -> tuple[list[str] | None, tuple[bool, ...], list[str]]:
    """The names of the columns of a file without header, whether they hold numbers, and what to say of them."""
    fields = rows[0]
    named = [str(value) for value in options.named.values()]
    by_name = bool(named) and all(name in [field.strip() for field in fields] for name in named)
    header = options.header
    if header is None and (are_numbers(fields) or kind not in (".csv", ".tsv")):
        others = [are_numbers(row) for row in rows[1:]]
        # Numbers below words have a header above them.
        header = by_name or _names_edges(fields) or (not are_numbers(fields) and bool(others) and all(others))
        header = header and not are_numbers(fields)
    if header or header is None:
        return None, (), []
    numbers = tuple(are_numbers([field]) for field in fields)
    above = [_cells(line.lstrip("#% \t"), separator) for line in comments[-1:]]
    if above and len(above[0]) == len(fields) and _names_edges(above[0]) and not are_numbers(above[0]):
        return [name.strip() for name in above[0]], (), ["names from the comment above them"]
    return [str(k + 1) for k in range(len(fields))], numbers, ["no header"]


def text_values(column: pa.ChunkedArray) -> bool:
    """Whether a column holds text."""
    return str(column.type) in ("string", "large_string")


def begins_with_mark(column: pa.ChunkedArray) -> bool:
    """Whether an id of a column looks like a comment."""
    if not text_values(column):
        return False
    from pyarrow.compute import MatchSubstringOptions, call_function

    marked = call_function("match_substring_regex", [column], MatchSubstringOptions(r"^\s*[#%]"))
    return call_function("any", [marked]).as_py() is True
