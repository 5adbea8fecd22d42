"""`fishergraph train`: an edge file and a node file with labels in, a trained classifier and its run record out."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.columns import tell_columns
from fishergraph.cli.components import configure
from fishergraph.cli.console import Bar, say
from fishergraph.cli.edges import tell
from fishergraph.cli.embed_store import is_store
from fishergraph.cli.jobs import (
    Inputs,
    LearningJob,
    check_outputs,
    check_tables,
    reading,
    save_with_names,
    structure_of,
    with_options,
)
from fishergraph.cli.labels import Labels, read_labelled
from fishergraph.cli.options import CLASSIFIER, flag_of
from fishergraph.cli.record import parameters_of, record_path, recorded
from fishergraph.cli.train_store import check_train_store, read_train_store

if TYPE_CHECKING:
    from fishergraph import FisherClassifier

LOGS, PLOTS = (".csv", ".jsonl"), (".png", ".svg", ".pdf")
VALIDATION = "training__validation_fraction"


@dataclass(frozen=True, kw_only=True)
class TrainJob(LearningJob):
    """What train was asked for.

    Parameters
    ----------
    output : FILE
        The trained model to write (safetensors).
    label : NAME
        Column of the classes. A cell that is empty, NA, NaN or null (in an .npz: -1) is a node without a label.
    split : NAME, default=the train_mask, val_mask and test_mask of an .npz that has them
        Column that says train, val or test; rows with an empty cell are not used.
    checkpoint : FILE
        Keep the state of the training here; needs --seed.
    resume : bool
        Continue from the checkpoint, if there is one.
    memory : SIZE, default=half of the free memory
        Bytes that the training on a store may use, such as 4G or 500M.
    name : NAME, default=classes
        What the outputs for a store are called: the folder in its embeddings, which is replaced.
    log : FILE
        Write a row per epoch here: .csv or .jsonl.
    plot : FILE
        Draw losses and accuracies here: .png, .svg or .pdf.
    """

    label: str
    split: str | None = None
    checkpoint: Path | None = None
    resume: bool = False
    memory: str | None = None
    name: str | None = None
    log: Path | None = None
    plot: Path | None = None

    @property
    def is_probe(self) -> bool:
        """Whether the embedding is probed, without a network."""
        return self.settings.get("mode") == "probe"


@with_options(CLASSIFIER)
def train(job: TrainJob) -> None:
    """Train a classifier of nodes on the labels that some of them have; OUTPUT.run.json records the run.

    Nodes without a label belong to the graph all the same. --mode probe needs seconds and no PyTorch; a network is
    trained for many epochs, and Ctrl-C saves the best model so far. A store in place of EDGES is read as it is needed;
    --nodes is then a table with ids and labels.

    [bold]Examples[/bold]

    fishergraph train edges.csv --nodes nodes.csv --label topic --mode probe --undirected -o model.safetensors

    fishergraph train edges.csv -n nodes.csv --label topic --split part --lr 0.01 --plot curves.png -o m

    fishergraph train graph.store -n labels.csv --label topic --batch-size 512 --memory 4G -o m

    fishergraph train edges.csv -n nodes.csv --label topic --seed 0 --checkpoint run.ckpt --resume -o m

    A [bold]COMPONENT[/bold] is a name, a name with options, or options of the default alone; --multiset help lists
    the multisets and their options, and so do --family help and --em help.
    """
    _check_call(job)
    run_train(job)


def _check_call(job: TrainJob) -> None:
    """Raise for options that contradict each other or need another one, and for files that cannot be written."""
    from fishergraph._optional import require
    from fishergraph.io.files import check_suffix

    if job.is_probe:
        _check_no_network(job)
    if job.split is not None and VALIDATION in job.settings:
        raise typer.BadParameter(
            "--validation-fraction chooses validation nodes, and --split names them: give one of the two."
        )
    if job.resume and job.checkpoint is None:
        raise typer.BadParameter("--resume continues from a checkpoint: give its path with --checkpoint.")
    if job.checkpoint is not None and job.seed is None:
        raise typer.BadParameter("--checkpoint needs --seed, without which a run cannot be continued.")
    check_train_store(job)
    check_tables(job, job.drop)
    check_outputs(job, job.checkpoint, job.log, job.plot)
    for path, suffixes in ((job.log, LOGS), (job.plot, PLOTS)):
        if path is not None:
            check_suffix(path, suffixes)
    if job.plot is not None:
        require("matplotlib", extra="plots")


def _check_no_network(job: TrainJob) -> None:
    """Raise for options of a network beside --mode probe."""
    options = [flag_of(path) for path in job.settings if path.startswith(("network__", "training__"))]
    files = {"--checkpoint": job.checkpoint, "--resume": job.resume, "--log": job.log, "--plot": job.plot}
    options += [flag for flag, value in files.items() if value]
    if options:
        raise typer.BadParameter(f"{options[0]} belongs to a network: leave it or --mode probe out.")


def run_train(job: TrainJob) -> None:
    """Read, train, write."""
    with recorded(job) as run:
        with run.stage("import"):
            estimator = make_estimator(job, run.bar)
        with run.stage("read"):
            inputs, labels = _read(job, run.bar)
        if inputs.graph is not None:
            tell(job, inputs, hint=True)
        if not job.is_probe:
            run.bar.expect({"learning": 1, "training": 20})
        with run.stage("train"):
            _fit(job, estimator, inputs, labels)
        inputs.facts["columns"] = tell_columns(job, estimator.encoder_, inputs)
        run.bar.part("writing")
        with run.stage("write"):
            results = _write(job, estimator, inputs, labels)
        files = {"drop": job.drop or [], "label": job.label, "split": labels.split}
        run.facts = {
            "seed": estimator.random_state,
            "parameters": parameters_of(estimator, "random_state"),
            "input": inputs.facts | files,
            "structure": structure_of(estimator),
            "classes": [str(label) for label in estimator.classes_],
            "results": results,
            "output": {"path": job.output, "checkpoint": job.checkpoint, "log": job.log, "plot": job.plot},
        }
    if not job.quiet:
        _summary(job, estimator, results, run.total())
    if results["interrupted"]:
        say(f"interrupted; the best model so far, of epoch {results['best_epoch']}, is in '{job.output}'.")
        raise SystemExit(130)


def make_estimator(job: TrainJob, bar: Bar) -> FisherClassifier:
    """Return the estimator that was asked for."""
    from fishergraph._optional import require

    if not job.is_probe:
        require("torch", extra="torch")
    from fishergraph import FisherClassifier

    seed = secrets.randbelow(2**32) if job.seed is None else job.seed
    return configure(FisherClassifier(random_state=seed, n_jobs=job.jobs, verbose=bar), job.parameters)


def read(job: TrainJob, advance: Callable[[int], Any]) -> tuple[Inputs, Labels]:
    """The graph, the features, and the labels beside them; --validation-fraction wins over a mask of the file."""
    inputs, labels = read_labelled(job, job.label, job.split, command="train", advance=advance)
    return inputs, replace(labels, val=None) if VALIDATION in job.settings else labels


def _read(job: TrainJob, bar: Bar) -> tuple[Inputs, Labels]:
    """What is trained on: files of edges and nodes, or a store and a table of labels."""
    if is_store(job.edges):
        inputs, labels = read_train_store(job)
        return inputs, replace(labels, val=None) if VALIDATION in job.settings else labels
    with reading(job, bar) as advance:
        return read(job, advance)


def _fit(job: TrainJob, estimator: FisherClassifier, inputs: Inputs, labels: Labels) -> None:
    if job.is_probe:
        val = None if labels.val is None or not len(labels.val) else labels.val
        estimator.fit(inputs.X, labels.training, graph=inputs.graph, val=val)
        return
    # The command says itself what the library logs: what Ctrl-C did, and that there is no checkpoint yet.
    logging.getLogger("fishergraph.nn").addHandler(logging.NullHandler())
    if job.resume and job.checkpoint is not None and not job.checkpoint.exists() and not job.quiet:
        say(f"no checkpoint at '{job.checkpoint}' yet; training starts with the first epoch.")
    files = {"checkpoint": job.checkpoint, "resume": job.resume, "log": job.log}
    estimator.fit(inputs.X, labels.training, graph=inputs.graph, val=labels.val, **files)
    if estimator.history_.best is None:
        raise KeyboardInterrupt  # before the first epoch was done: there is no model


def _write(job: TrainJob, estimator: FisherClassifier, inputs: Inputs, labels: Labels) -> dict[str, Any]:
    """Write the model and the curves; returns how good the model is."""
    results = _probe_results(estimator) if job.is_probe else _network_results(estimator)
    if labels.test is not None and len(labels.test):
        results["test_accuracy"] = estimator.score(inputs.X, labels.tested, graph=inputs.graph)
    estimator.classes_ = labels.classes  # instead of their numbers
    save_with_names(estimator, inputs, job.output)
    if job.plot is not None:
        from fishergraph.plots import training
        from fishergraph.plots.figures import save

        upper, _ = training(estimator.history_, title=f"{job.label} of {job.edges.name}")
        save(upper.figure, job.plot)
    return results


def _network_results(estimator: FisherClassifier) -> dict[str, Any]:
    history = estimator.history_
    best: dict[str, Any] = history.best or {}
    results = {"epochs": len(history), "best_epoch": history.best_epoch, "interrupted": history.interrupted}
    return results | {name: best[name] for name in ("loss", "train_accuracy", "val_accuracy", "val_loss")}


def _probe_results(estimator: FisherClassifier) -> dict[str, Any]:
    probe = estimator.probe_
    return {"heads": probe.chosen_, "val_accuracy": probe.val_score_, "val_ece": probe.val_ece_, "interrupted": False}


def _summary(job: TrainJob, estimator: FisherClassifier, results: dict[str, Any], seconds: float) -> None:
    names = {"train_accuracy": "training", "val_accuracy": "validation", "test_accuracy": "test"}
    right = ", ".join(f"{name} {results[key]:.1%}" for key, name in names.items() if results.get(key) is not None)
    if job.is_probe:
        made = " + ".join(f"{weight:.0%} {head}" for head, weight in results["heads"].items())
    else:
        made = f"epoch {results['best_epoch']} of {results['epochs']}"
    typer.echo(
        f"{job.output}: {len(estimator.classes_)} classes, {made}, {right} right, in {seconds:.1f} s "
        f"(seed {estimator.random_state})"
    )
    typer.echo(f"{record_path(job.output)}: how it was made")
    for path, what in ((job.log, "a row per epoch"), (job.plot, "the curves"), (job.checkpoint, "for --resume")):
        if path is not None:
            typer.echo(f"{path}: {what}")
