"""How much work the parts of an embedding are, in multiplications, roughly: what progress bars are divided by."""

from __future__ import annotations

from typing import Any, NamedTuple

import scipy.sparse as sp

from fishergraph._parallel import SPARSE
from fishergraph.em.anchors import sample_size
from fishergraph.kernel_map import Identity
from fishergraph.layer import Layer

# The cost of a kernel beside its products: an exponential, a division, and their memory.
KERNEL = 256
_SPARSE_ROW = 1024  # a sparse row is sliced, measured and divided by its length
_KMEANS, _ANCHOR_STEPS, _EM_STEPS = 4, 5, 21  # iterations of landmarks, of anchors, of other families
# Writing one number to a file, in multiplications.
_WRITING = {".npz": 50, ".parquet": 500}
_WRITING_TEXT = 2000


class Size(NamedTuple):
    """The numbers of multisets, of their members, and of the points side by side in a member."""

    n_sets: int
    n_entries: int
    slots: int = 1


def size_of(sets: Any) -> Size:
    """The numbers of some multisets."""
    return Size(sets.n_sets, sets.n_entries, sets.slots)


def layer_learning(layer: Layer, size: Size, width: int) -> float:
    """The cost of `Layer.fit`: anchors, φ of a sample, landmarks of it, and ψ if the sample is all rows."""
    lifted = width * size.slots
    members = sample_size(layer.n_anchors, layer.em.max_samples, size.n_entries)
    cost = float(_ANCHOR_STEPS * members * lifted * layer.n_anchors)
    if not layer.family.fused:
        cost += 2 * _EM_STEPS * members * layer.family.n_statistics(lifted) * layer.n_anchors
    if isinstance(layer.kernel, Identity):
        return cost
    rows = sample_size(layer.dim, layer.em.max_samples, size.n_sets)
    cost += SPARSE * size.n_entries * rows / max(size.n_sets, 1) * lifted * layer.n_anchors
    width_of_phi = layer.family.width(layer.n_anchors, lifted)
    return cost + map_learning(size.n_sets, width_of_phi, layer.dim, layer.em.max_samples)


def input_learning(layer: Layer, X: Any) -> float:
    """The cost of learning ψ_0."""
    return map_learning(X.shape[0], X.shape[1], layer.dim, layer.em.max_samples)


def map_learning(n_rows: int, width: float, dim: int, max_samples: int) -> float:
    """The cost of a kernel map learned from rows of that width, and its values if the sample is all rows."""
    rows = sample_size(dim, max_samples, n_rows)
    return rows * dim * (_KMEANS * width + (rows == n_rows) * (width + dim))


def layer_running(layer: Layer, size: Size, width: int) -> float:
    """The cost of `Layer.run`: φ of every set, and ψ of it, unless they are known from learning."""
    lifted, learned = width * size.slots, sample_size(layer.dim, layer.em.max_samples, size.n_sets) == size.n_sets
    is_identity = isinstance(layer.kernel, Identity)
    if learned and not is_identity:
        return float(size.n_sets * layer.dim * KERNEL)
    mapped = 0 if is_identity else layer.family.width(layer.n_anchors, lifted) + layer.dim + KERNEL
    return float(SPARSE * size.n_entries * lifted * layer.n_anchors + size.n_sets * layer.dim * mapped)


def row_width(X: Any) -> float:
    """The cost of a row of X in a product: its features, or the stored ones of a sparse row."""
    return _SPARSE_ROW + SPARSE * X.nnz / max(X.shape[0], 1) if sp.issparse(X) else X.shape[1]


def network_learning(shape: tuple[int, ...], dim: int, n_layers: int, n_anchors: int) -> float:
    """The cost of the landmarks that a network of such layers starts from, over rows of that shape."""
    rows = sample_size(dim, shape[0], shape[0])
    return float(_KMEANS * rows * dim * (shape[1] + n_layers * n_anchors * dim))


def writing_cost(suffix: str, n_numbers: int) -> float:
    """The cost of writing so many numbers to a file of that kind."""
    return float(n_numbers * _WRITING.get(suffix, _WRITING_TEXT))
