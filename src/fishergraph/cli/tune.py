"""`fishergraph embed --tune`: the settings of an embedding, chosen on the labels of the node file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.console import Bar, printer
from fishergraph.cli.jobs import Inputs
from fishergraph.cli.labels import Labels
from fishergraph.cli.options import wrong_call

if TYPE_CHECKING:
    from fishergraph.auto import AutoEmbedding
    from fishergraph.cli.embed import EmbedJob
    from fishergraph.estimators import FisherEmbedding

_WIDE = 200  # columns of a table that is not printed on a terminal
_WRITING = 0.05  # the work of writing, beside that of all settings


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """The options of a choice of settings.

    Parameters
    ----------
    tune : bool
        Choose the settings on the labels of --label, and show what was tried; other options of the method are kept.
    label : NAME
        Column of the classes, for --tune. An empty cell (in an .npz: -1) is a node without a label.
    split : NAME, default=a third of the labels of each class chooses
        Column that says train, val or test, for --tune. Labels of test nodes are not used.
    budget : SECONDS, default=60
        Time for trying settings, for --tune. The first setting always runs.
    """

    tune: bool = False
    label: str | None = None
    split: str | None = None
    budget: float | None = None


def check_tune(job: EmbedJob) -> None:
    """Raise for options that --tune needs, that need it, or that name the settings themselves."""
    own = {"--label": job.label, "--split": job.split, "--budget": job.budget}
    named = {"--model": job.model, "--preset": job.preset}
    for flag in (flag for flag, value in own.items() if value is not None and not job.tune):
        raise typer.BadParameter(f"{flag} belongs to --tune: add it, or leave {flag} out.")
    for flag in (flag for flag, value in named.items() if value is not None and job.tune):
        raise typer.BadParameter(f"--tune chooses the settings, and {flag} names them: give one of the two.")
    if job.tune and job.label is None:
        raise typer.BadParameter("--tune chooses settings on labels: name their column with --label.")
    if job.budget is not None:
        from fishergraph._validation import check_number

        with wrong_call():
            check_number(job.budget, "--budget", strict=True)


def tuned(
    estimator: FisherEmbedding, inputs: Inputs, labels: Labels, *, budget: float | None, bar: Bar
) -> AutoEmbedding:
    """Return the embedding with the best setting; parameters of the estimator that are not defaults stay."""
    from fishergraph.auto import auto_embed
    from fishergraph.estimators import FisherEmbedding

    defaults, given = FisherEmbedding().get_params(deep=False), estimator.get_params(deep=False)
    run = {name: given.pop(name) for name in ("random_state", "n_jobs")}
    run["verbose"] = given.pop("verbose")
    params = {name: value for name, value in given.items() if value != defaults[name]}
    options: dict[str, Any] = {} if budget is None else {"budget": budget}
    val = None if labels.val is None or not len(labels.val) else labels.val
    bar.later = {"writing": _WRITING}
    bar.expect({"trying settings": 1.0})
    return auto_embed(inputs.X, inputs.graph, labels.training, val=val, heads=None, **options, **run, **params)


def facts_of(result: AutoEmbedding, job: EmbedJob) -> dict[str, Any]:
    """Return what the record says of the choice."""
    from fishergraph.auto.choice import OPTIMISTIC

    return {
        "label": job.label,
        "split": job.split,
        "budget": result.budget,
        "training_rows": len(result.train),
        "validation_rows": len(result.val),
        "setting": result.setting,
        "report": result.report,
        "note": OPTIMISTIC,
    }


def show(result: AutoEmbedding) -> None:
    """Print a table of what was tried."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from fishergraph.auto.choice import OPTIMISTIC, table

    head, *rows = table(result.report)
    page = Table(box=SIMPLE_HEAD, pad_edge=False, caption=OPTIMISTIC, caption_justify="left")
    for name in head:
        page.add_column(name, justify="left" if name == head[0] else "right", overflow="fold")
    for row in rows:
        page.add_row(*row)
    console = printer(markup=False)
    (console if console.is_terminal else printer(markup=False, width=_WIDE)).print(page)
