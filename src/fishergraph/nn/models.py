"""`FisherNet`: the stack ψ_0, ψ_1, …, ψ_T as one trainable model, with a classifier and a readout where wanted."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.resolver import aggregation_resolver

from fishergraph._validation import MOST_COLUMNS, MOST_LAYERS, check_flag, check_integer, check_number, look_up
from fishergraph._warn import each_warning_once
from fishergraph.device import random_stream
from fishergraph.em.anchors import sample_size
from fishergraph.family import choose_family
from fishergraph.nn.aggr import FisherAggregation
from fishergraph.nn.conv import MAX_SAMPLES, FisherConv
from fishergraph.nn.inference import run_by_layer
from fishergraph.nn.kernel_map import HEADS, NystromMap
from fishergraph.nn.lazy import check_numbers, check_options
from fishergraph.nn.lifted import check_edges_alone, pooled
from fishergraph.nn.rows import check_rows, dropped, take_rows, unit_rows
from fishergraph.nn.sets import check_groups, narrow
from fishergraph.ops.tensor_sets import TensorSets

_JK = {"cat": True, "last": False}


class FisherNet(nn.Module):
    """logits = C [ψ_0, ψ_1, …, ψ_T]: Fisher layers on an input map, concatenated as in Eq. 2, and a linear classifier.

    Parameters
    ----------
    in_channels : width of x; −1 takes that of the first input.
    hidden_channels : width of every ψ_t.
    num_layers : T.
    out_channels : classes; None gives the embedding itself.
    num_anchors, num_em_steps : of every layer.
    head : ψ: "nystrom", the kernel's map, whose landmarks are trained; "relu", the paper's for large graphs; "linear".
    jk : "cat", all ψ_t side by side (Eq. 2), or "last".
    dropout : of the rows that enter a layer or the classifier.
    input_dropout : of x itself.
    input_map : ψ_0 of the rows of x; without it the first layer sees x, and ψ_0 is left out. With "multinomial" as
        family the first layer sees the counts x in either case, and behind it stand Gaussian mixtures.
    normalize : divide the rows of x, and the points of every layer, by their lengths.
    bandwidth : of the Nyström maps.
    pooling : a readout of graphs: the name of an aggregation of PyG, one of its modules, or "fisher".
    **options : of `FisherConv`: heads, variance, prior, e_step, weights, slots, backend, …; `dropout` of members is
        `member_dropout` here.

    Shapes
    ------
    - **input:** x (node, in_channels), dense or sparse CSR; edge_index as in `FisherConv`; batch (node,) with pooling.
      With the `LiftedSets` of `node_tuples`, x has a row per tuple, and a node is the mean of its tuples in the end
    - **output:** (node, out), or (graph, out) with pooling
    """

    input_map: Any
    convs: Any
    pooling: Any
    classifier: Any

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        *,
        num_anchors: int = 4,
        num_em_steps: int = 1,
        head: str = "nystrom",
        jk: str = "cat",
        dropout: float = 0.0,
        member_dropout: float = 0.0,
        input_dropout: float = 0.0,
        input_map: bool = True,
        normalize: bool = True,
        bandwidth: float = 0.7,
        pooling: str | Aggregation | None = None,
        **options: Any,
    ):
        super().__init__()
        check_options(FisherNet, options, FisherNet, FisherConv, MessagePassing)
        self.options = {
            "in_channels": in_channels, "hidden_channels": hidden_channels, "num_layers": num_layers,
            "out_channels": out_channels, "num_anchors": num_anchors, "num_em_steps": num_em_steps, "head": head,
            "jk": jk, "dropout": dropout, "member_dropout": member_dropout, "input_dropout": input_dropout,
            "input_map": input_map, "normalize": normalize, "bandwidth": bandwidth, "pooling": pooling, **options,
        }  # fmt: skip
        check_integer(hidden_channels, "hidden_channels", least=1)
        check_integer(num_layers, "num_layers", least=0, most=MOST_LAYERS)
        if out_channels is not None:
            check_integer(out_channels, "out_channels (or None)", least=1, most=MOST_COLUMNS)
        self.concat = look_up(_JK, jk, "jk")
        self.dropout = check_number(dropout, "dropout", most=1.0)
        self.input_dropout = check_number(input_dropout, "input_dropout", most=1.0)
        self.normalize = check_flag(normalize, "normalize")
        kind = look_up(HEADS, head, "head")
        maps = {"bandwidth": bandwidth} if head == "nystrom" else {}
        family = options.get("family", "gaussian-mixture")
        self.reads_counts = choose_family(family).support == "counts"
        self.input_map = kind(in_channels, hidden_channels, **maps) if check_flag(input_map, "input_map") else None
        mapped = input_map and not self.reads_counts
        widths = [hidden_channels if mapped or t else in_channels for t in range(num_layers)]
        self.convs = nn.ModuleList(
            FisherConv(
                width, hidden_channels, num_anchors, num_em_steps, head=head, bandwidth=bandwidth,
                normalize=normalize, dropout=member_dropout, concat=False,
                **{**options, "family": "gaussian-mixture" if self.reads_counts and t else family},
            )
            for t, width in enumerate(widths)
        )  # fmt: skip
        self.pooling = _readout(pooling, self._width())
        pooled = self._width() if pooling is None or isinstance(pooling, str) else -1
        pooled = self.pooling.mixture.out_channels if pooling == "fisher" else pooled
        if out_channels is not None:
            check_numbers((max(pooled, 1), out_channels))
        self.classifier = None if out_channels is None else Linear(pooled, out_channels)

    def _width(self) -> int:
        """The columns of the embedding of a node."""
        hidden, n_blocks = self.options["hidden_channels"], len(self.convs) + (self.input_map is not None)
        return hidden * (n_blocks if self.concat else 1)

    def config(self) -> dict[str, Any]:
        """The arguments that make such a network."""
        return dict(self.options)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for part in (self.input_map, *self.convs, self.pooling, self.classifier):
            if part is not None:
                part.reset_parameters()

    @torch.no_grad()
    @each_warning_once()
    def init_from_data(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None, *, seed: int = 0
    ) -> FisherNet:
        """self, with anchors and landmarks learned layer by layer without labels, in one pass (Section 4.5)."""
        check_rows(x)
        training, rng, x = self.training, random_stream(seed, x), self.typed(x)
        self.eval()
        try:
            rows = self._prepared(x)
            if isinstance(self.input_map, NystromMap):
                n_rows = sample_size(self.input_map.out_channels, MAX_SAMPLES, x.shape[0])
                self.input_map.init_from_data(take_rows(rows, rng.permutation(x.shape[0])[:n_rows].sort().values), rng)
            rows = self.points(x, rows if self.input_map is None else self.input_map(rows))
            edges = self._edges(edge_index, edge_weight, x.shape[0])
            for conv in self.convs:
                conv.init_from_data(rows, edges, None, seed=rng)
                rows = conv(rows, edges)
        finally:
            self.train(training)
        return self

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        *,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        num_sampled_nodes_per_hop: list[int] | None = None,
        num_sampled_edges_per_hop: list[int] | None = None,
    ) -> Tensor:
        """Logits, or the embedding, of every node; of the first `batch_size`, the seeds, in a sampled batch.

        The numbers of sampled nodes and edges per hop, as loaders give them, spare each layer what no seed needs.
        With pooling `batch` says to which graph a node belongs, and `batch_size` how many graphs there are.
        """
        check_rows(x)
        if num_sampled_nodes_per_hop is not None or (batch_size is not None and self.pooling is None):
            check_edges_alone(edge_index, "a sampled batch")
        x = dropped(self.typed(x), self.input_dropout, self.training)
        rows = self._first(x)
        blocks = [rows] if self.input_map is not None or not len(self.convs) else []
        seeds = None if self.pooling is not None else batch_size
        sizes = self._targets(seeds, x.shape[0], num_sampled_nodes_per_hop)
        edges = self._edges(edge_index, edge_weight, x.shape[0])
        rows = self.points(x, rows)
        for n_targets, conv in zip(sizes, self.convs, strict=True):
            given = dropped(rows, self.dropout, self.training)
            if isinstance(edges, TensorSets):
                rows = conv((given, given[:n_targets]), narrow(edges, n_targets, rows.shape[0]))
            else:  # lifted, or somebody listens to the messages of these edges
                rows = conv(given, edges, edge_weight)
            blocks.append(rows)
        n_rows = x.shape[0] if not sizes else sizes[-1]
        z = torch.cat([block[:n_rows] for block in (blocks if self.concat else blocks[-1:])], dim=1)
        z = pooled(z, edge_index)
        if self.pooling is not None:
            z = self._read_out(z, batch, batch_size)
        return z if self.classifier is None else self.classifier(dropped(z, self.dropout, self.training))

    def _first(self, x: Tensor) -> Tensor:
        """ψ_0, or x itself where there is no input map."""
        rows = self._prepared(x)
        return rows if self.input_map is None else self.input_map(rows)

    def points(self, x: Tensor, first: Tensor) -> Tensor:
        """The points of the first layer: ψ_0, or x itself where it reads counts, which live there."""
        return x.to_dense() if self.reads_counts and len(self.convs) else first

    def _prepared(self, x: Tensor) -> Tensor:
        """The rows of x as the input map sees them."""
        return unit_rows(x, self.options.get("backend")) if self.normalize else x

    def typed(self, x: Tensor) -> Tensor:
        """x in the type of the parameters."""
        return x.to(next((parameter.dtype for parameter in self.parameters()), x.dtype))

    def _edges(self, edge_index: Any, edge_weight: Tensor | None, n_nodes: int) -> Any:
        """The multisets, found once for all layers; or the edges as they are, where an explainer wants to see them."""
        explained = any(conv.is_explained() for conv in self.convs)
        return edge_index if explained else self.sets(edge_index, edge_weight, n_nodes)

    def sets(self, edge_index: Any, edge_weight: Tensor | None, n_nodes: int) -> Any:
        """The multisets of these edges as all layers see them; None where there is no layer."""
        return self.convs[0].sets(edge_index, edge_weight, (n_nodes, n_nodes)) if len(self.convs) else None

    def _targets(self, seeds: int | None, n_nodes: int, per_hop: list[int] | None) -> list[int]:
        """How many nodes, from the first on, each layer is computed for."""
        n_layers = len(self.convs)
        if per_hop is None:
            return [n_nodes] * (n_layers - 1) + [n_nodes if seeds is None else seeds] * bool(n_layers)
        if len(per_hop) <= n_layers:
            raise ValueError(
                f"a batch for {n_layers} layers must be sampled over {n_layers} hops, got "
                f"{len(per_hop) - 1}; give num_neighbors one number per layer."
            )
        return [sum(per_hop[: n_layers - t]) for t in range(n_layers)]

    def _read_out(self, z: Tensor, batch: Tensor | None, n_graphs: int | None) -> Tensor:
        index = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device) if batch is None else batch
        check_groups(index, z.shape[0], "batch")
        return self.pooling(z, index, dim_size=n_graphs)  # type: ignore[misc]

    def inference(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        *,
        batch_size: int | None = None,
        device: Any = None,
        progress: Any = None,
    ) -> Tensor:
        """`forward` of all nodes without gradients or dropout, layer by layer, in blocks of `batch_size` rows.

        No neighbour is sampled away. x and the result stay where x is; a block is computed on `device`, by default that
        of the parameters. `progress(n)` is told of every n rows that are done with a layer.
        """
        return run_by_layer(self, x, edge_index, edge_weight, batch_size, device, progress)


def _readout(pooling: str | Aggregation | None, width: int) -> Any:
    """The module that makes one row of the rows of a graph."""
    if isinstance(pooling, str) and pooling == "fisher":
        return FisherAggregation(width, counts=True)
    if pooling is None or isinstance(pooling, nn.Module):
        return pooling
    try:
        return aggregation_resolver(pooling if isinstance(pooling, str) and pooling else "no name")
    except ValueError as error:
        raise ValueError(
            f"pooling must be 'fisher', an aggregation of PyTorch Geometric or its name, got {pooling!r}; use 'mean', "
            "for example."
        ) from error
