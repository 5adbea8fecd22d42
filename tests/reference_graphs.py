"""Whole graphs by loops, in float64; imports nothing of the package."""

from __future__ import annotations

import itertools
import math

import reference as ref


def soft_histogram(points, graph_ptr, anchors, variance):
    """log(1 + Σ_v α_vj) of every graph, (graph, anchor): α the responsibilities of its nodes' points."""
    rows = []
    for first, last in itertools.pairwise(graph_ptr):
        mass = [0.0] * len(anchors)
        for v in range(first, last):
            for j, alpha in enumerate(ref.responsibilities([points[v]], anchors, variance)[0]):
                mass[j] += alpha
        rows.append([math.log1p(m) for m in mass])
    return rows


def histogram(labels, graph_ptr):
    """How often each label occurs in each graph: a dictionary per graph."""
    counts = []
    for first, last in itertools.pairwise(graph_ptr):
        found: dict = {}
        for v in range(first, last):
            found[labels[v]] = found.get(labels[v], 0) + 1
        counts.append(found)
    return counts
