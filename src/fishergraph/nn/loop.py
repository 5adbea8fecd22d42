"""The epochs of a training run, and its ends: all epochs done, patience lost, Ctrl-C, or NaN."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fishergraph.nn.batches import FullBatch, Sampled
from fishergraph.nn.checkpoint import Run, Snapshot, restore, take_snapshot, write_snapshot
from fishergraph.nn.history import History, open_log
from fishergraph.nn.near import NearBatch
from fishergraph.nn.watch import NotFinite, check_parameters, watching

_log = logging.getLogger(__name__)

AMP = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Plan:
    """How long a run may last, and what it leaves behind."""

    epochs: int
    patience: int | None
    checkpoint: Path | None
    checkpoint_every: int
    log: Path | None
    progress: Callable[[str, int], Any]


class Loop:
    """The epochs of a run. `good` is its state after the last whole one, to be resumed from or looked into."""

    def __init__(self, run: Run, source: FullBatch | NearBatch | Sampled, plan: Plan):
        self.state, self.source, self.task, self.plan = run, source, source.task, plan
        self.good: Snapshot = take_snapshot(run)
        self.n_classes = int(source.task.y.max()) + 1

    def run(self) -> History:
        """The history of all epochs; the model has the best weights at the end, whichever end it is."""
        history, plan = self.state.history, self.plan
        try:
            with open_log(plan.log, history.rows) as log, plan.progress("training", plan.epochs) as bar:
                bar.update(len(history))
                while len(history) < plan.epochs and not self._waited_enough():
                    row = self._epoch(len(history) + 1)
                    self._keep(row)
                    log.write(row)
                    bar.set_postfix(loss=row["loss"], val=row["val_accuracy"], best=history.best_epoch)
                    bar.update(1)
        except KeyboardInterrupt:
            history.interrupted = True
            _log.warning("interrupted in epoch %d; the best weights so far are kept", len(history) + 1)
        finally:
            self._end()
        return history

    def _waited_enough(self) -> bool:
        """Whether there has been no better epoch for as long as patience lasts."""
        history, patience = self.state.history, self.plan.patience
        if patience is not None and len(self.task.val):
            history.stopped_early = len(history) - history.best_epoch >= patience
        return history.stopped_early

    def _epoch(self, number: int) -> dict[str, Any]:
        """The row of an epoch; raises where it is not finite."""
        start, lr = perf_counter(), self.state.lr
        mean_loss = self._steps(number)
        # One wait for the device per epoch: all its numbers come home together.
        values = torch.stack([mean_loss, *self._measures()]).tolist()
        if not all(abs(value) < float("inf") for value in values):
            raise FloatingPointError(self._explain(number))
        loss, train_accuracy, _, val_accuracy, val_loss = (*values, None, None)[:5]
        row = {"epoch": number, "loss": loss, "train_accuracy": train_accuracy}
        row |= {"val_accuracy": val_accuracy, "val_loss": val_loss}
        return {**row, "lr": lr, "seconds": round(perf_counter() - start, 6)}

    def _steps(self, number: int, *, look: bool = False) -> Tensor:
        """The mean loss of an epoch of steps; with `look` every one is checked, and `NotFinite` raised."""
        state = self.state
        state.model.train()
        total, count = torch.zeros((), device=state.device), 0
        precision = AMP.get(state.settings["amp"])
        for batch in self.source.batches(number):
            state.optimizer.zero_grad(set_to_none=True)
            with torch.autocast(state.device.type, dtype=precision, enabled=precision is not None):
                logits = self._checked(batch.logits(state.model))
            loss = F.cross_entropy(logits if logits.dtype == torch.float64 else logits.float(), batch.y)
            state.scaler.scale(loss).backward()
            if look:  # scaled gradients may overflow: such a step is left out
                check_parameters(state.model, gradients=not state.scaler.is_enabled())
            state.scaler.step(state.optimizer)
            state.scaler.update()
            total, count = total + loss.detach() * len(batch.y), count + len(batch.y)
        return total / max(count, 1)

    def _checked(self, logits: Tensor) -> Tensor:
        """The logits, if there is one for each class."""
        if logits.ndim != 2 or logits.shape[1] < self.n_classes:
            raise ValueError(
                f"model must give a row of {self.n_classes} logits for each node, one per class in y, got shape "
                f"{tuple(logits.shape)}; give it that many outputs."
            )
        return logits

    @torch.no_grad()
    def _measures(self) -> list[Tensor]:
        """Accuracy and loss of the training nodes and, where there are any, of the validation nodes.

        The training loss is looked at because a last step that spoilt the weights shows in it.
        """
        self.state.model.eval()
        logits = self.source.logits(self.state.model)
        found = []
        for nodes in (self.task.train, self.task.val):
            if len(nodes):
                some, y = logits[nodes.to(logits.device)], self.task.y[nodes].to(logits.device)
                found += [(some.argmax(1) == y).float().mean(), F.cross_entropy(some, y)]
        return [value.to(self.state.device, torch.float64) for value in found]

    def _keep(self, row: dict[str, Any]) -> None:
        """Take the epoch into the history, move the schedule on, and remember the state."""
        state, plan = self.state, self.plan
        better = state.history.beats(row)
        state.history.rows.append(row)
        if better:
            state.history.best_epoch, state.best = row["epoch"], state.weights()
        if state.scheduler is not None:
            follows = isinstance(state.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
            with warnings.catch_warnings():  # of a first step that was left out because its scaled gradients overflowed
                warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
                state.scheduler.step(*([row["val_accuracy"]] if follows else []))
        self.good = take_snapshot(state)
        if plan.checkpoint is not None and row["epoch"] % plan.checkpoint_every == 0:
            write_snapshot(plan.checkpoint, self.good)

    def _explain(self, number: int) -> str:
        """The sentence for an epoch whose numbers are not finite: the epoch again, from its beginning, step by step."""
        restore(self.state, self.good)
        where = "the loss itself"
        try:
            with watching(self.state.model):
                self._steps(number, look=True)
                check_parameters(self.state.model, gradients=False)
                self._measures()
        except NotFinite as first:
            where = str(first)
        restore(self.state, self.good)
        return (
            f"the loss must stay finite, got NaN or infinity in epoch {number}, first in {where}; lower lr or rescale "
            f"x, and go on from the weights of epoch {self.state.history.best_epoch}, which the model has again."
        )

    def _end(self) -> None:
        """Give the model its best weights; leave the checkpoint of the last whole epoch."""
        model, best = self.state.model, self.state.best
        model.load_state_dict(best or self.good.part("model."))
        model.eval()
        if self.plan.checkpoint is not None:  # at last: a disk that is full must not cost the weights
            write_snapshot(self.plan.checkpoint, self.good)
