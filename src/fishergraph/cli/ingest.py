"""`fishergraph ingest`: files of edges and nodes of any size in, a store out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._repr import counted
from fishergraph.cli.console import bytes_progress, one_line_warnings
from fishergraph.cli.edges import EdgeColumns
from fishergraph.cli.jobs import with_options
from fishergraph.cli.options import wrong_call

if TYPE_CHECKING:
    from fishergraph.scale import Store

_CHOICES = {
    "duplicates": ("add", "once"),
    "self_loops": ("keep", "drop"),
    "unknown": ("error", "drop", "add"),
    "dtype": ("float32", "float16", "float64"),
}


@dataclass(frozen=True, kw_only=True)
class IngestJob(EdgeColumns):
    """What ingest was asked for.

    Parameters
    ----------
    edges : EDGES
        Edges: .parquet, .csv, .tsv, .txt (or .gz of text) with columns source, target[, weight]; a folder or a pattern
        of such files; .npy (2, E) or (E, 2); .npz; a folder of OGB; .pt of PyTorch Geometric; or a URL, such as s3://.
    nodes : [NODES]
        Nodes: a table with an id column and numbers, or a .npy matrix whose row v is node v.
    output : FOLDER
        The store to write.
    undirected : bool
        Add the reverse of every edge, or keep edges as given.
    duplicates : NAME, default=add
        Parallel edges add their weights (add), or count once with the largest weight (once).
    self_loops : NAME, default=keep
        What happens to edges from a node to itself: keep or drop.
    unknown : NAME, default=error
        What happens to edges that end at a node which is not in NODES: error, drop the edge, or add the node.
    id_column : NAME, default=id, node or node_id, else the row numbers
        Column of the node ids.
    drop : NAME
        Column that is not a feature, such as a label; repeatable.
    dtype : NAME, default=float32
        Type of the features: float32, float16 or float64.
    memory : SIZE, default=half of the free memory
        Bytes that the process may use, such as 4G or 500M.
    overwrite : bool
        Replace the store that is there.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        No bar or summary.
    debug : bool
        Show the traceback of a failure.
    """

    edges: str
    nodes: str | None = None
    output: Path
    undirected: bool | None = None
    duplicates: str | None = None
    self_loops: str | None = None
    unknown: str | None = None
    id_column: str | None = None
    drop: list[str] | None = None
    dtype: str | None = None
    memory: str | None = None
    overwrite: bool = False
    config: Path | None = None
    quiet: bool = False
    debug: bool = False

    ARGUMENTS = ("edges", "nodes")


@with_options([])
def ingest(job: IngestJob) -> None:
    """Make a store of a graph of any size, within a budget of memory.

    The store is a folder of .npy files, the same to the last byte for any budget. It appears when it is complete.

    [bold]Examples[/bold]

    fishergraph ingest edges.parquet nodes.parquet --drop label --undirected -o graph.store

    fishergraph ingest "parts/*.csv.gz" features.npy --memory 4G -o graph.store

    fishergraph ingest s3://bucket/edges s3://bucket/nodes.parquet --unknown drop -o graph.store
    """
    with wrong_call():
        chosen = check_call(job)
    begin = perf_counter()
    with one_line_warnings():
        from fishergraph.scale import ingest as make

        store = make(
            job.edges,
            job.output,
            job.nodes,
            memory=job.memory,
            undirected=bool(job.undirected),
            source=job.source,
            target=job.target,
            weight=job.weight,
            id_column=job.id_column,
            drop=job.drop or [],
            overwrite=job.overwrite,
            verbose=bytes_progress(job.quiet),
            **chosen,
        )
    if not job.quiet:
        for line in summary(job.output, store, perf_counter() - begin):
            typer.echo(line)


def check_call(job: IngestJob) -> dict[str, Any]:
    """Return the choices that were made; raise for one that does not exist."""
    from fishergraph._validation import look_up
    from fishergraph.scale.memory import parse_memory

    parse_memory(job.memory)
    chosen = {name: getattr(job, name) for name in _CHOICES if getattr(job, name) is not None}
    for name, value in chosen.items():
        look_up(dict.fromkeys(_CHOICES[name]), value, f"--{name.replace('_', '-')}")
    return chosen


def summary(path: Path, store: Store, seconds: float) -> list[str]:
    """Return what was made, what was left out, and what it took."""
    facts = store.facts
    sizes = (store.n_nodes, "node"), (store.n_edges, "edge"), (store.n_features, "feature")
    lines = [f"{path}: {', '.join(counted(*size) for size in sizes)}"]
    changes = {
        ("parallel edge", "joined"): facts["parallel"],
        ("edge", "dropped, to unknown nodes"): facts["dropped"]["unknown"],
        ("self-loop", "dropped"): facts["dropped"]["self_loops"],
        ("edge", "dropped, of weight 0"): facts["dropped"]["weight_zero"],
        ("node", "added, which only edges name"): facts["nodes_added"],
    }
    for (noun, done), count in changes.items():
        if count:
            lines.append(f"{counted(count, noun)} {'was' if count == 1 else 'were'} {done}")
    rate = facts["edges_read"] / max(seconds, 1e-9)
    lines.append(f"{counted(facts['edges_read'], 'edge')} read in {seconds:.1f} s ({rate / 1e6:,.2f} M/s){_peak()}")
    return lines


def _peak() -> str:
    """The most memory that this process had, in words, if the system tells."""
    try:
        import resource
    except ImportError:
        return ""
    unit: Any = 1 if sys.platform == "darwin" else 1024
    return f", peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9:.2f} GB"
