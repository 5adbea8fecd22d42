"""What an epoch of training uses: the whole graph, the nodes near the labelled ones, or sampled neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch as GraphBatch
from torch_geometric.data import Data

from fishergraph._errors import InputError
from fishergraph.nn.loader import CSRNeighborLoader
from fishergraph.nn.rows import dense_if_small, take_rows
from fishergraph.nn.stored import OpenGraph
from fishergraph.nn.task import Task
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.tensor_split import split_tensors


class Step(NamedTuple):
    """A step of training: the logits of some nodes, as a function of the model, and their labels."""

    logits: Callable[[nn.Module], Tensor]
    y: Tensor


# --- the whole graph ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FullBatch:
    """One step per epoch, on the whole graph."""

    task: Task

    def steps(self, epoch: int) -> Iterator[Step]:
        """The only step; it is the same in every epoch."""
        task = self.task
        yield Step(lambda model: _call(model, task)[task.train], task.y[task.train])

    def measured(self, model: Any) -> Tensor:
        """The logits of the training nodes, then those of the validation nodes."""
        return _call(model, self.task)[self.task.measured]


def full_batch(model: Any, task: Task) -> FullBatch:
    """The steps of a model on a task on its device.

    On a GPU the multisets of a `FisherNet` are made once for all, and sparse rows of a small graph become dense: their
    products are as fast, and wait for nothing.
    """
    on_gpu = task.y.device.type == "cuda"
    if not on_gpu or not hasattr(model, "sets") or any(conv.is_explained() for conv in model.convs):
        return FullBatch(task)
    with torch.no_grad():
        sets = model.sets(task.edge_index, task.edge_weight, task.n_nodes)
    if not isinstance(sets, TensorSets):
        return FullBatch(task)
    return FullBatch(replace(task, x=dense_if_small(task.x), edge_index=sets, edge_weight=None))


def _call(model: Any, task: Task) -> Tensor:
    # Not every model of PyG takes edge weights.
    weights = {} if task.edge_weight is None else {"edge_weight": task.edge_weight}
    return model(task.x, task.edge_index, **weights)


# --- the nodes near the labelled ones ----------------------------------------------------------------------
# With T layers the logits of some nodes depend on the nodes within T hops, and layer t must be known within T − t hops
# alone. If few nodes have labels this is a fraction of the work, with the same numbers.


@dataclass(frozen=True)
class Field:
    """The receptive field of some nodes: they come first, then those one hop away, and so on.

    sets : those of the last hop are empty, because no layer uses them.
    per_hop : how many nodes are new at each distance.
    """

    x: Tensor
    sets: TensorSets
    per_hop: list[int]

    def logits(self, model: Any) -> Tensor:
        """The logits of the nodes whose field it is."""
        return model(self.x, self.sets, batch_size=self.per_hop[0], num_sampled_nodes_per_hop=self.per_hop)


def receptive_field(x: Tensor, sets: TensorSets, nodes: Tensor, n_hops: int) -> Field:
    """The field of `nodes` for `n_hops` layers; the multisets keep the weights of the whole graph."""
    number = torch.full((sets.n_sets,), -1, dtype=torch.int64, device=sets.device)
    hops = [nodes]
    for _ in range(n_hops):
        number[hops[-1]] = 0
        members = sets.take(hops[-1]).indices.long().unique()
        hops.append(members[number[members] < 0])
    order = torch.cat(hops)
    number[order] = torch.arange(len(order), device=sets.device)
    inner = sets.take(order[: len(order) - len(hops[-1])]).apart()
    indptr = torch.cat([inner.indptr, inner.indptr[-1:].expand(sets.kinds * len(hops[-1]))])
    near = TensorSets(indptr, number[inner.indices.long()].to(inner.indices.dtype), inner.weights, len(order))
    return Field(take_rows(x, order), split_tensors(near, sets.kinds), [len(hop) for hop in hops])


@dataclass(frozen=True)
class NearBatch:
    """One step per epoch on the field of the training nodes; measures on that of training and validation nodes."""

    task: Task
    step: Field
    field: Field

    def steps(self, epoch: int) -> Iterator[Step]:
        """The only step; it is the same in every epoch."""
        yield Step(self.step.logits, self.task.y[self.task.train])

    def measured(self, model: Any) -> Tensor:
        """The logits of the training nodes, then those of the validation nodes."""
        return self.field.logits(model)


def near_batch(model: nn.Module, task: Task) -> NearBatch:
    """The steps of a model that has multisets and counts hops: `FisherNet` without a readout."""
    net: Any = model
    if not hasattr(net, "sets") or getattr(net, "pooling", None) is not None or not len(net.convs):
        expected = "be a FisherNet with layers and without a readout for near=True"
        raise InputError(parameter="model", expected=expected, got=type(model).__name__, advice="leave near out")
    sets, n_hops = net.sets(task.edge_index, task.edge_weight, task.n_nodes), len(net.convs)
    fields = (receptive_field(task.x, sets, nodes, n_hops) for nodes in (task.train, task.measured))
    return NearBatch(task, *fields)


# --- sampled neighbourhoods --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sampled:
    """Steps on sampled neighbourhoods; measured logits are exact, computed layer by layer.

    task : in host memory.
    loader : epoch → its batches, PyG's `Data` with x, y, edge_index and batch_size.
    grouped : whether the edges of a batch are multisets that the model made of the whole graph.
    """

    task: Task
    loader: Callable[[int], Iterable[Any]]
    device: torch.device
    grouped: bool = False

    def steps(self, epoch: int) -> Iterator[Step]:
        """The steps of an epoch, each moved to the device."""
        for data in self.loader(epoch):
            data = data.to(self.device, non_blocking=True)
            y = data.y[: data.batch_size].long()
            yield Step(lambda model, data=data: _call_batch(model, data, self.grouped), y)

    def measured(self, model: Any) -> Tensor:
        """The logits of the training nodes, then those of the validation nodes.

        They are computed layer by layer; a model that cannot do that gets the whole graph.
        """
        task, inference = self.task, getattr(model, "inference", None)
        if inference is None or "edge_index" not in signature(inference).parameters:
            return _call(model, task.to(self.device))[task.measured.to(self.device)]
        logits = inference(task.x, task.edge_index, task.edge_weight, device=self.device)
        if isinstance(task.x, OpenGraph):
            measured = torch.as_tensor(logits[task.measured.numpy()])
            task.x.data.drop(logits)
            return measured
        return logits[task.measured.to(logits.device)]


def sampled(model: Any, task: Task, hops: list[int], batch_size: int, *, device: torch.device, seed: int) -> Sampled:
    """Steps on `batch_size` training nodes with up to hops[k] neighbours at distance k, drawn by seed and epoch.

    A model that makes multisets of edges makes them of all edges: a batch has the loops and weights of the whole graph.
    """
    grouped = hasattr(model, "sets") and len(getattr(model, "convs", ())) > 0  # as a FisherNet has
    source, beside = task.x, dict[str, Any](y=task.y)
    if not isinstance(task.x, OpenGraph):
        source, beside = _source_in_memory(model, task, batch_size, grouped=grouped)
    # A batch norm learns nothing from one row: a last batch of one node waits for another epoch.
    single = len(task.train) > batch_size > 1 and len(task.train) % batch_size == 1
    loader = CSRNeighborLoader(
        source,
        hops,
        input_nodes=task.train,
        batch_size=batch_size,
        shuffle=True,
        drop_last=single,
        seed=seed,
        device=device,
        pin_memory=device.type == "cuda",
        **beside,
    )

    def batches(epoch: int) -> CSRNeighborLoader:
        loader.epoch = epoch
        return loader

    return Sampled(task, batches, device, grouped)


def _source_in_memory(model: Any, task: Task, batch_size: int, *, grouped: bool) -> tuple[Any, dict[str, Any]]:
    """What a loader takes: a graph, and what is not part of it."""
    source: Any = task.edge_index
    if grouped:
        with torch.no_grad():
            source = model.sets(source, task.edge_weight, task.n_nodes)
        if source.kinds > 1:
            expected = "be None if in- and out-neighbours are kept apart"
            raise InputError(parameter="batch_size", value=batch_size, expected=expected)
    elif getattr(source, "layout", torch.strided) != torch.strided:
        source = tensor_sets(source)
    columns = {"x": task.x, "y": task.y}
    if isinstance(source, TensorSets):
        return source, columns
    weights = {} if task.edge_weight is None else {"edge_weight": task.edge_weight}
    return Data(**columns, edge_index=source, **weights), {}


def loader_batches(loader: Iterable[Any], epoch: int) -> Iterator[Any]:
    """The batches of a user's loader, validated."""
    data = None
    for data in loader:
        yield _checked(data)
    if data is None:
        got, advice = f"none in epoch {epoch}", "pass the loader itself, not an iterator over it"
        raise InputError(parameter="loader", expected="give batches in every epoch", got=got, advice=advice)


