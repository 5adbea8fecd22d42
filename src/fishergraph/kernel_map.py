"""Room 5: ψ, a finite map of the exponential dot-product kernel (Nyström), or the identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array

from fishergraph._parallel import map_blocks, progress_steps, row_blocks
from fishergraph._repr import short_repr
from fishergraph.em.kmeans import kmeans

# Eigenvalues of the landmarks' kernel matrix below this share of the largest are noise of float32 products.
_CUTOFF = 1e-6


def exponential_kernel(x: Any, y: Any, bandwidth: float = 1.0) -> Any:
    """k(x, y) = ‖x‖ ‖y‖ exp((⟨x/‖x‖, y/‖y‖⟩ − 1) / σ²), (row of x, row of y); zero where x or y is zero."""
    xp = array_namespace(x, y)
    x_norms, y_norms = row_norms(x), row_norms(y)
    cosines = (x / _one_where_zero(x_norms, xp)) @ (y / _one_where_zero(y_norms, xp)).T
    return x_norms * y_norms.T * xp.exp((cosines - 1) / bandwidth**2)


def inverse_sqrt(matrix: Any, *, shrinkage: float = 0.0, cutoff: float = _CUTOFF) -> Any:
    """A^{-1/2} of a symmetric positive semidefinite matrix, on the span of its eigenvalues above cutoff · λ_max.

    With a shrinkage s every eigenvalue λ gives 1 / (√λ + s) instead: the rule of the authors' code.
    """
    xp = array_namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    if shrinkage > 0:
        scale = 1 / (xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values))) + shrinkage)
    else:
        kept = values > cutoff * values[-1]
        scale = xp.where(kept, 1 / xp.sqrt(xp.where(kept, values, xp.ones_like(values))), xp.zeros_like(values))
    half = vectors * xp.sqrt(scale)
    return half @ half.T  # symmetric to the last bit, and half the work


def nystrom(products: Any, norms: Any, root: Any, bandwidth: float = 1.0) -> Any:
    """ψ(x) = ‖x‖ κ(W x/‖x‖) κ(W Wᵀ)^{-1/2} with κ(u) = exp((u − 1)/σ²), (row, landmark).

    `products` are W x (row, landmark) with unit landmarks W; `norms` are ‖x‖ (row, 1); `root` is the inverse square
    root. A zero vector maps to zero.
    """
    return _kernels(products, norms, bandwidth) @ root


def _kernels(products: Any, norms: Any, bandwidth: float) -> Any:
    """‖x‖ κ(W x/‖x‖): the kernel of each row with each landmark."""
    xp = array_namespace(products, norms)
    cosines = products / _one_where_zero(norms, xp)
    return norms * xp.exp((cosines - 1) / bandwidth**2)


def row_norms(x: Any) -> Any:
    """‖x‖, (row, 1), with a gradient of zero where x is zero (an empty multiset), not NaN."""
    xp = array_namespace(x)
    squares = xp.vecdot(x, x)[:, None]
    return xp.where(squares > 0, xp.sqrt(_one_where_zero(squares, xp)), xp.zeros_like(squares))


def _one_where_zero(norms: Any, xp: Any) -> Any:
    return xp.where(norms > 0, norms, xp.ones_like(norms))


class KernelMap(Protocol):
    """What a layer asks of ψ: a map of rows, and their width."""

    @property
    def n_outputs(self) -> int: ...

    def __call__(self, x: Any) -> Any: ...

    def moved(self, move: Callable[[Any], Any]) -> KernelMap: ...


@dataclass(frozen=True)
class NystromMap:
    """The fitted Nyström map: unit landmarks (landmark, feature), their inverse root, the bandwidth."""

    landmarks: Any
    root: Any
    bandwidth: float

    __repr__ = short_repr

    @property
    def n_outputs(self) -> int:
        return self.root.shape[1]

    def __call__(self, x: Any) -> Any:
        """ψ of the rows of a dense or CSR block, or of a tensor."""
        return _landmark_kernels(x, self.landmarks, self.bandwidth) @ self.root

    def moved(self, move: Callable[[Any], Any]) -> NystromMap:
        """The map with its arrays somewhere else."""
        return NystromMap(move(self.landmarks), move(self.root), self.bandwidth)


def _landmark_kernels(x: Any, landmarks: Any, bandwidth: float) -> Any:
    """The kernel of each row of a block with each landmark, (row, landmark)."""
    if sp.issparse(x):
        squares = np.asarray(x.multiply(x).sum(axis=1)).reshape(-1, 1)
        norms = np.sqrt(squares).astype(landmarks.dtype)
    elif is_torch_array(x):
        # One read of the block; a product with itself would write another one.
        norms = array_namespace(x).linalg.vector_norm(x, axis=1, keepdims=True)
    else:
        norms = row_norms(x)
    return _kernels(x @ landmarks.T, norms, bandwidth)


@dataclass(frozen=True)
class IdentityMap:
    """ψ(x) = x."""

    n_outputs: int

    def __call__(self, x: Any) -> Any:
        return x.toarray() if sp.issparse(x) else x

    def moved(self, move: Callable[[Any], Any]) -> IdentityMap:
        """Itself: it holds no array."""
        return self


@dataclass(frozen=True)
class StandardMap:
    """ψ(x) = (x − centre) / scale, feature by feature: every one has mean 0 and variance 1 on what it was fitted to."""

    centre: Any
    scale: Any

    __repr__ = short_repr

    @property
    def n_outputs(self) -> int:
        return self.centre.shape[0]

    def __call__(self, x: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # `check_standard` tells it
            return ((x.toarray() if sp.issparse(x) else x) - self.centre) / self.scale

    def moved(self, move: Callable[[Any], Any]) -> StandardMap:
        """The map with its arrays somewhere else."""
        return StandardMap(move(self.centre), move(self.scale))


@dataclass(frozen=True)
class ProjectionMap:
    """ψ(x) = V x with orthonormal rows V, (direction, feature)."""

    directions: Any

    __repr__ = short_repr

    @property
    def n_outputs(self) -> int:
        return self.directions.shape[0]

    def __call__(self, x: Any) -> Any:
        return x @ self.directions.T

    def moved(self, move: Callable[[Any], Any]) -> ProjectionMap:
        """The map with its directions somewhere else."""
        return ProjectionMap(move(self.directions))


def fit_projection(sample: Any, n_directions: int, rng: Any) -> ProjectionMap:
    """The map to about the leading principal directions of the sample; fewer where it has fewer, or fewer rows.

    The directions span Xᵀ Q with Q a randomised range of (X Xᵀ)², found on the side of the rows: a sample has few, and
    features may be many.
    """
    n_rows = sample.shape[0]
    bits = rng.integers(2, size=n_rows * min(n_directions, n_rows))
    xp = array_namespace(bits)
    rows = xp.astype(xp.reshape(bits, (n_rows, -1)), sample.dtype)
    rows *= 2
    rows -= 1
    for _ in range(2):
        rows = xp.linalg.qr(sample @ (sample.T @ rows))[0]
    span = sample.T @ rows  # (feature, direction)
    values, vectors = xp.linalg.eigh(xp.astype(span.T @ span, xp.float64))
    kept = values > 16 * float(xp.finfo(sample.dtype).eps) * values[-1]
    whiten = vectors[:, kept] / xp.sqrt(values[kept])
    return ProjectionMap(xp.astype(whiten, sample.dtype).T @ span.T)


def fit_nystrom(
    sample: Any,
    dim: int,
    *,
    bandwidth: float = 1.0,
    rng: Any,
    n_iter: int = 4,
    n_jobs: int | None = None,
    shrinkage: float = 0.0,
) -> NystromMap:
    """The Nyström map with `dim` landmarks, found by spherical k-means on the sample's directions."""
    landmarks = kmeans(sample, dim, rng=rng, spherical=True, n_iter=n_iter, n_jobs=n_jobs, what="landmarks")
    return NystromMap(landmarks, _landmark_root(landmarks, bandwidth, shrinkage), bandwidth)


