"""The examples run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_bags_of_patches():
    scores = runpy.run_path(str(EXAMPLES / "bags_of_patches.py"))["main"]()
    assert scores["mean pooling"] < 0.75
    assert scores["FisherSetEmbedding"] > 0.97
    assert scores["kernel machine"] > 0.97
