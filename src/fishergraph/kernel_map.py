"""ψ: a finite map of the exponential dot-product kernel (`Nystrom`), or the identity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array

from fishergraph._component import Component, choose
from fishergraph._errors import FewPointsWarning
from fishergraph._parallel import map_blocks, progress_steps, row_blocks
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rng, Rows
from fishergraph._validation import check_number
from fishergraph._warn import each_warning_once
from fishergraph.em.kmeans import dense_rows, kmeans

# Eigenvalues of the landmarks' kernel matrix below this share of the largest are noise of float32 products.
_CUTOFF = 1e-6


def exponential_kernel(x: Array, y: Array, bandwidth: float = 1.0) -> Any:
    """k(x, y) = ‖x‖ ‖y‖ exp((⟨x/‖x‖, y/‖y‖⟩ − 1) / σ²), (row of x, row of y); zero where x or y is zero."""
    xp = array_namespace(x, y)
    x_norms, y_norms = row_norms(x), row_norms(y)
    cosines = (x / _one_if_zero(x_norms)) @ (y / _one_if_zero(y_norms)).T
    return x_norms * y_norms.T * xp.exp((cosines - 1) / bandwidth**2)


def inverse_sqrt(matrix: Array, *, shrinkage: float = 0.0, cutoff: float = _CUTOFF) -> Any:
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


def nystrom(products: Array, norms: Array, root: Array, bandwidth: float = 1.0) -> Any:
    """ψ(x) = ‖x‖ κ(W x/‖x‖) κ(W Wᵀ)^{-1/2} with κ(u) = exp((u − 1)/σ²), (row, landmark).

    `products` are W x (row, landmark) with unit landmarks W; `norms` are ‖x‖ (row, 1); `root` is the inverse square
    root. A zero vector maps to zero.
    """
    return _kernels(products, norms, bandwidth) @ root


def _kernels(products: Array, norms: Array, bandwidth: float) -> Any:
    """‖x‖ κ(W x/‖x‖): the kernel of each row with each landmark."""
    xp = array_namespace(products, norms)
    cosines = products / xp.where(norms > 0, norms, xp.ones_like(norms))
    return norms * xp.exp((cosines - 1) / bandwidth**2)


def row_norms(rows: Rows) -> Any:
    """‖x‖ of dense or CSR rows, (row, 1), with a gradient of zero where x is zero (an empty multiset), not NaN."""
    x: Any = rows
    if sp.issparse(x):
        return np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).reshape(-1, 1))
    xp = array_namespace(x)
    squares = xp.vecdot(x, x)[:, None]
    lengths = xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))
    return xp.where(squares > 0, lengths, xp.zeros_like(squares))


def _one_if_zero(norms: Array) -> Any:
    xp = array_namespace(norms)
    return xp.where(norms > 0, norms, xp.ones_like(norms))


class KernelMap(Protocol):
    """A fitted map of rows."""

    @property
    def n_inputs(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    def __call__(self, x: Rows, /) -> Any: ...


@dataclass(frozen=True)
class NystromMap:
    """The fitted Nyström map: unit landmarks (landmark, feature), their inverse root, the bandwidth."""

    landmarks: Array
    root: Array
    bandwidth: float

    __repr__ = short_repr

    @property
    def n_inputs(self) -> int:
        return self.landmarks.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.root.shape[1]

    def __call__(self, x: Rows, /) -> Any:
        """ψ of the rows of a dense or CSR block, or of a tensor."""
        return landmark_kernels(x, self.landmarks, self.bandwidth) @ self.root


def landmark_kernels(rows: Rows, landmarks: Array, bandwidth: float) -> Any:
    """The kernel of each row of a dense or CSR block with each landmark, (row, landmark)."""
    if is_torch_array(rows):
        # One read of the block; a product with itself would write another one.
        norms = array_namespace(rows).linalg.vector_norm(rows, axis=1, keepdims=True)
    else:
        norms = row_norms(rows).astype(landmarks.dtype) if sp.issparse(rows) else row_norms(rows)
    return _kernels(cast(Any, rows) @ landmarks.T, norms, bandwidth)


@dataclass(frozen=True)
class IdentityMap:
    """ψ(x) = x."""

    n_outputs: int

    @property
    def n_inputs(self) -> int:
        return self.n_outputs

    def __call__(self, x: Rows, /) -> Any:
        return dense_rows(x)


@dataclass(frozen=True)
class StandardMap:
    """ψ(x) = (x − centre) / scale, feature by feature: every one has mean 0 and variance 1 on what it was fitted to."""

    centre: Array
    scale: Array

    __repr__ = short_repr

    @property
    def n_inputs(self) -> int:
        return self.centre.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.centre.shape[0]

    def __call__(self, x: Rows, /) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # `check_standard` reports it
            return (dense_rows(x) - self.centre) / self.scale


def random_signs(n_rows: int, n_columns: int, like: Any, rng: Rng) -> Any:
    """A matrix (n_rows, n_columns) of random signs, of the dtype of `like`."""
    bits = rng.integers(2, size=n_rows * n_columns)
    xp = array_namespace(bits)
    signs = xp.astype(xp.reshape(bits, (n_rows, -1)), like.dtype)
    signs *= 2
    signs -= 1
    return signs


def _mean_power(sample: Rows, origin: Array, power: int) -> Any:
    """The mean over the rows of (x − origin)^power, in float64, by blocks of dense rows."""
    xp, points, total = array_namespace(origin), cast(Any, sample), cast(Any, 0)
    for rows in row_blocks(sample.shape[0], 4096):
        total = total + xp.sum((xp.astype(dense_rows(points[rows]), xp.float64) - origin) ** power, axis=0)
    return total / sample.shape[0]


def fit_standard(sample: Any) -> StandardMap:
    """The map that standardises the sample's features; one that does not vary is only centred."""
    xp = array_namespace(sample.data if sp.issparse(sample) else sample)
    first = xp.astype(dense_rows(sample[:1])[0], xp.float64)  # beside it a constant is zero to the last bit
    centre = first + _mean_power(sample, first, 1)
    scale = xp.sqrt(_mean_power(sample, centre, 2))
    # What rounding leaves of a constant is no scale, nor is what the type cannot hold.
    info = xp.finfo(sample.dtype)
    varies = scale > float(info.eps) * xp.abs(centre) + float(info.smallest_normal)
    scale = xp.where(varies, scale, xp.ones_like(scale))
    return StandardMap(xp.astype(centre, sample.dtype), xp.astype(scale, sample.dtype))


