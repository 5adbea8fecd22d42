"""The tables in docs/answers.md, from three files of rows: the last row of each seed counts."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

import numpy as np
from common import HERE, RESULTS, markdown_table, read_rows, write_rows

PAGE = HERE.parent / "docs" / "answers.md"
GRAPHS = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}
LINKS = {
    "probe": "**`LinkProbe(FisherEmbedding())`**",
    "probe-vectors": "`LinkProbe()` on vectors of `FisherEmbedding`",
    "similarity": "`Vectors.link_scores`, nothing is learned",
    "raw": "features as vectors",
    "sgc": "SGC as vectors",
    "netmf": "NetMF as vectors",
    "node2vec": "node2vec as vectors",
    "sgc+probe": "SGC and `LinkProbe`",
    "netmf+probe": "NetMF and `LinkProbe`",
    "node2vec+probe": "node2vec and `LinkProbe`",
    "gae": "graph autoencoder (GCN)",
    "vgae": "variational graph autoencoder (GCN)",
    "gae-mlp": "graph autoencoder (GCN), pairs read by a network",
}
ANSWERS = {
    "ours": "**`FisherEmbedding`**",
    "ours-edges": "`FisherEmbedding`, edges only",
    "raw": "features",
    "sgc": "SGC",
    "netmf": "NetMF, edges only",
    "node2vec": "node2vec, edges only",
}
PARTS = {"prepare": "first question", "search": "search"}

Rows = list[dict[str, str]]


def last_rows(name: str) -> dict[tuple[str, str], Rows]:
    """The rows by graph and method, of each seed the last one; directed graphs are left out."""
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in read_rows(RESULTS / f"{name}.csv"):
        if row.get("directed") != "True":
            found.setdefault((row["graph"], row["method"]), {})[row["seed"]] = row
    return {key: list(by_seed.values()) for key, by_seed in found.items()}


def cell(rows: Rows, key: str) -> str:
    """Mean, deviation and number of seeds; empty without rows."""
    values = np.array([float(row[key]) for row in rows])
    if not len(values):
        return ""
    spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{values.mean() + 1e-9:.1f}{spread} ({len(values)})"


def table_of(name: str, methods: dict[str, str], key: str, title: str) -> str:
    """One measure of all methods, a column per graph; methods without rows are left out."""
    found = last_rows(name)
    lines = [[text, *(cell(found.get((g, m), []), key) for g in GRAPHS)] for m, text in methods.items()]
    lines = [line for line in lines if any(line[1:])]
    return markdown_table([title, *GRAPHS.values()], lines) if lines else ""


def times() -> str:
    """Medians of the seconds of searches."""
    cases: dict[tuple[Any, ...], Rows] = {}
    for row in read_rows(RESULTS / "nearest.csv"):
        if row["part"] in PARTS:
            size = f"{int(row['queries']):,} among {int(row['rows']):,} × {row['columns']}"
            cases.setdefault((size, row["method"], row["metric"], row["part"]), []).append(row)
    middle = lambda rows, key: f"{statistics.median(float(row[key]) for row in rows):.1f}"  # noqa: E731
    lines: Iterable[list[str]] = (
        [size, f"{method}, {metric}", PARTS[part], middle(rows, "seconds"), middle(rows, "processor_s"), str(len(rows))]
        for (size, method, metric, part), rows in cases.items()
    )
    return markdown_table(["queries", "search", "part", "seconds", "seconds of the processor", "turns"], list(lines))


def tables() -> str:
    """All tables, as Markdown."""
    parts = [
        table_of("links", LINKS, "auc", "links: area under the ROC curve, %"),
        table_of("links", LINKS, "hits@50", "links: hits@50, %"),
        table_of("answers", ANSWERS, "precision", "10 nearest nodes of the same class, %"),
        table_of("answers", ANSWERS, "nmi", "clusters and classes, normalised mutual information, %"),
        table_of("answers", ANSWERS, "ari", "clusters and classes, adjusted Rand index, %"),
        times(),
    ]
    return "\n".join(part for part in parts if part)


def main() -> None:
    write_rows(PAGE, tables())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
