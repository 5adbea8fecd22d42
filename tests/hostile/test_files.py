"""Hostile files in a child process: a sentence or a good output, and nothing left behind."""

from __future__ import annotations

import pytest

from hostile.sandbox import run_suite

pytest.importorskip("torch_geometric")


@pytest.mark.parametrize("start", [0, 250])
def test_no_file_breaks_the_rule(start):
    verdicts = list(run_suite("files", range(start, start + 250)))
    faults = [verdict for verdict in verdicts if verdict.outcome == "fault"]
    assert not faults, "\n\n".join(f"seed {fault.seed} ({fault.label}): {fault.seen}" for fault in faults)
    # Most files are refused, and the good ones among them are read.
    assert 0.1 < sum(verdict.outcome == "result" for verdict in verdicts) / len(verdicts) < 0.5
