"""Cora, fit and transform: `FisherEmbedding.published_code` against the same rule written plainly (plain_fie.py).

Both run in turn, seed by seed, in this one process with the same number of threads, and both embeddings go through the
same probe. Memory that either frees is kept for the next. The ratio of a seed is plain (fit + embed) over ours: fit
then transform, as the plain one has to run, and fit_transform, which is one pass.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from common import Rows, keep_freed_memory, load, mean_std, parser, print_table, require, timed, tiny_graph

from fishergraph import FisherEmbedding, LogisticProbe
from fishergraph.datasets import GraphData
from fishergraph.published import PublishedNystrom


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--dim", type=int, default=512)
    options.add_argument("--anchors", type=int, default=8)
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--seeds", type=int, default=5, help="number of seeds (default 5)")
    args = options.parse_args()
    if args.quick:
        args.dim, args.anchors, args.layers, args.seeds = 32, 2, 2, 2
    keep_freed_memory()
    torch = require("torch")
    torch.set_num_threads(args.threads)
    data = tiny_graph() if args.quick else load("cora", args.data)
    small = tiny_graph()
    run_ours(small, Namespace(dim=16, anchors=2, layers=2, threads=args.threads), 0)  # compile
    run_plain(small, Namespace(dim=16, anchors=2, layers=2), 0)
    rows = Rows("cora", args)
    for seed in range(args.seeds):
        plain, ours = run_plain(data, args, seed), run_ours(data, args, seed)
        total = plain["fit_s"] + plain["transform_s"]
        row = rows.add(
            graph=data.name,
            dim=args.dim,
            anchors=args.anchors,
            layers=args.layers,
            seed=seed,
            **{f"plain_{key}": value for key, value in plain.items()},
            **{f"ours_{key}": value for key, value in ours.items()},
            ratio_fit_then_transform=total / (ours["fit_s"] + ours["transform_s"]),
            ratio_fit_transform=total / ours["fit_transform_s"],
        )
        print(f"seed {seed}: plain {total:.2f} s, ours {ours['fit_transform_s']:.3f} s,", end=" ")
        print(f"{row['ratio_fit_transform']:.1f} x, test {plain['test']:.3f} and {ours['test']:.3f}", flush=True)
    summary(rows.rows, data.name, args)


def summary(rows: list[dict[str, Any]], name: str, args: Namespace) -> None:
    """Means over the seeds."""

    def column(key: str) -> list[float]:
        return [row[key] for row in rows]

    print(f"\n{name} {args.dim}/{args.anchors}/{args.layers}, {len(rows)} seeds, mean ± std")
    print_table(
        ["", "fit s", "transform s", "fit_transform s", "val %", "test %"],
        [
            [
                label,
                mean_std(column(f"{side}_fit_s")),
                mean_std(column(f"{side}_transform_s")),
                mean_std(column("ours_fit_transform_s")) if side == "ours" else "",
                mean_std(column(f"{side}_val"), 100),
                mean_std(column(f"{side}_test"), 100),
            ]
            for side, label in (("plain", "published, plainly"), ("ours", "fishergraph"))
        ],
    )
    for key, said in (
        ("ratio_fit_then_transform", "plain (fit + embed) / ours (fit, then transform)"),
        ("ratio_fit_transform", "plain (fit + embed) / ours (fit_transform)"),
    ):
        print(f"{said}: median {np.median(column(key)):.1f} x, least {min(column(key)):.1f} x")


def run_ours(data: GraphData, args: Namespace, seed: int) -> dict[str, float]:
    """Seconds and accuracy of FisherEmbedding."""
    model = FisherEmbedding.published_code(
        n_layers=args.layers,
        n_anchors=args.anchors,
        dim=args.dim,
        kernel=PublishedNystrom(bandwidth=1.0),
        random_state=seed,
        n_jobs=args.threads,
    )
    fit, _ = timed(lambda: model.fit(data.X, graph=data.graph))
    transform, _ = timed(lambda: model.transform(data.X, graph=data.graph))
    both, Z = timed(lambda: model.fit_transform(data.X, graph=data.graph))
    return {"fit_s": fit, "transform_s": transform, "fit_transform_s": both, **accuracy(Z, data)}


def run_plain(data: GraphData, args: Namespace, seed: int) -> dict[str, float]:
    """Seconds and accuracy of the published algorithm."""
    import torch
    from plain_fie import PlainFIE

    x = torch.from_numpy(data.X if isinstance(data.X, np.ndarray) else data.X.toarray())
    target, source = data.graph.nonzero()  # row v of the adjacency lists the members of v
    edges = torch.from_numpy(np.stack([source, target]).astype(np.int64))
    model = PlainFIE(args.dim, args.anchors, args.layers, seed=seed)
    fit, _ = timed(lambda: model.fit(x, edges))
    embed, Z = timed(lambda: model.embed(x, edges))
    return {"fit_s": fit, "transform_s": embed, **accuracy(Z.numpy(), data)}


def accuracy(Z: np.ndarray, data: GraphData) -> dict[str, float]:
    """Validation and test accuracy of the probe on the standard split."""
    train, val, test = data.split()
    spent, probe = timed(lambda: LogisticProbe().fit(Z, data.y, train, val))
    return {
        "probe_s": spent,
        "val": probe.val_score_,
        "test": float(np.mean(probe.predict(Z[test]) == data.y[test])),
        "C": probe.C_,
    }


if __name__ == "__main__":
    main()
