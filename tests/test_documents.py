"""The Python blocks of README and docs run, each document in one namespace of its own.

A comment ``<!-- not run: reason -->`` on the line before a block leaves it out.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?<![\w./<-])[\w-]+(?:/[\w-]+)*\.(?:py|md|csv|jsonl|toml)\b")
TREES = ("src", "tests", "docs", "benchmarks", "tools", "examples", "results")
FILES = [path.as_posix() for tree in TREES for path in (ROOT / tree).rglob("*")]
FILES += [path.as_posix() for path in ROOT.iterdir()]
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """A fenced block of Python: its first line in the document, its code, and whether it is run."""

    line: int
    code: str
    runs: bool


def python_blocks(text: str) -> list[Block]:
    """The fenced blocks of a document that are marked as Python."""
    lines = text.splitlines()
    blocks, start = [], None
    for number, line in enumerate(lines):
        if start is None and line.startswith("```python"):
            start = number + 1
        elif start is not None and line.startswith("```"):
            marked = start >= 2 and NOT_RUN.fullmatch(lines[start - 2]) is not None
            blocks.append(Block(start + 1, "\n".join(lines[start:number]), not marked))
            start = None
    assert start is None, "a block is not closed"
    return blocks


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocks = python_blocks(document.read_text(encoding="utf-8"))
    if any("torch" in block.code or "fishergraph.nn" in block.code for block in blocks if block.runs):
        pytest.importorskip("torch_geometric")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": document.stem}
    for block in blocks:
        padded = "\n" * (block.line - 1) + block.code
        code = compile(padded, os.fspath(document), "exec")  # a block that is not run must still be Python
        if block.runs:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                exec(code, namespace)


def test_tables_of_accuracies_come_from_their_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report = importlib.import_module("report_vectors")
    written = report.PAGE.read_text(encoding="utf-8").split(report.BEGIN)[1].split(report.END)[0]
    assert written == report.tables(), "run python benchmarks/report_vectors.py"


def test_a_block_is_left_out_by_its_comment_alone():
    text = "```python\na\n```\n<!-- not run: no data -->\n```python\nb\n```\n<!-- not run: -->\n```python\nc\n```\n"
    assert python_blocks(text) == [Block(2, "a", True), Block(6, "b", False), Block(10, "c", True)]


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