@dataclass(frozen=True, repr=False)
class Kernel(Component, ABC):
    """The base of the maps that estimators take as `kernel` and `input_map`."""

    learns: ClassVar[bool] = True  # whether the map depends on data
    maps_last: ClassVar[bool] = True  # whether the last layer of a stack is mapped too

    @abstractmethod
    def fit(self, sample: Rows, dim: int, *, rng: Rng, n_jobs: int | None = None) -> KernelMap:
        """Return the map with at most `dim` outputs, learned from the rows of a sample."""

    def fit_and_map(
        self, sample: Rows, dim: int, blocks: list[slice], *, rng: Rng, n_jobs: int | None = None
    ) -> tuple[KernelMap, Any]:
        """Return the map, and its values on these row blocks of the sample if they come cheaply, else None."""
        return self.fit(sample, dim, rng=rng, n_jobs=n_jobs), None

    def width(self, dim: int, n_features: int) -> int:
        """The most outputs of the map for rows of so many features."""
        return n_features

    @abstractmethod
    def accepts(self, kernel_map: KernelMap) -> bool:
        """Whether a fitted map is one of this kind."""


@dataclass(frozen=True, repr=False)
class Nystrom(Kernel):
    """Nyström map of the exponential dot-product kernel.

    ψ(x) = ‖x‖ κ(W x/‖x‖) κ(W Wᵀ)^{-1/2}.

    The landmarks W are found by spherical k-means.

    Parameters
    ----------
    bandwidth : float, default=1.5
        The bandwidth σ of κ(u) = exp((u − 1)/σ²).

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `kernel`.
    fishergraph.nn.NystromHead : The map with trained landmarks.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Nystrom
    >>> FisherEmbedding(kernel=Nystrom(bandwidth=1.0))
    FisherEmbedding(kernel=Nystrom(bandwidth=1.0))
    """

    bandwidth: float = 1.5

    shrinkage: ClassVar[float] = 0.0  # of the inverse root

    def check(self) -> None:
        """Raise unless every option is valid."""
        check_number(self.bandwidth, "bandwidth", least=0.01, most=1e6)

    def fit(self, sample: Rows, dim: int, *, rng: Rng, n_jobs: int | None = None) -> NystromMap:
        """Return the map with `dim` landmarks, found by spherical k-means on the sample's directions."""
        landmarks = find_landmarks(sample, dim, rng, n_jobs)
        return NystromMap(landmarks, self._root(landmarks), float(self.bandwidth))

    def _root(self, landmarks: Array) -> Any:
        """κ(W Wᵀ)^{-1/2} of the landmarks, found in float64."""
        xp = array_namespace(landmarks)
        # A GPU may round the factors of float32 products, and the root magnifies what that would leave.
        exact = xp.astype(landmarks, xp.float64) if is_torch_array(landmarks) else landmarks
        gram = xp.exp((xp.astype(exact @ exact.T, xp.float64) - 1) / self.bandwidth**2)
        return xp.astype(inverse_sqrt(gram, shrinkage=self.shrinkage), landmarks.dtype)

    def fit_and_map(
        self, sample: Rows, dim: int, blocks: list[slice], *, rng: Rng, n_jobs: int | None = None
    ) -> tuple[NystromMap, Any]:
        """Return the map and its values on the sample, with the bits of the map's own.

        One thread computes the root, a step that cannot be divided, while the others compare rows with landmarks.
        """
        if is_torch_array(sample):
            return self.fit(sample, dim, rng=rng, n_jobs=n_jobs), None
        landmarks = find_landmarks(sample, dim, rng, n_jobs)
        mapped = np.empty((sample.shape[0], len(landmarks)), landmarks.dtype)

        def compare(rows: slice | None) -> np.ndarray | None:
            if rows is None:
                return self._root(landmarks)
            mapped[rows] = landmark_kernels(sample[rows], landmarks, self.bandwidth)
            return None

        n, width = sample.shape
        advance = progress_steps(n * width * len(landmarks), len(blocks) + 1)
        root: Any = map_blocks(compare, [None, *blocks], n_jobs=n_jobs, advance=advance)[0]

        def finish(rows: slice) -> None:
            mapped[rows] = mapped[rows] @ root

        map_blocks(finish, blocks, n_jobs=n_jobs, advance=progress_steps(n * len(landmarks) ** 2, len(blocks)))
        return NystromMap(landmarks, root, float(self.bandwidth)), mapped

    def width(self, dim: int, n_features: int) -> int:
        """`dim`, whatever the rows have."""
        return dim

    def accepts(self, kernel_map: KernelMap) -> bool:
        """Whether a fitted map is a Nyström map."""
        return isinstance(kernel_map, NystromMap)


