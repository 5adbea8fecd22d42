"""What every loader of labelled graphs returns: one frozen record of many graphs, and the `.npz` files of such sets.

Arrays of a file: `graph_ptr` (graph + 1,), the first node of every graph; `y` (graph,); edges as `edge_index` (2, edge)
over all nodes, in one direction or both, or for dense graphs as `adj_upper_bits`, the bits (`numpy.packbits`) of the
upper triangles, n(n − 1)/2 per graph in the order of `numpy.triu_indices(n, 1)`; optionally `node_tag` (node,),
features dense `x` (node, feature) or the CSR pieces `x_data, x_indices, x_indptr, x_shape`, `edge_weight` (edge,), the
tags of edges at their ends `edge_tag_node` and `edge_tag`, and folds as pairs `<name><k>_train`, `<name><k>_test` of
graph numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._archive_checks import FREE_COUNT
from fishergraph._file_checks import check_readable, replacing
from fishergraph._npz_files import feature_arrays, has_features
from fishergraph.datasets.npz import misfit, read_arrays, read_edges, read_features, read_integers
from fishergraph.datasets.prepare import check_nodes, undirected_graph
from fishergraph.graph import as_graph
from fishergraph.graphs import EdgeTags, Graphs

Fold = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet:
    """Labelled graphs with their fixed folds.

    name     short name, as given to `load_graphs`
    graphs   the graphs with tags and features, what `FisherGraphEmbedding` takes
    y        class numbers, (graph,) int64
    folds    pairs (train, test) of graph numbers; empty where the data has no fixed folds
    classes  the label of class k in place k, as the source writes it
    source   where it comes from
    """

    name: str
    graphs: Graphs
    y: np.ndarray
    folds: tuple[Fold, ...] = ()
    classes: tuple[str, ...] = ()
    source: str = ""

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        folds = f"{len(self.folds)} folds" if self.folds else "no folds"
        return f"GraphSet({self.name!r}: {self.graphs!r}, {len(np.unique(self.y))} classes, {folds})"


def read_graph_npz(path: str | Path, name: str | None = None) -> GraphSet:
    """The graphs of one `.npz` file, symmetrised; a tag that all nodes share says nothing and is dropped."""
    path = Path(path)
    check_readable(path)
    with path.open("rb") as stream:
        arrays = read_arrays(stream, str(path))
    where = str(path)
    graph_ptr = read_integers(arrays, "graph_ptr", where)
    sound = graph_ptr.ndim == 1 and len(graph_ptr) > 1 and graph_ptr[0] == 0
    if not sound or (np.diff(graph_ptr) <= 0).any():
        raise misfit(where, "'graph_ptr' that rises from 0, every graph with a node", f"shape {graph_ptr.shape}")
    n_nodes, n_graphs = int(graph_ptr[-1]), len(graph_ptr) - 1
    y = read_integers(arrays, "y", where)
    if y.shape != (n_graphs,):
        raise misfit(where, f"'y' of shape ({n_graphs},)", f"shape {y.shape}")
    entries = sum(array.size for array in arrays.values())
    if n_nodes > max(FREE_COUNT, 8 * entries):
        raise misfit(where, f"at most {max(FREE_COUNT, 8 * entries):,} nodes beside its other arrays", f"{n_nodes:,}")
    sources, targets = _edges(arrays, graph_ptr, where)
    if "edge_weight" in arrays:
        graph = as_graph((np.stack([sources, targets]), arrays["edge_weight"]), undirected=True, n_nodes=n_nodes)
    else:
        graph = as_graph(undirected_graph(sources, targets, n_nodes))
    tags = read_integers(arrays, "node_tag", where) if "node_tag" in arrays else None
    if tags is not None and tags.shape != (n_nodes,):
        raise misfit(where, f"'node_tag' of {n_nodes} nodes", f"shape {tags.shape}")
    X = read_features(arrays, n_nodes, where) if has_features(arrays) else None
    if tags is not None and (tags == tags[0]).all():
        tags = None
    folds = _folds(arrays, n_graphs, where)
    classes, codes = np.unique(y, return_inverse=True)
    found = Graphs(graph, graph_ptr, X, tags, _edge_tags(arrays, n_nodes, where))
    return GraphSet(name or path.stem, found, codes.astype(np.int64), folds, tuple(map(str, classes)), where)


def _edge_tags(arrays: dict[str, np.ndarray], n_nodes: int, where: str) -> EdgeTags | None:
    """The tags of edges at the nodes where they end, or None."""
    if "edge_tag" not in arrays:
        return None
    nodes, tags = (read_integers(arrays, key, where) for key in ("edge_tag_node", "edge_tag"))
    if nodes.shape != tags.shape:
        raise misfit(where, "'edge_tag' and 'edge_tag_node' of one shape", f"{tags.shape} and {nodes.shape}")
    check_nodes(f"edge_tag_node in '{where}'", n_nodes, nodes)
    return EdgeTags(nodes, tags)


def write_graph_npz(data: GraphSet, path: str | Path) -> None:
    """Write a set of graphs in the layout above, every edge once; the file appears complete or not at all."""
    path, graphs = Path(path), data.graphs
    upper = sp.triu(graphs.graph.adjacency, format="coo")
    numbers = np.array([int(name) for name in data.classes]) if all(map(_is_number, data.classes)) else None
    arrays: dict[str, Any] = {
        "graph_ptr": graphs.graph_ptr,
        "edge_index": np.stack([upper.row, upper.col]),
        "y": data.y if numbers is None or not len(numbers) else numbers[data.y],
    }
    if graphs.graph.weights is not None:
        arrays["edge_weight"] = upper.data
    if graphs.X is not None:
        arrays |= feature_arrays(graphs.X)
    if graphs.tags is not None:
        whole = graphs.tags.dtype.kind in "iu"  # texts become numbers, in the order of the texts
        arrays["node_tag"] = graphs.tags if whole else np.unique(graphs.tags, return_inverse=True)[1]
    if graphs.edge_tags is not None:
        arrays |= {"edge_tag_node": graphs.edge_tags.nodes, "edge_tag": graphs.edge_tags.tags}
    for k, (train, test) in enumerate(data.folds):
        arrays |= {f"fold{k}_train": train, f"fold{k}_test": test}
    with replacing(path) as part, part.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _edges(arrays: dict[str, np.ndarray], graph_ptr: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The ends of all edges, each listed at least once; an edge stays inside its graph."""
    if "adj_upper_bits" in arrays:
        return _unpacked(arrays["adj_upper_bits"], graph_ptr, where)
    edges = read_edges(arrays, int(graph_ptr[-1]), where)
    check_inside(edges[0], edges[1], graph_ptr, where)
    return edges[0], edges[1]


