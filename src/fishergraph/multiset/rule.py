"""`Rule`: what a multiset is, as a record with parameters of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fishergraph.graph import Graph


@dataclass(frozen=True)
class Rule:
    """A rule that makes the multisets of a graph; estimators take one as `multiset`, and model files keep it."""

    lifts: ClassVar[bool] = False  # whether it makes `LiftedSets`

    @property
    def slots(self) -> int:
        """How many points a member has side by side."""
        return 1

    def check(self) -> None:
        """Raise unless every parameter is what it must be."""
        raise NotImplementedError

    def __call__(
        self, graph: Graph, weights: str | None = None, n_jobs: int | None = None, dtype: Any = np.float32
    ) -> Any:
        """The multisets of a graph, `Multisets` or `LiftedSets`; `weights` and `dtype` as in `neighbourhoods`."""
        raise NotImplementedError
