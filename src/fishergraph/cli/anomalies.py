"""`fishergraph anomalies`: how odd every node is, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer

from fishergraph.cli.explain import ModelJob, read_explainer, write_listing
from fishergraph.cli.jobs import check_outputs, check_tables, with_options
from fishergraph.cli.record import record_path, recorded

SUFFIXES = {".csv": ",", ".tsv": "\t", ".parquet": None}
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class AnomaliesJob(ModelJob):
    """What anomalies was asked for.

    Parameters
    ----------
    output : FILE
        Table to write, a row per node, the oddest first: .csv, .tsv or .parquet.
    permutations : N, default=199
        Permutations of the features for p-values of neighbourhoods; 0 leaves them out.
    seed : N, default=0
        Seed of the permutations.
    """

    permutations: int = 199
    seed: int | None = None


@with_options([])
def anomalies(job: AnomaliesJob) -> None:
    """Rank nodes by how odd they are.

    A node is odd if it is unlike its neighbours (context), if these are unlike each other (discord), or if nothing like
    it was there when the model was fitted (novelty). p-values say whether its neighbourhood is an ordinary sample.

    [bold]Example[/bold]

    fishergraph anomalies edges.csv --nodes nodes.csv --model model.safetensors -o odd.csv
    """
    from fishergraph.io.files import check_suffix

    check_tables(job, job.drop)
    check_suffix(job.output, SUFFIXES)
    check_outputs(job, model=job.model)
    if job.permutations < 0:
        raise typer.BadParameter(f"--permutations must be an integer of at least 0, got {job.permutations}.")
    with recorded(job) as run:
        with run.stage("import"):
            from fishergraph.explain import Listing
        with run.stage("read"):
            explainer, inputs = read_explainer(job, progress=run.bar)
        with run.stage("score"):
            odd = explainer.anomaly_scores()
            columns: dict[str, Any] = {
                "id": odd.nodes,
                "score": odd.scores,
                "reason": odd.reasons,
                "context": odd.context,
                "discord": odd.discord,
                "novelty": odd.novelty,
            }
            if job.permutations:
                near = explainer.neighbourhood_scores(n_permutations=job.permutations, random_state=job.seed or 0)
                columns |= {"neighbourhood_score": near.scores, "neighbourhood_z": near.z}
                columns |= {"p_value": near.p_values, "q_value": near.q_values, "effective_size": near.effective_sizes}
        order = odd.listing()["row"]
        listing = Listing({name: column[order] for name, column in columns.items()})
        with run.stage("write"):
            write_listing(job.output, listing)
        run.facts = {
            "input": inputs.facts,
            "model": {"used": job.model},
            "permutations": job.permutations,
            "seed": job.seed or 0,
            "output": {"path": job.output, "rows": len(listing)},
        }
    if not job.quiet:
        shown = {name: listing[name] for name in ("id", "score", "reason", "context", "discord", "novelty")}
        typer.echo(str(Listing(shown).take(slice(0, _SHOWN))))
        typer.echo(f"{job.output}: {len(listing):,} nodes in {run.total():.1f} s (model {job.model})")
        typer.echo(f"{record_path(job.output)}: how it was made")
