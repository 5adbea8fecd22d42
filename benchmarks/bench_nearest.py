"""Nearest nodes: queries among many rows, exactly, by scikit-learn, and approximately by pynndescent (optional).

    python benchmarks/bench_nearest.py                     # 1,000 queries among 10^6 rows of 256 columns, k = 10
    python benchmarks/bench_nearest.py --approximate --rows 100000

Rows are float32, around 1,000 centres. Vectors of a new embedding are checked and measured once ("prepare"); every
question after it is "search". Times are wall-clock seconds and processor seconds of all threads, medians over turns in
which the methods alternate; on a machine that does other work, the processor seconds tell more. Recall is the share of
the exact neighbours that were found.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from common import Rows, parser, print_table, require
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from fishergraph import Vectors

_WRITTEN = 2**14


def clustered_rows(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    """Float32 rows around centres, filled by blocks."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((1000, n_columns), dtype=np.float32)
    Z = np.empty((n_rows, n_columns), np.float32)
    for start in range(0, n_rows, _WRITTEN):
        block = Z[start : start + _WRITTEN]
        block[:] = rng.standard_normal(block.shape, dtype=np.float32)
        block += centres[rng.integers(len(centres), size=len(block))]
    return Z


def measured(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall-clock seconds, processor seconds of all threads, and the result of a call."""
    wall, used = perf_counter(), process_time()
    result = function()
    return perf_counter() - wall, process_time() - used, result


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=256)
    options.add_argument("--queries", type=int, default=1000)
    options.add_argument("--k", type=int, default=10)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--metrics", nargs="*", default=["cosine"], choices=["cosine", "dot", "euclidean"])
    options.add_argument("--sklearn", action="store_true", help="scikit-learn's brute force too (cosine, euclidean)")
    options.add_argument("--approximate", action="store_true", help="pynndescent too: it builds its graph first")
    args = options.parse_args()
    if args.quick:
        args.rows, args.columns, args.queries, args.turns = 5000, 16, 50, 1
    if args.approximate:
        require("pynndescent")
    Z = clustered_rows(args.rows, args.columns)
    asked = np.random.default_rng(1).choice(args.rows, args.queries, replace=False)
    rows, times, found = Rows("nearest", args), defaultdict(list), {}
    size = {"rows": args.rows, "columns": args.columns, "queries": args.queries, "k": args.k}

    def turn(method: str, metric: str, part: str, function: Callable[[], Any]) -> Any:
        wall, used, result = measured(function)
        times[method, metric, part].append((wall, used))
        rows.add(method=method, metric=metric, part=part, **size, seconds=wall, processor_s=used)
        return result

    for metric in args.metrics:
        Vectors(Z[:5000]).nearest(rows=[0], k=2, metric=metric)  # compiles
        for _ in range(args.turns):
            vectors = Vectors(Z)
            turn("exact", metric, "prepare", lambda: vectors.nearest(rows=asked[:1], k=args.k, metric=metric))  # noqa: B023
            question = lambda: vectors.nearest(rows=asked, k=args.k, metric=metric, n_jobs=args.threads)  # noqa: B023, E731
            found["exact", metric] = turn("exact", metric, "search", question).rows
            if args.sklearn and metric != "dot":
                index = NearestNeighbors(n_neighbors=args.k + 1, metric=metric, algorithm="brute").fit(Z)
                with threadpool_limits(limits=args.threads):
                    kept = turn("scikit-learn", metric, "search", lambda: index.kneighbors(Z[asked])[1])  # noqa: B023
                found["scikit-learn", metric] = kept[:, 1:]
            if args.approximate and metric != "dot":
                every = lambda: vectors.neighbours(args.k, metric=metric, approximate=True)  # noqa: B023, E731
                found["approximate, all rows", metric] = turn("approximate, all rows", metric, "search", every).rows[
                    asked
                ]
    table = []
    for (method, metric, part), values in times.items():
        wall, used = (statistics.median(column) for column in zip(*values, strict=True))
        share = ""
        if part == "search":
            hits = [len(set(a) & set(b)) for a, b in zip(found["exact", metric], found[method, metric], strict=True)]
            share = f"{np.mean(hits) / args.k:.3f}"
            rows.add(method=method, metric=metric, part="recall", **size, recall=float(share))
        table.append([method, metric, part, f"{wall:.2f}", f"{used:.2f}", share])
    print_table(["method", "metric", "part", "wall s", "processor s", "recall"], table)


if __name__ == "__main__":
    main()
