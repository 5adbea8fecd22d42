"""`train`: cross-entropy and Adam on the nodes of a graph, with early stopping, checkpoints and a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from fishergraph._errors import InputError, InputTypeError
from fishergraph._progress import progress_bar
from fishergraph._validation import (
    MOST_COLUMNS,
    check_flag,
    check_integer,
    check_n_jobs,
    check_number,
    check_seed,
    look_up,
)
from fishergraph._warn import each_warning_once
from fishergraph.io.files import as_path, check_folder
from fishergraph.nn.batches import FullBatch, NearBatch, Sampled, full_batch, loader_batches, near_batch, sampled
from fishergraph.nn.checkpoint import Run, checksum, describe_model, read_snapshot, restore
from fishergraph.nn.history import History, check_log
from fishergraph.nn.inference import model_device
from fishergraph.nn.lifted import check_plain
from fishergraph.nn.loader import check_fan_outs
from fishergraph.nn.loop import AMP, Loop, Plan
from fishergraph.nn.stored import OpenGraph, opened
from fishergraph.nn.task import Task, make_task, model_option
from fishergraph.ops.torch_threads import sleeping_threads, torch_threads

MOST_EPOCHS = 10**7
MOST_RATE = 1e30  # of learning rates and penalties: float32 can represent their products with weights
_log = logging.getLogger(__name__)


@each_warning_once()
def train(
    model: nn.Module,
    x: Any,
    y: Any,
    edge_index: Any = None,
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
    """Train a model on the labelled nodes of a graph.

    In the end it has the weights of its best epoch, and is in evaluation mode.

    The best epoch has the highest validation accuracy, and among equal ones the lowest validation loss; without
    validation nodes it is the last one. Accuracies are exact: all neighbours, no dropout, full precision.

    Parameters
    ----------
    model : Module
        `FisherNet`, or a model of PyG that is called in the same way.
    x : Tensor of shape (n_nodes, n_features), or Store
        Features, dense or sparse CSR; or a graph on disk, which has the edges too, for a `FisherNet` with `batch_size`.
    y : Tensor of shape (n_nodes,)
        Class numbers; -1 marks nodes without a label.
    edge_index : Tensor, EdgeIndex, TensorSets or LiftedSets, optional
        The graph, as the model takes it; left out beside a store.
    train : mask or node numbers
        Labelled nodes to train on.
    val : mask or node numbers, optional
        Labelled nodes that decide when to stop, none of them in `train`.
    edge_weight : Tensor of shape (n_edges,), optional
        Weights of the edges.
    epochs : int, default=500
        The most epochs.
    lr : float, default=0.001
        Learning rate of Adam.
    weight_decay : float, default=5e-4
        Weight decay of Adam.
    patience : int or None, default=100
        Epochs without a better one after which the training stops; None never stops.
    schedule : {None, "cosine", "plateau"}, default=None
        Of the learning rate: constant; down to zero at the last epoch; or halved if the validation accuracy has not
        risen for a third of `patience`.
    batch_size : int, optional
        Training nodes of a step; None takes the whole graph at once.
    num_neighbors : int or list of int, optional
        Neighbours sampled at each distance with `batch_size`, one number or one per layer; None is 10.
    loader : iterable, optional
        Batches of a `NeighborLoader` instead. Symmetric weights are then those of a batch, with `batch_size` those of
        the whole graph.
    near : bool, default=False
        Compute the nodes that the training and validation nodes depend on, and no others: less work if few nodes have
        labels, with the same numbers but for the draws of dropout. For `FisherNet`.
    amp : {False, True, "bf16", "fp16"}, default=False
        The precision of products in training; True is "bf16", "fp16" scales gradients.
    device : str or torch.device, optional
        None is the device of the model.
    seed : int, default=0
        Decides dropout and sampling; the caller's random state stays as it was.
    n_jobs : int, optional
        Threads of the compiled loops on the CPU, with the same result at any number; PyTorch then uses one, because it
        rounds differently with more. None uses every core, and leaves PyTorch as it is.
    checkpoint : str or path, optional
        A file to resume from, with the same model, data and split. It is written every `checkpoint_every` epochs, at
        the end, at Ctrl-C, and before an error.
    checkpoint_every : int, default=10
        Epochs between two checkpoints.
    resume : bool, default=False
        Continue from the checkpoint. If it does not exist, the training starts with the first epoch and logs a warning.
    log : str or path, optional
        A .csv or .jsonl file with a row per epoch.
    progress : bool or callable, default=False
        Show a bar; a callable is used as in ``FisherEmbedding(verbose=…)``.

    Returns
    -------
    History
        A row per epoch.

    Raises
    ------
    TrainingDiverged
        If the loss is not finite; it names the layer. The model then has the best weights, and the checkpoint is that
        of the last good epoch. Ctrl-C ends the training and keeps the best weights too.

    See Also
    --------
    FisherClassifier : The same for scikit-learn users.

    Examples
    --------
    >>> import torch
    >>> from fishergraph.nn import FisherNet, train
    >>> x, y = torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1])
    >>> edge_index = torch.tensor([[0, 1, 2, 3, 4], [2, 3, 4, 5, 0]])
    >>> history = train(FisherNet(4, 8, 1, 2), x, y, edge_index, train=[0, 1, 2, 3], val=[4, 5], epochs=3)
    >>> len(history)
    3
    """
    with torch_threads(check_n_jobs(n_jobs)), sleeping_threads(), opened(model, x, edge_index, edge_weight) as x:
        task = make_task(model, x, y, edge_index, edge_weight, train, val)
        plan = _plan(epochs, patience, checkpoint, checkpoint_every, log, progress)
        target = model_device(model, device)
        model.to(target)
        source = _source(model, task, batch_size, num_neighbors, loader, check_flag(near, "near"), target, seed)
        settings = {
            "lr": check_number(lr, "lr", strict=True, most=MOST_RATE),
            "weight_decay": check_number(weight_decay, "weight_decay", most=MOST_RATE),
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
            settings |= _checksums(task)
        with own_randomness(target, seed):
            if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
                with torch.no_grad():  # widths of −1 are those of the first input
                    source.measured(model.eval())
            run = _start(model, settings, plan, target)
            if check_flag(resume, "resume"):
                _resume(run, plan.checkpoint)
            return Loop(run, source, plan).run()


def _plan(epochs: Any, patience: Any, checkpoint: Any, every: Any, log: Any, progress: Any) -> Plan:
    if checkpoint is not None:
        checkpoint = as_path(checkpoint, "checkpoint")
        check_folder(checkpoint)
    return Plan(
        check_integer(epochs, "epochs", least=1, most=MOST_EPOCHS),
        None if patience is None else check_integer(patience, "patience (or None)", least=1),
        checkpoint,
        check_integer(every, "checkpoint_every", least=1),
        check_log(log),
        progress_bar(progress, unit="epoch"),
    )


def _checksums(task: Task) -> dict[str, Any]:
    """What the data of a run must have when it is resumed."""
    found: dict[str, Any] = {"split_checksum": checksum(task.train, task.val)}
    if isinstance(task.x, OpenGraph):
        return found | {"store": task.x.digest, "data_checksum": checksum(task.y)}
    return found | {"data_checksum": checksum(task.x, task.y, task.edge_index, task.edge_weight)}


def _resume(run: Run, checkpoint: Path | None) -> None:
    """Bring a run to the state of its checkpoint, if that exists."""
    if checkpoint is None:
        advice = "pass its path"
        raise InputError(parameter="checkpoint", expected="be a path with resume=True", advice=advice)
    if checkpoint.exists():
        restore(run, read_snapshot(checkpoint, run))
    else:
        _log.warning("no checkpoint at '%s' yet; the run starts with the first epoch", checkpoint)


def _amp(amp: Any) -> str | None:
    """The name of the lower precision, or None."""
    if isinstance(amp, bool):
        return "bf16" if amp else None
    look_up(AMP, amp, "amp (or True, False)")
    return amp


def _source(
    model: nn.Module,
    task: Task,
    batch_size: Any,
    num_neighbors: Any,
    loader: Any,
    near: bool,
    device: torch.device,
    seed: int,
) -> FullBatch | NearBatch | Sampled:
    """Where the steps of an epoch come from."""
    if isinstance(task.x, OpenGraph):
        _check_sampled(near, batch_size, loader)
    if near or loader is not None or batch_size is not None:
        check_plain(task.edge_index, "a batch of nodes (batch_size, loader or near)")
    if near and (loader is not None or batch_size is not None):
        raise InputError(
            "near=True takes all training nodes in one step, got batches too; leave one of them out.", parameter="near"
        )
    if loader is not None:
        if not isinstance(loader, Iterable):
            raise InputTypeError(parameter="loader", value=loader, expected="be an iterable of batches")
        if batch_size is not None or num_neighbors is not None:
            text = "a loader has its own batches, got batch_size or num_neighbors too; leave them out."
            raise InputError(text, parameter="loader")
        return Sampled(task, lambda epoch: loader_batches(loader, epoch), device)
    if batch_size is None:
        if num_neighbors is not None:
            text = "num_neighbors belongs to mini-batches, got no batch_size; pass it, or leave both out."
            raise InputError(text, parameter="num_neighbors", value=num_neighbors)
        return near_batch(model, task.to(device)) if near else full_batch(model, task.to(device))
    hops = _fan_outs(num_neighbors, model_option(model, "num_layers"))
    size = check_integer(batch_size, "batch_size", least=1, most=MOST_COLUMNS)
    return sampled(model, task, hops, size, device=device, seed=seed)


def _check_sampled(near: bool, batch_size: Any, loader: Any) -> None:
    """Raise unless the steps of a store are batches that are sampled from it."""
    for name, asked in (("near", near), ("loader", loader is not None)):
        if asked:
            raise InputError(
                f"{name} needs a graph in memory, got a store; leave it out, and pass batch_size.", parameter=name
            )
    if batch_size is None:
        expected = "be given for a store, whose graph is not read at once"
        advice = "pass batch_size=1024, for example"
        raise InputError(parameter="batch_size", value=batch_size, expected=expected, advice=advice)


def _fan_outs(num_neighbors: Any, n_layers: int | None) -> list[int]:
    """The neighbours to sample at each distance, one number per layer."""
    if num_neighbors is None or isinstance(num_neighbors, (int, np.integer)):
        if n_layers is None:
            expected = "list a number per layer, such as [10, 10], if the model does not say how many it has"
            raise InputError(parameter="num_neighbors", value=num_neighbors, expected=expected)
        num_neighbors = [10 if num_neighbors is None else num_neighbors] * n_layers
    hops = check_fan_outs(num_neighbors)
    if n_layers is not None and len(hops) != n_layers:
        expected = f"have a number for each of the {n_layers} layers"
        raise InputError(parameter="num_neighbors", value=num_neighbors, expected=expected, got=str(len(hops)))
    return hops


@contextmanager
def own_randomness(device: torch.device, seed: int) -> Iterator[None]:
    """A block with torch's generators of the CPU and of this device, seeded, and restored afterwards."""
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus):
        torch.default_generator.manual_seed(seed)
        if gpus:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _start(model: nn.Module, settings: dict[str, Any], plan: Plan, device: torch.device) -> Run:
    """A run before its first epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"], weight_decay=settings["weight_decay"])
    schedule = settings["schedule"]
    make = look_up(SCHEDULES, "none" if schedule is None else schedule, "schedule (or None)")
    if schedule == "plateau" and not settings["n_val"]:
        expected = "be another than 'plateau' without val, whose accuracy it follows"
        raise InputError(parameter="schedule", value=schedule, expected=expected)
    if schedule == "cosine":
        settings["epochs"] = plan.epochs  # it decides every learning rate
    scaler = torch.amp.GradScaler(device.type, enabled=settings["amp"] == "fp16")
    return Run(model, optimizer, make(optimizer, plan), scaler, device, settings)


SCHEDULES: dict[str, Callable[[Any, Plan], Any]] = {
    "cosine": lambda optimizer, plan: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, plan.epochs),
    "plateau": lambda optimizer, plan: torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, "max", 0.5, max((plan.patience or 30) // 3, 1)
    ),
    "none": lambda optimizer, plan: None,
}
