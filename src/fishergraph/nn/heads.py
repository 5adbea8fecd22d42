"""What makes the output of a layer from φ: the Nyström map with trained landmarks, linear and ReLU heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.inits import kaiming_uniform

from fishergraph import kernel_map
from fishergraph._component import Component
from fishergraph._errors import InputError
from fishergraph._validation import check_flag, check_integer, check_number, look_up
from fishergraph.em.kmeans import kmeans
from fishergraph.em.learn import sample_size
from fishergraph.kernel_map import Identity, Nystrom
from fishergraph.nn.channels import LazyChannels, allocating, check_size
from fishergraph.nn.charts import inverse_sqrt
from fishergraph.nn.inverse_root import inverse_root
from fishergraph.nn.rows import as_scipy, check_rows, is_sparse, row_norms, rows_times

# What head="nystrom" stands for in a layer.
_NYSTROM = Nystrom()


@dataclass(frozen=True, repr=False)
class LinearMap(Component):
    """The linear head of a layer, W φ + b.

    Parameters
    ----------
    bias : bool, default=True
        Whether there is a b.

    See Also
    --------
    FisherConv : Takes it as `head`.

    Examples
    --------
    >>> from fishergraph.nn import FisherConv, LinearMap
    >>> FisherConv(16, 8, head=LinearMap(bias=False)).head.bias is None
    True
    """

    bias: bool = True

    def check(self) -> None:
        """Raise unless `bias` is a bool."""
        check_flag(self.bias, "bias")


class NystromHead(LazyChannels):
    """Nyström map of the exponential kernel, with trained landmarks.

    ψ(x) = ‖x‖ κ(W x/‖x‖) κ(W Wᵀ)^{-1/2}.

    κ(u) = exp((u − 1)/σ²). The landmarks W are the unit vectors of the rows of `weight`, which is free: a forward pass
    writes nothing to it, and its gradient is orthogonal to the rows.

    Parameters
    ----------
    in_channels : int
        Number of features of x; -1 takes that of the first input.
    out_channels : int
        Number of landmarks.
    bandwidth : float, default=1.0
        The bandwidth σ of the kernel.

    See Also
    --------
    fishergraph.Nystrom : The map that estimators fit without labels.

    Notes
    -----
    Shapes:

    - **input:** x (row, in_channels), dense or a sparse CSR tensor
    - **output:** (row, out_channels)

    Examples
    --------
    >>> import torch
    >>> from fishergraph.nn import NystromHead
    >>> NystromHead(16, 8)(torch.randn(5, 16)).shape
    torch.Size([5, 8])
    """

    weight: nn.Parameter
    _held: Tensor | None = None  # the root, within `roots_at_once`

    def __init__(self, in_channels: int, out_channels: int, *, bandwidth: float = 1.0):
        super().__init__()
        self.out_channels = check_integer(out_channels, "out_channels", least=1)
        self.bandwidth = check_number(bandwidth, "bandwidth", least=0.01, most=1e6)
        self._hold("weight", (out_channels,), in_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw landmarks in random directions."""
        if self.in_channels > 0:
            nn.init.normal_(self.weight, std=self.in_channels**-0.5)

    @torch.no_grad()
    def init_from_data(self, sample: Tensor, rng: Any) -> None:
        """Set the landmarks to the centres of spherical k-means.

        Parameters
        ----------
        sample : Tensor of shape (n_rows, in_channels)
            Rows, dense or sparse CSR.
        rng : random stream
            See `fishergraph.ops.streams.random_stream`.
        """
        check_rows(sample)
        self.expect(sample.shape[1])
        rows: Any = sample
        if is_sparse(sample):  # k-means reads the sparse rows of SciPy
            rows, rng = as_scipy(sample), np.random.default_rng(int(rng.integers(2**31)))
        centres = kmeans(rows, self.out_channels, rng=rng, spherical=True, n_iter=4, what="landmarks")
        centres = torch.as_tensor(centres, dtype=self.weight.dtype, device=self.weight.device)
        # Fewer distinct directions than landmarks: the rest keep their random directions.
        self.weight[: len(centres)] = centres

    @property
    def landmarks(self) -> Tensor:
        """The rows of `weight` as unit vectors, (landmark, feature)."""
        return F.normalize(self.weight, dim=1)

    def root(self) -> Tensor:
        """Return κ(W Wᵀ)^{-1/2} of the landmarks, computed in float64.

        Returns
        -------
        Tensor of shape (out_channels, out_channels)
            The inverse root.
        """
        return _roots([self])[0] if self._held is None else self._held

    def gram(self) -> Tensor:
        """Return κ(W Wᵀ) of the landmarks, computed in float64.

        Returns
        -------
        Tensor of shape (out_channels, out_channels)
            The kernel of each landmark with each.
        """
        with torch.autocast(self.weight.device.type, enabled=False):
            exact = F.normalize(self.weight.double(), dim=1)
            gram = torch.exp((exact @ exact.T - 1) / self.bandwidth**2)
            return 0.5 * (gram + gram.T)

    def forward(self, x: Tensor, root: Tensor | None = None) -> Tensor:
        """Map every row.

        Parameters
        ----------
        x : Tensor of shape (n_rows, in_channels)
            Rows, dense or sparse CSR.
        root : Tensor, optional
            `root()`, if it is known from an earlier call with the same landmarks.

        Returns
        -------
        Tensor of shape (n_rows, out_channels)
            The map ψ of every row.
        """
        check_rows(x)
        self.expect(x.shape[1])
        products = rows_times(x, self.landmarks)
        norms = row_norms(x).to(products.dtype)
        root = self.root() if root is None else root
        return kernel_map.nystrom(products, norms, root.to(products.dtype), self.bandwidth)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, bandwidth={self.bandwidth:g}"


