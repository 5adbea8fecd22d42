"""`Problem`: what the heads of `GraphProbe` learn from, and the work that they share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph.probes.blocks import Blocks
from fishergraph.probes.calibrate import at_temperature, fit_temperature, log_loss
from fishergraph.probes.models import Input, Sharpened, dense_columns
from fishergraph.probes.sharpen import Sharpening, sharpenings

POWERS = (0.0, 1.0)  # of sharpening
_LEAST = 1e-6  # of a block's squared axes: shorter ones are rounding


class Axes(NamedTuple):
    """A block on the principal axes of its training rows, divided by its size there."""

    columns: slice
    mean: np.ndarray  # (column,)
    size: float  # root of the mean squared length of the centred rows
    axes: np.ndarray  # (column, axis), orthonormal
    train: np.ndarray  # (row, axis), float32
    val: np.ndarray  # (row, axis), float32


class Sharp(NamedTuple):
    """An input on sharpened axes, and its rows of all nodes."""

    input: Sharpened
    rows: np.ndarray  # (node, axis), float32


@dataclass(frozen=True)
class Problem:
    """What heads learn from; labels are class numbers, −1 for a validation label that no training row has."""

    Z: Any
    codes: np.ndarray  # of train
    val_codes: np.ndarray
    train: np.ndarray
    val: np.ndarray
    n_classes: int
    blocks: Blocks
    S: sp.csr_array | None
    seed: int
    _sharpened: dict[Any, dict[float, Sharp]] = field(default_factory=dict, repr=False)

    @property
    def targets(self) -> np.ndarray:
        """One-hot rows of the training labels."""
        return np.eye(self.n_classes)[self.codes]

    @property
    def few_labels(self) -> bool:
        """Whether most nodes have no label."""
        return len(self.train) <= 0.2 * self.Z.shape[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the blocks."""
        return tuple(name for name, _ in self.blocks)

    def rng(self, purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose."""
        return np.random.default_rng([self.seed, purpose])

    def loss(self, val_proba: np.ndarray) -> float:
        """The calibrated log-loss of probabilities of the validation rows."""
        return log_loss(at_temperature(val_proba, fit_temperature(val_proba, self.val_codes)), self.val_codes)

    def with_validation(self) -> Problem:
        """The same problem with the validation rows among the training rows; rows of class −1 stay outside."""
        known = self.val_codes >= 0
        train = np.concatenate([self.train, self.val[known]])
        return replace(self, train=train, codes=np.concatenate([self.codes, self.val_codes[known]]))

    @cached_property
    def axes(self) -> dict[str, Axes]:
        """The blocks on their own axes; one without variance is left out."""
        parts = {name: self._axes(columns) for name, columns in self.blocks}
        return {name: axes for name, axes in parts.items() if axes is not None}

    def _axes(self, columns: slice) -> Axes | None:
        train, val = (dense(self.Z[rows, columns]) for rows in (self.train, self.val))
        mean = train.mean(axis=0)
        centred = train - mean
        largest, floats = np.abs(centred).max(), np.finfo(centred.dtype)
        if not largest > floats.tiny / floats.eps:  # also coefficients are numbers of this type
            return None
        size = largest * np.sqrt(np.mean(np.sum((centred / largest) ** 2, axis=1)))  # squares that can be added
        axes = _row_space(centred / size)
        rows = (((part - mean) / size) @ axes for part in (train, val))
        return Axes(columns, mean, float(size), axes, *(part.astype(np.float32, copy=False) for part in rows))

    def sharpened(self, chosen: tuple[str, ...], alike: bool = False) -> dict[float, Sharp]:
        """Power → the sharpened rows of some blocks; computed once.

        All blocks together keep their sizes, unless they are to be alike. Of some of them each is divided by its size.
        """
        alike = alike or len(chosen) < len(self.blocks)
        if (chosen, alike) not in self._sharpened:
            self._sharpened[chosen, alike] = self._sharpen(chosen, alike)
        return self._sharpened[chosen, alike]

    def _sharpen(self, chosen: tuple[str, ...], alike: bool) -> dict[float, Sharp]:
        parts = [(name, columns) for name, columns in self.blocks if name in chosen]
        columns = np.concatenate([np.arange(part.start, part.stop) for _, part in parts])
        Z = dense_columns(self.Z, columns)
        sizes = np.ones(len(columns), dtype=Z.dtype)
        if alike:
            sizes = np.concatenate([_sizes(Z.dtype, self.axes.get(name), part) for name, part in parts])
            Z = Z / sizes
        maps = sharpenings(Z, POWERS, self.rng(0))
        first = maps[POWERS[0]]
        coordinates = (Z - first.mean) @ first.axes
        return {power: _sharp(columns, sizes, one, coordinates) for power, one in maps.items()}

    def known_rows(self) -> dict[Input, Any]:
        """The rows of all nodes by input, as far as they are computed in the precision of Z."""
        if self.Z.dtype != np.float32:
            return {}
        return {sharp.input: sharp.rows for maps in self._sharpened.values() for sharp in maps.values()}


def dense(rows: Any) -> np.ndarray:
    """Rows as a dense array."""
    return rows.toarray() if sp.issparse(rows) else rows


def _row_space(X: np.ndarray) -> np.ndarray:
    """The principal axes (column, axis) of the row space of X."""
    n, d = X.shape
    if n < d:
        values, vectors = np.linalg.eigh(X @ X.T)
        kept = values > _LEAST * values[-1]
        return X.T @ (vectors[:, kept] / np.sqrt(values[kept]))
    values, vectors = np.linalg.eigh(X.T @ X)
    return vectors[:, values > _LEAST * values[-1]]


def _sizes(dtype: Any, axes: Axes | None, part: slice) -> np.ndarray:
    """The size of a block for each of its columns; 1 if it has no variance."""
    return np.full(part.stop - part.start, 1.0 if axes is None else axes.size, dtype=dtype)


def _sharp(columns: np.ndarray, sizes: np.ndarray, one: Sharpening, coordinates: np.ndarray) -> Sharp:
    """The input of the columns as they are, not divided by sizes, and its rows."""
    rows = one.rows_on_axes(coordinates).astype(np.float32, copy=False)
    return Sharp(Sharpened(columns, Sharpening(one.mean * sizes, one.axes / sizes[:, None], one.scale)), rows)
