"""Graphs and sets of graphs in `.npz` files.

One graph, `<name>.npz`: `edge_index` (2, edge), in one direction or both, and `undirected`, true if it represents both,
which `load_graph` assumes and other readers do not; `y` (node,); features dense `x` (node, feature) or the CSR arrays
`x_data, x_indices, x_indptr, x_shape`; optionally `train_mask, val_mask, test_mask` of shape (node,) or (split, node),
`ids` (node,), `class_names` (class,), and the texts `licence` and `source`.

Several graphs: `graph_ptr` (graph + 1,), the first node of every graph; `y` (graph,); edges as `edge_index` (2, edge)
over all nodes, in one direction or both, or for dense graphs as `adj_upper_bits`, the bits (`numpy.packbits`) of the
upper triangles, n(n − 1)/2 per graph in the order of `numpy.triu_indices(n, 1)`; optionally `node_tag` (node,),
features as above, `edge_weight` (edge,), the tags of edges at their ends `edge_tag_node` and `edge_tag`, and folds as
pairs `<name><k>_train`, `<name><k>_test` of graph numbers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph.datasets.records import Fold, GraphData, GraphSet, Split, check_nodes, undirected_graph
from fishergraph.graph import as_graph
from fishergraph.graphs import EdgeTags, Graphs
from fishergraph.io import npz
from fishergraph.io.archives import FREE_COUNT
from fishergraph.io.files import replacing
from fishergraph.io.npz import Arrays, entry, integers, misfit

MASKS = ("train_mask", "val_mask", "test_mask")
CLASS_NAMES = {  # of the bundled graphs, in the order of Planetoid's class numbers
    "cora": (
        "Theory",
        "Reinforcement learning",
        "Genetic algorithms",
        "Neural networks",
        "Probabilistic methods",
        "Case-based reasoning",
        "Rule learning",
    ),
}
BUNDLED = tuple(CLASS_NAMES)
_SMALL = 1 << 28  # bytes; larger files are not compressed, which would take minutes


# --- one graph ------------------------------------------------------------------------------------------


def read_npz(path: str | Path, name: str | None = None) -> GraphData:
    """Read a graph from an npz file.

    Edges go both ways; pickled objects are refused.

    Parameters
    ----------
    path : str or path
        The file.
    name : str, default=None
        The name of the graph; by default that of the file.

    Returns
    -------
    GraphData
        Features, adjacency, labels and split.

    See Also
    --------
    read_graph : Read a graph in any layout.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph.datasets import load_graph, read_npz, write_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_npz(load_graph("cora"), f"{folder}/cora.npz")
    ...     read_npz(f"{folder}/cora.npz").n_nodes
    2708
    """
    path = Path(path)
    return _graph(npz.read_npz(path), name or path.stem, str(path))


def read_bundled(name: str) -> GraphData:
    """The bundled graph called `name`; its provenance is in data/README.md."""
    resource = files("fishergraph.datasets") / "data" / f"{name}.npz"
    path = f"{name}.npz in fishergraph/datasets/data"
    with resource.open("rb") as stream:
        arrays = npz.read_arrays(stream, path)
    return replace(_graph(arrays, name, path), class_names=CLASS_NAMES[name])


def _graph(arrays: Arrays, name: str, path: str) -> GraphData:
    y = node_labels(path, arrays, "y")
    n_nodes = len(y)
    train, val, test = (_split(path, arrays, mask, n_nodes) for mask in MASKS)
    sources, targets = _edge_index(path, arrays, n_nodes)
    ids = entry(path, arrays, "ids", (n_nodes,)) if "ids" in arrays else None
    if ids is not None and ids.dtype.kind not in "biufU":
        raise misfit(path, "numbers or text in 'ids'", str(ids.dtype))
    if ids is not None and ids.dtype.kind == "f" and not np.isfinite(ids).all():
        raise misfit(path, "finite numbers in 'ids'", "NaN or infinity")
    return GraphData(
        name=name,
        X=npz.read_features(path, arrays, n_rows=n_nodes),
        graph=undirected_graph(sources, targets, n_nodes),
        y=y,
        train=train,
        val=val,
        test=test,
        ids=ids,
        licence=str(arrays.get("licence", "")),
        source=str(arrays.get("source", path)),
        class_names=tuple(map(str, arrays["class_names"])) if "class_names" in arrays else None,
    )


def node_labels(path: str, arrays: Arrays, key: str) -> np.ndarray:
    """The labels of at least one node."""
    y = integers(path, arrays, key)
    if y.ndim != 1 or y.size == 0:
        raise misfit(path, f"{key!r} of shape (node,)", f"shape {y.shape}")
    return y


def _edge_index(path: str, arrays: Arrays, n_nodes: int) -> np.ndarray:
    """The ends of all edges, (2, edge) int64."""
    edges = entry(path, arrays, "edge_index")
    filled = edges.dtype.kind in "iu" or edges.size == 0  # np.array([[], []]) is float64
    if edges.ndim != 2 or edges.shape[0] != 2 or not filled:
        raise misfit(path, "integers of shape (2, edge) in 'edge_index'", f"{edges.dtype} of shape {edges.shape}")
    check_nodes(path, n_nodes, edges)
    return edges.astype(np.int64, copy=False)


def _split(path: str, arrays: Arrays, key: str, n_nodes: int) -> Split:
    """The node numbers of a mask: one array, or a list for a mask of several splits."""
    if key not in arrays:
        return None
    mask = arrays[key]
    if mask.dtype != bool or mask.ndim not in (1, 2) or mask.shape[-1] != n_nodes:
        expected = f"{key!r} of shape ({n_nodes},) or (split, {n_nodes}) and dtype bool"
        raise misfit(path, expected, f"shape {mask.shape} and dtype {mask.dtype}")
    if mask.ndim == 1:
        return np.flatnonzero(mask).astype(np.int64)
    return [np.flatnonzero(row).astype(np.int64) for row in mask]


def write_npz(data: GraphData, path: str | Path) -> None:
    """Write a graph to an npz file.

    The file appears complete or not at all, and lists every edge once.

    Parameters
    ----------
    data : GraphData
        The graph.
    path : str or path
        The file to write.

    See Also
    --------
    read_graph : Read it back, with an example.
    write_tables : Tables for other programs.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph.datasets import load_graph, read_npz, write_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_npz(load_graph("cora"), f"{folder}/cora.npz")
    ...     read_npz(f"{folder}/cora.npz").n_nodes
    2708
    """
    path = Path(path)
    upper = sp.triu(data.graph, format="coo")
    ends = np.stack([upper.row, upper.col])
    arrays: dict[str, Any] = {"edge_index": ends, "undirected": np.array(True), "y": data.y}
    arrays |= npz.feature_arrays(data.X)
    for key, part in zip(MASKS, (data.train, data.val, data.test), strict=True):
        if part is not None:
            arrays[key] = _mask(part, data.n_nodes)
    if data.ids is not None:
        arrays["ids"] = data.ids.astype(str) if data.ids.dtype == object else data.ids
    if data.class_names is not None:
        arrays["class_names"] = np.array(data.class_names, dtype=np.str_)
    arrays |= {key: np.array(text) for key in ("licence", "source") if (text := getattr(data, key))}
    save = np.savez_compressed if sum(array.nbytes for array in arrays.values()) < _SMALL else np.savez
    with replacing(path) as part, part.open("wb") as stream:
        save(stream, **arrays)


def _mask(part: np.ndarray | list[np.ndarray], n_nodes: int) -> np.ndarray:
    """(node,) or (split, node), true for the node numbers in the part."""
    if isinstance(part, list):
        return np.stack([_mask(one, n_nodes) for one in part])
    mask = np.zeros(n_nodes, dtype=bool)
    mask[part] = True
    return mask


# --- several graphs -------------------------------------------------------------------------------------


def read_graph_npz(path: str | Path, name: str | None = None) -> GraphSet:
    """Read a set of graphs from an npz file.

    Edges go both ways. A tag that all nodes share carries no information and is dropped.

    Parameters
    ----------
    path : str or path
        The file.
    name : str, default=None
        The name of the set; by default that of the file.

    Returns
    -------
    GraphSet
        Graphs, labels and folds.

    See Also
    --------
    fishergraph.load_graphs : Load a set by name or path.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fishergraph import as_graphs
    >>> from fishergraph.datasets import GraphSet, read_graph_npz, write_graph_npz
    >>> pair = GraphSet("pair", as_graphs([[(0, 1)], [(0, 1), (1, 2)]], undirected=True), np.array([0, 1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph_npz(pair, f"{folder}/pair.npz")
    ...     read_graph_npz(f"{folder}/pair.npz")
    GraphSet('pair': Graphs(2 graphs: 5 nodes, 6 directed edges), 2 classes, no folds)
    """
    path = Path(path)
    arrays, where = npz.read_npz(path), str(path)
    graph_ptr = integers(where, arrays, "graph_ptr")
    sound = graph_ptr.ndim == 1 and len(graph_ptr) > 1 and graph_ptr[0] == 0
    if not sound or (np.diff(graph_ptr) <= 0).any():
        raise misfit(where, "'graph_ptr' that increases from 0, every graph with a node", f"shape {graph_ptr.shape}")
    n_nodes, n_graphs = int(graph_ptr[-1]), len(graph_ptr) - 1
    y = integers(where, arrays, "y", (n_graphs,))
    most = max(FREE_COUNT, 8 * sum(array.size for array in arrays.values()))
    if n_nodes > most:
        raise misfit(where, f"at most {most:,} nodes for the size of its other arrays", f"{n_nodes:,}")
    sources, targets = _edges(arrays, graph_ptr, where)
    if "edge_weight" in arrays:
        graph = as_graph((np.stack([sources, targets]), arrays["edge_weight"]), undirected=True, n_nodes=n_nodes)
    else:
        graph = as_graph(undirected_graph(sources, targets, n_nodes))
    tags = integers(where, arrays, "node_tag", (n_nodes,)) if "node_tag" in arrays else None
    X = npz.read_features(where, arrays, n_rows=n_nodes) if npz.has_features(arrays) else None
    if tags is not None and (tags == tags[0]).all():
        tags = None
    folds = _folds(arrays, n_graphs, where)
    classes, codes = np.unique(y, return_inverse=True)
    graphs = Graphs(graph, graph_ptr, X, tags, _edge_tags(arrays, n_nodes, where))
    return GraphSet(name or path.stem, graphs, codes.astype(np.int64), folds, tuple(map(str, classes)), where)


def _edge_tags(arrays: Arrays, n_nodes: int, path: str) -> EdgeTags | None:
    """The tags of edges at the nodes where they end, or None."""
    if "edge_tag" not in arrays:
        return None
    nodes, tags = (integers(path, arrays, key) for key in ("edge_tag_node", "edge_tag"))
    if nodes.shape != tags.shape:
        raise misfit(path, "'edge_tag' and 'edge_tag_node' of one shape", f"{tags.shape} and {nodes.shape}")
    check_nodes(path, n_nodes, nodes)
    return EdgeTags(nodes, tags)


def _edges(arrays: Arrays, graph_ptr: np.ndarray, path: str) -> tuple[np.ndarray, np.ndarray]:
    """The ends of all edges, each listed at least once; an edge stays inside its graph."""
    if "adj_upper_bits" in arrays:
        return _unpacked(arrays["adj_upper_bits"], graph_ptr, path)
    sources, targets = _edge_index(path, arrays, int(graph_ptr[-1]))
    graph_of = np.repeat(np.arange(len(graph_ptr) - 1), np.diff(graph_ptr))
    across = np.flatnonzero(graph_of[sources] != graph_of[targets])
    if len(across):
        k = across[0]
        got = f"edge {k} from node {sources[k]} of graph {graph_of[sources[k]]} to graph {graph_of[targets[k]]}"
        raise misfit(path, "edges inside one graph", got)
    return sources, targets


def _unpacked(bits: np.ndarray, graph_ptr: np.ndarray, path: str) -> tuple[np.ndarray, np.ndarray]:
    """The edges of packed upper triangles."""
    sizes = np.diff(graph_ptr)
    needed = int((sizes * (sizes - 1) // 2).sum())
    if bits.dtype != np.uint8 or bits.size * 8 < needed:
        raise misfit(path, f"{needed} bits in 'adj_upper_bits'", f"{bits.size * 8} of {bits.dtype}")
    on = _set_bits(bits)
    starts = np.concatenate([[0], np.cumsum(sizes * (sizes - 1) // 2)])
    borders = np.searchsorted(on, starts)
    ends = []
    for k, size in enumerate(sizes):
        flat = on[borders[k] : borders[k + 1]] - starts[k]
        lengths = np.arange(size - 1, -1, -1)  # of the rows of the triangle
        row_ends = np.cumsum(lengths)
        rows = np.searchsorted(row_ends, flat, side="right")
        columns = flat - (row_ends[rows] - lengths[rows]) + rows + 1
        ends.append((rows + graph_ptr[k], columns + graph_ptr[k]))
    return np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends])


def _set_bits(bits: np.ndarray) -> np.ndarray:
    """The indices of the bits that are set, by blocks: all unpacked bits would take eight times the memory."""
    block = 1 << 20
    flat = bits.reshape(-1)
    parts = [8 * k + np.flatnonzero(np.unpackbits(flat[k : k + block])) for k in range(0, len(flat), block)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _folds(arrays: Arrays, n_graphs: int, path: str) -> tuple[Fold, ...]:
    """The folds of one name, in the order of their numbers; files with inner splits have them for one name only."""
    matches = [match for key in arrays if (match := re.fullmatch(r"(.*?)(\d+)_test", key))]
    plain = [match for match in matches if f"{match[1]}{match[2]}_val" not in arrays]
    folds = []
    for match in sorted(plain, key=lambda match: int(match[2])):
        parts = [integers(path, arrays, f"{match[1]}{match[2]}_{part}") for part in ("train", "test")]
        both = np.concatenate(parts)
        if both.size and (both.min() < 0 or both.max() >= n_graphs or len(np.unique(both)) != both.size):
            raise misfit(path, f"distinct graph numbers 0 to {n_graphs - 1} in fold {match[2]}", "others, or repeated")
        folds.append((parts[0], parts[1]))
    return tuple(folds)


def write_graph_npz(data: GraphSet, path: str | Path) -> None:
    """Write a set of graphs to an npz file.

    The file appears complete or not at all, and lists every edge once.

    Parameters
    ----------
    data : GraphSet
        The graphs, their labels and folds.
    path : str or path
        The file to write.

    See Also
    --------
    fishergraph.load_graphs : Read it back, with an example.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fishergraph import as_graphs
    >>> from fishergraph.datasets import GraphSet, read_graph_npz, write_graph_npz
    >>> pair = GraphSet("pair", as_graphs([[(0, 1)], [(0, 1), (1, 2)]], undirected=True), np.array([0, 1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph_npz(pair, f"{folder}/pair.npz")
    ...     read_graph_npz(f"{folder}/pair.npz")
    GraphSet('pair': Graphs(2 graphs: 5 nodes, 6 directed edges), 2 classes, no folds)
    """
    path, graphs = Path(path), data.graphs
    upper = sp.triu(graphs.graph.adjacency, format="coo")
    numeric = all(name.removeprefix("-").isdecimal() for name in data.classes)
    arrays: dict[str, Any] = {
        "graph_ptr": graphs.graph_ptr,
        "edge_index": np.stack([upper.row, upper.col]),
        "y": np.array([int(name) for name in data.classes])[data.y] if numeric and data.classes else data.y,
    }
    if graphs.graph.weights is not None:
        arrays["edge_weight"] = upper.data
    if graphs.X is not None:
        arrays |= npz.feature_arrays(graphs.X)
    if graphs.tags is not None:
        texts = graphs.tags.dtype.kind not in "iu"  # text becomes numbers, in the order of the texts
        arrays["node_tag"] = np.unique(graphs.tags, return_inverse=True)[1] if texts else graphs.tags
    if graphs.edge_tags is not None:
        arrays |= {"edge_tag_node": graphs.edge_tags.nodes, "edge_tag": graphs.edge_tags.tags}
    for k, (train, test) in enumerate(data.folds):
        arrays |= {f"fold{k}_train": train, f"fold{k}_test": test}
    with replacing(path) as part, part.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
