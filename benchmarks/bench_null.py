"""Are p-values of neighbourhoods uniform where features do not depend on edges? results/null.csv.

    python benchmarks/bench_null.py

Ten graphs: four random ones with normal or binary features, three whose degrees follow a power law, and three of the
Planetoid collection with their features permuted over the nodes. For each: Kolmogorov and Smirnov's test against the
uniform distribution, over nodes that share no member (the test compares independent values), and the share of all nodes
with p ≤ 0.05. "all" has the nodes of every graph together.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Rows, load, parser, print_table
from scipy import stats

from fishergraph import Explainer, FisherEmbedding, Neighbourhood, as_graph

PUBLISHED = ("cora", "citeseer", "pubmed")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--permutations", type=int, default=199)
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows, table, together = Rows("null", args), [], []
    for name, X, A in graphs(args):
        start = time.perf_counter()
        model = FisherEmbedding(1, walk=None, structure=None, random_state=0, n_jobs=args.threads).fit(X, graph=A)
        explainer = Explainer(model, X, graph=A)
        p = explainer.neighbourhood_scores(n_permutations=19 if args.quick else args.permutations).p_values
        spent, alone = time.perf_counter() - start, p[apart(Neighbourhood()(A))]
        together.append(alone)
        table.append(rows.add(graph=name, **judged(alone), share_below_5=float(np.mean(p <= 0.05)), seconds=spent))
    everything = np.concatenate(together)
    table.append(
        rows.add(graph="all", **judged(everything), share_below_5=float(np.mean(everything <= 0.05)), seconds=0)
    )
    print_table(list(table[0]), [list(row.values()) for row in table])


def judged(p: np.ndarray) -> dict[str, Any]:
    """Kolmogorov and Smirnov's test of independent p-values."""
    found = stats.kstest(p, "uniform")
    return {"nodes": len(p), "ks": float(found.statistic), "ks_p": float(found.pvalue), "mean_p": float(p.mean())}


def graphs(args: Any) -> Iterator[tuple[str, Any, sp.csr_array]]:
    """(name, features, adjacency) of graphs whose features say nothing of their edges."""
    n = 200 if args.quick else 2000
    for seed in range(1 if args.quick else 4):
        rng = np.random.default_rng(seed)
        half = sp.random_array((n, n), density=5 / n, rng=rng, format="csr")
        X = rng.normal(size=(n, 16)) if seed % 2 else (rng.random((n, 80)) < 0.1) + 1e-3
        yield f"random {seed}", X, symmetric(half)
    for seed in range(0 if args.quick else 3):
        rng = np.random.default_rng(100 + seed)
        weight = (1 - rng.random(n)) ** (-1 / 1.5)
        ends = rng.choice(n, size=(2, 3 * n), p=weight / weight.sum())
        yield f"power law {seed}", rng.normal(size=(n, 16)), symmetric(sp.csr_array((np.ones(3 * n), ends), (n, n)))
    for name in () if args.quick else PUBLISHED:
        data = load(name, args.data)
        order = np.random.default_rng(0).permutation(data.n_nodes)
        yield f"{name}, permuted", data.X[order], as_graph(data.graph).adjacency


def symmetric(half: sp.csr_array) -> sp.csr_array:
    """The undirected graph of these edges, without weights and loops."""
    both = sp.csr_array(half + half.T)
    both.setdiag(0)
    both.eliminate_zeros()
    both.data[:] = 1
    return both


def apart(sets: Any) -> np.ndarray:
    """Nodes no two of which share a member, in a random order."""
    used, chosen = np.zeros(sets.n_points, bool), []
    for v in np.random.default_rng(0).permutation(sets.n_sets).tolist():
        members = sets.indices[sets.indptr[v] : sets.indptr[v + 1]]
        if not used[members].any():
            chosen.append(v)
            used[members] = True
    return np.array(chosen)


if __name__ == "__main__":
    main()
