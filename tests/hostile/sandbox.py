"""Hostile cases in a child process: a crash or a hang ends the child, and is reported like any other fault.

A suite is a module of this folder with `make(seed)`, which returns (label, action). The same seed makes the same case.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

SECONDS = 10.0  # a case that takes longer hangs
START_SECONDS = 120.0  # what a worker may take to import everything
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Verdict:
    """What became of one case: "result", "refused" or "fault"."""

    suite: str
    seed: int
    label: str
    outcome: str
    seen: str


def run_suite(suite: str, seeds: Sequence[int], *, seconds: float = SECONDS, gigabytes: int = 6) -> Iterator[Verdict]:
    """Run the cases of these seeds one after the other, in as many workers as survive them."""
    left = list(seeds)
    while left:
        for verdict in _one_worker(suite, left, seconds, gigabytes):
            left = left[1:]
            yield verdict


def _one_worker(suite: str, seeds: list[int], seconds: float, gigabytes: int) -> Iterator[Verdict]:
    """The verdicts of one worker, up to its end or to the case that ended it."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        command = [sys.executable, str(_HERE / "worker.py"), suite, str(gigabytes), *map(str, seeds)]
        worker = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=folder, text=True, env=_environment()
        )
        lines: queue.Queue[str] = queue.Queue()
        assert worker.stdout is not None
        reader = Thread(target=_pass_on, args=(worker.stdout, lines), daemon=True)
        reader.start()
        label, done = "", 0
        try:
            if not lines.get(timeout=START_SECONDS):  # the worker is ready, or has ended before its first case
                errors.seek(0)
                raise RuntimeError(f"the suite {suite!r} cannot be imported: {errors.read()[-2000:].decode()}")
            while done < len(seeds):
                try:
                    line = lines.get(timeout=seconds)
                except queue.Empty:
                    yield Verdict(suite, seeds[done], label, "fault", f"hang: no answer within {seconds:g} s")
                    return
                if not line:
                    errors.seek(0)
                    last = errors.read()[-2000:].decode(errors="replace")
                    yield Verdict(suite, seeds[done], label, "fault", f"crash: exit code {worker.wait()}\n{last}")
                    return
                row = json.loads(line)
                label = row["label"]
                if "outcome" in row:
                    yield Verdict(suite, seeds[done], label, row["outcome"], row["seen"])
                    label, done = "", done + 1
        finally:
            worker.kill()
            worker.wait()


def _pass_on(stream, lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)
    lines.put("")


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONFAULTHANDLER": "1"}
