"""`FisherAggregation`: φ as an aggregation of PyG, for messages, for nodes of graphs, for any grouped rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from fishergraph.device import random_stream
from fishergraph.nn.families import make_mixture
from fishergraph.nn.kernel_map import LinearHead
from fishergraph.nn.lazy import check_options
from fishergraph.nn.mixture import Mixture
from fishergraph.nn.rows import as_given
from fishergraph.nn.sets import group_sets


class FisherAggregation(Aggregation):
    """φ = p^{-1/2} (μ − w) of every group of rows, or W φ + b with `out_channels` (Eq. 18); an empty group gives φ = 0.

    Parameters
    ----------
    in_channels : width of the rows; −1 takes that of the first input.
    out_channels : None gives φ itself, (group, heads · num_anchors · in_channels).
    num_anchors, num_em_steps, heads, **options : as in `FisherConv`, with `family` among them. `counts=True`
        appends the soft counts, which a readout of graphs wants: {x} and {x, x} have one mean.

    Shapes
    ------
    - **input:** x (row, in_channels); index (row,), in any order, or ptr (group + 1,) for grouped rows
    - **output:** (group, out)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        num_anchors: int = 4,
        num_em_steps: int = 1,
        *,
        heads: int = 1,
        bias: bool = True,
        **options: Any,
    ):
        super().__init__()
        check_options(FisherAggregation, options, FisherAggregation, make_mixture, Mixture)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.mixture = make_mixture(in_channels, num_anchors, heads=heads, num_em_steps=num_em_steps, **options)
        self.head = None if out_channels is None else LinearHead(self.mixture.out_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.mixture.reset_parameters()
        if self.head is not None:
            self.head.reset_parameters()

    def init_from_data(self, x: Tensor, *, seed: Any = 0) -> FisherAggregation:
        """self, with anchors at k-means centres of the rows."""
        self.mixture.init_from_data(x, random_stream(seed, x))
        return self

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        """One row for each group."""
        self.assert_two_dimensional_input(x, dim)
        self.mixture.expect(x.shape[1])
        sets = group_sets(index, ptr, x.shape[0], dim_size)  # type: ignore[arg-type]
        if self.head is None:
            return as_given(self.mixture(x, sets), x)
        self.head.expect(self.mixture.out_channels)
        return self.head.finish(as_given(self.mixture.linear(x, sets, self.head.projection), x))

    def __repr__(self) -> str:
        mixture = self.mixture
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, num_anchors={mixture.num_anchors}, "
            f"num_em_steps={mixture.num_em_steps}, heads={mixture.heads})"
        )
