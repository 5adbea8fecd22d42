"""The run record: a JSON file beside the output that says what was done, with what, and how long it took."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from fishergraph._version import package_versions
from fishergraph.io.files import replacing

FORMAT = 1


def record_path(output: Path) -> Path:
    """Where the record of an output stands: beside it, with .run.json at the end."""
    return output.with_name(output.name + ".run.json")


class Clock:
    """When the work started, and the seconds of each stage."""

    def __init__(self):
        self.started = datetime.now(UTC)
        self.begin = perf_counter()
        self.seconds: dict[str, Any] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self.seconds[name] = round(perf_counter() - start, 4)

    def total(self) -> float:
        """The seconds since the start."""
        return round(perf_counter() - self.begin, 4)


def surroundings(clock: Clock) -> dict[str, Any]:
    """The part of a record that is the same for every command."""
    return {
        "record_format": FORMAT,
        "command": shlex.join(["fishergraph", *sys.argv[1:]]),
        "folder": os.getcwd(),
        "started": clock.started.isoformat(timespec="seconds"),
        "versions": package_versions(),
        "machine": {"platform": platform.platform(), "cpus": os.cpu_count()},
    }


def plain(value: Any) -> Any:
    """A value as JSON has it; a NumPy number is a number, and anything else its text."""
    return value.item() if hasattr(value, "item") else str(value)


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write the record; the file appears whole or not at all."""
    text = json.dumps(record, indent=2, ensure_ascii=False, default=plain)
    with replacing(path) as part:
        # The name of a folder may hold bytes that are no text; their escapes are JSON's.
        part.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
