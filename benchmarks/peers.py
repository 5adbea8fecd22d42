"""Layers of PyTorch Geometric as models that are trained and measured beside ours, with their authors' settings."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GAT, GCN, GraphSAGE

KINDS = {"gcn": GCN, "sage": GraphSAGE, "gat": GAT, "gatv2": GAT}


class Peer(nn.Module):
    """A stack of PyG's layers, with ELU for attention; `rows` of x that are bags of words sum to one, with dropout."""

    def __init__(
        self, kind: str, in_channels: int, hidden_channels: int, num_layers: int, out_channels: int, *,
        dropout: float, heads: int = 1, rows: bool = True, norm: str | None = None,
    ):  # fmt: skip
        super().__init__()
        self.num_layers, self.in_channels, self.out_channels = num_layers, in_channels, out_channels
        self.dropout, self.rows = dropout, rows
        attention: dict[str, Any] = {"heads": heads, "v2": kind == "gatv2", "act": "elu"} if "gat" in kind else {}
        self.net = KINDS[kind](
            in_channels, hidden_channels, num_layers, out_channels, dropout=dropout, norm=norm, **attention
        )

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
            x = F.dropout(x / x.sum(dim=1, keepdim=True).clamp(min=1), self.dropout, self.training)
        z = self.net(x, edge_index, **hops)
        return z if batch_size is None else z[:batch_size]


def peer(kind: str, in_channels: int, out_channels: int, **options: Any) -> Peer:
    """The model of that name."""
    return Peer(kind, in_channels, options.pop("hidden"), options.pop("layers"), out_channels, **options)


def parameters(model: torch.nn.Module) -> int:
    """How many numbers are learned."""
    return sum(parameter.numel() for parameter in model.parameters())
