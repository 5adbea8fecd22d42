"""`Trials`: the settings of a search, tried one after the other, as long as the budget lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fishergraph._errors import NotEnoughMemory
from fishergraph._warn import warn
from fishergraph.auto.choice import Tried, choose
from fishergraph.auto.shared import SharedEmbeddings
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.node_probe import LabelSplit
from fishergraph.probes.calibrate import at_temperature, fit_temperature, log_loss
from fishergraph.probes.logistic import LogisticProbe

# The probe that compares settings: a thinner grid of C and a looser tolerance than those of `LogisticProbe`. It tries
# every C: the smallest ones may all predict the largest class, and then the search would stop among them.
_CS, _TOL = [10.0**power for power in range(-3, 6)], 1e-3
_MOST_ROWS = 10_000  # that it learns from, and that it is judged on
BUDGET, MEMORY = "budget", "memory"  # why a setting was skipped


class Trials:
    """Settings tried in order, each by logistic regression on its embedding.

    The time of a setting is predicted from the embeddings before it, in proportion to the work of `costs`.

    Parameters
    ----------
    shared : SharedEmbeddings
        The embeddings.
    models : sequence of FisherEmbedding
        The unfitted embedding of each setting.
    split : LabelSplit
        Labels, and the rows that train and choose.
    budget : float
        Seconds for all settings together.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        shared: SharedEmbeddings,
        models: Sequence[FisherEmbedding],
        split: LabelSplit,
        budget: float,
        clock: Callable[[], float],
    ):
        self.shared, self.models, self.budget = shared, models, budget
        self.labels = split.labels
        self.train, self.val = (_some(rows) for rows in (split.train, split.val))
        self.val_codes = split.codes[self.val]
        self.tried: dict[int, Tried] = {}
        self.skipped: dict[int, str] = {}
        self.clock, self.start, self.seconds = clock, clock(), 0.0
        self._pace = 0.0  # seconds of a multiplication, in the last embedding
        self._probing = 0.0  # seconds of the last probe

    @property
    def best(self) -> Tried:
        """The chosen one of the settings that were tried."""
        return choose(list(self.tried.values()), len(self.val))

    def predicted(self, number: int) -> float:
        """The seconds that a setting will take."""
        return self._pace * self.shared.work(self.models[number]) + self._probing

    def run(self, number: int) -> None:
        """Try a setting, unless it is not the first and its predicted time or its memory does not fit."""
        if number and self.clock() - self.start + self.predicted(number) > self.budget:
            self.skipped[number] = BUDGET
            return
        try:
            self.tried[number] = self._try(number)
        except NotEnoughMemory:
            if not number:
                raise
            self.skipped[number] = MEMORY
        self.shared.keep(self.models[0], self.models[self.best.number], *self.models[number + 1 :])

    def _try(self, number: int) -> Tried:
        began, work = self.clock(), self.shared.work(self.models[number])
        Z = self.shared.embed(self.models[number])[1]
        embedded = self.clock()
        if work:
            self._pace = (embedded - began) / work
        probe = LogisticProbe(_CS, tol=_TOL).fit(Z, self.labels, self.train, self.val)
        P = probe.predict_proba(Z[self.val])
        accuracy = float(np.mean(P.argmax(axis=1) == self.val_codes))
        loss = log_loss(at_temperature(P, fit_temperature(P, self.val_codes)), self.val_codes)
        ended = self.clock()
        self._probing = ended - embedded
        return Tried(number, accuracy, loss, ended - began, probe)

    def finish(self) -> Tried:
        """The chosen setting; warns if the budget left nothing to choose from."""
        self.seconds = self.clock() - self.start
        if len(self.tried) == 1 and BUDGET in self.skipped.values():
            text = f"budget={self.budget:g} was enough for the first of {len(self.models)} settings alone"
            warn(BUDGET, f"{text}, so it is returned without a comparison; raise budget.")
        return self.best

    def report(self, settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """A record of every setting, in order."""
        chosen = self.best.number
        return [self._record(number, dict(setting), number == chosen) for number, setting in enumerate(settings)]

    def _record(self, number: int, setting: dict[str, Any], chosen: bool) -> dict[str, Any]:
        one, skipped = self.tried.get(number), self.skipped.get(number)
        numbers = (None, None, 0.0) if one is None else (one.accuracy, one.loss, one.seconds)
        values = dict(zip(("val_accuracy", "val_log_loss", "seconds"), numbers, strict=True))
        return {"setting": setting, **values, "skipped": skipped, "chosen": chosen}


def _some(rows: np.ndarray) -> np.ndarray:
    """At most `_MOST_ROWS` of the rows, at equal distances."""
    return rows if len(rows) <= _MOST_ROWS else rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.intp)]
