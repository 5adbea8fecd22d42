"""Kill a command at a random time, repeat it as it was, and compare what it leaves with an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from kills.commands_to_kill import COMMANDS, Killed

_HERE = Path(__file__).parent
SECONDS = 300.0  # a command that takes longer hangs


class Stage:
    """Commands in children that are forked from a process which has imported everything."""

    def __enter__(self) -> Stage:
        command = [sys.executable, str(_HERE / "stage.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_clean())
        self._answer()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.process.kill()
        self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, command: Killed, folder: Path, kill_after: float | None = None) -> int:
        """The exit code of a command; −9 where it was killed in time."""
        assert self.process.stdin is not None
        print(json.dumps({"folder": str(folder), "arguments": command.arguments}), file=self.process.stdin, flush=True)
        child = self._answer()
        with _killing(child, SECONDS if kill_after is None else kill_after):
            return self._answer()


class Processes:
    """Commands in processes of their own, as a shell starts them; slower, and most kills meet the imports."""

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass

    def run(self, command: Killed, folder: Path, kill_after: float | None = None) -> int:
        """The exit code of a command; −9 where it was killed in time."""
        call = [sys.executable, "-m", "fishergraph", *command.arguments]
        with (folder.parent / "said.txt").open("w", encoding="utf-8") as said:
            process = subprocess.Popen(call, cwd=folder, stdout=said, stderr=said, env=_clean())
        with _killing(process.pid, SECONDS if kill_after is None else kill_after):
            return process.wait()


def _clean() -> dict[str, str]:
    """One thread everywhere: then a run of this process has the bits of any other."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@contextmanager
def _killing(process: int, seconds: float) -> Iterator[None]:
    timer = Timer(seconds, _kill, (process,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@dataclass(frozen=True)
class Rehearsal:
    """What an undisturbed run leaves, and how long it takes."""

    content: dict[str, Any]
    files: frozenset[str]
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What became of one kill: `fault` is empty where the repeated command left what an undisturbed one leaves."""

    command: str
    seed: int
    after: float
    killed: bool
    fault: str


def rehearse(stage: Stage | Processes, command: Killed) -> Rehearsal:
    """An undisturbed run, the second of two: the first may have to compile."""
    with tempfile.TemporaryDirectory() as place:
        for name in ("first", "second"):
            folder = _prepared(Path(place) / name, command)
            start = time.perf_counter()
            code = stage.run(command, folder)
            seconds = time.perf_counter() - start
            if code != 0:
                raise RuntimeError(f"{command.name} ended with {code}: {(folder.parent / 'said.txt').read_text()}")
        return Rehearsal(_content(command, folder), _files(folder), seconds)


def kill_once(stage: Stage | Processes, command: Killed, rehearsal: Rehearsal, seed: int) -> Outcome:
    """Kill the command somewhere between its start and its usual end, and repeat it."""
    after = random.Random(seed).uniform(0.0, rehearsal.seconds)
    with tempfile.TemporaryDirectory() as place:
        folder = _prepared(Path(place) / "work", command)
        first = stage.run(command, folder, after)
        code = stage.run(command, folder)
        fault = "" if code == 0 else f"repeated, it ended with {code}: {(folder.parent / 'said.txt').read_text()}"
        fault = fault or _difference(command, folder, rehearsal)
        return Outcome(command.name, seed, after, first == -signal.SIGKILL, fault)


def _prepared(folder: Path, command: Killed) -> Path:
    folder.mkdir()
    command.prepare(folder)
    return folder


def _content(command: Killed, folder: Path) -> dict[str, Any]:
    content = {name: read(folder / name) for name, read in command.compare.items()}
    # Folders are temporary: their names are no part of what is compared.
    return json.loads(json.dumps(content).replace(str(folder), "."))


def _files(folder: Path) -> frozenset[str]:
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def _difference(command: Killed, folder: Path, rehearsal: Rehearsal) -> str:
    """What is not as an undisturbed run leaves it; empty where nothing is."""
    strange = _files(folder) - set(command.may_stay) ^ rehearsal.files - set(command.may_stay)
    if strange:
        return f"files that are missing, or left behind: {sorted(strange)}"
    content = _content(command, folder)
    return next((f"other content of {name}" for name in content if content[name] != rehearsal.content[name]), "")


def kills(names: list[str], count: int, *, start: int = 0, stage: Stage | Processes | None = None) -> Iterator[Outcome]:
    """Kill these commands in turn, `count` times in all; the same seeds give the same times."""
    with stage or Stage() as running:
        rehearsals = {name: rehearse(running, COMMANDS[name]) for name in names[:count]}
        for number in range(count):
            name = names[number % len(names)]
            yield kill_once(running, COMMANDS[name], rehearsals[name], start + number)
