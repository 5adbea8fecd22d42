"""`fishergraph plan`: what an embedding takes, before any of it is done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.components import configure
from fishergraph.cli.embed import preset_maker
from fishergraph.cli.jobs import with_options
from fishergraph.cli.options import EMBEDDING, flag_of, wrong_call

if TYPE_CHECKING:
    from fishergraph.scale import GraphSize, Store

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}


@dataclass(frozen=True, kw_only=True)
class PlanJob:
    """What plan was asked for.

    Parameters
    ----------
    store : STORE
        Store to embed. Without it --nodes and --edges say how large the graph is.
    n_nodes : N
        Number of nodes, such as 111059956, 1e8 or 111M.
    n_edges : N
        Number of stored edges.
    n_features : N, default=0
        Number of features.
    weighted : bool
        Edges have weights.
    undirected : bool
        Edges have no direction: each of them is stored twice.
    memory : BYTES, default=half of the memory
        Memory that the embedding may take, such as 4G.
    workers : N, default=1
        Workers that share the parts of a stage, each a machine like this one.
    folder : DIR, default=that of the store, or the current one
        Folder whose disk the store is on, or will be.
    preset : NAME
        Start from other settings: fast, best (four layers), paper (its equations alone) or published-code (the
        rule of the authors' code).
    settings : dict
        The options that are generated from estimators and components: texts and flags, by parameter.
    jobs : N, default=all cores
        Threads; any number gives the same result.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    debug : bool
        Show the traceback of a failure.
    """

    ARGUMENTS = ("store",)

    store: Path | None = None
    n_nodes: str | None = None
    n_edges: str | None = None
    n_features: str | None = None
    weighted: bool = False
    undirected: bool = False
    memory: str | None = None
    workers: int = 1
    folder: Path | None = None
    preset: str | None = None
    settings: dict[str, Any]
    jobs: int | None = None
    config: Path | None = None
    debug: bool = False


@with_options(EMBEDDING)
def plan(job: PlanJob) -> None:
    """Predict memory, disk, bytes and time of an embedding on this machine, stage by stage.

    It measures the machine for a few seconds and writes no more than a file for that, which it removes.

    [bold]Examples[/bold]

    fishergraph plan graph.store --memory 4G

    fishergraph plan --nodes 111M --edges 1.6G --undirected --features 128 --memory 16G --structure none

    fishergraph plan graph.store --memory 4G --n-layers 3 --dim 128 --workers 8
    """
    from fishergraph.scale.memory import parse_memory
    from fishergraph.scale.planning import plan as plan_of

    graph: Store | GraphSize = _sizes(job) if job.store is None else _store(job)
    options: dict[str, Any] = {"workers": job.workers, "folder": job.folder}
    if job.memory is not None:
        with wrong_call("--memory"):
            options["memory"] = parse_memory(job.memory)
    model = configure(preset_maker(job.preset)(random_state=0).set_params(n_jobs=job.jobs), job.settings)
    typer.echo(str(plan_of(graph, model, **options)))


_SIZES = ("n_nodes", "n_edges", "n_features")


def _store(job: PlanJob) -> Store:
    """The store, whose sizes are its own."""
    from fishergraph.scale import Store

    given = [flag_of(name) for name in (*_SIZES, "weighted", "undirected") if getattr(job, name)]
    if given:
        raise typer.BadParameter(f"{', '.join(given)} belongs to a plan without a store; leave it out.")
    return Store(Path(str(job.store)))


def _sizes(job: PlanJob) -> GraphSize:
    """The sizes of a graph that need not be anywhere."""
    from fishergraph.scale import GraphSize

    if job.n_nodes is None or job.n_edges is None:
        raise typer.BadParameter("a plan needs a STORE, or the size of a graph: --nodes N --edges E --features d.")
    texts = {name: getattr(job, name) for name in _SIZES}
    counts: dict[str, Any] = {name: read_count(text, flag_of(name)) for name, text in texts.items() if text is not None}
    counts["n_edges"] *= 2 if job.undirected else 1
    with wrong_call():
        return GraphSize(**counts, weighted=job.weighted)


def read_count(text: str, flag: str) -> int:
    """Return a number such as 111059956, 111_059_956, 1e8, 111M or 1.6G."""
    found = re.fullmatch(r"(\d{1,30}(?:\.\d{1,30})?(?:e\d{1,2})?)([kmgb]?)", text.strip().lower().replace("_", ""))
    if found is None:
        raise typer.BadParameter(f"{flag} must be a number such as 1500, 1e8 or 111M, got {text!r}.")
    return round(float(found[1]) * _UNITS[found[2]]) if not found[1].isdigit() else int(found[1]) * _UNITS[found[2]]
