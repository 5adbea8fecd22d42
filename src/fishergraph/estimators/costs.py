"""How much work the parts of an embedding are, in multiplications, roughly: what progress bars are cut by."""

from __future__ import annotations

from typing import Any, NamedTuple

import scipy.sparse as sp

from fishergraph._parallel import SPARSE
from fishergraph.em.anchors import sample_size
from fishergraph.em.walks import TILE, walk_passes
from fishergraph.estimators.stack_spec import StackSpec, asked_widths
from fishergraph.family import GaussianMixture
from fishergraph.layer import LayerSpec

# What a kernel costs beside its products: an exponential, a division, and the memory they go through.
_KERNEL = 256
_SPARSE_ROW = 1024  # a sparse row is cut out, measured and divided by its length
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


def layer_learning(layer: LayerSpec, size: Size, width: int) -> float:
    """The cost of `fit_layer`: anchors, φ of a sample, landmarks of it, and where the sample is all ψ."""
    lifted = width * size.slots
    members = sample_size(layer.n_anchors, layer.max_samples, size.n_entries)
    cost = float(_ANCHOR_STEPS * members * lifted * layer.n_anchors)
    if not isinstance(layer.family, GaussianMixture):
        cost += 2 * _EM_STEPS * members * layer.family.n_statistics(lifted) * layer.n_anchors
    if layer.keeps_phi:
        return cost
    rows = sample_size(layer.dim, layer.max_samples, size.n_sets)
    cost += SPARSE * size.n_entries * rows / max(size.n_sets, 1) * lifted * layer.n_anchors
    return cost + _map_learning(rows, layer.family.width(layer.n_anchors, lifted), layer.dim, rows == size.n_sets)


def input_learning(spec: StackSpec, X: Any) -> float:
    """The cost of `fit_input_map`."""
    rows = sample_size(spec.layer.dim, spec.layer.max_samples, X.shape[0])
    return _map_learning(rows, X.shape[1], spec.layer.dim, rows == X.shape[0])


def _map_learning(n_rows: int, width: float, dim: int, maps: bool) -> float:
    return n_rows * dim * (_KMEANS * width + maps * (width + dim))


def _layer_running(layer: LayerSpec, size: Size, width: int) -> float:
    """The cost of `run_layer`: φ of every set, and ψ of it, unless they are known from learning."""
    lifted, known = width * size.slots, sample_size(layer.dim, layer.max_samples, size.n_sets) == size.n_sets
    if known and not layer.keeps_phi:
        return float(size.n_sets * layer.dim * _KERNEL)
    mapped = 0 if layer.keeps_phi else layer.family.width(layer.n_anchors, lifted) + layer.dim + _KERNEL
    return float(SPARSE * size.n_entries * lifted * layer.n_anchors + size.n_sets * layer.dim * mapped)


def _row_width(X: Any) -> float:
    """What a row of X costs in a product: its features, or the stored ones of a sparse row."""
    return _SPARSE_ROW + SPARSE * X.nnz / max(X.shape[0], 1) if sp.issparse(X) else X.shape[1]


def embedding_costs(spec: StackSpec, X: Any, size: Size, *, fitting: bool) -> dict[str, float]:
    """The cost of every part that `fit_stack` or `run_stack` reports, by its title, in order."""
    (n_rows, n_features), dim = X.shape, spec.layer.dim
    costs = {"learning input map": input_learning(spec, X)} if fitting else {}
    costs["input map"] = n_rows * dim * (_row_width(X) + dim + _KERNEL)
    widths = asked_widths(spec, 0, spec.input_width(n_features), size.slots)
    if spec.teleport is not None:
        widths[0] = spec.walk_width(n_features)
        costs["walking"] = SPARSE * walk_passes(widths[0], spec.teleport) * size.n_entries * min(TILE, widths[0])
    elif spec.reads_counts:
        widths[0] = n_features
    for t in range(1, spec.n_layers + 1):
        layer, members = spec.layer_at(t), Size(n_rows, n_rows) if spec.walks and t == 1 else size
        if fitting:
            costs[f"learning {spec.title(t)}"] = layer_learning(layer, members, widths[t - 1])
        costs[spec.title(t)] = _layer_running(layer, members, widths[t - 1])
    return costs


def network_learning(shape: tuple[int, ...], dim: int, n_layers: int, n_anchors: int) -> float:
    """The cost of the landmarks that a network of such layers starts from, over rows of that shape."""
    rows = sample_size(dim, shape[0], shape[0])
    return float(_KMEANS * rows * dim * (shape[1] + n_layers * n_anchors * dim))


def writing_cost(suffix: str, n_numbers: int) -> float:
    """The cost of writing so many numbers to a file of that kind."""
    return float(n_numbers * _WRITING.get(suffix, _WRITING_TEXT))
