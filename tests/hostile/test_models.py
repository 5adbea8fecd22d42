"""Mutated model files and checkpoints of every kind: an error of ours or a finite result."""

from __future__ import annotations

from hostile.sandbox import run_suite


def test_mutated_model_files():
    verdicts = list(run_suite("models", range(500)))
    faults = [f"{v.seed} ({v.label}): {v.seen}" for v in verdicts if v.outcome == "fault"]
    assert not faults, "\n\n".join(faults)
    outcomes = [verdict.outcome for verdict in verdicts]
    assert len(outcomes) == 500
    assert outcomes.count("result") > 20  # another finite anchor, a comment: such a file is a model
    assert outcomes.count("refused") > 200
