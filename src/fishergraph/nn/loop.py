"""The epochs of a training run. It ends after the last one, by patience, by Ctrl-C, or if a value is not finite."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._errors import InputError, TrainingDiverged
from fishergraph.nn.batches import FullBatch, NearBatch, Sampled, Step
from fishergraph.nn.capture import WARM_UP, EpochGraphs, can_capture, capture_epoch
from fishergraph.nn.checkpoint import Run, Snapshot, restore, take_snapshot, write_snapshot
from fishergraph.nn.history import History, open_log

_log = logging.getLogger(__name__)

AMP = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Plan:
    """How long a run may last, and what it writes."""

    epochs: int
    patience: int | None
    checkpoint: Path | None
    checkpoint_every: int
    log: Path | None
    progress: Callable[[str, int], Any]


class Loop:
    """The epochs of a run. `good` is its state after the last complete one."""

    def __init__(self, run: Run, source: FullBatch | NearBatch | Sampled, plan: Plan):
        self.state, self.source, self.task, self.plan = run, source, source.task, plan
        self.good: Snapshot = take_snapshot(run)
        self.n_classes = int(source.task.y.max()) + 1
        self.captures = can_capture(run.model, source, run.device, run.settings, plan.epochs)
        self.graphs: EpochGraphs | None = None
        self.n_run = 0  # epochs since the start of this call

    def run(self) -> History:
        """The history of all epochs; the model has the best weights in the end, however the run ended."""
        history, plan = self.state.history, self.plan
        try:
            with open_log(plan.log, history.rows) as write, plan.progress("training", plan.epochs) as bar:
                bar.update(len(history))
                while len(history) < plan.epochs and not self._out_of_patience():
                    row = self._epoch(len(history) + 1)
                    self._keep(row)
                    write(row)
                    bar.set_postfix(loss=row["loss"], val=row["val_accuracy"], best=history.best_epoch)
                    bar.update(1)
        except KeyboardInterrupt:
            history.interrupted = True
            _log.warning("interrupted in epoch %d; the best weights so far are kept", len(history) + 1)
        finally:
            self._end()
        return history

    def _out_of_patience(self) -> bool:
        """Whether there was no better epoch for `patience` epochs."""
        history, patience = self.state.history, self.plan.patience
        if patience is not None and len(self.task.val):
            history.stopped_early = len(history) - history.best_epoch >= patience
        return history.stopped_early

    def _epoch(self, number: int) -> dict[str, Any]:
        """The row of an epoch; raises if a number is not finite."""
        start, lr = perf_counter(), self.state.lr
        # One device synchronisation per epoch: all its numbers are copied together.
        values = self._values(number).tolist()
        if not all(abs(value) < float("inf") for value in values):
            raise TrainingDiverged(self._explain(number), epoch=number)
        loss, train_accuracy, _, val_accuracy, val_loss = (*values, None, None)[:5]
        row = {"epoch": number, "loss": loss, "train_accuracy": train_accuracy}
        row |= {"val_accuracy": val_accuracy, "val_loss": val_loss}
        return {**row, "lr": lr, "seconds": round(perf_counter() - start, 6)}

    def _values(self, number: int) -> Tensor:
        """The mean loss and the measures of an epoch; of a small graph on a GPU by CUDA graphs."""
        self.n_run += 1
        if self.captures and self.n_run > WARM_UP and self.graphs is None:
            step = lambda: self._gradients(number)  # noqa: E731
            self.graphs = capture_epoch(self.state.model, self.state.device, step, self._measures)
            self.captures = self.graphs is not None
        if self.graphs is None:
            return self._eager_values(number)
        loss = self.graphs.run_step()
        self.state.optimizer.step()
        return torch.stack([loss, *self.graphs.run_measures()])

    def _eager_values(self, number: int) -> Tensor:
        """The mean loss and the measures of an epoch, kernel by kernel."""
        mean_loss = self._steps(number)
        return torch.stack([mean_loss, *self._measures()])

    def _gradients(self, number: int) -> Tensor:
        """The mean loss of the only step of an epoch, whose gradients are added to those of the parameters."""
        (step,) = self.source.steps(number)
        loss = self._loss(step)
        loss.backward()
        return loss.detach() * len(step.y) / len(step.y)

    def _loss(self, step: Step) -> Tensor:
        """The loss of a step."""
        precision = AMP.get(self.state.settings["amp"])
        with torch.autocast(self.state.device.type, dtype=precision, enabled=precision is not None):
            logits = self._checked(step.logits(self.state.model))
        return F.cross_entropy(logits if logits.dtype == torch.float64 else logits.float(), step.y)

    def _steps(self, number: int, *, check: bool = False) -> Tensor:
        """The mean loss of the steps of an epoch; `check` raises `NotFinite` at the first bad one."""
        state = self.state
        state.model.train()
        total, count = torch.zeros((), device=state.device), 0
        for step in self.source.steps(number):
            state.optimizer.zero_grad(set_to_none=True)
            loss = self._loss(step)
            state.scaler.scale(loss).backward()
            if check:  # scaled gradients may overflow: such a step is left out
                check_parameters(state.model, gradients=not state.scaler.is_enabled())
            state.scaler.step(state.optimizer)
            state.scaler.update()
            total, count = total + loss.detach() * len(step.y), count + len(step.y)
        return total / max(count, 1)

    def _checked(self, logits: Tensor) -> Tensor:
        """The logits, if there is one for each class."""
        if logits.ndim != 2 or logits.shape[1] < self.n_classes:
            expected = f"give a row of {self.n_classes} logits for each node, one per class in y"
            raise InputError(parameter="model", expected=expected, got=f"shape {tuple(logits.shape)}")
        return logits

    @torch.no_grad()
    def _measures(self) -> list[Tensor]:
        """Accuracy and loss of the training nodes and, if there are any, of the validation nodes.

        The training loss shows whether the last step made the weights useless.
        """
        self.state.model.eval()
        task, logits = self.task, self.source.measured(self.state.model)
        measures = []
        for nodes, some in zip((task.train, task.val), logits.split([len(task.train), len(task.val)]), strict=True):
            if len(nodes):
                y = task.y[nodes].to(logits.device)
                measures += [(some.argmax(1) == y).float().mean(), F.cross_entropy(some, y)]
        return [value.to(self.state.device, torch.float64) for value in measures]

    def _keep(self, row: dict[str, Any]) -> None:
        """Add the epoch to the history, advance the schedule, and keep the state."""
        state, plan = self.state, self.plan
        better = state.history.beats(row)
        state.history.rows.append(row)
        if better:
            state.history.best_epoch, state.best = row["epoch"], state.weights()
        if state.scheduler is not None:
            follows = isinstance(state.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
            with warnings.catch_warnings():  # about a first step that overflowed and was left out
                warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
                state.scheduler.step(*([row["val_accuracy"]] if follows else []))
        self.good = take_snapshot(state)
        if plan.checkpoint is not None and row["epoch"] % plan.checkpoint_every == 0:
            write_snapshot(plan.checkpoint, self.good)

    def _explain(self, number: int) -> str:
        """The message for an epoch whose numbers are not finite: it is run again, step by step."""
        restore(self.state, self.good)
        first = "the loss itself"
        try:
            with watching(self.state.model):
                self._steps(number, check=True)
                check_parameters(self.state.model, gradients=False)
                self._measures()
        except NotFinite as error:
            first = str(error)
        restore(self.state, self.good)
        return (
            f"the loss must stay finite, got NaN or infinity in epoch {number}, first in {first}; lower lr or rescale "
            f"x. The model has the weights of epoch {self.state.history.best_epoch} again."
        )

    def _end(self) -> None:
        """Give the model its best weights; write the checkpoint of the last complete epoch."""
        model, best = self.state.model, self.state.best
        model.load_state_dict(best or self.good.part("model."))
        model.eval()
        if self.plan.checkpoint is not None:  # last: a full disk must not cost the weights
            write_snapshot(self.plan.checkpoint, self.good)


# --- where values stop being finite ------------------------------------------------------------------------


class NotFinite(Exception):
    """Raised at the first value that is not finite; the text names its owner."""


@contextmanager
def watching(model: nn.Module) -> Iterator[None]:
    """Raise `NotFinite` as soon as a layer returns a value that is not finite; inner layers come first."""

    def watch(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.is_floating_point() and not _finite(output):
                raise NotFinite(f"the output of layer '{name}' ({type(module).__name__})")

        return hook

    hooks = [module.register_forward_hook(watch(name)) for name, module in model.named_modules() if name]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def check_parameters(model: nn.Module, *, gradients: bool) -> None:
    """Raise `NotFinite` at the first parameter that is not finite, or has a gradient that is not."""
    for name, parameter in model.named_parameters():
        if gradients and parameter.grad is not None and not _finite(parameter.grad):
            raise NotFinite(f"the gradient of '{name}' ({_owner(model, name)})")
        if not _finite(parameter):
            raise NotFinite(f"the parameter '{name}' ({_owner(model, name)})")


def _owner(model: nn.Module, name: str) -> str:
    return type(model.get_submodule(name.rpartition(".")[0])).__name__


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())
