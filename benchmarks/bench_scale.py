"""Graphs larger than memory: synthetic graphs of any size, and the time, the memory and the bytes of `ingest`.

`make-graph` writes a power-law graph with communities, edge by edge, so that its size is bounded by the disk alone.
`ingest` reads it in a process of its own, whose peak resident memory is that of the row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import Rows, parser, print_table, timed

# Edges → nodes and features. "products" has the size of ogbn-products, "eighth" an eighth of it.
GRAPHS = {
    "1e6": (10**6, 10**5, 64),
    "1e7": (10**7, 10**6, 64),
    "products": (62 * 10**6, 2_450_000, 100),
    "eighth": (62 * 10**6 // 8, 2_450_000 // 8, 100),
    "1e8": (10**8, 10**7, 64),
    "5e8": (250 * 10**6, 10**7, 64),  # so many entries, once both directions are there
    "tiny": (20_000, 2_000, 16),
}
COMMUNITIES, BLOCK = 50, 2**20
SAME = 0.8  # of the edges stay in their community
EXPONENT = 2.7  # of the power law of degrees


def main() -> None:
    options = parser(__doc__)
    options.add_argument("part", nargs="?", default="ingest", choices=["make-graph", "ingest", "one"])
    options.add_argument("--graph", default="products", choices=list(GRAPHS))
    options.add_argument("--folder", type=Path, help="folder of the graphs (default: a temporary one)")
    options.add_argument("--memory", default="4G", help="budget of ingest (default 4G)")
    options.add_argument("--undirected", action="store_true")
    options.add_argument("--repeat", type=int, default=1)
    options.add_argument("--graph-format", default="parquet", choices=["parquet", "npy"])
    args = options.parse_args()
    if args.quick:
        args.graph, args.memory = "tiny", "1G"
    if args.part == "one":
        ingest_here(args)
        return
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fishergraph-graphs-"))
    try:
        edges, nodes = make_graph(folder, args.graph, args.graph_format)
        if args.part == "ingest":
            measure(args, edges, nodes)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


# --- graphs ---------------------------------------------------------------------------------------------


def make_graph(folder: Path, name: str, form: str) -> tuple[Path, Path]:
    """The files of edges and nodes of a graph, written block by block unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    edges, nodes = folder / f"{name}.edges.parquet", folder / f"{name}.nodes.{form}"
    n_edges, n_nodes, n_features = GRAPHS[name]
    if not edges.exists():
        seconds, _ = timed(lambda: write_edges(edges, n_edges, n_nodes))
        print(f"{edges}: {n_edges:,} edges in {seconds:.1f} s", flush=True)
    if not nodes.exists():
        seconds, _ = timed(lambda: write_nodes(nodes, n_nodes, n_features))
        print(f"{nodes}: {n_nodes:,} nodes in {seconds:.1f} s", flush=True)
    return edges, nodes


def community(nodes: np.ndarray) -> np.ndarray:
    """The community of each node: numbers are scattered, as in a file that somebody collected."""
    return (nodes * 2_654_435_761 % 2**32) * COMMUNITIES >> 32


def write_edges(path: Path, n_edges: int, n_nodes: int) -> None:
    """Edges whose ends have degrees of a power law; most of them join nodes of one community."""
    rng = np.random.default_rng(0)
    schema = pa.schema({"source": pa.int64(), "target": pa.int64()})
    # The nodes of a community, one after the other: a power law of positions in this list is one of degrees.
    order = np.argsort(community(np.arange(n_nodes)), kind="stable")
    starts = np.searchsorted(community(order), np.arange(COMMUNITIES + 1))
    with moved(path) as part, pq.ParquetWriter(part, schema) as writer:
        for start in range(0, n_edges, BLOCK):
            count = min(BLOCK, n_edges - start)
            first = rng.integers(COMMUNITIES, size=count)
            second = np.where(rng.random(count) < SAME, first, rng.integers(COMMUNITIES, size=count))
            ends = [member(rng, order, starts, group) for group in (first, second)]
            writer.write_table(pa.table(ends, schema=schema))


