"""`fishergraph predict`: an edge file, a node file and a trained model in, a class for every node out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from fishergraph.cli.columns import columns_of
from fishergraph.cli.components import configure
from fishergraph.cli.edges import tell
from fishergraph.cli.jobs import (
    Job,
    check_outputs,
    check_tables,
    match_features,
    read_inputs,
    read_only_nodes,
    reading,
    with_options,
)
from fishergraph.cli.labels import write_predictions
from fishergraph.cli.options import DEVICE
from fishergraph.cli.record import parameters_of, record_path, recorded


@dataclass(frozen=True, kw_only=True)
class PredictJob(Job):
    """What predict was asked for.

    Parameters
    ----------
    output : FILE
        Predictions to write: .csv, .tsv (or .gz), .parquet or .npz.
    model : FILE
        The model that train wrote.
    only : FILE
        Predict only the nodes that this text file lists, an id per line: only their neighbourhoods are computed.
    proba : bool
        Write the probability of every class too.
    """

    model: Path
    only: Path | None = None
    proba: bool = False


@with_options(DEVICE)
def predict(job: PredictJob) -> None:
    """Predict the class of every node with a trained model: of the same graph, a larger one, or another one.

    Columns of the node file that the model did not learn from, such as the label, are left alone.

    [bold]Example[/bold]

    fishergraph predict edges.csv --nodes nodes.csv --model model.safetensors --proba -o predictions.csv
    """
    from fishergraph.io.embedding_file import check_written_ids
    from fishergraph.io.files import check_suffix
    from fishergraph.io.npz import SUFFIXES

    check_tables(job)
    check_suffix(job.output, SUFFIXES)
    check_outputs(job, model=job.model, only=job.only)
    with recorded(job) as run:
        with run.stage("import"):
            from fishergraph import FisherClassifier

            estimator = configure(FisherClassifier.load(job.model).set_params(n_jobs=job.jobs), job.settings)
        with run.stage("read"), reading(job, run.bar) as advance:
            inputs = read_inputs(job, **columns_of(estimator), advance=advance)
            nodes, ids = read_only_nodes(job.only, inputs)
            check_written_ids(job.output, ids)
            X = match_features(job.model, estimator, inputs)
        tell(job, inputs)
        run.bar.part("predicting")
        with run.stage("predict"):
            proba = estimator.predict_proba(X, graph=inputs.graph, nodes=nodes)
        with run.stage("write"):
            predicted = estimator.classes_[proba.argmax(1)]
            write_predictions(job.output, ids, predicted, estimator.classes_, proba if job.proba else None)
        run.facts = {
            "parameters": parameters_of(estimator),
            "input": inputs.facts,
            "model": {"used": job.model},
            "classes": [str(label) for label in estimator.classes_],
            "output": {"path": job.output, "rows": len(proba), "proba": job.proba},
        }
    if not job.quiet:
        typer.echo(f"{job.output}: {len(proba):,} nodes in {run.total():.1f} s (model {job.model})")
        typer.echo(f"{record_path(job.output)}: how it was made")
