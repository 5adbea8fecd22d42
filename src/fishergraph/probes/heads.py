"""The candidate heads of `GraphProbe`: each yields fitted models, with their probabilities on the validation rows.

A head is a function (problem, tried before) → `Tried`, …. The heads run in the order of `HEADS`, and later ones build
on what was tried: self-training starts at the regressions of "sharpen", "smooth" at the best model before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from fishergraph.probes.blocks import Blocks, columns_of
from fishergraph.probes.logistic import LogisticProbe
from fishergraph.probes.mlp import MLP, fit_mlp
from fishergraph.probes.self_training import fit_soft, row_weights, self_train
from fishergraph.probes.sharpen import Sharpening, sharpenings
from fishergraph.probes.smooth import spread_labels, spread_residuals

FEW_LABELS = 1000  # below: no network; a network needs more
_BLOCK_CS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
_SOFT_CS = (0.1, 1.0, 10.0, 100.0)
_POWERS = (0.0, 1.0)
_SHARES = (0.5, 0.8)  # of what a step of Correct & Smooth takes from the neighbours


class Model(Protocol):
    """A fitted head."""

    def proba(self, Z: Any) -> np.ndarray:
        """Class probabilities, (row, class)."""
        ...


class Tried(NamedTuple):
    """A candidate: its head, its options, the model, and the model's probabilities on the validation rows."""

    head: str
    options: dict[str, Any]
    model: Model
    val_proba: np.ndarray
    C: float | None = None


