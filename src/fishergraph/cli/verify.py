"""`fishergraph verify`: whether a store is whole, or two stores or runs hold the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import typer

from fishergraph.cli.console import bytes_progress, one_line_warnings
from fishergraph.cli.jobs import with_options


@dataclass(frozen=True, kw_only=True)
class VerifyJob:
    """What verify was asked for.

    Parameters
    ----------
    store : STORE
        The store; with OTHER also one run, STORE/embeddings/NAME.
    other : [OTHER]
        A store or a run that it is compared with, by the checksums of both.
    sample : N, default=8
        Row blocks of every layer that are computed again.
    full : bool
        Compute every run again as a whole, averages and structural columns too.
    memory : SIZE, default=half of the free memory
        Bytes that the process may use, such as 4G or 500M.
    seed : N, default=drawn
        Which row blocks are chosen.
    jobs : N, default=all cores
        Threads; any number gives the same result.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        Say only what differs.
    debug : bool
        Show the traceback of a failure.
    """

    store: Path
    other: Path | None = None
    sample: int | None = None
    full: bool = False
    memory: str | None = None
    seed: int | None = None
    jobs: int | None = None
    config: Path | None = None
    quiet: bool = False
    debug: bool = False

    ARGUMENTS = ("store", "other")


@with_options([])
def verify(job: VerifyJob) -> None:
    """Say whether a store is whole: its files against their checksums, and a sample of rows computed again.

    With OTHER, two stores or two runs are compared. The exit code is 1 if something differs.

    [bold]Examples[/bold]

    fishergraph verify graph.store

    fishergraph verify graph.store other.store

    fishergraph verify graph.store/embeddings/default other.store/embeddings/default
    """
    begin = perf_counter()
    with one_line_warnings():
        from fishergraph.scale import verify as check

        found = check(
            job.store,
            job.other,
            sample=8 if job.sample is None else job.sample,
            full=job.full,
            memory=job.memory,
            random_state=job.seed,
            n_jobs=job.jobs,
            verbose=bytes_progress(job.quiet),
        )
    for line in str(found).splitlines():
        if not job.quiet or line.startswith("DIFFERS"):
            typer.echo(line)
    count = len(found.differences)
    if not job.quiet:
        words = "nothing differs" if not count else f"{count} of {len(found.checks)} differ"
        typer.echo(f"{words}, {perf_counter() - begin:.1f} s")
    if count:
        raise typer.Exit(1)
