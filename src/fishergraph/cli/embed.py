"""`fishergraph embed`: an edge file and a node file in, an embedding and its run record out."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli import common as opt
from fishergraph.cli.choices import wrong_call
from fishergraph.cli.components import configure
from fishergraph.cli.console import Bar, explained, say
from fishergraph.cli.inputs import (
    Inputs,
    LearningJob,
    check_outputs,
    check_tables,
    match_features,
    one_way_hint,
    read_inputs,
    structure_of,
)
from fishergraph.cli.options import EMBEDDING, flag_of, with_options
from fishergraph.cli.record import parameters_of, record_path, recorded

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.estimators import FisherEmbedding

PUBLISHED = "published-code"


@dataclass(frozen=True, kw_only=True)
class EmbedJob(LearningJob):
    """What embed was asked for."""

    preset: opt.Preset = None
    save: opt.Save = None
    model: opt.Model = None


@with_options(EMBEDDING)
def embed(job: EmbedJob) -> None:
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
    _check_call(job)
    with explained(debug=job.debug):
        run_embed(job)


def _check_call(job: EmbedJob) -> None:
    """Raise a usage error for options that contradict each other."""
    if job.model is not None:
        fitting = [flag_of(path) for path in job.parameters if path != "device"]
        fitting += [f"--{key}" for key in ("preset", "seed", "save") if getattr(job, key) is not None]
        if fitting:
            raise typer.BadParameter(f"{', '.join(fitting)} belongs to fitting, and --model is used as it is.")
    check_tables(job, job.drop)


def run_embed(job: EmbedJob) -> None:
    """Check, read, embed, write."""
    from fishergraph.io.tables import check_writable, check_written_ids

    check_writable(job.output)
    check_outputs(job, job.save, model=job.model)
    with recorded(job.output, engine=job.engine, quiet=job.quiet) as run:
        with run.stage("import"):
            estimator = make_estimator(job, run.bar)
        run.bar.part("reading")
        with run.stage("read"):
            inputs = read_inputs(job, drop=job.drop)
            check_written_ids(job.output, inputs.ids)
        hint = None if job.quiet or job.model or job.says_direction else one_way_hint(inputs.graph)
        if hint:
            say(hint)
        run.bar.later = {"writing": _writing_cost(job, estimator, inputs)}
        with run.stage("embed"):
            if job.model is None:
                Z = estimator.fit_transform(inputs.X, graph=inputs.graph)
            else:
                X = match_features(job.model, estimator, inputs, advice=", or leave some out with --drop")
                Z = estimator.transform(X, graph=inputs.graph)
        run.seconds["parts_of_embed"] = dict(run.bar.seconds)
        with run.stage("write"):
            _write(job, estimator, inputs, Z, run.bar)
        run.facts = _facts(job, estimator, inputs, Z)
    if not job.quiet:
        how = f"seed {estimator.random_state}" if job.model is None else f"model {job.model}"
        typer.echo(f"{job.output}: {Z.shape[0]:,} nodes x {Z.shape[1]:,} columns in {run.total():.1f} s ({how})")
        typer.echo(f"{record_path(job.output)}: how it was made")
        if job.save is not None:
            typer.echo(f"{job.save}: the fitted model, for --model")


def make_estimator(job: EmbedJob, bar: Bar) -> FisherEmbedding:
    """Return the estimator, saved or new, with the seed it was or will be fitted with."""
    from fishergraph.estimators import FisherEmbedding

    if job.model is not None:
        estimator = FisherEmbedding.load(job.model)
    else:
        with wrong_call("--preset"):
            estimator = _preset(job.preset)
        estimator.set_params(random_state=secrets.randbelow(2**32) if job.seed is None else job.seed)
    return configure(estimator.set_params(n_jobs=job.jobs, verbose=bar), job.parameters)


def _preset(name: str | None) -> FisherEmbedding:
    """The estimator with the settings of a name."""
    from fishergraph._validation import look_up
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
    from fishergraph.io.tables import write_embedding

    if job.save is not None:
        import numpy as np

        if inputs.X is not None:
            estimator.feature_names_in_ = np.array(inputs.names, dtype=object)
        estimator.save(job.save)
    names = [str(name) for name in estimator.get_feature_names_out()]
    with bar("writing", Z.nbytes) as part:
        write_embedding(job.output, inputs.ids, Z, names, advance=part.update)


def _facts(job: EmbedJob, estimator: FisherEmbedding, inputs: Inputs, Z: np.ndarray) -> dict[str, Any]:
    """The part of the record that is this command's own."""
    return {
        "seed": estimator.random_state,
        "parameters": parameters_of(estimator, "random_state"),
        "config": job.config,
        "input": inputs.facts | {"id_column": job.id_column, "drop": job.drop or []},
        "structural_features": structure_of(estimator, inputs),
        "output": {"path": job.output, "rows": Z.shape[0], "columns": Z.shape[1], "dtype": str(Z.dtype)},
        "model": {"used": job.model, "saved": job.save},
    }
