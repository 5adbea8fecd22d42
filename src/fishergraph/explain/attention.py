"""Whom nodes attend to: one node with names, or all nodes in compressed rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._repr import short_repr
from fishergraph.explain.binding import Binding
from fishergraph.explain.compare import member_names
from fishergraph.explain.layers import LayerView
from fishergraph.explain.members import effective_size
from fishergraph.explain.records import Attention

_ROWS = 2048  # of a block whose attention is computed at once

Fill = Callable[[slice], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class AttentionRows:
    """The attention of every node in one layer, in compressed rows.

    Node v attends to the members ``indices[indptr[v]:indptr[v + 1]]``. The attention of each of its anchors sums to one
    over them.

    Parameters
    ----------
    block : str
        The layer.
    indptr : array of shape (n_nodes + 1,)
        Offsets.
    indices : array of shape (n_entries,) or (n_entries, n_slots)
        Rows of the members.
    weights : array of shape (n_entries,)
        Weights a_vu of the members.
    attention : array of shape (n_entries, n_anchors)
        The quotients a_vu α_uj / D_vj, float32.
    mass : array of shape (n_nodes, n_anchors)
        The sums D_vj = Σ_u a_vu α_uj, float32.

    See Also
    --------
    Attention : That of one node.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=ring)
    >>> rows = Explainer(model, X, graph=ring).attention_all()["psi1"]
    >>> rows.indices[rows.indptr[1] : rows.indptr[2]]
    array([1, 0], dtype=int32)
    """

    block: str
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    attention: np.ndarray
    mass: np.ndarray

    __repr__ = short_repr


def attention_of(view: LayerView, binding: Binding, v: int) -> Attention:
    """The attention of one row."""
    found = view.row(v)
    return Attention(
        binding.names[[v]].tolist()[0],
        v,
        view.name,
        member_names(binding, found.members),
        found.members,
        found.weights,
        found.responsibilities,
        found.attention,
        found.mass,
        np.argsort(-found.mass, kind="stable"),
        effective_size(found.weights),
        found.standard_error,
    )


def all_attention(view: LayerView, binding: Binding) -> AttentionRows:
    """The attention of all rows: in one pass if responsibilities belong to the point, else row by row."""
    sets, blocks = view.sets, row_blocks(view.sets.n_sets, _ROWS)
    fill = _one_by_one(view) if sets.lifted or not view.point_wise else _in_one_pass(view, binding)
    with binding.progress(f"attention in {view.name}", len(blocks)) as bar:
        found = map_blocks(fill, blocks, n_jobs=binding.n_jobs, advance=bar.update)
    attention, mass = (np.concatenate([part[k] for part in found]).astype(np.float32) for k in (0, 1))
    start, stop = int(sets.indptr[0]), int(sets.indptr[-1])
    members = sets.indices[start:stop]
    weights = np.ones(stop - start, np.float32) if sets.weights is None else sets.weights[start:stop]
    indices = sets.subgraphs[members] if sets.lifted else members
    return AttentionRows(view.name, sets.indptr - start, indices, weights, attention, mass)


def _one_by_one(view: LayerView) -> Fill:
    """Row block → the attention of its entries, and the masses of its rows."""

    def fill(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        found = [view.row(v) for v in range(rows.start, rows.stop)]
        return np.concatenate([each.attention for each in found]), np.stack([each.mass for each in found])

    return fill


def _in_one_pass(view: LayerView, binding: Binding) -> Fill:
    """The same from log α of the points."""
    kinds, logs = view.sets.kinds, view.point_logs(binding.n_jobs)

    def fill(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        parts = view.sets.block(rows).apart()
        own, mass = part_attention(parts, logs)
        if kinds == 1:
            return own, mass
        kind = np.repeat(np.arange(parts.n_sets) % kinds, np.diff(parts.indptr))
        attention = np.zeros((len(own), kinds, own.shape[1]))
        attention[np.arange(len(own)), kind] = own
        return attention.reshape(len(own), -1), mass.reshape(-1, kinds * own.shape[1])

    return fill


def part_attention(parts: Any, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a_vu α_uj / D_vj of the entries of plain multisets, (entry, anchor), and D, (set, anchor), from log α."""
    start, stop = int(parts.indptr[0]), int(parts.indptr[-1])
    terms = logs[parts.indices[start:stop]]
    if parts.weights is not None:
        with np.errstate(divide="ignore"):
            terms = terms + np.log(parts.weights[start:stop].astype(np.float64))[:, None]
    return segment_softmax(terms, parts.indptr - start)


def segment_softmax(logs: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """exp(logs) over its sums in every segment, (entry, anchor), and these sums, (segment, anchor), 0 if empty."""
    sizes = np.diff(indptr)
    some, highest = sizes > 0, np.full((len(sizes), logs.shape[1]), -np.inf)
    if some.any():
        highest[some] = np.maximum.reduceat(logs, indptr[:-1][some], axis=0)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    parts, total = np.exp(logs - np.repeat(shift, sizes, axis=0)), np.zeros_like(highest)
    if some.any():
        total[some] = np.add.reduceat(parts, indptr[:-1][some], axis=0)
    parts /= np.repeat(np.where(total > 0, total, 1.0), sizes, axis=0)
    return parts, total * np.exp(shift)
