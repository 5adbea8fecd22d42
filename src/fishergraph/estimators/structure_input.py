"""The structural columns of an estimator's input: learned from the graph of the fit, known again in another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._progress import Progress, costing, silent
from fishergraph._warn import warn
from fishergraph.graph import Graph
from fishergraph.structural import Structure, StructureMap, fit_structure


@dataclass
class StructureReader:
    """Structural columns of a graph; the first graph is learned from, unless `fitted` is there already.

    structure : the settings; None wants no columns.
    dim, features : the width of the embedding, and whether it has features of its own.
    """

    structure: Structure | None
    dim: int
    features: bool
    seed: int
    fitted: StructureMap | None = None
    n_jobs: int | None = None
    progress: Progress = silent

    def columns(self, graph: Graph, ids: Any) -> dict[str, np.ndarray]:
        """The columns of the nodes with these ids, by kind."""
        if self.structure is None:
            return {}
        with costing(self.progress, "structure", 1.0):
            if self.fitted is not None:
                return self.fitted.columns(graph, ids, self.n_jobs)
            if self.features and graph.n_edges == 0 and self.structure != Structure():  # without X there is a warning
                kinds = ", ".join(self.structure.kinds)
                text = f"the graph has no edges, so the blocks {kinds} are the same for all nodes"
                warn("structure", f"{text}; pass a graph with edges, or structure=None.")
            width = self.structure.n_columns(self.dim, features=self.features)
            options: dict[str, Any] = {"width": width, "seed": self.seed, "n_jobs": self.n_jobs}
            self.fitted, columns = fit_structure(self.structure, graph, ids, **options)
        return columns
