"""Tasks for attention: sets, and neighbourhoods, that have the same mean and differ in their modes."""

from __future__ import annotations

import numpy as np

from fishergraph._errors import InputError
from fishergraph._validation import check_integer, check_number, check_seed
from fishergraph.datasets.records import GraphData, undirected_graph

_MOST = 10_000_000


def equal_mean_sets(
    n_sets: int = 400, n_members: int = 16, n_classes: int = 2, *, noise: float = 0.3, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Make labelled sets that mean pooling cannot tell apart.

    Members come in pairs x, −x, with x near e_c in a set of class c, so the mean of every set is zero.

    Parameters
    ----------
    n_sets : int, default=400
        Number of sets.
    n_members : int, default=16
        Members of a set, an even number.
    n_classes : int, default=2
        Number of classes, and of features.
    noise : float, default=0.3
        Standard deviation of the members.
    seed : int, default=0
        Random seed.

    Returns
    -------
    sets : list of arrays of shape (n_members, n_classes)
        The sets.
    y : array of shape (n_sets,)
        The class of every set.

    See Also
    --------
    equal_mean_graph : The same for neighbourhoods.

    Examples
    --------
    >>> from fishergraph.datasets import equal_mean_sets
    >>> sets, y = equal_mean_sets(100)
    >>> len(sets), sets[0].shape, bool(abs(sets[0].mean()) < 1e-12)
    (100, (16, 2), True)
    """
    pairs = _pairs(n_sets, n_members, noise)
    n_classes = check_integer(n_classes, "n_classes", least=2, most=1000)
    rng = np.random.default_rng(check_seed(seed))
    y = rng.permutation(np.arange(n_sets) % n_classes)
    halves = [_half(rng, np.full(pairs, label), n_classes, noise) for label in y]
    return [np.stack([half, -half], axis=1).reshape(2 * pairs, n_classes) for half in halves], y


def equal_mean_graph(
    n_nodes: int = 400, n_members: int = 16, n_classes: int = 2, *, noise: float = 0.3, seed: int = 0
) -> GraphData:
    """Make a graph of labelled nodes whose neighbourhoods have the same mean.

    The features of labelled nodes are zero. Each is linked to pairs of unlabelled nodes (−1) with features x and −x, x
    near e_c for class c, drawn from `n_nodes` pairs that all nodes share. A quarter of the labelled nodes is for
    training, a quarter for validation, half for testing.

    Classes share no neighbours, so structural columns tell them apart: embed with ``structure=None``.

    Parameters
    ----------
    n_nodes : int, default=400
        Number of labelled nodes.
    n_members : int, default=16
        Members of a set, the neighbours of a labelled node, an even number.
    n_classes : int, default=2
        Number of classes, and of features.
    noise : float, default=0.3
        Standard deviation of the members.
    seed : int, default=0
        Random seed.

    Returns
    -------
    GraphData
        The graph.

    See Also
    --------
    equal_mean_sets : The same for sets.

    Examples
    --------
    >>> from fishergraph.datasets import equal_mean_graph
    >>> equal_mean_graph(100)
    GraphData('equal-means': 300 nodes, 3,200 directed edges, 2 dense features, 3 classes, one split)
    """
    pairs = _pairs(n_nodes, n_members, noise)
    n_classes = check_integer(n_classes, "n_classes", least=2, most=1000)
    rng = np.random.default_rng(check_seed(seed))
    y = rng.permutation(np.arange(n_nodes) % n_classes)
    kinds = np.arange(n_nodes) % n_classes  # classes of the pairs
    half = _half(rng, kinds, n_classes, noise)
    X = np.concatenate([np.zeros((n_nodes, n_classes)), half, -half]).astype(np.float32)
    drawn = [rng.choice(np.flatnonzero(kinds == label), pairs, replace=pairs > (kinds == label).sum()) for label in y]
    members = n_nodes + np.concatenate([np.concatenate([part, part + n_nodes]) for part in drawn])
    graph = undirected_graph(members, np.repeat(np.arange(n_nodes), 2 * pairs), len(X))
    quarter = n_nodes // 4
    train, val, test = np.split(rng.permutation(n_nodes), [quarter, 2 * quarter])
    labels = np.concatenate([y, np.full(2 * n_nodes, -1)])
    return GraphData("equal-means", X, graph, labels, np.sort(train), np.sort(val), np.sort(test))


def _pairs(n_sets: int, n_members: int, noise: float) -> int:
    """The number of pairs in a set, after validation of the sizes."""
    check_integer(n_sets, "the number of sets", least=4, most=_MOST)
    check_number(noise, "noise", most=1e12)
    if check_integer(n_members, "n_members", least=2, most=_MOST) % 2:
        expected = "be even, since members come in pairs x, -x"
        raise InputError(parameter="n_members", value=n_members, expected=expected)
    if n_sets * n_members > _MOST:
        expected, got = f"have at most {_MOST:,} members", f"{n_sets} times {n_members}"
        raise InputError(parameter="all sets together", expected=expected, got=got)
    return n_members // 2


def _half(rng: np.random.Generator, kinds: np.ndarray, n_classes: int, noise: float) -> np.ndarray:
    """e_c plus noise for each of the kinds c, (kind, class)."""
    return np.eye(n_classes)[kinds] + noise * rng.standard_normal((len(kinds), n_classes))
