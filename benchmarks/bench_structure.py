"""Graphs without features: what the edges alone say, on labelled nodes that are in no test set.

Every kind of `structural_features` goes through the default embedding (``structure=kind``, X=None). Beside it stands
NetMF (Qiu et al. 2018) with its full matrix, from the equations, with 128 columns and windows of 10 and 20 steps, as it
is and through the same embedding. Splits are those of bench_defaults.py: 20 training nodes per class, or 10 % of the
nodes of a graph that has no split. Rows have the accuracy on the nodes that judge, and the seconds of one fit.

--planted embeds six planted communities of 80 nodes, from the edges and beside four columns of noise. Its rows have the
adjusted Rand index of k-means on the embedding, and the accuracy of a logistic probe with 20 labels per community.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from bench_defaults import CS, selection_splits
from common import Rows, load, parser, print_table, tiny_graph
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from fishergraph import FisherEmbedding, LogisticProbe
from fishergraph.datasets import GraphData

GRAPHS = ("cora", "citeseer")
KINDS = ("projection", "degree", "spectral", "factors", "local")
FEATURE_BLOCKS = ("psi0", "psi1", "psi2", "walk", "smooth", "local")  # all but "factors"
MOST_NODES = 8000  # of the dense matrix of NetMF


def netmf(data: GraphData, window: int, dim: int = 128) -> np.ndarray:
    """U √S of log max(1, vol/T · Σ_r P^r D^-1), from the full matrix in float64; isolated nodes are zeros."""
    A = sp.csr_array(data.graph, dtype=np.float64).toarray()
    A = np.maximum(A, A.T)
    degrees = A.sum(axis=1)
    inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    P, power, total = inverse[:, None] * A, np.eye(len(A)), np.zeros_like(A)
    for _ in range(window):
        power = power @ P
        total += power
    M = np.log(np.maximum(1.0, degrees.sum() / window * total * inverse))
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    order = np.argsort(-np.abs(values))[:dim]
    return (vectors[:, order] * np.sqrt(np.abs(values[order]))).astype(np.float32)


def candidates(data: GraphData, seed: int, args: Any) -> Iterator[tuple[str, float, np.ndarray]]:
    """Name, seconds and embedding of every method."""
    for kind in args.kinds:
        start = time.perf_counter()
        model = FisherEmbedding(structure=kind, random_state=seed, n_jobs=args.threads)
        Z = model.fit_transform(None, graph=data.graph)
        yield f"structure={kind}", time.perf_counter() - start, Z
    for window in (10, 20) if len(data.y) <= MOST_NODES else ():
        start = time.perf_counter()
        M = netmf(data, window)
        seconds = time.perf_counter() - start
        yield f"NetMF, window {window}", seconds, M
        model = FisherEmbedding(random_state=seed, n_jobs=args.threads)
        yield f"embedded NetMF, window {window}", seconds, model.fit_transform(M, graph=data.graph)


PLANTED: dict[str, tuple[dict[str, Any], bool]] = {  # parameters, and whether the columns of noise are passed
    "edges only": ({}, False),
    "beside noise, default": ({}, True),
    "beside noise, structure=None": ({"structure": None}, True),
    "beside noise, factors=1": ({"block_weights": {"factors": 1.0}}, True),
    "beside noise, factors alone": ({"block_weights": {"factors": 1.0, **dict.fromkeys(FEATURE_BLOCKS, 0.0)}}, True),
}


def planted(args: Any, n_communities: int = 6, size: int = 80) -> None:
    """Rows of planted communities."""
    rows, table, y = Rows("structure", args), [], np.repeat(np.arange(n_communities), size)
    for name, (params, noisy) in PLANTED.items():
        found, scores = [], []
        for seed in range(2 if args.quick else args.splits):
            rng = np.random.default_rng(seed)
            chance = np.where(y[:, None] == y, 0.15, 0.01)
            edges = np.triu(rng.random(chance.shape) < chance, 1)
            X, graph = rng.normal(size=(len(y), 4)), sp.csr_array((edges | edges.T).astype(np.float32))
            model = FisherEmbedding(random_state=seed, n_jobs=args.threads, **params)
            Z = model.fit_transform(X if noisy else None, graph=graph)
            clusters = KMeans(n_communities, n_init=5, random_state=seed).fit_predict(Z)
            found.append(float(adjusted_rand_score(y, clusters)))
            order = rng.permutation(len(y))
            train = np.concatenate([order[y[order] == c][:20] for c in range(n_communities)])
            choose, judge = np.array_split(np.setdiff1d(order, train), 2)
            scores.append(LogisticProbe(Cs=CS, tol=1e-4).fit(Z, y, train, choose).score(Z[judge], y[judge]))
        mean, error = 100 * np.mean(scores), 100 * np.std(scores, ddof=1) / len(scores) ** 0.5
        values = {"splits": len(scores), "accuracy": float(mean), "se": float(error), "ari": float(np.mean(found))}
        rows.add(graph="planted", method=name, seed=0, first_split=0, **values)
        table.append([name, f"{mean:.1f} ± {error:.1f}", f"{np.mean(found):.2f}"])
    print_table(["planted communities", "accuracy", "adjusted Rand index"], table)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="*", default=GRAPHS, help=f"graphs (default: {' '.join(GRAPHS)})")
    options.add_argument("--kinds", nargs="*", default=KINDS, help=f"kinds (default: {' '.join(KINDS)})")
    options.add_argument("--planted", action="store_true", help="planted communities instead")
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--splits", type=int, default=6)
    options.add_argument("--first-split", type=int, default=200)
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.planted:
        planted(args)
        return
    if args.quick:
        args.splits = 2
    graphs = {"tiny": tiny_graph()} if args.quick else {name: load(name, args.data) for name in args.graphs}
    rows, table = Rows("structure", args), []
    for name, data in graphs.items():
        splits = selection_splits(data, args.splits, args.first_split)
        for seed in range(args.seeds):
            for method, seconds, Z in candidates(data, seed, args):
                probes = [LogisticProbe(Cs=CS, tol=1e-4).fit(Z, data.y, train, choose) for train, choose, _ in splits]
                scores = [probe.score(Z[s[2]], data.y[s[2]]) for probe, s in zip(probes, splits, strict=True)]
                mean, error = 100 * np.mean(scores), 100 * np.std(scores, ddof=1) / len(scores) ** 0.5
                rows.add(
                    graph=name,
                    method=method,
                    seed=seed,
                    splits=len(splits),
                    first_split=args.first_split,
                    accuracy=float(mean),
                    se=float(error),
                    seconds=seconds,
                )
                table.append([name, method, f"{mean:.2f} ± {error:.2f}", f"{seconds:.2f}"])
                print(*table[-1], flush=True)
    print_table(["graph", "method", "accuracy", "seconds"], table)


if __name__ == "__main__":
    main()
