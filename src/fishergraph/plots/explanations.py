"""Explanations as figures: whom a node attends to, why two nodes are alike, what the anchors stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError, InputTypeError
from fishergraph._validation import check_integer, look_up
from fishergraph.plots.figures import axes_of, check_axes, new_axes
from fishergraph.plots.style import (
    INK,
    MISSING,
    OTHER,
    PALETTE,
    colour_of,
    draw_title,
    legend_look,
    literal,
    mark,
    plain_axes,
    shortened,
    text_size,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fishergraph.explain import AnchorDescriptions, Attention, Similarity

_ROW, _EDGE = 0.17, 0.55  # inches of a row, and of the axis above or below the rows
_GAP = 0.35  # rows above the line of an anchor
_LONGEST = 24  # characters of the name of a row
_DARK = 0.6  # a number is white on a shade of more than this share of the darkest


# --- attention --------------------------------------------------------------------------------------------


def attention(
    record: Attention, *, top: int = 12, most_anchors: int = 6, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw whom a node attends to in one layer, anchor by anchor.

    A row is a member of the neighbourhood, the most attended first, and a column an anchor, the heaviest first. A
    number is the attention in percent; those of an anchor sum to 100 over the rows.

    Parameters
    ----------
    record : Attention
        What ``Explainer.explain(v)`` returns.
    top : int, default=12
        The most members with a row of their own; a last row has the attention of the others.
    most_anchors : int, default=6
        The most anchors, the heaviest.
    title : str, default=''
        A line above the rows, by default the node and the layer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; the attention is the array of their image.

    See Also
    --------
    Explainer.explain : Makes the record.
    anchors : What the anchors stand for.

    Examples
    --------
    >>> from fishergraph import Explainer, FisherEmbedding, plots
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(dim=64, structure=None, random_state=0).fit(cora.X, graph=cora.graph)
    >>> explainer = Explainer(model, cora.X, graph=cora.graph, ids=cora.ids)
    >>> ax = plots.attention(explainer.explain(31336))
    >>> ax.images[0].get_array().shape
    (6, 4)
    """
    _check_record(record, ("attention", "members", "mass", "anchors"), "explain(v)")
    for name, value in (("top", top), ("most_anchors", most_anchors)):
        check_integer(value, name, least=1)
    shown = record.anchors[:most_anchors]
    names, values = _attention_rows(record, top)
    values = values[:, shown]
    ax = axes_of(ax, height=_EDGE + _ROW * max(len(names), 1) + 0.15)
    n_own = min(len(names), len(record.members)) - (len(names) < len(record.members))
    _draw_shares(ax, names, values, n_own)
    size, rest = text_size(ax), len(record.anchors) - len(shown)
    heads = [f"{j}\n{record.mass[j]:.2g}" for j in shown.tolist()]
    ax.set_xticks(range(len(heads)), heads, fontsize=size, color=INK)
    beside: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate("anchor\nmass", (0, 1), (-3.5, 3.5), ha="right", fontsize=size, color=INK, **beside)
    below = "attention, %" if names else "no members"
    ax.set_xlabel(below + (f"; {rest} lighter anchors are left out" if rest else ""), fontsize=size, color=INK)
    draw_title(ax, title or f"{shortened(str(record.node), _LONGEST)}, {record.block}")
    return ax


def _draw_shares(ax: Any, names: list[str], values: np.ndarray, n_own: int) -> None:
    """Shares in percent, (row, anchor), shaded; rows after the first `n_own` are sums, and have no shade."""
    shades, darkest, size = np.ma.masked_array(values), values[:n_own].max(initial=0) or 1, text_size(ax)
    shades[n_own:] = np.ma.masked
    if names:
        ax.imshow(shades, cmap=_shades(), vmin=0, vmax=darkest, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if row < n_own and value > _DARK * darkest else INK
        ax.text(column, row, _percent(value), ha="center", va="center", fontsize=size, color=colour)
    ax.set_yticks(range(len(names)), names, fontsize=size, color=INK)
    ax.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)


