"""The command line as a test calls it: the exit code, the one line of a failure, and the run record."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from fishergraph.cli import app

_runner = CliRunner()


def call(*arguments):
    return _runner.invoke(app, [str(argument) for argument in arguments])


def ok(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def besides_reading(stderr):
    """The lines on stderr but those that tell what was read."""
    return [line for line in stderr.splitlines() if not line.startswith(("read ", "columns: "))]


def fails(folder, pattern, *arguments):
    """The call ends with exit code 1 and one line that matches, and the folder holds what it held before."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    result = call(*arguments)
    assert result.exit_code == 1, result.output
    assert re.search(pattern, result.stderr), result.stderr
    lines = besides_reading(result.stderr)
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def wrong(pattern, *arguments):
    """The call ends with exit code 2 and a message that matches."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    text = re.sub(r"\s+", " ", re.sub(r"[│╭╮╰╯─]", " ", result.stderr))
    assert re.search(pattern, text), result.stderr


def record_of(path: Path) -> dict:
    return json.loads(path.with_name(path.name + ".run.json").read_text())
