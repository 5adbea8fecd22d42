"""What a command was asked for, and what it reads from the files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli import common as opt
from fishergraph.cli.record import record_path

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Job:
    """What was asked for; every command adds its own fields."""

    edges: opt.Edges
    output: opt.Output
    nodes: opt.Nodes = None
    id_column: opt.IdColumn = None
    settings: dict[str, Any]  # texts and flags of the options that set parameters, by parameter
    jobs: opt.Jobs = None
    engine: opt.Engine = None
    config: opt.Config = None
    quiet: opt.Quiet = False
    debug: opt.Debug = False


@dataclass(frozen=True, kw_only=True)
class LearningJob(Job):
    """What a command that learns was asked for."""

    drop: opt.Drop = None
    undirected: opt.Undirected = None
    seed: opt.Seed = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings, with that of --undirected, an option of the multiset, if it was given."""
        return self.settings | ({} if self.undirected is None else {"multiset__undirected": self.undirected})

    @property
    def says_direction(self) -> bool:
        """Whether an option says that edges have a direction, or that they have none."""
        return self.undirected is not None or "undirected" in self.settings.get("multiset", "")


@dataclass(frozen=True)
class Inputs:
    """What was read."""

    X: Any  # (node, feature), or None if the nodes have no features
    graph: Graph
    names: list[str]  # of the features
    facts: dict[str, Any]  # for the record

    @property
    def ids(self) -> np.ndarray:
        """The node ids in row order."""
        import numpy as np

        return np.arange(self.graph.n_nodes) if self.graph.ids is None else self.graph.ids


def check_tables(job: Job, drop: list[str] | None = None) -> None:
    """Raise a usage error if columns of a table are named and there is no table."""
    table = job.nodes is not None and job.nodes.suffix.lower() != ".npz"
    if not table and (job.id_column is not None or drop):
        raise typer.BadParameter("--id-column and --drop need a node table: give --nodes with a CSV, TSV or Parquet.")


def check_outputs(job: Job, *others: Path | None, model: Path | None = None) -> None:
    """Raise if an output cannot be written, or would replace a file that is read."""
    from fishergraph.io.files import check_folder

    taken = {os.path.realpath(path) for path in (job.edges, job.nodes, model, job.config) if path is not None}
    for path in (job.output, record_path(job.output), *others):
        if path is None:
            continue
        check_folder(path)
        if os.path.realpath(path) in taken:
            raise InputError(f"every file must have its own path, got '{path}' twice; choose another output.")
        taken.add(os.path.realpath(path))


def node_file(job: Job) -> Path | None:
    """Return the file that lists the nodes: a separate one, or the npz of the edges."""
    return job.nodes or (job.edges if _lists_nodes(job.edges) else None)


def read_inputs(job: Job, *, drop: list[str] | None = None, only: list[str] | None = None) -> Inputs:
    """Return the graph and the features, their rows in the order of the node file.

    Columns to `drop` are not features; `only` names those that are, if it is given.
    """
    from fishergraph.graph import as_graph
    from fishergraph.io.tables import read_edges, read_nodes

    table = read_edges(job.edges)
    nodes = node_file(job)
    ids, X, names = None, None, []
    if nodes is not None:
        ids, X, names = read_nodes(nodes, job.id_column, drop=drop or [], only=only)
    try:
        graph = as_graph(table, node_ids=ids)
    except InputError as error:
        if error.parameter != "node_ids":
            raise
        raise error.revised(parameter=f"the ids of '{nodes}'") from error
    width = 0 if X is None else X.shape[1]  # type: ignore[index]
    X = X if width else None
    facts = {
        "edges": {"path": job.edges, "bytes": job.edges.stat().st_size, "rows": table.num_rows},
        "nodes": None if nodes is None else {"path": nodes, "bytes": nodes.stat().st_size},
        "n_nodes": graph.n_nodes,
        "n_edges": graph.n_edges,
        "weighted": graph.weights is not None,
        "n_features": width,
        "sparse_features": hasattr(X, "indptr"),
    }
    return Inputs(X, graph, names, facts)


def _lists_nodes(path: Path) -> bool:
    """Whether an edge file is an npz that holds the nodes too."""
    if path.suffix.lower() != ".npz":
        return False
    from fishergraph.io.files import check_readable, unreadable
    from fishergraph.io.npz import npz_keys

    head, keys = check_readable(path), npz_keys(path)
    if not keys:
        raise unreadable(path, head, "other bytes")
    return not {"x", "x_data", "ids"}.isdisjoint(keys)


def one_way_hint(graph: Graph) -> str | None:
    """Return a line for people whose file lists every edge of an undirected graph once, or None."""
    A = graph.adjacency
    loops = int((A.diagonal() != 0).sum())
    if A.nnz == loops or A.multiply(A.T.tocsr()).nnz > loops:
        return None
    return (
        "hint: every edge goes one way only, and was kept so; add --undirected if the graph has no direction, "
        "or --directed if it has one."
    )


def match_features(path: Path, model: Any, inputs: Inputs, *, advice: str = "") -> Any:
    """Return the features in the order in which a saved model learned them, or None if they come from the edges.

    `advice` is what the command offers for features that are too many. The model forgets the names of its features,
    because the matrix has none and its columns are in order.
    """
    from fishergraph.structural import describe_structure

    X: Any = inputs.X
    learned = list(vars(model).pop("feature_names_in_", []))
    names = [] if X is None else inputs.names
    width = len(names) or describe_structure(model.structure, model.dim)["width"]
    missing = sorted(set(learned) - set(names), key=learned.index)
    if names and getattr(model, "structural_", False):
        raise InputError(
            f"'{path}' was fitted on structural features and needs no others, got a node file with {len(names)} "
            f"features; give ids alone{advice}."
        )
    if missing or width != model.n_features_in_:
        got = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "") or "no node features"
        want = f" ({', '.join(map(repr, missing[:3]))} among them)" if missing else ""
        raise InputError(
            f"the features must be the {model.n_features_in_} that '{path}' was fitted with{want}, got {got}; "
            f"rename columns{advice}."
        )
    if X is None or not learned or learned == names:
        return X
    position = {name: j for j, name in enumerate(names)}
    return X[:, [position[name] for name in learned]]


def structure_of(estimator: Any, inputs: Inputs) -> dict[str, Any] | None:
    """Return what the record says of structural features, or None if the nodes have features."""
    from fishergraph.structural import describe_structure

    if inputs.X is not None:
        return None
    return describe_structure(estimator.structure, estimator.dim, estimator.structure_seed_)