@dataclass(frozen=True, repr=False)
class Identity(Kernel):
    """φ itself: ψ(x) = x. The widths of stacked layers then grow by a factor p."""

    learns: ClassVar[bool] = False

    def fit(self, sample: Rows, dim: int, *, rng: Rng | None = None, n_jobs: int | None = None) -> IdentityMap:
        """Return the identity on the sample's features."""
        return IdentityMap(sample.shape[1])

    def accepts(self, kernel_map: KernelMap) -> bool:
        """Whether a fitted map is the identity."""
        return isinstance(kernel_map, IdentityMap)


@dataclass(frozen=True, repr=False)
class Standardize(Kernel):
    """Every feature with mean 0 and variance 1 on the data of the fit."""

    def fit(self, sample: Rows, dim: int, *, rng: Rng | None = None, n_jobs: int | None = None) -> StandardMap:
        """Return the map that standardises the sample's features."""
        return fit_standard(sample)

    def accepts(self, kernel_map: KernelMap) -> bool:
        """Whether a fitted map standardises."""
        return isinstance(kernel_map, StandardMap)


KERNELS: dict[str, Callable[[], Kernel]] = {"exp": Nystrom, "identity": Identity}
# The maps that members of sets can go through before a layer.
INPUT_MAPS: dict[str, Callable[[], Kernel]] = {**KERNELS, "standardize": Standardize}


def find_landmarks(sample: Rows, dim: int, rng: Rng, n_jobs: int | None) -> Any:
    """Landmarks of a sample; of fewer rows than landmarks every direction is one, which is worth no warning."""
    few = sample.shape[0] < dim
    with each_warning_once(silence=(FewPointsWarning,) if few else ()):
        return kmeans(sample, dim, rng=rng, spherical=True, n_jobs=n_jobs, what="landmarks")


def choose_kernel(
    kernel: str | Kernel, kinds: Mapping[str, Callable[[], Kernel]] = KERNELS, name: str = "kernel"
) -> Kernel:
    """Return the kernel of that name, or the component itself."""
    return choose(kinds, kernel, Kernel, name, example="Nystrom(bandwidth=1.0)")
