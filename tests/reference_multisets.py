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


def local_wl_colours(adjacency, labels, k, s, n_rounds):
    """(tuples, colours after every round) of the local k-WL on the (k, s)-tuples, numbered in sorted order.

    c_0 is the labels of the nodes and, for each pair of places, whether they are the same and how they are joined;
    c_{i+1}(t) = (c_i(t), for each place j the multiset of c_i over the tuples with a neighbour of t_j at place j).
    """
    tuples = node_tuples(adjacency, k, s)
    known = set(tuples)

    def relation(u, w):
        return u == w, bool(adjacency[u][w]), bool(adjacency[w][u])

    def number(signatures):
        order = {signature: i for i, signature in enumerate(sorted(set(signatures.values())))}
        return {t: order[signature] for t, signature in signatures.items()}

    places = range(k)
    relations = {t: tuple(relation(u, w) for u in t for w in t) for t in tuples}
    colours = [number({t: (tuple(labels[v] for v in t), relations[t]) for t in tuples})]
    for _ in range(n_rounds):
        last, signatures = colours[-1], {}
        for t in tuples:
            near = [[(*t[:j], u, *t[j + 1 :]) for u in range(len(adjacency)) if adjacency[t[j]][u]] for j in places]
            signatures[t] = (last[t], tuple(tuple(sorted(last[o] for o in row if o in known)) for row in near))
        colours.append(number(signatures))
    return tuples, [[round_[t] for t in tuples] for round_ in colours]
