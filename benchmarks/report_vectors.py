"""The tables of accuracies in docs/reproduction.md, from results/vectors.csv: the last row of each seed counts."""

from __future__ import annotations

import numpy as np
from common import HERE, RESULTS, markdown_table, read_rows, write_rows

PAGE = HERE.parent / "docs" / "reproduction.md"
PLANETOID = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}
EDGES = {**PLANETOID, "amazon_computers": "Amazon Computers"}
DIFFERENT = {
    "actor": "actor",
    "chameleon_filtered": "chameleon (filtered)",
    "squirrel_filtered": "squirrel (filtered)",
    "minesweeper": "minesweeper, area under the ROC curve",
}
LARGE = {
    "amazon_computers": "Amazon Computers",
    "coauthor_physics": "Coauthor Physics",
    "ogbn_arxiv_sub18k": "ogbn-arxiv, a sample of 18 thousand nodes",
}
NAMES = {
    "graph-probe": "`GraphProbe`",
    "logistic": "logistic regression",
    "netmf": "NetMF and logistic regression",
    "node2vec": "node2vec and logistic regression",
    "raw": "features, logistic regression",
    "gcn": "GCN",
    "gat": "GAT",
}
_SEEDS = 10  # of a cell without a number in brackets

Key = tuple[str, str, bool, bool]  # graph, method, fresh splits, edges only


def scores() -> dict[Key, tuple[np.ndarray, np.ndarray]]:
    """Scores and calibration errors, one per seed, by graph, method, fresh splits and edges only."""
    last: dict[Key, dict[int, tuple[float, float]]] = {}
    for row in read_rows(RESULTS / "vectors.csv"):
        key = (row["graph"], row["method"], row["fresh"] == "True", row["edges_only"] == "True")
        last.setdefault(key, {})[int(row["seed"])] = float(row["score"]), float(row["ece"])
    return {key: tuple(np.array(list(by_seed.values())).T) for key, by_seed in last.items()}


def tables() -> str:
    """All tables, as Markdown."""
    found = scores()

    def cell(graph: str, method: str, fresh: bool = False, edges: bool = False) -> str:
        values = found.get((graph, method, fresh, edges), (np.empty(0),))[0]
        if not len(values):
            return ""
        number = "" if len(values) == _SEEDS else f" ({len(values)})"
        spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
        return f"{values.mean() + 1e-9:.1f}{spread}{number}"  # halves go up

    def error(graph: str) -> str:
        return f"{found[graph, 'graph-probe', False, False][1].mean():.2f}"

    two = ("graph-probe", "logistic")
    planetoid = [
        [f"{NAMES[method]}, {'fresh splits outside the test nodes' if fresh else 'public split'}"]
        + [cell(graph, method, fresh) for graph in PLANETOID]
        for fresh in (False, True)
        for method in two
    ]
    edges = [[NAMES[m], *(cell(graph, m, edges=True) for graph in EDGES)] for m in (*two, "netmf", "node2vec")]
    large = [[LARGE[graph], cell(graph, "graph-probe"), error(graph)] for graph in LARGE]
    methods = ("graph-probe", "raw", "gcn", "gat")
    different = [[DIFFERENT[g], *(cell(g, m) for m in methods), error(g)] for g in DIFFERENT]
    error_name = "calibration error of `GraphProbe`"
    parts = [
        markdown_table(["with features, %", *PLANETOID.values()], planetoid),
        markdown_table(["edges only, %", *EDGES.values()], edges),
        markdown_table(["larger graphs, %", NAMES["graph-probe"], error_name], large),
        markdown_table(["neighbours differ, %", *(NAMES[m] for m in methods), error_name], different),
    ]
    return "\n".join(parts)


def main() -> None:
    write_rows(PAGE, tables())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
