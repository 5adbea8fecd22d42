"""A network on all nodes, layer by layer, in blocks of rows: for graphs that do not fit into one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import row_blocks
from fishergraph._validation import MOST_COLUMNS, check_integer
from fishergraph.device import choose_device
from fishergraph.nn.lifted import block_sets, pooled
from fishergraph.nn.rows import check_rows, take_rows, typed
from fishergraph.ops.torch_device import find_device

_ROWS = 65_536


def model_device(model: nn.Module, device: Any) -> torch.device:
    """The device of that name; None is that of the parameters."""
    if device is None:
        return next(iter(model.parameters())).device
    return find_device(choose_device(str(device)).name)


@torch.no_grad()
def run_by_layer(
    net: Any, x: Tensor, edge_index: Any, edge_weight: Tensor | None, batch_size: int | None, device: Any, progress: Any
) -> Tensor:
    """The output of the network for every node; its mode stays what it was."""
    if net.pooling is not None:
        raise InputError("inference is for nodes, got a network with pooling; call it on batches of graphs instead.")
    check_rows(x)
    training, x = net.training, typed(x, net)
    size = _ROWS if batch_size is None else check_integer(batch_size, "batch_size", least=1, most=MOST_COLUMNS)
    device = model_device(net, device)
    if progress is not None and not callable(progress):
        raise InputTypeError(parameter="progress", value=progress, expected="be None or a function of a number of rows")
    sets = net.sets(edge_index, edge_weight, x.shape[0])
    net.eval()
    try:
        if x.shape[0] == 0:
            return net(x.to(device), None if sets is None else sets.to(device)).to(x.device)
        out = _Pass(net, sets, row_blocks(x.shape[0], size), device, progress or (lambda n: None)).run(x)
        return pooled(out, edge_index)  # means of logits are logits of means
    finally:
        net.train(training)


class _Pass:
    """One pass over the layers. Logits are added block by block of columns: the concatenation need not exist."""

    def __init__(self, net: Any, sets: Any, blocks: list[slice], device: Any, progress: Callable[[int], Any]):
        self.net, self.sets, self.blocks, self.device, self.progress = net, sets, blocks, device, progress
        self.parts: list[Tensor] = []  # of the embedding
        self.logits: Tensor | None = None
        self.used = 0  # columns of the classifier

    def run(self, x: Tensor) -> Tensor:
        """All layers, in order."""
        net = self.net

        def first(block: slice) -> Tensor:
            numbers = torch.arange(block.start, block.stop, device=x.device)
            return net.first(take_rows(x, numbers).to(self.device))

        rows = self._fill(x, first)
        if net.input_map is not None or not len(net.convs):
            self._keep(rows, last=not len(net.convs))
        rows = x.to_dense() if net.reads_counts else rows
        for t, conv in enumerate(net.convs, 1):
            rows = self._fill(x, lambda block, conv=conv, rows=rows: self._layer(conv, rows, block))
            self._keep(rows, last=t == len(net.convs))
        return torch.cat(self.parts, dim=1) if self.logits is None else self.logits + net.classifier.bias.to(x.device)

    def _fill(self, x: Tensor, compute: Callable[[slice], Tensor]) -> Tensor:
        """(node, width) on the device of x, filled block by block."""
        out: Any = None
        for block in self.blocks:
            rows = compute(block)
            out = torch.empty((x.shape[0], rows.shape[1]), dtype=rows.dtype, device=x.device) if out is None else out
            out[block] = rows
            self.progress(block.stop - block.start)
        return out

    def _layer(self, conv: Any, rows: Tensor, block: slice) -> Tensor:
        """A layer of one block, which gets the members of its own sets alone."""
        members, sets = block_sets(self.sets, block, self.device)
        points = rows[members.to(rows.device).long()].to(self.device)
        return conv((points, rows[block].to(self.device)), sets)

    def _keep(self, rows: Tensor, *, last: bool) -> None:
        """Add the rows of a layer to the embedding or the logits."""
        net = self.net
        if not (net.concat or last):
            return
        if net.classifier is None:
            self.parts.append(rows)
            return
        columns = slice(self.used, self.used + rows.shape[1])
        self.used = columns.stop
        weight = net.classifier.weight[:, columns].to(rows.device)
        rows = rows.to(weight.dtype)  # autocast gives some layers in another dtype than others
        with torch.autocast(rows.device.type, enabled=False):
            self.logits = rows @ weight.T if self.logits is None else self.logits.addmm_(rows, weight.T)
