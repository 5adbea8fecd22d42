"""Seconds of `fit_transform` against the number of edges, on random power-law graphs from 0.08 M to 10 M edges.

Each graph has twice the edges of the one before and a tenth as many nodes as edges; an edge is an entry of the
adjacency matrix, so both directions count. The features are random. Memory that a call frees is kept for the next, and
the first call of each graph does not count. Draws results/scaling.png from the rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import Rows, keep_freed_memory, parser, print_table, read_rows, seconds

from fishergraph import FisherEmbedding
from fishergraph._errors import MissingExtra
from fishergraph.datasets.records import undirected_graph
from fishergraph.plots import scaling

_FIT_FROM = 500_000  # edges: below, a call takes what does not depend on them


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--most", type=int, default=10_000_000, help="edges of the largest graph (default 10 M)")
    options.add_argument("--doublings", type=int, default=7, help="steps down from it, each by two (default 7)")
    options.add_argument("--features", type=int, default=64)
    options.add_argument("--dim", type=int, default=64)
    options.add_argument("--layers", type=int, default=2)
    options.add_argument("--anchors", type=int, default=4)
    options.add_argument("--repeat", type=int, default=3, help="calls per graph, of which the median counts")
    options.add_argument("--plot-only", action="store_true", help="draw the latest rows again, measure nothing")
    args = options.parse_args()
    if args.quick:
        args.most, args.doublings, args.dim, args.repeat = 16_000, 2, 16, 1
    rows = Rows("scaling", args)
    if not args.plot_only:
        keep_freed_memory()
        measure(args, rows)
    draw(rows.path)


def measure(args, rows: Rows) -> None:
    """One row per graph, the smallest first."""
    shape = {"n_layers": args.layers, "n_anchors": args.anchors, "dim": args.dim}
    before = None
    for step in range(args.doublings, -1, -1):
        n_edges = args.most // 2**step
        graph = power_law_graph(n_edges // 10, n_edges, seed=step)
        rng = np.random.default_rng(step)
        X = rng.standard_normal((graph.shape[0], args.features), dtype=np.float32)
        model = FisherEmbedding(**shape, random_state=0, n_jobs=args.threads)
        spent = seconds(lambda m=model, x=X, a=graph: m.fit_transform(x, graph=a), repeat=args.repeat)
        growth = "" if before is None else per_doubling(spent / before[1], graph.nnz / before[0])
        before = graph.nnz, spent
        row = rows.add(
            edges=graph.nnz,
            nodes=graph.shape[0],
            largest_degree=int(np.diff(graph.indptr).max()),
            features=args.features,
            **shape,
            seconds=spent,
            microseconds_per_edge=1e6 * spent / graph.nnz,
            ratio_per_doubling=growth,
        )
        print(f"  {row['edges']:>11,} edges  {row['seconds']:.3f} s", flush=True)
    slope = np.polyfit(*np.log([[row["edges"], row["seconds"]] for row in rows.rows]).T, 1)[0]
    print_table(
        ["edges", "nodes", "seconds", "us per edge", "ratio per doubling"],
        [
            [
                f"{row['edges']:,}",
                f"{row['nodes']:,}",
                row["seconds"],
                row["microseconds_per_edge"],
                row["ratio_per_doubling"],
            ]
            for row in rows.rows
        ],
    )
    print(f"slope of log seconds on log edges: {slope:.2f} (1 is linear)")


def per_doubling(time_ratio: float, edge_ratio: float) -> float:
    """The growth in time for twice the edges, from a step that is not quite two."""
    return float(time_ratio ** (np.log(2) / np.log(edge_ratio)))


def power_law_graph(n_nodes: int, n_edges: int, seed: int, exponent: float = 2.5) -> sp.csr_array:
    """A symmetric 0/1 adjacency with about `n_edges` entries, whose degrees follow a power law (Chung and Lu).

    The ends of an edge are drawn in proportion to i^(−1/(exponent − 1)); node numbers are shuffled, so that neither
    the cache nor the row blocks know where the hubs are.
    """
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum((np.arange(n_nodes) + 10.0) ** (-1 / (exponent - 1)))
    names = rng.permutation(n_nodes)
    wanted = n_edges // 2
    keys = np.empty(0, np.int64)
    while len(keys) < wanted:
        ends = np.searchsorted(cumulative, rng.random((2, wanted // 2)) * cumulative[-1])
        low, high = ends.min(axis=0), ends.max(axis=0)
        keys = np.unique(np.concatenate([keys, (low * n_nodes + high)[low < high]]))
    keys = rng.permutation(keys)[:wanted]
    return undirected_graph(names[keys // n_nodes], names[keys % n_nodes], n_nodes)


def draw(path: Path) -> None:
    """The rows of the latest run, seconds against edges with both axes logarithmic, beside the file."""
    rows = read_rows(path)
    if not rows:
        print(f"no picture: {path} holds no rows")
        return
    rows = [row for row in rows if row["date"] == rows[-1]["date"]]
    title = f"{rows[0]['n_layers']} layers, dim {rows[0]['dim']}, {rows[0]['threads']} threads"
    try:
        ax = scaling(rows, fit_from=_FIT_FROM, title=title)
    except MissingExtra:
        print("no picture: matplotlib is not installed")
        return
    ax.set_xlabel("edges (entries of the adjacency matrix)")
    ax.figure.savefig(path.with_suffix(".png"))
    print(f"drawn: {path.with_suffix('.png').name}")


if __name__ == "__main__":
    main()