def check_inside(sources: np.ndarray, targets: np.ndarray, graph_ptr: np.ndarray, where: str) -> None:
    """Raise where an edge goes from one graph to another."""
    graph_of = np.repeat(np.arange(len(graph_ptr) - 1), np.diff(graph_ptr))
    across = np.flatnonzero(graph_of[sources] != graph_of[targets])
    if len(across):
        k = across[0]
        raise misfit(
            where,
            "edges inside one graph",
            f"edge {k} from node {sources[k]} of graph {graph_of[sources[k]]} to graph {graph_of[targets[k]]}",
        )


def _unpacked(bits: np.ndarray, graph_ptr: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The edges of packed upper triangles."""
    sizes = np.diff(graph_ptr)
    needed = int((sizes * (sizes - 1) // 2).sum())
    if bits.dtype != np.uint8 or bits.size * 8 < needed:
        raise misfit(where, f"{needed} bits in 'adj_upper_bits'", f"{bits.size * 8} of {bits.dtype}")
    on = _positions(bits)
    starts = np.concatenate([[0], np.cumsum(sizes * (sizes - 1) // 2)])
    borders = np.searchsorted(on, starts)
    ends = []
    for k, size in enumerate(sizes):
        flat = on[borders[k] : borders[k + 1]] - starts[k]
        lengths = np.arange(size - 1, -1, -1)  # of the rows of the triangle
        behind = np.cumsum(lengths)
        rows = np.searchsorted(behind, flat, side="right")
        columns = flat - (behind[rows] - lengths[rows]) + rows + 1
        ends.append((rows + graph_ptr[k], columns + graph_ptr[k]))
    return np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends])


def _positions(bits: np.ndarray) -> np.ndarray:
    """The numbers of the bits that are set, found block by block: unpacked, all would take eight times the memory."""
    block = 1 << 20
    flat = bits.reshape(-1)
    parts = [8 * k + np.flatnonzero(np.unpackbits(flat[k : k + block])) for k in range(0, len(flat), block)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _folds(arrays: dict[str, np.ndarray], n_graphs: int, where: str) -> tuple[Fold, ...]:
    """The folds of one name, in the order of their numbers; files with inner splits have them for one name only."""
    pattern = re.compile(r"(.*?)(\d+)_test")
    found = [match for key in arrays if (match := pattern.fullmatch(key))]
    plain = [match for match in found if f"{match[1]}{match[2]}_val" not in arrays]
    folds = []
    for match in sorted(plain, key=lambda match: int(match[2])):
        parts = [read_integers(arrays, f"{match[1]}{match[2]}_{part}", where) for part in ("train", "test")]
        both = np.concatenate(parts)
        if both.size and (both.min() < 0 or both.max() >= n_graphs or len(np.unique(both)) != both.size):
            raise misfit(where, f"distinct graph numbers 0 to {n_graphs - 1} in fold {match[2]}", "others, or repeated")
        folds.append((parts[0], parts[1]))
    return tuple(folds)
