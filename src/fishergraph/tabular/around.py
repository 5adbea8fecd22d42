"""Columns of the neighbours of nodes: means and shares, PageRank means, counts of the edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fishergraph.graph import Graph
from fishergraph.layer import Run
from fishergraph.multiset import Neighbourhood
from fishergraph.passes import ONE_STEP
from fishergraph.structural.both_ways import Edges
from fishergraph.structural.factors import symmetric
from fishergraph.structural.local import local_columns
from fishergraph.tabular.own import as_categories, as_number
from fishergraph.walk import Walk, walk_averages

Named = Iterator[tuple[str, np.ndarray]]


def neighbours_of(graph: Graph) -> Any:
    """The weights between nodes, both ways and without the nodes themselves, float64."""
    both = sp.csr_array(symmetric(sp.csr_array(graph.adjacency, dtype=np.float64)))
    both = sp.csr_array(both - sp.diags_array(both.diagonal()))
    both.eliminate_zeros()
    return both


def is_directed(graph: Graph) -> bool:
    """Whether degrees of the two directions differ anywhere."""
    A = sp.csr_array(graph.adjacency, dtype=np.float64)
    return not np.allclose(A.sum(axis=1), A.sum(axis=0), rtol=1e-12)


def observed_means(near: Any, values: np.ndarray) -> np.ndarray:
    """The weighted mean over the neighbours whose value is not NaN, (node, column); NaN if there is none."""
    known = ~np.isnan(values)
    return _quotient(near @ np.where(known, values, 0.0), near @ known.astype(np.float64))


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def smoothed_columns(
    own: Mapping[str, pa.Array], graph: Graph, walk: Walk, rows: np.ndarray, most: int, n_jobs: int | None
) -> Named:
    """Means over the neighbours and by PageRank of numbers, and shares of categories among the neighbours.

    Categories are those of some rows.
    """
    near, numbers = neighbours_of(graph), {}
    for name, column in own.items():
        values = as_number(column)
        if values is not None:
            numbers[name] = values
            continue
        found = as_categories(column, rows, most)
        if found is None:
            continue
        for k, word in enumerate(found[0]):
            shares = np.where(np.asarray(column.is_null()), np.nan, (found[1] == k).astype(np.float64))
            yield f"{name}={word}_share_neighbours", observed_means(near, shares[:, None])[:, 0]
    if not numbers:
        return
    values = np.stack(list(numbers.values()), axis=1)
    means, walked = observed_means(near, values), walked_means(values, graph, walk, n_jobs)
    for k, name in enumerate(numbers):
        yield f"{name}_mean_neighbours", means[:, k]
        yield f"{name}_pagerank", walked[:, k]


def walked_means(values: np.ndarray, graph: Graph, walk: Walk, n_jobs: int | None) -> np.ndarray:
    """PageRank means of columns over the nodes whose value is not NaN, the node itself included, (node, column)."""
    sets = Neighbourhood(undirected=True)(graph, dtype=np.float64)
    run = Run(n_jobs=n_jobs)
    known = ~np.isnan(values)
    gaps = ~known.all(axis=0)
    points = np.hstack([np.where(known, values, 0.0), known[:, gaps].astype(np.float64)])
    sums, ratio = walk_averages(points, sets, walk, engine=run.engine(ONE_STEP), n_jobs=n_jobs)
    means = sums[:, : values.shape[1]] * ratio
    means[:, gaps] = _quotient(means[:, gaps], sums[:, values.shape[1] :] * ratio)
    return means


def structural_columns(graph: Graph, *, directed: bool) -> Named:
    """Log-degrees, triangles, clustering, PageRank and the core number, from the edges alone."""
    A = sp.csr_array(graph.adjacency, dtype=np.float64)
    into, out = np.log1p(A.sum(axis=1)), np.log1p(A.sum(axis=0))
    if directed:
        yield "log_in_degree", into
        yield "log_out_degree", out
    else:
        yield "log_degree", into
    local = local_columns(Edges(graph)).astype(np.float64)  # logarithms in a scale of their own
    yield "log_degree_mean_neighbours", local[:, 2] * np.log1p(10.0)
    yield "triangles", np.rint(np.expm1(local[:, 3] * np.log1p(10.0))).astype(np.int64)
    yield "clustering", local[:, 4]
    yield "pagerank", np.expm1(local[:, 5]) / max(graph.n_nodes, 1)
    yield "core_number", np.rint(np.expm1(local[:, 6] * np.log1p(10.0))).astype(np.int64)


def label_columns(name: str, labels: pa.Array, graph: Graph, train: np.ndarray) -> Named:
    """Labels of the neighbours that train: their number, and the share of each class or the mean.

    The label of a node is in no column of its own row.
    """
    near = neighbours_of(graph)
    trains = np.zeros(graph.n_nodes, bool)
    trains[train] = True
    trains &= ~np.asarray(labels.is_null())
    has_edge = sp.csr_array((np.ones_like(near.data), near.indices, near.indptr), shape=near.shape)
    yield f"{name}_labelled_neighbours", (has_edge @ trains.astype(np.float64)).astype(np.int64)
    if pa.types.is_floating(labels.type):
        numbers: Any = as_number(labels)
        values = np.where(trains, numbers, np.nan)
        yield f"{name}_mean_neighbours", observed_means(near, values[:, None])[:, 0]
        return
    coded = labels.dictionary_encode() if not pa.types.is_dictionary(labels.type) else labels
    codes = np.array([-1 if code is None else code for code in coded.indices.to_pylist()])
    words = coded.dictionary.to_pylist()
    for k in sorted(set(codes[trains].tolist()), key=lambda k: str(words[k])):
        values = np.where(trains, (codes == k).astype(np.float64), np.nan)
        yield f"{name}={words[k]}_share_neighbours", observed_means(near, values[:, None])[:, 0]
