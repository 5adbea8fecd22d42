"""Figures and axes without pyplot: no window opens, and no backend is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph._errors import InputTypeError
from fishergraph._optional import require
from fishergraph.io.files import replacing
from fishergraph.plots.style import COLUMN, WIDE, root_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
_DPI, _LAYOUTS = 200, 3


def new_figure(size: tuple[float, float], pad: float | None = None, dpi: int = _DPI) -> Figure:
    """An empty figure; size and padding are in inches."""
    pad = (0.04 if size[0] < WIDE else 0.15) if pad is None else pad
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=size, dpi=dpi, layout=ConstrainedLayoutEngine(w_pad=pad, h_pad=pad), facecolor="white")


def axes_of(ax: Axes | None, *, width: float = COLUMN, height: float = 2.4) -> Axes:
    """The axes to draw on: those of the caller, or new ones in a figure of this size in inches."""
    return new_axes(1, 1, width=width, height=height)[0] if ax is None else check_axes(ax)


def new_axes(n_rows: int, n_columns: int, *, width: float = COLUMN, height: float = 2.4) -> list[Axes]:
    """Axes in a new figure, row by row. A notebook shows their figure."""
    figure = new_figure((width, height))
    from fishergraph.plots.shown import ShownAxes

    return list(figure.subplots(n_rows, n_columns, squeeze=False, subplot_kw={"axes_class": ShownAxes}).ravel())


def check_axes(ax: Any) -> Axes:
    """The axes, which are Matplotlib's."""
    require("matplotlib", extra="plots")
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        got, advice = type(ax).__name__, "pass one of figure.subplots(), or None for a new figure"
        raise InputTypeError(parameter="ax", value=ax, expected="be Matplotlib axes", got=got, advice=advice)
    return ax


def lay_out(ax: Any) -> None:
    """Lay the figure out before it is drawn: axes of a fixed aspect are in their place after a few times."""
    figure = root_figure(ax)
    engine = figure.get_layout_engine()
    if engine is not None:
        for _ in range(_LAYOUTS):
            engine.execute(figure)


def save(figure: Any, path: str | Path, *, dpi: int | None = None) -> None:
    """Write a figure in the format of its suffix, PNG without one; the file appears complete or not at all."""
    with replacing(Path(path)) as temporary:
        figure.savefig(temporary, format=Path(path).suffix.lstrip(".").lower() or "png", dpi=dpi or figure.dpi)
