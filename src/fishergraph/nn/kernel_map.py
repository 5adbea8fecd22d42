"""ψ as modules: the Nyström map with trainable landmarks, and the linear and ReLU heads that take its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph import kernel_map
from fishergraph._validation import check_flag, check_integer, check_number
from fishergraph.em.kmeans import kmeans
from fishergraph.nn.lazy import LazyChannels, check_numbers
from fishergraph.nn.rows import as_scipy, is_sparse, row_norms, rows_times
from fishergraph.nn.spectral import inverse_sqrt


class NystromMap(LazyChannels):
    """ψ(x) = ‖x‖ κ(W x/‖x‖) κ(W Wᵀ)^{-1/2} with κ(u) = exp((u − 1)/σ²): the exponential kernel's map.

    The landmarks W are the unit vectors of the rows of `weight`, which is free: nothing is written to it in a forward
    pass, and its gradient is orthogonal to the rows.

    Shapes:
        - **input:** x (row, in_channels), dense or a sparse CSR tensor
        - **output:** (row, out_channels)
    """

    weight: nn.Parameter
    projection = None  # nothing linear comes first

    def __init__(self, in_channels: int, out_channels: int, *, bandwidth: float = 1.0):
        super().__init__()
        self.out_channels = check_integer(out_channels, "out_channels", least=1)
        self.bandwidth = check_number(bandwidth, "bandwidth", least=0.01, most=1e6)
        self.hold("weight", (out_channels,), in_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Landmarks in random directions."""
        if self.in_channels > 0:
            nn.init.normal_(self.weight, std=self.in_channels**-0.5)

    @torch.no_grad()
    def init_from_data(self, sample: Any, rng: Any) -> None:
        """Put the landmarks at the centres of spherical k-means of these rows."""
        self.expect(sample.shape[1])
        if is_sparse(sample):  # k-means knows the sparse rows of SciPy
            sample, rng = as_scipy(sample), np.random.default_rng(int(rng.integers(2**31)))
        found = kmeans(sample, self.out_channels, rng=rng, spherical=True, n_iter=4, what="landmarks")
        found = torch.as_tensor(found, dtype=self.weight.dtype, device=self.weight.device)
        # Fewer distinct directions than landmarks: the rest stay where they were drawn.
        self.weight[: len(found)] = found

    @property
    def landmarks(self) -> Tensor:
        """The rows of `weight` as unit vectors, (landmark, feature)."""
        return F.normalize(self.weight, dim=1)

    def root(self) -> Tensor:
        """κ(W Wᵀ)^{-1/2} of the landmarks, (landmark, landmark), found in float64."""
        with torch.autocast(self.weight.device.type, enabled=False):
            exact = F.normalize(self.weight.double(), dim=1)
            gram = torch.exp((exact @ exact.T - 1) / self.bandwidth**2)
            return inverse_sqrt(0.5 * (gram + gram.T)).to(self.weight.dtype)

    def forward(self, x: Tensor, root: Tensor | None = None) -> Tensor:
        """ψ of every row; `root` where it is known from an earlier call with the same landmarks."""
        self.expect(x.shape[1])
        products = rows_times(x, self.landmarks)
        norms = row_norms(x).to(products.dtype)
        root = self.root() if root is None else root
        return kernel_map.nystrom(products, norms, root.to(products.dtype), self.bandwidth)

    def finish(self, phi: Tensor) -> Tensor:
        """ψ of φ."""
        return self(phi)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, bandwidth={self.bandwidth:g}"


class LinearHead(LazyChannels):
    """z = W φ + b; the product is made by the operator that makes φ."""

    weight: nn.Parameter

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True):
        super().__init__()
        self.out_channels = check_integer(out_channels, "out_channels", least=1)
        check_numbers((out_channels,))
        self.bias = nn.Parameter(torch.empty(out_channels)) if check_flag(bias, "bias") else None
        self.hold("weight", (out_channels,), in_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights with the spread of Glorot, no bias."""
        if self.in_channels > 0:
            nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def projection(self) -> Tensor:
        """W, (out, feature)."""
        return self.weight

    def finish(self, z: Tensor) -> Tensor:
        """What comes after the product."""
        return z if self.bias is None else z + self.bias.to(z.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """W x + b of rows that are no φ: the input map."""
        self.expect(x.shape[1])
        return self.finish(rows_times(x, self.weight))

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class ReluHead(LinearHead):
    """ReLU(BatchNorm(W φ)), the paper's variant for large graphs."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(in_channels, out_channels, bias=False)
        self.norm = nn.BatchNorm1d(out_channels)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if hasattr(self, "norm"):
            self.norm.reset_parameters()

    def finish(self, z: Tensor) -> Tensor:
        if self.training and z.shape[0] == 1:
            raise ValueError(
                "head='relu' normalises over rows in training and takes at least 2 of them, got 1; pass more nodes, or "
                "call eval()."
            )
        return F.relu(self.norm(z))


HEADS = {"linear": LinearHead, "relu": ReluHead, "nystrom": NystromMap}
