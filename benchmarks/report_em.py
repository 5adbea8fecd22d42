"""The tables and the picture of docs/performance.md, from results/em.csv and device.csv: the last row of each case."""

from __future__ import annotations

from itertools import groupby

from common import HERE, RESULTS, read_rows, require

PAGE = HERE.parent / "docs" / "performance.md"
PICTURE = HERE.parent / "docs" / "images" / "performance.png"
BEGIN, END = "<!-- rows -->\n", "<!-- end of rows -->"


def main() -> None:
    last = {}
    for row in read_rows(RESULTS / "em.csv"):
        last[row["device"], row["graph"], row["layer"]] = row
    rows = [row for row in last.values() if row["forward_ms"]]
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text(head + BEGIN + layer_tables(rows) + estimator_table() + END + tail, encoding="utf-8")
    draw([row for row in rows if row["graph"] == "arxiv"])
    print(f"wrote {PAGE} and {PICTURE}")


def layer_tables(rows: list[dict[str, str]]) -> str:
    """One table per device and graph."""
    parts = []
    for (device, graph), group in groupby(rows, key=lambda row: (row["device"], row["graph"])):
        lines = list(group)
        where = "CPU, 2 threads" if device == "cpu" else device
        title = f"**{where}, {graph}, d = {lines[0]['dim']}, p = {lines[0]['anchors']}**"
        cells = [
            f"| {row['layer']} | {number(row['forward_ms'])} | {number(row['both_ms'])} | {number(row['peak_gb'])} |"
            for row in lines
        ]
        header = "| layer | forward, ms | forward + backward, ms | peak, GB |\n|---|---|---|---|"
        parts.append("\n".join([title, "", header, *cells, "", ""]))
    return "".join(parts)


def estimator_table() -> str:
    """`FisherEmbedding` on a GPU."""
    last = {(row["graph"], row["precision"], row["block_mb"]): row for row in read_rows(RESULTS / "device.csv")}
    cells = [
        f"| {graph} | {precision} | {block} | {number(row['fit_transform_s'])} | {number(row['transform_s'])} | "
        f"{number(row['peak_gb'])} |"
        for (graph, precision, block), row in last.items()
    ]
    header = "| graph size | precision | block of φ, MB | fit_transform, s | transform, s | peak, GB |"
    header += "\n|---|---|---|---|---|---|"
    return "\n".join(["**FisherEmbedding on a GPU, 3 layers of 256, p = 8**", "", header, *cells, "", ""])


def number(text: str | None) -> str:
    if text in (None, "", "nan"):
        return ""
    value = float(text)  # type: ignore
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(rows: list[dict[str, str]]) -> None:
    """Forward and forward + backward of every layer on the arxiv graph, on a log scale."""
    plt = require("matplotlib.pyplot")
    devices = list(dict.fromkeys(row["device"] for row in rows))
    figure, axes = plt.subplots(1, len(devices), figsize=(7 * len(devices), 4.2), squeeze=False)
    for ax, device in zip(axes[0], devices, strict=True):
        here = sorted((row for row in rows if row["device"] == device), key=lambda row: -float(row["forward_ms"]))
        for shift, key, label, colour in (
            (0.2, "forward_ms", "forward", "#0072B2"),
            (-0.2, "both_ms", "forward + backward", "#E69F00"),
        ):
            values = [float(row[key] or "nan") for row in here]
            ax.barh([n + shift for n in range(len(here))], values, 0.4, label=label, color=colour)
        ax.set_yticks(range(len(here)), [row["layer"] for row in here], fontsize=7)
        ax.set_xscale("log")
        ax.set_xlabel("milliseconds")
        where = "CPU, 2 threads" if device == "cpu" else device
        ax.set_title(f"{where}: arxiv graph, d = {here[0]['dim']}, p = {here[0]['anchors']}", fontsize=10)
        ax.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
