"""Cora, Citeseer and Pubmed from the original Planetoid files `ind.<name>.<part>`.

Seven of the eight parts are Python pickles, which `pickled` parses without running them.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import FileFormatError, InputError
from fishergraph.datasets.pickled import parse
from fishergraph.datasets.records import GraphData, check_nodes, undirected_graph
from fishergraph.datasets.sources import PLANETOID_PARTS
from fishergraph.io.files import check_regular
from fishergraph.io.npz import single

PARTS = PLANETOID_PARTS
_ADVICE = "replace it with the published file"
N_VALIDATION = 500


def file_name(name: str, part: str) -> str:
    """The published name of one part."""
    return f"ind.{name}.{part}"


def load_pickle(path: Path) -> Any:
    """The array, CSR matrix or container of a pickle file; nothing in it is run."""
    check_regular(path)
    try:
        return parse(path.read_bytes())
    except FileFormatError as error:
        raise error.revised(path=path) from error
    except InputError as error:  # of a matrix
        raise FileFormatError(path=path, reason=error.problem, advice=_ADVICE) from error
    except ValueError as error:  # of a text
        raise FileFormatError(path=path, reason=str(error), advice=_ADVICE) from error


def planetoid_names(folder: Path) -> list[str]:
    """The names of the graphs that have all their files in the folder."""
    if not folder.is_dir():
        return []
    names = sorted(path.name.removeprefix("ind.").removesuffix(".allx") for path in folder.glob("ind.*.allx"))
    return [name for name in names if all((folder / file_name(name, part)).is_file() for part in PARTS)]


def read_planetoid(folder: str | Path, name: str | None = None) -> GraphData:
    """Read a graph from the eight files of Planetoid, with the public split.

    Nodes that the test index skips (15 in Citeseer) become isolated nodes with zero features and class 0, as in other
    readers. Self-loops and repeated edges are dropped. Features are not normalised.

    Parameters
    ----------
    folder : str or path
        The folder of the files ``ind.<name>.<part>``.
    name : str, default=None
        The name of the graph; by default that of the only one in the folder.

    Returns
    -------
    GraphData
        Features, adjacency, labels and split.

    See Also
    --------
    read_graph : Read a graph in any layout.

    Examples
    --------
    >>> from fishergraph.datasets import read_planetoid
    >>> read_planetoid("data/planetoid", "citeseer")  # doctest: +SKIP
    GraphData('citeseer': 3,327 nodes, 9,104 directed edges, 3,703 sparse features, 6 classes, one split)
    """
    folder = Path(folder)
    if name is None:
        names = planetoid_names(folder)
        if len(names) != 1:
            reason = f"it must hold the files of one Planetoid graph, got {', '.join(names) or 'none'}"
            advice = "pass its name, load_graph(name, data_home=folder)"
            raise FileFormatError(path=folder, reason=reason, advice=advice)
        name = names[0]
    parts = _read_parts(folder, name)
    try:
        return _assemble(name, parts, folder / file_name(name, "graph"))
    except FileFormatError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        problem = error.problem if isinstance(error, InputError) else str(error)
        reason = f"the eight files do not fit together ({problem})"
        advice = "replace them with the published files"
        raise FileFormatError(path=folder / file_name(name, "*"), reason=reason, advice=advice) from error


def _read_parts(folder: Path, name: str) -> SimpleNamespace:
    """The parts as attributes x, y, tx, ty, allx, ally, graph and test."""
    parts = {part: load_pickle(folder / file_name(name, part)) for part in PARTS if part != "test.index"}
    index_file = folder / file_name(name, "test.index")
    check_regular(index_file)
    try:
        test = np.array(index_file.read_text().split(), dtype=np.int64)
    except ValueError as error:  # of a number, or of text in another encoding
        reason = f"it must hold one node number per line ({error})"
        raise FileFormatError(path=index_file, reason=reason, advice=_ADVICE) from error
    return SimpleNamespace(**parts, test=test)


def _assemble(name: str, parts: SimpleNamespace, graph_path: Path) -> GraphData:
    """The record: rows of allx first, row i of tx at node test[i]."""
    _check_kinds(parts)
    n_first = parts.allx.shape[0]
    n_nodes = max(n_first, int(parts.test.max()) + 1)
    if parts.test.min() < n_first or parts.tx.shape[0] != len(parts.test) or parts.x.shape[0] != len(parts.y):
        raise IndexError("the test index does not follow the rows of allx, or a part has too few rows")
    if n_nodes > n_first + max(2 * len(parts.test), len(parts.graph)):
        raise IndexError(f"the test index names node {n_nodes - 1}, but the other parts have far fewer")
    first, last = parts.allx.tocoo(), parts.tx.tocoo()  # (node, feature) triples
    values = single(np.concatenate([first.data, last.data]), "the features")
    rows = np.concatenate([first.row, parts.test[last.row]])
    columns = np.concatenate([first.col, last.col])
    y = np.zeros(n_nodes, dtype=np.int64)
    y[:n_first] = parts.ally.argmax(axis=1)
    y[parts.test] = parts.ty.argmax(axis=1)
    n_train = parts.x.shape[0]
    X = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(n_nodes, first.shape[1])))
    check_finite_rows(X, "the features")
    return GraphData(
        name=name,
        X=X,
        graph=_graph(parts.graph, n_nodes, graph_path),
        y=y,
        train=np.arange(n_train),
        val=np.arange(n_train, min(n_train + N_VALIDATION, n_first)),
        test=np.sort(parts.test),
    )


def _check_kinds(parts: SimpleNamespace) -> None:
    """Raise unless features are CSR matrices, labels arrays with a column per class, and the graph a dictionary."""
    features, labels = (parts.x, parts.tx, parts.allx), (parts.y, parts.ty, parts.ally)
    dense = all(isinstance(part, np.ndarray) and part.ndim == 2 and part.shape[1] > 0 for part in labels)
    if not dense or not all(map(sp.issparse, features)) or not isinstance(parts.graph, dict) or not len(parts.test):
        raise TypeError("a part is of another type than its name says")


def _graph(neighbours: dict[int, list[int]], n_nodes: int, path: Path) -> sp.csr_array:
    """The symmetric adjacency of neighbour lists, without self-loops."""
    counts = [len(targets) for targets in neighbours.values()]
    sources = np.repeat(np.array(list(neighbours), dtype=np.int64), counts)
    targets = np.array([target for row in neighbours.values() for target in row], dtype=np.int64)
    check_nodes(path, n_nodes, sources, targets)
    proper = sources != targets
    return undirected_graph(sources[proper], targets[proper], n_nodes)
