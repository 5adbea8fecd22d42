"""`fishergraph embed` in a bounded amount of memory: of a store, or of files, of which a store is made first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.edges import asked_of_edges
from fishergraph.cli.embed_relations import node_files
from fishergraph.cli.jobs import check_outputs
from fishergraph.cli.options import wrong_call
from fishergraph.cli.record import Run, parameters_of, record_path, recorded

if TYPE_CHECKING:
    from fishergraph.cli.embed import EmbedJob
    from fishergraph.estimators import FisherEmbedding
    from fishergraph.scale import Store, StoredEmbedding

_LONG = 10**7  # edges from which on the command says what it will take
_OF_INGEST = ("--source", "--target", "--weight", "--unknown")  # options of an edge file that ingest has too


def is_store(path: Path) -> bool:
    """Whether a path leads to a store."""
    return (path / "manifest.json").is_file()


def by_store(job: EmbedJob) -> bool:
    """Whether files of edges and nodes are embedded by a store, within a budget of memory."""
    return not is_store(job.edges) and any(value is not None for value in (job.memory, job.store, job.dask))


def check_store_options(job: EmbedJob) -> None:
    """Raise for options of files of edges and nodes, which a store has read already, or the reverse."""
    of_files: dict[str, Any] = {
        "--nodes": job.nodes,
        "--id-column": job.id_column,
        "--drop": job.drop,
        "--kind": job.kind,
        "--tune": job.tune or None,
        "--store": job.store,
    }
    of_stores = {"--name": job.name, "--overwrite": job.overwrite or None}
    store = is_store(job.edges)
    of_files |= dict.fromkeys(asked_of_edges(job), True)
    for flag, value in (of_files if store else of_stores).items():
        if value is not None and not (flag == "--name" and job.store is not None):
            reason = "belongs to files of edges and nodes; a store" if store else "belongs to a store;"
            rest = "has its own." if store else f"make one of '{job.edges}' with fishergraph ingest."
            raise typer.BadParameter(f"{flag} {reason} {rest}")
    if by_store(job):
        _check_files(job)
    if not store and job.output is None and job.store is None:
        raise typer.BadParameter("--output is missing: name the file to write.", param_hint="--output")


def _check_files(job: EmbedJob) -> None:
    """Raise for what needs files in memory, and for a store or outputs that cannot be written."""
    from fishergraph.io.embedding_file import check_layout, check_writable
    from fishergraph.scale.memory import parse_memory

    in_memory = {"--kind": job.kind, "--tune": job.tune or None, "--only": job.only}
    in_memory |= {flag: True for flag in asked_of_edges(job) if flag not in _OF_INGEST}
    for flag, value in in_memory.items():
        if value is not None:
            raise typer.BadParameter(f"{flag} needs the files in memory: leave out --memory, --store and --dask.")
    if job.store is not None and job.store.exists():
        raise typer.BadParameter(f"'{job.store}' is there already: embed it with fishergraph embed {job.store}.")
    nodes = _node_file(job)
    if job.output is not None:
        if job.layout is not None:
            with wrong_call("--layout"):
                check_layout(job.output, job.layout)
        check_outputs(replace(job, nodes=nodes), job.save, model=job.model, check=check_writable)  # type: ignore[arg-type]
    with wrong_call():
        parse_memory(job.memory)


def _node_file(job: EmbedJob) -> Path | None:
    """The one node file, if there is any."""
    files = node_files(job.nodes)
    if set(files) - {""}:
        raise typer.BadParameter("--memory, --store and --dask work on one type of nodes: give one --nodes FILE.")
    return files.get("")


def run_embed_files(job: EmbedJob, make_estimator: Any) -> None:
    """Make a store of files beside the output, embed it, and remove it unless it is kept."""
    output, kept = job.output, job.store
    if output is None:
        assert kept is not None
        output = kept / "embeddings" / (job.name or "default")
    with recorded(replace(job, output=output)) as run, _store_path(output, kept) as path:
        with run.stage("ingest"):
            _ingest(job, run, path)
        about = {"edges": job.edges, "nodes": _node_file(job), "store": kept}
        shape = _embed(replace(job, edges=path, undirected=None), run, make_estimator, about)
    if not job.quiet:
        _tell(job, kept and kept / "embeddings" / (job.name or "default"), shape, run.total())


@contextmanager
def _store_path(output: Path, kept: Path | None) -> Iterator[Path]:
    """Where a store is made: at a path that is kept, or in a hidden folder beside the output."""
    if kept is not None:
        yield kept
        return
    from fishergraph.scale.folders import scratch_folder

    with scratch_folder(output, "store") as folder:
        yield folder / "graph.store"


def _ingest(job: EmbedJob, run: Run, path: Path) -> None:
    from fishergraph.scale import ingest

    columns = {name: getattr(job, name) for name in ("source", "target", "weight", "id_column")}
    options: dict[str, Any] = {"undirected": bool(job.undirected), "unknown": job.unknown or "error"}

    def progress(title: str, total: int | None) -> Any:
        return run.bar(title, total or 1)

    ingest(
        job.edges, path, _node_file(job), memory=job.memory, drop=job.drop or [], verbose=progress, **columns, **options
    )
    run.bar.forget()


def run_embed_store(job: EmbedJob, make_estimator: Any) -> None:
    """Embed a store, and write a file if there is one to write."""
    folder = job.edges / "embeddings" / (job.name or "default")
    with recorded(replace(job, output=job.output or folder)) as run:
        shape = _embed(job, run, make_estimator, {"store": job.edges})
    if not job.quiet:
        _tell(job, folder, shape, run.total())


def _embed(job: EmbedJob, run: Run, make_estimator: Any, about: dict[str, Any]) -> tuple[int, int]:
    """Embed the store at the edges of a job, write a file if there is one, and note the facts of the run."""
    from fishergraph.scale import Store

    name = job.name or "default"
    folder, is_kept = job.edges / "embeddings" / name, about["store"] is not None
    with run.stage("import"):
        estimator = make_estimator(job, run.bar)
        if job.seed is None and job.model is None:
            estimator.set_params(random_state=None)  # a run that goes on has the seed that was drawn for it
    with run.stage("open"):
        client = int(job.dask) if job.dask and job.dask.isdecimal() else job.dask
        store = Store(job.edges, memory=job.memory, name=name, overwrite=job.overwrite, client=client)
    if store.n_edges >= _LONG and not job.quiet and not (folder / "manifest.json").is_file():
        _announce(store, estimator)
    with run.stage("embed"):
        Z = estimator.fit_transform(store) if job.model is None else estimator.transform(store)
    run.seconds["parts_of_embed"] = dict(run.bar.seconds)
    if job.save is not None:
        estimator.save(job.save)
    if job.output is not None:
        _write(job, run, store, estimator, Z)
    run.facts = {
        "seed": estimator.random_state,
        "parameters": parameters_of(estimator, "random_state"),
        "input": {**about, "n_nodes": store.n_nodes, "n_edges": store.n_edges},
        "output": {"path": job.output or folder, "rows": Z.shape[0], "columns": Z.shape[1], "dtype": str(Z.dtype)},
        "model": {"used": job.model, "saved": job.save or (folder / "model.safetensors" if is_kept else None)},
    }
    return Z.shape


def _tell(job: EmbedJob, folder: Path | None, shape: tuple[int, int], seconds: float) -> None:
    """Say what was made, and where it is."""
    first, *others = [path for path in (folder, job.output) if path is not None]
    typer.echo(f"{first}: {shape[0]:,} nodes x {shape[1]:,} columns in {seconds:.1f} s")
    for path in others:
        typer.echo(f"{path}: the same rows with their ids")
    typer.echo(f"{record_path(job.output or first)}: how it was made")


def _announce(store: Store, estimator: FisherEmbedding) -> None:
    """Say what the work takes, before it begins."""
    from fishergraph.scale import plan

    for line in plan(store, estimator).lines():
        typer.echo(line, err=True)


def _write(job: EmbedJob, run: Run, store: Store, estimator: FisherEmbedding, Z: StoredEmbedding) -> None:
    """Write the embedding to a file, by slices of rows."""
    from fishergraph.io.embedding_file import write_embedding

    assert job.output is not None
    names, ids = [str(name) for name in estimator.get_feature_names_out()], store.ids
    about = {"blocks": estimator.blocks_, "parameters": parameters_of(estimator)}
    with run.stage("write"), run.bar("writing", Z.nbytes) as part:
        write_embedding(job.output, ids, Z, names, **about, layout=job.layout, advance=part.update)
