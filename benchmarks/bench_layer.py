"""One layer (E-step and aggregation) on the real ogbn-arxiv graph, against what else could do that work.

The graph is symmetrised and has self-loops; the points are random float32. Every turn measures all methods one after
the other, and a row of the table is the median over the turns: a slow minute of the machine falls on all of them. The
ratios are to the layer as the stack runs it.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Rows, available_bytes, load, parser, print_table, timed, tiny_graph

from fishergraph import Multisets, as_graph, em_means, neighbourhoods
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.device import NUMPY
from fishergraph.em.means import block_means, first_responsibilities
from fishergraph.ops import choose_engine

OURS = "fishergraph, row blocks"
MESSAGES = "messages (edge x feature x anchor), PyTorch"
SPMM = "SciPy SpMM, node x feature, one thread"
Case = tuple[str, Callable[[], Any], int]  # name, call, bytes it needs at once


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--dim", type=int, default=128, help="features of a point, d (default 128)")
    options.add_argument("--anchors", type=int, default=4, help="anchors, p (default 4)")
    options.add_argument(
        "--repeat", type=int, default=5, help="calls per row, of which the median counts (PyTorch: at most 3)"
    )
    options.add_argument("--only", nargs="*", default=[], help="only the rows whose name holds one of these words")
    args = options.parse_args()
    name = "tiny" if args.quick else "ogbn_arxiv"
    data = tiny_graph() if args.quick else load(name, args.data)
    sets = neighbourhoods(as_graph(data.graph), weights="uniform")
    print(f"{name}: {sets.n_sets:,} nodes, {sets.n_entries:,} entries, d = {args.dim}, p = {args.anchors}")
    measured = measure(args, sets)
    base = measured.get(f"{OURS}, {args.threads} threads")
    spmm, messages = measured.get(SPMM), measured.get(MESSAGES)
    rows = Rows("layer", args)
    for method, value in measured.items():
        rows.add(
            graph=name,
            nodes=sets.n_sets,
            entries=sets.n_entries,
            dim=args.dim,
            anchors=args.anchors,
            method=method,
            seconds=value,
            over_ours=_ratio(value, base),
            over_spmm=_ratio(value, spmm),
            messages_over=_ratio(messages, value),
        )
    print_table(
        ["method", "seconds", "/ ours", "/ SpMM", "messages /"],
        [
            [row["method"], row["seconds"], row["over_ours"], row["over_spmm"], row["messages_over"]]
            for row in rows.rows
        ],
    )


def _ratio(value: float | None, base: float | None) -> float | str:
    return value / base if value is not None and base is not None else ""


def measure(args: Namespace, sets: Multisets) -> dict[str, float]:
    """Median seconds by method; what would not fit in memory, or is not installed, is said and left out."""
    rng = np.random.default_rng(0)
    points = NUMPY.empty((sets.n_points, args.dim), np.float32)  # as the stack keeps them; every method has the same
    rng.standard_normal(out=points, dtype=np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    anchors = points[rng.choice(len(points), args.anchors, replace=False)]
    cases = [
        (*case, most)
        for build, most in ((our_cases, args.repeat), (torch_cases, 3))
        for case in build(args, sets, points, anchors)
        if not args.only or any(word in case[0] for word in args.only)
    ]
    spent: dict[str, list[float]] = {}
    half = available_bytes() / 2
    # What takes most of the memory has its turns after the others: pages that were given back are slow to get again.
    for group in ([case for case in cases if case[2] <= half], [case for case in cases if case[2] > half]):
        for turn in range(-1, args.repeat):  # the first is not counted
            for name, call, needed, most in group:
                if turn >= most:
                    continue
                if needed > 0.9 * available_bytes():
                    print(
                        f"left out: {name} needs about {needed / 1e9:.0f} GB, got {available_bytes() / 1e9:.0f} GB free"
                    )
                    continue
                seconds, _ = timed(call)
                if turn >= 0:
                    spent.setdefault(name, []).append(seconds)
                    print(f"  {seconds:9.4f} s  {name}", flush=True)
    return {name: statistics.median(values) for name, values in spent.items()}


def our_cases(args: Namespace, sets: Multisets, points: np.ndarray, anchors: np.ndarray) -> Iterator[Case]:
    """Ours and SciPy's: nothing of the size of the entries times the features."""
    full = 4 * sets.n_sets * args.anchors * args.dim
    ones = np.ones(sets.n_entries, np.float32)
    matrix = sp.csr_array((ones, sets.indices, sets.indptr.astype(np.int32)), shape=(sets.n_sets, sets.n_points))
    yield SPMM, lambda: matrix @ points, full
    for threads in dict.fromkeys((args.threads, 1)):
        said = f"{threads} thread{'s' if threads > 1 else ''}"
        yield f"{OURS}, {said}", lambda t=threads: row_block_layer(sets, points, anchors, t), full
        yield (
            f"fishergraph, E-step alone, {said}",
            lambda t=threads: first_responsibilities(points, anchors, 0.05, n_jobs=t),
            full,
        )
        yield (
            f"fishergraph, em_means with its whole output, {said}",
            lambda t=threads: em_means(points, sets, anchors, variance=0.05, n_jobs=t),
            full,
        )
    yield (
        f"fishergraph, scipy engine, row blocks, {args.threads} threads",
        lambda: row_block_layer(sets, points, anchors, args.threads, "scipy"),
        full,
    )


