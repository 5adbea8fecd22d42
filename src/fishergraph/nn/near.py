"""Full-batch steps on what the labelled nodes hear: their logits and gradients, without the rest of the graph.

With T layers the logits of some nodes depend on the nodes within T hops, and layer t must be known within T − t hops
alone. Where few nodes have labels this is a fraction of the work, and the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph.nn.batches import Batch
from fishergraph.nn.rows import take_rows
from fishergraph.nn.training_door import Task
from fishergraph.ops.tensor_sets import TensorSets


@dataclass(frozen=True)
class Field:
    """The receptive field of some nodes: they come first, then those one hop away, and so on."""

    x: Tensor
    sets: TensorSets  # those of the last hop are empty: no layer asks for them
    per_hop: list[int]  # how many nodes are new at each distance

    def logits(self, model: Any) -> Tensor:
        """The logits of the nodes whose field it is."""
        return model(self.x, self.sets, batch_size=self.per_hop[0], num_sampled_nodes_per_hop=self.per_hop)


def receptive_field(x: Tensor, sets: TensorSets, nodes: Tensor, n_hops: int) -> Field:
    """The field of `nodes` for `n_hops` layers; the multisets keep the weights that they have in the whole graph."""
    place = torch.full((sets.n_sets,), -1, dtype=torch.int64, device=sets.device)
    hops = [nodes]
    for _ in range(n_hops):
        place[hops[-1]] = 0
        members = sets.take(hops[-1]).indices.long().unique()
        hops.append(members[place[members] < 0])
    order = torch.cat(hops)
    place[order] = torch.arange(len(order), device=sets.device)
    inner = sets.take(order[: len(order) - len(hops[-1])])
    indptr = torch.cat([inner.indptr, inner.indptr[-1:].expand(len(hops[-1]))])
    near = TensorSets(indptr, place[inner.indices.long()].to(inner.indices.dtype), inner.weights, len(order))
    return Field(take_rows(x, order), near, [len(hop) for hop in hops])


@dataclass(frozen=True)
class NearBatch:
    """One step per epoch on the field of the training nodes; accuracies on that of training and validation nodes."""

    task: Task
    step: Field
    look: Field

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The only batch; it is the same in every epoch."""
        yield Batch(self.step.logits, self.task.y[self.task.train])

    def logits(self, model: Any) -> Tensor:
        """The logits of the training and validation nodes in their places; NaN in all others."""
        found = self.look.logits(model)
        logits = found.new_full((self.task.n_nodes, found.shape[1]), float("nan"))
        logits[torch.cat([self.task.train, self.task.val])] = found
        return logits


def near_batch(model: nn.Module, task: Task) -> NearBatch:
    """The source of batches of a model that has multisets and counts hops: `FisherNet` without a readout."""
    net: Any = model
    if not hasattr(net, "sets") or getattr(net, "pooling", None) is not None or not len(net.convs):
        raise ValueError(
            f"near=True needs a FisherNet with layers and without a readout, got {type(model).__name__}; leave it out."
        )
    sets, n_hops = net.sets(task.edge_index, task.edge_weight, task.n_nodes), len(net.convs)
    look = torch.cat([task.train, task.val])
    return NearBatch(
        task, receptive_field(task.x, sets, task.train, n_hops), receptive_field(task.x, sets, look, n_hops)
    )
