"""A command that is killed at any time is repeated by the same command, and leaves what an undisturbed run leaves.

`python tools/kill.py --kills 100` does it more often.
"""

from __future__ import annotations

import os
import signal

import pytest

pytest.importorskip("torch_geometric")

from kills import killing
from kills.commands_to_kill import COMMANDS, Killed, json_file, make_nothing, whole

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.slow
def test_killed_commands_are_repeated_with_the_same_result():
    outcomes = list(killing.kills(["train", "embed", "convert", "simulate"], 6))
    assert [outcome for outcome in outcomes if outcome.fault] == []
    assert sum(outcome.killed for outcome in outcomes) >= 3


@pytest.mark.slow
def test_killed_commands_of_stores_are_repeated_with_the_same_result():
    outcomes = list(killing.kills(["ingest", "embed-store", "update"], 6))
    assert [outcome for outcome in outcomes if outcome.fault] == []
    assert sum(outcome.killed for outcome in outcomes) >= 3


def test_the_comparison_sees_what_a_kill_can_spoil(tmp_path):
    """Not a word is lost, no file more or less, and times alone may differ."""
    folder, compare = tmp_path / "work", {"out.csv": whole, "out.csv.run.json": json_file}
    folder.mkdir()
    command = Killed("some", "embed", make_nothing, compare)

    def write(text="a,b\n", record='{"seed": 0, "seconds": 1.5}', more=()):
        for path in folder.iterdir():
            path.unlink()
        for name, content in {"out.csv": text, "out.csv.run.json": record, **dict(more)}.items():
            (folder / name).write_text(content, encoding="utf-8")

    write()
    rehearsal = killing.Rehearsal(killing._content(command, folder), killing._files(folder), 1.0)
    for changes, fault in (
        ({}, ""),
        ({"record": '{"seed": 0, "seconds": 9}'}, ""),
        ({"record": '{"seed": 1, "seconds": 1.5}'}, "other content of out.csv.run.json"),
        ({"text": "a,c\n"}, "other content of out.csv"),
        ({"more": [(".x.part", "")]}, "files that are missing, or left behind: ['.x.part']"),
    ):
        write(**changes)
        assert killing._difference(command, folder, rehearsal) == fault


def test_a_command_that_does_not_end_well_is_a_fault():
    class Broken:
        def run(self, command, folder, kill_after=None):
            (folder.parent / "said.txt").write_text("error: no", encoding="utf-8")
            return -signal.SIGKILL if kill_after is not None else 1

    rehearsal = killing.Rehearsal({}, frozenset(), 1.0)
    outcome = killing.kill_once(Broken(), COMMANDS["embed"], rehearsal, 0)  # type: ignore[arg-type]
    assert outcome.killed
    assert outcome.fault == "repeated, it ended with 1: error: no"
