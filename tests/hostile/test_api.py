"""The hostile calls of the library that stay: each is refused with a sentence of its own, or gives finite numbers."""

from __future__ import annotations

import pytest

from hostile.sandbox import run_suite

N_CASES = 1300
# A case is a hang after ten seconds where everything is compiled; the first ones may have to compile.
SECONDS = 60.0


@pytest.mark.parametrize("part", range(2))
def test_hostile_calls_are_refused_or_finite(part):
    seeds = range(part * N_CASES // 2, (part + 1) * N_CASES // 2)
    verdicts = list(run_suite("api", seeds, seconds=SECONDS))
    assert [verdict.seed for verdict in verdicts] == list(seeds)
    faults = [f"seed {v.seed}, {v.label}: {v.seen}" for v in verdicts if v.outcome == "fault"]
    assert not faults, "\n\n".join(faults)
    # A suite that is always refused would test the checks alone.
    assert sum(verdict.outcome == "result" for verdict in verdicts) > len(seeds) // 6
