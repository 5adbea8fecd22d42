"""Presets: settings of `FisherEmbedding` by name."""

from __future__ import annotations

from typing import Any

from fishergraph._validation import look_up
from fishergraph.family import GaussianMixture

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"n_layers": 1, "dim": 128, "n_anchors": 1, "structure": "local"},
    # Of what needs more time, nothing else helped without a loss elsewhere (benchmarks/results/presets.csv).
    "best": {"n_layers": 4},
    # The equations of the paper: no averaged features, no structure, unit variance.
    "paper": {"walk": None, "structure": None, "family": GaussianMixture(variance=1.0)},
}


def choose_preset(name: str) -> dict[str, Any]:
    """Return the parameters of the preset of that name."""
    return look_up(PRESETS, name, "preset")
