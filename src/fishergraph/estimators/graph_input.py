"""What the nodes of graphs enter the first layer with: features, one-hot tags, degrees, core numbers, edge tags.

Each part has rows of length about one, and the parts stand side by side. Features are standardised and divided by the
root of their number. A tag is a one-hot vector over the tags seen in fit; one that fit has not seen gives zeros. A
degree is a one-hot vector over the degrees seen in fit; another one counts as the nearest of them. So is a core number:
the largest k such that the node is in a part of the graph where everyone has k neighbours. Tags of edges enter as the
unit vector of log(1 + number of edges with the tag) at the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph import _arrays, _validation
from fishergraph._arrays import EXACT_IN_SINGLE, as_floats
from fishergraph._errors import InputError
from fishergraph._parallel import row_blocks
from fishergraph._records import changed
from fishergraph._repr import short_repr
from fishergraph.em.unit import unit_rows
from fishergraph.family.support import stored_entries
from fishergraph.graphs import NO_EDGE_TAGS, Graphs
from fishergraph.kernel_map import StandardMap, fit_standard


@dataclass(frozen=True)
class NodeCode:
    """The fitted code of nodes: which parts it has, and what each has learned.

    parts : the names of `PARTS`, in their order.
    tags, degrees, cores, edge_tags : sorted arrays of what fit has seen, or None.
    standard : the map that standardises features, or None.
    """

    parts: tuple[str, ...]
    tags: np.ndarray | None = None
    degrees: np.ndarray | None = None
    cores: np.ndarray | None = None
    edge_tags: np.ndarray | None = None
    standard: StandardMap | None = None

    __repr__ = short_repr

    def __call__(self, graphs: Graphs) -> Any:
        """The coded nodes, (node, column) float32: CSR if no part is dense."""
        if graphs.edge_tags is None and graphs.graph.n_edges == 0:
            graphs = changed(graphs, edge_tags=NO_EDGE_TAGS)
        for part in self.parts:
            PARTS[part].check(graphs)
        coded = [PARTS[part].code(self, graphs) for part in self.parts]
        if all(sp.issparse(part) for part in coded):
            return sp.csr_array(sp.hstack(coded, format="csr"))
        return np.concatenate([part.toarray() if sp.issparse(part) else part for part in coded], axis=1)


def fit_code(graphs: Graphs, inputs: str | Sequence[str]) -> NodeCode:
    """The code of the nodes of these graphs; `inputs` is "auto", all there is and the degrees, or names of parts."""
    if graphs.edge_tags is not None and not len(graphs.edge_tags.tags):
        graphs = changed(graphs, edge_tags=None)
    if isinstance(inputs, str) and inputs == "auto":
        parts = tuple(name for name, part in PARTS.items() if part.auto and part.present(graphs))
    else:
        parts = part_names(inputs)
        for name in parts:
            _validation.look_up(PARTS, name, "inputs (or 'auto')").check(graphs)
    if not parts or len(set(parts)) != len(parts):
        raise InputError(
            parameter="inputs",
            expected=f"be 'auto' or distinct names out of {', '.join(map(repr, PARTS))}",
            got=f"{inputs!r}",
            advice="name at least one",
        )
    learned: dict[str, Any] = {}
    if "features" in parts:
        learned["standard"] = fit_standard(_checked(graphs))
    if "tags" in parts:
        learned["tags"] = np.unique(np.asarray(graphs.tags))
    if "degrees" in parts:
        learned["degrees"] = np.unique(degrees_of(graphs))
    if "cores" in parts:
        learned["cores"] = np.unique(cores_of(graphs))
    if "edge-tags" in parts:
        learned["edge_tags"] = np.unique(graphs.edge_tags.tags)  # type: ignore[union-attr]
    return NodeCode(parts, **learned)


def part_names(inputs: str | Sequence[str]) -> tuple[Any, ...]:
    """The names in `inputs`; a single one stands for itself."""
    several = isinstance(inputs, (list, tuple)) or (isinstance(inputs, np.ndarray) and inputs.ndim > 0)
    return tuple(inputs) if several else (inputs,)


def degrees_of(graphs: Graphs) -> np.ndarray:
    """The number of neighbours of every node, without self-loops."""
    graph = graphs.graph
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    return np.diff(graph.indptr) - np.bincount(rows[rows == graph.indices], minlength=graph.n_nodes)


def cores_of(graphs: Graphs) -> np.ndarray:
    """The core number of every node; directions and self-loops do not matter."""
    from fishergraph.cores import core_numbers

    both = sp.csr_array(graphs.graph.adjacency, copy=True)
    both.data = np.ones(len(both.data), np.float32)
    both = sp.csr_array(both + both.T)
    both.setdiag(0)
    both.eliminate_zeros()
    return core_numbers(both.indptr, both.indices)


@dataclass(frozen=True)
class _Part:
    """One part of the code.

    present : whether graphs have it.
    missing : what graphs without it lack, for an error.
    code : its matrix.
    auto : whether "auto" takes it.
    """

    present: Callable[[Graphs], bool]
    missing: str
    code: Callable[[NodeCode, Graphs], Any]
    auto: bool = True

    def check(self, graphs: Graphs) -> None:
        """Raise if the graphs lack what this part codes."""
        if not self.present(graphs):
            raise InputError(
                parameter="graphs",
                expected=f"have {self.missing}",
                got="none",
                advice="add them, or leave them out of inputs and refit",
            )


def _features(code: NodeCode, graphs: Graphs) -> np.ndarray:
    assert code.standard is not None
    standard, X = code.standard, _checked(graphs)
    if X.shape[1] != standard.n_outputs:
        raise InputError(
            parameter="graphs",
            expected=f"have {standard.n_outputs} features, as in fit",
            got=f"{X.shape[1]}",
            advice="pass the same kind",
        )
    out = np.empty(X.shape, np.float32)
    for rows in row_blocks(len(out)):
        out[rows] = standard(X[rows]) / np.sqrt(X.shape[1])
    return out


def name_node(graphs: Graphs) -> Callable[[int], str]:
    """row index → its name in an error."""

    def name(row: int) -> str:
        number = int(np.searchsorted(graphs.graph_ptr, row, side="right")) - 1
        return f"node {row - graphs.graph_ptr[number]} of graph {number}"

    return name


def _checked(graphs: Graphs) -> Any:
    """The finite features in float32, dense or CSR; in float64 if some are beyond 2²⁴.

    float32 would lose digits of those before they are centred.
    """
    X = as_floats(graphs.X, "features")
    _arrays.check_finite_rows(X, name_row=name_node(graphs))
    values, indptr = stored_entries(X)
    most = float(np.finfo(np.float32).max)
    _arrays.check_within(values, "features", most, indptr=indptr, name_row=name_node(graphs))
    largest = np.abs(values).max(initial=0)
    return X if largest > EXACT_IN_SINGLE else X.astype(np.float32, copy=False)


def _one_hot(columns: np.ndarray, present: np.ndarray, n_columns: int) -> sp.csr_array:
    """Rows with a one in the column if it is present, else zeros."""
    indptr = np.concatenate([[0], np.cumsum(present)])
    return sp.csr_array((np.ones(indptr[-1], np.float32), columns[present], indptr), shape=(len(columns), n_columns))


def _find(values: np.ndarray, learned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index among the learned values, whether it is one of them) of every value; texts are compared with texts."""
    if len(values) and values.dtype.kind != learned.dtype.kind:
        kind = "texts" if learned.dtype.kind == "U" else "integers"
        raise InputError(
            parameter="tags", expected=f"be {kind}, as in fit", got=f"{values.dtype}", advice="convert them"
        )
    indices = np.minimum(np.searchsorted(learned, values), len(learned) - 1)
    return indices, learned[indices] == values


