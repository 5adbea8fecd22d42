"""The data of tools/bits.py, small and made from seeds."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from bits_settings import Settings


class Nodes(NamedTuple):
    """A graph: features as real numbers and as counts of words, weighted edges (node, member), classes."""

    reals: np.ndarray
    words: sp.csr_array
    graph: sp.csr_array
    y: np.ndarray


@cache
def nodes(seed: int, n: int, *, n_words: int = 40) -> Nodes:
    """Classes that prefer their own members and words; a hub, nodes without edges, some edges in one direction."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    near = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 8.0, 1.0) / n, 1)
    near[0, 1 : n // 3] = True
    near = near | (near.T & (rng.random((n, n)) < 0.8))
    near[-5:], near[:, -5:] = False, False
    graph = sp.csr_array(near * rng.uniform(0.5, 2.0, size=(n, n)))
    own = np.arange(n_words) % 3 == y[:, None]
    words = rng.poisson(np.where(own, 0.6, 0.15))
    words[np.arange(n), rng.integers(n_words, size=n)] += 1
    reals = rng.normal(size=(3, 15))[y] + rng.normal(size=(n, 15))
    return Nodes(reals, sp.csr_array(words.astype(np.float64)), graph, y)


@cache
def bags(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(points, counts of words of them, offsets) of sets of 0 to 30 members."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[0, 1], rng.integers(2, 31, size=n - 2)])
    kinds = np.repeat(rng.integers(3, size=n), sizes)
    points = 3 * rng.normal(size=(3, 6))[kinds] + rng.normal(size=(sizes.sum(), 6)) * [1, 2, 1, 0.1, 1, 1] + 1
    words = rng.poisson(0.5, size=(sizes.sum(), 6)) + np.eye(6)[kinds]
    return points, words, np.concatenate([[0], np.cumsum(sizes)])


@cache
def graphs(seed: int, n: int) -> list[dict[str, Any]]:
    """Small graphs, some directed, with features, tags of nodes and tags of edges."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        size = int(rng.integers(4, 16))
        edges = np.stack(np.nonzero(np.triu(rng.random((size, size)) < (0.2 + 0.3 * (k % 2)), 1)))
        edges = np.concatenate([edges, edges[::-1]], axis=1) if k % 3 else edges
        data = {"X": rng.normal(size=(size, 4)), "tags": rng.integers(4, size=size)}
        found.append({"graph": edges, **data, "edge_tags": rng.integers(3, size=edges.shape[1])})
    return found


def adjacency(entry: dict[str, Any]) -> sp.csr_array:
    """The edges of a small graph as a matrix."""
    n, (sources, targets) = len(entry["tags"]), entry["graph"]
    return sp.csr_array((np.ones(len(targets)), (targets, sources)), shape=(n, n))


def features(data: Nodes, kind: str, dtype: str, settings: Settings) -> Any:
    """X of that kind: dense (real numbers; counts for the family of counts), csr (counts), or a tensor of either."""
    counts = settings.get("family", ("",))[0] == "multinomial"
    words = data.words.astype(dtype)
    dense = words.toarray() if counts else data.reals.astype(dtype)
    if kind == "zero-rows":
        dense[::50] = 0
    if not kind.startswith("tensor"):
        return words if kind == "csr" else dense
    import torch

    if kind == "tensor":
        return torch.from_numpy(dense)
    parts = (torch.from_numpy(part) for part in (words.indptr, words.indices, words.data))
    return torch.sparse_csr_tensor(*parts, size=words.shape)


def edge_tensors(graph: sp.csr_array, dtype: str) -> tuple[Any, Any]:
    """edge_index (2, edge), from members to nodes, and the weights."""
    import torch

    targets = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    edges = np.stack([graph.indices, targets]).astype(np.int64)
    return torch.from_numpy(edges), torch.from_numpy(graph.data.astype(dtype))
