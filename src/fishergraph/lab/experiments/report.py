"""Table 1 from its rows, beside the paper's numbers, as Markdown, LaTeX and CSV; and the records of Figure 4.

The test is Welch's t, two-sided: our final runs against the mean and deviation of the paper's ten. It is made if the
paper gives a deviation of its own runs and the deviations are not both zero. A mark means p < 0.05: ▲ ours is higher, ▼
lower. Both deviations are over seeds on one split, so a mark says nothing about other splits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fishergraph.lab.experiments.plan import COMPONENTS, Column, Rows
from fishergraph.lab.experiments.specs import COLUMNS, DATASETS, SPECS, Settings, Spec
from fishergraph.lab.studies.study import band

LEVEL = 0.05
TITLES = {name: name if name.startswith("ogbn") else name.capitalize() for name in DATASETS}
TITLES["ogbn_arxiv_sub18k"] = "ogbn-arxiv, 18k sample"


# --- the paper's table ------------------------------------------------------------------------------------

PAPER_RUNS = 10  # behind each mean and deviation

# Mean and deviation of the test accuracy in percent. No other number of a report is typed. An asterisk marks what the
# paper took from others; a dash is a cell that the paper does not have.
_PAPER = {
    "wwl": "76.60±0.00 66.60±0.00 78.70±0.00 96.13±0.04 64.67±0.08 62.53±0.11",
    "node2vec": "73.55±0.07 54.01±1.16 71.22±1.04 95.58±0.08 70.67±0.09 74.77±0.14",
    "fie": "82.36±0.28 72.02±1.34 79.22±0.17 96.61±0.02 72.17±0.07 79.24±0.11",
    "mlp": "55.1* 46.5* 71.4* - 55.50±0.23* 61.06±0.08*",
    "label-propagation": "68.0* 45.3* 63.0* - 68.32±0.00* 74.34±0.00*",
    "gcn": "81.4±0.50* 70.9±0.50* 79.0±0.3* - 71.74±0.29* 78.97±0.33*",
    "sage": "- - - 94.32* 71.49±0.27* 78.70±0.36*",
    "gat": "81.59±0.67 70.08±0.58 79.14±0.92 96.37±0.18 71.59±0.38* 79.04±1.54*",
    "gatv2": "82.04±0.82 69.72±1.03 75.66±0.93 96.58±0.01 71.87±0.25* 80.63±0.70*",
    "fie-supervised": "81.79±0.99 72.51±0.34 78.35±0.26 96.25±0.06 72.39±0.21 79.25±0.25",
}


class Published(NamedTuple):
    """A cell of the paper's table; `taken` if the paper took it from others."""

    mean: float
    std: float | None = None
    taken: bool = False


def _parse(text: str) -> Published:
    mean, _, std = text.rstrip("*").partition("±")
    return Published(float(mean), float(std) if std else None, text.endswith("*"))


TABLE1: dict[str, dict[str, Published]] = {
    method: {name: _parse(text) for name, text in zip(COLUMNS, line.split(), strict=True) if text != "-"}
    for method, line in _PAPER.items()
}


# --- the entries ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A cell of our table: accuracies in percent over the final runs, the chosen point, and the cost of a run."""

    column: Column
    runs: int
    mean: float
    std: float
    val: float
    chosen: Settings
    seconds: float
    peak_mb: float | None

    @property
    def paper(self) -> Published | None:
        """The paper's cell; None for a quick run, which is not compared."""
        spec = self.column.spec
        return None if self.column.quick else TABLE1.get(spec.paper or spec.method, {}).get(self.column.dataset)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in points."""
        return self.mean - self.paper.mean if self.paper else None

    @property
    def p_value(self) -> float | None:
        """Of Welch's t-test against the paper's runs; None if the test is not made."""
        paper = self.paper
        if paper is None or paper.taken or paper.std is None or self.runs < 2 or self.std + paper.std == 0:
            return None
        from scipy.stats import ttest_ind_from_stats

        ours, theirs = (self.mean, self.std, self.runs), (paper.mean, paper.std, PAPER_RUNS)
        return float(ttest_ind_from_stats(*ours, *theirs, equal_var=False).pvalue)

    @property
    def mark(self) -> str:
        """▲ or ▼ if the difference is significant."""
        if self.p_value is None or self.p_value >= LEVEL:
            return ""
        return "▲" if (self.difference or 0) > 0 else "▼"


def table_entries(columns: Sequence[Column], rows: Rows) -> list[Entry]:
    """The entries of the columns whose final runs are complete, in the order of the table."""
    entries = [_entry(column, rows) for column in columns if column.final(rows)]
    methods, graphs = list(SPECS), list(DATASETS)
    return sorted(entries, key=lambda e: (methods.index(e.column.spec.method), graphs.index(e.column.dataset)))


def _entry(column: Column, rows: Rows) -> Entry:
    final: Any = column.final(rows)
    runs = [rows[cell.key] for cell in final.cells[0]]
    test, val = (100 * np.array(final.values(0, rows, name)) for name in ("test", "val"))
    return Entry(
        column,
        runs=len(runs),
        mean=float(test.mean()),
        std=float(test.std(ddof=1)) if len(runs) > 1 else 0.0,
        val=float(val.mean()),
        chosen=final.points[0],
        seconds=float(np.median([row["seconds"] for row in runs])),
        peak_mb=max((row["peak_mb"] for row in runs if row.get("peak_mb")), default=None),
    )


COMPONENT_METHODS = ("fie", "fie-reference", "fie-supervised")


def component_records(columns: Sequence[Column], rows: Rows) -> list[dict[str, Any]]:
    """The records of Figure 4: a band of validation accuracies in percent for each number of mixture components.

    A record has a graph (study), a method (curve) and a number (value). All other settings are those chosen for Table
    1. Incomplete columns are left out.
    """
    graphs, records = list(DATASETS), []
    for column in sorted(
        columns, key=lambda column: (graphs.index(column.dataset), COMPONENT_METHODS.index(column.spec.method))
    ):
        stage = column.stages(rows)[-1]
        if stage.name != COMPONENTS or stage.missing(rows):
            continue
        for index, point in enumerate(stage.points):
            accuracies = [100 * value for value in stage.values(index, rows, "val")]
            value = point[column.spec.components or ""]
            records.append({"study": column.dataset, "curve": column.spec.method, "value": value, **band(accuracies)})
    return records


# --- the formats ------------------------------------------------------------------------------------------

NOTE = (
    "Test accuracy in percent, mean ± deviation over the seeds, settings chosen on validation nodes. Δ: ours minus the "
    f"paper's, in points; ▲ ▼: p < {LEVEL:g} in Welch's t-test, two-sided, against the paper's mean and deviation of "
    f"{PAPER_RUNS} runs. *: the paper took the number from others, and it is not tested."
)
QUICK_NOTE = (
    "A quick run: a corner of the settings, short trainings, two seeds. It shows that everything runs; its test "
    "accuracies, in percent, are no results, and are not compared with the paper's."
)
_HEAD = ("ours", "paper", "Δ")
_TEX = str.maketrans(
    {"Δ": r"$\Delta$", "▲": r"$^\blacktriangle$", "▼": r"$^\blacktriangledown$", "²": "$^2$", "±": r"$\pm$"}
    | {"–": "--", "*": "$^*$", "_": r"\_"}
)


class _Table:
    """The texts of the table: a line per method, and for each graph one text, or three beside the paper's numbers."""

    def __init__(self, entries: Sequence[Entry]):
        self.specs = list({entry.column.spec.method: entry.column.spec for entry in entries}.values())
        self.datasets = [name for name in DATASETS if any(entry.column.dataset == name for entry in entries)]
        self.cells = {(e.column.spec.method, e.column.dataset): e for e in entries}
        compared = not any(entry.column.quick for entry in entries)
        self.head = _HEAD if compared else _HEAD[:1]
        self.note = NOTE if compared else QUICK_NOTE

    def texts(self, spec: Spec) -> list[str]:
        """The title and the texts of a method."""
        entries = [self.cells.get((spec.method, name)) for name in self.datasets]
        return [spec.title, *(text for entry in entries for text in _texts(entry)[: len(self.head)])]


