"""The tables of docs/performance.md that are not of single layers: "In short", the default, training, captured epochs.

A row of results that has a spread is printed with it. One without is the median of a run: then all runs of the case
count, and the table has their median, the least and the most of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from common import HERE, RESULTS, last_rows, markdown_table, read_rows, spread, spread_text, three_digits, write_rows
from report_em import measured_layers

PAGE = HERE.parent / "docs" / "performance.md"
GRAPHS = {
    "cora": "Cora",
    "pubmed": "Pubmed",
    "amazon_computers": "Amazon Computers",
    "coauthor_physics": "Coauthor Physics",
    "ogbn_arxiv": "ogbn-arxiv",
}
SETTINGS = {
    "default": "default",
    "without structure": "`structure=None`",
    "edges only": "edges only, `X=None`",
    "GraphProbe": "`GraphProbe` on the default",
}
MODELS = {"fisher": "FisherNet", "gat": "GAT", "gatv2": "GATv2"}
TRAINED = (  # graph, device, column, what it is
    ("arxiv", "cpu", "epoch_s", "ogbn-arxiv graph, two cores"),
    ("arxiv", "cuda", "epoch_s", "ogbn-arxiv graph, an H200, full float32 products"),
    ("pubmed", "cuda", "epoch_s", "Pubmed, an H200, kernel by kernel"),
    ("pubmed", "cuda", "train_s", "Pubmed, an H200, by `train`, measures included"),
)


def tables() -> dict[str, str]:
    """The text of every section, by its name."""
    return {"short": short(), "defaults": defaults(), "training": training(), "capture": captured()}


def text_of(values: Iterable[float]) -> str:
    """'median [least, most]'."""
    return spread_text(spread(list(values), "value"), "value")


def last_run(name: str) -> list[dict[str, str]]:
    """The rows of the last run."""
    rows = read_rows(RESULTS / f"{name}.csv")
    return [row for row in rows if row["date"] == rows[-1]["date"]]


def seconds(row: dict[str, str]) -> str:
    """'x s [least, most]' of a row in milliseconds."""
    text = {key: 1e-3 * float(row[key]) for key in row if key.startswith("forward_ms") and row[key]}
    return spread_text(text, "forward_ms") + " s"


def short() -> str:
    """Times on two cores."""
    layers = {row["layer"]: row for row in measured_layers() if (row["device"], row["graph"]) == ("cpu", "arxiv")}
    others = {
        "sparse product": "sparse product N × d",
        "GATConv": "PyG GATConv, heads = p, out = d in total",
        "GATv2Conv": "PyG GATv2Conv, heads = p, out = d in total",
        "messages per edge": "messages (entry × feature × anchor)",
    }
    beside = "; ".join(f"{name} {seconds(layers[layer])}" for name, layer in others.items())
    arxiv, cora, scaling = (last_run(name) for name in ("arxiv", "cora", "scaling"))
    memory = three_digits(median(float(row["extra_gb"]) for row in arxiv))
    plain = text_of(float(row["plain_fit_s"]) + float(row["plain_transform_s"]) for row in cora)
    sizes = [f"{int(row['edges']) / 1e6:.2g} M" for row in (scaling[0], scaling[-1])]
    spans = [three_digits(float(row["seconds"])) for row in (scaling[0], scaling[-1])]
    net, gat = (trained("arxiv", "cpu", model, "epoch_s") for model in ("fisher", "gat"))
    lines = [
        [
            "one aggregation, ogbn-arxiv graph (2.5 M entries), 128 features, 4 anchors",
            seconds(layers["fishergraph em_means"]),
            beside,
        ],
        [
            "whole embedding of that graph, 3 layers of 256, `structure=None`",
            f"{text_of(float(row['seconds']) for row in arxiv)} s, {memory} GB beyond input and output",
            "",
        ],
        [
            "Cora, the published code's rule, 512 wide, 8 anchors, 4 layers",
            f"{text_of(float(row['ours_fit_transform_s']) for row in cora)} s",
            f"the published algorithm written plainly, {plain} s",
        ],
        [f"{sizes[0]} to {sizes[1]} edges, smoothing and layers", f"{spans[0]} s to {spans[1]} s", ""],
        ["one epoch of training, ogbn-arxiv graph, 3 layers of 128", net, f"GAT {gat}"],
    ]
    return markdown_table(["", "fishergraph", "for comparison"], lines)


def defaults() -> str:
    """The default in seconds, from the last run of every graph and setting."""
    found = {(row["graph"], row["setting"]): row for row in last_rows("times", "graph", "setting")}
    turns = [found[graph, "default"]["turns"] for graph in GRAPHS]
    lines = [
        [text, *(default_cell(found.get((graph, setting))) for graph in GRAPHS)] for setting, text in SETTINGS.items()
    ]
    return markdown_table(["", *GRAPHS.values()], [*lines, ["turns", *turns]])


def default_cell(row: dict[str, str] | None) -> str:
    if row is None:
        return ""
    return spread_text({"s": row["seconds"], "s_least": row["least"], "s_most": row["most"]}, "s")


def trained(graph: str, device: str, model: str, column: str) -> str:
    """'seconds, GB' of an epoch, from the last row that has them."""
    rows = [
        row
        for row in read_rows(RESULTS / "training.csv")
        if (row["graph"], row["device"], row["model"]) == (graph, device, model) and row[column]
    ]
    if not rows:
        return ""
    memory = f", {three_digits(float(rows[-1]['peak_gb']))} GB" if column == "epoch_s" else ""
    return f"{spread_text(rows[-1], column)} s{memory}"


def training() -> str:
    """Epochs of three layers of 128."""
    lines = [[text, *(trained(graph, device, model, key) for model in MODELS)] for graph, device, key, text in TRAINED]
    return markdown_table(["an epoch", *MODELS.values()], lines)


def captured() -> str:
    """Epochs of `train` on a graph of Pubmed's size, captured and kernel by kernel."""
    lines = [
        [row["case"], spread_text(row, "eager_ms"), spread_text(row, "captured_ms") or "not captured", row["same"]]
        for row in last_rows("capture", "case")
        if row["work"] == "epoch"
    ]
    header = ["network", "kernel by kernel, ms", "captured, ms", "same losses"]
    return markdown_table(header, lines) if lines else ""


def main() -> None:
    for name, text in tables().items():
        write_rows(PAGE, text, name)
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
