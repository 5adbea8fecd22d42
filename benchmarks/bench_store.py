"""The embedding of a store: time, peak memory, bytes of the disk and rates, in memory and with budgets, in turns.

    python benchmarks/bench_store.py --graph products --budgets memory 4G
    python benchmarks/bench_store.py --graph 5e8 --budgets 8G --folder FOLDER
    python benchmarks/bench_store.py files --graph products --budgets 4G

Graphs are those of `bench_scale.py`, undirected. Every run is a process of its own; its peak is that of the process.
All runs of a graph must have the same bytes. "files" is one command from Parquet to Parquet: a store is made, embedded,
written and removed. The rate is that of the passes over the edges: entries × columns of layers and averages, by the
processor seconds of all threads. What is learned from samples is not in it; in memory a sample of all rows leaves φ to
the pass, so the rate of a small graph is too high. Workers are local ones of Dask; they have their own processor
seconds and peak.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from bench_scale import GRAPHS, bytes_of_process, make_graph
from common import Rows, parser, print_table, require

SETTINGS = {"n_layers": 3, "dim": 128, "n_anchors": 4, "structure": None, "random_state": 0}
RUN = "bench"  # the name of the embedding in the store


def main() -> None:
    options = parser(__doc__)
    options.add_argument("part", nargs="?", default="all", choices=["all", "files", "one"])
    options.add_argument("--graph", default="products", choices=list(GRAPHS))
    options.add_argument("--folder", type=Path, help="folder of the graphs (default: a temporary one)")
    options.add_argument("--budgets", nargs="+", default=["memory", "4G"], help="memory, or budgets such as 4G")
    options.add_argument("--workers", nargs="+", type=int, default=[0], help="local Dask workers; 0 is this process")
    options.add_argument("--repeat", type=int, default=1)
    options.add_argument("--budget")
    args = options.parse_args()
    if args.part == "one":
        print(json.dumps(one(args.folder, args.budget, args.threads, args.workers[0])))
        return
    if args.quick:
        args.graph, args.budgets = "tiny", ["memory", "1G"]
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fishergraph-store-"))
    try:
        if args.part == "all":
            measure(args, make_store(folder, args.graph))
        if args.part == "files" or args.quick:
            measure_files(args, folder)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def make_store(folder: Path, graph: str) -> Path:
    """The store of a graph, made unless it is there."""
    store = folder / f"{graph}.undirected.store"
    if not store.exists():
        edges, nodes = make_graph(folder, graph, "npy")
        command = [sys.executable, "-m", "fishergraph", "ingest", edges, nodes, "--undirected", "-q", "-o", store]
        subprocess.run([str(word) for word in command], check=True)
    return store


def measure(args: argparse.Namespace, store: Path) -> None:
    """One row per turn, budget and number of workers."""
    rows, table, digests = Rows("store", args), [], set()
    for _ in range(args.repeat):
        for budget, workers in [(budget, workers) for budget in args.budgets for workers in args.workers]:
            if workers and budget == "memory":
                continue
            found = run_one(store, budget, args.threads, workers)
            digests.add(found.pop("digest"))
            stages = found.pop("cpu_by_part")
            row = rows.add(work="embed", graph=args.graph, budget=budget, **found, cpu_by_part=json.dumps(stages))
            keys = ("graph", "budget", "workers", "seconds", "cpu_seconds", "rate", "peak_mb", "disk_mb", "read_mb")
            table.append([row[key] for key in (*keys, "written_mb")])
            print(", ".join(f"{title} {seconds:.1f}" for title, seconds in stages.items()), "CPU seconds")
            head = ["graph", "budget", "workers", "seconds", "CPU seconds", "rate", "peak MB", "disk MB", "read MB"]
            print_table([*head, "written MB"], table)
    assert len(digests) == 1, "runs have different bytes"


def run_one(store: Path, budget: str, threads: int, workers: int = 0) -> dict[str, Any]:
    """What an embedding in a process of its own takes."""
    command = [sys.executable, __file__, "one", "--folder", str(store), "--budget", budget]
    command += ["--threads", str(threads), "--workers", str(workers)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


class Clock:
    """Progress bars that keep the processor seconds of every part of the work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, title: str, steps: int) -> Iterator[Any]:
        start = time.process_time()
        yield SimpleNamespace(update=lambda n: None)
        self.seconds[title] = self.seconds.get(title, 0.0) + time.process_time() - start


