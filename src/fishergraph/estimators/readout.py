"""A layer over given points whose sets are not the points' own: bags of vectors, graphs as multisets of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from fishergraph._arrays import check_within
from fishergraph.estimators.costs import layer_learning, size_of
from fishergraph.estimators.progress import costing
from fishergraph.estimators.stack_spec import StackSpec
from fishergraph.layer import Known, Layer, fit_layer, phi_blocks, run_layer


def check_standard(spec: StackSpec, points: Any, name_row: Callable[[int], str]) -> None:
    """Raise where standardised points leave the range of the layers: fit has seen numbers of another size."""
    squares = not spec.normalize and spec.layer.family.n_statistics(2) > 2
    digits = 140 if array_namespace(points).finfo(points.dtype).bits == 64 else 14
    bound = 10.0 ** (digits // 2 if squares else digits)
    check_within(points, "features, standardised as in fit,", bound, name_row=name_row)


def fit_readout(
    spec: StackSpec, points: Any, sets: Any, rng: Any, *, dtype: Any, title: str = "sets", want_output: bool = True
) -> tuple[Layer, Any]:
    """The layer learned from the points and the sets over them, and its output, (set, ψ) (None when not wanted)."""
    cost = layer_learning(spec.layer, size_of(sets), points.shape[1])
    with costing(spec.progress, f"learning {title}", cost):
        layer, known = fit_layer(spec.layer, points, sets, last=True, rng=rng, n_jobs=spec.n_jobs)
    return layer, _output(spec, layer, points, sets, known, dtype, title) if want_output else None


def run_readout(spec: StackSpec, layer: Layer, points: Any, sets: Any, *, dtype: Any, title: str = "sets") -> Any:
    """ψ(φ) of every set by a fitted layer, (set, ψ)."""
    return _output(spec, layer, points, sets, Known(), dtype, title)


def _output(spec: StackSpec, layer: Layer, points: Any, sets: Any, known: Known, dtype: Any, title: str) -> Any:
    """ψ(φ) of every set, filled block by block."""
    output = spec.place.empty_output((sets.n_sets, layer.kernel_map.n_outputs), dtype)

    def write(rows: slice, block: Any) -> None:
        output[rows] = block

    with spec.progress(title, len(phi_blocks(spec.layer, sets, points.shape[1]))) as bar:
        run_layer(spec.layer, layer, points, sets, write, known=known, n_jobs=spec.n_jobs, advance=bar.update)
    return spec.place.result(output)
