"""Several kinds of nodes and edges as the source of a `FisherEmbedding`: what is read, and one pass over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_weight_scale, is_table
from fishergraph._errors import FewPointsWarning, InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._records import check_same_rows, type_name
from fishergraph._typing import DType, GraphLike, MatrixLike
from fishergraph._validation import check_host_memory
from fishergraph._warn import each_warning_once
from fishergraph.device import NUMPY, Device
from fishergraph.estimators.inputs import InputSettings, host_rows
from fishergraph.estimators.relation_input import listed, read_relations
from fishergraph.estimators.source import NodeJob, NodeResult
from fishergraph.estimators.structure_input import StructureReader
from fishergraph.estimators.table_input import TypeEncoders, fit_table, read_table
from fishergraph.graphs.relations import Edges, Key, Relations
from fishergraph.layer import Run
from fishergraph.multiset import Multisets, Neighbourhood, Rule
from fishergraph.multiset.directions import aged
from fishergraph.multiset.members import weigh_members
from fishergraph.relational import Layout, NodeType, RelationalData, RelationalPass, RelationalStack
from fishergraph.stack import Stack

_NO_FEATURES = "give it features, leave out structure=None, or leave X out for all types"


class RelationalSource:
    """Several kinds of nodes and edges with features.

    Parameters
    ----------
    X : matrix, or mapping of str to matrix or None
        The features of the nodes of every type.
    graph : relations
        Anything that `as_relations` takes.
    """

    def __init__(self, X: MatrixLike, graph: GraphLike):
        self.X, self.graph = X, graph
        self.relations, self.features, self.labels = read_relations(X, graph)
        self.encoders = TypeEncoders()

    @property
    def n_features(self) -> int:
        """The columns of all types."""
        return sum(0 if rows is None else rows.shape[1] for rows in self.features.values())

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns of the only type, if it is a table."""
        names = [_column_names(rows) for rows in self.features.values()]
        return None if len(names) != 1 or names[0] is None else list(names[0])

    def make_stack(self, undirected: bool) -> Callable[..., Stack]:
        """What makes the settings of a stack over these types and relations."""
        if undirected:
            self.relations = self.relations.both_ways()
        for name, rows in self.features.items():
            if is_table(rows):
                encoder, self.features[name] = fit_table(rows)
                self.encoders |= {} if encoder is None else {name: encoder}
        types = tuple(
            NodeType(name, 0 if rows is None else rows.shape[1], _column_names(rows))
            for name, rows in self.features.items()
        )
        return partial(RelationalStack, layout=Layout(types, self.relations.keys))

    def check_call(self, stack: Stack, graph: GraphLike, device: Device, *, structural: bool, tables: bool) -> None:
        """Raise unless a stack can be run on these types and relations; results may be tables."""
        if not isinstance(stack, RelationalStack):
            expected, advice = "be one graph, as in the fit", "pass it alone, or fit again with the relations"
            raise InputError(parameter="graph", expected=expected, got=repr(self.relations), advice=advice)
        if device.kind != "cpu":
            expected = "be 'cpu' for several relations"
            raise InputError(parameter="device", value=device.name, expected=expected, advice="leave it out")
        if (self.n_features == 0) != structural:
            expected = f"be {'left out' if structural else 'given'}, as it was for the fit"
            raise InputError(parameter="X", expected=expected, got="features" if structural else "none")

    def embed(self, job: NodeJob) -> NodeResult:
        """Learn and embed, or embed by what was learned."""
        stack, fitting = job.stack, job.words is not None
        assert isinstance(stack, RelationalStack)
        if not fitting:
            self.relations = self.relations.both_ways() if job.rule.undirected else self.relations
            self._encode(job.encoder or {})
        relations, rule = self.relations, job.rule
        _check_rule(rule, stack, relations)
        layout = Layout(tuple(self._types(stack.layout)), relations.keys)
        self._check_layout(stack.layout, layout, fitting=fitting)
        if isinstance(rule, Neighbourhood) and rule.decay is not None:
            relations, rule = _aged(relations, rule), rule.set_params(decay=None, now=None)
        data, structure = self._read(job, replace(stack, layout=stack.layout), relations, rule)
        seeds = np.random.SeedSequence(job.words).spawn(1 + stack.n_layers + len(stack.column_names)) if fitting else ()
        run = Run(NUMPY, job.n_jobs, job.progress)
        work = RelationalPass(stack, data, run, seeds=seeds, want_output=job.want_output)
        run.engine(stack.layer.em)
        _check_memory(work, relations)
        work.run = replace(run, costs=work.costs())
        few = len(layout.types) > 1  # a type may have fewer nodes than landmarks, which nobody asked for
        with one_blas_thread(), each_warning_once(silence=(FewPointsWarning,) if few else ()):
            outputs = work.embed()
        fitted = {"stack_": work.stack, "structure_": structure, "n_samples_fit_": relations.n_nodes}
        fitted["n_features_in_"] = data.whole_X.shape[1]
        if self.feature_names is not None:
            fitted["feature_names_in_"] = np.array(self.feature_names, dtype=object)
        if fitting:
            fitted["encoder_"] = self.encoders or None
        ids = {name: self.labels[name] for name in relations.types}
        if len(outputs) == 1:
            ((name, output),) = outputs.items()
            return NodeResult(fitted, output, None, ids[name])
        return NodeResult(fitted, outputs or None, None, ids)

    def _encode(self, encoders: Mapping[str, Any]) -> None:
        """Turn tables into rows, by the encoders of the fit."""
        for name, rows in self.features.items():
            if is_table(rows):
                self.features[name] = read_table(rows, encoders.get(name))
            elif name in encoders and rows is not None:
                expected, got = "be a table, as in the fit", type_name(rows)
                raise InputTypeError(parameter=f"the features of {name!r}", expected=expected, got=got)

    def _types(self, fitted: Layout) -> list[NodeType]:
        """The types here in the order of the fit, then the others."""
        here = {
            name: NodeType(name, 0 if rows is None else rows.shape[1], _column_names(rows))
            for name, rows in self.features.items()
        }
        names = [name for name in fitted.names if name in here]
        return [here[name] for name in (*names, *(name for name in here if name not in names))]

    def _check_layout(self, fitted: Layout, here: Layout, *, fitting: bool) -> None:
        """Raise unless types, features and relations are those of the fit; at the fit, if a relation has no edge."""
        for key in here.relations if fitting else ():
            if self.relations.edges[key].n_edges == 0:
                expected, advice = "have at least one edge", "leave it out"
                raise InputError(
                    parameter=f"the relation {key[1]!r}", value=key, expected=expected, got="none", advice=advice
                )
        if set(here.relations) != set(fitted.relations) or here.names != fitted.names:
            expected = f"have the relations {listed(fitted.relations)} of the fit"
            advice = "pass an empty matrix or list for a relation without edges"
            raise InputError(parameter="graph", expected=expected, got=listed(here.relations), advice=advice)
        for one, other in zip(here.types, fitted.types, strict=True):
            if one.n_features != other.n_features:
                expected, got = f"have {other.n_features} columns, as in the fit", str(one.n_features)
                raise InputError(parameter=f"the features of {one.name!r}", expected=expected, got=got)
            if None not in (one.features, other.features) and one.features != other.features:
                expected = f"have the columns {listed(other.features or ())}"
                advice = "put the columns in the order of the fit"
                got = listed(one.features or ())
                raise InputError(parameter=f"the features of {one.name!r}", expected=expected, got=got, advice=advice)

    def _read(
        self, job: NodeJob, stack: RelationalStack, relations: Relations, rule: Rule
    ) -> tuple[RelationalData, Any]:
        """The features, multisets and structural columns, and what these learned."""
        settings = InputSettings(rule=rule, family=stack.layer.family, normalize=stack.normalize, n_jobs=job.n_jobs)
        X: dict[str, Any] = {}
        for name in stack.layout.names:
            if self.features[name] is not None:
                X[name] = _checked_rows(name, self.features[name], settings)
                check_same_rows(X[name].shape[0], relations.sizes[name])
        relations = _in_order(relations, stack.layout.names)
        union = relations.union()
        seed, dim = (job.words or (0,))[0], stack.layer.dim
        needs = stack.structure or len(X) < len(relations.sizes)
        reader = StructureReader(
            job.structure if needs else None, dim, bool(X), seed, job.fitted_structure, job.n_jobs, job.progress
        )
        ids = union.ids
        if len(X) == 1 == len(relations.sizes):
            (ids,) = self.labels.values()
        columns = reader.columns(union, ids)
        starts = relations.starts
        whole: Any = _joined(X, relations) if X else next(iter(columns.values()), None)
        for name, start in starts.items():
            if name not in X:
                if not columns:
                    expected = "be given if a type of nodes has no features"
                    got = f"None, and {name!r} has none"
                    raise InputError(parameter="structure", expected=expected, got=got, advice=_NO_FEATURES)
                X[name] = np.ascontiguousarray(next(iter(columns.values()))[start : start + relations.sizes[name]])
        dtype = np.result_type(*(rows.dtype for rows in X.values()))
        X = {name: X[name].astype(dtype, copy=False) for name in stack.layout.names}
        sets = {key: _sets(relations.edges[key], rule, key, job.n_jobs, dtype) for key in stack.layout.relations}
        whole_sets = next(iter(sets.values())) if len(sets) == len(X) == 1 else rule.sets(union, job.n_jobs, dtype)
        check_weight_scale(union.weights, dtype)
        structural = {kind: np.asarray(block, dtype) for kind, block in columns.items()}
        data = RelationalData(X, sets, whole.astype(dtype, copy=False), whole_sets, starts, structural)
        return data, reader.fitted


