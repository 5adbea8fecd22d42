"""What answers mean, in float64 and loops: neighbours, similarities of pairs, silhouettes, differences of means, hits.

Nothing of the package is imported.
"""

from __future__ import annotations

import math


def product(x, y):
    return math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def similarity(x, y, metric):
    """The cosine, the inner product, or the Euclidean distance of two vectors; the cosine with zero is 0."""
    if metric == "euclidean":
        return math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)))
    dot = product(x, y)
    if metric == "dot":
        return dot
    length = math.sqrt(product(x, x)) * math.sqrt(product(y, y))
    return dot / length if length > 0 else 0.0


def nearest(Z, query, k, metric, *, without=None):
    """(rows, values) of the k nearest rows of a vector, equal ones by row; `without` is a row that is left out."""
    values = {row: similarity(query, z, metric) for row, z in enumerate(Z) if row != without}
    sign = 1 if metric == "euclidean" else -1
    rows = sorted(values, key=lambda row: (sign * values[row], row))[:k]
    return rows, [values[row] for row in rows]


def difference_of_means(column, inside):
    """t of a column between the rows inside and the others, with the variance within both groups."""
    groups = [[value for value, own in zip(column, inside, strict=True) if own == side] for side in (True, False)]
    means = [math.fsum(group) / len(group) for group in groups]
    within = math.fsum((value - mean) ** 2 for group, mean in zip(groups, means, strict=True) for value in group)
    variance = within / (len(column) - 2)
    return (means[0] - means[1]) / math.sqrt(variance * sum(1 / len(group) for group in groups))


def hits(scores, edges, k):
    """The share of edges with a larger score than all but k − 1 of the other pairs."""
    others = sorted((score for score, edge in zip(scores, edges, strict=True) if not edge), reverse=True)
    own = [score for score, edge in zip(scores, edges, strict=True) if edge]
    return sum(score > others[k - 1] for score in own) / len(own)


def area_under_roc(scores, edges):
    """The probability that an edge has a larger score than another pair; equal ones count one half."""
    own = [score for score, edge in zip(scores, edges, strict=True) if edge]
    others = [score for score, edge in zip(scores, edges, strict=True) if not edge]
    return sum((a > b) + 0.5 * (a == b) for a in own for b in others) / (len(own) * len(others))


def cosine_of_block(Z, start, stop, u, v):
    """The cosine of columns start … stop − 1 of rows u and v, measured from the mean of all rows."""
    means = [math.fsum(float(z[j]) for z in Z) / len(Z) for j in range(start, stop)]
    x, y = ([float(Z[row][j]) - mean for j, mean in zip(range(start, stop), means, strict=True)] for row in (u, v))
    return similarity(x, y, "cosine")
