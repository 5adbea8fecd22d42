"""What an epoch of training sees: the whole graph at once, neighbourhoods of some nodes, or a loader's batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch as GraphBatch
from torch_geometric.data import Data

from fishergraph.nn.loader import CSRNeighborLoader
from fishergraph.nn.training_door import Task
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_sets import TensorSets


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
    whole: bool = False  # the edges of a batch are multisets that the model made of the whole graph

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, each brought to the device."""
        for data in self.loader(epoch):
            data = data.to(self.device, non_blocking=True)
            y = data.y[: data.batch_size].long()
            yield Batch(lambda model, data=data: _call_batch(model, data, self.whole), y)

    def logits(self, model: Any) -> Tensor:
        """The logits of all nodes, layer by layer; a model that cannot do that is given the whole graph."""
        task, inference = self.task, getattr(model, "inference", None)
        if inference is None or "edge_index" not in signature(inference).parameters:
            return _call(model, task.to(self.device))
        return inference(task.x, task.edge_index, task.edge_weight, device=self.device)


def sampled(model: Any, task: Task, hops: list[int], batch_size: int, *, device: torch.device, seed: int) -> Sampled:
    """Steps on `batch_size` training nodes with up to hops[k] neighbours at distance k, drawn by seed and epoch.

    A model that makes multisets of edges makes them of all edges: a batch has the loops and weights of the whole graph.
    """
    source: Any = task.edge_index
    whole = hasattr(model, "sets") and len(getattr(model, "convs", ())) > 0  # as a FisherNet does
    if whole:
        with torch.no_grad():
            source = model.sets(source, task.edge_weight, task.n_nodes)
    elif getattr(source, "layout", torch.strided) != torch.strided:
        source = tensor_sets(source)
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

    return Sampled(task, batches, device, whole)


def given_batches(loader: Iterable[Any], epoch: int) -> Iterator[Any]:
    """The batches of somebody's loader, each of them looked at."""
    data = None
    for data in loader:
        yield _checked(data)
    if data is None:
        raise ValueError(
            f"a loader must give batches in every epoch, got none in epoch {epoch}; pass the loader itself, not an "
            "iterator over it, with at least one node."
        )


def _checked(data: Any) -> Any:
    missing = [name for name in ("x", "y", "edge_index", "batch_size") if getattr(data, name, None) is None]
    if missing or isinstance(data, GraphBatch):
        got = f"none of {', '.join(missing)}" if missing else "a batch of whole graphs"
        raise ValueError(
            f"the batches of a loader must have x, y, edge_index and batch_size, the number of their seeds, got {got}; "
            "pass a NeighborLoader of a graph with features and labels."
        )
    if bool((data.y[: data.batch_size] < 0).any()):
        raise ValueError("the seeds of a batch must have labels, got -1 in y; give the loader labelled input_nodes.")
    return data


def _call_batch(model: Any, data: Any, whole: bool) -> Tensor:
    """The logits of a batch's first nodes, its seeds; what a model does not need of the hops is left out.

    Where the edges are `whole`, they are multisets already, with loops and weights.
    """
    edges, weights = data.edge_index, getattr(data, "edge_weight", None)
    if whole:
        edges, weights = tensor_sets(edges, weights=weights), None
    hops = {
        "num_sampled_nodes_per_hop": getattr(data, "num_sampled_nodes", None),
        "num_sampled_edges_per_hop": getattr(data, "num_sampled_edges", None),
        "batch_size": data.batch_size,
    }
    known = signature(model.forward).parameters
    takes_all = any(parameter.kind == parameter.VAR_KEYWORD for parameter in known.values())
    given = {name: value for name, value in hops.items() if value is not None and (takes_all or name in known)}
    given |= {} if weights is None else {"edge_weight": weights}
    return model(data.x, edges, **given)[: data.batch_size]
