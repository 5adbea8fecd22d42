"""How points are coloured: alike, by classes, or by numbers and dates on a scale; and what explains the colours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError
from fishergraph._repr import short_repr
from fishergraph.plots.columns import Classes, Values
from fishergraph.plots.style import (
    INK,
    MISSING,
    OTHER,
    colour_of,
    draw_legend,
    literal,
    log_ticks,
    marker_of,
    root_figure,
    text_size,
)

RASTERISED = 5_000  # points from which a vector file has an image of them: it would open slowly
_ROUNDS = 8  # in which classes of different markers are drawn in turn, so that none covers all others
_OUTLYING = 3.0  # a range so many times that of the middle 98 % is cut to that
_ENDS = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}


class Look(NamedTuple):
    """The name of a class in the legend, its colour and its marker."""

    name: str
    colour: str
    marker: str = "o"


def dots(ax: Any, points: np.ndarray, area: float, n_points: int, **look: Any) -> Any:
    """Points of one marker; `n_points` are those of the whole picture."""
    alpha = 0.8 if n_points <= RASTERISED else 0.7
    look = {"alpha": alpha, "linewidths": 0, "rasterized": n_points > RASTERISED, **look}
    drawn = ax.scatter(points[:, 0], points[:, 1], s=area, **look)
    drawn.set_in_layout(False)  # they are inside the axes, and a million of them take long to measure
    return drawn


def _draw_missing(ax: Any, points: np.ndarray, absent: np.ndarray, area: float) -> None:
    """Points without a class or number, beneath the others."""
    if absent.any():
        dots(ax, points[absent], 0.7 * area, len(points), color=MISSING, zorder=0.5)


@dataclass(frozen=True)
class ClassColours:
    """A colour and a marker for each class; without classes all points are alike."""

    classes: Classes
    looks: tuple[Look, ...]

    __repr__ = short_repr

    @classmethod
    def alike(cls, n_points: int) -> ClassColours:
        """Points of one colour, without a legend."""
        return cls(Classes(np.zeros(n_points, dtype=np.int64), [""]), (Look("", colour_of(0)),))

    @classmethod
    def of(cls, classes: Classes, most: int) -> ClassColours:
        """The looks of classes: at most `most`, the last of them grey if it stands for others."""
        kept, n_other = classes.largest(most)
        looks = [Look(name, colour_of(k), marker_of(k)) for k, name in enumerate(kept.names)]
        return cls(kept, (*looks[:-1], Look(looks[-1].name, OTHER)) if n_other else tuple(looks))

    def take(self, rows: np.ndarray) -> ClassColours:
        """Those of some rows."""
        return replace(self, classes=Classes(self.classes.codes[rows], self.classes.names))

    @property
    def marks(self) -> list[Look]:
        """The entries of the legend."""
        named = [look for look in self.looks if look.name]
        return [*named, *([Look("no label", MISSING)] if (self.classes.codes < 0).any() else [])]

    def draw(self, ax: Any, points: np.ndarray, area: float) -> None:
        """Draw points in random order, so that no class covers all others."""
        codes = self.classes.codes
        _draw_missing(ax, points, codes < 0, area)
        colours, markers = (np.array([look[k] for look in self.looks]) for k in (1, 2))
        order = np.random.default_rng(0).permutation(np.flatnonzero(codes >= 0))
        groups = list(dict.fromkeys(markers.tolist()))
        for part in np.array_split(order, _ROUNDS if len(groups) > 1 and len(order) > 1_000 else 1):
            for marker in groups:
                rows = part[markers[codes[part]] == marker]
                if len(rows):
                    dots(ax, points[rows], area, len(points), c=colours[codes[rows]], marker=marker)

    def explain(self, ax: Any, title: str) -> None:
        """Draw the legend."""
        if self.marks:
            draw_legend(ax, self.marks, title)


@dataclass(frozen=True)
class ScaleColours:
    """Colours of numbers or dates on a linear or logarithmic scale."""

    values: Values
    scale: str
    cmap: Any

    __repr__ = short_repr

    def take(self, rows: np.ndarray) -> ScaleColours:
        """Those of some rows."""
        return replace(self, values=Values(self.values.numbers[rows], self.values.dates))

    @property
    def marks(self) -> list[Look]:
        """The entries of the legend, which the bar leaves out."""
        return [Look("no value", MISSING)] if np.isnan(self.values.numbers).any() else []

    @cached_property
    def _norm_and_ends(self) -> tuple[Any, str]:
        """The scale, and which of its ends numbers lie beyond."""
        from matplotlib.colors import LogNorm, Normalize

        numbers, log = self.values.numbers[~np.isnan(self.values.numbers)], self.scale == "log"
        usable = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
        if log and len(numbers) and not len(usable):
            expected, got = "hold positive numbers for scale='log'", f"none above {numbers.max():g}"
            raise InputError(parameter="colour", expected=expected, got=got)
        low, high = (usable.min(), usable.max()) if len(usable) else (1.0, 1.0)
        if len(usable) and not log:
            inner = np.percentile(usable, [1, 99])
            if high - low > _OUTLYING * (inner[1] - inner[0]) > 0:
                low, high = inner
        ends = _ENDS[bool((numbers < low).any()), bool((numbers > high).any())]
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
        return (LogNorm if log else Normalize)(float(low), float(high)), ends

    def draw(self, ax: Any, points: np.ndarray, area: float) -> None:
        """Draw points in random order; numbers beyond an end of the scale have its colour."""
        norm, _ = self._norm_and_ends
        numbers = self.values.numbers
        _draw_missing(ax, points, np.isnan(numbers), area)
        rows = np.random.default_rng(0).permutation(np.flatnonzero(~np.isnan(numbers)))
        shades = np.clip(numbers[rows], norm.vmin, norm.vmax)
        dots(ax, points[rows], area, len(points), c=shades, cmap=self.cmap, norm=norm)

    def explain(self, ax: Any, title: str) -> None:
        """Draw the bar of colours."""
        from matplotlib.cm import ScalarMappable

        if self.marks:
            draw_legend(ax, self.marks, "")
        if np.isnan(self.values.numbers).all():
            return
        norm, ends = self._norm_and_ends
        size, shape = text_size(ax), {"shrink": 0.7, "aspect": 22, "pad": 0.02}
        bar = root_figure(ax).colorbar(ScalarMappable(norm, self.cmap), ax=ax, extend=ends, **shape)
        bar.outline.set_visible(False)
        _set_ticks(bar.ax.yaxis, self.values, norm, size)
        bar.ax.tick_params(which="both", labelsize=size, colors=INK, length=2.5)
        bar.set_label(literal(title), fontsize=size, color=INK)


def _set_ticks(axis: Any, values: Values, norm: Any, size: float) -> None:
    """Ticks of a bar: dates, integers, or plain numbers."""
    from matplotlib.colors import LogNorm
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    if values.dates:
        locator = AutoDateLocator(minticks=3, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
        axis.get_offset_text().set(size=size, color=INK)
    elif isinstance(norm, LogNorm):
        log_ticks(axis, *axis.get_view_interval())
    else:
        present = values.numbers[np.isfinite(values.numbers)]
        axis.set_major_locator(MaxNLocator(5, integer=bool((present % 1 == 0).all())))


def colour_map(cmap: Any) -> Any:
    """A colour map, or the one of that name."""
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    if isinstance(cmap, Colormap):
        return cmap
    if not isinstance(cmap, str) or cmap not in colormaps:
        expected = "be a colour map of Matplotlib or its name, such as 'viridis' or 'cividis'"
        raise InputError(parameter="cmap", value=cmap, expected=expected)
    return colormaps[cmap]
