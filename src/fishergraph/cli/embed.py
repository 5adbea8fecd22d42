"""`fishergraph embed`: an edge file and a node file in, an embedding and its run record out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli import common as opt
from fishergraph.cli.choices import wrong_call
from fishergraph.cli.components import configure
from fishergraph.cli.console import Bar, explained, one_line_warnings, say
from fishergraph.cli.inputs import (
    Inputs,
    Job,
    check_call,
    check_outputs,
    match_features,
    one_way_hint,
    read_inputs,
    using_engine,
    with_direction,
)
from fishergraph.cli.options import EMBEDDING, flag_of, with_settings
from fishergraph.cli.record import Clock, record_path, surroundings, write_record

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.estimators import FisherEmbedding

PUBLISHED = "published-code"


@dataclass(frozen=True, kw_only=True)
class EmbedJob(Job):
    """What embed was asked for."""

    preset: str | None = None
    save: Path | None = None


@with_settings(EMBEDDING)
def embed(
    edges: opt.Edges,
    output: opt.Output,
    nodes: opt.Nodes = None,
    id_column: opt.IdColumn = None,
    drop: opt.Drop = None,
    undirected: opt.Undirected = None,
    preset: opt.Preset = None,
    settings: dict[str, Any] | None = None,
    seed: opt.Seed = None,
    jobs: opt.Jobs = None,
    engine: opt.Engine = None,
    save: opt.Save = None,
    model: opt.Model = None,
    config: opt.Config = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Embed the nodes of a graph; node ids are kept, and OUTPUT.run.json records the run.

    Without --nodes, or with ids alone, the features come from the edges (--structure).

    [bold]Examples[/bold]

    fishergraph embed edges.csv --nodes nodes.csv --undirected -o z.parquet

    fishergraph embed edges.csv -n nodes.csv --drop label --seed 0 -o z.npz --save model.safetensors

    fishergraph embed new_edges.csv -n new_nodes.csv --drop label --model model.safetensors -o new_z.npz

    fishergraph embed edges.csv --multiset "ppr(teleport=0.05, members=32)" --family sharpness=0.5 -o z.npz

    A [bold]COMPONENT[/bold] is a name, a name with options, or options of the default alone; --multiset help lists
    the multisets and their options, and so do --family help, --em help, --kernel help and --walk help.
    """
    job = EmbedJob(
        edges=edges,
        nodes=nodes,
        output=output,
        id_column=id_column,
        drop=list(drop or []),
        settings=with_direction(settings or {}, undirected),
        preset=preset,
        seed=seed,
        jobs=jobs,
        engine=engine,
        save=save,
        model=model,
        config=config,
        quiet=quiet,
    )
    _check_call(job)
    with explained(debug=debug):
        run_embed(job)


def _check_call(job: EmbedJob) -> None:
    """Raise a usage error for options that contradict each other."""
    if job.model is not None:
        fitting = [flag_of(path) for path in job.settings if path != "device"]
        fitting += [f"--{key}" for key in ("preset", "seed", "save") if getattr(job, key) is not None]
        if fitting:
            raise typer.BadParameter(f"{', '.join(fitting)} belongs to fitting, and --model is used as it is.")
    check_call(job)


def run_embed(job: EmbedJob) -> None:
    """Check, read, embed, write."""
    from fishergraph.tables import check_writable, check_written_ids

    clock, bar = Clock(), Bar(quiet=job.quiet)
    check_writable(job.output)
    check_outputs(job, job.save)
    with one_line_warnings() as warned:
        with bar:
            with clock.stage("import"):
                estimator, seed = make_estimator(job, bar)
            bar.part("reading")
            with clock.stage("read"):
                inputs = read_inputs(job)
                check_written_ids(job.output, inputs.ids)
            if not job.quiet and (hint := one_way_hint(job, inputs.graph)):
                say(hint)
            X = inputs.X
            if job.model is not None:
                X = match_features(job, estimator, inputs, advice=", or leave some out with --drop")
                vars(estimator).pop("feature_names_in_", None)  # X is a plain array, and its columns are in order
            bar.later = {"writing": _writing_cost(job, estimator, inputs)}
            with clock.stage("embed"), using_engine(job.engine):
                step = estimator.fit_transform if job.model is None else estimator.transform
                Z = step(X, graph=inputs.graph)
            clock.seconds["parts_of_embed"] = dict(bar.seconds)
            with clock.stage("write"):
                _write(job, estimator, inputs, Z, bar)
        clock.seconds["total"] = clock.total()
        record = {
            **surroundings(clock),
            **_facts(job, estimator, seed, inputs, Z),
            "warnings": warned,
            "seconds": clock.seconds,
        }
        write_record(record_path(job.output), record)
    if not job.quiet:
        _summary(job, seed, Z, clock)


