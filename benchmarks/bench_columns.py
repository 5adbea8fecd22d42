"""Tables of complete numbers as they are, or scaled by `TableEncoder`: which embeds better, at which spreads?

Data of scikit-learn with named columns, as graphs of the five nearest neighbours, and the bundled penguins with theirs.
Neighbours are those of the raw columns or of standardised ones, so that either table has a graph that suits it.
`spreads` is the largest standard deviation of a column over the smallest. Accuracy in percent of `LogisticProbe` with
ten labels of each class to learn and ten to choose, on all other nodes; the target of diabetes is cut into thirds. The
columns are passed as an array, encoded, or as the table, which `FisherEmbedding` treats by itself ("as fitted").

    python benchmarks/bench_columns.py
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import Rows, mean_std, parser, print_table
from sklearn import datasets
from sklearn.neighbors import kneighbors_graph

from fishergraph import FisherEmbedding, LogisticProbe, as_graph
from fishergraph.datasets import load_tables
from fishergraph.tables import TableEncoder

NAMES = ("iris", "wine", "breast_cancer", "diabetes", "penguins")
PENGUINS = ["Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)"]
LABELS, NEIGHBOURS = 10, 5


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray, Any]:
    """The columns, the classes, and the graph if there is one."""
    if name == "penguins":
        tables: Any = load_tables("penguins")
        nodes = tables.nodes.to_pandas().set_index("id")
        graph = as_graph(tables.edges, node_ids=nodes.index, undirected=True).adjacency
        kept = np.flatnonzero(nodes[PENGUINS].notna().all(axis=1))
        species = pd.factorize(nodes["Species"])[0]
        return nodes[PENGUINS].iloc[kept].reset_index(drop=True), species[kept], graph[kept][:, kept]
    options = {"scaled": False} if name == "diabetes" else {}
    data = getattr(datasets, f"load_{name}")(as_frame=True, **options)
    y = pd.qcut(data.target, 3, labels=False) if name == "diabetes" else data.target
    return data.data, np.asarray(y), None


def accuracy(Z: np.ndarray, y: np.ndarray, seed: int) -> float:
    """The share of the other nodes whose class is found from some labels of each class."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    parts = [order[y[order] == label] for label in np.unique(y)]
    train, val = (np.concatenate([part[first : first + LABELS] for part in parts]) for first in (0, LABELS))
    test = np.setdiff1d(np.arange(len(y)), np.concatenate([train, val]))
    return LogisticProbe().fit(Z, y, train=train, val=val).score(Z[test], y[test])


def inputs(X: pd.DataFrame) -> dict[str, Any]:
    """The ways to pass the columns."""
    return {"as they are": X.to_numpy(np.float64), "scaled": TableEncoder().fit_transform(X), "as fitted": X}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=10)
    args = options.parse_args()
    warnings.simplefilter("ignore")
    names, args.seeds = (("iris",), 1) if args.quick else (NAMES, args.seeds)
    rows, table = Rows("columns", args), []
    for name in names:
        X, y, graph = table_of(name)
        deviations = X.std().to_numpy()
        near = {"own": graph} if graph is not None else {}
        if graph is None:
            near["raw"] = kneighbors_graph(X.to_numpy(), NEIGHBOURS)
            near["standardised"] = kneighbors_graph((X / deviations).to_numpy(), NEIGHBOURS)
        for kind, adjacency in near.items():
            for way, columns in inputs(X).items():
                found = []
                for seed in range(args.seeds):
                    model = FisherEmbedding(random_state=seed, n_jobs=args.threads)
                    Z = model.fit_transform(columns, graph=as_graph(adjacency, undirected=True))
                    found.append(100 * accuracy(Z, y, seed))
                    facts = {"data": name, "graph": kind, "columns": way, "seed": seed}
                    spread = deviations.max() / deviations.min()
                    rows.add(**facts, nodes=len(y), features=X.shape[1], spreads=spread, accuracy=found[-1])
                table.append([name, kind, way, f"{deviations.max() / deviations.min():.0f}", mean_std(found)])
                print(*table[-1], flush=True)
    print_table(["data", "graph", "columns", "spreads", "accuracy"], table)


if __name__ == "__main__":
    main()
