"""The Python blocks of README and docs run, each document in one namespace of its own.

A comment on the line before a block says what else is expected of it: ``<!-- not run: reason -->`` leaves it out,
``<!-- raises: InputError -->`` and ``<!-- warns: FishergraphWarning -->`` want an error or a warning of that type,
whose message is the block of text that follows.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest

from alone import call_alone
from fishergraph import FisherEmbedding
from fishergraph._errors import FishergraphError, FishergraphWarning

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
EXPECTED = re.compile(r"<!-- (raises|warns): (\w+) -->")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?<![\w./<-])[\w-]+(?:/[\w-]+)*\.(?:py|md|csv|jsonl|toml)\b")
TREES = ("src", "tests", "docs", "benchmarks", "tools", "examples", "results")
FILES = [path.as_posix() for tree in TREES for path in (ROOT / tree).rglob("*")]
FILES += [path.as_posix() for path in ROOT.iterdir()]
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """A fenced block of Python.

    `line` is its first line in the document, `expected` the type of an error or a warning, `message` its text.
    """

    line: int
    code: str
    runs: bool
    expected: str = ""
    message: str = ""


def fenced(text: str) -> Iterator[tuple[int, str, str, str]]:
    """The number, the language, the content of every fenced block, and the line before it."""
    lines = text.splitlines()
    start, mark = None, ""
    for number, line in enumerate(lines):
        if start is None and line.startswith("```"):
            start, mark = number + 1, line
        elif start is not None and line.startswith("```"):
            before = lines[start - 2] if start >= 2 else ""
            yield start + 1, mark[3:], "\n".join(lines[start:number]), before
            start = None
    assert start is None, "a block is not closed"


def python_blocks(text: str) -> list[Block]:
    """The fenced blocks of a document that are marked as Python."""
    found, blocks = list(fenced(text)), []
    for place, (line, language, code, before) in enumerate(found):
        if language != "python":
            continue
        expected = EXPECTED.fullmatch(before)
        message = ""
        if expected:
            _, kind, message, _ = found[place + 1]
            assert kind == "text", f"the block in line {line} needs its message in a block of text after it"
        name = expected[2] if expected else ""
        blocks.append(Block(line, code, NOT_RUN.fullmatch(before) is None, name, " ".join(message.split())))
    return blocks


def run_block(block: Block, code: CodeType, namespace: dict[str, object]) -> None:
    """Run a block, and compare the error or the warning that it announces."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(code, namespace)
            happened: list[Any] = [one.message for one in caught]
        except FishergraphError as error:
            happened = [error]
    ours = [one for one in happened if isinstance(one, (FishergraphError, FishergraphWarning))]
    seen = [(type(one).__name__, " ".join(str(one).split())) for one in ours]
    if block.expected:
        assert (block.expected, block.message) in seen, f"the block in line {block.line} led to {seen}"
    else:
        assert not seen, f"the block in line {block.line} should not lead to {seen}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = document.read_text(encoding="utf-8")
    blocks = python_blocks(text)
    if any("torch" in block.code or "fishergraph.nn" in block.code for block in blocks if block.runs):
        pytest.importorskip("torch_geometric")
    monkeypatch.chdir(tmp_path)
    if 'memory="' in text:
        call_alone("test_documents", "run_blocks", document)
    else:
        run_blocks(document)


def run_blocks(document: Path) -> None:
    """Run the blocks of a document one after the other."""
    namespace: dict[str, object] = {"__name__": document.stem}
    for block in python_blocks(document.read_text(encoding="utf-8")):
        padded = "\n" * (block.line - 1) + block.code
        code = compile(padded, os.fspath(document), "exec")  # a block that is not run must still be Python
        if block.runs:
            run_block(block, code, namespace)


@pytest.mark.parametrize("script", ["report_vectors", "report_answers"])
def test_tables_of_accuracies_come_from_their_rows(script: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report = importlib.import_module(script)
    written = importlib.import_module("common").rows_in(report.PAGE)
    assert written == report.tables(), f"run python benchmarks/{script}.py"


@pytest.mark.parametrize("script", ["report_em", "report_performance"])
def test_tables_of_times_come_from_their_rows(script: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report, rows_in = importlib.import_module(script), importlib.import_module("common").rows_in
    for name, text in report.tables().items():
        assert rows_in(report.PAGE, name) == text, f"run python benchmarks/{script}.py"


def test_the_table_of_the_readme_and_those_of_anomalies_come_from_their_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    rivals, anomaly = (importlib.import_module(f"bench_{name}") for name in ("rivals", "anomaly"))
    written = importlib.import_module("common").rows_in(rivals.README)
    assert written == rivals.table(), "run python benchmarks/bench_rivals.py --report"
    page = anomaly.PAGE.read_text(encoding="utf-8").partition(anomaly.BEGIN)[2].partition(anomaly.END)[0]
    assert page == anomaly.tables(), "run python benchmarks/bench_anomaly.py --report"


def test_a_block_is_left_out_by_its_comment_alone():
    text = "```python\na\n```\n<!-- not run: no data -->\n```python\nb\n```\n<!-- not run: -->\n```python\nc\n```\n"
    assert python_blocks(text) == [Block(2, "a", True), Block(6, "b", False), Block(10, "c", True)]


EXPECTING = """\
<!-- raises: InputError -->
```python
FisherEmbedding(n_anchors=0).fit([[1, 2]])
```
```text
{}
```
"""


def test_an_announced_message_is_compared():
    text = "n_anchors must be an integer\nof at least 1, got 0."
    (right,), (wrong,) = python_blocks(EXPECTING.format(text)), python_blocks(EXPECTING.format("n_anchors is wrong."))
    namespace: dict[str, object] = {"FisherEmbedding": FisherEmbedding}
    run_block(right, compile(right.code, "right", "exec"), namespace)
    with pytest.raises(AssertionError, match="led to"):
        run_block(wrong, compile(wrong.code, "wrong", "exec"), namespace)
    with pytest.raises(AssertionError, match="should not lead to"):
        run_block(right._replace(expected=""), compile(right.code, "right", "exec"), namespace)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path):
    """A path in backticks is that of a file, or its end, such as `choice.py` or `em/e_step.py`."""
    names = [name for code in CODE.findall(document.read_text(encoding="utf-8")) for name in FILE.findall(code)]
    missing = [name for name in names if not any(path.endswith(f"/{name}") for path in FILES)]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_exist(document: Path):
    text = document.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    assert not missing
