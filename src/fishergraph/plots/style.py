"""What all figures share: colours, sizes, and how a file is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fishergraph._optional import require
from fishergraph.io.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's eight colours; yellow, the faintest on white, comes last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
INK = "#333333"
SIZE = (8.0, 5.6)  # inches, legend included
PAD = 0.15  # inches
DPI = 160


def new_figure(size: tuple[float, float] = SIZE, pad: float = PAD, dpi: int = DPI) -> Figure:
    """An empty figure of that size in inches, made without pyplot."""
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=pad, h_pad=pad)
    return Figure(figsize=size, dpi=dpi, layout=layout, facecolor="white")


def save(figure: Figure, path: Path) -> None:
    """Write the figure in the format of the suffix; the file appears whole or not at all."""
    with replacing(path) as part:
        figure.savefig(part, format=path.suffix.lstrip(".").lower() or "png")