# --- reading ----------------------------------------------------------------------------------------------


def _column_names(rows: MatrixLike) -> tuple[str, ...] | None:
    """The names of the columns of a table; None of a matrix."""
    if rows is None or not is_table(rows):
        return None
    return tuple(map(str, getattr(rows, "column_names", getattr(rows, "columns", ()))))


def _checked_rows(name: str, rows: MatrixLike, settings: InputSettings) -> Any:
    """The features of a type as a float matrix; an error names the type."""
    try:
        return host_rows(rows, settings)
    except (InputError, InputTypeError) as error:
        if error.message is not None:
            raise
        raise error.revised(parameter=f"{error.parameter} of {name!r}") from error


def _joined(X: Mapping[str, Any], relations: Relations) -> Any:
    """The features of all types in one list of nodes, each type in columns of its own; zero rows without features."""
    if len(relations.sizes) == 1:
        return next(iter(X.values()))
    dtype = np.result_type(*(rows.dtype for rows in X.values()))
    if len(X) == 1 and not sp.issparse(next(iter(X.values()))):
        ((name, rows),) = X.items()
        whole = np.zeros((relations.n_nodes, rows.shape[1]), dtype)
        whole[relations.starts[name] : relations.starts[name] + len(rows)] = rows
        return whole
    blocks: list[list[Any]] = [[None] * len(X) for _ in relations.types]
    for column, (name, rows) in enumerate(X.items()):
        blocks[relations.types.index(name)][column] = sp.csr_array(rows).astype(dtype)
    stacked = [
        sp.hstack(
            [
                part if part is not None else sp.csr_array((relations.sizes[name], X[other].shape[1]), dtype=dtype)
                for part, other in zip(row, X, strict=True)
            ],
            format="csr",
        )
        for name, row in zip(relations.types, blocks, strict=True)
    ]
    whole = sp.csr_array(sp.vstack(stacked, format="csr"))
    whole.sort_indices()
    return whole


