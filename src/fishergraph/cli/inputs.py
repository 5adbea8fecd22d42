"""What a command was asked for, and what it reads from the files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.record import record_path

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Job:
    """What was asked for; every command adds its own."""

    edges: Path
    nodes: Path | None
    output: Path
    id_column: str | None
    drop: list[str]
    settings: dict[str, Any]  # parameters of the estimator that were given
    seed: int | None = None
    jobs: int | None
    model: Path | None = None
    device: str | None
    config: Path | None
    quiet: bool


@dataclass(frozen=True)
class Inputs:
    """What was read."""

    X: Any  # (node, feature), or None where the nodes have no features
    graph: Graph
    names: list[str]  # of the features
    facts: dict[str, Any]  # for the record

    @property
    def ids(self) -> np.ndarray:
        """The node ids in row order."""
        import numpy as np

        return np.arange(self.graph.n_nodes) if self.graph.ids is None else self.graph.ids


def check_call(job: Job) -> None:
    """Raise a usage error where the columns of a table are named and there is no table."""
    table = job.nodes is not None and job.nodes.suffix.lower() != ".npz"
    if not table and (job.id_column is not None or job.drop):
        raise typer.BadParameter("--id-column and --drop need a node table: give --nodes with a CSV, TSV or Parquet.")


def check_outputs(job: Job, *others: Path | None) -> None:
    """Raise if a file cannot be written where it is asked for, or would replace one that is read."""
    from fishergraph.io.files import check_folder

    taken = {os.path.realpath(path) for path in (job.edges, job.nodes, job.model, job.config) if path is not None}
    for path in (job.output, record_path(job.output), *others):
        if path is None:
            continue
        check_folder(path)
        if os.path.realpath(path) in taken:
            raise ValueError(f"every file must have its own path, got '{path}' twice; choose another output.")
        taken.add(os.path.realpath(path))


def node_file(job: Job) -> Path | None:
    """The file that lists the nodes: one of its own, or the npz of the edges."""
    return job.nodes or (job.edges if _lists_nodes(job.edges) else None)


def read_inputs(job: Job, *, only: list[str] | None = None) -> Inputs:
    """The graph and the features, their rows in the order of the node file; `only` names the features that count."""
    from fishergraph.graph import as_graph
    from fishergraph.io.tables import read_edges, read_nodes

    table = read_edges(job.edges)
    nodes = node_file(job)
    ids, X, names = None, None, []
    if nodes is not None:
        ids, X, names = read_nodes(nodes, job.id_column, drop=job.drop, only=only)
    try:
        graph = as_graph(table, node_ids=ids)
    except ValueError as error:  # its wording is that of a call in Python
        raise ValueError(str(error).replace("node_ids", f"the ids of '{nodes}'")) from error
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


def one_way_hint(job: Job, graph: Graph) -> str | None:
    """A line for people whose file lists every edge of an undirected graph once; None where it does not fit."""
    if job.model is not None or "undirected" in job.settings:
        return None
    A = graph.adjacency
    loops = int((A.diagonal() != 0).sum())
    if A.nnz == loops or A.multiply(A.T.tocsr()).nnz > loops:
        return None
    return (
        "hint: every edge goes one way only, and was kept so; add --undirected if the graph has no direction, "
        "or --directed to be asked no more."
    )


def match_features(job: Job, model: Any, inputs: Inputs, *, advice: str = "") -> Any:
    """The features in the order in which a saved model learned them; None where they come from the edges.

    `advice` is what the command offers for features that are too many.
    """
    from fishergraph.structural import describe_structure

    X: Any = inputs.X
    learned = list(getattr(model, "feature_names_in_", []))
    given = [] if X is None else inputs.names
    width = len(given) or describe_structure(model.structure, model.dim)["width"]
    there = set(given)
    missing = [name for name in learned if name not in there]
    if given and getattr(model, "structural_", False):
        raise ValueError(
            f"'{job.model}' was fitted on structural features and needs no others, got a node file with {len(given)} "
            f"features; give ids alone{advice}."
        )
    if missing or width != model.n_features_in_:
        found = ", ".join(map(repr, given[:10])) + (", …" if len(given) > 10 else "") or "no node features"
        want = f" ({', '.join(map(repr, missing[:3]))} among them)" if missing else ""
        raise ValueError(
            f"the features must be the {model.n_features_in_} that '{job.model}' was fitted with{want}, got {found}; "
            f"rename columns{advice}."
        )
    if X is None or not learned or learned == given:
        return X
    position = {name: j for j, name in enumerate(given)}
    return X[:, [position[name] for name in learned]]
