"""`FisherAggregation`: φ as an aggregation of PyG, for messages, for nodes of graphs, for any grouped rows."""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from fishergraph._errors import InputError
from fishergraph.em.settings import EM
from fishergraph.family import Family
from fishergraph.nn.edges import check_groups, check_offsets, check_set_count, group_sets
from fishergraph.nn.families import make_mixture
from fishergraph.nn.heads import LinearHead
from fishergraph.nn.rows import check_rows, match_dtype
from fishergraph.ops.streams import random_stream


class FisherAggregation(Aggregation):
    """Fisher embedding of every group of rows, φ = p^{-1/2} (μ − w) (Eq. 18).

    With `out_channels` it is W φ + b.

    An empty group has φ = 0.

    Parameters
    ----------
    in_channels : int
        Number of features of the rows; -1 takes that of the first input.
    out_channels : int or None, default=None
        Width of W φ + b; None returns φ itself, (group, heads * num_anchors * in_channels).
    num_anchors : int, default=4
        Components p of the mixture.
    heads : int, default=1
        Mixtures side by side.
    family : str or component, default="gaussian-mixture"
        The manifold, as in `FisherConv`.
    em : EM, optional
        E-step, iterations and prior. None is ``EM()``.
    counts : bool, default=False
        Append the soft counts, which tell {x} from {x, x}: a readout of graphs needs them.
    normalize : bool, default=True
        Divide the rows by their lengths first.
    bias : bool, default=True
        Whether W φ has a bias.

    See Also
    --------
    FisherConv : The same embedding of the neighbours of every node.

    Notes
    -----
    Shapes:

    - **input:** x (row, in_channels); index (row,), in any order, or ptr (group + 1,) for grouped rows
    - **output:** (group, out)

    Examples
    --------
    >>> import torch
    >>> from fishergraph.nn import FisherAggregation
    >>> FisherAggregation(16, num_anchors=2)(torch.randn(5, 16), torch.tensor([0, 0, 1, 1, 1])).shape
    torch.Size([2, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        num_anchors: int = 4,
        *,
        heads: int = 1,
        family: str | Family = "gaussian-mixture",
        em: EM | None = None,
        counts: bool = False,
        normalize: bool = True,
        bias: bool = True,
    ):
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        options: dict[str, Any] = {"heads": heads, "counts": counts, "normalize": normalize}
        self.mixture = make_mixture(in_channels, num_anchors, family=family, em=em, **options)
        self.head = None if out_channels is None else LinearHead(self.mixture.out_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        self.mixture.reset_parameters()
        if self.head is not None:
            self.head.reset_parameters()

    def __call__(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        **options: Any,
    ) -> Tensor:
        """Validate what the base class reads, and call `forward`."""
        check_rows(x, sparse=False)
        if not isinstance(dim, int) or isinstance(dim, bool) or dim not in (-2, 0):
            raise InputError(parameter="dim", value=dim, expected="be -2 or 0, the axis of the rows")
        if index is not None:
            check_groups(index, x.shape[0], "index")
        if ptr is not None:
            check_offsets(ptr)
        if dim_size is not None:
            dim_size = check_set_count(dim_size, "dim_size", self.mixture.out_channels)
        return super().__call__(x, index, ptr, dim_size, dim, **options)

    def init_from_data(self, x: Tensor, *, seed: Any = 0) -> Self:
        """Set the anchors to centres of the rows.

        Parameters
        ----------
        x : Tensor of shape (n_rows, in_channels)
            The rows.
        seed : int or random stream, default=0
            Decides the start of k-means.

        Returns
        -------
        FisherAggregation
            The module itself.
        """
        check_rows(x, sparse=False)
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
        """Embed every group.

        Parameters
        ----------
        x : Tensor of shape (n_rows, in_channels)
            The rows.
        index : Tensor of shape (n_rows,), optional
            The group of every row.
        ptr : Tensor of shape (n_groups + 1,), optional
            Group g has the rows ptr[g] … ptr[g + 1] − 1.
        dim_size : int, optional
            The number of groups.
        dim : int, default=-2
            The axis of the rows, which must be the first of two.
        max_num_elements : int, optional
            Not used.

        Returns
        -------
        Tensor of shape (n_groups, out)
            One row per group.
        """
        self.mixture.expect(x.shape[1])
        sets = group_sets(index, ptr, x.shape[0], dim_size)  # type: ignore[arg-type]
        if self.head is None:
            return match_dtype(self.mixture(x, sets), x)
        self.head.expect(self.mixture.out_channels)
        return self.head.finish(match_dtype(self.mixture.linear(x, sets, self.head.weight), x))

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, num_anchors={self.mixture.num_anchors}"
        return f"{type(self).__name__}({sizes}, heads={self.mixture.heads})"
