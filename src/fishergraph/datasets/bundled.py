"""Cora, which travels inside the package (its provenance stands in data/README.md)."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

from fishergraph.datasets.npz import read_npz_stream
from fishergraph.datasets.record import GraphData

BUNDLED = ("cora",)
CLASS_NAMES = {  # in the order of the class numbers, which are Planetoid's
    "cora": (
        "Theory",
        "Reinforcement learning",
        "Genetic algorithms",
        "Neural networks",
        "Probabilistic methods",
        "Case-based reasoning",
        "Rule learning",
    ),
}


def read_bundled(name: str) -> GraphData:
    """The bundled graph called `name`."""
    resource = files("fishergraph.datasets") / "data" / f"{name}.npz"
    with resource.open("rb") as stream:
        data = read_npz_stream(stream, name, f"{name}.npz in fishergraph/datasets/data")
    return replace(data, class_names=CLASS_NAMES[name])
