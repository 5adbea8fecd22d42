"""The heads of `GraphProbe`: each yields fitted candidates, with their probabilities on the validation rows.

A head is a function (problem, tried before) → `Tried`, …. The heads run in the order of `HEADS`, and later ones build
on what was tried. Candidates that do not build on each other are fitted on threads, with the same bits at any number of
them. What is done with the candidates is in mixture.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fishergraph._parallel import map_blocks
from fishergraph.probes.block_fit import BlockFit, Weights, fit_blocks
from fishergraph.probes.logistic import LogisticProbe
from fishergraph.probes.mlp import MLP, fit_mlp
from fishergraph.probes.models import AllColumns, Linear, Model
from fishergraph.probes.optional_heads import FITS
from fishergraph.probes.problem import POWERS, Problem
from fishergraph.probes.self_training import row_weights, self_train
from fishergraph.probes.soft import fit_soft

SMOOTH = "smooth"  # Correct & Smooth, which is not a head of rows but comes after the mixture of the others
NEED_GRAPH = ("self-training", SMOOTH)
FEW_LABELS = 1000  # below: no network, which needs more, and no smoothing of errors
_CS = (0.1, 1.0, 10.0, 100.0)
_TOL = 1e-3  # of plain logistic regression
_FINER = (0.3, 3.0)  # times the best C of all blocks together
_RAISED = 3.0  # the weight of a block that counts more than the others
_ADDED = (1.0, 0.2)  # the weights with which a block is added to the best one
_STARTS = 4  # of self-training, for each choice of blocks
_LARGE = 2**19  # numbers of the training rows: the steps of smaller regressions are too short for threads
_ALL = AllColumns()

A = TypeVar("A")
B = TypeVar("B")


class Tried(NamedTuple):
    """A candidate: head, options, fitted model, its probabilities on the validation rows, and their log-loss.

    `fit` fits it once more, to a problem with more labels.
    """

    head: str
    options: dict[str, Any]
    model: Model
    val_proba: np.ndarray
    loss: float
    fit: Callable[[Problem], Model]


def logistic(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Plain logistic regression: `LogisticProbe`, whose C is chosen on validation rows, with tol=1e-3."""
    y = np.full(problem.Z.shape[0], -1)
    y[problem.train], y[problem.val] = problem.codes, problem.val_codes
    probe = LogisticProbe(tol=_TOL).fit(problem.Z, y, problem.train, problem.val)
    theta = np.vstack([probe.coef_.T, probe.intercept_])
    model = Model(_ALL, Linear(np.hstack([0 * theta, theta]) if theta.shape[1] == 1 else theta))
    P = probe.predict_proba(problem.Z[problem.val])
    yield Tried("logistic", {"C": probe.C_}, model, P, problem.loss(P), partial(_plain, C=probe.C_))


def _plain(problem: Problem, C: float) -> Model:
    """Logistic regression on all columns as they are: a block with its size as weight."""
    return Model(_ALL, fit_blocks(problem, {name: axes.size for name, axes in problem.axes.items()}, C).linear(problem))


def _fitted(problem: Problem, fit: Callable[[A], B], choices: Sequence[A]) -> list[B]:
    """The regressions of several choices, on threads if they are large."""
    n_numbers = len(problem.train) * problem.Z.shape[1]
    return map_blocks(fit, choices, n_jobs=None if n_numbers >= _LARGE else 1)


# --- blocks ---------------------------------------------------------------------------------------------------


