"""Baselines from their papers' formulas: float64, loops, nothing of the package."""

from __future__ import annotations

import numpy as np


def wwl(A, X, steps):
    """[X_0 | … | X_T] with X_{t+1}(v) = ½ (X_t(v) + Σ_u a_vu X_t(u) / Σ_u a_vu) (Togninalli et al. 2019, Eq. 4)."""
    blocks = [np.array(X, dtype=np.float64)]
    for _ in range(steps):
        before, after = blocks[-1], np.zeros_like(blocks[-1])
        for v in range(len(A)):
            after[v] = before[v] / 2
            total = sum(A[v])
            for u in range(len(A)):
                if A[v, u] > 0:
                    after[v] += A[v, u] * before[u] / total / 2
        blocks.append(after)
    return np.concatenate(blocks, axis=1)


def symmetric_smoother(A):
    """S_vu = ã_vu / √(d̃_v d̃_u), where ã has a loop of weight 1 at each node that has none."""
    closed = np.array(A, dtype=np.float64)
    for v in range(len(A)):
        if closed[v, v] == 0:
            closed[v, v] = 1.0
    degrees = [sum(row) for row in closed]
    return np.array([[closed[v, u] / (degrees[v] * degrees[u]) ** 0.5 for u in range(len(A))] for v in range(len(A))])


def harmonic(A, y, train):
    """The harmonic function, as one system: labels at training nodes, elsewhere the weighted mean of the neighbours.

    Its classes are scaled to their shares among the training nodes; a node that no label reaches has these shares.
    """
    classes = sorted(set(y[train]))
    given = np.array([[float(y[v] == c) for c in classes] for v in train])
    reached, frontier = set(train.tolist()), list(train)
    while frontier:
        u = frontier.pop()
        for v in range(len(A)):
            if A[v, u] > 0 and v not in reached:
                reached.add(v)
                frontier.append(v)
    free = [v for v in sorted(reached) if v not in set(train.tolist())]
    P = np.array([[A[v, u] / sum(A[v]) for u in range(len(A))] for v in free])
    shares = given.mean(axis=0)
    found = np.tile(shares, (len(A), 1))
    found[train] = given
    harmonic = np.linalg.solve(np.eye(len(free)) - P[:, free], P[:, train] @ given)
    for row, v in enumerate(free):
        scaled = [shares[c] * harmonic[row, c] / sum(harmonic[:, c]) for c in range(len(classes))]
        found[v] = np.array(scaled) / sum(scaled)
    return found


def node2vec_chances(A, t, u, p, q):
    """The chance of each next node of a walk that went from t to u (Grover and Leskovec 2016, Section 3.2)."""
    chances = np.zeros(len(A))
    for x in range(len(A)):
        if x == t:
            bias = 1 / p
        elif A[t, x] > 0:
            bias = 1.0
        else:
            bias = 1 / q
        chances[x] = bias * A[u, x]
    return chances / chances.sum()
