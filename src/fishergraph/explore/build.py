"""A page from its nodes: which of them it shows, where, and what it says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._progress import Progress
from fishergraph._version import __version__
from fishergraph.explore.alike import PageFeatures, SimilarityParts, page_features, similarity_parts
from fishergraph.explore.attention import PageAttention, page_attention
from fishergraph.explore.columns import Column, number_column
from fishergraph.explore.edges import PageEdges, degree_columns, page_edges
from fishergraph.explore.inputs import Nodes
from fishergraph.explore.maps import (
    MOST_TSNE,
    Map,
    computed_map,
    curve_order,
    density_sample,
    in_square,
    principal_axes,
)
from fishergraph.explore.model import Explained
from fishergraph.explore.neighbours import AXES, MOST_EXACT, Nearest, clusters, nearest, unit
from fishergraph.explore.pack import Parts
from fishergraph.plots import PALETTE

_MAP_AXES = 50
_NAMING = ("label", "prediction", "degree", "field")  # whose columns may name clusters
# The order in the menu of colours; the first of them colours the nodes when the page opens.
_ROLES = ("label", "prediction", "confidence", "cluster", "degree", "anomaly")


@dataclass(frozen=True)
class Choice:
    """What a page is asked to show."""

    maps: list[str]
    given: dict[str, np.ndarray]
    max_points: int
    n_neighbours: int
    seed: int
    progress: Progress


@dataclass(eq=False)
class Content:
    """What a page shows, in the order of its rows.

    Attributes
    ----------
    nodes : Nodes
        All nodes.
    rows : array of shape (n,)
        The row of the embedding for each node of the page.
    maps : list of Map
        The maps, the first shown.
    rasters : list of array or None
        Nodes per cell of each map if the page shows a sample.
    nearest : Nearest
        The nearest nodes.
    edges : PageEdges or None
        The graph.
    columns : list of Column
        What is shown of every node.
    attention, parts, features
        What tells why nodes are alike, if it is known and fits.
    model : str
        The name of the model, if there is one.
    """

    nodes: Nodes
    rows: np.ndarray
    maps: list[Map]
    rasters: list[np.ndarray | None]
    nearest: Nearest
    edges: PageEdges | None = None
    columns: list[Column] = field(default_factory=list)
    attention: PageAttention | None = None
    parts: SimilarityParts | None = None
    features: PageFeatures | None = None
    model: str = ""


def make_content(nodes: Nodes, choice: Choice, explained: Explained | None, X: Any, names: Sequence[str]) -> Content:
    """Coordinates, sample, neighbours and columns of the page."""
    maps, rows, stands = _maps(nodes, choice)
    order = curve_order(maps[0].points)
    maps, rows, stands = [one.take(order) for one in maps], rows[order], stands[order]
    sampled = len(rows) < nodes.n
    if sampled:
        nodes.notes.insert(
            0,
            f"The page shows {len(rows):,} of {nodes.n:,} nodes: a sample that thins dense regions of the map and "
            "keeps sparse ones. The shading counts all nodes. Nearest nodes and clusters are those of the sample.",
        )
    U = unit(nodes.Z[rows])
    near = nearest(U, choice.n_neighbours, choice.progress, choice.seed)
    if len(rows) > MOST_EXACT and U.shape[1] > AXES:
        nodes.notes.append("Nearest nodes were searched on principal axes first, so a few may be missing.")
    rasters = [one.raster(stands).astype(np.float32) if sampled else None for one in maps]
    content = Content(nodes, rows, maps, rasters, near)
    if nodes.graph is not None:
        content.edges = page_edges(nodes.graph, rows, kinds=nodes.kinds, seed=choice.seed)
        if content.edges.shown < content.edges.total and not sampled:
            nodes.notes.append(
                f"The page holds {content.edges.shown:,} of {content.edges.total:,} edges. The degree counts all."
            )
    _add_columns(content, U, explained, choice)
    _add_reasons(content, U, explained, X, names)
    return content


def _add_columns(content: Content, U: np.ndarray, explained: Explained | None, choice: Choice) -> None:
    """The columns: labels, predictions, clusters, what was given, degrees, and how unusual a node is."""
    nodes, near = content.nodes, content.nearest
    marked = [column for column in nodes.columns if column.role in _ROLES]
    given = [column for column in nodes.columns if column.role not in _ROLES]
    marked += [] if explained is None else explained.columns
    degrees = [] if nodes.graph is None else degree_columns(nodes.graph)
    marked, given, degrees = ([column.take(content.rows) for column in part] for part in (marked, given, degrees))
    naming = [column for column in marked + given + degrees if column.role in _NAMING]
    grouped = clusters(U, _naming_table(naming), choice.progress, choice.seed)
    ranked = [*marked, *([] if grouped is None else [grouped]), *degrees]
    if near.k:
        far = np.round(1 - near.similarities.mean(axis=1, dtype=np.float64), 3)
        note = f"1 − the mean cosine similarity to the {near.k} nearest nodes: high for nodes that are like no others."
        ranked.append(number_column("distance to nearest", far, role="anomaly", note=note))
    content.columns = [*sorted(ranked, key=lambda column: _ROLES.index(column.role)), *given]


def _naming_table(columns: list[Column]) -> Any:
    """The columns that can name clusters, as a table: those with two values at least; None if there are none."""
    import pyarrow as pa

    able = [
        column for column in columns if column.kind != "text" and len(np.unique(column.values[~column.missing])) > 1
    ]
    texts = [column for column in columns if column.kind == "text"] if able else []
    return pa.table({column.name: column.arrow() for column in able + texts}) if able else None


def _add_reasons(content: Content, U: np.ndarray, explained: Explained | None, X: Any, names: Sequence[str]) -> None:
    """What tells why nodes are alike."""
    nodes, rows = content.nodes, content.rows
    content.parts = similarity_parts(U, nodes.blocks, content.nearest, content.edges)
    if content.parts is not None and content.parts.nearest.shape[1] < content.nearest.k:
        nodes.notes.append(
            f"The parts of a similarity are on the page for the {content.parts.nearest.shape[1]} nearest nodes of "
            "every node."
        )
    if explained is not None:
        content.model = explained.name
        if explained.attention is not None:
            content.attention = page_attention(explained.attention, rows, content.edges, explained.words, nodes.notes)
    if X is not None:
        content.features = page_features(X, names, rows, nodes.notes)


def _maps(nodes: Nodes, choice: Choice) -> tuple[list[Map], np.ndarray, np.ndarray]:
    """The maps of the nodes that the page shows, their rows, and how many nodes each of them stands for."""
    every, ones = np.arange(nodes.n), np.ones(nodes.n)
    if choice.given:
        maps = [Map(name, in_square(points)) for name, points in choice.given.items()]
        if nodes.n <= choice.max_points:
            return maps, every, ones
        rows, stands = density_sample(maps[0].cells, choice.max_points, choice.seed)
        return [one.take(rows) for one in maps], rows, stands
    many = nodes.n > choice.max_points
    with choice.progress("principal axes", 1) as bar:
        axes = principal_axes(nodes.Z, choice.seed)
        placed = axes.project(nodes.Z, 2 if many else _MAP_AXES)
        bar.update(1)
    rows, stands = every, ones
    if many:
        rows, stands = density_sample(Map("", in_square(placed)).cells, choice.max_points, choice.seed)
        stands *= nodes.n / stands.sum()  # cells of which no node is shown count too
        placed = axes.project(nodes.Z[rows], _MAP_AXES)
    if choice.maps == ["pca"] and len(rows) > MOST_TSNE:
        nodes.notes.append(
            "The map shows the two principal axes alone. UMAP (the extra umap) or t-SNE separate groups better."
        )
    return [computed_map(name, placed, choice.seed, choice.progress) for name in choice.maps], rows, stands


# --- what the browser reads ---------------------------------------------------------------------------------


def packed(content: Content, title: str, colour: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The description of the page and its parts."""
    parts, nodes = Parts(), content.nodes

    def of(part: Any) -> dict[str, Any] | None:
        return None if part is None else part.packed(parts)

    about = {
        "version": __version__,
        "title": title,
        "n": len(content.rows),
        "total": nodes.n,
        "dim": nodes.Z.shape[1],
        "model": content.model,
        "blocks": [{"name": name, "width": width, "words": block_words(name)} for name, width in nodes.blocks],
        "palette": list(PALETTE),
        "colour": chosen_colour(content.columns, colour),
        "maps": [_packed_map(one, raster, parts) for one, raster in zip(content.maps, content.rasters, strict=True)],
        "columns": [of(column) for column in content.columns],
        "ids": _packed_ids(nodes.ids[content.rows], parts),
        "rows": parts.integers(content.rows) if nodes.named else None,
        "nearest": of(content.nearest),
        "edges": of(content.edges),
        "attention": of(content.attention),
        "alike": of(content.parts),
        "features": of(content.features),
        "notes": nodes.notes,
    }
    return about, parts.texts