def _texts(entry: Entry | None) -> tuple[str, str, str]:
    """Ours, the paper's, and the difference."""
    if entry is None:
        return "–", "–", "–"
    ours = f"{entry.mean:.2f} ± {entry.std:.2f}"
    paper = entry.paper
    if paper is None:
        return ours, "–", "–"
    std = "" if paper.std is None else f" ± {paper.std:.2f}"
    return ours, f"{paper.mean:.2f}{std}{'*' if paper.taken else ''}", f"{entry.difference:+.2f}{entry.mark}"


def markdown(entries: Sequence[Entry]) -> str:
    """The table in Markdown, and below it the chosen settings."""
    table = _Table(entries)
    head = [f"{TITLES[name]} {what}" for name in table.datasets for what in table.head]
    lines = [["method", *head], ["---", *["---:"] * len(head)], *(table.texts(spec) for spec in table.specs)]
    chosen = [
        ["method", "graph", "chosen", "validation", "runs", "seconds", "peak MB"],
        ["---", "---", "---", *["---:"] * 4],
    ]
    for e in entries:
        numbers = f"{e.val:.2f}", str(e.runs), f"{e.seconds:.2f}", f"{e.peak_mb:.0f}" if e.peak_mb else "–"
        chosen.append([e.column.spec.title, TITLES[e.column.dataset], _point(e.chosen), *numbers])
    return "\n".join([*map(_markdown_line, lines), "", table.note, "", *map(_markdown_line, chosen), ""])


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _point(point: Settings) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items()) or "no search"


def latex(entries: Sequence[Entry]) -> str:
    """The table as a `tabular` with booktabs rules; the marks need amssymb."""
    table = _Table(entries)
    width = len(table.head)
    graphs = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{TITLES[name].translate(_TEX)}}}" for name in table.datasets)
    head = "".join(f" & {what.translate(_TEX)}" for what in table.head) * len(table.datasets)
    lines = [
        rf"\begin{{tabular}}{{l{'r' * width * len(table.datasets)}}}\toprule",
        rf" & {graphs} \\",
        rf"Method{head} \\ \midrule",
    ]
    before = table.specs[0].supervised if table.specs else False
    for spec in table.specs:
        lines += [r"\midrule"] if spec.supervised != before else []
        before = spec.supervised
        lines.append(rf"{' & '.join(table.texts(spec)).translate(_TEX)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {table.note}", ""])


def table_csv(entries: Sequence[Entry]) -> str:
    """A line per entry, in full precision."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(_record(entries[0])) if entries else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_record, entries))
    return out.getvalue()


def _record(e: Entry) -> dict[str, Any]:
    record = {"method": e.column.spec.method, "dataset": e.column.dataset}
    record |= {"runs": e.runs, "mean": e.mean, "std": e.std, "validation": e.val}
    paper = e.paper._asdict() if e.paper else dict.fromkeys(Published._fields, "")
    record |= {f"paper_{name}": value for name, value in paper.items()}
    record |= {"difference": e.difference, "p_value": e.p_value, "significant": bool(e.mark)}
    return record | {"chosen": _point(e.chosen), "seconds": e.seconds, "peak_mb": e.peak_mb}


FORMATS: dict[str, Callable[[Sequence[Entry]], str]] = {".md": markdown, ".tex": latex, ".csv": table_csv}