@dataclass(frozen=True)
class Problem:
    """What heads learn from; labels are class numbers, −1 for a validation label that no training row has."""

    Z: Any
    y: np.ndarray
    codes: np.ndarray  # of train
    val_codes: np.ndarray
    train: np.ndarray
    val: np.ndarray
    n_classes: int
    blocks: Blocks
    S: sp.csr_array | None
    seed: int
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def targets(self) -> np.ndarray:
        """One-hot rows of the training labels."""
        return np.eye(self.n_classes)[self.codes]

    @property
    def few_labels(self) -> bool:
        """Whether most nodes have no label."""
        return len(self.train) <= 0.2 * self.Z.shape[0]

    def rng(self, purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose."""
        return np.random.default_rng([self.seed, purpose])

    def accuracy(self, tried: Tried) -> float:
        """Accuracy on the validation rows."""
        return float(np.mean(tried.val_proba.argmax(axis=1) == self.val_codes))

    def sharpened(self, chosen: tuple[str, ...]) -> dict[float, tuple[Sharpening, np.ndarray]]:
        """Power → (map, sharpened rows of all nodes in float32) of the columns of some blocks; computed once."""
        if chosen not in self._kept:
            Z = dense_columns(self.Z, columns_of(self.blocks, chosen))
            maps = sharpenings(Z, _POWERS, self.rng(0))
            self._kept[chosen] = {p: (sharpening, _float32(sharpening.rows(Z))) for p, sharpening in maps.items()}
        return self._kept[chosen]


def dense_columns(Z: Any, columns: np.ndarray) -> np.ndarray:
    """Some columns of Z, dense; Z itself if they are all."""
    Z = Z.toarray() if sp.issparse(Z) else Z
    return Z if len(columns) == Z.shape[1] else Z[:, columns]


def _float32(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.float32, copy=False)


# --- models ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogisticModel:
    """A logistic probe on some of the columns; None is all."""

    probe: LogisticProbe
    columns: np.ndarray | None = None

    def proba(self, Z: Any) -> np.ndarray:
        """Class probabilities, (row, class)."""
        return self.probe.predict_proba(Z if self.columns is None else Z[:, self.columns])


@dataclass(frozen=True)
class SharpModel:
    """A multinomial regression θ, or a network, on sharpened rows."""

    columns: np.ndarray
    sharpening: Sharpening
    head: np.ndarray | MLP

    def proba(self, Z: Any) -> np.ndarray:
        """Class probabilities, (row, class)."""
        return self.proba_of_rows(_float32(self.sharpening.rows(dense_columns(Z, self.columns))))

    def proba_of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Class probabilities of sharpened rows."""
        if isinstance(self.head, MLP):
            return self.head.proba(rows * _mlp_scale(rows))
        logits = rows @ self.head[:-1].astype(rows.dtype) + self.head[-1].astype(rows.dtype)
        return softmax(logits.astype(np.float64), axis=1)


@dataclass(frozen=True)
class SmoothModel:
    """Correct & Smooth after a base model; it needs the rows of all nodes of the graph."""

    base: Model
    S: sp.csr_array
    targets: np.ndarray
    train: np.ndarray
    correct: float | None
    smooth: float

    def proba(self, Z: Any) -> np.ndarray:
        """Class probabilities, (node, class)."""
        return self.smoothed(self.base.proba(Z))

    def smoothed(self, P: np.ndarray) -> np.ndarray:
        """The base model's probabilities of all nodes, corrected and smoothed."""
        if self.correct is not None:
            P = spread_residuals(self.S, P, self.targets, self.train, self.correct)
        return spread_labels(self.S, P, self.targets, self.train, self.smooth)


# --- heads ----------------------------------------------------------------------------------------------------


def logistic(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Plain logistic regression: `LogisticProbe` with its defaults."""
    probe = LogisticProbe().fit(problem.Z, problem.y, problem.train, problem.val)
    yield Tried("logistic", {}, LogisticModel(probe), probe.predict_proba(problem.Z[problem.val]), probe.C_)


def blocks(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Logistic regression on single blocks, then blocks added to the best one while validation gains from them."""
    names = [name for name, _ in problem.blocks]
    chosen: tuple[str, ...] = ()
    score = -1.0
    while len(chosen) + 1 < len(names):
        round_ = [_on_blocks(problem, (*chosen, name)) for name in names if name not in chosen]
        yield from round_
        best = max(round_, key=problem.accuracy)
        if problem.accuracy(best) <= score:
            return
        chosen, score = best.options["blocks"], problem.accuracy(best)


def _on_blocks(problem: Problem, chosen: tuple[str, ...]) -> Tried:
    columns = columns_of(problem.blocks, chosen)
    Z, probe = problem.Z[:, columns], LogisticProbe(Cs=_BLOCK_CS, tol=1e-4, patience=2)
    probe.fit(Z, problem.y, problem.train, problem.val)
    model = LogisticModel(probe, columns)
    return Tried("blocks", {"blocks": chosen}, model, probe.predict_proba(Z[problem.val]), probe.C_)


def sharpen(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Regressions on sharpened rows: of all columns, and of the best blocks if they are better than all."""
    for chosen in _column_sets(problem, before):
        for power, (_, rows) in problem.sharpened(chosen).items():
            theta = np.zeros((rows.shape[1] + 1, problem.n_classes))
            weights = np.ones(len(problem.train))
            for C in _SOFT_CS:
                theta = fit_soft(rows[problem.train], problem.targets, weights, C, theta, max_iter=200)
                yield _sharp(problem, "sharpen", chosen, power, C, theta)


def _sharp(
    problem: Problem, head: str, chosen: tuple[str, ...], power: float, C: float | None, fitted: np.ndarray | MLP
) -> Tried:
    sharpening, rows = problem.sharpened(chosen)[power]
    model = SharpModel(columns_of(problem.blocks, chosen), sharpening, fitted)
    options = {"power": power, "C": C, "blocks": chosen} if C is not None else {"power": power, "blocks": chosen}
    return Tried(head, options, model, model.proba_of_rows(rows[problem.val]), C)


def _column_sets(problem: Problem, before: Sequence[Tried]) -> list[tuple[str, ...]]:
    """All blocks, and the best blocks that were tried, if their validation accuracy is above that of all."""
    everything = tuple(name for name, _ in problem.blocks)
    parts = [tried for tried in before if tried.head == "blocks"]
    plain = max((problem.accuracy(tried) for tried in before if tried.head == "logistic"), default=0.0)
    best = max(parts, key=problem.accuracy, default=None)
    return [everything, best.options["blocks"]] if best and problem.accuracy(best) > plain else [everything]


def self_training(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Soft self-training from the regressions of "sharpen": from all of them, and two on the best blocks."""
    assert problem.S is not None
    starts = [tried for tried in before if tried.head == "sharpen"] or list(sharpen(problem, before))
    everything = tuple(name for name, _ in problem.blocks)
    parts = [start for start in starts if start.options["blocks"] != everything]
    best_parts = sorted(parts, key=problem.accuracy, reverse=True)[:2]
    sample = row_weights(problem.Z.shape[0], problem.train, problem.rng(1))
    for start in [*(start for start in starts if start.options["blocks"] == everything), *best_parts]:
        chosen, power, C = (start.options[name] for name in ("blocks", "power", "C"))
        rows = problem.sharpened(chosen)[power][1]
        theta = start.model.head  # pyright: ignore
        theta = self_train(rows, problem.S, problem.targets, problem.train, C, theta, sample)
        yield _sharp(problem, "self-training", chosen, power, C, theta)


def mlp(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """A network with one hidden layer on the principal axes."""
    for k, chosen in enumerate(_column_sets(problem, before)):
        rows = problem.sharpened(chosen)[0.0][1]
        rows = rows * _mlp_scale(rows)
        val = rows[problem.val], problem.val_codes
        fitted = fit_mlp(rows[problem.train], problem.codes, problem.n_classes, val, problem.rng(2 + k))
        yield _sharp(problem, "mlp", chosen, 0.0, None, fitted)


def _mlp_scale(rows: np.ndarray) -> np.float32:
    """The factor that gives the entries of unit rows a mean square of one."""
    return np.float32(np.sqrt(rows.shape[1]))


def smooth(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Correct & Smooth after the best model so far."""
    assert problem.S is not None
    base = max(before, key=problem.accuracy)  # the first of equally good ones
    P = base.model.proba(problem.Z)
    for correct in (None, 0.8):
        for share in _SHARES:
            model = SmoothModel(base.model, problem.S, problem.targets, problem.train, correct, share)
            options = {"base": base.head, **base.options, "correct": correct, "smooth": share}
            yield Tried("smooth", options, model, model.smoothed(P)[problem.val], base.C)


Head = Callable[[Problem, Sequence[Tried]], Iterator[Tried]]

HEADS: dict[str, Head] = {
    "logistic": logistic,
    "blocks": blocks,
    "sharpen": sharpen,
    "self-training": self_training,
    "mlp": mlp,
    "smooth": smooth,
}
NEED_GRAPH = ("self-training", "smooth")
TRANSDUCTIVE = ("smooth",)


def suitable(problem: Problem) -> tuple[str, ...]:
    """The heads that "auto" tries on a problem."""
    wanted = {
        "logistic": True,
        "blocks": len(problem.blocks) > 1,
        "sharpen": True,
        "self-training": problem.S is not None and problem.few_labels,
        "mlp": len(problem.train) >= FEW_LABELS,
        "smooth": problem.S is not None and len(problem.train) >= FEW_LABELS,
    }
    return tuple(name for name, useful in wanted.items() if useful)