_WORDS = {
    "psi0": "own features",
    "psi1": "direct neighbours",
    "psi2": "two steps away",
    "walk": "surroundings",
    "smooth": "surroundings, sharper",
    "factors": "place in the graph",
    "local": "local shape",
}


def block_words(name: str) -> str:
    """What a block of the embedding is about, in words; empty for other blocks."""
    layer = name.removeprefix("psi")
    return _WORDS.get(name, f"{layer} steps away" if layer != name and layer.isdecimal() else "")


def _packed_map(one: Map, raster: np.ndarray | None, parts: Parts) -> dict[str, Any]:
    x, y = one.steps.T
    packed = {"name": one.name, "note": one.note, "x": parts.array(x), "y": parts.array(y)}
    return packed if raster is None else packed | {"raster": parts.array(raster)}


def _packed_ids(ids: np.ndarray, parts: Parts) -> dict[str, Any]:
    if ids.dtype.kind == "i" and np.abs(ids).max(initial=0) <= 2**53:
        return {"n": len(ids), "numbers": parts.numbers(ids, np.zeros(len(ids), dtype=bool))}
    return {"n": len(ids), "strings": parts.strings([str(value) for value in ids.tolist()])}


def chosen_colour(columns: list[Column], wanted: str | None) -> int:
    """The column that colours the nodes at first: the one that is named, else the first of the best role, or −1."""
    able = [k for k, column in enumerate(columns) if column.kind != "text"]
    if wanted is not None:
        named = [k for k in able if columns[k].name == wanted]
        if not named:
            listed = ", ".join(repr(columns[k].name) for k in able[:10]) or "none"
            expected = f"name a column that has colours, such as {listed}"
            raise InputError(parameter="colour", value=wanted, expected=expected)
        return named[0]
    ranked = sorted(able, key=lambda k: _ROLES.index(columns[k].role) if columns[k].role in _ROLES else len(_ROLES))
    return ranked[0] if ranked else -1
