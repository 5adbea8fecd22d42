"""`fishergraph predict`: an edge file, a node file and a trained model in, a class for every node out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli import common as opt
from fishergraph.cli.components import configure
from fishergraph.cli.console import Bar, explained, one_line_warnings
from fishergraph.cli.inputs import Inputs, Job, check_call, check_outputs, match_features, read_inputs, using_engine
from fishergraph.cli.labels import write_predictions
from fishergraph.cli.options import DEVICE, with_settings
from fishergraph.cli.record import Clock, record_path, surroundings, write_record

if TYPE_CHECKING:
    from fishergraph.nn.classifier import FisherClassifier


@dataclass(frozen=True, kw_only=True)
class PredictJob(Job):
    """What predict was asked for."""

    proba: bool


@with_settings(DEVICE)
def predict(
    edges: opt.Edges,
    model: opt.TrainedModel,
    output: opt.Predictions,
    nodes: opt.Nodes = None,
    proba: opt.Proba = False,
    id_column: opt.IdColumn = None,
    settings: dict[str, Any] | None = None,
    jobs: opt.Jobs = None,
    engine: opt.Engine = None,
    config: opt.Config = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict the class of every node with a trained model: of the same graph, a larger one, or another one.

    Columns of the node file that the model did not learn from, such as the label, are left alone.

    [bold]Example[/bold]

    fishergraph predict edges.csv --nodes nodes.csv --model model.safetensors --proba -o predictions.csv
    """
    job = PredictJob(
        edges=edges,
        nodes=nodes,
        output=output,
        id_column=id_column,
        drop=[],
        settings=settings or {},
        jobs=jobs,
        model=model,
        engine=engine,
        config=config,
        quiet=quiet,
        proba=proba,
    )
    check_call(job)
    with explained(debug=debug):
        run_predict(job)


def run_predict(job: PredictJob) -> None:
    """Check, read, predict, write."""
    from fishergraph.tables import check_writable, check_written_ids

    clock, bar = Clock(), Bar(quiet=job.quiet)
    check_writable(job.output)
    check_outputs(job)
    with one_line_warnings() as warned:
        with bar:
            with clock.stage("import"):
                estimator = load_estimator(job)
            bar.part("reading")
            with clock.stage("read"):
                learned = getattr(estimator, "feature_names_in_", None)
                inputs = read_inputs(job, only=[] if learned is None else learned.tolist())
                check_written_ids(job.output, inputs.ids)
                X = match_features(job, estimator, inputs)
            bar.part("predicting")
            with clock.stage("predict"), using_engine(job.engine):
                chances, predicted = _predict(estimator, X, inputs)
            with clock.stage("write"):
                shown = chances if job.proba else None
                write_predictions(job.output, inputs.ids, predicted, estimator.classes_, shown)
        clock.seconds["total"] = clock.total()
        facts = _facts(job, estimator, inputs, len(predicted))
        write_record(
            record_path(job.output), surroundings(clock) | facts | {"warnings": warned, "seconds": clock.seconds}
        )
    if not job.quiet:
        typer.echo(f"{job.output}: {len(predicted):,} nodes in {clock.total():.1f} s (model {job.model})")
        typer.echo(f"{record_path(job.output)}: how it was made")


def load_estimator(job: PredictJob) -> FisherClassifier:
    """The saved estimator."""
    from fishergraph._optional import require

    require("torch", extra="torch")
    from fishergraph.nn.classifier import FisherClassifier

    assert job.model is not None
    return configure(FisherClassifier.load(job.model).set_params(n_jobs=job.jobs), job.settings)


def _predict(estimator: FisherClassifier, X: Any, inputs: Inputs) -> tuple[Any, Any]:
    """(probabilities, classes)."""
    vars(estimator).pop("feature_names_in_", None)  # X is a plain array, and its columns are in order
    chances = estimator.predict_proba(X, graph=inputs.graph)
    return chances, estimator.classes_[chances.argmax(1)]


def _facts(job: PredictJob, estimator: FisherClassifier, inputs: Inputs, n_rows: int) -> dict[str, Any]:
    """The part of the record that is this command's own."""
    parameters = estimator.get_params(deep=False)
    return {
        "parameters": {key: value for key, value in parameters.items() if key != "verbose"},
        "config": job.config,
        "input": inputs.facts | {"id_column": job.id_column},
        "model": {"used": job.model},
        "classes": [str(label) for label in estimator.classes_],
        "output": {"path": job.output, "rows": n_rows, "proba": job.proba},
    }
