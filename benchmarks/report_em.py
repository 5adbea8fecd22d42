"""The tables of layers and the picture of docs/performance.md, from results/em.csv, device.csv and dropin.csv.

The last row of each case counts. Rows of the CPU without a spread are medians of single runs: all of them count then,
and the table has their median, the least and the most.
"""

from __future__ import annotations

from typing import Any

from common import (
    HERE,
    RESULTS,
    last_rows,
    markdown_table,
    read_rows,
    require,
    spread,
    spread_text,
    three_digits,
    write_rows,
)

PAGE = HERE.parent / "docs" / "performance.md"
MEASURED = ("forward_ms", "both_ms")
PICTURE = HERE.parent / "docs" / "images" / "performance.png"


def main() -> None:
    rows = measured_layers()
    for name, text in tables().items():
        write_rows(PAGE, text, name)
    draw([row for row in rows if row["graph"] == "arxiv"])
    print(f"wrote {PAGE} and {PICTURE}")


def tables() -> dict[str, str]:
    """The text of every section, by its name."""
    return {"": layer_tables(measured_layers()) + estimator_table(), "dropin": dropin_table()}


def measured_layers() -> list[dict[str, Any]]:
    """The last row of every device, graph and layer; of the CPU without a spread, one row of all runs."""
    runs: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in read_rows(RESULTS / "em.csv"):
        if row["forward_ms"]:
            runs.setdefault((row["device"], row["graph"], row["layer"]), []).append(row)
    return [row[-1] if key[0] != "cpu" or row[-1]["runs"] else of_runs(row) for key, row in runs.items()]


def of_runs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The last of these rows with the medians and the spread of all."""
    times = {name: [float(row[name]) for row in rows if row[name] not in ("", "nan")] for name in MEASURED}
    return rows[-1] | {
        key: value for name, found in times.items() if found for key, value in spread(found, name).items()
    }


def layer_tables(rows: list[dict[str, Any]]) -> str:
    """One table per device and graph."""
    parts = []
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["device"], row["graph"]), []).append(row)
    for (device, graph), lines in groups.items():
        newest = max(row["date"] for row in lines)
        where = "CPU, 2 threads" if device == "cpu" else device
        title = f"**{where}, {graph}, d = {lines[0]['dim']}, p = {lines[0]['anchors']}**"
        cells = [layer_cells(row, earlier=row["date"] != newest) for row in lines]
        header = ["layer", "forward, ms", "forward + backward, ms", "peak, GB", "moved, GB", "of the bandwidth"]
        parts.append(f"{title}\n\n{markdown_table(header, cells)}\n")
    return "".join(parts)


def layer_cells(row: dict[str, Any], *, earlier: bool) -> list[str]:
    """A line of a table; † marks an earlier run than that of the others."""
    times = [spread_text(row, name) for name in MEASURED]
    moved = " / ".join(text for text in (number(row.get(name)) for name in ("forward_gb", "both_gb")) if text)
    shares = [row.get(name) for name in ("forward_share", "both_share")]
    share = " / ".join(f"{float(value):.0%}" for value in shares if value not in (None, "", "nan"))
    return [row["layer"] + " †" * earlier, *times, number(row["peak_gb"]), moved, share]


def dropin_table() -> str:
    """A step and an explanation on Cora, in the place of GATConv."""
    cells = [
        [row["work"], row["layer"], spread_text(row, "wall_ms"), spread_text(row, "cpu_ms"), number(row["load"])]
        for row in last_rows("dropin", "work", "layer")
    ]
    return markdown_table(["work", "layer", "on the clock, ms", "of the processors, ms", "load"], cells)


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
    return "" if text in (None, "", "nan") else three_digits(float(text))  # type: ignore


def draw(rows: list[dict[str, Any]]) -> None:
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
