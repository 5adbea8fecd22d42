"""node2vec (Grover and Leskovec 2016): skip-gram on biased random walks, and a probe.

After the step from t to u, a walk goes on to x with a probability proportional to the weight of (u, x) times

    1/p  if x = t (back),     1  if x is a neighbour of t (near),     1/q  otherwise (away).

A draw by weight is accepted with that factor over the largest of the three, which needs no table of edge pairs. Every
walk has its own counter, so the walks are reproducible. Skip-gram with negative samples is gensim's; with one worker it
is reproducible too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from fishergraph._optional import require
from fishergraph._progress import progress_bar
from fishergraph._validation import check_integer, check_number
from fishergraph.counters import STEP, compiled, row_state, uniform
from fishergraph.lab.baselines.base import Probed, Task

_BLOCK = 4096  # walks that are in memory at a time


@dataclass(eq=False, repr=False)
class Node2Vec(Probed):
    """Vectors of nodes that occur together on random walks. Features are not used.

    The paper has 10 walks of 80 nodes, and p and q from 0.25 to 4 by cross-validation. Of a few settings, the defaults
    were the best on the validation nodes of Cora; q was also tried on Citeseer's.

    Parameters
    ----------
    dim : int, default=128
        Width.
    walk_length : int, default=20
        Nodes of a walk.
    n_walks : int, default=60
        Walks from each node.
    window : int, default=10
        Largest distance on a walk at which two nodes occur together.
    p, q : float, default=1.0, 0.25
        The return and in–out parameters.
    n_negative : int, default=5
        Random nodes for each observed one.
    epochs : int, default=1
        Passes over the walks.
    """

    needs_features = False

    dim: int = 128
    _: KW_ONLY
    walk_length: int = 20
    n_walks: int = 60
    window: int = 10
    p: float = 1.0
    q: float = 0.25
    n_negative: int = 5
    epochs: int = 1

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        gensim: Any = require("gensim.models", extra="baselines")
        sizes = {name: check_integer(getattr(self, name), name, least=1, most=10**6) for name in _INTEGERS}
        p, q = (check_number(value, name, strict=True) for value, name in ((self.p, "p"), (self.q, "q")))
        walks = _Walks(task.A, sizes["n_walks"], sizes["walk_length"], p, q, seed)
        options = {"vector_size": sizes["dim"], "window": sizes["window"], "negative": sizes["n_negative"]}
        fixed = {"sg": 1, "min_count": 0, "sample": 0, "workers": 1}
        with progress_bar(progress, unit="walk")("walking", walks.count * (sizes["epochs"] + 1)) as bar:
            walks.bar = bar
            model = gensim.Word2Vec(walks, epochs=sizes["epochs"], seed=seed, **options, **fixed)
        order = [model.wv.key_to_index[name] for name in walks.names]
        return np.asarray(model.wv.vectors)[order]


_INTEGERS = ("dim", "walk_length", "n_walks", "window", "n_negative", "epochs")


class _Walks:
    """The walks as sentences of node names; each iteration draws the same walks again."""

    bar: Any

    def __init__(self, A: Any, n_walks: int, length: int, p: float, q: float, seed: int):
        sums = np.concatenate([[0.0], np.cumsum(A.data, dtype=np.float64)])
        self.graph = (A.indptr.astype(np.int64), A.indices.astype(np.int64), sums)
        self.factors = np.array([1 / p, 1.0, 1 / q]) / max(1 / p, 1.0, 1 / q)
        rng = np.random.default_rng(seed)
        self.key = rng.integers(2**63, dtype=np.uint64)
        # Each round has every node once in a new order, so that neighbouring sentences start at different nodes.
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
    entry = indptr[t] + np.searchsorted(indices[indptr[t] : indptr[t + 1]], x)
    return entry < indptr[t + 1] and indices[entry] == x


@compiled
def _walk(starts, first, indptr, indices, sums, factors, key, walks):
    """Fill `walks` (walk, node); −1 after a node without edges."""
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
                target = sums[low] + uniform(state) * (sums[high] - sums[low])
                edge = min(low + np.searchsorted(sums[low + 1 : high + 1], target, side="right"), high - 1)
                x = indices[edge]
                factor = 1.0
                if t >= 0:
                    factor = factors[0] if x == t else (factors[1] if _neighbour(t, x, indptr, indices) else factors[2])
                state += STEP
                if uniform(state) < factor:
                    break
            t, u = u, x
            walks[i, step] = u