def _landmark_root(landmarks: Any, bandwidth: float, shrinkage: float) -> Any:
    """κ(W Wᵀ)^{-1/2} of the landmarks, found in float64."""
    xp = array_namespace(landmarks)
    # A card may round the factors of float32 products, and the root magnifies what that would leave.
    exact = xp.astype(landmarks, xp.float64) if is_torch_array(landmarks) else landmarks
    gram = xp.exp((xp.astype(exact @ exact.T, xp.float64) - 1) / bandwidth**2)
    return xp.astype(inverse_sqrt(gram, shrinkage=shrinkage), landmarks.dtype)


def fit_identity(sample: Any, dim: int, **_: Any) -> IdentityMap:
    """The identity on the sample's features."""
    return IdentityMap(sample.shape[1])


def fit_standard(sample: Any, dim: int, **_: Any) -> StandardMap:
    """The map that standardises the sample's features; one that does not vary is only centred."""
    xp, n_rows = array_namespace(sample.data if sp.issparse(sample) else sample), sample.shape[0]

    def wide(rows: slice) -> Any:
        """Rows in float64, dense."""
        return xp.astype(sample[rows].toarray() if sp.issparse(sample) else sample[rows], xp.float64)

    def mean(function: Callable[[Any], Any]) -> Any:
        """The mean over the rows of a function of them, by blocks."""
        return sum(xp.sum(function(wide(rows)), axis=0) for rows in row_blocks(n_rows, 4096)) / n_rows

    first = wide(slice(0, 1))[0]  # beside it a constant is zero to the last bit
    centre = first + mean(lambda block: block - first)
    scale = xp.sqrt(mean(lambda block: (block - centre) ** 2))
    # What rounding leaves of a constant is no scale, nor is what the type cannot hold.
    info = xp.finfo(sample.dtype)
    varies = scale > float(info.eps) * xp.abs(centre) + float(info.smallest_normal)
    scale = xp.where(varies, scale, xp.ones_like(scale))
    return StandardMap(xp.astype(centre, sample.dtype), xp.astype(scale, sample.dtype))


