"""Accuracy of a linear probe on the embedding, ten seeds, mean ± standard deviation, by named settings.

Planetoid graphs use their public split; amazon_computers uses random 10/10/80 splits, drawn with the seed of the run.
C is chosen on validation nodes from the paper's grid. With --grid the shape (dim, anchors, layers) is chosen first, on
validation accuracy alone and with seeds that are not used again. --setting published is the rule of the authors' code.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import Rows, load, mean_std, parser, print_table, random_split, timed, tiny_graph

from fishergraph import FisherEmbedding, LogisticProbe
from fishergraph.datasets import GraphData
from fishergraph.published import PublishedNystrom

DATASETS = {
    "default": ["cora", "citeseer", "pubmed", "amazon_computers"],
    "published": ["cora", "citeseer", "pubmed"],
}
# (dim, anchors, layers) by setting and graph; a graph that is not listed gets the defaults of FisherEmbedding.
SHAPES: dict[str, dict[str, tuple[int, int, int]]] = {
    "default": {},
    "published": {"cora": (512, 8, 4), "citeseer": (256, 2, 3), "pubmed": (256, 2, 3), "tiny": (32, 2, 2)},
}
MODELS: dict[str, Callable[..., FisherEmbedding]] = {
    "default": FisherEmbedding,
    "published": partial(FisherEmbedding.published_code, kernel=PublishedNystrom(bandwidth=1.0)),
}
# The paper's unsupervised grid for these graphs: hidden dimension, mixture components, layers.
GRID = ((128, 256, 512), (1, 2, 4, 8), (2, 3, 4))
QUICK_GRID = ((16, 32), (2,), (1, 2))
GRID_SEEDS = (1000, 1001)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--setting", choices=list(MODELS), default="default")
    options.add_argument("--datasets", nargs="*", help="graphs (default: those of the setting)")
    options.add_argument("--seeds", type=int, default=10, help="number of seeds (default 10)")
    options.add_argument("--grid", action="store_true", help="choose the shape on validation accuracy first")
    args = options.parse_args()
    if args.quick:
        args.seeds, args.grid = 2, True
    names = ["tiny"] if args.quick else args.datasets or DATASETS[args.setting]
    evaluate(tiny_graph(), args, (16, 2, 1), 0)  # compile: the seconds of the first seed are those of the others
    rows = Rows("accuracy", args)
    for name in names:
        data = tiny_graph() if args.quick else load(name, args.data)
        shape = choose_shape(data, args, rows) if args.grid else SHAPES[args.setting].get(name)
        for seed in range(args.seeds):
            row = rows.add(setting=args.setting, stage="final", **evaluate(data, args, shape, seed))
            print(
                f"  {name} seed {seed}: val {row['val']:.4f}, test {row['test']:.4f}, {row['embed_s']:.2f} s",
                flush=True,
            )
    summary([row for row in rows.rows if row["stage"] == "final"], args)


def choose_shape(data: GraphData, args: Namespace, rows: Rows) -> tuple[int, int, int]:
    """The (dim, anchors, layers) with the best mean validation accuracy; of equal ones the smallest output."""
    shapes = sorted(itertools.product(*(QUICK_GRID if args.quick else GRID)), key=lambda s: s[0] * (s[1] + s[2]))
    means = []
    for shape in shapes:
        runs = [evaluate(data, args, shape, seed, look_at_test=False) for seed in GRID_SEEDS]
        for run in runs:
            rows.add(setting=args.setting, stage="grid", **run)
        means.append(np.mean([run["val"] for run in runs]))
        print(f"  {data.name} {shape}: val {means[-1]:.4f}", flush=True)
    return shapes[int(np.argmax(means))]


def evaluate(
    data: GraphData, args: Namespace, shape: tuple[int, int, int] | None, seed: int, *, look_at_test: bool = True
) -> dict[str, Any]:
    """One embedding and its probe: accuracies, C and seconds."""
    named = {} if shape is None else dict(zip(("dim", "n_anchors", "n_layers"), shape, strict=True))
    model = MODELS[args.setting](**named, random_state=seed, n_jobs=args.threads)
    train, val, test = data.split() if data.n_splits else random_split(data.n_nodes, seed)
    embed, Z = timed(lambda: model.fit_transform(data.X, graph=data.graph))
    spent, probe = timed(lambda: LogisticProbe().fit(Z, data.y, train, val))
    return {
        "graph": data.name,
        "grid": args.grid,
        "dim": model.dim,
        "anchors": model.n_anchors,
        "layers": model.n_layers,
        "seed": seed,
        "val": probe.val_score_,
        "test": float(np.mean(probe.predict(Z[test]) == data.y[test])) if look_at_test else "",
        "C": probe.C_,
        "embed_s": embed,
        "probe_s": spent,
    }


def summary(rows: list[dict[str, Any]], args: Namespace) -> None:
    """One line per graph."""
    print(f"\nsetting {args.setting!r}{', shape chosen on validation' if args.grid else ''}, {args.seeds} seeds")
    lines = []
    for name in dict.fromkeys(row["graph"] for row in rows):
        runs = [row for row in rows if row["graph"] == name]
        shape = f"{runs[0]['dim']}/{runs[0]['anchors']}/{runs[0]['layers']}"
        accuracies = [mean_std([row[key] for row in runs], 100) for key in ("val", "test")]
        times = [f"{np.mean([row[key] for row in runs]):.2f}" for key in ("embed_s", "probe_s")]
        lines.append([name, shape, *accuracies, f"{np.median([row['C'] for row in runs]):g}", *times])
    print_table(["graph", "dim/anchors/layers", "val %", "test %", "median C", "embed s", "probe s"], lines)


if __name__ == "__main__":
    main()
