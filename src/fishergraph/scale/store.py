"""`Store`: a graph and its features in a folder of `.npy` files, with a manifest, for graphs larger than memory.

    STORE/
      manifest.json                 what is there: arrays with shapes, dtypes and checksums, names, facts
      indptr.npy, indices.npy       compressed rows: row v lists the nodes that point to v (int64; int32 or int64)
      weights.npy                   edge weights, if there are any
      features.npy                  X; if it is sparse features_data.npy, features_indices.npy, features_indptr.npy
      ids.npy                       integer ids, or ids_text.npy and ids_offsets.npy; row numbers if there are none
      removed.npy                   the rows of nodes that an update removed, if there are any
      multisets/                    multisets that were built once
      embeddings/NAME/              one run: its parameters, the values of every stage, the model

Every file can be read with `numpy.load`. The folder of a new store has a hidden name until it is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph._errors import FileFormatError
from fishergraph._typing import GraphLike
from fishergraph.device import Device
from fishergraph.estimators.source import NodeJob, NodeResult, check_store
from fishergraph.io.files import as_path, replacing
from fishergraph.scale.arrays import Features, FileArray, FileRows, StoredIds
from fishergraph.scale.commit import finish_commit
from fishergraph.stack import Stack

if TYPE_CHECKING:
    from fishergraph.scale.updating import UpdateReport

FORMAT, FORMAT_VERSION = "fishergraph-store", 1
MANIFEST = "manifest.json"
_ENTRY = {"shape", "dtype", "checksums"}
_SPARSE = ("features_data", "features_indices", "features_indptr")


class Store:
    """A graph and its features on disk; `write_store` and `ingest` make one.

    `FisherEmbedding().fit_transform(store)` embeds its nodes in a bounded amount of memory.

    Parameters
    ----------
    path : path
        The folder.
    memory : int or str, optional
        Bytes that an embedding or a training may take, such as "4G"; by default half of the memory of the machine.
    name : str, default="default"
        Of the embedding, or of the output of a network: the folder in `embeddings/`.
    overwrite : bool, default=False
        Replace an embedding of this name that was made with other settings.
    client : Client, str, int or DaskExecutor, optional
        Computes on the workers of a Dask cluster, each with so much memory: see `DaskExecutor`. By default on the
        threads of this process.

    Attributes
    ----------
    indptr, indices, weights : FileArray
        The graph in compressed rows; `weights` is None if all edges weigh one.
    features : FileArray, FileRows or None
        X.
    ids : StoredIds or None
        The ids of the nodes; None if they are the row numbers.
    removed : FileArray or None
        The rows of nodes that an update removed. They stay as rows without edges, and their features are zero.
    facts : dict
        How the store was made.

    See Also
    --------
    write_store : Make one from arrays.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph.datasets import load_graph
    >>> from fishergraph.scale import write_store
    >>> cora = load_graph("cora")
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cora"
    >>> write_store(path, cora.graph, cora.X)
    Store(2,708 nodes, 10,556 edges, 1,433 features)
    """

    def __init__(
        self,
        path: str | Path,
        *,
        memory: int | float | str | None = None,
        name: str = "default",
        overwrite: bool = False,
        client: Any = None,
    ):
        self.path = as_path(path, "store")
        self.memory, self.name, self.overwrite, self.client = memory, name, overwrite, client
        self.reopen()

    def reopen(self) -> None:
        """Read the files again, after another process changed them."""
        finish_commit(self.path)
        self.manifest = read_manifest(self.path)
        arrays = self.manifest["arrays"]
        self.indptr, self.indices = self._array("indptr"), self._array("indices")
        self.weights = self._array("weights") if "weights" in arrays else None
        self.features: Features | None = None
        if "features" in arrays:
            self.features = self._array("features")
        elif _SPARSE[0] in arrays:
            data, indices, indptr = map(self._array, _SPARSE)
            self.features = FileRows(data, indices, indptr, int(self.manifest["n_features"]))
        self.ids: StoredIds | None = None
        if "ids" in arrays:
            self.ids = StoredIds(self._array("ids"))
        elif "ids_text" in arrays:
            self.ids = StoredIds(None, self._array("ids_text"), self._array("ids_offsets"))
        self.removed = self._array("removed") if "removed" in arrays else None
        self.facts: dict[str, Any] = self.manifest["facts"]

    def _array(self, name: str) -> FileArray:
        """The array of that name, as the manifest describes it."""
        entry, path = self.manifest["arrays"].get(name), self.path / f"{name}.npy"
        if entry is None:
            raise FileFormatError(
                path=self.path / MANIFEST, reason=f"it lists no array {name!r}", advice="ingest again"
            )
        if not path.is_file():
            raise FileFormatError(path=path, reason="the file is missing", advice="restore it, or ingest again")
        array = FileArray(path)
        if list(array.shape) != entry["shape"] or str(array.dtype) != entry["dtype"]:
            reason = f"it holds {array.dtype} of shape {array.shape}, and the manifest says "
            reason += f"{entry['dtype']} of shape {tuple(entry['shape'])}"
            raise FileFormatError(path=path, reason=reason, advice="restore it, or ingest again")
        return array

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """The number of stored edges; an undirected edge counts twice."""
        return len(self.indices)

    @property
    def n_features(self) -> int:
        """The number of columns of X; 0 if there is none."""
        return 0 if self.features is None else self.features.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of nodes, and of columns of X."""
        return self.n_nodes, self.n_features

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns of X, if they have any."""
        return self.manifest.get("feature_names")

    @property
    def digest(self) -> str:
        """A text that another graph, or other features, would change."""
        arrays = {name: [e["shape"], e["dtype"], e["checksums"]] for name, e in self.manifest["arrays"].items()}
        return hashlib.sha256(json.dumps(arrays, sort_keys=True).encode()).hexdigest()

    @property
    def rows(self) -> Any:
        """What networks read of the store; `fishergraph.nn.train` opens it."""
        from fishergraph.scale.rows import StoreRows

        return StoreRows(self)

    def make_stack(self, undirected: bool) -> Callable[..., Stack]:
        """Return what makes the settings of a stack; `FisherEmbedding` calls this.

        Parameters
        ----------
        undirected : bool
            Not used: the edges of a store are as they were ingested.

        Returns
        -------
        callable
            The class of the settings.
        """
        return Stack

    def check_call(self, stack: Stack, graph: GraphLike, device: Device, *, structural: bool, tables: bool) -> None:
        """Raise unless a model can be run on the store; `FisherEmbedding` calls this.

        Parameters
        ----------
        stack : Stack
            Settings, or a fitted stack.
        graph : graph
            What was passed beside the store.
        device : Device
            That of the model.
        structural : bool
            Whether the model takes its features from the edges.
        tables : bool
            Whether the result is asked for as a table, which makes no difference here.
        """
        stack.of_one_graph()
        check_store(self, graph, device, structural=structural)

    def embed(self, job: NodeJob) -> NodeResult:
        """Embed the nodes; `FisherEmbedding` calls this.

        Parameters
        ----------
        job : NodeJob
            What is computed.

        Returns
        -------
        NodeResult
            What was learned, and a `StoredEmbedding`.
        """
        from fishergraph.scale.run import embed_store

        executor = None
        if self.client is not None:
            from fishergraph.scale.dask_executor import make_executor

            executor = make_executor(self.client)
        options: dict[str, Any] = {"memory": self.memory, "overwrite": self.overwrite, "executor": executor}
        return embed_store(self, job, name=self.name, **options)

    def update(self, **changes: Any) -> UpdateReport:
        """Change the graph, and bring its embeddings up to date.

        Parameters
        ----------
        **changes
            The arguments of `fishergraph.scale.update`: edges, nodes, and what else comes and goes.

        Returns
        -------
        UpdateReport
            What changed, and which rows were computed.
        """
        from fishergraph.scale.updating import update

        return update(self, **changes)

    def __repr__(self) -> str:
        features = f", {self.n_features:,} features" if self.features is not None else ""
        return f"Store({self.n_nodes:,} nodes, {self.n_edges:,} edges{features})"

    def check(self, advance: Callable[[int], Any] = lambda n: None) -> list[str]:
        """Compare every array with its checksums; return what differs, in words.

        Parameters
        ----------
        advance : callable, optional
            Called with the number of bytes that were read.

        Returns
        -------
        list of str
            One entry for every damaged chunk; empty if there is none.
        """
        return check_arrays(self.path, self.manifest["arrays"], advance)


def check_arrays(folder: Path, entries: Mapping[str, Any], advance: Callable[[int], Any] = lambda n: None) -> list[str]:
    """What differs between arrays and their entries in a manifest, in words."""
    damaged = []
    for name, entry in entries.items():
        array = FileArray(folder / f"{name}.npy")
        found = array.checksums(advance)
        borders = list(array.blocks())
        for k, (a, b) in enumerate(zip(found, entry["checksums"], strict=False)):
            if a != b:
                damaged.append(f"{name}.npy, rows {borders[k].start:,} to {borders[k].stop - 1:,}")
        if len(found) != len(entry["checksums"]):
            damaged.append(f"{name}.npy, its length")
    return damaged


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store of this version."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise FileNotFoundError(f"a store is expected at '{folder}', got no folder; make one with: fishergraph ingest.")
    if not path.is_file():
        raise FileFormatError(
            path=folder, reason="it has no manifest.json, so it is not a store", advice="check the path"
        )
    try:
        manifest = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path=path, reason=f"it is not JSON ({error})", advice="ingest again") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FileFormatError(path=path, reason="it is not the manifest of a store", advice="check the path")
    if manifest.get("format_version") != FORMAT_VERSION:
        reason = f"it has version {manifest.get('format_version')}, and this package reads version {FORMAT_VERSION}"
        raise FileFormatError(path=path, reason=reason, advice="ingest again, or use the package that wrote it")
    missing = {"arrays", "facts"} - set(manifest)
    if missing:
        raise FileFormatError(path=path, reason=f"it has no {sorted(missing)[0]!r}", advice="ingest again")
    arrays = manifest["arrays"] if isinstance(manifest["arrays"], dict) else {"arrays": None}
    bad = [name for name, entry in arrays.items() if not isinstance(entry, dict) or not entry.keys() >= _ENTRY]
    if bad:
        raise FileFormatError(path=path, reason=f"its entry of {bad[0]!r} is incomplete", advice="ingest again")
    return manifest


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file that appears whole or not at all."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=1) + "\n")


def array_entry(array: FileArray, advance: Callable[[int], Any] = lambda n: None) -> dict[str, Any]:
    """The entry of an array in a manifest."""
    return {"shape": list(array.shape), "dtype": str(array.dtype), "checksums": array.checksums(advance)}
