"""How well anomaly scores find odd nodes: AUROC beside isolation forests, results/anomaly.csv.

    python benchmarks/bench_anomaly.py [--graphs cora …] [--seeds 3]
    python benchmarks/bench_anomaly.py --report      # write the tables of docs/explain.md from the rows

Three kinds of odd nodes:

- class: a class is left out of the fit, its nodes and their edges, and is to be found in the whole graph. One run for
  each of the five largest classes; isolation forests are fitted on the other nodes.
- context: a twentieth of the nodes take the features of the least similar of fifty random nodes.
- discord: a twentieth of the nodes are joined in groups of twelve, each node with each other one of its group.

The score was chosen on cora, citeseer, pubmed and amazon_computers. The other graphs were scored once.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import RESULTS, Rows, load, mean_std, parser, print_table, read_rows, tiny_graph
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from fishergraph import Explainer, FisherEmbedding, as_graph

CHOSEN = ("cora", "citeseer", "pubmed", "amazon_computers")
REPORTED = ("coauthor_physics", "ogbn_arxiv_sub18k", "actor", "chameleon_filtered")
SCENARIOS = ("class", "context", "discord")
METHODS = {
    "score": "`scores`",
    "context": "`context`",
    "discord": "`discord`",
    "novelty": "`novelty`",
    "forest_Z": "isolation forest on the embedding",
    "forest_X": "isolation forest on X",
    "degree": "degree",
}
SHARE, CANDIDATES, GROUP, CLASSES = 0.05, 50, 12, 5
PAGE = Path(__file__).resolve().parents[1] / "docs" / "explain.md"
BEGIN, END = "<!-- tables of bench_anomaly.py -->\n", "<!-- end of the tables -->"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="*", default=[*CHOSEN, *REPORTED])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--report", action="store_true", help="only write the tables of docs/explain.md")
    args = options.parse_args()
    if args.report:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + tables() + END + rest.partition(END)[2], encoding="utf-8")
        return
    warnings.simplefilter("ignore", UserWarning)
    rows, table = Rows("anomaly", args), []
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny_graph() if args.quick else load(name, args.data)
        for scenario, seed, label, problem in problems(data, 1 if args.quick else args.seeds):
            row = rows.add(
                graph=name, scenario=scenario, left_out=label, seed=seed, **scored(*problem, seed, args.threads)
            )
            table.append([name, scenario, label, seed, *(f"{row[method]:.3f}" for method in METHODS)])
            print(*table[-1], flush=True)
    print_table(["graph", "scenario", "left out", "seed", *METHODS], table)


def problems(data: Any, n_seeds: int) -> Any:
    """(scenario, seed, class or "", (X, graph, odd nodes, nodes of the fit)) of every run."""
    X, A = data.X, as_graph(data.graph).adjacency
    every = np.arange(A.shape[0])
    classes, counts = np.unique(data.y[data.y >= 0], return_counts=True)
    for label in classes[np.argsort(-counts, kind="stable")[:CLASSES]].tolist():
        odd = data.y == label
        yield "class", 0, label, (X, A, odd, every[~odd])
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        yield "context", seed, "", (*with_other_features(X, A, rng), every)
        yield "discord", seed, "", (*with_groups(X, A, rng), every)


def with_other_features(X: Any, A: sp.csr_array, rng: np.random.Generator) -> tuple[Any, sp.csr_array, np.ndarray]:
    """Some nodes with the features of the least similar of some candidates."""
    n = A.shape[0]
    odd = rng.choice(n, int(SHARE * n), replace=False)
    unit, source = unit_rows(X), np.arange(n)
    for v in odd.tolist():
        candidates = rng.choice(n, CANDIDATES, replace=False)
        cosines = unit[candidates] @ unit[[v]].T
        source[v] = candidates[np.argmin(np.asarray(cosines.todense() if sp.issparse(cosines) else cosines).ravel())]
    return X[source], A, marked(odd, n)


def with_groups(X: Any, A: sp.csr_array, rng: np.random.Generator) -> tuple[Any, sp.csr_array, np.ndarray]:
    """Some nodes joined in groups, each with each other one."""
    n = A.shape[0]
    odd = rng.choice(n, max(1, int(SHARE * n / GROUP)) * GROUP, replace=False)
    pairs = np.concatenate([np.argwhere(~np.eye(GROUP, dtype=bool)) + k for k in range(0, len(odd), GROUP)])
    more = sp.csr_array((np.ones(len(pairs), np.float32), (odd[pairs[:, 0]], odd[pairs[:, 1]])), shape=A.shape)
    joined = sp.csr_array(A + more)
    joined.data[:] = 1
    return X, joined, marked(odd, n)


def marked(rows: np.ndarray, n: int) -> np.ndarray:
    """True in these rows."""
    mark = np.zeros(n, bool)
    mark[rows] = True
    return mark


def unit_rows(X: Any) -> Any:
    """Rows divided by their lengths, with float32 entries and small indices."""
    from sklearn.preprocessing import normalize

    return normalize(X)


def scored(X: Any, A: sp.csr_array, odd: np.ndarray, kept: np.ndarray, seed: int, threads: int) -> dict[str, float]:
    """The AUROC of every method."""
    model = FisherEmbedding(random_state=seed, n_jobs=threads)
    model.fit(X[kept], graph=sp.csr_array(A[kept][:, kept]))
    Z = model.transform(X, graph=A)
    found = Explainer(model, X, graph=A).anomaly_scores()
    scores = {"score": found.scores, **{part: getattr(found, part) for part in ("context", "discord", "novelty")}}
    for name, values in {"forest_Z": Z, "forest_X": X}.items():
        rows: Any = values
        if sp.issparse(rows):  # scikit-learn's trees take 32-bit indices alone
            rows = sp.csr_matrix((rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), rows.shape)
        forest = IsolationForest(random_state=seed, n_jobs=threads).fit(rows[kept])
        scores[name] = -forest.score_samples(rows)
    scores["degree"] = np.diff(A.indptr)
    filled = {name: np.where(np.isnan(values), np.nanmedian(values), values) for name, values in scores.items()}
    return {name: float(roc_auc_score(odd, values)) for name, values in filled.items()}


def tables(folder: Path = RESULTS) -> str:
    """The tables of the page, from the rows: one per scenario, mean ± standard deviation over runs."""
    rows, text = read_rows(folder / "anomaly.csv"), ""
    for scenario in SCENARIOS:
        own = [row for row in rows if row["scenario"] == scenario]
        graphs = [name for name in (*CHOSEN, *REPORTED) if any(row["graph"] == name for row in own)]
        text += f"\n**{scenario}**\n\n| | {' | '.join(graphs)} |\n|---|{'---|' * len(graphs)}\n"
        for method, title in METHODS.items():
            cells = [mean_std([float(row[method]) for row in own if row["graph"] == graph], 100) for graph in graphs]
            text += f"| {title} | {' | '.join(cells)} |\n"
    return f"{text}\n"


if __name__ == "__main__":
    main()