def fit_and_map(
    fit: Callable[..., KernelMap], sample: Any, dim: int, blocks: list[slice] | None, **given: Any
) -> tuple[KernelMap, Any]:
    """What `fit` gives, and ψ of the sample in these row blocks where it comes at less than the map's own price, else
    None; without blocks it is not wanted."""
    if blocks is None or fit is not fit_nystrom or is_torch_array(sample):
        return fit(sample, dim, **given), None
    return _nystrom_and_values(sample, dim, blocks, **given)


def _nystrom_and_values(
    sample: Any, dim: int, blocks: list[slice], *, bandwidth: float, rng: Any, n_jobs: int | None, shrinkage: float
) -> tuple[NystromMap, np.ndarray]:
    """`fit_nystrom`, and ψ of the sample with the bits of the map's own.

    One thread finds the root, which is a step that cannot be shared, while the others compare rows with landmarks.
    """
    landmarks = kmeans(sample, dim, rng=rng, spherical=True, n_jobs=n_jobs, what="landmarks")
    mapped = np.empty((sample.shape[0], len(landmarks)), landmarks.dtype)

    def compare(rows: slice | None) -> np.ndarray | None:
        if rows is None:
            return _landmark_root(landmarks, bandwidth, shrinkage)
        mapped[rows] = _landmark_kernels(sample[rows], landmarks, bandwidth)
        return None

    n, width = sample.shape
    advance = progress_steps(n * width * len(landmarks), len(blocks) + 1)
    root = map_blocks(compare, [None, *blocks], n_jobs=n_jobs, advance=advance)[0]
    found = NystromMap(landmarks, root, bandwidth)

    def finish(rows: slice) -> None:
        mapped[rows] = mapped[rows] @ found.root

    map_blocks(finish, blocks, n_jobs=n_jobs, advance=progress_steps(n * len(landmarks) ** 2, len(blocks)))
    return found, mapped


KERNELS: dict[str, Callable[..., KernelMap]] = {"exp": fit_nystrom, "identity": fit_identity}
# What points may go through before a layer sees them.
INPUT_MAPS: dict[str, Callable[..., KernelMap]] = {**KERNELS, "standardize": fit_standard}
