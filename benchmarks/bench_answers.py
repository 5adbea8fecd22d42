"""Nearest nodes and clusters of several embeddings, judged by the classes of the nodes.

    precision   the mean share of the 10 nearest nodes, by cosine, that have the class of the node, in percent
    NMI, ARI    normalised mutual information and adjusted Rand index, in percent, of the classes and as many clusters
                as there are classes (`Vectors.cluster`)

Nobody sees the classes but the measures and the number of clusters. Methods: ours, the default embedding; ours-edges
without features; raw, the features; sgc, netmf and node2vec of the laboratory with the settings of their papers. Two
settings were fixed beforehand: cosines, and ten nearest nodes.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import Rows, load, mean_std, parser, print_table, timed, tiny_graph
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from fishergraph import FisherEmbedding, Vectors
from fishergraph.datasets import GraphData
from fishergraph.lab import baseline

METHODS = ("ours", "ours-edges", "raw", "sgc", "netmf", "node2vec")
K = 10


def embedded(data: GraphData, method: str, seed: int, threads: int) -> np.ndarray:
    """The vectors of a method."""
    if method.startswith("ours"):
        X = None if method == "ours-edges" else data.X
        return FisherEmbedding(random_state=seed, n_jobs=threads).fit_transform(X, graph=data.graph)
    if method == "raw":
        return np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float32)
    return baseline(method).vectors(data.X, data.graph, seed=seed)


def judged(Z: np.ndarray, y: np.ndarray, seed: int, threads: int) -> dict[str, float]:
    """The measures of an embedding."""
    vectors = Vectors(Z)
    near = vectors.neighbours(K, n_jobs=threads).rows
    labels = vectors.cluster(len(np.unique(y)), random_state=seed, n_jobs=threads).labels
    measures = {"precision": np.mean(y[near] == y[:, None]), "nmi": normalized_mutual_info_score(y, labels)}
    return {name: 100 * float(value) for name, value in (measures | {"ari": adjusted_rand_score(y, labels)}).items()}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    options.add_argument("--graphs", nargs="*", default=["cora", "citeseer", "pubmed"])
    options.add_argument("--seeds", type=int, default=3)
    args = options.parse_args()
    warnings.simplefilter("ignore")
    if args.quick:
        args.seeds, args.methods = 1, [name for name in METHODS if name != "node2vec"]
    rows, table = Rows("answers", args), []
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny_graph() if args.quick else load(name, args.data)
        for method in args.methods:
            found: list[dict[str, Any]] = []
            for seed in range(args.seeds):
                spent, Z = timed(lambda: embedded(data, method, seed, args.threads))  # noqa: B023
                asked, measures = timed(lambda: judged(Z, data.y, seed, args.threads))  # noqa: B023
                settings = {"graph": name, "method": method, "seed": seed, "columns": Z.shape[1]}
                found.append(rows.add(**settings, embed_s=spent, answer_s=asked, **measures))
            table.append(
                [name, method, *(mean_std([row[key] for row in found]) for key in ("precision", "nmi", "ari"))]
            )
            print(*table[-1], flush=True)
    print_table(["graph", "method", f"precision@{K}", "NMI", "ARI"], table)


if __name__ == "__main__":
    main()
