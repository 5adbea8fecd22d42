"""`fishergraph embed`: an edge file and a node file in, an embedding and its run record out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli import options as opt
from fishergraph.cli.console import Bar, explained, one_line_warnings, say
from fishergraph.cli.inputs import Inputs, Job, match_features, one_way_hint, read_inputs
from fishergraph.cli.record import Clock, record_path, surroundings, write_record

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.estimators import FisherEmbedding


def embed(
    ctx: typer.Context,
    edges: opt.Edges,
    output: opt.Output,
    nodes: opt.Nodes = None,
    id_column: opt.IdColumn = None,
    drop: opt.Drop = None,
    undirected: opt.Undirected = None,
    structure: opt.Structure = None,
    layers: opt.Layers = None,
    anchors: opt.Anchors = None,
    dim: opt.Dim = None,
    em_iter: opt.EmIter = None,
    variance: opt.Variance = None,
    sharpness: opt.Sharpness = None,
    prior: opt.Prior = None,
    counts: opt.Counts = None,
    normalize: opt.Normalize = None,
    anchor_method: opt.AnchorMethod = None,
    multiset: opt.Multiset = None,
    weights: opt.Weights = None,
    kernel: opt.Kernel = None,
    bandwidth: opt.Bandwidth = None,
    attention: opt.Attention = None,
    seed: opt.Seed = None,
    jobs: opt.Jobs = None,
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

    fishergraph embed edges.csv -n nodes.csv --drop label --layers 2 --seed 0 -o z.npz --save model.safetensors

    fishergraph embed new_edges.csv -n new_nodes.csv --drop label --model model.safetensors -o new_z.npz
    """
    settings = {opt.SETTINGS[key]: value for key, value in ctx.params.items() if key in opt.SETTINGS}
    job = Job(
        edges=edges,
        nodes=nodes,
        output=output,
        id_column=id_column,
        drop=list(drop or []),
        settings={key: value for key, value in settings.items() if value is not None},
        seed=seed,
        jobs=jobs,
        save=save,
        model=model,
        config=config,
        quiet=quiet,
    )
    _check_call(job)
    with explained(debug=debug):
        run_embed(job)


def _check_call(job: Job) -> None:
    """Raise a usage error for options that contradict each other."""
    if job.model is not None:
        flags = {parameter: "--" + key.replace("_", "-") for key, parameter in opt.SETTINGS.items()}
        fitting = [flags[key] for key in job.settings]
        fitting += [f"--{key}" for key in ("seed", "save") if getattr(job, key) is not None]
        if fitting:
            raise typer.BadParameter(f"{', '.join(fitting)} belongs to fitting, and --model is used as it is.")
    table = job.nodes is not None and job.nodes.suffix.lower() != ".npz"
    if not table and (job.id_column is not None or job.drop):
        raise typer.BadParameter("--id-column and --drop need a node table: give --nodes with a CSV, TSV or Parquet.")


def run_embed(job: Job) -> None:
    """Check, read, embed, write."""
    clock, bar = Clock(), Bar(quiet=job.quiet)
    check_outputs(job)
    with one_line_warnings() as warned:
        with bar:
            with clock.stage("import"):
                estimator, seed = make_estimator(job, bar)
            bar.part("reading")
            with clock.stage("read"):
                inputs = read_inputs(job)
            if not job.quiet and (hint := one_way_hint(job, inputs.graph)):
                say(hint)
            X = inputs.X
            if job.model is not None:
                X = match_features(job, estimator, inputs)
                vars(estimator).pop("feature_names_in_", None)  # X is a plain array, and its columns are in order
            bar.expect(estimator.n_layers + 1)
            with clock.stage("embed"):
                step = estimator.fit_transform if job.model is None else estimator.transform
                Z = step(X, graph=inputs.graph)
            bar.part("writing")
            with clock.stage("write"):
                _write(job, estimator, inputs, Z)
        clock.seconds |= {"parts_of_embed": bar.seconds, "total": clock.total()}
        record = {
            **surroundings(clock),
            **_facts(job, estimator, seed, inputs, Z),
            "warnings": warned,
            "seconds": clock.seconds,
        }
        write_record(record_path(job.output), record)
    if not job.quiet:
        _summary(job, seed, Z, clock)


def check_outputs(job: Job) -> None:
    """Raise if a file cannot be written where it is asked for, or would replace one that is read."""
    from fishergraph._file_checks import check_folder
    from fishergraph.tables import check_writable

    check_writable(job.output)
    outputs = [job.output, record_path(job.output)]
    if job.save is not None:
        check_folder(job.save)
        outputs.append(job.save)
    check_folder(record_path(job.output))
    taken = {path.resolve(): path for path in (job.edges, job.nodes, job.model, job.config) if path is not None}
    for path in outputs:
        if path.resolve() in taken:
            raise ValueError(f"every file must have its own path, got '{path}' twice; choose another output.")
        taken[path.resolve()] = path


def make_estimator(job: Job, bar: Bar) -> tuple[FisherEmbedding, int | None]:
    """The estimator, saved or new, and the seed it was or will be fitted with."""
    from fishergraph.estimators import FisherEmbedding

    if job.model is not None:
        model = FisherEmbedding.load(job.model)
        model.set_params(n_jobs=job.jobs, verbose=bar)
        return model, model.random_state
    import secrets

    seed = secrets.randbelow(2**32) if job.seed is None else job.seed
    return FisherEmbedding(**job.settings, random_state=seed, n_jobs=job.jobs, verbose=bar), seed  # type: ignore


def _write(job: Job, estimator: Any, inputs: Inputs, Z: np.ndarray) -> None:
    from fishergraph.tables import write_embedding

    if job.save is not None:
        import numpy as np

        if inputs.X is not None:
            estimator.feature_names_in_ = np.array(inputs.names, dtype=object)
        estimator.save(job.save)
    write_embedding(job.output, inputs.ids, Z, [str(name) for name in estimator.get_feature_names_out()])


def _facts(job: Job, estimator: FisherEmbedding, seed: int | None, inputs: Inputs, Z: np.ndarray) -> dict[str, Any]:
    """The part of the record that is this command's own."""
    from fishergraph.structural import describe_structure

    parameters = estimator.get_params(deep=False)
    structure = None
    if inputs.X is None:
        structure = describe_structure(estimator.structure, estimator.dim, estimator._structure_seed)
    return {
        "seed": seed,
        "parameters": {key: value for key, value in parameters.items() if key not in ("verbose", "random_state")},
        "config": job.config,
        "input": inputs.facts | {"id_column": job.id_column, "drop": job.drop},
        "structural_features": structure,
        "output": {"path": job.output, "rows": Z.shape[0], "columns": Z.shape[1], "dtype": str(Z.dtype)},
        "model": {"used": job.model, "saved": job.save},
    }


def _summary(job: Job, seed: int | None, Z: np.ndarray, clock: Clock) -> None:
    how = f"seed {seed}" if job.model is None else f"model {job.model}"
    typer.echo(f"{job.output}: {Z.shape[0]:,} nodes x {Z.shape[1]:,} columns in {clock.total():.1f} s ({how})")
    typer.echo(f"{record_path(job.output)}: how it was made")
    if job.save is not None:
        typer.echo(f"{job.save}: the fitted model, for --model")
