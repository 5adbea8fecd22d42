"""`FisherConv`: one layer of the Fisher information embedding, with the calling convention of PyG's `GATConv`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear

from fishergraph._records import changed
from fishergraph._validation import MOST_COLUMNS, check_flag, check_integer, check_number, look_up
from fishergraph.device import random_stream
from fishergraph.em.anchors import sample_size
from fishergraph.family import choose_family
from fishergraph.layer import sampled_points
from fishergraph.multiset import LiftedSets
from fishergraph.nn.families import make_mixture
from fishergraph.nn.kernel_map import HEADS, NystromMap
from fishergraph.nn.lazy import check_numbers, check_options, check_widths
from fishergraph.nn.lifted import by_blocks, check_edges_alone, expect_rows, lift_width, lifted_sets, rows_to_lift
from fishergraph.nn.rows import as_given, check_rows, is_sparse
from fishergraph.nn.sets import edge_sets, graph_size, listed_edges
from fishergraph.ops.tensor_edges import WEIGH

Pair = tuple[Tensor, Tensor | None]

# Most members and rows that the initialisation looks at, as in `FisherEmbedding`.
MAX_SAMPLES = 300_000

_HOOKS = ("hooks", "pre_hooks")


class FisherConv(MessagePassing):
    """z_v = head(φ_v), where φ_v = p^{-1/2} (μ_v − w) is the Fisher embedding of the multiset of v's neighbours.

    μ_vj = Σ_u a_vu α_uj x_u / Σ_u a_vu α_uj are the means of the neighbours after one EM step from the anchors w_j,
    which are parameters (Eq. 17, 18). Nothing of size edges × features is made: the graph is read once, as by a
    sparse product.

    Parameters
    ----------
    in_channels : width of x; −1 takes that of the first input. A pair for bipartite graphs, of which the second is
        looked at only with `residual`.
    out_channels : width of the output, of each head with `concat`.
    num_anchors : components p of the mixture.
    num_em_steps : EM iterations; 1 is the paper.
    heads : several mixtures side by side; the head sees φ of all of them.
    concat : the output has heads · out_channels columns, as in `GATConv`; otherwise out_channels.
    head : "linear"; "relu", with batch norm and ReLU after it, the paper's for large graphs; "nystrom", the map of
        the exponential kernel; "identity", φ itself (out_channels is then not looked at and may be None).
    bandwidth : of the Nyström map.
    variance : σ² of the components, or "auto", which `init_from_data` calibrates: the mean entropy of the
        responsibilities is then `sharpness` · log p. Before it has seen data "auto" is in_channels^{-1/2}.
    prior : κ ≥ 0, the weight of an anchor as one more member of its component.
    e_step, column_penalty : "posterior", "balanced" or "unbalanced", as in `em_means`.
    normalize : divide the rows of x by their lengths first; counts are left as they are.
    mixture_bias : learn log-weights of the components.
    counts : append the soft counts log(1 + mass) to φ.
    family : "gaussian-mixture"; "diagonal-mixture", "von-mises-fisher", "multinomial" (x holds counts, none negative),
        "gaussian" (one component of full covariance, at most 128 features), which have no `variance`: weights,
        covariances, concentrations and probabilities are trained; or a record: `DiagonalMixture(tangent="score")`.
    add_self_loops : every node belongs to its own multiset, once, whether or not the edges say so.
    weights : None, `edge_weight` as it is; "uniform"; "symmetric", divided by the roots of both ends' degrees.
    slots : where members are made of several rows (`LiftedSets`), how many stand side by side in one, the `slots` of
        these sets: the mixture is then of lifted points, slots · in_channels wide. Rows are divided by their lengths
        before they are lifted, as in `FisherEmbedding`. None: members are rows.
    dropout : the share of the members that is left out of each multiset in training.
    residual : add a linear map of x_v itself.
    bias : of the linear head.
    backend : None chooses; "triton", "numba", or "torch", which autograd differentiates twice.

    Shapes
    ------
    - **input:** x (node, in_channels) or a pair (x_source, x_target) of which the second may be None;
      edge_index (2, edge), `EdgeIndex`, a sparse tensor with a row per target, `TensorSets`, or with `slots`
      `LiftedSets`, such as Paths()(graph);
      edge_weight (edge,), optional
    - **output:** (target, out), or with `return_attention_weights=True` also a pair: the edges in the order of their
      targets, loops among them, and the attention (edge, head · anchor), whose columns sum to one over a multiset
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int | None,
        num_anchors: int = 4,
        num_em_steps: int = 1,
        *,
        heads: int = 1,
        concat: bool = True,
        head: str = "linear",
        bandwidth: float = 1.5,
        variance: float | str = "auto",
        sharpness: float = 0.9,
        prior: float = 0.0,
        e_step: str = "posterior",
        column_penalty: float = 1.0,
        normalize: bool = True,
        mixture_bias: bool = False,
        counts: bool = False,
        family: Any = "gaussian-mixture",
        add_self_loops: bool = True,
        weights: str | None = None,
        slots: int | None = None,
        dropout: float = 0.0,
        residual: bool = False,
        bias: bool = True,
        backend: str | None = None,
        **kwargs: Any,
    ):
        check_options(FisherConv, kwargs, FisherConv, MessagePassing)
        super().__init__(aggr="add", node_dim=0, **kwargs)
        if self.flow != "source_to_target":
            raise ValueError(f"flow must be 'source_to_target', got {self.flow!r}; pass edge_index.flip(0) instead.")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_anchors, self.num_em_steps, self.heads = num_anchors, num_em_steps, heads
        self.concat = check_flag(concat, "concat")
        self.add_self_loops = check_flag(add_self_loops, "add_self_loops")
        self.weights = weights
        look_up(WEIGH, "edge" if weights is None else weights, "weights")
        self.slots = None if slots is None else check_integer(slots, "slots (or None)", least=1, most=MOST_COLUMNS)
        self.normalize = check_flag(normalize, "normalize") and choose_family(family).support != "counts"
        self.dropout = check_number(dropout, "dropout", most=1.0)
        sources, targets = check_widths(in_channels)
        self.mixture = make_mixture(
            lift_width(sources, slots), num_anchors, heads=heads, num_em_steps=num_em_steps, variance=variance,
            sharpness=sharpness, prior=prior, e_step=e_step, column_penalty=column_penalty, counts=counts,
            normalize=normalize and slots is None, mixture_bias=mixture_bias, backend=backend, family=family,
        )  # fmt: skip
        self.head = self._make_head(head, bandwidth, bias)
        if check_flag(residual, "residual"):
            check_numbers((self._width(), max(targets, 1)))
        self.residual = Linear(targets, self._width(), bias=False) if residual else None

    def _width(self) -> int:
        """The columns of the output."""
        return check_integer(self.out_channels, "out_channels", least=1, most=MOST_COLUMNS) * (
            self.heads if self.concat else 1
        )

    def _make_head(self, name: str, bandwidth: float, bias: bool) -> Any:
        kind = look_up({**HEADS, "identity": None}, name, "head")
        if kind is None:
            return None
        options = {"nystrom": {"bandwidth": bandwidth}, "linear": {"bias": bias}}.get(name, {})
        return kind(self.mixture.out_channels, self._width(), **options)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        super().reset_parameters()
        for part in (self.mixture, self.head, self.residual):
            if part is not None:
                part.reset_parameters()

    @torch.no_grad()
    def init_from_data(self, x: Tensor | Pair, edge_index: Any, edge_weight: Tensor | None = None, *, seed: Any = 0):
        """self, with anchors at k-means centres of a sample of members, and landmarks at those of a sample of φ.

        A linear or ReLU head keeps its random weights. `seed` is a number or a stream of random numbers.
        """
        source, target = x if isinstance(x, tuple) else (x, x)
        self._expect(source)
        rng = random_stream(seed, source)
        sets = self.sets(edge_index, edge_weight, graph_size(source, target, edge_index, None))
        points = self._points(source)
        self.mixture.init_from_data(sampled_points(points, sets, self.num_anchors, MAX_SAMPLES, rng), rng)
        if isinstance(self.head, NystromMap):
            n_rows = sample_size(self.head.out_channels, MAX_SAMPLES, sets.n_sets)
            rows = rng.permutation(sets.n_sets)[:n_rows].sort().values
            self.head.init_from_data(self._over(self.mixture, points, sets.take(rows)), rng)
        return self

    def forward(
        self,
        x: Tensor | Pair,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ):
        """The output for every target."""
        source, target = x if isinstance(x, (tuple, list)) else (x, x)
        self._expect(source)
        size = graph_size(source, target, edge_index, size)
        sets = None
        if self.is_explained() or return_attention_weights:
            check_edges_alone(edge_index, "what explains a layer")
        if self.is_explained():
            z = self._explained(source, edge_index, edge_weight, size)
        else:
            sets = self.sets(edge_index, edge_weight, size)
            z = self._fused(source, self._thinned(sets))
        z = as_given(z, source)
        if self.residual is not None:
            z = z + self.residual(_own_rows(target))
        if not return_attention_weights:
            return z
        sets = self.sets(edge_index, edge_weight, size) if sets is None else sets
        return z, (torch.stack([sets.indices.long(), sets.rows]), self.mixture.attention(source, sets))

    def _expect(self, source: Any) -> None:
        """Raise unless x is a dense float matrix of the promised width; an unknown width is now known."""
        check_rows(source)
        if is_sparse(source):
            raise ValueError(
                "a layer needs dense rows, got a sparse x; use x.to_dense(), or a FisherNet with an input map."
            )
        expect_rows(self.mixture, source.shape[1], self.slots)
        if self.head is not None:
            self.head.expect(self.mixture.out_channels)

    def sets(self, edge_index: Any, edge_weight: Tensor | None, size: tuple[int, int]) -> Any:
        """The multisets of `size` = (points, sets) that this layer makes of the edges; lifted ones stay lifted."""
        if self.slots is not None or isinstance(edge_index, LiftedSets):
            return lifted_sets(edge_index, edge_weight, size, self.slots)
        return edge_sets(
            edge_index,
            edge_weight,
            n_points=size[0],
            n_sets=size[1],
            loops=self.add_self_loops,
            weights=self.weights,
            dtype=next(self.parameters()).dtype,
        )

    def _thinned(self, sets: Any) -> Any:
        """The sets without the members that dropout leaves out. No rescaling: means are ratios."""
        if not self.training or self.dropout == 0:
            return sets
        if sets.lifted:
            return changed(sets, sets=self._thinned(sets.sets))
        kept = torch.rand(sets.indices.shape, device=sets.device) >= self.dropout
        weights = kept.float() if sets.weights is None else sets.weights * kept
        if torch.is_grad_enabled():
            _ = sets.transpose  # of all members, for as long as the sets live
        return sets.weighted(weights)

    def _fused(self, source: Tensor, sets: Any) -> Tensor:
        points, head = self._points(source), self.head
        if head is None:
            return self._over(self.mixture, points, sets)
        if head.projection is None:
            root = head.root()  # once for all row blocks
            return self._over(lambda points, sets: head(self.mixture(points, sets), root), points, sets)
        weight = head.projection
        z = self._over(lambda points, sets: self.mixture.linear(points, sets, weight), points, sets)
        return head.finish(as_given(z, source))

    def _points(self, source: Tensor) -> Tensor:
        """What the mixture is given, or what is lifted for it."""
        return source if self.slots is None else rows_to_lift(self.mixture, source, self.normalize)

    def _over(self, function: Any, points: Tensor, sets: Any) -> Tensor:
        """function(points, sets); by row blocks where members have to be lifted."""
        return by_blocks(function, points, sets, self.mixture.out_channels) if sets.lifted else function(points, sets)

    def is_explained(self) -> bool:
        """Whether somebody reads or masks the messages, so that they have to be made."""
        kinds = [f"_{what}_forward_{when}" for what in ("propagate", "message", "aggregate") for when in _HOOKS]
        return bool(self.explain) or any(getattr(self, kind) for kind in kinds)

    def _explained(self, source: Tensor, edge_index: Any, edge_weight: Tensor | None, size: tuple[int, int]) -> Tensor:
        """The same by messages of size edge × anchor × feature, which explainers can read and mask."""
        edges, weights = listed_edges(edge_index, edge_weight, size, loops=self.add_self_loops)
        order = torch.sort(edges[1], stable=True).indices
        sets = edge_sets(edges[:, order], None if weights is None else weights[order], n_points=size[0],
                         n_sets=size[1], loops=False, weights=self.weights, dtype=source.dtype)  # fmt: skip
        attention = self.mixture.attention(source, sets)
        alpha = torch.empty_like(attention).index_copy(0, order, attention)  # in the order of the edges
        rows = self.mixture.rows(source)
        steps = self.propagate(edges, x=(rows, None), alpha=alpha, size=size)
        # Whoever masks messages moves the means; the masses are those of all members.
        phi = self.mixture.embedded(steps + self.mixture.centres(steps.dtype), self.mixture.mass(source, sets))
        if self.head is None or self.head.projection is None:
            return phi if self.head is None else self.head.finish(phi)
        return self.head.finish(as_given(F.linear(phi, self.head.projection.to(phi.dtype)), source))

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        """α_e (t_e − E t_j), (edge, anchor, statistic), with t_e − E t_j = x_e − w_j for the Gaussian mixture.

        Their sum is how far the means are from those at θ_0, and that of an empty set is zero.
        """
        return alpha[..., None] * (x_j[:, None, :] - self.mixture.centres(x_j.dtype))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, num_anchors={self.num_anchors}, "
            f"num_em_steps={self.num_em_steps}, heads={self.heads})"
        )


def _own_rows(target: Tensor | None) -> Tensor:
    """The targets' own features, which a residual needs."""
    if target is None:
        raise ValueError("residual=True needs the features of the targets, got None; pass x as (x_source, x_target).")
    return target
