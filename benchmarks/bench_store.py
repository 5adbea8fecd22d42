"""The embedding of a store: seconds, peak resident memory and bytes of disk, in memory and with budgets, in turns.

Graphs are those of `bench_scale.py`, undirected. Every run is a process of its own; its peak is that of the process.
All runs of a graph must have the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench_scale import GRAPHS, make_graph
from common import Rows, parser, print_table

SETTINGS = {"n_layers": 3, "dim": 128, "n_anchors": 4, "structure": None, "random_state": 0}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("part", nargs="?", default="all", choices=["all", "one"])
    options.add_argument("--graph", default="products", choices=list(GRAPHS))
    options.add_argument("--folder", type=Path, help="folder of the graphs (default: a temporary one)")
    options.add_argument("--budgets", nargs="+", default=["memory", "4G"], help="memory, or budgets such as 4G")
    options.add_argument("--repeat", type=int, default=1)
    options.add_argument("--budget")
    args = options.parse_args()
    if args.quick:
        args.graph, args.budgets = "tiny", ["memory", "1G"]
    if args.part == "one":
        print(json.dumps(one(args.folder, args.budget, args.threads)))
        return
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fishergraph-store-"))
    try:
        measure(args, folder)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def measure(args: argparse.Namespace, folder: Path) -> None:
    """One row per budget and turn."""
    store = folder / f"{args.graph}.undirected.store"
    if not store.exists():
        edges, nodes = make_graph(folder, args.graph, "npy")
        command = [sys.executable, "-m", "fishergraph", "ingest", edges, nodes, "--undirected", "-q", "-o", store]
        subprocess.run([str(word) for word in command], check=True)
    rows, table, digests = Rows("store", args), [], set()
    for _ in range(args.repeat):
        for budget in args.budgets:
            command = [sys.executable, __file__, "one", "--folder", str(store), "--budget", budget]
            command += ["--threads", str(args.threads)]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            digests.add(found.pop("digest"))
            row = rows.add(graph=args.graph, budget=budget, **found)
            keys = ("graph", "budget", "seconds", "cpu_seconds", "peak_mb", "disk_mb")
            table.append([row[key] for key in keys])
            print_table(["graph", "budget", "seconds", "CPU seconds", "peak MB", "disk MB"], table)
    assert len(digests) == 1, "runs have different bytes"


def one(path: Path, budget: str, threads: int) -> dict[str, object]:
    """Embed in this process."""
    import resource
    import time

    from fishergraph import FisherEmbedding
    from fishergraph.scale import Store
    from fishergraph.scale.sets import loaded_graph

    store = Store(path, memory=None if budget == "memory" else budget, name="bench", overwrite=True)
    shutil.rmtree(path / "embeddings" / "bench", ignore_errors=True)
    model = FisherEmbedding(**SETTINGS, n_jobs=threads)
    began = time.perf_counter()
    if budget == "memory":
        Z = model.fit_transform(store.features[:], graph=loaded_graph(store))
    else:
        Z = model.fit_transform(store)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    digest = hashlib.sha256()
    for start in range(0, len(Z), 2**14):
        digest.update(np.ascontiguousarray(Z[start : start + 2**14]))
    files = (path / "embeddings" / "bench").rglob("*") if budget != "memory" else []
    return {
        "nodes": store.n_nodes,
        "entries": store.n_edges,
        "features": store.n_features,
        "columns": Z.shape[1],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1e3),
        "disk_mb": round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6),
        "digest": digest.hexdigest(),
    }


if __name__ == "__main__":
    main()
