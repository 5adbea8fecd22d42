"""The nodes that a call is asked for: a mask, ids, or row numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fishergraph._arrays import plain_array
from fishergraph._errors import InputError, InputTypeError, UnknownNodeError
from fishergraph._parallel import one_blas_thread
from fishergraph._records import type_name
from fishergraph._typing import GraphLike, IdsLike, MatrixLike, NodesLike, Sets
from fishergraph.device import moved
from fishergraph.estimators.arguments import find_source
from fishergraph.estimators.base import FisherTransformer
from fishergraph.estimators.inputs import NodeInput
from fishergraph.estimators.relational import RelationalSource
from fishergraph.estimators.source import NodeJob, NodeResult
from fishergraph.io.lookup import IdRows
from fishergraph.part import transform_part
from fishergraph.stack import Stack


class SomeNodes(FisherTransformer):
    """`transform` of some nodes alone."""

    _job: Callable[..., NodeJob]
    _unchanged: Callable[[], Stack]

    @abstractmethod
    def _prepared(self, X: MatrixLike, graph: GraphLike) -> tuple[Stack, NodeInput]:
        """The fitted stack, and what `transform` reads."""

    def _transform_part(self, X: MatrixLike, graph: GraphLike, nodes: NodesLike) -> Any:
        """The embedding of some nodes."""
        source, left = find_source(X, graph)
        if isinstance(source, RelationalSource):
            chosen = _rows_by_type(nodes, source)
            done = source.embed(self._job(self._unchanged(), source, left))
            return self._named(*_taken(done, chosen))
        if source is not None:
            expected, got = "be left out for a graph in a store", "nodes"
            advice = "transform the store, and read the rows of the result: StoredEmbedding.rows(ids)"
            raise InputError(parameter="nodes", expected=expected, got=got, advice=advice)
        fitted, (rows, sets, workspace, ids, structural) = self._prepared(X, graph)
        chosen, names = read_nodes_of(nodes, ids, n_result_rows(sets))
        run = self._run(workspace, fitted.layer.em, dict)
        with one_blas_thread(), workspace.working(self.n_jobs):
            stack = moved(fitted, lambda array: workspace.put(array, rows.dtype))
            return self._named(transform_part(stack, rows, sets, run, structural, chosen), names)


def _rows_by_type(nodes: NodesLike, source: RelationalSource) -> dict[str, tuple[np.ndarray, Any]]:
    """The rows of every type that is asked for, and their ids; the nodes of the only type need no name."""
    sizes = source.relations.sizes
    if not isinstance(nodes, Mapping):
        if len(sizes) > 1:
            expected, got = "be a mapping of types of nodes to masks or ids", type_name(nodes)
            advice = f"pass nodes={{{next(iter(sizes))!r}: …}}"
            raise InputTypeError(parameter="nodes", expected=expected, got=got, advice=advice)
        nodes = {next(iter(sizes)): nodes}
    for name in nodes:
        if name not in sizes:
            expected = f"be one of {', '.join(map(repr, sizes))}"
            raise InputError(parameter="a type in nodes", value=name, expected=expected)
    return {name: read_nodes_of(part, source.labels[name], sizes[name]) for name, part in nodes.items()}


def _taken(done: NodeResult, chosen: Mapping[str, tuple[np.ndarray, Any]]) -> tuple[Any, Any]:
    """Some rows of a result, and their ids."""
    if not isinstance(done.output, dict):
        ((rows, ids),) = chosen.values()
        return done.output[rows], ids
    ids = {name: one for name, (_, one) in chosen.items()}
    return {name: done.output[name][rows] for name, (rows, _) in chosen.items()}, ids


def n_result_rows(sets: Sets) -> int:
    """The number of rows of a result: one per set, or one per node if the sets are of tuples."""
    pool = getattr(sets, "pool", None)
    return sets.n_sets if pool is None else pool.n_sets


def read_nodes_of(nodes: NodesLike, ids: IdsLike, n_rows: int) -> tuple[np.ndarray, Any]:
    """The row numbers of the nodes that are asked for, in their order, and the ids of these rows.

    A mask says it for itself. Integers are ids if the rows have any, and row numbers if not; these are the ids then.
    """
    mask = _as_mask(nodes)
    if mask is not None:
        if mask.shape != (n_rows,):
            expected, got = f"be a mask with an entry for each of the {n_rows:,} rows", f"shape {mask.shape}"
            raise InputError(parameter="nodes", expected=f"{expected}, or ids", got=got)
        rows = np.flatnonzero(mask)
        if not len(rows):
            raise InputError(parameter="nodes", expected="name at least one node", got="a mask without any")
    else:
        rows = _numbered(nodes, ids, n_rows)
    if ids is None:
        return rows, rows
    known: Any = ids
    return rows, known[rows] if hasattr(ids, "dtype") else [known[row] for row in rows.tolist()]


def _as_mask(nodes: NodesLike) -> np.ndarray | None:
    """The nodes as a mask; None if they are something else."""
    if isinstance(nodes, (str, bytes)) or not hasattr(nodes, "__len__"):
        return None
    if isinstance(nodes, (list, tuple)):
        return np.array(nodes) if nodes and all(isinstance(node, (bool, np.bool_)) for node in nodes) else None
    if not str(getattr(nodes, "dtype", "")).lower().removeprefix("torch.").startswith("bool"):
        return None
    return plain_array(nodes, "nodes").astype(bool)


def _numbered(nodes: NodesLike, ids: IdsLike, n_rows: int) -> np.ndarray:
    """The rows of ids, or of row numbers if there are no ids."""
    known = IdRows(ids, n_rows, "nodes")
    try:
        return known.rows(nodes)
    except UnknownNodeError as error:
        value: Any = error.value
        if not known.counted and isinstance(value, int | np.integer) and 0 <= value < n_rows:
            raise error.revised(advice=f"{error.advice}; pass a mask of rows, or graph.ids[rows]") from None
        raise
    except InputError as error:
        if "rows=" in getattr(error, "advice", ""):
            raise error.revised(advice="pass ids, or a mask with an entry for each row") from None
        raise
