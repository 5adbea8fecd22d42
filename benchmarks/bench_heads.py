"""LogisticProbe and GraphProbe on the same embeddings and splits; test nodes are never looked at.

The splits are those of bench_defaults.py: 20 training nodes per class, 500 validation nodes and up to 3,000 judging
nodes outside the public test set for the Planetoid graphs; 10 % and 10 % of the nodes for amazon_computers; and the
training nodes and two halves of the validation nodes of graphs with fixed splits. Both probes choose on the validation
nodes, and the others judge.

A row holds the mean accuracy of both probes in percent, the mean gain with its standard error over the splits, the
expected calibration errors, the median seconds, and how often each head has the largest weight.
"""

from __future__ import annotations

import warnings
from collections import Counter
from statistics import median
from typing import Any

import numpy as np
from bench_defaults import gain, selection_splits
from common import Rows, load, parser, print_table, timed, tiny_graph

from fishergraph import FisherEmbedding, GraphProbe, LogisticProbe
from fishergraph.datasets import GraphData
from fishergraph.probes import expected_calibration_error

GRAPHS = (
    *("cora", "citeseer", "pubmed", "amazon_computers"),
    *("actor", "chameleon_filtered", "squirrel_filtered", "minesweeper"),
)


def compare(data: GraphData, args: Any) -> dict[str, Any]:
    """The figures of one graph."""
    probes: dict[str, list[dict[str, Any]]] = {"logistic": [], "graph_probe": []}
    splits = selection_splits(data, args.splits, args.first_split)
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        model = FisherEmbedding(random_state=seed, n_jobs=args.threads)
        Z = model.fit_transform(data.X, graph=data.graph)
        graph = GraphProbe(data.graph, blocks=model.get_feature_names_out(), heads=args.heads, random_state=seed)
        for split in splits:
            probes["logistic"].append(judge(LogisticProbe(), Z, data.y, *split))
            probes["graph_probe"].append(judge(graph, Z, data.y, *split))
    scores = {name: np.array([r["score"] for r in results]) for name, results in probes.items()}
    shape = (args.seeds, len(splits))
    mean, error = gain(scores["graph_probe"].reshape(shape), scores["logistic"].reshape(shape))
    row: dict[str, Any] = {name: float(values.mean()) for name, values in scores.items()} | {"gain": mean, "se": error}
    for name, results in probes.items():
        row[f"{name}_ece"] = float(np.mean([r["ece"] for r in results]))
        row[f"{name}_s"] = median(r["seconds"] for r in results)
    counts = Counter(r["head"] for r in probes["graph_probe"]).most_common()
    return row | {"chosen": " ".join(f"{head}:{count}" for head, count in counts)}


def judge(
    probe: Any, Z: np.ndarray, y: np.ndarray, train: np.ndarray, val: np.ndarray, judged: np.ndarray
) -> dict[str, Any]:
    """Accuracy in percent and calibration error on the judging nodes, the seconds of the fit, and the head."""
    seconds, fitted = timed(lambda: probe.fit(Z, y, train, val))
    P = fitted.predict_proba(Z)[judged]
    score = 100 * float(np.mean(fitted.classes_[P.argmax(axis=1)] == y[judged]))
    ece = expected_calibration_error(P, y[judged], fitted.classes_)
    head = next(iter(getattr(fitted, "chosen_", {"logistic": 1.0})))  # the one with most weight
    return {"score": score, "ece": ece, "seconds": seconds, "head": head}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="*", default=GRAPHS, help=f"graphs (default: {' '.join(GRAPHS)})")
    options.add_argument("--heads", nargs="*", help="heads to try (default: those that suit the number of labels)")
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--first-split", type=int, default=0, help="others than 0 are splits no choice was made on")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    args.heads = tuple(args.heads) if args.heads else "auto"
    if args.quick:
        args.seeds, args.splits = 1, 2
    graphs = {"tiny": tiny_graph()} if args.quick else {name: load(name, args.data) for name in args.graphs}
    rows, table = Rows("heads", args), []
    for name, data in graphs.items():
        settings = {key: getattr(args, key) for key in ("first_seed", "seeds", "first_split", "splits")}
        heads = args.heads if isinstance(args.heads, str) else " ".join(args.heads)
        row = rows.add(graph=name, heads=heads, **settings, **compare(data, args))
        table.append(
            [name, f"{row['logistic']:.2f}", f"{row['graph_probe']:.2f}", f"{row['gain']:+.2f} ± {row['se']:.2f}"]
        )
        table[-1] += [
            f"{row['logistic_ece']:.3f} → {row['graph_probe_ece']:.3f}",
            f"{row['graph_probe_s']:.2f}",
            row["chosen"],
        ]
        print(*table[-1], flush=True)
    print_table(["graph", "LogisticProbe", "GraphProbe", "gain", "ECE", "seconds", "chosen"], table)


if __name__ == "__main__":
    main()
