"""How long explanations take, and how close their sum is to the embedding's inner product: results/explain.csv.

    python benchmarks/bench_explain.py [cora pubmed amazon_computers]

For each graph: the seconds to bind a fitted model to its data; of 200 random pairs the wall-clock and the CPU
milliseconds of `explain(v, w)` (median and 95th percentile), and the largest difference between its value and the
float32 inner product, relative to the lengths of the two vectors; of 200 random nodes those of `explain(v)`; and the
seconds of the calls about all nodes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import Rows, load, parser, print_table, timed, tiny_graph

from fishergraph import Explainer, FisherEmbedding

N_PAIRS = 200


def main() -> None:
    options = parser(__doc__)
    options.add_argument("graphs", nargs="*", default=["cora"])
    options.add_argument("--permutations", type=int, default=199, help="of neighbourhood_scores (default 199)")
    arguments = options.parse_args()
    quick = arguments.quick
    rows = Rows("explain", arguments)
    for name in ["tiny"] if quick else arguments.graphs:
        data = tiny_graph() if quick else load(name, arguments.data)
        rows.add(
            **measure(name, data, 10 if quick else N_PAIRS, 5 if quick else arguments.permutations, arguments.threads)
        )
    print_table(list(rows.rows[0]), [list(row.values()) for row in rows.rows])


def measure(name: str, data: Any, n_pairs: int, n_permutations: int, threads: int) -> dict[str, Any]:
    """The figures of one graph."""
    model = FisherEmbedding(random_state=0, n_jobs=threads)
    Z = model.fit_transform(data.X, graph=data.graph).astype(np.float64)
    bind_s, explainer = timed(lambda: Explainer(model, data.X, graph=data.graph))
    pairs = np.random.default_rng(0).integers(data.n_nodes, size=(n_pairs, 2)).tolist()
    found = [explainer.explain(v, w) for v, w in pairs]
    lengths = np.linalg.norm(Z, axis=1)
    errors = [
        abs(why.value - Z[v] @ Z[w]) / (lengths[v] * lengths[w]) for (v, w), why in zip(pairs, found, strict=True)
    ]
    two, one = each(lambda v, w: explainer.explain(v, w), pairs), each(lambda v, w: explainer.explain(v), pairs)
    return {
        "graph": name,
        "nodes": data.n_nodes,
        "bind_s": bind_s,
        "pair_ms": 1e3 * np.median(two[0]),
        "pair_ms_95": 1e3 * np.quantile(two[0], 0.95),
        "pair_cpu_ms": 1e3 * np.median(two[1]),
        "node_ms": 1e3 * np.median(one[0]),
        "largest_error": max(errors),
        "attention_all_s": timed(explainer.attention_all)[0],
        "standard_errors_s": timed(explainer.standard_errors)[0],
        "anchors_s": timed(explainer.describe_anchors)[0],
        "permutations": n_permutations,
        "neighbourhood_scores_s": timed(lambda: explainer.neighbourhood_scores(n_permutations=n_permutations))[0],
    }


def each(call: Any, pairs: list[list[int]]) -> tuple[list[float], list[float]]:
    """(wall-clock seconds, CPU seconds) of every call."""
    wall, cpu = [], []
    for v, w in pairs:
        start, begin = time.perf_counter(), time.process_time()
        call(v, w)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - begin)
    return wall, cpu


if __name__ == "__main__":
    main()
