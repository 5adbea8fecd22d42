"""ψ as modules: the Nyström map with trainable landmarks, and the linear and ReLU heads that take its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph import kernel_map
from fishergraph._checks import check_integer, check_number
from fishergraph.em.kmeans import kmeans
from fishergraph.nn.lazy import LazyChannels
from fishergraph.nn.rows import as_scipy, is_sparse, row_norms, rows_times
from fishergraph.ops.torch_ops import once_only

# As in `kernel_map`: smaller eigenvalues are noise of the products.
_CUTOFF = 1e-6


@torch.library.custom_op("fishergraph::inverse_sqrt", mutates_args=())
def _inverse_sqrt(matrix: Tensor, cutoff: float) -> tuple[Tensor, Tensor, Tensor]:
    """A^{-1/2} on the span of the eigenvalues above cutoff · λ_max, and the eigenvalues and vectors of A."""
    values, vectors = torch.linalg.eigh(matrix)
    half = vectors * torch.where(values > cutoff * values[-1], values, torch.inf) ** -0.25
    return half @ half.T, values, vectors.contiguous()


@_inverse_sqrt.register_fake
def _(matrix, cutoff):
    return torch.empty_like(matrix), matrix.new_empty(matrix.shape[0]), torch.empty_like(matrix)


@torch.library.custom_op("fishergraph::inverse_sqrt_backward", mutates_args=())
def _inverse_sqrt_backward(grad: Tensor, values: Tensor, vectors: Tensor, cutoff: float) -> Tensor:
    """∂L/∂A = V (D ∘ Vᵀ G V) Vᵀ, where D holds the divided differences of f(λ) = λ^{-1/2}, cut off.

    −1 / (√λ_i √λ_j (√λ_i + √λ_j)) for two eigenvalues that are kept has no λ_i − λ_j in it: equal ones do no harm. One
    that is kept and one that is cut give f(λ_i) / (λ_i − λ_j); two that are cut give zero.
    """
    kept = values > cutoff * values[-1]
    roots = torch.where(kept, values, 1.0).sqrt()
    both = -1 / (roots[:, None] * roots * (roots[:, None] + roots))
    apart = torch.where(kept[:, None] ^ kept, values[:, None] - values, 1.0)
    one = torch.where(kept, 1 / roots, 0.0)
    mixed = (one[:, None] - one) / apart
    differences = torch.where(kept[:, None] & kept, both, torch.where(kept[:, None] ^ kept, mixed, 0.0))
    inner = vectors.T @ (0.5 * (grad + grad.T)) @ vectors
    return vectors @ (differences * inner) @ vectors.T


@_inverse_sqrt_backward.register_fake
def _(grad, values, vectors, cutoff):
    return torch.empty_like(grad)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.cutoff = inputs[1]
    ctx.save_for_backward(output[1], output[2])
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, grad: Tensor | None, *_: Any):
    if grad is None:
        return None, None
    return torch.ops.fishergraph.inverse_sqrt_backward(grad.contiguous(), *ctx.saved_tensors, ctx.cutoff), None


_inverse_sqrt.register_autograd(_gradient, setup_context=_save)
_inverse_sqrt_backward.register_autograd(once_only("the inverse root"), setup_context=lambda ctx, inputs, output: None)


def inverse_sqrt(matrix: Tensor, cutoff: float = _CUTOFF) -> Tensor:
    """A^{-1/2} of a symmetric positive semidefinite matrix, differentiable, also where eigenvalues coincide."""
    return torch.ops.fishergraph.inverse_sqrt(matrix, cutoff)[0]


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
        self.bandwidth = check_number(bandwidth, "bandwidth", least=1e-6, most=1e6)
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
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
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
        return F.relu(self.norm(z))


HEADS = {"linear": LinearHead, "relu": ReluHead, "nystrom": NystromMap}
