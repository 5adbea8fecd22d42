"""`Binding`: a fitted model with the data it is asked about: the rows, their multisets, and the points of every layer.

Parameters of the model are kept in float64, so that a decomposition adds up beyond the rounding of the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Progress, progress_bar
from fishergraph._validation import check_n_jobs
from fishergraph._warn import each_warning_once
from fishergraph.device import NUMPY, moved
from fishergraph.em.unit import NOISE
from fishergraph.estimators.node import FisherEmbedding, transform_input
from fishergraph.estimators.sets import FisherSetEmbedding, set_input
from fishergraph.estimators.source import Source
from fishergraph.estimators.table_input import names_of_features
from fishergraph.explain.names import MemberNames, Names, column_names
from fishergraph.layer import Run
from fishergraph.multiset import Rule
from fishergraph.ops.engine import array_engine
from fishergraph.passes import Pass
from fishergraph.stack import Stack
from fishergraph.structural.local import LOCAL_NAMES


@dataclass(frozen=True, eq=False)
class Binding:
    """A fitted stack and its data, in host memory.

    stack : the settings and what was learned, in float64.
    fitted : the same as it was fitted.
    rule : the multiset of the fit, or None for sets of vectors.
    rows : X, or the structural columns that stand for it, dense or CSR; of sets their members.
    sets : the multisets that are embedded.
    points : those of layer 1, 2, …, (point, feature).
    structural : the structural columns by kind.
    names, member_names, column_names : of the multisets, of the points, and of the columns of X.
    """

    stack: Stack
    fitted: Stack
    rule: Rule | None
    rows: Any
    sets: Any
    points: list[np.ndarray]
    structural: dict[str, np.ndarray]
    names: Names
    member_names: Names | MemberNames
    column_names: np.ndarray
    n_jobs: int | None
    progress: Progress

    @property
    def n_rows(self) -> int:
        """The number of multisets."""
        return self.sets.n_sets

    def names_of_columns(self, block: str) -> np.ndarray:
        """The names of the columns that a block is a sum over: of X, or of the structure."""
        columns = self.structural.get(block)
        return self.column_names if columns is None else structural_names(block, columns.shape[1])

    @property
    def noise(self) -> float:
        """The largest entry of a row of averages that counts as zero, as in a pass."""
        return 8 * NOISE * float(np.finfo(self.rows.dtype).eps)


@dataclass(frozen=True)
class Data:
    """What a model is asked about, as the user passed it."""

    X: Any = None
    graph: Any = None
    weights: Any = None
    ids: Any = None
    feature_names: Any = None


@each_warning_once()
def bind(model: object, data: Data) -> Binding:
    """The binding of a fitted model and its data; raises if they do not belong together."""
    if isinstance(data.X, Source):
        expected, advice = "be features in memory", "pass the features and the graph of a part of the nodes"
        raise InputTypeError(parameter="X", expected=expected, got="a store", advice=advice)
    if isinstance(model, FisherSetEmbedding):
        _check_left_out("graph", data.graph, "an embedding of sets")
        return _bind_sets(model, data)
    if not isinstance(model, FisherEmbedding):
        expected, advice = "be a FisherEmbedding or a FisherSetEmbedding", "pass the fitted embedding"
        raise InputTypeError(parameter="model", expected=expected, got=type(model).__name__, advice=advice)
    _check_left_out("weights", data.weights, "an embedding of nodes")
    return _bind_nodes(model, data)


def _check_left_out(parameter: str, value: object, kind: str) -> None:
    if value is not None:
        raise InputTypeError(parameter=parameter, expected=f"be left out for {kind}", got="one", advice="leave it out")


def _bind_nodes(model: FisherEmbedding, data: Data) -> Binding:
    X, rule = data.X, model.multiset_ if hasattr(model, "multiset_") else None
    stack, read = transform_input(model, _on_host(X), data.graph)
    if rule is not None and not rule.keeps_nodes:
        raise InputError(
            parameter="model",
            expected="embed nodes by their own multisets",
            got=f"one with multiset={rule!r}, which averages rows of tuples",
            advice="fit one with another multiset",
        )
    run = Run(NUMPY, check_n_jobs(model.n_jobs), progress_bar(model.verbose))
    with one_blas_thread(), array_engine():
        running = Pass(stack, read.X, read.sets, run, structural=read.structural)
        points = [_points(stage, run) for stage in islice(running.stages(), stack.n_layers)]
    known = names_of_features(model)
    if model.structural_ and X is None and model.structure_ is not None:
        known = structural_names(model.structure_.structure.kinds[0], read.X.shape[1])
    ids = getattr(X, "ids", None) if data.ids is None and hasattr(X, "graph") else data.ids
    names = Names(read.ids if ids is None else ids, read.X.shape[0])
    columns = column_names(data.feature_names, known, read.X.shape[1])
    of_run = (run.n_jobs, run.progress)
    return Binding(
        _wide(stack), stack, rule, read.X, read.sets, points, read.structural, names, names, columns, *of_run
    )


def _bind_sets(model: FisherSetEmbedding, data: Data) -> Binding:
    stack, read, points = set_input(model, data.X, data.weights)
    names = Names(data.ids, read.sets.n_sets)
    members = MemberNames(names, np.asarray(read.sets.indptr))
    columns = column_names(data.feature_names, getattr(model, "feature_names_in_", None), read.points.shape[1])
    of_run = (check_n_jobs(model.n_jobs), progress_bar(model.verbose))
    return Binding(_wide(stack), stack, None, read.points, read.sets, [points], {}, names, members, columns, *of_run)


def _wide(stack: Stack) -> Stack:
    """The fitted stack in float64."""
    return moved(stack, lambda array: np.asarray(array, np.float64))


def structural_names(kind: str, n_columns: int) -> np.ndarray:
    """The names of structural columns."""
    names = LOCAL_NAMES if kind == "local" else [f"{kind}_{k}" for k in range(n_columns)]
    return np.array(names, dtype=object)


def _points(stage: Any, run: Run) -> Any:
    stage.run(run)
    return stage.points


def _on_host(X: Any) -> Any:
    """A tensor as a NumPy array; anything else as it is."""
    return X.detach().cpu().numpy() if is_torch_array(X) else X
