"""`FisherNet`: the stack ψ_0, ψ_1, …, ψ_T as one trainable model, with a classifier and a readout if wanted."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.resolver import aggregation_resolver

from fishergraph._errors import InputError, InputTypeError
from fishergraph._validation import MOST_COLUMNS, MOST_LAYERS, check_flag, check_integer, check_number, look_up
from fishergraph._warn import each_warning_once
from fishergraph.em.settings import choose_em
from fishergraph.family import choose_family
from fishergraph.kernel_map import Nystrom
from fishergraph.nn.aggr import FisherAggregation
from fishergraph.nn.channels import allocating, check_size
from fishergraph.nn.conv import FisherConv
from fishergraph.nn.edges import check_groups, check_set_count, narrow
from fishergraph.nn.heads import LinearMap, choose_head, learn_landmarks, make_head, with_roots_at_once
from fishergraph.nn.inference import evaluating, learn_by_layer, run_by_layer
from fishergraph.nn.lifted import check_plain, pooled
from fishergraph.nn.rows import check_rows, dropped, take_rows, typed, unit_rows
from fishergraph.nn.stored import StoredGraph
from fishergraph.ops.streams import random_stream
from fishergraph.ops.tensor_sets import TensorSets

JK = {"cat": True, "last": False}
# The options of a layer that are those of the network.
_LAYER_OPTIONS = ("heads", "family", "em", "multiset", "counts", "normalize", "residual")
# What head="nystrom" stands for in a network.
NETWORK_NYSTROM = Nystrom(bandwidth=0.7)


class FisherNet(nn.Module):
    """Fisher layers on an input map, and a linear classifier.

    The layers are concatenated as in Eq. 2: C [ψ_0, ψ_1, …, ψ_T].

    Parameters
    ----------
    in_channels : int
        Number of features of x; -1 takes that of the first input.
    hidden_channels : int
        Width of every ψ_t.
    num_layers : int
        Number of layers T.
    out_channels : int or None, default=None
        Number of classes; None returns the embedding itself.
    num_anchors : int, default=4
        Components of the mixture of every layer.
    head : {"nystrom", "relu", "linear"}, LinearMap or Nystrom, default="nystrom"
        The map ψ: that of the exponential kernel with trained landmarks, ``Nystrom(bandwidth=0.7)``; the paper's for
        large graphs; or a linear one.
    jk : {"cat", "last"}, default="cat"
        All ψ_t side by side (Eq. 2), or the last one.
    dropout : float in [0, 1], default=0.0
        Dropout of the rows that enter a layer or the classifier.
    member_dropout : float in [0, 1], default=0.0
        The `dropout` of the members in every `FisherConv`.
    input_dropout : float in [0, 1], default=0.0
        Dropout of x itself.
    input_map : bool, default=True
        Map x by ψ_0 first. Otherwise the first layer takes x, and ψ_0 is left out. A family of counts reads x in the
        first layer in any case, and the layers after it have the family ``following``.
    pooling : str, Aggregation or None, default=None
        A readout of graphs: the name of an aggregation of PyG, one of its modules, or "fisher".
    **options : dict
        ``heads``, ``family``, ``em``, ``multiset``, ``counts``, ``normalize`` and ``residual`` of `FisherConv`. Its
        layers have no projection of their own: that is the input map.

    See Also
    --------
    FisherClassifier : The same network as a scikit-learn classifier.
    train : Train it.

    Notes
    -----
    Shapes:

    - **input:** x (node, in_channels), dense or sparse CSR; edge_index as in `FisherConv`; batch (node,) with pooling.
      With the `LiftedSets` of `node_tuples`, x has a row per tuple, and a node is the mean of its tuples in the end
    - **output:** (node, out), or (graph, out) with pooling

    Examples
    --------
    >>> import torch
    >>> from fishergraph.nn import FisherNet
    >>> x, edge_index = torch.randn(4, 16), torch.tensor([[0, 1, 2], [1, 2, 3]])
    >>> FisherNet(16, 8, num_layers=2, out_channels=3)(x, edge_index).shape
    torch.Size([4, 3])
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
        head: str | LinearMap | Nystrom = "nystrom",
        jk: str = "cat",
        dropout: float = 0.0,
        member_dropout: float = 0.0,
        input_dropout: float = 0.0,
        input_map: bool = True,
        pooling: str | Aggregation | None = None,
        **options: Any,
    ):
        arguments = {name: value for name, value in locals().items() if name not in ("self", "options", "__class__")}
        super().__init__()
        _check_options(options)
        self.options = {**arguments, **options}
        check_integer(hidden_channels, "hidden_channels", least=1)
        check_integer(num_layers, "num_layers", least=0, most=MOST_LAYERS)
        if out_channels is not None:
            check_integer(out_channels, "out_channels (or None)", least=1, most=MOST_COLUMNS)
        self.concat = look_up(JK, jk, "jk")
        self.dropout = check_number(dropout, "dropout", most=1.0)
        self.input_dropout = check_number(input_dropout, "input_dropout", most=1.0)
        self.normalize = check_flag(options.get("normalize", True), "normalize")
        chosen = choose_head(head, nystrom=NETWORK_NYSTROM, identity=False)
        mapped = check_flag(input_map, "input_map")
        self.input_map = make_head(chosen, in_channels, hidden_channels) if mapped else None
        family = choose_family(options.get("family", "gaussian-mixture"))
        self.reads_counts = num_layers > 0 and family.support == "counts"  # in the first layer
        layer = {**options, "head": chosen, "project": None, "dropout": member_dropout, "concat": False}
        first = hidden_channels if mapped and not self.reads_counts else in_channels
        widths = [hidden_channels if t else first for t in range(num_layers)]
        self.convs = nn.ModuleList(
            FisherConv(width, hidden_channels, num_anchors, **{**layer, "family": family.later if t else family})
            for t, width in enumerate(widths)
        )
        self.pooling = _readout(pooling, self._width())
        width = self._width() if pooling is None or isinstance(pooling, str) else -1
        width = self.pooling.mixture.out_channels if isinstance(pooling, str) and pooling == "fisher" else width
        if out_channels is not None:
            check_size((max(width, 1), out_channels))
            with allocating((width, out_channels)):
                self.classifier = Linear(width, out_channels)
        else:
            self.classifier = None

    def _width(self) -> int:
        """The columns of the embedding of a node."""
        hidden, n_blocks = self.options["hidden_channels"], len(self.convs) + (self.input_map is not None)
        return hidden * (n_blocks if self.concat else 1)

    def config(self) -> dict[str, Any]:
        """Return the arguments that make such a network.

        Returns
        -------
        dict
            Arguments by name.
        """
        return dict(self.options)

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        for part in (self.input_map, *self.convs, self.pooling, self.classifier):
            if part is not None:
                part.reset_parameters()

    @torch.no_grad()
    @each_warning_once()
    def init_from_data(
        self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None, *, seed: int = 0
    ) -> Self:
        """Learn anchors and landmarks layer by layer without labels (Section 4.5).

        Parameters
        ----------
        x, edge_index, edge_weight : tensors, or Store
            See `forward`; a `Store` is read by blocks, within its memory.
        seed : int, default=0
            Decides the samples and the start of k-means.

        Returns
        -------
        FisherNet
            The network itself.
        """
        if isinstance(x, StoredGraph):
            learn_by_layer(self, x, edge_index, edge_weight, seed)
            return self
        check_rows(x)
        rng, x = random_stream(seed, x), typed(x, self)
        with evaluating(self):
            rows = self.prepared(x)
            most = choose_em(self.options.get("em")).max_samples
            learn_landmarks(self.input_map, partial(take_rows, rows), x.shape[0], most, rng)
            rows = rows if self.input_map is None else self.input_map(rows)
            rows = x.to_dense() if self.reads_counts else rows
            edges = self._edges(edge_index, edge_weight, x.shape[0])
            for conv in self.convs:
                conv.init_from_data(rows, edges, None, seed=rng)
                rows = conv(rows, edges)
        return self

    @with_roots_at_once
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
        """Compute the logits, or the embedding, of every node.

        In a sampled batch these are the nodes of the first `batch_size` rows, the seeds.

        Parameters
        ----------
        x : Tensor of shape (n_nodes, in_channels)
            Features, dense or sparse CSR.
        edge_index, edge_weight : tensors
            See `FisherConv.forward`.
        batch : Tensor of shape (n_nodes,), optional
            The graph of every node, with pooling.
        batch_size : int, optional
            The number of seeds or, with pooling, of graphs.
        num_sampled_nodes_per_hop : list of int, optional
            Numbers of a loader that spare each layer the nodes that no seed needs.
        num_sampled_edges_per_hop : list of int, optional
            Not used; present because loaders pass both.

        Returns
        -------
        Tensor
            (node, out), or (graph, out) with pooling.
        """
        check_rows(x)
        if num_sampled_nodes_per_hop is not None or (batch_size is not None and self.pooling is None):
            check_plain(edge_index, "a sampled batch")
        x = dropped(typed(x, self), self.input_dropout, self.training)
        rows = self.first(x)
        blocks = [rows] if self.input_map is not None or not len(self.convs) else []
        seeds = None if self.pooling is not None else batch_size
        sizes = self._targets(seeds, x.shape[0], num_sampled_nodes_per_hop)
        edges = self._edges(edge_index, edge_weight, x.shape[0])
        rows = x.to_dense() if self.reads_counts else rows
        for n_targets, conv in zip(sizes, self.convs, strict=True):
            entering = dropped(rows, self.dropout, self.training)
            if isinstance(edges, TensorSets):
                rows = conv((entering, entering[:n_targets]), narrow(edges, n_targets, rows.shape[0]))
            else:  # lifted, or edges whose messages are explained
                rows = conv(entering, edges, edge_weight)
            blocks.append(rows)
        n_rows = x.shape[0] if not sizes else sizes[-1]
        z = torch.cat([block[:n_rows] for block in (blocks if self.concat else blocks[-1:])], dim=1)
        z = pooled(z, edge_index)
        if self.pooling is not None:
            index = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device) if batch is None else batch
            check_groups(index, z.shape[0], "batch")
            if batch_size is not None:
                batch_size = check_set_count(batch_size, "batch_size", z.shape[1])
            z = self.pooling(z, index, dim_size=batch_size)
        return z if self.classifier is None else self.classifier(dropped(z, self.dropout, self.training))

    def first(self, x: Tensor) -> Tensor:
        """Compute ψ_0, or return x itself if there is no input map.

        Parameters
        ----------
        x : Tensor of shape (n_nodes, in_channels)
            Features.

        Returns
        -------
        Tensor
            One row per node.
        """
        rows = self.prepared(x)
        return rows if self.input_map is None else self.input_map(rows)

    def prepared(self, x: Tensor) -> Tensor:
        """Return the rows of x that the input map gets.

        Parameters
        ----------
        x : Tensor of shape (n_nodes, in_channels)
            Features.

        Returns
        -------
        Tensor
            Unit rows, or x itself without `normalize`.
        """
        return unit_rows(x) if self.normalize else x

    def _edges(self, edge_index: Any, edge_weight: Tensor | None, n_nodes: int) -> Any:
        """The multisets, made once for all layers; or the edges themselves if an explainer reads their messages."""
        explained = any(conv.is_explained() for conv in self.convs)
        return edge_index if explained else self.sets(edge_index, edge_weight, n_nodes)

    def sets(self, edge_index: Any, edge_weight: Tensor | None, n_nodes: int) -> Any:
        """Return the multisets of these edges for all layers; None if there is no layer.

        Parameters
        ----------
        edge_index, edge_weight : tensors
            See `forward`.
        n_nodes : int
            Number of nodes.

        Returns
        -------
        TensorSets, LiftedSets or None
            One multiset per node.
        """
        return self.convs[0].sets(edge_index, edge_weight, (n_nodes, n_nodes)) if len(self.convs) else None

    def _targets(self, seeds: int | None, n_nodes: int, per_hop: list[int] | None) -> list[int]:
        """How many nodes, from the first on, each layer is computed for."""
        n_layers = len(self.convs)
        if seeds is not None:
            check_integer(seeds, "batch_size", least=0, most=n_nodes)
        if per_hop is None:
            return [n_nodes] * (n_layers - 1) + [n_nodes if seeds is None else seeds] * bool(n_layers)
        name = "num_sampled_nodes_per_hop"
        listed = per_hop if isinstance(per_hop, (list, tuple)) else ()
        counts = [check_integer(count, name, least=0) for count in listed]
        if len(counts) <= n_layers or sum(counts) > n_nodes:
            raise InputError(
                parameter=name,
                value=per_hop,
                expected=f"list the seeds and the new nodes of {n_layers} hops, at most {n_nodes} together",
                advice="give num_neighbors one number per layer",
            )
        return [sum(counts[: n_layers - t]) for t in range(n_layers)]

    def inference(
        self,
        x: Any,
        edge_index: Any = None,
        edge_weight: Tensor | None = None,
        *,
        batch_size: int | None = None,
        device: Any = None,
        progress: Any = None,
    ) -> Any:
        """Compute `forward` of all nodes, layer by layer, in blocks of rows.

        There are no gradients and no dropout.

        All neighbours are used. x and the result stay on the device of x. A `Store` in place of x and edges is read by
        blocks, within its memory, and the result is kept in it under its name.

        Parameters
        ----------
        x, edge_index, edge_weight : tensors, or Store
            See `forward`.
        batch_size : int, optional
            Rows of a block; None chooses.
        device : str or torch.device, optional
            The device that computes a block; None is that of the parameters.
        progress : callable, optional
            Function that is called as ``progress(n)`` after every n rows of a layer.

        Returns
        -------
        Tensor or StoredEmbedding of shape (n_nodes, out)
            Logits or embeddings.
        """
        return run_by_layer(self, x, edge_index, edge_weight, batch_size, device, progress)


def _check_options(options: dict[str, Any]) -> None:
    for name in options:
        if name not in _LAYER_OPTIONS:
            names = ", ".join(_LAYER_OPTIONS)
            raise InputTypeError(f"FisherNet takes the options {names} of FisherConv, got {name!r}; choose one.")


def _readout(pooling: str | Aggregation | None, width: int) -> Any:
    """The module that makes one row of the rows of a graph."""
    if isinstance(pooling, str) and pooling == "fisher":
        return FisherAggregation(width, counts=True)
    if pooling is None or isinstance(pooling, nn.Module):
        return pooling
    try:
        return aggregation_resolver(pooling if isinstance(pooling, str) and pooling else "no name")
    except ValueError as error:
        expected = "be 'fisher', an aggregation of PyTorch Geometric or its name, such as 'mean'"
        raise InputError(parameter="pooling", value=pooling, expected=expected) from error
