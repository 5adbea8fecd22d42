"""What an estimator asks of a graph that runs the work itself, such as a store on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from fishergraph._errors import InputError
from fishergraph._progress import Progress, silent
from fishergraph._typing import GraphLike
from fishergraph.device import Device
from fishergraph.multiset import Rule
from fishergraph.stack import Stack
from fishergraph.structural import Structure, StructureMap


class NodeResult(NamedTuple):
    """What a source returns.

    fitted : the fitted attributes of the estimator, by name.
    output : the embedding.
    model : where the fitted model belongs, if the source keeps it.
    ids : the ids of the rows, by type if there are several.
    """

    fitted: dict[str, Any]
    output: Any
    model: Path | None
    ids: Any = None


@dataclass(frozen=True)
class NodeJob:
    """The work of a `FisherEmbedding` on a source.

    stack : the settings, and what was learned if there are no words.
    rule : which multiset belongs to a node.
    structure, fitted_structure : the structural columns, and what was learned of them.
    params : the parameters of the estimator as JSON.
    words : the seed of everything that is learned; None if nothing is.
    want_output : whether the embedding is wanted.
    encoder : what encodes tables, if the model has it.
    """

    stack: Stack
    rule: Rule
    structure: Structure | None
    fitted_structure: StructureMap | None
    params: dict[str, Any]
    words: list[int] | None = None
    n_jobs: int | None = None
    progress: Progress = silent
    want_output: bool = True
    encoder: Any = None


@runtime_checkable
class Source(Protocol):
    """A graph with features that runs the work of an estimator itself."""

    @property
    def n_features(self) -> int: ...

    @property
    def feature_names(self) -> list[str] | None: ...

    def make_stack(self, undirected: bool, /) -> Callable[..., Stack]: ...

    def check_call(self, stack: Stack, graph: GraphLike, device: Device, *, structural: bool, tables: bool) -> None: ...

    def embed(self, job: NodeJob, /) -> NodeResult: ...


@runtime_checkable
class ChangingSource(Protocol):
    """A source whose graph can change, and whose embeddings change with it."""

    def update(self, **changes: Any) -> Any: ...


def check_store(source: Source, graph: GraphLike, device: Device, *, structural: bool) -> None:
    """Raise unless an estimator that was fitted with or without features can be run on a store."""
    if graph is not None:
        expected = "be left out beside a store, which has its own graph"
        raise InputError(parameter="graph", value=graph, expected=expected, got=type(graph).__name__)
    if device.kind != "cpu":
        expected = "be 'cpu' for a graph in a store"
        raise InputError(parameter="device", value=device.name, expected=expected, advice="leave it out")
    if (source.n_features == 0) != structural:
        expected = "have no features" if structural else "have features"
        advice = "ingest the columns of the fit"
        raise InputError(parameter="the store", expected=f"{expected}, as in the fit", got=f"{source}", advice=advice)