def _tags(code: NodeCode, graphs: Graphs) -> sp.csr_array:
    assert code.tags is not None
    return _one_hot(*_find(np.asarray(graphs.tags), code.tags), len(code.tags))


def _degrees(code: NodeCode, graphs: Graphs) -> sp.csr_array:
    return _nearest(degrees_of(graphs), code.degrees)


def _cores(code: NodeCode, graphs: Graphs) -> sp.csr_array:
    return _nearest(cores_of(graphs), code.cores)


def _nearest(values: np.ndarray, learned: np.ndarray | None) -> sp.csr_array:
    """Rows with a one at the learned value that is nearest, of two the smaller."""
    assert learned is not None
    right = np.clip(np.searchsorted(learned, values), 1 if len(learned) > 1 else 0, len(learned) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(values - learned[left] <= learned[right] - values, left, right)
    return _one_hot(nearest, np.ones(len(values), dtype=bool), len(learned))


def _edge_tags(code: NodeCode, graphs: Graphs) -> sp.csr_array:
    assert code.edge_tags is not None
    assert graphs.edge_tags is not None
    indices, present = _find(graphs.edge_tags.tags, code.edge_tags)
    ends = (graphs.edge_tags.nodes[present], indices[present])
    shape = (graphs.n_nodes, len(code.edge_tags))
    counts = sp.csr_array(sp.coo_array((np.ones(len(ends[0]), np.float32), ends), shape=shape))
    counts.data = np.log1p(counts.data)
    return sp.csr_array(unit_rows(counts))


PARTS: dict[str, _Part] = {
    "features": _Part(lambda graphs: graphs.X is not None, "features", _features),
    "tags": _Part(lambda graphs: graphs.tags is not None, "tags", _tags),
    "edge-tags": _Part(lambda graphs: graphs.edge_tags is not None, "tags of edges", _edge_tags),
    "degrees": _Part(lambda graphs: True, "", _degrees),
    "cores": _Part(lambda graphs: True, "", _cores, auto=False),
}