def _waits(device: torch.device) -> bool:
    """Whether the host would wait for eigenvalues of that device."""
    return device.type != "cpu"


def _roots(heads: list[NystromHead]) -> list[Tensor]:
    """The inverse roots of heads of one width: on a GPU by products, all of them at once."""
    device = heads[0].weight.device
    grams = [head.gram() for head in heads]
    with torch.autocast(device.type, enabled=False):
        roots = inverse_root(torch.stack(grams)) if _waits(device) else map(inverse_sqrt, grams)
        return [root.to(head.weight.dtype) for root, head in zip(roots, heads, strict=True)]


@contextmanager
def roots_at_once(modules: list[nn.Module | None]) -> Iterator[None]:
    """Within it the Nyström heads among these modules, of one width, know their roots."""
    heads = [module for module in modules if isinstance(module, NystromHead)]
    if len(heads) < 2 or not _waits(heads[0].weight.device) or any(head.in_channels < 0 for head in heads):
        yield
        return
    try:
        for head, root in zip(heads, _roots(heads), strict=True):
            head._held = root
        yield
    finally:
        for head in heads:
            head._held = None


def with_roots_at_once(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The forward pass of a network within `roots_at_once` of its input map and of the heads of its layers."""

    @wraps(forward)
    def run(self: Any, *args: Any, **options: Any) -> Tensor:
        if torch.compiler.is_compiling():
            return forward(self, *args, **options)
        with roots_at_once([self.input_map, *(conv.head for conv in self.convs)]):
            return forward(self, *args, **options)

    return run


class LinearHead(LazyChannels):
    """z = W φ + b; the operator that makes φ makes the product too."""

    weight: nn.Parameter

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True):
        super().__init__()
        self.out_channels = check_integer(out_channels, "out_channels", least=1)
        check_size((out_channels,))
        with allocating((out_channels,)):
            self.bias = nn.Parameter(torch.empty(out_channels)) if check_flag(bias, "bias") else None
        self._hold("weight", (out_channels,), in_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights with the spread of Glorot; the bias is zero."""
        if self.in_channels > 0:
            nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def finish(self, z: Tensor) -> Tensor:
        """What comes after the product."""
        return z if self.bias is None else z + self.bias.to(z.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """W x + b of rows that are not φ: the input map."""
        self.expect(x.shape[1])
        return self.finish(rows_times(x, self.weight))

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class Residual(LinearHead):
    """W x of the targets, with the random weights of `torch.nn.Linear`."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(in_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        if self.in_channels > 0:
            kaiming_uniform(self.weight, fan=self.in_channels, a=5**0.5)


class ReluHead(LinearHead):
    """ReLU(BatchNorm(W φ)), the paper's variant for large graphs."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(in_channels, out_channels, bias=False)
        with allocating((4, out_channels)):
            self.norm = nn.BatchNorm1d(out_channels)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if hasattr(self, "norm"):
            self.norm.reset_parameters()

    def finish(self, z: Tensor) -> Tensor:
        if self.training and z.shape[0] == 1:
            raise InputError(
                "head='relu' normalises over rows in training and needs at least 2 of them, got 1; pass more nodes, or "
                "call eval().",
                parameter="x",
            )
        return F.relu(self.norm(z.to(self.norm.weight.dtype)).to(z.dtype))


Head = NystromHead | LinearHead | ReluHead


def learn_landmarks(head: Any, take: Callable[[Tensor], Tensor], n_rows: int, most: int, rng: Any) -> None:
    """Set the landmarks of a Nyström head to centres of a sample of rows, which `take` returns by their numbers."""
    if isinstance(head, NystromHead):
        numbers = rng.permutation(n_rows)[: sample_size(head.out_channels, most, n_rows)].sort().values
        head.init_from_data(take(numbers), rng)


def choose_head(
    head: Any, *, nystrom: Nystrom = _NYSTROM, identity: bool = True
) -> str | LinearMap | Nystrom | Identity:
    """Return the head of that name, or the component itself; `nystrom` is what the name "nystrom" stands for."""
    names: dict[str, Any] = {"linear": LinearMap(), "relu": "relu", "nystrom": nystrom}
    names |= {"identity": Identity()} if identity else {}
    is_component = isinstance(head, (LinearMap, Nystrom)) or (identity and isinstance(head, Identity))
    return head if is_component else look_up(names, head, "head (or LinearMap(bias=…), Nystrom(bandwidth=…))")


def make_head(head: str | LinearMap | Nystrom | Identity, in_channels: int, out_channels: int) -> Head:
    """The module of a head that is not the identity."""
    if isinstance(head, Nystrom):
        return NystromHead(in_channels, out_channels, bandwidth=head.bandwidth)
    if isinstance(head, LinearMap):
        return LinearHead(in_channels, out_channels, bias=head.bias)
    return ReluHead(in_channels, out_channels)
