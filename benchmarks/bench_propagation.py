"""Sums over neighbours: entries x features per core-second, against SciPy's sparse product and pycleora.

    python benchmarks/bench_propagation.py --graph ogbn_arxiv --features 128

All run on one thread, on the same undirected graph with a loop at every node, float32, in turns. Seconds are those of
the processor, user and system, so that other work on the machine counts little. pycleora is left out unless it is
installed; its matrix is row-stochastic, as the mean that one anchor gives. A layer has several anchors: it makes as
many sums of each entry, and is counted once for each.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Rows, load, parser, print_table, tiny_graph

from fishergraph import em_means
from fishergraph.multiset import Multisets
from fishergraph.walk import Walk, walked


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graph", default="ogbn_arxiv")
    options.add_argument("--features", type=int, default=128)
    options.add_argument("--anchors", type=int, default=4)
    options.add_argument("--repeat", type=int, default=5)
    args = options.parse_args()
    data = tiny_graph() if args.quick else load(args.graph, args.data)
    if args.quick:
        args.features, args.repeat = 8, 1
    A = sp.csr_array(data.graph)
    A = sp.csr_array(((A + A.T + sp.eye_array(A.shape[0])) > 0).astype(np.float32))
    X = np.random.default_rng(0).standard_normal((A.shape[0], args.features), dtype=np.float32)
    passes = contenders(A, X, args.anchors)
    for run, _ in passes.values():
        run()  # compiles, and fills the caches
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(args.repeat):
        for name, (run, _) in passes.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    rows, table = Rows("propagation", args), []
    for name, (_, sums) in passes.items():
        median = statistics.median(seconds[name])
        rates = [sums * args.features / value / 1e9 for value in seconds[name]]
        row = rows.add(
            graph=data.name,
            entries=A.nnz,
            features=args.features,
            operation=name,
            sums=sums,
            cpu_seconds=median,
            rate=statistics.median(rates),
            least_rate=min(rates),
            most_rate=max(rates),
        )
        table.append([row[key] for key in ("operation", "cpu_seconds", "rate", "least_rate", "most_rate")])
    print(f"{data.name}: {A.shape[0]:,} nodes, {A.nnz:,} entries, {args.features} features")
    print_table(["operation", "CPU seconds", "10^9 entries x features / s", "least", "most"], table)


def contenders(A: Any, X: np.ndarray, n_anchors: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """What is measured: a function, and the entries that it sums."""
    sets = Multisets(A.indptr, A.indices, None, A.shape[0])
    anchors = np.random.default_rng(1).standard_normal((n_anchors, X.shape[1]), dtype=np.float32)
    one = np.zeros((1, X.shape[1]), np.float32)
    step = Walk(1 - 0.3 + 1e-6)  # stops after one step

    def walk() -> Any:
        from fishergraph.layer import Run
        from fishergraph.passes import ONE_STEP

        return walked(X, sets, step, Run().engine(ONE_STEP), 1, lambda n: None)

    assert step.n_steps == 1
    found: dict[str, tuple[Callable[[], Any], int]] = {
        "SciPy A @ X": (lambda: A @ X, A.nnz),
        "one step of the walk": (walk, A.nnz),
        "em_means, one anchor": (lambda: em_means(X, sets, one, n_jobs=1), A.nnz),
        f"em_means, {n_anchors} anchors": (lambda: em_means(X, sets, anchors, n_jobs=1), n_anchors * A.nnz),
    }
    try:
        import pycleora
    except ImportError:
        print("pycleora is not installed, and left out")
        return found
    lines = (f"{v} {u}" for v, u in zip(*A.nonzero(), strict=True) if v < u)  # loops are implied
    matrix: Any = pycleora.SparseMatrix.from_iterator(lines, "complex::reflexive::node")
    entries = len(matrix.to_sparse_csr()[2])
    order = np.array(list(map(int, matrix.entity_ids)))
    rows = np.ascontiguousarray(X[order])
    found["pycleora, left Markov"] = (lambda: matrix.left_markov_propagate(rows, num_workers=1), entries)
    return found


if __name__ == "__main__":
    main()
