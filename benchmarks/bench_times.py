"""Seconds of the default embedding, with structure and without, from edges alone, and of `GraphProbe`.

The settings take turns on every graph; the table has medians and, in brackets, the least and the largest. A first run
on a small graph compiles everything. `GraphProbe` is timed on graphs with few labels.
"""

from __future__ import annotations

import warnings
from statistics import median
from typing import Any

from common import Rows, load, parser, print_table, timed, tiny_graph

from fishergraph import FisherEmbedding, GraphProbe
from fishergraph.datasets import GraphData

FEW = 1000  # training nodes up to which `GraphProbe` is timed
SETTINGS: dict[str, tuple[dict[str, Any], bool]] = {  # parameters, and whether there are features
    "default": ({}, True),
    "without structure": ({"structure": None}, True),
    "edges only": ({}, False),
}


def seconds(data: GraphData, threads: int, seed: int) -> dict[str, float]:
    """The seconds of every setting, and of the probe on the default."""
    times: dict[str, float] = {}
    Z, blocks, few = None, None, data.n_splits == 1 and len(data.split()[0]) <= FEW
    for name, (params, features) in SETTINGS.items():
        embedding = FisherEmbedding(random_state=seed, n_jobs=threads, **params)
        X = data.X if features else None
        times[name], rows = timed(lambda: embedding.fit_transform(X, graph=data.graph))  # noqa: B023
        if name == "default":
            Z, blocks = rows, embedding.blocks_
    if few:
        train, val, _ = data.split()
        probe = GraphProbe(data.graph, blocks=blocks, random_state=seed, n_jobs=threads)
        times["GraphProbe"] = timed(lambda: probe.fit(Z, data.y, train, val))[0]
    return times


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="*", default=["cora", "pubmed", "amazon_computers", "coauthor_physics"])
    options.add_argument("--turns", type=int, default=3)
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows, table = Rows("times", args), []
    tiny = tiny_graph()
    seconds(tiny, args.threads, 0)
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny if args.quick else load(name, args.data)
        turns = [seconds(data, args.threads, seed) for seed in range(1 if args.quick else args.turns)]
        for setting in turns[0]:
            times = [turn[setting] for turn in turns]
            rows.add(
                graph=name, setting=setting, turns=len(turns), seconds=median(times), least=min(times), most=max(times)
            )
            table.append([name, setting, f"{median(times):.2f} [{min(times):.2f}, {max(times):.2f}]"])
            print(*table[-1], flush=True)
    print_table(["graph", "setting", "seconds"], table)


if __name__ == "__main__":
    main()
