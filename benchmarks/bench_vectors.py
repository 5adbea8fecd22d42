"""How good the vectors are: the default embedding and others, on test nodes or on nodes outside the test sets.

Methods, each with the validation nodes for its choices:

    logistic       the default embedding and LogisticProbe
    graph-probe    the default embedding and GraphProbe
    raw            the features and LogisticProbe
    raw-probe      the features and GraphProbe
    others         a name of fishergraph.lab.baselines, such as netmf, node2vec, gcn, gat, sgc

Planetoid graphs have their public split, graphs with ten fixed splits one for each seed, and graphs without a split
10 % of the nodes for training, 10 % for validation and 80 % for the test, drawn with the seed. --fresh judges on splits
outside the test nodes instead (bench_defaults.selection_splits), one for each seed; nothing is chosen on test nodes.
--edges-only leaves the features out. minesweeper is judged by the area under the ROC curve, all others by accuracy;
gcn and gat stop by the same measure on the validation nodes.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

import numpy as np
from auc_networks import best_probabilities
from bench_defaults import selection_splits
from common import Rows, load, mean_std, parser, print_table, random_split, timed, tiny_graph
from sklearn.metrics import roc_auc_score

from fishergraph import FisherEmbedding, GraphProbe, LogisticProbe
from fishergraph.datasets import GraphData
from fishergraph.lab import baseline
from fishergraph.probes import expected_calibration_error

BY_AREA = ("minesweeper",)
OWN = ("logistic", "graph-probe", "raw", "raw-probe")
FIRST_FRESH = 1000  # splits that no choice was made on


def split_of(data: GraphData, seed: int, args: Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(train, validation, judging) nodes."""
    if args.fresh:
        splits = selection_splits(data, seed + 1 if data.n_splits > 1 else 1, FIRST_FRESH + seed)
        return splits[-1]
    if data.n_splits == 0:
        return random_split(data.n_nodes, seed)
    return data.split(seed) if data.n_splits > 1 else data.split()


def evaluate(data: GraphData, method: str, seed: int, args: Namespace) -> dict[str, Any]:
    """The score of one method with one seed, and its seconds."""
    train, val, judged = split_of(data, seed, args)
    X = None if args.edges_only else data.X
    if method in OWN:
        classes, P, seconds, chosen = probed(data, X, method, seed, train, val, args)
    elif data.name in BY_AREA and method in ("gcn", "gat"):
        spent, P = timed(lambda: best_probabilities(data, method, train, val, seed))
        classes, seconds, chosen = np.arange(data.n_classes), (spent, 0.0), "stopped by area"
    else:
        model = baseline(method)
        spent, _ = timed(lambda: model.fit(X, data.y, graph=data.graph, train=train, val=val, seed=seed))
        classes, P, seconds, chosen = model.classes_, model.predict_proba(), (spent, 0.0), ""
    truth = data.y[judged]
    if data.name in BY_AREA:
        score = float(roc_auc_score(truth, P[judged, 1]))
    else:
        score = float(np.mean(classes[P[judged].argmax(axis=1)] == truth))
    known = {"embed_s": seconds[0], "probe_s": seconds[1], "chosen": chosen}
    return {"score": 100 * score, "ece": expected_calibration_error(P[judged], truth, classes), **known}


def probed(
    data: GraphData, X: Any, method: str, seed: int, train: np.ndarray, val: np.ndarray, args: Namespace
) -> tuple[np.ndarray, np.ndarray, tuple[float, float], str]:
    """Classes, probabilities of all nodes, seconds of embedding and probe, and what the probe chose."""
    blocks, embed, Z = None, 0.0, X
    if not method.startswith("raw"):
        model = FisherEmbedding(random_state=seed, n_jobs=args.threads)
        embed, Z = timed(lambda: model.fit_transform(X, graph=data.graph))
        blocks = model.blocks_
    if method.endswith("probe"):
        probe: Any = GraphProbe(data.graph, blocks=blocks, random_state=seed, n_jobs=args.threads)
    else:
        probe = LogisticProbe()
    spent, fitted = timed(lambda: probe.fit(Z, data.y, train, val))
    P = fitted.predict_proba() if method.endswith("probe") else fitted.predict_proba(Z)
    return fitted.classes_, P, (embed, spent), str(getattr(fitted, "chosen_", ""))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--methods", nargs="*", default=["logistic", "graph-probe"])
    options.add_argument("--graphs", nargs="*", default=["cora", "citeseer", "pubmed"])
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--first", type=int, default=0, help="the first seed, to add to those that were run")
    options.add_argument("--fresh", action="store_true", help="splits outside the test nodes")
    options.add_argument("--edges-only", action="store_true", help="leave the features out")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.seeds, args.methods = 2, ["logistic", "graph-probe", "sgc"]
    rows, table = Rows("vectors", args), []
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny_graph() if args.quick else load(name, args.data)
        for method in args.methods:
            settings = {"graph": name, "method": method, "fresh": args.fresh, "edges_only": args.edges_only}
            seeds = range(args.first, args.first + args.seeds)
            results = [rows.add(**settings, seed=s, **evaluate(data, method, s, args)) for s in seeds]
            times = [f"{np.median([row[key] for row in results]):.2f}" for key in ("embed_s", "probe_s")]
            ece = f"{np.mean([row['ece'] for row in results]):.3f}"
            table.append([name, method, mean_std([row["score"] for row in results]), ece, *times])
            print(*table[-1], flush=True)
    print_table(["graph", "method", "score", "ECE", "embed s", "probe s"], table)


if __name__ == "__main__":
    main()
