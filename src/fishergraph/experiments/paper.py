"""The paper's Table 1: mean and deviation of the test accuracy over ten runs, in percent. The only figures typed here.

`taken` are those that the paper itself takes from others (its asterisk). A dash is a cell that is not in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

RUNS = 10  # that a mean and a deviation of the paper come from


class Published(NamedTuple):
    """A cell of the paper's table."""

    mean: float
    std: float | None = None
    taken: bool = False


COLUMNS = ("cora", "citeseer", "pubmed", "reddit", "ogbn-arxiv", "ogbn-products")

_ROWS = {
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


def _parse(text: str) -> Published | None:
    """A cell as it is printed, or None for a dash."""
    if text == "-":
        return None
    mean, _, std = text.rstrip("*").partition("±")
    return Published(float(mean), float(std) if std else None, text.endswith("*"))


TABLE1: dict[str, dict[str, Published]] = {
    method: {name: cell for name, text in zip(COLUMNS, row.split(), strict=True) if (cell := _parse(text))}
    for method, row in _ROWS.items()
}
