"""Fitted heads: an input, which makes rows of an embedding, and a classifier of these rows; and their mixture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from fishergraph.probes.mixture import Blend
from fishergraph.probes.sharpen import Sharpening
from fishergraph.probes.soft import soft_proba


class Input(Protocol):
    """What a classifier gets of an embedding; inputs are compared by identity."""

    def rows(self, Z: Any) -> Any:
        """One row per row of Z."""
        ...


class Classifier(Protocol):
    """A fitted classifier."""

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities, float64, (row, class)."""
        ...


@dataclass(frozen=True, eq=False)
class AllColumns:
    """The embedding itself."""

    def rows(self, Z: Any) -> Any:
        """Z."""
        return Z


@dataclass(frozen=True, eq=False)
class Sharpened:
    """Some columns, on their principal axes."""

    columns: np.ndarray
    sharpening: Sharpening

    def rows(self, Z: Any) -> np.ndarray:
        """The sharpened rows of Z, (row, axis)."""
        return self.sharpening.rows(dense_columns(Z, self.columns))


@dataclass(frozen=True, eq=False)
class Linear:
    """Multinomial regression θ = (W; b), (column + 1, class)."""

    theta: np.ndarray

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities, float64, (row, class)."""
        return soft_proba(X, self.theta)


class Model(NamedTuple):
    """A fitted head."""

    input: Input
    classifier: Classifier


@dataclass(frozen=True)
class Mixture:
    """Models and how much each counts."""

    models: Sequence[Model]
    blend: Blend

    def proba(self, Z: Any, rows: Mapping[Input, Any] | None = None) -> np.ndarray:
        """Calibrated class probabilities, (row, class); `rows` may hold the rows of some inputs already."""
        known = dict(rows or {})
        for model in self.models:
            if model.input not in known:
                known[model.input] = model.input.rows(Z)
        return self.blend.proba([model.classifier.proba(known[model.input]) for model in self.models])


def dense_columns(Z: Any, columns: np.ndarray) -> np.ndarray:
    """Some columns of Z, dense; Z itself if they are all."""
    if len(columns) < Z.shape[1]:
        Z = Z[:, columns]
    return Z.toarray() if sp.issparse(Z) else Z
