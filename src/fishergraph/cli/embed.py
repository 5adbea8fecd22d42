"""`fishergraph embed`: an edge file and a node file in, an embedding and its run record out."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.columns import tell_columns
from fishergraph.cli.components import configure
from fishergraph.cli.console import Bar
from fishergraph.cli.edges import tell
from fishergraph.cli.embed_relations import has_kinds, node_files, run_embed_relations
from fishergraph.cli.embed_store import by_store, check_store_options, is_store, run_embed_files, run_embed_store
from fishergraph.cli.jobs import (
    Inputs,
    LearningJob,
    check_outputs,
    check_tables,
    match_features,
    read_inputs,
    read_only_nodes,
    reading,
    save_with_names,
    structure_of,
    with_options,
)
from fishergraph.cli.labels import Labels, read_labelled
from fishergraph.cli.options import EMBEDDING, flag_of, wrong_call
from fishergraph.cli.record import parameters_of, record_path, recorded
from fishergraph.cli.tune import TuneOptions, check_tune, facts_of, show, tuned

if TYPE_CHECKING:
    from fishergraph.estimators import FisherEmbedding

PUBLISHED = "published-code"
_NO_FILE: Any = None  # files of edges need an output, a store does not


@dataclass(frozen=True, kw_only=True)
class EmbedJob(TuneOptions, LearningJob):
    """What embed was asked for.

    Parameters
    ----------
    nodes : FILE
        Node file: an id column and columns of any type, a row per node; or what embed wrote. TYPE=FILE, once for each
        type of nodes, for edges between several types.
    output : FILE
        Embedding to write: .parquet, .csv, .tsv (or .gz), .npz or .npy; .lance or .zarr with these extras. A store
        keeps its embedding too, and needs no file.
    layout : NAME, default=vector
        Columns of a .parquet file: vector (id and one column of vectors) or wide (id and a column per dimension).
    preset : NAME
        Start from other settings: fast, best (four layers), paper (its equations alone) or published-code (the
        rule of the authors' code).
    save : FILE
        Write the fitted model (safetensors) here.
    model : FILE
        Use this saved model as it is; nothing is learned.
    only : FILE
        Embed only the nodes that this text file lists, an id per line, with --model: only their neighbourhoods are
        computed.
    memory : SIZE, default=half of the free memory
        Bytes that the work on a store may use, such as 4G or 500M. Files of edges and nodes are made a store first,
        beside the output, which is removed at the end.
    store : FOLDER
        Make a store of the files here, and keep it.
    name : NAME, default=default
        Of the embedding in a store.
    overwrite : bool
        Replace an embedding of that name in a store which was made with other settings.
    dask : ADDRESS
        Embed by a store on the workers of this scheduler (tcp://…), or on so many local ones; --memory is that of each.
    """

    nodes: list[str] | None = None  # type: ignore[assignment]
    output: Path = _NO_FILE
    layout: str | None = None
    preset: str | None = None
    save: Path | None = None
    model: Path | None = None
    only: Path | None = None
    memory: str | None = None
    store: Path | None = None
    name: str | None = None
    overwrite: bool = False
    dask: str | None = None


@with_options(EMBEDDING)
def embed(job: EmbedJob) -> None:
    """Embed the nodes of a graph; node ids are kept, and OUTPUT.run.json records the run.

    Without --nodes, or with ids alone, the features come from the edges (--structure). Edges with a column type are of
    several kinds; each kind is embedded. Several types of nodes have a file each, z.paper.parquet, z.author.parquet.

    [bold]Examples[/bold]

    fishergraph embed edges.csv --nodes nodes.csv --undirected -o z.parquet

    fishergraph embed edges.csv -n nodes.csv --drop label --seed 0 -o z.npz --save model.safetensors

    fishergraph embed edges.csv -n paper=papers.csv -n author=authors.csv --undirected -o z.parquet

    fishergraph embed graph.store --memory 4G --seed 0 -o z.parquet

    fishergraph embed edges.parquet -n nodes.parquet --undirected --memory 4G -o z.parquet

    fishergraph embed edges.csv -n nodes.csv --tune --label topic --undirected -o z.npz

    fishergraph embed new_edges.csv -n new_nodes.csv --drop label --model model.safetensors -o new_z.npz

    fishergraph embed edges.csv --multiset "ppr(teleport=0.05, members=32)" --family sharpness=0.5 -o z.npz

    A [bold]COMPONENT[/bold] is a name, a name with options, or options of the default alone; --multiset help lists
    the multisets and their options, and so do --family help, --em help, --kernel help,
    --walk help and --structure help.
    """
    check_tune(job)
    if job.model is not None:
        fitting = [flag_of(path) for path in job.parameters if path != "device"]
        fitting += [f"--{key}" for key in ("preset", "seed", "save") if getattr(job, key) is not None]
        if fitting:
            raise typer.BadParameter(f"{', '.join(fitting)} belongs to fitting, and --model is used as it is.")
    elif job.only is not None:
        raise typer.BadParameter("--only needs --model: a model is learned from all nodes.")
    if job.only is not None and is_store(job.edges):
        raise typer.BadParameter("--only is for files of edges; a store is embedded as a whole, and read by rows.")
    check_store_options(job)
    if is_store(job.edges):
        run_embed_store(job, make_estimator)
        return
    if by_store(job):
        run_embed_files(job, make_estimator)
        return
    files = node_files(job.nodes)
    if set(files) - {""} or has_kinds(job):
        run_embed_relations(job, files, make_estimator)
    else:
        run_embed(replace(job, nodes=files.get("")))  # type: ignore[arg-type]


def run_embed(job: EmbedJob) -> None:
    """Check, read, embed, write."""
    from fishergraph.costs import writing_cost
    from fishergraph.io.embedding_file import check_written_ids, write_embedding

    beside = _check_files(job)
    with recorded(job) as run:
        with run.stage("import"):
            estimator = make_estimator(job, run.bar)
        with run.stage("read"), reading(job, run.bar) as advance:
            inputs, labels = _read(job, advance, typed=getattr(estimator, "encoder_", None) is not None)
            nodes, ids = read_only_nodes(job.only, inputs)
            check_written_ids(job.output, ids)
        tell(job, inputs, hint=job.model is None)
        n_numbers = inputs.graph.n_nodes * len(estimator.settings().names) * estimator.dim
        run.bar.later = {"writing": writing_cost(job.output.suffix.lower(), n_numbers)}
        with run.stage("embed"):
            tuning = None if labels is None else tuned(estimator, inputs, labels, budget=job.budget, bar=run.bar)
            if tuning is None:
                Z = _embed(job, estimator, inputs, nodes)
            else:
                estimator, Z = tuning.embedding, tuning.Z
        run.seconds["parts_of_embed"] = dict(run.bar.seconds)
        inputs.facts["columns"] = tell_columns(job, estimator.encoder_, inputs)
        with run.stage("write"):
            if job.save is not None:
                save_with_names(estimator, inputs, job.save)
            names = [str(name) for name in estimator.get_feature_names_out()]
            with run.bar("writing", Z.nbytes) as part:
                about = {"blocks": estimator.blocks_, "parameters": parameters_of(estimator)}
                write_embedding(job.output, ids, Z, names, **about, layout=job.layout, advance=part.update)
        run.facts = {
            "seed": estimator.random_state,
            "parameters": parameters_of(estimator, "random_state"),
            "input": inputs.facts,
            "structure": structure_of(estimator),
            "output": {"path": job.output, "rows": Z.shape[0], "columns": Z.shape[1], "dtype": str(Z.dtype)},
            "model": {"used": job.model, "saved": job.save},
            "tuning": None if tuning is None else facts_of(tuning, job),
        }
    if not job.quiet:
        if tuning is not None:
            show(tuning)
        how = f"seed {estimator.random_state}" if job.model is None else f"model {job.model}"
        typer.echo(f"{job.output}: {Z.shape[0]:,} nodes x {Z.shape[1]:,} columns in {run.total():.1f} s ({how})")
        if beside is not None:
            typer.echo(f"{beside}: the ids of the rows")
        typer.echo(f"{record_path(job.output)}: how it was made")
        if job.save is not None:
            typer.echo(f"{job.save}: the fitted model, for --model")


def _check_files(job: EmbedJob) -> Path | None:
    """Raise if a file cannot be written, or options contradict each other; return the file of ids beside a matrix."""
    from fishergraph.io.embedding_file import check_layout, check_writable, ids_path

    check_tables(job, job.drop)
    if job.layout is not None:
        with wrong_call("--layout"):
            check_layout(job.output, job.layout)
    beside = ids_path(job.output) if job.output.suffix.lower() == ".npy" else None
    check_outputs(job, job.save, beside, model=job.model, only=job.only, check=check_writable)
    return beside


def _read(job: EmbedJob, advance: Callable[[int], Any], *, typed: bool) -> tuple[Inputs, Labels | None]:
    """The graph and the features, and the labels if settings are chosen on them."""
    if job.label is None:
        return read_inputs(job, drop=job.drop, typed=typed, advance=advance), None
    return read_labelled(job, job.label, job.split, command="--tune", advance=advance)


def _embed(job: EmbedJob, estimator: FisherEmbedding, inputs: Inputs, nodes: Any) -> Any:
    """The embedding by a new model or a saved one."""
    if job.model is None:
        return estimator.fit_transform(inputs.X, graph=inputs.graph)
    X = match_features(job.model, estimator, inputs, advice=", or leave some out with --drop")
    return estimator.transform(X, graph=inputs.graph, nodes=nodes)


def make_estimator(job: EmbedJob, bar: Bar) -> FisherEmbedding:
    """Return the estimator, saved or new, with the seed it was or will be fitted with."""
    from fishergraph.estimators import FisherEmbedding

    if job.model is not None:
        estimator = FisherEmbedding.load(job.model)
    else:
        make = preset_maker(job.preset)
        estimator = make(random_state=secrets.randbelow(2**32) if job.seed is None else job.seed)
    return configure(estimator.set_params(n_jobs=job.jobs, verbose=bar), job.parameters)


def preset_maker(name: str | None) -> Callable[..., FisherEmbedding]:
    """Return what makes an estimator with the settings of that name; another name is a wrong call."""
    from fishergraph._validation import look_up
    from fishergraph.estimators import FisherEmbedding
    from fishergraph.presets import PRESETS

    makers = {preset: partial(FisherEmbedding.preset, preset) for preset in PRESETS}
    with wrong_call("--preset"):
        return look_up({**makers, PUBLISHED: FisherEmbedding.published_code}, name or "default", "preset")