def make_estimator(job: EmbedJob, bar: Bar) -> tuple[FisherEmbedding, int | None]:
    """Return the estimator, saved or new, and the seed it was or will be fitted with."""
    from fishergraph.estimators import FisherEmbedding

    if job.model is not None:
        estimator = FisherEmbedding.load(job.model)
        seed = estimator.random_state
    else:
        import secrets

        seed = secrets.randbelow(2**32) if job.seed is None else job.seed
        with wrong_call("--preset"):
            estimator = _preset(job.preset)
    return configure(estimator.set_params(random_state=seed, n_jobs=job.jobs, verbose=bar), job.settings), seed


def _preset(name: str | None) -> FisherEmbedding:
    """The estimator with the settings of a name."""
    from fishergraph._checks import look_up
    from fishergraph.estimators import FisherEmbedding
    from fishergraph.presets import PRESETS

    if name is None:
        return FisherEmbedding()
    look_up({**PRESETS, PUBLISHED: None}, name, "preset")
    return FisherEmbedding.published_code() if name == PUBLISHED else FisherEmbedding.preset(name)


def _writing_cost(job: EmbedJob, estimator: FisherEmbedding, inputs: Inputs) -> float:
    """About what writing the embedding costs beside the parts of the estimator."""
    from fishergraph.costs import writing_cost

    n_blocks = estimator.n_layers + 1 + (estimator.walk is not None)
    return writing_cost(job.output.suffix.lower(), inputs.graph.n_nodes * n_blocks * estimator.dim)


def _write(job: EmbedJob, estimator: Any, inputs: Inputs, Z: np.ndarray, bar: Bar) -> None:
    from fishergraph.tables import write_embedding

    if job.save is not None:
        import numpy as np

        if inputs.X is not None:
            estimator.feature_names_in_ = np.array(inputs.names, dtype=object)
        estimator.save(job.save)
    names = [str(name) for name in estimator.get_feature_names_out()]
    with bar("writing", Z.nbytes) as part:
        write_embedding(job.output, inputs.ids, Z, names, advance=part.update)


def _facts(
    job: EmbedJob, estimator: FisherEmbedding, seed: int | None, inputs: Inputs, Z: np.ndarray
) -> dict[str, Any]:
    """The part of the record that is this command's own."""
    from fishergraph.structural import describe_structure

    parameters = estimator.get_params(deep=False)
    structure = None
    if inputs.X is None:
        structure = describe_structure(estimator.structure, estimator.dim, estimator.structure_seed_)
    return {
        "seed": seed,
        "parameters": {key: value for key, value in parameters.items() if key not in ("verbose", "random_state")},
        "config": job.config,
        "input": inputs.facts | {"id_column": job.id_column, "drop": job.drop},
        "structural_features": structure,
        "output": {"path": job.output, "rows": Z.shape[0], "columns": Z.shape[1], "dtype": str(Z.dtype)},
        "engine": job.engine,
        "model": {"used": job.model, "saved": job.save},
    }


def _summary(job: EmbedJob, seed: int | None, Z: np.ndarray, clock: Clock) -> None:
    how = f"seed {seed}" if job.model is None else f"model {job.model}"
    typer.echo(f"{job.output}: {Z.shape[0]:,} nodes x {Z.shape[1]:,} columns in {clock.total():.1f} s ({how})")
    typer.echo(f"{record_path(job.output)}: how it was made")
    if job.save is not None:
        typer.echo(f"{job.save}: the fitted model, for --model")
