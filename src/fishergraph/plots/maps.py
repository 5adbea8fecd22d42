"""`embedding_map`: the rows of an embedding as points in the plane, coloured by classes, numbers or dates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._arrays import is_table
from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._progress import Verbose
from fishergraph._typing import MatrixLike
from fishergraph._validation import check_flag, check_integer, check_number, look_up
from fishergraph.plots.colours import ClassColours, ScaleColours, colour_map
from fishergraph.plots.columns import Classes, Names, as_classes, as_column, by_ids
from fishergraph.plots.figures import axes_of, lay_out
from fishergraph.plots.projection import check_embedding, check_method, matrix_and_ids, project
from fishergraph.plots.style import COLUMN, INK, draw_title, legend_columns, point_area, text_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The most rows that a method projects by default; of more some are drawn at random.
_SAMPLE = {"tsne": 20_000, "umap": 50_000}
_SCALES = {"linear": "linear", "log": "log"}
_POINTS, _LINE = 2.9, 0.16  # inches of the points in a new figure, and of a line of its legend


def embedding_map(
    Z: MatrixLike,
    *,
    labels: Any = None,
    colour: Any = None,
    names: Names = None,
    missing: Any = None,
    method: str = "tsne",
    sample: int | None = None,
    max_classes: int = 16,
    scale: str = "linear",
    cmap: Any = "viridis",
    size: float | None = None,
    title: str = "",
    legend: bool = True,
    legend_title: str = "",
    ax: Axes | None = None,
    random_state: int | None = 0,
    verbose: Verbose = False,
) -> Axes:
    """Draw the rows of an embedding as points in the plane.

    Parameters
    ----------
    Z : matrix of shape (n, n_columns)
        An embedding, or coordinates if it has two columns. The index of a DataFrame has the ids of its rows, and so
        have what `read_embedding` returns and the embedding of a store.
    labels : sequence of length n, optional
        The class of each row: integers, texts, booleans or a categorical column. −1 is no class, unless −1 and 1 are
        the only labels. If the rows have ids, a dictionary or a Series with these ids may have any order.
    colour : sequence of length n, optional
        A number or a date for each row, also as text, which a scale of colours shows. Other texts, booleans and
        categories are classes.
    names : sequence or mapping of str, optional
        ``names[label]`` is the name of a class in the legend.
    missing : value or list of values, optional
        What stands for no class or no number, instead of −1. Such rows, and those with None, NaN or an empty text, are
        grey. With ``missing=()``, −1 is a class.
    method : {"tsne", "pca", "umap"}, default="tsne"
        How rows become points; see `project`. Coordinates stay as they are.
    sample : int, optional
        Draw at most so many rows, chosen at random; the picture says so. By default 20,000 for t-SNE, 50,000 for UMAP,
        and all rows otherwise.
    max_classes : int, default=16
        The most marks of classes in the legend. If there are more classes, the smallest are "other".
    scale : {"linear", "log"}, default="linear"
        The scale of colours. If few numbers lie far from the others, it ends before them, and its end is an arrow.
    cmap : str or matplotlib.colors.Colormap, default="viridis"
        The colours of numbers and dates.
    size : float, optional
        The area of a point in points², by default one that fits their number.
    title : str, default=''
        A line above the points.
    legend : bool, default=True
        Whether a legend, or a bar of colours, explains the colours.
    legend_title : str, default=''
        A line above the legend, or beside the bar; by default the name of `colour`, if it is a column with a name.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure, 3.4 inches wide.
    random_state : int or None, default=0
        Seed of the sample and of the projection.
    verbose : bool or callable, default=False
        Show a progress bar; see `FisherEmbedding`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. ``ax.figure.savefig("map.pdf")`` saves them; more than 5,000 points are an image in it.

    See Also
    --------
    project : The coordinates alone, to draw them several times.

    Examples
    --------
    >>> from fishergraph.plots import embedding_map
    >>> ax = embedding_map([[0, 0], [1, 0], [0, 1]], labels=["a", "b", None], title="three points")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b', 'no label']
    """
    require("matplotlib", extra="plots")
    look = {"max_classes": max_classes, "scale": scale, "cmap": cmap}
    for name, value in {**look, "method": method, "sample": sample, "size": size, "legend": legend}.items():
        check_option(name, value)
    matrix, ids = matrix_and_ids(Z)
    if is_table(matrix) or not hasattr(matrix, "slices"):  # a stored embedding is read by rows
        matrix = check_embedding(matrix)
    n_rows, is_flat = matrix.shape[0], matrix.shape[1] == 2
    given = {"labels": labels, "colour": colour}
    given = {name: by_ids(values, ids, name) for name, values in given.items() if values is not None}
    colours = _colours(n_rows, given, {"names": names, "missing": missing}, **look)
    rows = _sampled_rows(n_rows, sample, "" if is_flat else method, random_state)
    ax = axes_of(ax, height=_height(colours, legend))
    drawn = matrix if rows is None else matrix[rows]
    colours = colours if rows is None else colours.take(rows)
    points = check_embedding(drawn) if is_flat else project(drawn, method, random_state=random_state, verbose=verbose)
    _frame(ax, title, "" if rows is None else f"{len(rows):,} of {n_rows:,} rows, at random")
    colours.draw(ax, points, point_area(ax, len(points)) if size is None else size)
    if legend:
        colours.explain(ax, legend_title or str(getattr(colour, "name", None) or ""))
    lay_out(ax)
    return ax


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "method": check_method,
    "sample": lambda sample: sample is None or check_integer(sample, "sample", least=1),
    "max_classes": lambda most: check_integer(most, "max_classes", least=2),
    "scale": lambda scale: look_up(_SCALES, scale, "scale"),
    "cmap": colour_map,
    "size": lambda size: size is None or check_number(size, "size", strict=True),
    "legend": lambda legend: check_flag(legend, "legend"),
}


def check_option(name: str, value: Any) -> None:
    """Raise unless an option of `embedding_map` can have the value."""
    _CHECKS[name](value)


def _colours(
    n_rows: int, given: dict[str, Any], reading: dict[str, Any], *, max_classes: int, scale: str, cmap: Any
) -> ClassColours | ScaleColours:
    """How the points are coloured, validated."""
    if len(given) > 1:
        advice = "draw two maps, with the coordinates of project"
        raise InputError(parameter="labels and colour", expected="not both be given", got="both", advice=advice)
    if not given:
        return ClassColours.alike(n_rows)
    ((name, values),) = given.items()
    read = (as_classes if name == "labels" else as_column)(values, n_rows, name, **reading)
    if isinstance(read, Classes):
        return ClassColours.of(read, max_classes)
    return ScaleColours(read, scale, colour_map(cmap))


def _sampled_rows(n_rows: int, sample: int | None, method: str, random_state: int | None) -> np.ndarray | None:
    """The rows to draw, ascending, or None for all."""
    most = _SAMPLE.get(method, n_rows) if sample is None else sample
    if n_rows <= most:
        return None
    return np.sort(np.random.default_rng(random_state).choice(n_rows, most, replace=False))


def _height(colours: ClassColours | ScaleColours, legend: bool) -> float:
    """The height of a new figure, in inches."""
    marks = colours.marks if legend else []
    return _POINTS + (_LINE * -(-len(marks) // legend_columns(marks, COLUMN, 7.5)) if marks else 0)


def _frame(ax: Any, title: str, note: str) -> None:
    """Axes of equal scales without ticks, because the coordinates have no meaning of their own."""
    ax.set_aspect("equal", adjustable="box")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.margins(0.02)
    size = text_size(ax)
    draw_title(ax, title, pad=6 + (1.1 * size if note else 0))
    if note:
        ax.text(0, 1, note, transform=ax.transAxes, va="bottom", fontsize=0.9 * size, color=INK)
