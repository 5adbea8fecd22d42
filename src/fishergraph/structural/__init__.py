"""Columns of nodes from the edges of a graph alone: `Structure`, `structural_features`."""

from fishergraph.structural.structure import (
    STRUCTURES,
    Structure,
    StructureMap,
    choose_structure,
    fit_structure,
    structural_features,
    tells_nodes_apart,
)

__all__ = [
    "STRUCTURES",
    "Structure",
    "StructureMap",
    "choose_structure",
    "fit_structure",
    "structural_features",
    "tells_nodes_apart",
]