def one(path: Path, budget: str, threads: int, workers: int) -> dict[str, Any]:
    """Embed in this process."""
    import resource

    from fishergraph import FisherEmbedding
    from fishergraph.scale import Store
    from fishergraph.scale.sets import loaded_graph

    client = require("distributed") and workers if workers else None
    store = Store(path, memory=None if budget == "memory" else budget, name=RUN, overwrite=True, client=client)
    shutil.rmtree(path / "embeddings" / RUN, ignore_errors=True)
    clock = Clock()
    model = FisherEmbedding(**SETTINGS, n_jobs=threads, verbose=clock)
    before, began = bytes_of_process(), time.perf_counter()
    if budget == "memory":
        Z = model.fit_transform(store.features[:], graph=loaded_graph(store))
    else:
        Z = model.fit_transform(store)
    seconds = time.perf_counter() - began
    read, written = (after - first for after, first in zip(bytes_of_process(), before, strict=True))
    used, of_workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    digest = hashlib.sha256()
    for start in range(0, len(Z), 2**14):
        digest.update(np.ascontiguousarray(Z[start : start + 2**14]))
    files = (path / "embeddings" / RUN).rglob("*") if budget != "memory" else []
    return {
        "workers": workers,
        "nodes": store.n_nodes,
        "entries": store.n_edges,
        "features": store.n_features,
        "columns": Z.shape[1],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "rate": None if workers else rate(model, store.n_edges + store.n_nodes, clock),
        "peak_mb": round(used.ru_maxrss / 1e3),
        "worker_cpu_seconds": round(of_workers.ru_utime + of_workers.ru_stime, 1) if workers else None,
        "worker_peak_mb": round(of_workers.ru_maxrss / 1e3) if workers else None,
        "disk_mb": round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6),
        "read_mb": round(read / 1e6),
        "written_mb": round(written / 1e6),
        "cpu_by_part": {title: round(seconds, 2) for title, seconds in clock.seconds.items()},
        "digest": digest.hexdigest(),
    }


def rate(model: Any, n_members: int, clock: Clock) -> float:
    """Members × columns per core-second, of the layers and the averages."""
    stack, widths = model.stack_, dict(model.blocks_)
    columns = sum(widths[f"psi{t}"] for t in range(stack.n_layers))
    if stack.walk is not None:
        columns += stack.walk.n_steps * stack.axes.n_outputs
    passes = [seconds for title, seconds in clock.seconds.items() if title.startswith("layer ") or title == "walking"]
    return n_members * columns / max(sum(passes), 1e-9)


# --- from Parquet to Parquet ----------------------------------------------------------------------------


def measure_files(args: argparse.Namespace, folder: Path) -> None:
    """One row per turn and budget: the one command, from files to a file."""
    edges, nodes = make_graph(folder, args.graph, "parquet")
    rows, table = Rows("store", args), []
    for _ in range(args.repeat):
        for budget in args.budgets:
            if budget == "memory":
                continue
            output = folder / f"{args.graph}.embedding.parquet"
            found = from_files(args, edges, nodes, output, budget)
            row = rows.add(work="files", graph=args.graph, budget=budget, **found)
            output.unlink()
            keys = ("graph", "budget", "seconds", "ingest_seconds", "cpu_seconds", "peak_mb", "output_mb")
            table.append([row[key] for key in keys])
            print_table(["from files", "budget", "seconds", "of ingest", "CPU seconds", "peak MB", "output MB"], table)


def from_files(args: argparse.Namespace, edges: Path, nodes: Path, output: Path, budget: str) -> dict[str, Any]:
    """What `fishergraph embed EDGES --nodes NODES --memory BUDGET -o OUTPUT` takes."""
    command = ["embed", edges, "-n", nodes, "--undirected", "--memory", budget, "-o", output, "-q"]
    command += ["--n-layers", 3, "--dim", 128, "--structure", "none", "--seed", 0, "--jobs", args.threads]
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "fishergraph", *map(str, command)])
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        sys.exit("the command failed")
    record = output.with_name(f"{output.name}.run.json")
    found = json.loads(record.read_text())
    record.unlink()
    return {
        "workers": 0,
        "nodes": found["output"]["rows"],
        "entries": found["input"]["n_edges"],
        "columns": found["output"]["columns"],
        "seconds": round(seconds, 1),
        "ingest_seconds": round(found["seconds"]["ingest"], 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1e3),
        "output_mb": round(output.stat().st_size / 1e6),
    }


if __name__ == "__main__":
    main()
