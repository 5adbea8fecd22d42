"""Table 1 from its rows: ours, the paper's, the difference and whether it is significant; Markdown, LaTeX, CSV.

The test is Welch's t, two-sided: our final runs against the mean and deviation of the paper's ten. It is made where the
paper gives a deviation of its own runs, and not where both deviations are zero. A mark stands where p < 0.05: ▲ ours is
higher, ▼ lower. Both deviations are those of seeds on one split, so a mark says nothing of other splits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph.experiments.paper import RUNS, TABLE1, Published
from fishergraph.experiments.plan import Column, Rows
from fishergraph.experiments.specs import DATASETS, SPECS, Spec

LEVEL = 0.05
TITLES = {
    "cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed", "reddit": "Reddit", "ogbn-arxiv": "ogbn-arxiv",
    "ogbn-products": "ogbn-products", "ogbn_arxiv_sub18k": "ogbn-arxiv, 18k sample",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A cell of the table: accuracies in percent over the final runs, the chosen point, and what a run took."""

    column: Column
    runs: int
    mean: float
    std: float
    val: float
    chosen: Mapping[str, Any]
    seconds: float  # median of a final run
    peak_mb: float | None

    @property
    def paper(self) -> Published | None:
        """The paper's cell, where it has one; a quick run is not compared with it."""
        spec = self.column.spec
        return None if self.column.quick else TABLE1.get(spec.paper or spec.method, {}).get(self.column.dataset)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in points."""
        return self.mean - self.paper.mean if self.paper else None

    @property
    def p_value(self) -> float | None:
        """Of Welch's t-test against the paper's runs; None where it cannot be made."""
        paper = self.paper
        if paper is None or paper.taken or paper.std is None or self.runs < 2 or self.std + paper.std == 0:
            return None
        from scipy.stats import ttest_ind_from_stats

        test = ttest_ind_from_stats(
            self.mean, self.std, self.runs, paper.mean, paper.std, RUNS, equal_var=False
        )  # fmt: skip
        return float(test.pvalue)

    @property
    def mark(self) -> str:
        """▲ or ▼ where the difference is significant."""
        if self.p_value is None or self.p_value >= LEVEL:
            return ""
        return "▲" if (self.difference or 0) > 0 else "▼"


def table_entries(columns: Sequence[Column], rows: Rows) -> list[Entry]:
    """The cells whose final runs are all there, in the order of the table."""
    found = []
    for column in columns:
        final = column.final(rows)
        if final is None:
            continue
        own = [rows[cell.key] for cell in final.cells[0]]
        test, val = (100 * np.array([row["values"][name] for row in own]) for name in ("test", "val"))
        peaks = [row["peak_mb"] for row in own if row.get("peak_mb")]
        found.append(
            Entry(
                column, len(own), float(test.mean()), float(test.std(ddof=1)) if len(own) > 1 else 0.0,
                float(val.mean()), final.points[0], float(np.median([row["seconds"] for row in own])),
                max(peaks, default=None),
            )
        )  # fmt: skip
    order, width = list(SPECS), list(DATASETS)
    return sorted(found, key=lambda e: (order.index(e.column.spec.method), width.index(e.column.dataset)))


def _grid(entries: Sequence[Entry]) -> tuple[list[Spec], list[str], dict[tuple[str, str], Entry]]:
    """The methods and graphs that occur, in order, and the entries by both."""
    specs = {entry.column.spec.method: entry.column.spec for entry in entries}
    datasets = [name for name in DATASETS if any(entry.column.dataset == name for entry in entries)]
    return list(specs.values()), datasets, {(e.column.spec.method, e.column.dataset): e for e in entries}


def _ours(entry: Entry | None) -> str:
    return f"{entry.mean:.2f} ± {entry.std:.2f}" if entry else "–"


def _theirs(paper: Published | None) -> str:
    if paper is None:
        return "–"
    std = "" if paper.std is None else f" ± {paper.std:.2f}"
    return f"{paper.mean:.2f}{std}{'*' if paper.taken else ''}"


def _gap(entry: Entry | None) -> str:
    return "–" if entry is None or entry.difference is None else f"{entry.difference:+.2f}{entry.mark}"


NOTE = (
    "Test accuracy in percent, mean ± deviation over the seeds, settings chosen on validation nodes. Δ: ours minus the "
    f"paper's, in points; ▲ ▼: p < {LEVEL:g} in Welch's t-test, two-sided, against the paper's mean and deviation of "
    f"{RUNS} runs. *: the paper took the number from others, and it is not tested."
)


QUICK_NOTE = (
    "A quick run: a corner of the settings, short trainings, two seeds. It shows that everything runs; its test "
    "accuracies, in percent, are no results, and are not compared with the paper's."
)


def _compared(entries: Sequence[Entry]) -> bool:
    """Whether the table has the paper's numbers beside ours."""
    return not any(entry.column.quick for entry in entries)


