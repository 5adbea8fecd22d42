"""A run of a command: its progress, its seconds, and the record of it, a JSON file beside the output."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fishergraph._version import package_versions
from fishergraph.cli.console import Bar, one_line_warnings
from fishergraph.cli.options import wrong_call
from fishergraph.io.files import replacing

if TYPE_CHECKING:
    from fishergraph.cli.jobs import Job

FORMAT = 1


def record_path(output: Path) -> Path:
    """Return the path of the record of an output: beside it, with .run.json at the end."""
    return output.with_name(output.name + ".run.json")


class Run:
    """A run: its start, the seconds of its stages, its progress bar, and the facts that the command records."""

    def __init__(self, *, quiet: bool):
        self.started = datetime.now(UTC)
        self.begin = perf_counter()
        self.seconds: dict[str, Any] = {}
        self.bar = Bar(quiet=quiet)
        self.facts: dict[str, Any] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        start = perf_counter()
        yield
        self.seconds[name] = round(perf_counter() - start, 4)

    def total(self) -> float:
        """Return the seconds since the start."""
        return round(perf_counter() - self.begin, 4)


@contextmanager
def chosen_engine(job: Job) -> Iterator[None]:
    """Compute by the engine of a job, if it names one."""
    with ExitStack() as stack:
        if job.engine is not None:
            from fishergraph.config import config_context

            with wrong_call("--engine"):
                stack.enter_context(config_context(engine=job.engine))
        yield


@contextmanager
def recorded(job: Job) -> Iterator[Run]:
    """Run a command with its engine, if one is named, and write the record of its output at the end."""
    run = Run(quiet=job.quiet)
    with ExitStack() as stack:
        warned = stack.enter_context(one_line_warnings())
        stack.enter_context(chosen_engine(job))
        with run.bar:
            yield run
        run.seconds["total"] = run.total()
        record = {
            "record_format": FORMAT,
            "command": shlex.join(["fishergraph", *sys.argv[1:]]),
            "folder": os.getcwd(),
            "started": run.started.isoformat(timespec="seconds"),
            "versions": package_versions(),
            "machine": {"platform": platform.platform(), "cpus": os.cpu_count()},
            "config": job.config,
            **run.facts,
            "engine": job.engine,
            "warnings": warned,
            "seconds": run.seconds,
        }
        text = json.dumps(record, indent=2, ensure_ascii=False, default=_plain)
        with replacing(record_path(job.output)) as part:
            # The name of a folder may hold bytes that are not text; their escapes are JSON's.
            part.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def _plain(value: Any) -> Any:
    """A NumPy number as a number, and anything else that JSON does not have as text."""
    return value.item() if hasattr(value, "item") else str(value)


def parameters_of(estimator: Any, *leave: str) -> dict[str, Any]:
    """Return the parameters of an estimator for a record, with the options of its components."""
    return {name: value for name, value in estimator.get_params().items() if name not in ("verbose", *leave)}
