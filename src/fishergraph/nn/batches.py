"""What an epoch of training sees: the whole graph at once, neighbourhoods of some nodes, or a loader's batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from fishergraph.nn.loader import CSRNeighborLoader
from fishergraph.nn.training_door import Task
from fishergraph.ops.torch_sets import TensorSets


class Batch(NamedTuple):
    """A step of training: the logits of some nodes, as a function of the model, and their labels."""

    logits: Callable[[nn.Module], Tensor]
    y: Tensor


@dataclass(frozen=True)
class FullBatch:
    """One step per epoch, on the whole graph."""

    task: Task

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The only batch; it is the same in every epoch."""
        yield Batch(lambda model: self.logits(model)[self.task.train], self.task.y[self.task.train])

    def logits(self, model: Any) -> Tensor:
        """The logits of all nodes."""
        return _call(model, self.task)


def _call(model: Any, task: Task) -> Tensor:
    # Not every model of PyG knows edge weights.
    weights = {} if task.edge_weight is None else {"edge_weight": task.edge_weight}
    return model(task.x, task.edge_index, **weights)


@dataclass(frozen=True)
class Sampled:
    """Steps on sampled neighbourhoods; the logits of all nodes are exact, computed layer by layer.

    loader : epoch → its batches, PyG's `Data` with x, y, edge_index and batch_size.
    """

    task: Task  # on the host
    loader: Callable[[int], Iterable[Any]]
    device: torch.device

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, each brought to the device."""
        for data in self.loader(epoch):
            data = _checked(data).to(self.device, non_blocking=True)
            yield Batch(lambda model, data=data: _call_batch(model, data), data.y[: data.batch_size].long())

    def logits(self, model: Any) -> Tensor:
        """The logits of all nodes, layer by layer; a model that cannot do that is given the whole graph."""
        task, inference = self.task, getattr(model, "inference", None)
        if inference is None or "edge_index" not in signature(inference).parameters:
            return _call(model, task.to(self.device))
        return inference(task.x, task.edge_index, task.edge_weight, device=self.device)


def sampled(task: Task, hops: list[int], batch_size: int, *, device: torch.device, seed: int) -> Sampled:
    """Steps on `batch_size` training nodes with up to hops[k] neighbours at distance k, drawn by seed and epoch."""
    source: Any = task.edge_index
    beside: dict[str, Any] = {"x": task.x, "y": task.y}
    if not isinstance(source, TensorSets):
        weights = {} if task.edge_weight is None else {"edge_weight": task.edge_weight}
        source, beside = Data(**beside, edge_index=source, **weights), {}
    # A batch norm learns nothing from one row: a last batch of one node waits for another epoch.
    lonely = len(task.train) > batch_size > 1 and len(task.train) % batch_size == 1
    loader = CSRNeighborLoader(
        source, hops, input_nodes=task.train, batch_size=batch_size, shuffle=True, drop_last=lonely, seed=seed,
        device=device, pin_memory=device.type == "cuda", **beside,
    )  # fmt: skip

    def batches(epoch: int) -> CSRNeighborLoader:
        loader.epoch = epoch
        return loader

    return Sampled(task, batches, device)


def _checked(data: Any) -> Any:
    missing = [name for name in ("x", "y", "edge_index") if getattr(data, name, None) is None]
    if missing:
        raise ValueError(
            f"the batches of a loader must have x, y and edge_index, got none of {', '.join(missing)}; "
            "give the loader the features and labels of the nodes."
        )
    return data


def _call_batch(model: Any, data: Any) -> Tensor:
    """The logits of a batch's first nodes, its seeds; what a model does not need of the hops is left out."""
    options = {
        "edge_weight": getattr(data, "edge_weight", None),
        "num_sampled_nodes_per_hop": getattr(data, "num_sampled_nodes", None),
        "num_sampled_edges_per_hop": getattr(data, "num_sampled_edges", None),
    }
    given = {name: value for name, value in options.items() if value is not None}
    return model(data.x, data.edge_index, **given, batch_size=data.batch_size)[: data.batch_size]
