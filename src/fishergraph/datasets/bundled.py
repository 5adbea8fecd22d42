"""Cora, which travels inside the package (its provenance stands in data/README.md)."""

from __future__ import annotations

from importlib.resources import files

from fishergraph.datasets.npz import read_npz_stream
from fishergraph.datasets.record import GraphData

BUNDLED = ("cora",)


def read_bundled(name: str) -> GraphData:
    """The bundled graph called `name`."""
    resource = files("fishergraph.datasets") / "data" / f"{name}.npz"
    with resource.open("rb") as stream:
        return read_npz_stream(stream, name, f"{name}.npz in fishergraph/datasets/data")
