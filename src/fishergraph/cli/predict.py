"""`fishergraph predict`: an edge file, a node file and a trained model in, a class for every node out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli import common as opt
from fishergraph.cli.components import configure
from fishergraph.cli.console import explained
from fishergraph.cli.inputs import Inputs, Job, check_outputs, check_tables, match_features, read_inputs
from fishergraph.cli.labels import write_predictions
from fishergraph.cli.options import DEVICE, with_options
from fishergraph.cli.record import parameters_of, record_path, recorded

if TYPE_CHECKING:
    from fishergraph import FisherClassifier


@dataclass(frozen=True, kw_only=True)
class PredictJob(Job):
    """What predict was asked for."""

    output: opt.Predictions
    model: opt.TrainedModel
    proba: opt.Proba = False


@with_options(DEVICE)
def predict(job: PredictJob) -> None:
    """Predict the class of every node with a trained model: of the same graph, a larger one, or another one.

    Columns of the node file that the model did not learn from, such as the label, are left alone.

    [bold]Example[/bold]

    fishergraph predict edges.csv --nodes nodes.csv --model model.safetensors --proba -o predictions.csv
    """
    check_tables(job)
    with explained(debug=job.debug):
        run_predict(job)


def run_predict(job: PredictJob) -> None:
    """Check, read, predict, write."""
    from fishergraph.io.tables import check_writable, check_written_ids

    check_writable(job.output)
    check_outputs(job, model=job.model)
    with recorded(job.output, engine=job.engine, quiet=job.quiet) as run:
        with run.stage("import"):
            estimator = load_estimator(job)
        run.bar.part("reading")
        with run.stage("read"):
            learned = getattr(estimator, "feature_names_in_", None)
            inputs = read_inputs(job, only=[] if learned is None else learned.tolist())
            check_written_ids(job.output, inputs.ids)
            X = match_features(job.model, estimator, inputs)
        run.bar.part("predicting")
        with run.stage("predict"):
            proba = estimator.predict_proba(X, graph=inputs.graph)
        with run.stage("write"):
            predicted = estimator.classes_[proba.argmax(1)]
            write_predictions(job.output, inputs.ids, predicted, estimator.classes_, proba if job.proba else None)
        run.facts = _facts(job, estimator, inputs)
    if not job.quiet:
        typer.echo(f"{job.output}: {len(proba):,} nodes in {run.total():.1f} s (model {job.model})")
        typer.echo(f"{record_path(job.output)}: how it was made")


def load_estimator(job: PredictJob) -> FisherClassifier:
    """Return the saved estimator."""
    from fishergraph._optional import require

    require("torch", extra="torch")
    from fishergraph import FisherClassifier

    return configure(FisherClassifier.load(job.model).set_params(n_jobs=job.jobs), job.settings)


def _facts(job: PredictJob, estimator: FisherClassifier, inputs: Inputs) -> dict[str, Any]:
    """The part of the record that is this command's own."""
    return {
        "parameters": parameters_of(estimator),
        "config": job.config,
        "input": inputs.facts | {"id_column": job.id_column},
        "model": {"used": job.model},
        "classes": [str(label) for label in estimator.classes_],
        "output": {"path": job.output, "rows": inputs.graph.n_nodes, "proba": job.proba},
    }
