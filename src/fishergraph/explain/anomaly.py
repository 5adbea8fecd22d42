"""`AnomalyScores`: which nodes are odd, and in which of three ways.

With x_v the points of the first layer, centred on their mean, N(v) the other members of v with weights a, and x̄_v their
weighted mean:

    context   −⟨x_v, x̄_v⟩ / ‖x_v‖                         the node is unlike its neighbours
    discord   √n_v (median of c − c_v),                    its neighbours are less alike than those of other nodes
              c_v = mean of ⟨x_u, x_u'⟩ over pairs of N(v)
    novelty   Σ_b (ρ_vb − median) / median deviation,       nothing like it was there in the fit
              ρ_vb = 1 − ‖ψ_b(v)‖² / ‖φ_b(v)‖²

ρ is the share of a node that the landmarks of a block do not represent: ‖φ‖² = k(φ, φ) is what ‖ψ(φ)‖² approximates.
The three are compared by their ranks, s = −log(1 − rank); the score of a node is its largest s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._listing import Listed, Listing
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.device import NUMPY
from fishergraph.explain.binding import Binding
from fishergraph.kernel_map import NystromMap, row_norms
from fishergraph.layer import Run
from fishergraph.ops.engine import array_engine
from fishergraph.passes import Pass

PARTS = ("context", "discord", "novelty")
_ROWS = 1024  # whose neighbours are averaged at once


@dataclass(frozen=True, eq=False, repr=False)
class AnomalyScores(Listed):
    """How odd nodes are, and why.

    Parameters
    ----------
    nodes : array of shape (n_nodes,)
        The ids.
    rows : array of shape (n_nodes,)
        Their rows.
    scores : array of shape (n_nodes,)
        The largest of the three parts, as −log(1 − rank): 3 is the oddest twentieth in one of them, 4.6 the oddest
        hundredth.
    context : array of shape (n_nodes,)
        How unlike its neighbours a node is, raw; NaN without neighbours.
    discord : array of shape (n_nodes,)
        How unlike each other its neighbours are, raw; NaN for less than two.
    novelty : array of shape (n_nodes,)
        How little of it the landmarks of the model represent, raw; NaN if the model has none.
    reasons : array of shape (n_nodes,)
        Which of the three is the largest.

    See Also
    --------
    Explainer.anomaly_scores : Makes it.
    NeighbourhoodScores : Neighbourhoods that are no ordinary sample, with p-values.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=ring)
    >>> Explainer(model, X, graph=ring).anomaly_scores()
    AnomalyScores(4 nodes)
    """

    nodes: np.ndarray
    rows: np.ndarray
    scores: np.ndarray
    context: np.ndarray
    discord: np.ndarray
    novelty: np.ndarray
    reasons: np.ndarray

    def __repr__(self) -> str:
        return f"AnomalyScores({len(self.nodes):,} nodes)"

    def listing(self) -> Listing:
        """Return a row per node, the oddest first.

        Returns
        -------
        Listing
            ``node, row, score, reason, context, discord, novelty``.
        """
        order = np.argsort(-self.scores, kind="stable")
        columns = {"node": self.nodes, "row": self.rows, "score": self.scores, "reason": self.reasons}
        columns |= {part: getattr(self, part) for part in PARTS}
        return Listing({name: column[order] for name, column in columns.items()})


def anomaly_scores(binding: Binding, rows: np.ndarray, n_jobs: int | None) -> AnomalyScores:
    """The scores of these rows, by their ranks among all rows."""
    context, discord = neighbour_scores(binding, n_jobs)
    parts = {"context": context, "discord": discord, "novelty": novelty(binding, n_jobs)}
    surprisals = np.stack([surprisal(values) for values in parts.values()])  # (part, row)
    reasons = np.array(PARTS, dtype=object)[surprisals.argmax(axis=0)]
    own = {name: values[rows] for name, values in parts.items()}
    return AnomalyScores(binding.names[rows], rows, surprisals.max(axis=0)[rows], **own, reasons=reasons[rows])


def surprisal(values: np.ndarray) -> np.ndarray:
    """−log(1 − rank) with ranks from 0 to 1; equal values share theirs, and NaN has the middle one."""
    from scipy.stats import rankdata

    known = ~np.isnan(values)
    ranks = np.full(len(values), 0.5)
    if known.any():
        ranks[known] = (rankdata(values[known]) - 0.5) / np.count_nonzero(known)
    return -np.log1p(-ranks)


# --- context and discord ----------------------------------------------------------------------------------


def neighbour_scores(binding: Binding, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(context, discord) of all rows."""
    points = binding.points[0]
    near: Any = neighbours(binding.sets)
    ones, blocks = np.ones(near.shape[1]), row_blocks(len(points), _ROWS)
    squares: Any = sp.csr_array((near.data**2, near.indices, near.indptr), shape=near.shape)
    total, weight = near @ ones, squares @ ones
    centre = points.mean(axis=0, dtype=np.float64)
    lengths = np.concatenate([np.linalg.norm(points[rows] - centre, axis=1) for rows in blocks])
    own, plain = squares @ lengths**2, near.astype(points.dtype)  # Σ_u a_vu² ‖x_u‖²; a product in the type of points

    def part(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        sums = plain[rows] @ points - total[rows, None] * centre  # Σ_u a_vu x_u
        products = np.einsum("vd,vd->v", points[rows] - centre, sums)
        return products, np.einsum("vd,vd->v", sums, sums)

    parts = map_blocks(part, blocks, n_jobs=n_jobs)
    products, sizes = (np.concatenate([each[k] for each in parts]) for k in (0, 1))
    context = -_quotient(products, lengths * total)
    pairs = total**2 - weight
    pairs[pairs <= 1e-9 * total**2] = 0  # what rounding leaves for a single neighbour
    coherence = _quotient(sizes - own, pairs)
    usual = np.nanmedian(coherence) if not np.isnan(coherence).all() else 0.0
    return context, (usual - coherence) * np.sqrt(_quotient(total**2, weight))


def neighbours(sets: Any) -> sp.csr_array:
    """The members of every row but the row itself, with their weights, (row, node); of subgraphs all their nodes."""
    n, start, stop = sets.n_points, int(sets.indptr[0]), int(sets.indptr[-1])
    rows = np.repeat(np.arange(sets.n_sets), np.diff(sets.indptr))
    weights = np.ones(stop - start) if sets.weights is None else np.asarray(sets.weights[start:stop], np.float64)
    members = sets.indices[start:stop]
    if sets.lifted:
        slots = sets.subgraphs[members]
        rows, weights = np.repeat(rows, slots.shape[1]), np.repeat(weights, slots.shape[1])
        members = slots.ravel()
    kept = (members != rows) & (members >= 0) & (weights > 0)
    return sp.csr_array((weights[kept], (rows[kept], members[kept])), shape=(sets.n_sets, n))


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, NaN where below is 0."""
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)


# --- novelty ----------------------------------------------------------------------------------------------


def novelty(binding: Binding, n_jobs: int | None) -> np.ndarray:
    """Σ_b (ρ_vb − median) / median deviation over the blocks with landmarks, (row,); NaN if there are none."""
    found = [_standardised(values) for values in residuals(binding, n_jobs).values()]
    return np.sum(found, axis=0) if found else np.full(binding.n_rows, np.nan)


def residuals(binding: Binding, n_jobs: int | None) -> dict[str, np.ndarray]:
    """ρ_vb = 1 − ‖ψ_b(v)‖² / ‖φ_b(v)‖² of every row, by the block b: those of X and of the layers."""
    stack, run = binding.fitted, Run(NUMPY, n_jobs, binding.progress)
    names = [name for name in stack.names if name.startswith("psi") or name == "walk"]
    out = {}
    with array_engine():
        running = Pass(stack, binding.rows, binding.sets, run, structural=binding.structural)
        for number, name in enumerate(names):
            points = binding.points[number - 1] if 0 < number <= stack.n_layers else None
            blocks = running.stage(name, points).blocks
            if isinstance(blocks.kernel_map, NystromMap):
                out[name] = _residuals(blocks, n_jobs)
    return out


def _residuals(blocks: Any, n_jobs: int | None) -> np.ndarray:
    """ρ of the rows of a block; 0 where φ is zero."""

    def part(rows: slice) -> np.ndarray:
        phi = blocks.phi(rows)
        psi = np.asarray(blocks.kernel_map(phi))
        whole = np.asarray(row_norms(phi), np.float64)[:, 0] ** 2
        kept = np.einsum("vk,vk->v", psi, psi, dtype=np.float64)
        return np.where(whole > 0, 1 - kept / np.where(whole > 0, whole, 1), 0.0)

    return np.concatenate(map_blocks(part, blocks.rows, n_jobs=n_jobs))


def _standardised(values: np.ndarray) -> np.ndarray:
    """The values less their median, in units of their median deviation; zeros if most are equal."""
    gaps = values - np.median(values)
    spread = np.median(np.abs(gaps))
    return gaps / spread if spread > 0 else np.zeros_like(gaps)