def blocks(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Logistic regression on blocks with weights.

    All blocks alike and every block alone, with several C. Then, with the best C, all blocks with one of them raised or
    left out, and blocks added to the best one, fully or a little, as long as the validation loss falls.
    """
    names = list(problem.axes)
    if not names:
        return
    weights = [dict.fromkeys(names, 1.0), *({name: 1.0} for name in names if len(names) > 1)]
    equal, *alone = _fitted(problem, lambda some: list(_path(problem, some, _CS)), weights)
    best, fit = min(equal, key=_loss)
    equal += _path(problem, best.options["blocks"], [share * best.options["C"] for share in _FINER], fit)
    for path in (equal, *alone):
        yield from (tried for tried, _ in path)
    if len(names) > 1:
        yield from _varied(problem, *min(equal, key=_loss))
        yield from _added(problem, *min((min(path, key=_loss) for path in alone), key=_loss))


def _loss(entry: tuple[Tried, BlockFit]) -> float:
    return entry[0].loss


def _path(
    problem: Problem, weights: Weights, Cs: Sequence[float], fit: BlockFit | None = None
) -> Iterator[tuple[Tried, BlockFit]]:
    """The regressions with these weights and several C, each from the one before."""
    for C in Cs:
        tried, fit = _weighted(problem, weights, C, fit)
        yield tried, fit


def _varied(problem: Problem, base: Tried, start: BlockFit) -> Iterator[Tried]:
    """One block raised or left out, from the regression with equal weights."""
    blocks, C = base.options["blocks"], base.options["C"]
    changed = [{**blocks, name: weight} for name in problem.axes for weight in (_RAISED, 0.0)]
    yield from _fitted(problem, lambda weights: _weighted(problem, weights, C, start)[0], changed)


def _added(problem: Problem, best: Tried, start: BlockFit) -> Iterator[Tried]:
    """Blocks added to the best one while the validation loss falls."""
    while len(chosen := best.options["blocks"]) + 1 < len(problem.axes):
        more = [{**chosen, name: weight} for name in problem.axes if name not in chosen for weight in _ADDED]
        round_ = _fitted(problem, partial(_weighted, problem, C=best.options["C"], start=start), more)
        yield from (tried for tried, _ in round_)
        after, start = min(round_, key=_loss)
        if after.loss >= best.loss:
            return
        best = after


def _weighted(problem: Problem, weights: Weights, C: float, start: BlockFit | None) -> tuple[Tried, BlockFit]:
    """The regression with these weights, from the coefficients of another one."""
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    fit = fit_blocks(problem, weights, C, start)
    P = fit.val_proba(problem)
    model = Model(_ALL, fit.linear(problem))
    again = partial(_refit_blocks, weights=weights, C=C)
    return Tried("blocks", {"blocks": weights, "C": C}, model, P, problem.loss(P), again), fit


def _refit_blocks(problem: Problem, weights: Weights, C: float) -> Model:
    return Model(_ALL, fit_blocks(problem, weights, C).linear(problem))


# --- principal axes -------------------------------------------------------------------------------------------


def sharpen(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Regressions on sharpened rows: of all columns, and of the blocks that were chosen one by one."""
    chosen = column_sets(problem, before)
    map_blocks(problem.sharpened, chosen)
    inputs = [(blocks, power) for blocks in chosen for power in POWERS]
    for path in _fitted(problem, lambda some: list(_sharp_path(problem, *some)), inputs):
        yield from path


def _sharp_path(problem: Problem, blocks: tuple[str, ...], power: float) -> Iterator[Tried]:
    """The regressions on one input with several C, each from the one before."""
    theta = None
    for C in _CS:
        theta = _regression(problem, blocks, power, C, theta)
        options = {"blocks": blocks, "power": power, "C": C}
        yield _on_axes("sharpen", problem, options, Linear(theta), partial(_refit_sharp, **options))


def _regression(
    problem: Problem, blocks: tuple[str, ...], power: float, C: float, start: np.ndarray | None = None
) -> np.ndarray:
    rows = problem.sharpened(blocks)[power].rows[problem.train]
    start = np.zeros((rows.shape[1] + 1, problem.n_classes)) if start is None else start
    return fit_soft(rows, problem.targets, np.ones(len(rows)), C, start, max_iter=200)


def _refit_sharp(problem: Problem, blocks: tuple[str, ...], power: float, C: float) -> Model:
    return Model(problem.sharpened(blocks)[power].input, Linear(_regression(problem, blocks, power, C)))


def _on_axes(
    head: str, problem: Problem, options: dict[str, Any], fitted: Linear | MLP, fit: Callable[[Problem], Model]
) -> Tried:
    """A candidate on sharpened rows."""
    sharp = problem.sharpened(options["blocks"], options.get("alike", False))[options["power"]]
    P = fitted.proba(sharp.rows[problem.val])
    return Tried(head, options, Model(sharp.input, fitted), P, problem.loss(P), fit)


def column_sets(problem: Problem, before: Sequence[Tried]) -> list[tuple[str, ...]]:
    """All blocks, and the ones of the best regression on some of them with equal weights."""
    some = [t for t in before if t.head == "blocks" and set(t.options["blocks"].values()) == {1.0}]
    some = [t for t in some if len(t.options["blocks"]) < len(problem.blocks)]
    best = [tuple(min(some, key=lambda t: t.loss).options["blocks"])] if some else []
    return [problem.names, *best]


def self_training(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """Soft self-training from the best regressions of "sharpen"."""
    starts = [tried for tried in before if tried.head == "sharpen"] or list(sharpen(problem, before))
    chosen: list[Tried] = []
    for blocks in column_sets(problem, before):
        own = [start for start in starts if start.options["blocks"] == blocks]
        chosen += sorted(own, key=lambda t: t.loss)[:_STARTS]

    def trained(start: Tried) -> Tried:
        options, theta = start.options, start.model.classifier.theta  # pyright: ignore
        fitted = _trained(problem, **options, start=theta)
        return _on_axes("self-training", problem, options, fitted, partial(_refit_trained, **options))

    yield from map_blocks(trained, chosen)


def _trained(problem: Problem, blocks: tuple[str, ...], power: float, C: float, start: np.ndarray) -> Linear:
    assert problem.S is not None
    rows, sample = problem.sharpened(blocks)[power].rows, row_weights(problem.Z.shape[0], problem.train, problem.rng(1))
    return Linear(self_train(rows, problem.S, problem.targets, problem.train, C, start, sample))


def _refit_trained(problem: Problem, blocks: tuple[str, ...], power: float, C: float) -> Model:
    start = _regression(problem, blocks, power, C)
    return Model(problem.sharpened(blocks)[power].input, _trained(problem, blocks, power, C, start))


def mlp(problem: Problem, before: Sequence[Tried]) -> Iterator[Tried]:
    """A network with one hidden layer on the principal axes: of all blocks as they are, of blocks of equal size."""
    all_blocks, *some = column_sets(problem, before)

    def network(chosen: tuple[tuple[str, ...], bool]) -> Tried:
        blocks, alike = chosen
        rows = problem.sharpened(blocks, alike)[0.0].rows
        val = rows[problem.val], problem.val_codes
        fitted = fit_mlp(rows[problem.train], problem.codes, problem.n_classes, problem.rng(2), val=val)
        again = partial(_refit_mlp, blocks=blocks, alike=alike, n_epochs=fitted.n_epochs)
        return _on_axes("mlp", problem, {"blocks": blocks, "power": 0.0, "alike": alike}, fitted, again)

    alike = [(blocks, True) for blocks in (all_blocks, *some)] if some else []
    yield from map_blocks(network, [(all_blocks, False), *alike])


def _refit_mlp(problem: Problem, blocks: tuple[str, ...], alike: bool, n_epochs: int) -> Model:
    sharp = problem.sharpened(blocks, alike)[0.0]
    rows = sharp.rows[problem.train]
    return Model(sharp.input, fit_mlp(rows, problem.codes, problem.n_classes, problem.rng(2), n_epochs=n_epochs))


def foreign(problem: Problem, before: Sequence[Tried], name: str) -> Iterator[Tried]:
    """A head of another package."""
    model = FITS[name](problem)
    P = model.classifier.proba(model.input.rows(problem.Z[problem.val]))
    yield Tried(name, {}, model, P, problem.loss(P), FITS[name])


Head = Callable[[Problem, Sequence[Tried]], Iterator[Tried]]

HEADS: dict[str, Head] = {
    "logistic": logistic,
    "blocks": blocks,
    "sharpen": sharpen,
    "self-training": self_training,
    "mlp": mlp,
    **{name: partial(foreign, name=name) for name in FITS},
}


def suitable(problem: Problem) -> tuple[str, ...]:
    """The heads that "auto" tries on a problem."""
    wanted = {
        "logistic": True,
        "blocks": True,
        "sharpen": True,
        "self-training": problem.S is not None and problem.few_labels,
        "mlp": len(problem.train) >= FEW_LABELS,
        SMOOTH: problem.S is not None and len(problem.train) >= FEW_LABELS,
    }
    return tuple(name for name, useful in wanted.items() if useful)
