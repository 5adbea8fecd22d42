"""The whole `fit_transform` on the real ogbn-arxiv graph with its 200 sparse features: seconds and peak memory.

Each repetition is a process of its own. It loads the graph, compiles on a small graph, and then measures: peak
resident memory minus the resident memory after loading (the input) minus the bytes of the output.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from argparse import Namespace

from common import PeakMemory, Rows, load, parser, print_table, timed, tiny_graph

from fishergraph import FisherEmbedding


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--layers", type=int, default=3)
    options.add_argument("--dim", type=int, default=256)
    options.add_argument("--anchors", type=int, default=4)
    options.add_argument("--repeat", type=int, default=3, help="processes, of which the median counts")
    options.add_argument("--child", action="store_true", help="measure once in this process and print JSON")
    args = options.parse_args()
    if args.quick:
        args.dim, args.repeat = min(args.dim, 32), 1
    if args.child:
        print(json.dumps(measure(args)))
        return
    runs = [run_child(args) for _ in range(args.repeat)]
    rows = Rows("arxiv", args)
    shared = {"graph": runs[0]["graph"], "layers": args.layers, "dim": args.dim, "anchors": args.anchors}
    for number, run in enumerate(runs):
        rows.add(**{**shared, "run": number, **run})
    middle = {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "graph"}
    print(f"{shared['graph']}: {args.layers} layers, dim {args.dim}, {args.anchors} anchors, {args.threads} threads")
    print_table(
        ["", "seconds", "peak extra GB", "output GB", "input and libraries GB", "first small call s"],
        [
            [label, *(run[key] for key in ("seconds", "extra_gb", "output_gb", "before_gb", "first_call_s"))]
            for label, run in [*((f"run {k}", run) for k, run in enumerate(runs)), ("median", middle)]
        ],
    )


def run_child(args: Namespace) -> dict:
    """The measurements of one fresh process."""
    command = [sys.executable, __file__, "--child", "--layers", args.layers, "--dim", args.dim]
    command += ["--anchors", args.anchors, "--threads", args.threads]
    command += ["--data", args.data] if args.data else []
    command += ["--quick"] if args.quick else []
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout.splitlines()[-1])


def measure(args: Namespace) -> dict:
    """One fit_transform in this process."""
    data = tiny_graph(seed=1) if args.quick else load("ogbn_arxiv", args.data)
    shape = {"n_layers": args.layers, "dim": args.dim, "n_anchors": args.anchors}
    model = FisherEmbedding(**shape, n_jobs=args.threads, random_state=0)
    small = tiny_graph(n_nodes=600)
    # Compiling, and the pages of the compiled code, belong to neither the work nor its memory.
    warm_up = FisherEmbedding(n_layers=2, dim=16, n_jobs=args.threads, random_state=0)
    first, _ = timed(lambda: warm_up.fit_transform(small.X, graph=small.graph))
    with PeakMemory() as memory:
        spent, output = timed(lambda: model.fit_transform(data.X, graph=data.graph))
    return {
        "graph": data.name,
        "nodes": data.n_nodes,
        "entries": int(data.graph.nnz),
        "seconds": spent,
        "extra_gb": (memory.extra - output.nbytes) / 1e9,
        "output_gb": output.nbytes / 1e9,
        "before_gb": memory.before / 1e9,
        "first_call_s": first,
    }


if __name__ == "__main__":
    main()
