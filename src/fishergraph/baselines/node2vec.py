"""node2vec (Grover and Leskovec 2016): skip-gram on biased random walks, and a probe.

From u, having come from t, a walk goes on to x with a chance in proportion to its edge's weight times

    1/p  where x = t (back),     1  where x is a neighbour of t (near),     1/q  elsewhere (away).

The walks are ours: a draw by weight that is accepted with that factor over the largest of the three needs no table of
edge pairs, and every walk has its own counter, so the walks are the same at any time and place. Skip-gram with negative
samples is gensim's, with one worker, the only way in which it repeats itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fishergraph._optional import require
from fishergraph._progress import progress_bar
from fishergraph._validation import check_integer, check_number
from fishergraph.baselines.door import Task
from fishergraph.baselines.features import Probed
from fishergraph.counters import STEP, compiled, row_state, share

_BLOCK = 4096  # walks that are in memory at a time


class Node2Vec(Probed):
    """Vectors of nodes that occur together on random walks. Features are not read.

    dim               width
    walk_length, n_walks   nodes of a walk, walks from each node
    window            farthest distance on a walk at which two nodes count as together
    p, q              the return and in–out parameters
    n_negative        random nodes for each that was seen
    epochs            passes over the walks

    The paper has 10 walks of 80 nodes, and p and q from 0.25 to 4 by cross-validation. Of the few settings tried, the
    defaults were best on the validation nodes of Cora; q was also tried on Citeseer's.
    """

    needs_features = False

    def __init__(
        self, dim: int = 128, *, walk_length: int = 20, n_walks: int = 60, window: int = 10, p: float = 1.0,
        q: float = 0.25, n_negative: int = 5, epochs: int = 1, probe: Any = "logistic",
        probe_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        self.dim = dim
        self.walk_length = walk_length
        self.n_walks = n_walks
        self.window = window
        self.p = p
        self.q = q
        self.n_negative = n_negative
        self.epochs = epochs
        self.probe = probe
        self.probe_options = probe_options

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        gensim: Any = require("gensim.models", extra="baselines")
        whole = {name: check_integer(getattr(self, name), name, least=1, most=10**6) for name in _WHOLE}
        p, q = (check_number(value, name, strict=True) for value, name in ((self.p, "p"), (self.q, "q")))
        walks = _Walks(task.A, whole["n_walks"], whole["walk_length"], p, q, seed)
        epochs = whole["epochs"]
        with progress_bar(progress, unit="walk")("walking", walks.count * (epochs + 1)) as bar:
            walks.bar = bar
            model = gensim.Word2Vec(
                walks, vector_size=whole["dim"], window=whole["window"], negative=whole["n_negative"], epochs=epochs,
                sg=1, min_count=0, sample=0, workers=1, seed=seed,
            )  # fmt: skip
        order = [model.wv.key_to_index[name] for name in walks.names]
        return np.asarray(model.wv.vectors)[order]


_WHOLE = ("dim", "walk_length", "n_walks", "window", "n_negative", "epochs")


class _Walks:
    """The walks as sentences of node names, drawn anew, and the same, each time they are gone through."""

    bar: Any

    def __init__(self, A: Any, n_walks: int, length: int, p: float, q: float, seed: int):
        sums = np.concatenate([[0.0], np.cumsum(A.data, dtype=np.float64)])
        self.graph = (A.indptr.astype(np.int64), A.indices.astype(np.int64), sums)
        self.factors = np.array([1 / p, 1.0, 1 / q]) / max(1 / p, 1.0, 1 / q)
        rng = np.random.default_rng(seed)
        self.key = rng.integers(2**63, dtype=np.uint64)
        # Round by round, every node once in a new order: so neighbouring sentences are of different nodes.
        self.starts = np.concatenate([rng.permutation(A.shape[0]) for _ in range(n_walks)])
        self.length, self.names = length, [str(node) for node in range(A.shape[0])]

    @property
    def count(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[list[str]]:
        names = np.array(self.names, dtype=object)
        for first in range(0, self.count, _BLOCK):
            starts = self.starts[first : first + _BLOCK]
            walks = np.empty((len(starts), self.length), dtype=np.int64)
            _walk(starts, first, *self.graph, self.factors, self.key, walks)
            for walk in walks:
                yield names[walk[walk >= 0]].tolist()
            self.bar.update(len(starts))


@compiled
def _neighbour(t, x, indptr, indices):
    """Whether x is a neighbour of t."""
    place = indptr[t] + np.searchsorted(indices[indptr[t] : indptr[t + 1]], x)
    return place < indptr[t + 1] and indices[place] == x


@compiled
def _walk(starts, first, indptr, indices, sums, factors, key, walks):
    """Fill `walks` (walk, node); −1 after a node from which no edge leads on."""
    for i in range(len(starts)):
        state = row_state(key, first + i)
        t, u = -1, starts[i]
        walks[i, :] = -1
        walks[i, 0] = u
        for step in range(1, walks.shape[1]):
            low, high = indptr[u], indptr[u + 1]
            if low == high:
                break
            while True:
                state += STEP
                target = sums[low] + share(state) * (sums[high] - sums[low])
                edge = min(low + np.searchsorted(sums[low + 1 : high + 1], target, side="right"), high - 1)
                x = indices[edge]
                factor = 1.0
                if t >= 0:
                    factor = factors[0] if x == t else (factors[1] if _neighbour(t, x, indptr, indices) else factors[2])
                state += STEP
                if share(state) < factor:
                    break
            t, u = u, x
            walks[i, step] = u
