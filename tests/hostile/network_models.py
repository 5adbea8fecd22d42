"""Trained classifiers, and the checkpoints of a training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph import FisherClassifier, Neighbourhood, Paths
from fishergraph.nn import Network, Training
from hostile.model_kinds import COUNTS, GRAPH, D, N, X, Y


def _classifier(**options: Any) -> tuple[Any, Callable[[Any], Any]]:
    texts = options.pop("texts", False)
    y = np.array(["a", "bb", "c"])[Y] if texts else Y
    training = Training(max_epochs=2, validation_fraction=0)
    given = {"n_layers": 1, "n_anchors": 2, "dim": 3, "training": training, "random_state": 0}
    data = COUNTS if options.get("family") == "multinomial" else X
    model = FisherClassifier(**{**given, **options}).fit(data, y, graph=GRAPH)
    return model, lambda model: [model.predict_proba(data, graph=GRAPH), model.predict(data, graph=GRAPH)]


class Run:
    """A checkpoint, loaded by a training that goes on from it."""

    def __init__(self, schedule: str | None):
        self.schedule = schedule

    def train(self, path: Path, epochs: int, *, resume: bool) -> Any:
        import torch

        from fishergraph.nn import FisherNet
        from fishergraph.nn.training import train

        torch.manual_seed(0)
        net = FisherNet(D, 3, 1, 3, num_anchors=2)
        edges = torch.tensor(np.stack(GRAPH.nonzero()[::-1]))
        given = {"train": np.arange(15), "val": np.arange(15, N), "schedule": self.schedule, "patience": 30}
        # The cosine reaches zero at the last epoch, so that all runs have the same number of them.
        most = 4 if self.schedule == "cosine" else epochs
        history = train(net, X, Y, edges, epochs=most, checkpoint=path, resume=resume, checkpoint_every=1, **given)
        rows = [{**row, "seconds": 0.0} for row in history.rows]
        return [[list(row.values()) for row in rows], [weight.detach() for weight in net.state_dict().values()]]

    def save(self, path: Path) -> None:
        if self.schedule == "cosine":
            self._interrupted(path)
        else:
            self.train(path, 2, resume=False)

    def _interrupted(self, path: Path) -> None:
        """The checkpoint of the second epoch of four."""
        from unittest import mock

        import fishergraph.nn.loop as loop

        write, seen = loop.write_snapshot, []

        def once(where: Path, snapshot: Any) -> None:
            seen.append(0)
            if len(seen) <= 2:
                write(where, snapshot)

        with mock.patch.object(loop, "write_snapshot", once):
            self.train(path, 4, resume=False)

    @staticmethod
    def load(path: Path) -> Path:
        return path


def _checkpoint(schedule: str | None) -> tuple[Any, Callable[[Any], Any]]:
    run = Run(schedule)
    return run, lambda path: run.train(path, 3, resume=True)


MODELS: dict[str, Callable[[], tuple[Any, Callable[[Any], Any]]]] = {
    "classifier": _classifier,
    "classifier, relu": lambda: _classifier(
        network=Network(head="relu", jk="last"), family="diagonal-mixture", texts=True
    ),
    "classifier, counts": lambda: _classifier(network=Network(head="linear"), family="multinomial"),
    "classifier, both directions": lambda: _classifier(multiset=Neighbourhood(direction="both"), dim=2),
    "classifier, paths": lambda: _classifier(multiset=Paths(2), dim=2),
    "checkpoint": lambda: _checkpoint(None),
    "checkpoint, plateau": lambda: _checkpoint("plateau"),
    "checkpoint, cosine": lambda: _checkpoint("cosine"),
}
