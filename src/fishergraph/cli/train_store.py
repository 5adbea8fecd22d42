"""`fishergraph train STORE`: a classifier of the nodes of a store, whose labels are in a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import typer

from fishergraph._errors import InputError
from fishergraph.cli.edges import node_text
from fishergraph.cli.embed_store import is_store
from fishergraph.cli.jobs import Inputs
from fishergraph.cli.labels import Labels, read_labels

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.cli.train import TrainJob
    from fishergraph.scale import Store

_FIRST = 5
_NAME = "classes"


def check_train_store(job: TrainJob) -> None:
    """Raise for options that a store does not have, and for those that only a store has."""
    store = is_store(job.edges)
    of_stores = {"--memory": job.memory, "--name": job.name}
    of_files = {"--drop": job.drop, "--undirected": job.undirected, "--mode": "probe" if job.is_probe else None}
    for flag, value in (of_files if store else of_stores).items():
        if value is not None:
            reason = "belongs to files of edges and nodes; a store" if store else "belongs to a store;"
            rest = "has its own, and is trained on by networks." if store else "make one with fishergraph ingest."
            raise typer.BadParameter(f"{flag} {reason} {rest}")
    if store and job.nodes is None:
        raise typer.BadParameter(f"--nodes is missing: name the table with the ids and the column {job.label!r}.")


def read_train_store(job: TrainJob) -> tuple[Inputs, Labels]:
    """The store in place of features and edges, and the labels of its nodes."""
    from fishergraph.io.tables import read_nodes
    from fishergraph.scale import Store

    assert job.nodes is not None
    store = Store(job.edges, memory=job.memory, name=job.name or _NAME, overwrite=True)
    labels = read_labels(job.nodes, job.label, job.split, node_text(job))
    ids, *_ = read_nodes(job.nodes, job.id_column, only=[], text=node_text(job))
    labels = in_rows(labels, rows_of(store, ids, job), store.n_nodes)
    names = store.feature_names or [str(column) for column in range(store.n_features)]
    facts = {"store": job.edges, "n_nodes": store.n_nodes, "n_edges": store.n_edges, "labels": job.nodes}
    return Inputs(cast(Any, store), cast(Any, None), names, facts), labels


def rows_of(store: Store, ids: np.ndarray, job: TrainJob) -> np.ndarray:
    """The row of the store of every row of a table; raises for ids that the store does not have, or has twice."""
    import numpy as np

    from fishergraph.scale.updating.ids import NodeIds

    nodes = NodeIds(store)
    rows = nodes.rows(nodes.as_ids(ids.tolist(), f"the ids of '{job.nodes}'"))
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        first = ", ".join(repr(ids[row].item() if hasattr(ids[row], "item") else ids[row]) for row in unknown[:_FIRST])
        more = ", …" if len(unknown) > _FIRST else ""
        got = f"{len(unknown):,} others: {first}{more}"
        expected = f"be among the {store.n_nodes:,} nodes of the store"
        raise InputError(parameter=f"the ids of '{job.nodes}'", expected=expected, got=got, advice="leave them out")
    if len(np.unique(rows)) < len(rows):
        raise InputError(parameter=f"the ids of '{job.nodes}'", expected="be distinct", got="an id twice")
    return rows


def in_rows(labels: Labels, rows: np.ndarray, n_nodes: int) -> Labels:
    """The labels of a table in the order of the rows of a store; nodes that it does not list have none."""
    import numpy as np

    y = np.full(n_nodes, None)
    y[rows] = labels.y
    val, test = (None if part is None else np.sort(rows[part]) for part in (labels.val, labels.test))
    return replace(labels, y=y, val=val, test=test)