def _checked(data: Any) -> Any:
    missing = [name for name in ("x", "y", "edge_index", "batch_size") if getattr(data, name, None) is None]
    if missing or isinstance(data, GraphBatch):
        expected = "give batches with x, y, edge_index and batch_size, as a NeighborLoader does"
        got = f"none of {', '.join(missing)}" if missing else "a batch of several graphs"
        raise InputError(parameter="loader", expected=expected, got=got)
    if bool((data.y[: data.batch_size] < 0).any()):
        raise InputError(parameter="loader", expected="give seeds with labels", got="-1 in y")
    return data


def _call_batch(model: Any, data: Any, grouped: bool) -> Tensor:
    """The logits of the first nodes of a batch, its seeds; the model gets the arguments that it takes.

    If the edges are `grouped`, they are multisets already, with loops and weights.
    """
    edges, weights = data.edge_index, getattr(data, "edge_weight", None)
    if grouped:
        edges, weights = tensor_sets(edges, weights=weights), None
    hops = {
        "num_sampled_nodes_per_hop": getattr(data, "num_sampled_nodes", None),
        "num_sampled_edges_per_hop": getattr(data, "num_sampled_edges", None),
        "batch_size": data.batch_size,
    }
    parameters = signature(model.forward).parameters
    takes_all = any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values())
    options = {name: value for name, value in hops.items() if value is not None and (takes_all or name in parameters)}
    options |= {} if weights is None else {"edge_weight": weights}
    return model(data.x, edges, **options)[: data.batch_size]
