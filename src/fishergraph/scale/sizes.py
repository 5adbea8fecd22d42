"""What a run over a store reads and keeps, counted from the sizes of the graph: arrays in files, and their bytes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from fishergraph._errors import InputError, NotEnoughDisk
from fishergraph._validation import MOST_COLUMNS, check_integer
from fishergraph.estimators.source import NodeJob
from fishergraph.multiset import Neighbourhood, Rule
from fishergraph.scale.budget import Budget
from fishergraph.scale.folders import read_json
from fishergraph.scale.neighbours import reversed_bytes, weights_kind
from fishergraph.scale.sets import sets_folder
from fishergraph.scale.store import Store
from fishergraph.scale.structure_size import StructureSize
from fishergraph.scale.tiles import tile_shape
from fishergraph.structural import TELLING_APART

HEADER = 128  # bytes in front of the rows of a `.npy` file
MOST_NODES, MOST_EDGES = 10**12, 10**15


@dataclass(frozen=True)
class GraphSize:
    """The size of a graph that is planned, in memory or on disk or nowhere yet.

    Parameters
    ----------
    n_nodes : int
        The number of nodes.
    n_edges : int
        The number of stored edges; an undirected edge counts twice.
    n_features : int, default=0
        The number of columns of X; 0 if there are none.
    weighted : bool, default=False
        Whether edges have weights.
    dtype : dtype, default=float32
        Of the features in their file.

    See Also
    --------
    plan : What an embedding of such a graph takes.

    Examples
    --------
    >>> from fishergraph.scale import GraphSize
    >>> GraphSize(2_449_029, 123_718_280, 100)
    GraphSize(n_nodes=2449029, n_edges=123718280, n_features=100, weighted=False, dtype='float32')
    """

    n_nodes: int
    n_edges: int
    n_features: int = 0
    weighted: bool = False
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_integer(self.n_nodes, "nodes", least=1, most=MOST_NODES)
        check_integer(self.n_edges, "edges", least=0, most=MOST_EDGES)
        check_integer(self.n_features, "features", least=0, most=MOST_COLUMNS)
        if np.dtype(self.dtype).name not in ("float16", "float32", "float64"):
            raise InputError(parameter="dtype", value=self.dtype, expected="be float16, float32 or float64")

    @classmethod
    def of(cls, store: Store) -> Self:
        """Return the size of the graph of a store.

        Parameters
        ----------
        store : Store
            The store.

        Returns
        -------
        GraphSize
            Its size.
        """
        sizes = store.n_nodes, store.n_edges, store.n_features, store.weights is not None
        return cls(*sizes, "float32" if store.features is None else store.features.dtype.name)

    def store_files(self) -> dict[str, int]:
        """Return the bytes of the files of its store, with row numbers as ids.

        Returns
        -------
        dict
            Bytes by the names of the arrays.
        """
        index = 4 if self.n_nodes < 2**31 else 8
        files = {"indptr": 8 * (self.n_nodes + 1), "indices": index * self.n_edges}
        if self.weighted:
            files["weights"] = 4 * self.n_edges
        if self.n_features:
            files["features"] = np.dtype(self.dtype).itemsize * self.n_nodes * self.n_features
        return {name: size + HEADER for name, size in files.items()}


@dataclass(frozen=True)
class Shape:
    """The shape and dtype of a matrix that is not there; `nnz` are its entries if it is sparse."""

    shape: tuple[int, int]
    dtype: np.dtype
    nnz: int | None = None


@dataclass(frozen=True)
class SetsSize:
    """The sizes of multisets that need not be there; `weights` is an empty array of their dtype."""

    n_sets: int
    n_entries: int
    index: np.dtype
    weights: np.ndarray | None
    built: bool = False
    kinds: int = 1
    scratch: int = 0  # bytes of files that are removed when the multisets are there

    slots: int = field(default=1, init=False)
    lifted: bool = field(default=False, init=False)

    @property
    def n_points(self) -> int:
        return self.n_sets

    @property
    def nbytes(self) -> int:
        """The bytes of their rows."""
        weight = 0 if self.weights is None else self.weights.dtype.itemsize
        parts = 8 * (self.kinds * self.n_sets + 1) if self.kinds > 1 else 0
        return 8 * (self.n_sets + 1) + parts + (self.index.itemsize + weight) * self.n_entries

    @property
    def files(self) -> int:
        """The bytes of their files."""
        return self.nbytes + HEADER * (2 + (self.weights is not None) + (self.kinds > 1))


def sets_size(graph: GraphSize, rule: Rule, dtype: np.dtype, store: Store | None) -> SetsSize:
    """The sizes of the multisets of a graph: those that were built, else the most that there can be."""
    index = np.dtype(np.int32 if graph.n_nodes < 2**31 else np.int64) if store is None else store.indices.dtype
    if store is not None:
        manifest = sets_folder(store, rule, dtype) / "manifest.json"
        if manifest.is_file():
            arrays = read_json(manifest)["arrays"]
            weights = np.empty(0, arrays["weights"]["dtype"]) if "weights" in arrays else None
            index = np.dtype(arrays["indices"]["dtype"])
            return SetsSize(graph.n_nodes, arrays["indices"]["shape"][0], index, weights, True, rule.kinds)
    members = getattr(rule, "members", None)
    if isinstance(rule, Neighbourhood):
        n_entries = rule.kinds * (graph.n_edges + graph.n_nodes * rule.closed)
        own = np.dtype(np.float32) if store is None or store.weights is None else store.weights.dtype
        kind = weights_kind(own if graph.weighted else None, rule, dtype)
        weights = None if kind is None else np.empty(0, kind)
        member = index.itemsize + (own.itemsize if graph.weighted else 0)
        scratch = reversed_bytes(graph.n_nodes, graph.n_edges, member, rule)
        return SetsSize(graph.n_nodes, n_entries, index, weights, False, rule.kinds, scratch)
    n_entries = graph.n_edges + graph.n_nodes if members is None else members * graph.n_nodes
    return SetsSize(graph.n_nodes, n_entries, index, np.empty(0, dtype))


@dataclass(frozen=True)
class RunSize:
    """What a run reads: the graph, X and the multisets.

    job : what is computed.
    X : the shape of the features, or of the first structural columns.
    """

    graph: GraphSize
    job: NodeJob
    X: Shape
    sets: SetsSize
    store: Store | None = None

    @classmethod
    def of(cls, graph: GraphSize, job: NodeJob, store: Store | None = None) -> Self:
        """The sizes of a job on a graph, or on that of a store."""
        dtype = np.dtype(np.float64 if graph.dtype == "float64" and graph.n_features else np.float32)
        structure, width = job.structure, graph.n_features
        if not width:
            width = 1 if structure is None else structure.n_columns(job.stack.layer.dim, features=False)
        nnz = None if store is None else getattr(store.features, "nnz", None)
        sets = sets_size(graph, job.rule, dtype, store)
        return cls(graph, job, Shape((graph.n_nodes, width), dtype, nnz), sets, store)

    @property
    def widths(self) -> list[int]:
        """The columns of every stage."""
        return self.job.stack.asked_widths(self.X.shape[1], cast(Any, self.sets))

    @property
    def points(self) -> list[int]:
        """The columns of the points of every layer, and of what the last one gives."""
        first = self.X.shape[1] if self.job.stack.reads_counts else self.widths[0]
        return [first, *self.widths[1:]]

    @property
    def structure(self) -> StructureSize | None:
        """The structural columns, if there are any."""
        settings, graph = self.job.structure, self.graph
        if settings is None:
            return None
        width = settings.n_columns(self.job.stack.layer.dim, features=graph.n_features > 0)
        symmetric = self.store is not None and bool(self.store.facts.get("undirected"))
        weight_bytes = 4 if graph.weighted else 0
        return StructureSize(settings, graph.n_nodes, graph.n_edges, width, weight_bytes, symmetric)

    @property
    def input_bytes(self) -> int:
        """The bytes of X in its files."""
        if not self.graph.n_features or self.store is None:
            return np.dtype(self.graph.dtype).itemsize * self.X.shape[0] * self.X.shape[1]
        entries = self.store.manifest["arrays"]
        names = [name for name in entries if name.startswith("features")]
        return sum(int(np.prod(entries[name]["shape"])) * np.dtype(entries[name]["dtype"]).itemsize for name in names)

    def blocks(self) -> dict[str, int]:
        """The bytes of the file of every stage."""
        stack, itemsize = self.job.stack, self.X.dtype.itemsize
        rows = self.sets.n_sets * itemsize
        return {name: rows * width + HEADER for name, width in zip(stack.names, self.widths, strict=True)}

    def scratch(self, budget: Budget) -> dict[str, int]:
        """The bytes of the arrays of the work folder, which are removed at the end."""
        stack, n, itemsize = self.job.stack, self.sets.n_sets, self.X.dtype.itemsize
        points, files = self.points, cast(dict[str, int], {})

        def tiles(name: str, width: int, tile: int) -> None:
            files[name] = int(np.prod(tile_shape(n, width, min(tile, width)), dtype=object)) * itemsize + HEADER

        for t, tile in budget.tiles.items():
            if tile is not None:
                tiles(f"points{t}", points[t - 1], tile)
        for kind, width in stack.structure:
            files[f"structure-{kind}"] = n * width * 4 + HEADER
        if self.structure is not None and self.job.fitted_structure is None:
            files |= {f"structure-{name}": n_bytes + HEADER for name, n_bytes in self.structure.files().items()}
        averaged = [(kind, width) for kind, width in stack.structure if kind in TELLING_APART and stack.walk]
        if stack.averages_features and stack.walk is not None:
            axes = stack.walk.axes(self.X.shape[1])
            tiles("axes", axes, budget.averaged_tile(axes))
            averaged.insert(0, ("axes", axes))
        for kind, width in averaged:
            tiles(f"{kind}-averaged", width, budget.averaged_tile(width))
            files[f"{kind}-ratio"] = n * itemsize + HEADER
        return files

    def model_bytes(self) -> int:
        """About the bytes of the two files of what was learned."""
        stack, dim = self.job.stack, min(self.job.stack.layer.dim, self.sets.n_sets)
        widths = self.widths
        numbers, before = dim * (self.X.shape[1] + dim), widths[0]
        for t in range(1, stack.n_layers + 1):
            layer = stack.layer_at(t)
            numbers += before * layer.n_anchors + dim * (layer.phi_width(layer.n_anchors, before) + dim)
            before = widths[t]
        for width in widths[stack.n_layers + 1 :]:
            numbers += dim * (width + dim)
        if stack.averages_features and stack.walk is not None:
            numbers += (stack.walk.axes(self.X.shape[1]) + 1) * self.X.shape[1]
        return 2 * numbers * self.X.dtype.itemsize


def check_disk(size: RunSize, budget: Budget, folder: Path) -> None:
    """Raise unless there is disk space for the files of a run that are not there yet.

    Parameters
    ----------
    size : RunSize
        What is computed.
    budget : Budget
        How points are held.
    folder : Path
        Of the run.
    """
    files: Mapping[str, int] = {f"{name}.npy": n_bytes for name, n_bytes in size.blocks().items()}
    files = files | {f"work/{name}.npy": n_bytes for name, n_bytes in size.scratch(budget).items()}
    needed = sum(n_bytes for name, n_bytes in files.items() if not (folder / name).is_file())
    if size.structure is not None and any(
        f"work/structure-{kind}.npy" in files for kind in size.structure.structure.kinds
    ):
        needed += size.structure.files_between()
    needed += size.model_bytes() + (0 if size.sets.built else size.sets.files + size.sets.scratch)
    place = folder
    while not place.is_dir():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        advice = f"free {needed - free:,} bytes there, move the store to another disk, or lower dim or n_layers"
        raise NotEnoughDisk(path=folder, needed=needed, available=free, advice=advice)
