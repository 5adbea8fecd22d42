"""`explore`: an embedding as one page to click through, and `Page`, the record that holds it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fishergraph._errors import InputError
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._validation import check_integer, check_seed
from fishergraph.explore.atlas import write_atlas
from fishergraph.explore.build import Choice, Content, make_content, packed
from fishergraph.explore.fields import read_fields, read_labels
from fishergraph.explore.html import document, frame
from fishergraph.explore.inputs import Nodes, read_embedding, read_graph
from fishergraph.explore.maps import chosen_maps
from fishergraph.explore.model import feature_table, in_node_order, read_model
from fishergraph.explore.relations import holds_kinds, read_relations
from fishergraph.explore.serve import Served, open_browser
from fishergraph.graphs import Relations, as_relations
from fishergraph.io.files import as_path, check_folder, check_suffix, replacing

PathLike = str | os.PathLike[str]


class Page:
    """A page about an embedding, in one HTML file that needs nothing else.

    A notebook shows it as the value of a cell.

    Parameters
    ----------
    html : str
        The document.
    content : Content
        What it shows.

    Attributes
    ----------
    html : str
        The document. It works without a network, and sends nothing.
    notes : list of str
        What its readers must know: what was sampled, rounded or left out. The page says it too.
    n_nodes : int
        The number of nodes that it shows.

    See Also
    --------
    explore : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.explore import explore
    >>> page = explore(np.random.default_rng(0).normal(size=(30, 4)), maps="pca")
    >>> page
    Page(30 nodes, 0.3 MB)
    """

    def __init__(self, html: str, content: Content):
        self.html = html
        self._content = content

    @property
    def notes(self) -> list[str]:
        """What readers must know."""
        return list(self._content.nodes.notes)

    @property
    def n_nodes(self) -> int:
        """The number of nodes that the page shows."""
        return len(self._content.rows)

    def __repr__(self) -> str:
        return f"Page({self.n_nodes:,} nodes, {len(self.html.encode('utf-8')) / 1e6:.1f} MB)"

    def _repr_html_(self) -> str:
        return frame(self.html)

    def save(self, path: PathLike) -> Path:
        """Write the page; the file appears complete or not at all.

        Parameters
        ----------
        path : str or path
            A file, such as "page.html".

        Returns
        -------
        Path
            The file.
        """
        target = as_path(path, "path")
        check_folder(target)
        with replacing(target) as part:
            part.write_text(self.html, encoding="utf-8", newline="\n")
        return target

    def show(self, port: int | None = None, *, browser: bool = True) -> Served:
        """Serve the page to this machine, and open a browser if there is a display.

        Parameters
        ----------
        port : int, optional
            The port; None takes a free one.
        browser : bool, default=True
            Whether to open a browser.

        Returns
        -------
        Served
            The server: `url` is its address, `close` stops it. It stops with the program.
        """
        served = Served(self.html, port)
        if browser:
            open_browser(served.url)
        return served

    def to_parquet(self, path: PathLike) -> Path:
        """Write the nodes as a table that embedding-atlas opens.

        The columns are id, projection_x, projection_y, neighbors and those of the page. `neighbors` holds row numbers
        and distances of the nearest nodes.

        Parameters
        ----------
        path : str or path
            A .parquet file.

        Returns
        -------
        Path
            The file.
        """
        target = as_path(path, "path")
        check_suffix(target, [".parquet"])
        check_folder(target)
        write_atlas(target, self._content)
        return target


def explore(
    Z: Any,
    graph: GraphLike = None,
    *,
    ids: Any = None,
    fields: Any = None,
    labels: Any = None,
    predictions: Any = None,
    names: Sequence[str] | Mapping[Any, str] | None = None,
    model: Any = None,
    X: MatrixLike = None,
    feature_names: Sequence[str] | None = None,
    blocks: Sequence[tuple[str, int]] | None = None,
    maps: Any = "auto",
    colour: str | None = None,
    title: str | None = None,
    n_neighbours: int = 10,
    max_points: int = 100_000,
    path: PathLike | None = None,
    random_state: int = 0,
    verbose: Verbose = False,
) -> Page:
    """Make a page of an embedding to click through and to send.

    Every node is a point. The page shows its fields, its neighbours in the graph and in the embedding, whom it attends
    to, and why two nodes are alike. It is one HTML file without a connection to anything.

    Parameters
    ----------
    Z : array of shape (n_nodes, n_columns), table, path, or object with `Z` and `ids`
        The embedding; the index of a DataFrame is the ids. A path is that of a file that `fishergraph embed` wrote.
    graph : graph, optional
        What `as_graph` takes. Named nodes are matched with the ids; else row v is node v. Of several kinds of nodes or
        edges, what `as_relations` takes, the page shows one type, that of the ids: it names the kinds of every edge
        between its nodes, and counts those that lead elsewhere.
    ids : sequence, optional
        Distinct ids of the rows. By default those of the file, the table or the graph, else row numbers.
    fields : table, mapping or path, optional
        Columns that are shown of every node: pandas, Polars, pyarrow, a mapping of names to columns, or a node file.
        Rows are matched by the index or a column id; else row v is node v.
    labels : sequence, mapping or str, optional
        The class of every node, None if it has none; a mapping from id to label; or the name of one of the fields.
    predictions : sequence, mapping or str, optional
        Predicted classes, in the same forms. A classifier as `model` gives them too.
    names : sequence or mapping of str, optional
        Names of the classes: `names[label]`.
    model : FisherEmbedding or FisherClassifier, optional
        The fitted model, for attention, the words of its anchors, and predictions. It needs X and the graph of its fit.
    X : matrix or table of shape (n_nodes, n_features), optional
        The features, for what two neighbourhoods have in common; the index of a DataFrame is matched with the ids.
    feature_names : sequence of str, optional
        Names of the columns of X; by default those of a table or of the fit, else x0, x1, ….
    blocks : list of tuple, optional
        (name, width) of the blocks of columns. By default those of the file or of the model.
    maps : {"auto", "pca", "tsne", "umap"}, list of these, or mapping, default="auto"
        How nodes are placed; the first map of a list is shown. "auto" is PCA, with t-SNE for up to 10,000 nodes and
        with UMAP for more if it is installed (extra `umap`). A mapping from names to coordinates of shape (n_nodes, 2)
        shows these.
    colour : str, optional
        Name of the column that colours the nodes at first. By default labels, else predictions, clusters or degrees.
    title : str, optional
        The title of the page.
    n_neighbours : int, default=10
        The number of nearest nodes in the embedding that are shown.
    max_points : int, default=100_000
        The most nodes on a page. Of more a sample is shown, and the page says so: it thins dense regions of the map and
        keeps sparse ones.
    path : str or path, optional
        Where to write the page; `Page.save` does it later.
    random_state : int, default=0
        Seed of t-SNE, UMAP, clusters and samples. One seed gives one page, byte by byte.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Returns
    -------
    Page
        The page, with `save`, `show` and `to_parquet`. A notebook displays it.

    See Also
    --------
    fishergraph.plots.embedding_map : A picture of an embedding.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph import FisherEmbedding, load_graph
    >>> from fishergraph.explore import explore
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(dim=32, random_state=0)
    >>> Z = model.fit_transform(cora.X, graph=cora.graph)
    >>> page = explore(Z, cora.graph, ids=cora.ids, labels=cora.y, names=cora.class_names, maps="pca")
    >>> page.save(tempfile.mkdtemp() + "/cora.html").name
    'cora.html'
    """
    progress = progress_bar(verbose)
    n_neighbours = check_integer(n_neighbours, "n_neighbours", least=1, most=100)
    max_points = check_integer(max_points, "max_points", least=100, most=2_000_000)
    seed = check_seed(random_state, "random_state")
    if path is not None:
        check_folder(as_path(path, "path"))
    several = holds_kinds(graph)
    if several and model is not None:
        expected, advice = "be left out for several kinds of edges", "leave it out, or pass one graph"
        raise InputError(parameter="model", expected=expected, got=type(model).__name__, advice=advice)
    graph = as_relations(graph) if several else graph
    nodes = read_embedding(Z, ids, blocks, graph)
    chosen, given = chosen_maps(maps, min(nodes.n, max_points), nodes.n)
    choice = Choice(chosen, given, max_points, n_neighbours, seed, progress)
    _read_columns(nodes, fields, labels, predictions, names)
    if graph is not None:
        nodes.graph = read_relations(graph, nodes) if isinstance(graph, Relations) else read_graph(graph, nodes)
    X = in_node_order(X, nodes)
    explained = None if model is None else read_model(model, X, feature_names, nodes, progress)
    features, columns = feature_table(X, feature_names, model)
    content = make_content(nodes, choice, explained, features, columns)
    page = Page(document(*packed(content, title or f"An embedding of {nodes.n:,} nodes", colour)), content)
    if path is not None:
        page.save(path)
    return page


def _read_columns(nodes: Nodes, fields: Any, labels: Any, predictions: Any, names: Any) -> None:
    """The columns that were passed: labels, predictions, fields."""
    nodes.columns = read_fields(fields, nodes)
    marked = [
        read_labels(labels, nodes, "label", names),
        read_labels(predictions, nodes, "prediction", names),
    ]
    nodes.columns = [column for column in marked if column is not None] + nodes.columns
    if names is not None and labels is None and predictions is None:
        raise InputError(
            parameter="names", expected="name labels or predictions", got="names alone", advice="pass labels"
        )
