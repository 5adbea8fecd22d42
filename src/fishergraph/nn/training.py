"""`train`: cross-entropy and Adam on the nodes of a graph, with early stopping, checkpoints and a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from fishergraph._progress import progress_bar
from fishergraph._validation import (
    MOST_COLUMNS,
    check_device,
    check_flag,
    check_integer,
    check_n_jobs,
    check_number,
    check_seed,
    look_up,
)
from fishergraph._warn import each_warning_once
from fishergraph.io.files import check_folder
from fishergraph.nn.batches import FullBatch, Sampled, given_batches, sampled
from fishergraph.nn.checkpoint import Run, checksum, describe_model, read_snapshot, restore
from fishergraph.nn.history import History, check_log
from fishergraph.nn.lifted import check_edges_alone
from fishergraph.nn.loader_door import check_fan_outs
from fishergraph.nn.loop import AMP, Loop, Plan
from fishergraph.nn.near import NearBatch, near_batch
from fishergraph.nn.training_door import Task, model_option, open_task
from fishergraph.ops.torch_device import find_device
from fishergraph.ops.torch_threads import torch_threads

MOST_EPOCHS = 10**7
STEEPEST = 1e30  # a learning rate or a penalty: float32 holds its products with weights
_log = logging.getLogger(__name__)


@each_warning_once()
def train(
    model: nn.Module,
    x: Any,
    y: Any,
    edge_index: Any,
    *,
    train: Any,
    val: Any = None,
    edge_weight: Any = None,
    epochs: int = 500,
    lr: float = 0.001,
    weight_decay: float = 5e-4,
    patience: int | None = 100,
    schedule: str | None = None,
    batch_size: int | None = None,
    num_neighbors: Any = None,
    loader: Any = None,
    near: bool = False,
    amp: bool | str = False,
    device: Any = None,
    seed: int = 0,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    resume: bool = False,
    log: str | Path | None = None,
    progress: Any = False,
) -> History:
    """The history of a training; the model has the weights of its best epoch afterwards, and is in evaluation mode.

    The best epoch is that of the highest validation accuracy, of equal ones that of the lowest validation loss; without
    validation nodes it is the last. Accuracies are exact: of all neighbours, without dropout, in full precision.

    Parameters
    ----------
    model : `FisherNet`, or a model of PyG's that is called in the same way.
    x, edge_index, edge_weight : as the model takes them.
    y : class numbers, (node,); −1 where there is none.
    train, val : masks or numbers of labelled nodes, none of them in both.
    epochs : the most epochs.
    patience : epochs without a better one after which the run stops; None never stops.
    schedule : of the learning rate: None; "cosine", down to zero at the last epoch; "plateau", halved where the
        validation accuracy has not risen for a third of `patience`.
    batch_size : training nodes in a step; None takes the whole graph at once.
    num_neighbors : with batch_size, how many neighbours are sampled at each distance: a number, or one per layer.
    loader : batches of one's own instead, as PyG's `NeighborLoader` gives them. Weights that hang on degrees
        (weights="symmetric") are then those of a batch; with batch_size they are those of the whole graph.
    near : compute what the training and validation nodes hear and nothing else, a fraction of the work where few nodes
        have labels; the numbers are those of the whole graph, but for the draws of dropout. For `FisherNet`.
    amp : True or "bf16", or "fp16" with scaled gradients: the precision of products in training.
    device : where the work is done; None where the model is.
    seed : of dropout and sampling; the caller's random state is left as it was.
    n_jobs : threads of the compiled loops on the CPU, any number with the same result; PyTorch's own operators then use
        one, since they round differently with more. None uses every core, and leaves PyTorch as it is.
    checkpoint : a file from which `resume=True` goes on as if nothing had happened, with the same model, data and
        split; written every `checkpoint_every` epochs, at the end, at Ctrl-C, and before an error. If it does not
        exist yet, the run begins with the first epoch, and a warning is logged.
    log : a .csv or .jsonl file with a row per epoch.
    progress : True shows a bar; a callable is used as in `FisherEmbedding(verbose=…)`.

    Ctrl-C ends the run and keeps the best weights so far. A loss that is not finite raises FloatingPointError, which
    names the layer; the model then has the best weights, and the checkpoint is that of the last good epoch.
    """
    with torch_threads(check_n_jobs(n_jobs)):
        task = open_task(model, x, y, edge_index, edge_weight, train, val)
        plan = _plan(epochs, patience, checkpoint, checkpoint_every, log, progress)
        place = _device(model, device)
        model.to(place)
        source = _source(model, task, batch_size, num_neighbors, loader, check_flag(near, "near"), place, seed)
        settings = {
            "lr": check_number(lr, "lr", strict=True, most=STEEPEST),
            "weight_decay": check_number(weight_decay, "weight_decay", most=STEEPEST),
            "schedule": schedule,
            "batch_size": batch_size,
            "amp": _amp(amp),
            "seed": check_seed(seed),
            "n_nodes": task.n_nodes,
            "n_train": len(task.train),
            "n_val": len(task.val),
            **describe_model(model),
        }
        if plan.checkpoint is not None:
            settings["data_checksum"] = checksum(task.x, task.y, task.edge_index, task.edge_weight)
            settings["split_checksum"] = checksum(task.train, task.val)
        with own_randomness(place, seed):
            if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
                with torch.no_grad():  # widths of −1 are those of the first input
                    source.logits(model.eval())
            run = _start(model, settings, plan, place)
            if check_flag(resume, "resume"):
                _resume(run, plan.checkpoint)
            return Loop(run, source, plan).run()


def _plan(epochs: Any, patience: Any, checkpoint: Any, every: Any, log: Any, progress: Any) -> Plan:
    if checkpoint is not None:
        check_folder(Path(checkpoint))
    return Plan(
        check_integer(epochs, "epochs", least=1, most=MOST_EPOCHS),
        None if patience is None else check_integer(patience, "patience (or None)", least=1),
        None if checkpoint is None else Path(checkpoint),
        check_integer(every, "checkpoint_every", least=1),
        check_log(log),
        progress_bar(progress, unit="epoch"),
    )


def _resume(run: Run, checkpoint: Path | None) -> None:
    """Bring a run to the state of its checkpoint; a run that was killed before the first one begins anew."""
    if checkpoint is None:
        raise ValueError("resume=True needs the checkpoint of the run, got checkpoint=None; pass its path.")
    if checkpoint.exists():
        restore(run, read_snapshot(checkpoint, run))
    else:
        _log.warning("no checkpoint at '%s' yet; the run begins with the first epoch", checkpoint)


def _device(model: nn.Module, device: Any) -> torch.device:
    if device is None:
        return next(iter(model.parameters())).device
    check_device(str(device), "float32")
    return find_device(str(device))


def _amp(amp: Any) -> str | None:
    """The name of the lower precision, or None."""
    if isinstance(amp, bool):
        return "bf16" if amp else None
    look_up(AMP, amp, "amp (or True, False)")
    return amp


def _source(
    model: nn.Module, task: Task, batch_size: Any, num_neighbors: Any, loader: Any, near: bool, device: torch.device,
    seed: int,
) -> FullBatch | NearBatch | Sampled:  # fmt: skip
    """Where the batches come from."""
    if near or loader is not None or batch_size is not None:
        check_edges_alone(task.edge_index, "a batch of nodes (batch_size, loader or near)")
    if near and (loader is not None or batch_size is not None):
        raise ValueError("near=True takes all training nodes in one step, got batches too; leave one of them out.")
    if loader is not None:
        if batch_size is not None or num_neighbors is not None:
            raise ValueError("a loader has its own batches, got batch_size or num_neighbors too; leave them out.")
        return Sampled(task, lambda epoch: given_batches(loader, epoch), device)
    if batch_size is None:
        if num_neighbors is not None:
            raise ValueError("num_neighbors belongs to mini-batches, got no batch_size; pass it, or leave both out.")
        return near_batch(model, task.to(device)) if near else FullBatch(task.to(device))
    n_layers = model_option(model, "num_layers")
    if num_neighbors is None or isinstance(num_neighbors, (int, np.integer)):
        if n_layers is None:
            raise ValueError(
                f"num_neighbors must list a number per layer where the model does not say how many it has, got "
                f"{num_neighbors!r}; pass for instance [10, 10]."
            )
        num_neighbors = [10 if num_neighbors is None else num_neighbors] * n_layers
    num_neighbors = check_fan_outs(num_neighbors)
    if n_layers is not None and len(num_neighbors) != n_layers:
        raise ValueError(
            f"num_neighbors must have a number for each of the {n_layers} layers, got {len(num_neighbors)}; "
            "pass that many."
        )
    return sampled(
        model,
        task,
        num_neighbors,
        check_integer(batch_size, "batch_size", least=1, most=MOST_COLUMNS),
        device=device,
        seed=seed,
    )


@contextmanager
def own_randomness(device: torch.device, seed: int) -> Iterator[None]:
    """A block with torch's generators of the CPU and of this device, seeded, and given back afterwards as they were."""
    cards = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(cards):
        torch.default_generator.manual_seed(seed)
        if cards:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _start(model: nn.Module, settings: dict[str, Any], plan: Plan, device: torch.device) -> Run:
    """A run before its first epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"], weight_decay=settings["weight_decay"])
    schedule = settings["schedule"]
    make = look_up({**_SCHEDULES, "none": lambda *_: None}, "none" if schedule is None else schedule, "schedule")
    if schedule == "plateau" and not settings["n_val"]:
        raise ValueError("schedule='plateau' follows the validation accuracy, got no val; pass val, or 'cosine'.")
    if schedule == "cosine":
        settings["epochs"] = plan.epochs  # it decides every learning rate
    scaler = torch.amp.GradScaler(device.type, enabled=settings["amp"] == "fp16")
    return Run(model, optimizer, make(optimizer, plan), scaler, device, settings)


_SCHEDULES: dict[str, Callable[[Any, Plan], Any]] = {
    "cosine": lambda optimizer, plan: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, plan.epochs),
    "plateau": lambda optimizer, plan: torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, "max", 0.5, max((plan.patience or 30) // 3, 1)
    ),
}