def _attention_rows(record: Any, top: int) -> tuple[list[str], np.ndarray]:
    """The names of the rows, the most attended first, and the attention (row, anchor)."""
    values = np.asarray(record.attention)
    share = record.mass / record.mass.sum() if np.any(record.mass) else record.mass
    order = np.argsort(-(values @ share), kind="stable")
    top = len(order) if len(order) <= top + 1 else top
    names = [_row_name(member) for member in np.asarray(record.members, dtype=object)[order[:top]].tolist()]
    if len(order) == top:
        return names, values[order]
    return [*names, f"{len(order) - top:,} others"], np.vstack([values[order[:top]], values[order[top:]].sum(axis=0)])


def _percent(value: float) -> str:
    """A share in percent, in two digits."""
    return f"{100 * value:.0f}" if value >= 0.095 else f"{100 * value:.1f}"


def _shades() -> Any:
    """From white to the first colour."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("attention", ["white", PALETTE[0]])


# --- similarity -------------------------------------------------------------------------------------------


class _Bars(NamedTuple):
    """Bars of one panel: their names, values and colours."""

    names: list[str]
    values: np.ndarray
    colours: list[str]

    def and_then(self, other: _Bars) -> _Bars:
        """These bars above other ones."""
        values = np.concatenate([self.values, other.values])
        return _Bars([*self.names, *other.names], values, [*self.colours, *other.colours])


def similarity(
    record: Similarity,
    *,
    parts: Sequence[str] = ("blocks", "members", "columns"),
    top: int = 8,
    title: str = "",
    ax: Any = None,
) -> tuple[Axes, ...]:
    """Draw why two nodes are alike: what their similarity is a sum of.

    Parameters
    ----------
    record : Similarity
        What ``Explainer.explain(v, w)`` returns.
    parts : sequence of str, default=("blocks", "members", "columns")
        A panel for each: "blocks" of the embedding, "members" of the two neighbourhoods, "columns" of X, "nodes" whose
        features are averaged. A part that the record does not have is left out, unless `ax` has axes for it.
    top : int, default=8
        The most bars of a part, the largest; a last one is the sum of the others.
    title : str, default=''
        A line above the panels, by default the nodes and their similarity.
    ax : Axes or sequence of Axes, optional
        Axes to draw on, one for each part; by default those of a new figure.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The axes of the parts. Members of the first node are blue and those of the second are orange.

    See Also
    --------
    Explainer.explain : Makes the record.
    attention : Whom one node attends to.

    Examples
    --------
    >>> from fishergraph import Explainer, FisherEmbedding, plots
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(dim=64, structure=None, random_state=0).fit(cora.X, graph=cora.graph)
    >>> explainer = Explainer(model, cora.X, graph=cora.graph, ids=cora.ids)
    >>> blocks, members, columns = plots.similarity(explainer.explain(31336, 1061127))
    >>> [text.get_text() for text in blocks.get_yticklabels()]
    ['psi0', 'psi1', 'psi2', 'walk', 'smooth']
    """
    _check_record(record, ("blocks", "members", "columns", "nodes"), "explain(v, w)")
    check_integer(top, "top", least=1)
    names = [parts] if isinstance(parts, str) else list(parts)
    bars = {name: look_up(_PARTS, name, "a part")(record, top) for name in names}
    if ax is None:
        bars = {name: drawn for name, drawn in bars.items() if drawn.names}
    axes = _panels(list(bars.values())) if ax is None else [check_axes(each) for each in np.ravel(np.array(ax, object))]
    if len(axes) != len(bars):
        got, advice = f"{len(axes)} for {len(bars)} parts", "pass one for each of parts, or None for a new figure"
        raise InputError(parameter="ax", expected="be axes for each part", got=got, advice=advice)
    for panel, (name, drawn) in zip(axes, bars.items(), strict=True):
        _draw_bars(panel, drawn, name)
    if "members" in bars and bars["members"].names:
        _explain_members(axes[list(bars).index("members")], record)
    kind, ids = "cosine" if record.is_cosine else "similarity", (record.first, record.second)
    pair = " and ".join(shortened(str(node), _LONGEST // 2) for node in ids)
    draw_title(axes[0], title or f"{pair}: {kind} {record.value:.3g}")
    return tuple(axes)


def _blocks(record: Any, top: int) -> _Bars:
    """The value of every block, in their order."""
    names, values = record.blocks["block"].tolist(), record.blocks["value"]
    return _Bars(list(map(_row_name, names)), values, [colour_of(0)] * len(names))


def _columns(record: Any, top: int) -> _Bars:
    return _largest(record.columns["name"], record.columns["value"], top)


def _nodes(record: Any, top: int) -> _Bars:
    return _largest(record.nodes["node"], record.nodes["value"], top)


def _members(record: Any, top: int) -> _Bars:
    """What members of the first node give, then members of the second; each of the two sums to the same."""
    sides, listing = [], record.members
    for k, count in ((1, -(-top // 2)), (2, max(top // 2, 1))):
        own = listing.take(listing["of"] == k)
        sides.append(_largest(own["member"], own["value"], count, colour_of(k - 1), (OTHER, MISSING)[k - 1]))
    return sides[0].and_then(sides[1])


_PARTS = {"blocks": _blocks, "members": _members, "columns": _columns, "nodes": _nodes}
_UNITS = {"blocks": "blocks", "members": "members", "columns": "columns", "nodes": "averaged nodes"}


def _largest(names: np.ndarray, values: np.ndarray, top: int, colour: str = PALETTE[0], grey: str = OTHER) -> _Bars:
    """The sums of the values of each name, the largest first, and that of the others."""
    position: dict[Any, int] = {}
    codes = np.array([position.setdefault(name, len(position)) for name in names.tolist()], dtype=np.int64)
    sums = np.bincount(codes, values, len(position))
    order, known = np.argsort(-np.abs(sums), kind="stable"), list(position)
    top = len(order) if len(order) <= top + 1 else top
    shown = [_row_name(known[k]) for k in order[:top]]
    bars = _Bars(shown, sums[order[:top]], [colour] * len(shown))
    if len(order) == top:
        return bars
    return bars.and_then(_Bars([f"{len(order) - top:,} others"], sums[order[top:]].sum(keepdims=True), [grey]))


def _panels(bars: list[_Bars]) -> list[Axes]:
    """Axes below each other, as high as their bars need."""
    if not bars:
        raise InputError(parameter="record", expected="have one of the parts", got="none of them")
    heights = [_EDGE + _ROW * len(drawn.names) for drawn in bars]
    axes = new_axes(len(bars), 1, height=sum(heights) + 0.2)
    grid: Any = axes[0].get_gridspec()
    grid.set_height_ratios(heights)
    return axes


def _draw_bars(ax: Any, bars: _Bars, part: str) -> None:
    """Horizontal bars, the first one above."""
    from matplotlib.ticker import MaxNLocator

    rows = np.arange(len(bars.names))
    ax.barh(rows, bars.values, height=0.75, color=bars.colours)
    _name_rows(ax, bars.names, rows)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_xlabel(f"contribution of {_UNITS[part]}", fontsize=text_size(ax), color=INK, labelpad=2)


def _name_rows(ax: Any, names: list[str], rows: np.ndarray) -> None:
    plain_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.set_yticks(rows, names, fontsize=text_size(ax), color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim((rows.max() if len(rows) else 0) + 0.6, -0.6)


def _explain_members(ax: Any, record: Any) -> None:
    size = text_size(ax)
    sides = [f"of {shortened(str(node), _LONGEST)}" for node in (record.first, record.second)]
    handles = [mark(name, colour_of(k), "s", 0.65 * size) for k, name in enumerate(sides)]
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, **legend_look(size))


# --- anchors ----------------------------------------------------------------------------------------------


def anchors(record: AnchorDescriptions, *, top: int = 8, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw the strongest columns of each anchor of a layer, and its share of nodes.

    A bar says how far the mean of a column over the nodes of an anchor is from that over all nodes, in units of its
    standard error.

    Parameters
    ----------
    record : AnchorDescriptions
        What ``Explainer.describe_anchors`` returns; its `n_columns` is the number of bars for each anchor.
    top : int, default=8
        The most anchors, those of the largest shares; a last line has the share of the others.
    title : str, default=''
        A line above the anchors.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    Explainer.describe_anchors : Makes the record.
    attention : Whom one node attends to.

    Examples
    --------
    >>> from fishergraph import Explainer, FisherEmbedding, plots
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(dim=64, structure=None, random_state=0).fit(cora.X, graph=cora.graph)
    >>> explainer = Explainer(model, cora.X, graph=cora.graph)
    >>> ax = plots.anchors(explainer.describe_anchors(n_columns=3))
    >>> len(ax.patches)  # four anchors
    12
    """
    _check_record(record, ("anchors", "columns", "nodes"), "describe_anchors()")
    check_integer(top, "top", least=1)
    shares = record.anchors["n_nodes"] / max(float(record.anchors["n_nodes"].sum()), 1e-300)
    order = np.argsort(-shares, kind="stable")
    rows: list[_AnchorRow] = []
    for k in order[:top].tolist():
        anchor = record.anchors["anchor"][k]
        own = record.columns.take(record.columns["anchor"] == anchor)
        rows.append(_AnchorRow(f"anchor {anchor}, {shares[k]:.0%} of the nodes"))
        rows += map(_AnchorRow, own["name"].tolist(), own["z"].tolist())
    if len(order) > top:
        rows.append(_AnchorRow(f"{len(order) - top} other anchors, {shares[order[top:]].sum():.0%} of the nodes"))
    ax = axes_of(ax, height=_EDGE + _ROW * len(rows) + _GAP * _ROW * min(top, len(order)))
    _draw_anchor_rows(ax, rows)
    draw_title(ax, title)
    return ax