def member(rng: np.random.Generator, order: np.ndarray, starts: np.ndarray, group: np.ndarray) -> np.ndarray:
    """A random node of each community; some are much more frequent than others."""
    size = starts[group + 1] - starts[group]
    position = size * rng.random(len(group)) ** ((EXPONENT - 1) / (EXPONENT - 2))
    return order[starts[group] + np.minimum(position.astype(np.int64), size - 1)]


def write_nodes(path: Path, n_nodes: int, n_features: int) -> None:
    """Features: the centre of the community, and noise."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((COMMUNITIES, n_features), dtype=np.float32)
    step = max(BLOCK // n_features * 8, 1)

    def blocks():
        for start in range(0, n_nodes, step):
            ids = np.arange(start, min(start + step, n_nodes))
            noise = rng.standard_normal((len(ids), n_features), dtype=np.float32)
            yield ids, centres[community(ids)] + 2 * noise

    if path.suffix == ".npy":
        with moved(path) as part, part.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n_nodes, n_features)}
            np.lib.format.write_array_header_2_0(file, header)
            for _, X in blocks():
                X.tofile(file)
        return
    names = [f"x{j}" for j in range(n_features)]
    schema = pa.schema([("id", pa.int64()), *((name, pa.float32()) for name in names)])
    with moved(path) as part, pq.ParquetWriter(part, schema, use_dictionary=False) as writer:
        for ids, X in blocks():
            writer.write_table(pa.table([ids, *np.ascontiguousarray(X.T)], schema=schema))


class moved:
    """A path that is moved onto another one when the file at it is complete."""

    def __init__(self, path: Path):
        self.path, self.part = path, path.with_name(path.name + ".part")

    def __enter__(self) -> Path:
        return self.part

    def __exit__(self, kind, error, trace) -> None:
        if kind is None:
            os.replace(self.part, self.path)


# --- ingest ---------------------------------------------------------------------------------------------


def measure(args: argparse.Namespace, edges: Path, nodes: Path) -> None:
    """One row per run, each in a process of its own."""
    rows, table = Rows("scale", args), []
    for _ in range(args.repeat):
        store = edges.with_name(f"{args.graph}.store")
        command = [sys.executable, __file__, "one", "--graph", args.graph, "--folder", str(edges.parent)]
        command += ["--memory", args.memory, "--graph-format", args.graph_format]
        command += ["--undirected"] * args.undirected
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        shutil.rmtree(store)
        row = rows.add(
            work="ingest",
            graph=args.graph,
            format=args.graph_format,
            undirected=args.undirected,
            memory=args.memory,
            input_mb=(edges.stat().st_size + nodes.stat().st_size) / 1e6,
            **found,
        )
        table.append([row[key] for key in ("graph", "nodes", "edges", "memory", "seconds", "peak_mb", "store_mb")])
    print_table(["graph", "nodes", "edges", "budget", "seconds", "peak MB", "store MB"], table)


def ingest_here(args: argparse.Namespace) -> None:
    """Ingest in this process, and print what it took as JSON."""
    import resource

    from fishergraph.scale import ingest

    edges, nodes = make_graph(args.folder, args.graph, args.graph_format)
    path = edges.with_name(f"{args.graph}.store")
    before = bytes_of_process()
    seconds, store = timed(
        lambda: ingest(edges, path, nodes, memory=args.memory, undirected=args.undirected, overwrite=True)
    )
    read, written = (after - first for after, first in zip(bytes_of_process(), before, strict=True))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "nodes": store.n_nodes,
        "edges": store.facts["edges_read"],
        "entries": store.n_edges,
        "features": store.n_features,
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024 * 1.048576,
        "store_mb": sum(file.stat().st_size for file in path.glob("*.npy")) / 1e6,
        "read_mb": read / 1e6,
        "written_mb": written / 1e6,
    }
    print(json.dumps(found))


def bytes_of_process() -> tuple[int, int]:
    """The bytes that this process has read and written so far, from files as well as from the system's memory."""
    try:
        lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    except OSError:
        return 0, 0
    return int(lines["rchar"]), int(lines["wchar"])


if __name__ == "__main__":
    main()
