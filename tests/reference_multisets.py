"""Slow references for the multisets of subgraphs: loops over everything there is, from the definitions."""

import itertools


def simple_paths(neighbours, v, length):
    """All (v, u_1, …, u_length), each node a neighbour of the one before it, none twice."""
    paths = [(v,)]
    for _ in range(length):
        paths = [(*path, u) for path in paths for u in neighbours[path[-1]] if u not in path]
    return paths


def hop_distances(neighbours, v, most):
    """{u: the fewest steps from v to u}, up to `most`."""
    distance, ring = {v: 0}, [v]
    for step in range(1, most + 1):
        ring = sorted({u for w in ring for u in neighbours[w]} - set(distance))
        distance.update(dict.fromkeys(ring, step))
    return distance


def components(adjacency, nodes):
    """The number of connected parts of the subgraph on these nodes, whichever way the edges point."""
    left, parts = set(nodes), 0
    while left:
        stack, parts = [left.pop()], parts + 1
        while stack:
            v = stack.pop()
            near = {u for u in left if adjacency[v][u] or adjacency[u][v]}
            left -= near
            stack += near
    return parts


def node_tuples(adjacency, k, s):
    """All k-tuples of nodes whose subgraph has at most s parts, in order."""
    every = itertools.product(range(len(adjacency)), repeat=k)
    return [t for t in every if components(adjacency, t) <= s]
