"""Layers of PyTorch Geometric as one network, called as `fishergraph.nn.train` calls a model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GAT, GCN, MLP, GraphSAGE

from fishergraph._validation import look_up
from fishergraph.nn.rows import dropped, is_sparse, with_values

NORMS = {"batch": "batch_norm", "layer": "layer_norm"}
STACKS = {"mlp": MLP, "gcn": GCN, "sage": GraphSAGE, "gat": GAT, "gatv2": GAT}


class Stack(nn.Module):
    """A stack of PyG's layers, with ELU for attention, and dropout of what enters.

    kind   a name of STACKS
    heads  of attention; `hidden_channels` is the width of all of them together
    rows   rows of x are bags of words, dense or sparse: they are made to sum to one, and dropout begins with them
    norm   None, or "batch" or "layer", between the layers
    """

    def __init__(
        self, kind: str, in_channels: int, hidden_channels: int, num_layers: int, out_channels: int, *,
        dropout: float, heads: int = 1, rows: bool = True, norm: str | None = None,
    ):  # fmt: skip
        super().__init__()
        make = look_up(STACKS, kind, "kind")
        self.num_layers, self.in_channels, self.out_channels = num_layers, in_channels, out_channels
        self.dropout, self.rows = dropout, rows
        attention: dict[str, Any] = {"heads": heads, "v2": kind == "gatv2", "act": "elu"} if "gat" in kind else {}
        widths = {
            "in_channels": in_channels, "hidden_channels": hidden_channels, "out_channels": out_channels,
            "num_layers": num_layers,
        }  # fmt: skip
        named = None if norm is None else look_up(NORMS, norm, "norm (or None)")
        self.net = make(**widths, dropout=dropout, norm=named, **attention)
        self.needs_edges, self.averages_first = kind != "mlp", kind == "sage"

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        **hops: Any,
    ) -> Tensor:
        """The logits of all nodes; of the seeds in a sampled batch, whose layers see the hops they need."""
        if self.rows:
            x = _bags(x, self.dropout, self.training)
        if self.averages_first and is_sparse(x):
            x = x.to_dense()
        z = self.net(x, edge_index, edge_weight=edge_weight, **hops) if self.needs_edges else self.net(x)
        return z if batch_size is None else z[:batch_size]


def _bags(x: Tensor, dropout: float, training: bool) -> Tensor:
    """Rows that sum to one (those of less than one stay as they are), with dropout; dense or sparse as they came."""
    if not is_sparse(x):
        return dropped(x / x.sum(dim=1, keepdim=True).clamp(min=1), dropout, training)
    lengths = torch.diff(x.crow_indices())
    sums = torch.segment_reduce(x.values(), "sum", lengths=lengths, initial=0).clamp(min=1)
    return with_values(x, dropped(x.values() / torch.repeat_interleave(sums, lengths), dropout, training))
