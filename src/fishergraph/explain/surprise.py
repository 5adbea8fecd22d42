"""How odd a neighbourhood is: n_v ‖φ_v‖² beside the same neighbourhood with the features of random nodes.

φ is a whitened score. If the members were an ordinary sample of the graph, n_v ‖φ_v‖² would say how far the sample is
from its distribution, n_v the effective size. Members are not independent and θ_0 is no maximum, so the null
distribution is that of the same multisets with features permuted over the nodes, and no χ² table is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph._listing import Listed, Listing
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._progress import Progress
from fishergraph._records import changed, unchecked
from fishergraph._typing import Sets
from fishergraph.em.unit import NOISE
from fishergraph.explain.binding import Binding
from fishergraph.explain.pvalues import TAILS, NullCounts, adjusted, weight_groups
from fishergraph.layer import Layer, Run
from fishergraph.multiset import Multisets
from fishergraph.multiset.split import split_sets
from fishergraph.ops.engine import array_engine

_AT_ONCE = 16  # permutations whose scores are held
_LEVEL = 0.05  # of the nodes that a summary counts


def scores(layer: Layer, points: np.ndarray, sets: Sets, run: Run) -> Callable[[Sets], np.ndarray]:
    """Multisets over the points → n_v ‖φ_v‖² of each, (set,), float64; soft counts do not enter."""
    layer = replace(layer, reading="means")
    scored, noise = layer.score(points, sets, run), NOISE * float(np.finfo(points.dtype).eps)
    alone = Run(n_jobs=1)

    def score(over: Sets) -> np.ndarray:
        squares, blocks = np.empty(over.n_sets), layer.over_scored(points, scored, over, alone)
        for rows in blocks.rows:
            phi = np.asarray(blocks.phi(rows))
            phi[np.abs(phi).max(axis=1, initial=0.0) <= noise] = 0  # what rounding leaves of a zero
            squares[rows] = np.einsum("vk,vk->v", phi, phi, dtype=np.float64)
        return effective_sizes(over) * squares

    return score


def effective_sizes(sets: Any) -> np.ndarray:
    """n_v = (Σ_u a_vu)² / Σ_u a_vu², (set,); 0 if the multiset is empty."""
    start, stop = int(sets.indptr[0]), int(sets.indptr[-1])
    if sets.weights is None:
        return np.diff(sets.indptr).astype(np.float64)
    weights, rows = sets.weights[start:stop].astype(np.float64), np.repeat(np.arange(sets.n_sets), np.diff(sets.indptr))
    total, squares = (np.bincount(rows, weights**power, sets.n_sets) for power in (1, 2))
    return np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)


def with_permuted_points(sets: Any, order: np.ndarray) -> Any:
    """The same multisets with point order[u] in the place of point u."""
    if sets.lifted:
        empty = sets.subgraphs < 0
        return changed(sets, subgraphs=np.where(empty, sets.subgraphs, order[np.where(empty, 0, sets.subgraphs)]))
    parts = sets.apart()
    order = order.astype(parts.indices.dtype)
    return split_sets(
        unchecked(Multisets, parts.indptr, order[parts.indices], parts.weights, parts.n_points), sets.kinds
    )


def permuted_scores(
    score: Callable[[Sets], np.ndarray],
    sets: Any,
    null: NullCounts,
    *,
    n_permutations: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Count the scores of permutations, each of a random stream of its own, in their order."""
    streams = np.random.SeedSequence(seed).spawn(n_permutations)

    def one(k: int) -> np.ndarray:
        return score(with_permuted_points(sets, np.random.default_rng(streams[k]).permutation(sets.n_points)))

    with progress("permutations", n_permutations) as bar:
        for chunk in row_blocks(n_permutations, _AT_ONCE):
            for values in map_blocks(one, range(chunk.start, chunk.stop), n_jobs=n_jobs, advance=bar.update):
                null.add(values)


@dataclass(frozen=True, eq=False, repr=False)
class NeighbourhoodScores(Listed):
    """How far the neighbourhoods of nodes are from an ordinary sample of the graph.

    Parameters
    ----------
    nodes : array of shape (n_nodes,)
        The ids.
    rows : array of shape (n_nodes,)
        Their rows.
    scores : array of shape (n_nodes,)
        The scores n_v ‖φ_v‖².
    expected : array of shape (n_nodes,)
        The mean score of the same multiset with the features of random nodes.
    z : array of shape (n_nodes,)
        The score less the expected one, in standard deviations of the permuted scores.
    p_values : array of shape (n_nodes,)
        The chance of a score at least as large.
    q_values : array of shape (n_nodes,)
        The p-values adjusted for the number of nodes, after Benjamini and Hochberg.
    effective_sizes : array of shape (n_nodes,)
        The sizes n_v = (Σ_u a_vu)² / Σ_u a_vu².
    n_null : array of shape (n_nodes,)
        The number of permuted scores that a node is compared with; 1 / (1 + n_null) is the smallest p-value by counts.
    n_permutations : int
        The number of permutations.

    See Also
    --------
    Explainer.neighbourhood_scores : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=ring)
    >>> Explainer(model, X, graph=ring).neighbourhood_scores(n_permutations=9)
    NeighbourhoodScores(4 nodes, 9 permutations: 0 with q ≤ 0.05)
    """

    nodes: np.ndarray
    rows: np.ndarray
    scores: np.ndarray
    expected: np.ndarray
    z: np.ndarray
    p_values: np.ndarray
    q_values: np.ndarray
    effective_sizes: np.ndarray
    n_null: np.ndarray
    n_permutations: int

    def __repr__(self) -> str:
        odd = np.count_nonzero(self.q_values <= _LEVEL)
        size = f"{len(self.nodes):,} nodes, {self.n_permutations} permutations"
        return f"NeighbourhoodScores({size}: {odd:,} with q ≤ {_LEVEL})"

    def listing(self) -> Listing:
        """Return a row per node, the oddest first.

        Returns
        -------
        Listing
            ``node, row, effective_size, score, expected, z, p_value, q_value``.
        """
        order = np.lexsort((-self.z, self.p_values))
        columns = {
            "node": self.nodes,
            "row": self.rows,
            "effective_size": self.effective_sizes,
            "score": self.scores,
            "expected": self.expected,
            "z": self.z,
            "p_value": self.p_values,
            "q_value": self.q_values,
        }
        return Listing({name: column[order] for name, column in columns.items()})


def neighbourhood_scores(
    binding: Binding, rows: np.ndarray, *, n_permutations: int, tail: str, seed: int, n_jobs: int | None
) -> NeighbourhoodScores:
    """The scores of the first layer, with their p-values."""
    layer, points, sets = binding.fitted.layers[0], binding.points[0], binding.sets.take(rows)
    with array_engine():
        score = scores(layer, points, sets, Run(n_jobs=n_jobs))
        observed = score(sets)
        null = NullCounts(observed, weight_groups(sets))
        options: dict[str, Any] = {"n_jobs": n_jobs, "progress": binding.progress}
        permuted_scores(score, sets, null, n_permutations=n_permutations, seed=seed, **options)
    mean, deviation, _ = null.moments()
    z = np.divide(observed - mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
    p_values = TAILS[tail](null)
    return NeighbourhoodScores(
        binding.names[rows],
        rows,
        observed,
        mean,
        z,
        p_values,
        adjusted(p_values),
        effective_sizes(sets),
        null.n_null,
        n_permutations,
    )
