"""`update`: a store whose graph changed, and its embeddings, to the bits of a full transform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import GraphLike
from fishergraph._validation import check_n_jobs, look_up
from fishergraph._version import __version__
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.scale.commit import Commit
from fishergraph.scale.cpu import cpu_target
from fishergraph.scale.finished import FinishedRun, finished_runs, unfinished_runs
from fishergraph.scale.folders import scratch_folder
from fishergraph.scale.memory import parse_memory
from fishergraph.scale.run import model_digest
from fishergraph.scale.run_folder import RunFolder
from fishergraph.scale.store import Store
from fishergraph.scale.updating.changes import UNKNOWN, Change, read_change
from fishergraph.scale.updating.graph import StagedGraph, stage_graph
from fishergraph.scale.updating.report import UpdateReport
from fishergraph.scale.updating.stages import RunUpdate, sets_files


def update(
    store: Store | str | Path,
    *,
    edges: GraphLike | str | Path = None,
    nodes: tuple[Any, Any] | str | Path | None = None,
    remove: GraphLike | str | Path = None,
    remove_nodes: Any = None,
    unknown: str = "error",
    model: FisherEmbedding | None = None,
    memory: int | float | str | None = None,
    n_jobs: int | None = None,
    verbose: Verbose = False,
) -> UpdateReport:
    """Change the graph of a store, and bring its embeddings up to date.

    Anchors and maps stay as they were learned. A row is computed again only if the bits of one of its inputs changed,
    stage by stage, so every run ends with the bytes that `transform` gives on the changed store. All runs that have
    ended are brought up to date. Averages over the graph ("walk", "smooth") and structural columns change nearly
    everywhere: they are computed as a whole.

    New nodes become new rows behind the others. Removed nodes stay as rows without edges whose features are zero, so
    all others keep their rows; `Store.removed` lists them. The change is made whole or not at all: a killed update
    leaves the store as it was, or is finished when the store is opened next.

    Parameters
    ----------
    store : Store or path
        The store. It shows the changed graph afterwards.
    edges : path, table, list of tuples or array of shape (2, n_edges), optional
        New edges by the ids of their ends, and weights of edges that are there already. If the store is undirected,
        they are added in both directions.
    nodes : path or pair of ids and features, optional
        New nodes, and nodes whose features change. The features are None if the store has none.
    remove : path, table, list of tuples or array of shape (2, n_edges), optional
        Edges that go.
    remove_nodes : path or sequence of ids, optional
        Nodes that go, with their edges.
    unknown : {"error", "drop", "add"}, default="error"
        What happens to edges that end at a node which is not there: an error, they are left out, or the node is added
        with features of zero. With "drop", edges to remove that are not there are left out too.
    model : FisherEmbedding, optional
        Raise unless a run of the store was made with this fitted model.
    memory : int or str, optional
        Bytes the process may have, such as "4G"; by default those of the store, else half of the free memory.
    n_jobs : int, optional
        Threads; None uses every core.
    verbose : bool or callable, default=False
        Show progress bars of what is computed as a whole.

    Returns
    -------
    UpdateReport
        What changed, which rows were computed, and how far the new data are from those of the fit.

    See Also
    --------
    verify : Whether a store is whole.
    fishergraph.FisherEmbedding.update : The same, by a fitted model.
    fishergraph.FisherEmbedding.transform : Compute all rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph import FisherEmbedding, load_graph
    >>> from fishergraph.scale import update, write_store
    >>> cora = load_graph("cora")
    >>> store = write_store(pathlib.Path(tempfile.mkdtemp()) / "cora", cora.graph, cora.X)
    >>> Z = FisherEmbedding(dim=16, walk=None, structure=None, random_state=0).fit_transform(store)
    >>> report = update(store, edges=[(0, 5), (5, 0)])
    >>> [(stage.stage, stage.n_changed) for stage in report.stages]
    [('psi0', 0), ('psi1', 2), ('psi2', 8)]
    """
    look_up(dict.fromkeys(UNKNOWN), unknown, "unknown")
    store = store if isinstance(store, Store) else Store(store)
    limit = parse_memory(store.memory if memory is None else memory)
    n_jobs, began = check_n_jobs(n_jobs), perf_counter()
    with _locked(store), one_blas_thread():
        runs = finished_runs(store.path)
        for run in runs:
            _check_run(store, run)
        if model is not None:
            _check_model(store, runs, model)
        change = read_change(store, edges, nodes, remove, remove_nodes, unknown)
        with scratch_folder(store.path / "update", "part") as folder:
            staged = stage_graph(store, change, folder, strict=unknown != "drop")
            seconds = {"graph": perf_counter() - began}
            report = UpdateReport(_counts(store, change, staged), seconds=seconds)
            if staged.store.digest == store.digest:
                return report
            commit, updates = Commit(folder), []
            commit.replace(*staged.files)
            for run in runs:
                job = replace(
                    run.job(features=store.features is not None), n_jobs=n_jobs, progress=progress_bar(verbose)
                )
                updates.append(RunUpdate(run, job, store, staged, limit, commit))
                updates[-1].perform()
            seconds["embeddings"] = perf_counter() - began - sum(seconds.values())
            _replace_sets(store, staged, commit)
            commit.apply(store.path)
            seconds["commit"] = perf_counter() - began - sum(seconds.values())
    store.reopen()
    stages = tuple(stage for one in updates for stage in one.stages)
    misfits = {f"{one.run.name} {name}": entry for one in updates for name, entry in one.misfits.items()}
    return replace(report, stages=stages, misfits=misfits)


@contextmanager
def _locked(store: Store) -> Iterator[None]:
    """Let no other process change the store, or go on with a run over it."""
    names = [*(run.name for run in finished_runs(store.path)), *unfinished_runs(store.path)]
    with ExitStack() as stack:
        for path in (store.path, *(store.path / "embeddings" / name for name in names)):
            stack.enter_context(RunFolder(path).locked())
        yield


def _check_run(store: Store, run: FinishedRun) -> None:
    """Raise unless the rows of a run can be computed again here."""
    identity, path = run.folder.identity, run.folder.path
    reason = None
    if identity["store"] != store.digest:
        reason = "was made of another graph than the store holds"
    elif identity["fishergraph"] != __version__:
        reason = f"was made by version {identity['fishergraph']}"
    elif identity["cpu"] != cpu_target():
        reason = "was made on another processor, or with other numerical libraries, whose bits differ"
    if reason is not None:
        text = f"the run '{path}' {reason}; update it there, or delete its folder and embed again."
        raise InputError(text, parameter="store", value=str(path))


def _check_model(store: Store, runs: list[FinishedRun], model: FisherEmbedding) -> None:
    """Raise unless a run of the store was made with this model."""
    fitted = getattr(model, "stack_", None)
    jobs = [run.job(features=store.features is not None) for run in runs]
    if fitted is None or model_digest(fitted) not in [model_digest(job.stack) for job in jobs]:
        names = ", ".join(repr(run.name) for run in runs) or "none"
        expected = f"be the fitted model of a run of '{store.path}'"
        advice = f"the runs are {names}: pass the model of one of them, or leave it out"
        raise InputError(parameter="model", value=model, expected=expected, got="another one", advice=advice)


def _counts(store: Store, change: Change, staged: StagedGraph) -> dict[str, int]:
    """What came and went, in words."""
    n_new = change.n_nodes - store.n_nodes
    return {
        "edges added": staged.n_edges_added,
        "edges removed": staged.n_edges_removed,
        "rows of the graph changed": len(staged.rows.numbers),
        "nodes added": n_new + len(change.revived),
        "nodes removed": len(change.removed),
        "rows of features changed": len(staged.X_rows),
        "edges left out": change.n_unknown,
    }


def _replace_sets(store: Store, staged: StagedGraph, commit: Commit) -> None:
    """Note that new multisets replace those of before; those that no run reads go."""
    if staged.store.manifest["arrays"]["indptr"] == store.manifest["arrays"]["indptr"] and not len(staged.rows.numbers):
        return
    files = sets_files(staged.store.path)
    commit.replace(*files)
    kept = {Path(file).parts[1] for file in files}
    stale = [path.name for path in sorted((store.path / "multisets").glob("*")) if path.name not in kept]
    commit.remove(*(f"multisets/{name}" for name in stale))
