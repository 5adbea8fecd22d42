"""What auto_embed gains over the default, on labelled nodes that are in no test set.

The splits are those of bench_defaults.py: auto_embed sees the training nodes and the nodes that choose C, and the rest
judges the probe of the setting it chose, and that of the default. No test node is looked at. --directed takes the edges
one way, as their file lists them.

A row holds the accuracy of both, the gain, the chosen setting, and the seconds of both.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

import numpy as np
from bench_defaults import score, selection_splits
from bench_directions import directed
from common import Rows, load, mean_std, parser, print_table, timed, tiny_graph

from fishergraph import auto_embed
from fishergraph.auto.choice import in_words
from fishergraph.datasets import GraphData


def compare(data: GraphData, split: tuple[np.ndarray, ...], seed: int, args: Namespace) -> dict[str, Any]:
    """The scores of the default and of the chosen setting on one split."""
    train, val, judged = split
    options: dict[str, Any] = {"train": train, "val": val, "heads": None, "random_state": seed, "n_jobs": args.threads}

    def run(**more: Any) -> tuple[float, float, Any]:
        seconds, result = timed(lambda: auto_embed(data.X, data.graph, data.y, **options, **more))
        return 100 * score(data, result.probe, result.Z, judged), seconds, result

    default, default_s, _ = run(settings=[{}])
    chosen, auto_s, result = run(budget=args.budget)
    tried = sum(record["skipped"] is None for record in result.report)
    numbers = {"default": default, "auto": chosen, "gain": chosen - default, "default_s": default_s, "auto_s": auto_s}
    return {**numbers, "tried": tried, "setting": in_words(result.setting)}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="*", default=["cora", "citeseer"])
    options.add_argument("--splits", type=int, default=5)
    options.add_argument("--budget", type=float, default=60.0)
    options.add_argument("--directed", action="store_true", help="edges one way")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.splits = 2
    rows, cells = Rows("auto", args), []
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny_graph() if args.quick else directed(name, args) if args.directed else load(name, args.data)
        settings = {"graph": name, "directed": args.directed, "budget": args.budget}
        splits = selection_splits(data, args.splits)
        results = [rows.add(**settings, split=k, **compare(data, split, k, args)) for k, split in enumerate(splits)]
        means = [mean_std([row[key] for row in results]) for key in ("default", "auto", "gain")]
        times = [float(np.median([row[key] for row in results])) for key in ("default_s", "auto_s")]
        cells.append([name, *means, *times, ", ".join(sorted({row["setting"] for row in results}))])
        print(*cells[-1], flush=True)
    print_table(["graph", "default", "auto", "gain", "default s", "auto s", "chosen"], cells)


if __name__ == "__main__":
    main()
