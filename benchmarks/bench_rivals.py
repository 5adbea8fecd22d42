"""Accuracy, time and memory beside other methods, and the table of the README, results/rivals.csv.

    python benchmarks/bench_rivals.py             # cora, five runs of every method
    python benchmarks/bench_rivals.py --report    # only write the table of README.md, from the rows

A run is one process with one thread: it reads a graph, calls the method and its classifier once on a tiny graph, which
compiles or imports what it needs, and then on the public split. The methods take turns. `seconds` is wall-clock,
`cpu_seconds` what the process computed, which other programs on the machine change little, and `peak_mb` the most
resident memory of the process, libraries and data included; `extra_mb` is the part beyond what it held before.

The accuracies of the table are means of ten seeds: benchmarks/results/vectors.csv has ours, results/table1.csv the
others.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from statistics import median
from typing import Any

import common
import report_vectors

GRAPHS = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}
TIMED = "cora"
README = common.HERE.parent / "README.md"
TABLE1 = common.HERE.parent / "results" / "table1.csv"
OURS = {
    "graph-probe": "**fishergraph**, defaults and `GraphProbe`",
    "logistic": "**fishergraph**, defaults and logistic regression",
}
NETWORKS = ("gcn", "gat")
RIVALS = {"sgc": "SGC", "wwl": "WWL", "node2vec": "node2vec", "gcn": "GCN", "gat": "GAT"}


def main() -> None:
    options = common.parser(__doc__)
    options.set_defaults(threads=1)  # of every run
    options.add_argument("--graphs", nargs="*", default=[TIMED])
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--methods", nargs="*", default=[*OURS, *RIVALS], help=", ".join([*OURS, *RIVALS]))
    options.add_argument("--report", action="store_true", help="only write the table of README.md")
    options.add_argument("--one", nargs=3, metavar=("METHOD", "GRAPH", "SEED"), help="one run, printed as JSON")
    arguments = options.parse_args()
    if arguments.one:
        method, graph, seed = arguments.one
        print(json.dumps(measured(method, graph, int(seed), arguments)))
        return
    if not arguments.report:
        rows = common.Rows("rivals", arguments)
        graphs, methods = (["tiny"], [*OURS, "sgc"]) if arguments.quick else (arguments.graphs, arguments.methods)
        for graph in graphs:
            for seed in range(1 if arguments.quick else arguments.runs):
                for method in methods[:: -1 if seed % 2 else 1]:
                    print(*rows.add(graph=graph, method=method, **apart(method, graph, seed)).values(), flush=True)
    if not arguments.quick:
        common.write_rows(README, table())


def apart(method: str, graph: str, seed: int) -> dict[str, Any]:
    """What a run in a process of its own measures."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    command = [sys.executable, __file__, "--one", method, graph, str(seed)]
    done = subprocess.run(command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(method: str, graph: str, seed: int, arguments: Any) -> dict[str, Any]:
    """Accuracy, seconds and memory of one run in this process."""
    warnings.simplefilter("ignore", UserWarning)
    if method in NETWORKS:
        common.require("torch_geometric")
        import torch

        torch.set_num_threads(1)
    tiny = common.tiny_graph()
    predict(method, tiny, seed)
    data = tiny if graph == "tiny" else common.load(graph, arguments.data)
    with common.PeakMemory() as memory:
        wall, begin = time.perf_counter(), time.process_time()
        accuracy = predict(method, data, seed)
        wall, begin = time.perf_counter() - wall, time.process_time() - begin
    return {
        "seed": seed,
        "accuracy": accuracy,
        "seconds": wall,
        "cpu_seconds": begin,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "extra_mb": memory.extra / 1e6,
        "load": common.load_average(),
    }


def predict(method: str, data: Any, seed: int) -> float:
    """The accuracy of a method on the test nodes of the first split."""
    train, val, test = data.split()
    if method not in OURS:
        from fishergraph.lab import baseline

        fitted = baseline(method).fit(data.X, data.y, graph=data.graph, train=train, val=val, seed=seed)
        return float(fitted.score(data.y, test))
    from fishergraph import FisherEmbedding, GraphProbe, LogisticProbe

    model = FisherEmbedding(random_state=seed, n_jobs=1)
    Z = model.fit_transform(data.X, graph=data.graph)
    if method == "logistic":
        probe: Any = LogisticProbe()
        return float(probe.fit(Z, data.y, train=train, val=val).score(Z[test], data.y[test]))
    probe = GraphProbe(data.graph, blocks=model.blocks_, random_state=seed, n_jobs=1)
    chances = probe.fit(Z, data.y, train, val).predict_proba()
    return float((probe.classes_[chances[test].argmax(axis=1)] == data.y[test]).mean())


# --- the table ---------------------------------------------------------------------------------------------


def table() -> str:
    """The table of the README, from the rows."""
    accuracies, costs = our_accuracies() | their_accuracies(), measured_costs()
    header = ["", *GRAPHS.values(), f"seconds, {GRAPHS[TIMED]}", "MB"]
    lines = [
        [title, *(accuracies[method, graph] for graph in GRAPHS), *costs[method]]
        for method, title in {**OURS, **RIVALS}.items()
    ]
    return common.markdown_table(header, lines)


def our_accuracies() -> dict[tuple[str, str], str]:
    """Mean and deviation by method and graph, in percent."""
    found = report_vectors.scores()
    cells = {(method, graph): found[graph, method, False, False][0] for method in OURS for graph in GRAPHS}
    return {key: cell(values.mean(), values.std(ddof=1)) for key, values in cells.items()}


def their_accuracies() -> dict[tuple[str, str], str]:
    """The same of the other methods, whose settings were chosen on validation nodes."""
    with TABLE1.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(row["method"], row["dataset"]): cell(float(row["mean"]), float(row["std"])) for row in rows}


def cell(mean: float, deviation: float) -> str:
    """A mean with its deviation; halves go up, and what does not depend on the seed has none."""
    return f"{mean + 1e-9:.1f}" + (f" ± {deviation:.1f}" if deviation > 1e-6 else "")


def measured_costs() -> dict[str, list[str]]:
    """Median with least and most of the CPU seconds, and the median memory, by method."""
    rows = [row for row in common.read_rows(common.RESULTS / "rivals.csv") if row["graph"] == TIMED]
    costs = {}
    for method in (*OURS, *RIVALS):
        own = [row for row in rows if row["method"] == method]
        times = [float(row["cpu_seconds"]) for row in own]
        spread = f"{rounded(median(times))} [{rounded(min(times))}, {rounded(max(times))}]"
        costs[method] = [spread, f"{median(float(row['peak_mb']) for row in own):.0f}"]
    return costs


def rounded(seconds: float) -> str:
    """Two digits."""
    return f"{seconds:#.2g}".rstrip(".")


if __name__ == "__main__":
    main()