class _AnchorRow(NamedTuple):
    """A column of X with its bar, or the line above the columns of an anchor."""

    name: str
    z: float | None = None


def _draw_anchor_rows(ax: Any, rows: list[_AnchorRow]) -> None:
    """A bar for each column, below the line of its anchor."""
    heads = np.array([row.z is None for row in rows])
    at = np.arange(len(rows)) + _GAP * (np.cumsum(heads) - 1)
    bars, size = np.flatnonzero(~heads), text_size(ax)
    ax.barh(at[bars], [rows[k].z for k in bars], height=0.75, color=colour_of(0))
    ax.vlines([0] * len(bars), at[bars] - 0.5, at[bars] + 0.5, color=INK, linewidth=0.8)
    _name_rows(ax, [_row_name(rows[k].name) for k in bars], at[bars])
    ax.set_ylim(at[-1] + 0.6, -0.6)
    for k in np.flatnonzero(heads):
        look = {"fontsize": size, "color": INK, "va": "center", "weight": "bold"}
        ax.annotate(rows[k].name, (0, at[k]), xycoords=("axes fraction", "data"), **look)
    ax.set_xlabel("difference from all nodes, standard errors", fontsize=size, color=INK, labelpad=2)


# --- records ----------------------------------------------------------------------------------------------


def _check_record(record: Any, fields: Sequence[str], call: str) -> None:
    if not all(hasattr(record, name) for name in fields):
        expected, got = f"be what Explainer.{call} returns", type(record).__name__
        raise InputTypeError(parameter="record", expected=expected, got=got)


def _row_name(value: Any) -> str:
    return literal(shortened(str(value), _LONGEST))