def _texts(entry: Entry | None, compared: bool) -> list[str]:
    """What stands in the table for a method on a graph."""
    return [_ours(entry), _theirs(entry.paper if entry else None), _gap(entry)] if compared else [_ours(entry)]


def markdown(entries: Sequence[Entry]) -> str:
    """The table, and below it what was chosen, in Markdown."""
    specs, datasets, cells = _grid(entries)
    compared = _compared(entries)
    head = [f"{TITLES[name]} {what}" for name in datasets for what in (_HEAD if compared else _HEAD[:1])]
    lines = [["method", *head], ["---", *["---:"] * len(head)]]
    for spec in specs:
        found = [cells.get((spec.method, name)) for name in datasets]
        lines.append([spec.title, *(text for e in found for text in _texts(e, compared))])
    chosen = [["method", "graph", "chosen", "validation", "runs", "seconds", "peak MB"]]
    chosen.append(["---", "---", "---", *["---:"] * 4])
    for e in entries:
        numbers = f"{e.val:.2f}", str(e.runs), f"{e.seconds:.2f}", f"{e.peak_mb:.0f}" if e.peak_mb else "–"
        chosen.append([e.column.spec.title, TITLES[e.column.dataset], _point(e.chosen), *numbers])
    return "\n".join([*map(_line, lines), "", NOTE if compared else QUICK_NOTE, "", *map(_line, chosen), ""])


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _point(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items()) or "no search"


_HEAD = ("ours", "paper", "Δ")
_MATH = {
    "Δ": r"$\Delta$", "▲": r"$^\blacktriangle$", "▼": r"$^\blacktriangledown$", "²": "$^2$", "±": r"$\pm$", "–": "--",
    "*": "$^*$",
}  # fmt: skip


def latex(entries: Sequence[Entry]) -> str:
    """The table as a `tabular` with booktabs rules; the symbols of marks need amssymb."""
    specs, datasets, cells = _grid(entries)
    compared = _compared(entries)
    width = len(_HEAD) if compared else 1
    groups = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{_tex(TITLES[name])}}}" for name in datasets)
    names = "".join(f" & {_tex(what)}" for what in _HEAD[:width]) * len(datasets)
    lines = [
        rf"\begin{{tabular}}{{l{'r' * width * len(datasets)}}}\toprule", rf" & {groups} \\",
        rf"Method{names} \\ \midrule",
    ]  # fmt: skip
    before = specs[0].supervised if specs else False
    for spec in specs:
        lines += [r"\midrule"] if spec.supervised != before else []
        before = spec.supervised
        found = [cells.get((spec.method, name)) for name in datasets]
        texts = [text for e in found for text in _texts(e, compared)]
        lines.append(rf"{' & '.join(map(_tex, [spec.title, *texts]))} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {NOTE if compared else QUICK_NOTE}", ""])


def _tex(text: str) -> str:
    return "".join(_MATH.get(letter, "\\_" if letter == "_" else letter) for letter in text)


def table_csv(entries: Sequence[Entry]) -> str:
    """A line per cell, in full precision."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(_record(entries[0])) if entries else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_record, entries))
    return out.getvalue()


def _record(e: Entry) -> dict[str, Any]:
    paper = e.paper._asdict() if e.paper else dict.fromkeys(Published._fields, "")
    return {
        "method": e.column.spec.method, "dataset": e.column.dataset, "runs": e.runs, "mean": e.mean, "std": e.std,
        "validation": e.val, **{f"paper_{name}": value for name, value in paper.items()}, "difference": e.difference,
        "p_value": e.p_value, "significant": bool(e.mark), "chosen": _point(e.chosen), "seconds": e.seconds,
        "peak_mb": e.peak_mb,
    }  # fmt: skip


FORMATS: dict[str, Callable[[Sequence[Entry]], str]] = {".md": markdown, ".tex": latex, ".csv": table_csv}
