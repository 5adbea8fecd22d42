"""Boosted trees on columns of nodes: LightGBM on their own columns, and on the table of `to_table`.

The nodes outside the test part of the public split are divided at random, two thirds to train and one third to judge;
test nodes stay in the graph and are not looked at. The settings of LightGBM are the same for all columns. Columns:

    own         the nodes' own columns
    table       to_table without a model and without labels: means over neighbours, PageRank means, counts of edges
    labels      the same with the neighbours' labels, of training nodes alone
    axes        the same as table, with 32 axes of the default embedding and its soft counts
    inductive   the same as labels, with training rows from the graph of training nodes alone

and `linear`, logistic regression on the default embedding, beside them. Columns of a row: accuracy in percent, number
of columns, seconds of making the table and of fitting and judging.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

import numpy as np
from common import Rows, load, mean_std, parser, print_table, require, timed, tiny_graph
from sklearn.linear_model import LogisticRegression

from fishergraph import FisherEmbedding, to_table
from fishergraph.datasets import GraphData

COLUMNS = ("own", "table", "labels", "axes", "inductive", "linear")


def table_of(data: GraphData, kind: str, train: np.ndarray, seed: int, args: Namespace) -> Any:
    """The columns of all nodes."""
    if kind == "own":
        return data.X.toarray() if hasattr(data.X, "toarray") else data.X
    model = FisherEmbedding(random_state=seed, n_jobs=args.threads)
    if kind == "linear":
        return model.fit_transform(data.X, graph=data.graph)
    options: dict[str, Any] = {"n_jobs": args.threads}
    if kind in ("labels", "inductive"):
        options |= {"y": data.y.astype(str), "train": train, "inductive": kind == "inductive"}
    if kind == "axes":
        options |= {"model": model.fit(data.X, graph=data.graph), "axes": 32}
    return to_table(data.X, data.graph, **options).to_numpy()


def accuracy(X: Any, y: np.ndarray, train: np.ndarray, judged: np.ndarray, kind: str, args: Namespace) -> float:
    """The accuracy on the judged rows, in percent."""
    if kind == "linear":
        model: Any = LogisticRegression(max_iter=300)
    else:
        trees = 20 if args.quick else 60
        options = {"n_estimators": trees, "learning_rate": 0.1, "num_leaves": 15, "min_child_samples": 5}
        options |= {"colsample_bytree": 0.1, "subsample": 0.8, "subsample_freq": 1, "random_state": 0, "verbose": -1}
        model = require("lightgbm").LGBMClassifier(n_jobs=args.threads, **options)
    model.fit(X[train], y[train])
    return 100 * float(np.mean(model.predict(X[judged]) == y[judged]))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--columns", nargs="*", default=list(COLUMNS), choices=COLUMNS)
    options.add_argument("--graphs", nargs="*", default=["cora", "pubmed"])
    options.add_argument("--seeds", type=int, default=5)
    args = options.parse_args()
    require("lightgbm")
    warnings.simplefilter("ignore")
    args.seeds = 1 if args.quick else args.seeds
    rows, table = Rows("table", args), []
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny_graph() if args.quick else load(name, args.data)
        rest = np.setdiff1d(np.arange(len(data.y)), data.test)
        for kind in args.columns:
            results = []
            for seed in range(args.seeds):
                order = np.random.default_rng(seed).permutation(rest)
                train, judged = np.sort(order[: 2 * len(order) // 3]), np.sort(order[2 * len(order) // 3 :])
                making, X = timed(lambda: table_of(data, kind, train, seed, args))  # noqa: B023
                fitting, found = timed(lambda: accuracy(X, data.y, train, judged, kind, args))  # noqa: B023
                about = {"graph": name, "columns": kind, "seed": seed, "n_columns": X.shape[1], "trained": len(train)}
                results.append(rows.add(**about, accuracy=found, seconds_table=making, seconds_fit=fitting))
            seconds = [np.median([row[key] for row in results]) for key in ("seconds_table", "seconds_fit")]
            cells = [mean_std([row["accuracy"] for row in results]), str(results[0]["n_columns"])]
            table.append([name, kind, *cells, *(f"{value:.1f}" for value in seconds)])
            print(*table[-1], flush=True)
    print_table(["graph", "columns", "accuracy", "columns of the table", "s table", "s fit"], table)


if __name__ == "__main__":
    main()
