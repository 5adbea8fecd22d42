"""Axes that a notebook shows as a picture. This module imports Matplotlib; it is imported when a figure is made."""

from __future__ import annotations

from io import BytesIO

from matplotlib.axes import Axes

from fishergraph.plots.style import root_figure


class ShownAxes(Axes):
    """Axes whose figure pyplot does not know. As the last line of a notebook cell they are shown as a picture."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        root_figure(self).savefig(picture, format="png")
        return picture.getvalue()