def _in_order(relations: Relations, names: tuple[str, ...]) -> Relations:
    """The relations with their types in this order."""
    return (
        relations
        if relations.types == names
        else replace(relations, sizes={name: relations.sizes[name] for name in names})
    )


# --- multisets ---------------------------------------------------------------------------------------------


def _check_rule(rule: Rule, stack: RelationalStack, relations: Relations) -> None:
    """Raise unless the multisets can be those of relations."""
    between = [key[1] for key in relations.keys if key[0] != key[2]]
    if rule.lifts or stack.reads_counts or not rule.keeps_nodes:
        what = "a family of counts" if stack.reads_counts else repr(rule)
        parameter = "family" if stack.reads_counts else "multiset"
        expected, advice = "have single nodes as members for several relations", "use multiset='neighbourhood'"
        if stack.reads_counts:
            expected, advice = "be one of real vectors for several relations", "use family='gaussian-mixture'"
        raise InputError(parameter=parameter, value=what, expected=expected, got=what, advice=advice)
    if between and (not isinstance(rule, Neighbourhood) or rule.direction is not None):
        expected = f"be Neighbourhood() without a direction for {between[0]!r}, which goes between two types"
        advice = "undirected=True adds the reverse of every relation"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice=advice)


def _aged(relations: Relations, rule: Neighbourhood) -> Relations:
    """The relations whose edges weigh what they do at their age; ages count from the latest edge of all relations."""
    assert rule.decay is not None
    latest = [edges.times.latest for edges in relations.edges.values() if edges.times is not None and edges.n_edges]
    now = rule.now if rule.now is not None or not latest else max(latest)
    return replace(relations, edges={key: aged(edges, rule.decay, now) for key, edges in relations.edges.items()})


def _sets(edges: Edges, rule: Rule, key: Key, n_jobs: int | None, dtype: DType) -> Any:
    """The multiset of every target of a relation."""
    check_weight_scale(edges.weights, dtype)
    if key[0] == key[2]:
        return rule.sets(edges, n_jobs, dtype)  # type: ignore[arg-type]
    weights = edges.weights
    if rule.weights is not None:
        weights = weigh_members(rule.weights, edges.indptr, edges.indices, weights, dtype)
    return Multisets(edges.indptr, edges.indices, weights, edges.n_sources)  # type: ignore[union-attr]


def _check_memory(work: RelationalPass, relations: Relations) -> None:
    """Raise if the output and the points of all types would not fit."""
    itemsize, dim = np.dtype(work.data.dtype).itemsize, work.stack.layer.dim
    widths = work.output_widths() if work.want_output else {}
    needed = sum(relations.sizes[name] * max(widths.get(name, 0), 2 * dim) for name in relations.types) * itemsize
    advice = "lower dim, n_anchors or n_layers"
    check_host_memory(needed, f"{relations.n_nodes} nodes need", "for their points and the result", advice)