def row_block_layer(
    sets: Multisets, points: np.ndarray, anchors: np.ndarray, n_jobs: int, engine: str | None = None
) -> None:
    """E-step and means as a layer runs them: block by block, each block dropped as soon as it was used."""
    chosen = choose_engine(engine)
    alpha = first_responsibilities(points, anchors, 0.05, n_jobs=n_jobs)

    def block(rows: slice) -> None:
        block_means(chosen, points, alpha, sets.block(rows), anchors, variance=0.05)

    map_blocks(block, row_blocks(sets.n_sets), n_jobs=n_jobs)


def torch_cases(args: Namespace, sets: Multisets, points: np.ndarray, anchors: np.ndarray) -> Iterator[Case]:
    """The published way and PyTorch Geometric's attention layers, forward only."""
    try:
        import torch
    except ImportError:
        print("left out: the PyTorch rows (torch is not installed)")
        return
    from plain_fie import message_layer

    torch.set_num_threads(args.threads)
    x, w = torch.from_numpy(points), torch.from_numpy(np.ascontiguousarray(anchors))
    target = np.repeat(np.arange(sets.n_sets), np.diff(sets.indptr))
    edges = torch.from_numpy(np.stack([sets.indices.astype(np.int64), target]))
    wide = 4 * sets.n_entries * args.anchors * args.dim
    yield MESSAGES, lambda: message_layer(x, edges, w), int(1.8 * wide)
    try:
        from torch_geometric.nn import GATConv, GATv2Conv
    except ImportError:
        print("left out: the PyTorch Geometric rows (torch_geometric is not installed)")
        return
    share = args.dim // args.anchors
    for convolution, out, factor in (
        (GATConv, share, 3),
        (GATv2Conv, share, 5),
        (GATConv, args.dim, 2.5),
    ):
        torch.manual_seed(0)
        layer = convolution(args.dim, out, heads=args.anchors, add_self_loops=False).eval()
        width = f"out = d{' in total' if out == share else ''}"
        needed = int(factor * 4 * sets.n_entries * args.anchors * out)
        yield f"PyG {convolution.__name__}, heads = p, {width}", _without_gradient(layer, x, edges), needed


def _without_gradient(layer: Any, x: Any, edges: Any) -> Callable[[], Any]:
    import torch

    def call() -> Any:
        with torch.no_grad():
            return layer(x, edges)

    return call


if __name__ == "__main__":
    main()
