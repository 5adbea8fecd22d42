"""How the defaults were chosen: accuracy on labelled nodes that are in no test set, one parameter changed at a time.

The 500 public validation nodes cannot tell settings apart at this level, so the selection uses more nodes:
five random splits of the nodes outside the test set into 20 training nodes per class, 500 on which C is chosen, and up
to 3,000 on which the setting is judged. Test nodes are never looked at.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import Rows, load, parser, print_table, tiny_graph

from fishergraph import FisherEmbedding, LogisticProbe
from fishergraph.datasets import GraphData

GRAPHS = ("cora", "citeseer", "pubmed")
CHANGES: list[dict[str, Any]] = [
    {},
    {"n_layers": 3},
    {"n_layers": 4},
    {"n_anchors": 1},
    {"n_anchors": 2},
    {"n_anchors": 8},
    {"dim": 128},
    {"bandwidth": 1.0},
    {"bandwidth": 2.0},
    {"sharpness": 0.6},
    {"sharpness": 0.8},
    {"prior": 0.1},
    {"weights": "symmetric"},
    {"normalize": False},
    {"anchor_method": "spherical"},
    {"n_em_iter": 3},
    {"counts": True},
    {"attention": "reference"},
]


def selection_splits(data: GraphData, n_splits: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(train, choose C, judge) of each split, all outside the test set."""
    splits = []
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        free = rng.permutation(np.setdiff1d(np.arange(data.n_nodes), data.test))
        train = np.concatenate([free[data.y[free] == c][:20] for c in range(data.n_classes)])
        rest = rng.permutation(np.setdiff1d(free, train))
        splits.append((train, rest[: min(500, len(rest) // 2)], rest[min(500, len(rest) // 2) :][:3000]))
    return splits


def judge(data: GraphData, change: dict[str, Any], n_seeds: int, n_splits: int) -> float:
    """Mean accuracy over seeds and splits, in percent."""
    scores = []
    for seed in range(n_seeds):
        Z = FisherEmbedding(random_state=seed, **change).fit_transform(data.X, graph=data.graph)
        for train, choose, rows in selection_splits(data, n_splits):
            scores.append(LogisticProbe().fit(Z, data.y, train, choose).score(Z[rows], data.y[rows]))
    return 100 * float(np.mean(scores))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    graphs = {"tiny": tiny_graph()} if args.quick else {name: load(name, args.data) for name in GRAPHS}
    rows, table = Rows("defaults", args), []
    for change in CHANGES[:2] if args.quick else CHANGES:
        found = {name: judge(data, change, args.seeds, 1 if args.quick else 5) for name, data in graphs.items()}
        mean = float(np.mean(list(found.values())))
        rows.add(change=str(change), seeds=args.seeds, mean=mean, **found)
        table.append([str(change) if change else "the defaults", *found.values(), mean])
        print(*table[-1], flush=True)
    print_table(["change", *graphs, "mean"], table)


if __name__ == "__main__":
    main()
