"""Columns of nodes from the edges of a graph alone: `Structure`, `structural_features`."""

from fishergraph.structural.structure import (
    BY_ROWS,
    STRUCTURES,
    TELLING_APART,
    Structure,
    StructureMap,
    choose_structure,
    fit_structure,
    structural_features,
)

__all__ = [
    "BY_ROWS",
    "STRUCTURES",
    "TELLING_APART",
    "Structure",
    "StructureMap",
    "choose_structure",
    "fit_structure",
    "structural_features",
]
