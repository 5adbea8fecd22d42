"""`FisherConv`: one layer of the Fisher information embedding, with the calling convention of PyG's `GATConv`."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from fishergraph._errors import InputError
from fishergraph._validation import MOST_COLUMNS, check_flag, check_integer, check_number
from fishergraph.em.settings import EM
from fishergraph.family import Family, choose_family
from fishergraph.kernel_map import Identity, Nystrom
from fishergraph.layer import sampled_points
from fishergraph.multiset import LiftedSets, Neighbourhood, Rule, choose_multiset
from fishergraph.multiset.rule import not_counts
from fishergraph.nn.channels import check_widths
from fishergraph.nn.edges import edge_sets, graph_size
from fishergraph.nn.families import make_mixture
from fishergraph.nn.heads import LinearHead, LinearMap, NystromHead, Residual, choose_head, learn_landmarks, make_head
from fishergraph.nn.lifted import by_blocks, check_plain, lifted_sets, thinned
from fishergraph.nn.messages import Messages
from fishergraph.nn.projection import Projecting, make_projection
from fishergraph.nn.rows import check_rows, match_dtype
from fishergraph.ops.streams import random_stream
from fishergraph.ops.unit_rows.torch import unit_rows

Pair = tuple[Tensor, Tensor | None]


class FisherConv(Projecting, Messages):
    """Fisher embedding of every node's neighbours, with a trained head.

    The result is z_v = head(φ_v).

    φ_v = p^{-1/2} (μ_v − w), where μ_vj = Σ_u a_vu α_uj x_u / Σ_u a_vu α_uj are the means of the neighbours after one
    EM step from the anchors w_j, which are parameters (Eq. 17, 18). No tensor has the size edges × features: the graph
    is read once, as by a sparse product.

    Parameters
    ----------
    in_channels : int or tuple of int
        Number of features of x; -1 takes that of the first input. A pair for bipartite graphs, whose second entry is
        used only with `residual`.
    out_channels : int or None
        Width of the output, of each head if `concat`. Not used by ``head="identity"``.
    num_anchors : int, default=4
        Components p of the mixture.
    heads : int, default=1
        Mixtures side by side; the head gets φ of all of them.
    concat : bool, default=True
        The output has ``heads * out_channels`` columns, as in `GATConv`; otherwise ``out_channels``.
    head : {"linear", "relu", "nystrom", "identity"}, LinearMap or Nystrom, default="linear"
        The map of φ: W φ + b, without b for ``LinearMap(bias=False)``; ReLU(BatchNorm(W φ)), the paper's for large
        graphs; the map of the exponential kernel, ``Nystrom(bandwidth=1.5)``, with trained landmarks; or φ itself.
    project : "auto", int or None, default="auto"
        The width that a trained matrix projects the rows of x to, before anything else. "auto" projects wide rows to
        the width of the output, at least 64, if they are four times as wide or more; None projects none. With a
        projection x may be sparse CSR.
    family : str or component, default="gaussian-mixture"
        The manifold: `GaussianMixture`, `WeightedMixture`, `DiagonalMixture`, `VonMisesFisherMixture`,
        `MultinomialMixture` (x holds counts) or `Gaussian` (one component of full covariance, at most 128 features).
        The variance "auto" is in_channels^{-1/2} until `init_from_data` calibrates it. Weights, covariances,
        concentrations and probabilities of the other families are trained.
    em : EM, optional
        E-step, iterations and prior. ``init`` and ``max_samples`` belong to `init_from_data`. None is ``EM()``.
    multiset : str or component, default="neighbourhood"
        `Neighbourhood` says whether every node belongs to its own multiset, how edges are weighted, and which way they
        are read. By default sources are the members of targets; ``direction="both"`` keeps in- and out-neighbours
        apart, and doubles the width of φ (compile it with ``net.sets(…).prepare()`` as `edge_index`). A rule such as
        ``Paths(2)``, whose members are made of several rows, makes the layer take the
        `LiftedSets` of that rule; rows are divided by their lengths before they are lifted.
    counts : bool, default=False
        Append the soft counts log(1 + mass) to φ.
    normalize : bool, default=True
        Divide the rows of x by their lengths first; counts stay as they are.
    dropout : float in [0, 1], default=0.0
        The fraction of the members that is left out of every multiset in training.
    residual : bool, default=False
        Add a linear map of x_v.

    See Also
    --------
    FisherNet : A stack of these layers.
    FisherAggregation : The same embedding of grouped rows.

    Notes
    -----
    Shapes:

    - **input:** x (node, in_channels), sparse CSR only with a projection, or a pair (x_source, x_target), whose second
      entry may be None;
      edge_index (2, edge), `EdgeIndex`, a sparse tensor with a row per target, `TensorSets` or `LiftedSets`;
      edge_weight (edge,), optional
    - **output:** (target, out), and with ``return_attention_weights=True`` also a pair: (member, node) in the order of
      the nodes, loops included, and the attention (entry, head · anchor), whose columns sum to one over a multiset;
      if in- and out-neighbours are apart, the former come first at every node, and columns sum to one over each

    Examples
    --------
    >>> import torch
    >>> from fishergraph.nn import FisherConv
    >>> x, edge_index = torch.randn(4, 16), torch.tensor([[0, 1, 2], [1, 2, 3]])
    >>> FisherConv(16, 8)(x, edge_index).shape
    torch.Size([4, 8])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int | None,
        num_anchors: int = 4,
        *,
        heads: int = 1,
        concat: bool = True,
        head: str | LinearMap | Nystrom | Identity = "linear",
        project: str | int | None = "auto",
        family: str | Family = "gaussian-mixture",
        em: EM | None = None,
        multiset: str | Rule = "neighbourhood",
        counts: bool = False,
        normalize: bool = True,
        dropout: float = 0.0,
        residual: bool = False,
    ):
        super().__init__(aggr="add", node_dim=0)
        self.in_channels, self.out_channels, self.num_anchors = in_channels, out_channels, num_anchors
        self.heads, self.concat = heads, check_flag(concat, "concat")
        self.multiset = choose_multiset(multiset)
        self.lifts = self.multiset.lifts
        # PyG's HeteroConv reads this name.
        self.add_self_loops = isinstance(self.multiset, Neighbourhood) and self.multiset.closed
        self.dropout = check_number(dropout, "dropout", most=1.0)
        sources, targets = check_widths(in_channels)
        chosen, counted = choose_head(head), choose_family(family).support == "counts"
        has_head = not isinstance(chosen, Identity)
        self.project = project
        self.projection = make_projection(project, sources, self._width() if has_head else None, counts=counted)
        width = sources if self.projection is None or self.waits() else self.projection.out_channels
        width = width * self.multiset.slots if width > 0 else width
        options: dict[str, Any] = {"heads": heads, "counts": counts, "lifted": self.lifts}
        self.mixture = make_mixture(width, num_anchors, family=family, em=em, normalize=normalize, **options)
        if self.multiset.signed and counted:
            raise not_counts(self.multiset)
        # Whether rows are divided by their lengths before they are lifted; the mixture does it otherwise.
        self.unit_rows = self.lifts and normalize and not counted
        self.head = make_head(chosen, self._phi_width, self._width()) if has_head else None
        self.residual = Residual(targets, self._width()) if check_flag(residual, "residual") else None

    @property
    def _phi_width(self) -> int:
        """The columns of φ, all kinds of members side by side; −1 while the width of the input is not known."""
        width = self.mixture.out_channels
        return width if width < 0 else self.multiset.kinds * width

    def _width(self) -> int:
        """The columns of the output of a head."""
        width = check_integer(self.out_channels, "out_channels", least=1, most=MOST_COLUMNS)
        return width * (self.heads if self.concat else 1)

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        super().reset_parameters()
        for part in (self.projection, self.mixture, self.head, self.residual):
            if part is not None:
                part.reset_parameters()

    @torch.no_grad()
    def init_from_data(
        self, x: Tensor | Pair, edge_index: Any, edge_weight: Tensor | None = None, *, seed: Any = 0
    ) -> Self:
        """Set anchors and landmarks to the centres of clusters of a sample.

        Anchors are centres of members, landmarks those of φ.

        A projection, and a linear or ReLU head, keep their random weights; members are projected first.

        Parameters
        ----------
        x, edge_index, edge_weight : tensors
            See `forward`.
        seed : int or random stream, default=0
            Decides the samples and the start of k-means.

        Returns
        -------
        FisherConv
            The layer itself.
        """
        source, target = self._pair(x)
        rng, most = random_stream(seed, source), self.mixture.em.max_samples
        size = graph_size(source, target, edge_index, None, self._phi_width)
        sets = self.sets(edge_index, edge_weight, size)
        source = source if self.projection is None else self.projection(source)
        points = self._to_lift(source) if self.lifts else source
        self.mixture.init_from_data(sampled_points(points, sets, self.num_anchors, most, rng), rng)
        learn_landmarks(self.head, lambda rows: self._over(self.phi, source, sets.take(rows)), sets.n_sets, most, rng)
        return self

    def forward(
        self,
        x: Tensor | Pair,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Compute the output of every target.

        Parameters
        ----------
        x : Tensor or tuple of Tensor
            Features (node, in_channels), or a pair for sources and targets; sparse CSR only with a projection.
        edge_index : Tensor, EdgeIndex, TensorSets or LiftedSets
            Edges from sources to targets, or the multisets themselves.
        edge_weight : Tensor of shape (n_edges,), optional
            Finite weights of at least 0.
        size : tuple of int, optional
            The numbers of sources and targets, if x does not say them.
        return_attention_weights : bool, optional
            Return the attention too.

        Returns
        -------
        Tensor or tuple
            The output (target, out); with `return_attention_weights` also (edges, attention).
        """
        source, target = self._pair(x)
        if size is None and target is source:
            size = (len(source), len(source))
        else:
            size = graph_size(source, target, edge_index, size, self._phi_width)
        source = source if self.projection is None else self.projection(source)
        sets = None
        if self.is_explained():
            z = self._explained(source, edge_index, edge_weight, size)
        else:
            sets = self.sets(edge_index, edge_weight, size)
            members = thinned(sets, self.dropout) if self.training and self.dropout > 0 else sets
            if isinstance(self.head, LinearHead) and not members.lifted and members.kinds == 1:
                z = self.mixture.linear(source, members, self.head.weight)
                z = self.head.finish(z if z.dtype == source.dtype else match_dtype(z, source))
            else:
                z = self._output(source, members)
        if self.residual is not None:
            if target is None:
                expected = "be a pair (x_source, x_target) with residual=True"
                raise InputError(parameter="x", expected=expected, got="no targets")
            check_rows(target)
            z = z + match_dtype(self.residual(target), source)
        if not return_attention_weights:
            return z
        check_plain(edge_index, "return_attention_weights")
        sets = self.sets(edge_index, edge_weight, size) if sets is None else sets
        return z, (torch.stack([sets.indices.long(), sets.rows]), self.mixture.attention(source, sets.apart()))

    def is_explained(self) -> bool:
        """Return whether an explainer or a hook reads the messages.

        Returns
        -------
        bool
            True if they have to exist.
        """
        before = (self._propagate_forward_pre_hooks, self._message_forward_pre_hooks, self._aggregate_forward_pre_hooks)
        after = (self._propagate_forward_hooks, self._message_forward_hooks, self._aggregate_forward_hooks)
        return bool(self.explain) or any(before) or any(after)

    def _pair(self, x: Any) -> tuple[Tensor, Tensor | None]:
        """Sources and targets. Raises unless x has the right width; an unknown width becomes known."""
        pair = x if isinstance(x, (tuple, list)) else (x, x)
        if len(pair) != 2:
            expected = "be a tensor or a pair (x_source, x_target)"
            raise InputError(parameter="x", expected=expected, got=f"{len(pair)} of them")
        source, target = pair
        check_rows(source, sparse=self.projection is not None)
        width, slots = source.shape[1], self.multiset.slots if self.lifts else 1
        if self.projection is not None:
            width = self._projected(source)
        if slots > 1 and self.mixture.in_channels not in (-1, slots * width):
            expected = f"have {self.mixture.in_channels // slots} features, {slots} rows of which are a member"
            advice = "pass in_channels=-1 to take the width of the first input"
            raise InputError(parameter="x", expected=expected, got=str(width), advice=advice)
        if self.mixture.in_channels != slots * width:
            self.mixture.expect(slots * width)
        if self.head is not None and self.head.in_channels < 0:
            self.head.expect(self._phi_width)
        return source, target

    def sets(self, edge_index: Any, edge_weight: Tensor | None, size: tuple[int, int]) -> Any:
        """Return the multisets that this layer makes of the edges; lifted ones stay lifted.

        Parameters
        ----------
        edge_index, edge_weight : tensors
            See `forward`.
        size : tuple of int
            The numbers of points and sets.

        Returns
        -------
        TensorSets or LiftedSets
            One multiset per target.
        """
        if self.lifts or isinstance(edge_index, LiftedSets):
            return lifted_sets(edge_index, edge_weight, size, self.multiset)
        dtype = self.mixture.anchors.dtype
        return edge_sets(edge_index, edge_weight, n_points=size[0], n_sets=size[1], rule=self.multiset, dtype=dtype)

    def _output(self, source: Tensor, sets: Any) -> Tensor:
        """The head of φ, without messages, if it is not linear, or members are lifted or of several kinds."""
        head = self.head
        if head is None:
            return match_dtype(self._over(self.phi, source, sets), source)
        if isinstance(head, NystromHead):
            root = head.root()  # once for all row blocks
            z = self._over(lambda points, sets: head(self.phi(points, sets), root), source, sets)
            return match_dtype(z, source)
        z = self._over(lambda points, sets: self._linear(points, sets, head.weight), source, sets)
        return head.finish(match_dtype(z, source))

    def phi(self, points: Tensor, sets: Any) -> Tensor:
        """Compute φ of plain sets, that of every kind of members side by side.

        Parameters
        ----------
        points : Tensor of shape (n_points, in_channels)
            The points.
        sets : TensorSets
            Multisets of them.

        Returns
        -------
        Tensor
            (set, φ), before the head.
        """
        phi = self.mixture(points, sets.apart())
        return phi if sets.kinds == 1 else phi.reshape(sets.n_sets, self._phi_width)

    def _linear(self, points: Tensor, sets: Any, weight: Tensor) -> Tensor:
        """weight · φ of plain sets, added over the kinds of members; φ is not stored if one operator computes both."""
        if sets.kinds == 1:
            return self.mixture.linear(points, sets, weight)
        blocks = zip(sets.sides, weight.chunk(sets.kinds, dim=1), strict=True)
        terms = [self.mixture.linear(points, side, block.contiguous()) for side, block in blocks]
        return torch.stack(terms).sum(dim=0)

    def _to_lift(self, source: Tensor) -> Tensor:
        """The rows that are lifted."""
        engine, rows = self.mixture.points(source)
        return unit_rows(engine, rows) if self.unit_rows else rows

    def _over(self, function: Any, source: Tensor, sets: Any) -> Tensor:
        """function(points, sets); by row blocks if members are lifted."""
        if not sets.lifted:
            return function(source, sets)
        return by_blocks(function, self._to_lift(source), sets, self._phi_width)

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, num_anchors={self.num_anchors}, heads={self.heads}"
        return f"{type(self).__name__}({sizes})"
