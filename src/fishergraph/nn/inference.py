"""A network on all nodes, layer by layer, in blocks of rows: for graphs that do not fit into one batch.

The rows between two layers are tensors, or arrays of a stored graph, which may be files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import cut_blocks, row_blocks
from fishergraph._validation import MOST_COLUMNS, check_integer
from fishergraph.device import choose_device
from fishergraph.em.learn import sample_members, sample_size
from fishergraph.em.settings import choose_em
from fishergraph.nn.checkpoint import checksum, describe_model
from fishergraph.nn.heads import learn_landmarks
from fishergraph.nn.lifted import block_sets, pooled
from fishergraph.nn.rows import as_tensor, check_rows, take_rows, typed
from fishergraph.nn.stored import DenseRows, OpenGraph, StoredGraph, opened
from fishergraph.ops.streams import random_stream
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.torch_device import find_device

_ROWS = 65_536
# Arrays of the width of a member, or of a row, that a layer holds for a block.
_COPIES = 4


def model_device(model: nn.Module, device: Any) -> torch.device:
    """The device of that name; None is that of the parameters."""
    if device is None:
        return next(iter(model.parameters())).device
    return find_device(choose_device(str(device)).name)


@torch.no_grad()
def run_by_layer(
    net: Any, x: Any, edge_index: Any, edge_weight: Tensor | None, batch_size: int | None, device: Any, progress: Any
) -> Any:
    """The output of the network for every node; its mode stays what it was.

    That of a store is kept there, that of an `OpenGraph` is read by rows, and any other is a tensor.
    """
    if net.pooling is not None:
        raise InputError("inference is for nodes, got a network with pooling; call it on batches of graphs instead.")
    size = _ROWS if batch_size is None else check_integer(batch_size, "batch_size", least=1, most=MOST_COLUMNS)
    device = model_device(net, device)
    if progress is not None and not callable(progress):
        raise InputTypeError(parameter="progress", value=progress, expected="be None or a function of a number of rows")
    progress = progress or (lambda n: None)
    with evaluating(net):
        if isinstance(x, StoredGraph):
            with opened(net, x, edge_index, edge_weight) as graph:
                kept = graph.data.kept({**describe_model(net), "weights": checksum(*net.state_dict().values())})
                if kept is not None:
                    return kept
                parts = LayerPass(net, FileTable(net, graph, size), device, progress).run()
                names = [f"psi{t}" for t in range(len(net.convs) + 1)][-len(parts) :]
                return graph.data.keep(dict(zip(["logits"] if net.classifier else names, parts, strict=True)))
        if isinstance(x, OpenGraph):
            (logits,) = LayerPass(net, FileTable(net, x, size), device, progress).run()
            return logits
        check_rows(x)
        x = typed(x, net)
        sets = net.sets(edge_index, edge_weight, x.shape[0])
        if x.shape[0] == 0:
            return net(x.to(device), None if sets is None else sets.to(device)).to(x.device)
        out = torch.cat(LayerPass(net, TensorTable(x, sets, size), device, progress).run(), dim=1)
        return pooled(out, edge_index)  # means of logits are logits of means


@torch.no_grad()
def learn_by_layer(net: Any, graph: StoredGraph, edge_index: Any, edge_weight: Tensor | None, seed: Any) -> None:
    """Learn anchors and landmarks of a network from samples of a stored graph."""
    device = model_device(net, None)
    with evaluating(net), opened(net, graph, edge_index, edge_weight) as x:
        rng = random_stream(seed, torch.empty(0, device=device))
        LayerPass(net, FileTable(net, x, _ROWS), device, lambda n: None).learn(rng)


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """A block with the network in evaluation mode."""
    training = net.training
    net.eval()
    try:
        yield
    finally:
        net.train(training)


class TensorTable:
    """Features, multisets, and the rows between layers, as tensors on one device."""

    def __init__(self, x: Tensor, sets: Any, size: int):
        self.x, self.sets, self.device = x, sets, x.device
        self.blocks = row_blocks(x.shape[0], size)

    def features(self, block: slice) -> Tensor:
        """The features of a block."""
        return take_rows(self.x, torch.arange(block.start, block.stop, device=self.device))

    def dense(self) -> Tensor:
        """The features as dense rows."""
        return self.x.to_dense()

    def block_sets(self, block: slice, device: Any) -> tuple[Tensor, Any]:
        """The members of the sets of a block, and these sets over them."""
        return block_sets(self.sets, block, device)

    def new(self, n_columns: int, dtype: torch.dtype) -> Tensor:
        """An array with a row for each node."""
        return torch.empty((self.x.shape[0], n_columns), dtype=dtype, device=self.device)

    def take(self, rows: Tensor, key: slice | Tensor) -> Tensor:
        """Some rows of an array."""
        return rows[key.to(rows.device).long()] if isinstance(key, Tensor) else rows[key]

    def put(self, rows: Tensor, block: slice, values: Tensor) -> None:
        """Fill the rows of a block."""
        rows[block] = values

    def drop(self, rows: Tensor) -> None:
        """Tensors go by themselves."""


@dataclass(frozen=True)
class _Entries:
    """The members of all sets by their numbers, as tensors."""

    indices: Any

    def __getitem__(self, key: Any) -> Tensor:
        return as_tensor(self.indices[key.cpu().numpy() if isinstance(key, Tensor) else key])


class FileTable:
    """The same of an open graph, whose blocks are as small as its memory asks."""

    device = torch.device("cpu")

    def __init__(self, net: Any, graph: OpenGraph, size: int):
        self.graph = graph
        first, hidden = graph.n_features, net.options["hidden_channels"]
        member = hidden if net.input_map is not None and not net.reads_counts else max(first, hidden)
        phi = net.options["num_anchors"] * net.options.get("heads", 1) * member
        number = torch.empty((), dtype=graph.dtype).element_size() * _COPIES
        most = graph.data.block_bytes
        size = min(size, max(most // (number * (first + phi)), 1))
        self.blocks = cut_blocks(graph.data.sets.indptr, row_blocks(graph.n_nodes, size), most // (number * member))

    def features(self, block: slice) -> Tensor:
        """The features of a block."""
        return self.graph.read(block)

    def dense(self) -> DenseRows:
        """The features as dense rows."""
        return DenseRows(self.graph)

    def block_sets(self, block: slice, device: Any) -> tuple[Tensor, Any]:
        """The members of the sets of a block, and these sets over them."""
        return block_sets(tensor_sets(self.graph.data.sets.block(block)), slice(None), device)

    def sample_members(self, size: int, rng: Any) -> Tensor:
        """Members drawn from all sets."""
        sets: Any = self.graph.data.sets
        entries: Any = SimpleNamespace(indptr=[0], n_entries=sets.n_entries, indices=_Entries(sets.indices))
        return sample_members(entries, size, rng)

    def taken_sets(self, rows: Tensor, device: Any) -> tuple[Tensor, Any]:
        """The members of the sets of these rows, and these sets over them."""
        return block_sets(tensor_sets(self.graph.data.sets.take(rows.cpu().numpy())), slice(None), device)

    def new(self, n_columns: int, dtype: torch.dtype) -> Any:
        """An array with a row for each node."""
        return self.graph.array(n_columns)

    def take(self, rows: Any, key: slice | Tensor) -> Tensor:
        """Some rows of an array."""
        return as_tensor(rows[key.cpu().numpy() if isinstance(key, Tensor) else key]).to(self.graph.dtype)

    def put(self, rows: Any, block: slice, values: Tensor) -> None:
        """Fill the rows of a block."""
        rows[block] = values.to(self.graph.dtype).numpy()

    def drop(self, rows: Any) -> None:
        """Remove an array."""
        self.graph.data.drop(rows)


class LayerPass:
    """One pass over the layers. Logits are added block by block: the concatenation need not exist."""

    def __init__(self, net: Any, table: Any, device: Any, progress: Callable[[int], Any]):
        self.net, self.table, self.device, self.progress = net, table, device, progress
        self.logits: Any = None
        self.used = 0  # columns of the classifier

    def run(self) -> list[Any]:
        """All layers, in order: the logits, or the parts of the embedding."""
        net, table = self.net, self.table
        n_layers, parts = len(net.convs), []
        in_output = net.input_map is not None or not n_layers
        rows, kept = self._fill(lambda block: net.first(table.features(block).to(self.device)), in_output, not n_layers)
        for t, conv in enumerate(net.convs, 1):
            parts += [rows] if kept else []
            members = table.dense() if t == 1 and net.reads_counts else rows
            after, keep = self._fill(self._layer(conv, members), True, t == n_layers)
            if not kept:
                table.drop(rows)
            rows, kept = after, keep
        if net.classifier is None:
            return [*parts, rows]
        table.drop(rows)
        return [self.logits]

    def learn(self, rng: Any) -> None:
        """Learn anchors and landmarks layer by layer, with the draws of `FisherNet.init_from_data`."""
        net, table, device = self.net, self.table, self.device
        graph, most = table.graph, choose_em(net.options.get("em")).max_samples

        def some(numbers: Tensor) -> Tensor:
            return net.prepared(graph.read(numbers.cpu().numpy()).to(device))

        learn_landmarks(net.input_map, some, len(graph), most, rng)
        rows, _ = self._fill(lambda block: net.first(table.features(block).to(device)), False, False)
        for t, conv in enumerate(net.convs):
            members: Any = table.dense() if t == 0 and net.reads_counts else rows
            size = sample_size(conv.num_anchors, most, graph.data.sets.n_entries)
            conv.mixture.init_from_data(table.take(members, table.sample_members(size, rng)).to(device), rng)

            def phi(numbers: Tensor, conv: Any = conv, members: Any = members) -> Tensor:
                used, sets = table.taken_sets(numbers, device)
                return conv.phi(table.take(members, used).to(device), sets)

            learn_landmarks(conv.head, phi, len(graph), most, rng)
            if t + 1 < len(net.convs):
                after, _ = self._fill(self._layer(conv, members), False, False)
                table.drop(rows)
                rows = after
        table.drop(rows)

    def _fill(self, compute: Callable[[slice], Tensor], in_output: bool, last: bool) -> tuple[Any, bool]:
        """The rows of a layer, filled block by block, and whether they are a part of the embedding."""
        net, table, out, width = self.net, self.table, None, 0
        in_output = in_output and (net.concat or last)
        for block in table.blocks:
            rows = compute(block)
            out = table.new(rows.shape[1], rows.dtype) if out is None else out
            rows = rows.to(table.device)
            table.put(out, block, rows)
            if in_output and net.classifier is not None:
                self._add(rows, block, last=last)
            width = rows.shape[1]
            self.progress(block.stop - block.start)
        self.used += width if in_output else 0
        return out, in_output and net.classifier is None

    def _layer(self, conv: Any, rows: Any) -> Callable[[slice], Tensor]:
        """A layer of one block, which gets the members of its own sets alone."""
        table = self.table

        def compute(block: slice) -> Tensor:
            members, sets = table.block_sets(block, self.device)
            points = table.take(rows, members).to(self.device)
            return conv((points, table.take(rows, block).to(self.device)), sets)

        return compute

    def _add(self, rows: Tensor, block: slice, *, last: bool) -> None:
        """Add the rows of a layer to the logits."""
        table, classifier = self.table, self.net.classifier
        weight = classifier.weight[:, self.used : self.used + rows.shape[1]].to(rows.device)
        rows = rows.to(weight.dtype)  # autocast gives some layers in another dtype than others
        if self.logits is None:
            self.logits = table.new(weight.shape[0], weight.dtype)
        with torch.autocast(rows.device.type, enabled=False):
            if self.used:
                values = table.take(self.logits, block).addmm_(rows, weight.T)
            else:
                values = rows @ weight.T
        table.put(self.logits, block, values + classifier.bias.to(rows.device) if last else values)
