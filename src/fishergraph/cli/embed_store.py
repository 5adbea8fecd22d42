"""`fishergraph embed STORE`: the embedding of a store, in a bounded amount of memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.edges import asked_of_edges
from fishergraph.cli.record import Run, parameters_of, record_path, recorded

if TYPE_CHECKING:
    from fishergraph.cli.embed import EmbedJob
    from fishergraph.estimators import FisherEmbedding
    from fishergraph.scale import Store, StoredEmbedding

_LONG = 10**7  # edges from which on the command says what it will take


def is_store(path: Path) -> bool:
    """Whether a path leads to a store."""
    return (path / "manifest.json").is_file()


def check_store_options(job: EmbedJob) -> None:
    """Raise for options of files of edges and nodes, which a store has read already, or the reverse."""
    of_files: dict[str, Any] = {
        "--nodes": job.nodes,
        "--id-column": job.id_column,
        "--drop": job.drop,
        "--kind": job.kind,
        "--tune": job.tune or None,
    }
    of_stores = {"--memory": job.memory, "--name": job.name, "--overwrite": job.overwrite or None, "--dask": job.dask}
    store = is_store(job.edges)
    of_files |= dict.fromkeys(asked_of_edges(job), True)
    for flag, value in (of_files if store else of_stores).items():
        if value is not None:
            reason = "belongs to files of edges and nodes; a store" if store else "belongs to a store;"
            rest = "has its own." if store else f"make one of '{job.edges}' with fishergraph ingest."
            raise typer.BadParameter(f"{flag} {reason} {rest}")
    if not store and job.output is None:
        raise typer.BadParameter("--output is missing: name the file to write.", param_hint="--output")


def run_embed_store(job: EmbedJob, make_estimator: Any) -> None:
    """Embed, and write a file if there is one to write."""
    from fishergraph.scale import Store

    name = job.name or "default"
    folder = job.edges / "embeddings" / name
    with recorded(replace(job, output=job.output or folder)) as run:
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
            "input": {"store": job.edges, "n_nodes": store.n_nodes, "n_edges": store.n_edges},
            "output": {"path": job.output or folder, "rows": Z.shape[0], "columns": Z.shape[1], "dtype": str(Z.dtype)},
            "model": {"used": job.model, "saved": job.save or folder / "model.safetensors"},
        }
    if not job.quiet:
        typer.echo(f"{folder}: {Z.shape[0]:,} nodes x {Z.shape[1]:,} columns in {run.total():.1f} s")
        if job.output is not None:
            typer.echo(f"{job.output}: the same rows with their ids")
        typer.echo(f"{record_path(job.output or folder)}: how it was made")


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
