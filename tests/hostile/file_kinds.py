"""Good files of every kind that is read, as bytes: what `file_damage` then spoils."""

from __future__ import annotations

import functools
import gzip
import io
import json
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp

from published import example, ogb_files, reddit_files, shchur_file, zipped

Files = dict[str, Any]  # path: bytes, or a function that makes something else at a path
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
N, D = 12, 3


def edge_table(rng: np.random.Generator, ids: list[Any]) -> pa.Table:
    """Edges of a ring and some more, with weights."""
    ends = np.concatenate([np.stack([np.arange(N), np.roll(np.arange(N), 1)]), rng.integers(0, N, (2, N))], axis=1)
    source, target = ([ids[k] for k in end] for end in ends)
    return pa.table({"source": source, "target": target, "weight": rng.random(2 * N) + 0.1})


def node_table(rng: np.random.Generator, ids: list[Any]) -> pa.Table:
    """Ids, features, and a class of every node."""
    X = rng.normal(size=(N, D))
    y = pa.array(["ape" if k % 2 else "bee" for k in range(N)])
    return pa.table({"id": ids, **{f"x{j}": X[:, j] for j in range(D)}, "y": y})


def write_table(table: pa.Table, suffix: str) -> bytes:
    """A table as the bytes of a file."""
    sink = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(table, sink)
    else:
        pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter="\t" if "tsv" in suffix else ","))
    return gzip.compress(sink.getvalue()) if suffix.endswith(".gz") else sink.getvalue()


def write_text(rows: list[list[str]], suffix: str) -> bytes:
    """Rows of cells as they are, without quotes."""
    mark = "\t" if "tsv" in suffix else ","
    text = "".join(mark.join(row) + "\n" for row in rows).encode("utf-8", "surrogatepass")
    return gzip.compress(text) if suffix.endswith(".gz") else text


def edge_text(rng: np.random.Generator) -> tuple[str, bytes]:
    """(suffix, edges as text without header, with a comment, in some separator, packed or not)."""
    mark = str(rng.choice([" ", "\t", ";", "|", ","]))
    names = [f"n{k}" for k in range(N)] if rng.random() < 0.5 else [str(k) for k in range(N)]
    ends = rng.integers(0, N, (2 * N, 2))
    rows = [mark.join([names[a], names[b], str(1 + a)]) for a, b in ends]
    text = ("# a comment\n" + "\n".join(rows) + "\n").encode()
    packing = str(rng.choice(["", ".gz", ".zst"]))
    suffix = str(rng.choice([".txt", ".edges", ".el"])) + packing
    packed = {"": lambda: text, ".gz": lambda: gzip.compress(text), ".zst": lambda: _zstd(text)}[packing]()
    return suffix, packed


def _zstd(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content).to_pybytes()


def graph_text(rng: np.random.Generator, kind: str) -> bytes:
    """A graph with attributes as GraphML, GML, JSON or MatrixMarket."""
    G = nx.gnm_random_graph(N, 2 * N, seed=int(rng.integers(2**31)), directed=bool(rng.random() < 0.5))
    nx.set_node_attributes(G, {node: float(node) / 3 for node in G}, "x")
    nx.set_edge_attributes(G, 2.5, "weight")
    sink = io.BytesIO()
    if kind == ".graphml":
        nx.write_graphml(G, sink)
    elif kind == ".gml":
        nx.write_gml(G, sink)
    elif kind == ".json":
        sink.write(json.dumps(nx.node_link_data(G, edges="links")).encode())
    else:
        scipy.io.mmwrite(sink, nx.to_scipy_sparse_array(G, format="coo"))
    return sink.getvalue()


def npz_arrays(rng: np.random.Generator) -> dict[str, Any]:
    """A graph with features, labels, ids and masks."""
    ends = np.concatenate([np.stack([np.arange(N), np.roll(np.arange(N), 1)]), rng.integers(0, N, (2, N))], axis=1)
    marks = np.arange(N) % 3
    return {
        "edge_index": ends,
        "edge_weight": rng.random(2 * N) + 0.1,
        "x": rng.normal(size=(N, D)),
        "y": np.arange(N) % 2,
        "ids": np.array([f"n{k}" for k in range(N)]),
        "train_mask": marks == 0,
        "val_mask": marks == 1,
        "test_mask": marks == 2,
    }


def sparse_arrays(rng: np.random.Generator) -> dict[str, Any]:
    """The same with sparse features."""
    X = sp.csr_array(sp.random_array((N, D), density=0.6, rng=rng))
    arrays = {key: value for key, value in npz_arrays(rng).items() if key != "x"}
    return arrays | {"x_data": X.data, "x_indices": X.indices, "x_indptr": X.indptr, "x_shape": np.array(X.shape)}


def write_npz(arrays: dict[str, Any]) -> bytes:
    """Arrays as the bytes of a file; objects are pickled, as NumPy does when asked."""
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def set_arrays(rng: np.random.Generator) -> dict[str, Any]:
    """A set of three graphs."""
    ends = np.array([[0, 1, 3, 4, 6, 7], [1, 2, 4, 5, 7, 8]])
    X = rng.normal(size=(9, 2))
    return {"graph_ptr": np.array([0, 3, 6, 9]), "y": np.array([0, 1, 0]), "edge_index": ends, "x": X}


def tu_files() -> Files:
    """Two graphs in the text format of the TU collection."""
    texts = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
        "graph_indicator": "1\n1\n1\n2\n2\n",
        "graph_labels": "-1\n1\n",
        "node_labels": "0\n1\n0\n0\n0\n",
        "node_attributes": "0.5, 1\n1, 2\n3, 4\n5, 6\n7, 8\n",
        "edge_attributes": "0.5\n0.5\n2\n2\n1\n1\n",
    }
    return {f"TINY_{name}.txt": text.encode() for name, text in texts.items()}


def planetoid_files() -> Files:
    """Six nodes in the pickles of Planetoid."""
    parts = {
        "x": sp.csr_matrix(np.eye(2, 3, dtype=np.float32)),
        "y": np.eye(2, dtype=np.int32),
        "tx": sp.csr_matrix(np.array([[0, 0, 5], [0, 3, 0]], dtype=np.float32)),
        "ty": np.array([[0, 1], [1, 0]], dtype=np.int32),
        "allx": sp.csr_matrix(np.eye(3, dtype=np.float32)),
        "ally": np.array([[1, 0], [0, 1], [0, 1]], dtype=np.int32),
        "graph": defaultdict(list, {0: [1, 1, 0], 1: [2], 5: [0]}),
    }
    files = {f"ind.small.{part}": pickle.dumps(value, protocol=2) for part, value in parts.items()}
    return {**files, "ind.small.test.index": b"5\n3\n"}


def pt_content(rng: np.random.Generator) -> dict[str, Any]:
    """The fields of a graph in a processed file of PyTorch Geometric."""
    import torch

    arrays = npz_arrays(rng)
    keys = ("edge_index", "x", "y", "train_mask", "val_mask", "test_mask")
    return {key: torch.from_numpy(arrays[key]) for key in keys}


def write_pt(content: Any, *, old: bool = False) -> bytes:
    """Any object as PyTorch saves it."""
    import torch

    sink = io.BytesIO()
    torch.save(content, sink, _use_new_zipfile_serialization=not old)
    return sink.getvalue()


def source(kind: str, rng: np.random.Generator) -> tuple[str, Files]:
    """(the path that a `data` command is given, the files)."""
    data = example(int(rng.integers(100)))
    folders: dict[str, Any] = {
        "ogb": lambda: ogb_files(data),
        "reddit": lambda: reddit_files(data),
        "planetoid": planetoid_files,
        "tu": tu_files,
    }
    if kind in folders:
        return "TINY", {f"TINY/{name}": content for name, content in folders[kind]().items()}
    if kind.endswith(" zip"):
        return "TINY.zip", {"TINY.zip": zipped(folders[kind.removesuffix(" zip")](), "TINY/")}
    if kind == "tables":
        ids = [f"n{k}" for k in range(N)]
        suffix = str(rng.choice(TABLES))
        nodes = node_table(rng, ids).rename_columns(["id", "x0", "x1", "x2", "label"])
        edges = edge_table(rng, ids).select(["source", "target"]).slice(0, N)  # the ring alone: each edge once
        files = {f"g.edges{suffix}": write_table(edges, suffix)}
        return f"g.nodes{suffix}", files | {f"g.nodes{suffix}": write_table(nodes, suffix)}
    content = {
        "npz": lambda: write_npz(npz_arrays(rng)),
        "sparse npz": lambda: write_npz(sparse_arrays(rng)),
        "set npz": lambda: write_npz(set_arrays(rng)),
        "shchur": lambda: shchur_file(data),
    }[kind]()
    return "g.npz", {"g.npz": content}


SOURCES = (
    "npz",
    "sparse npz",
    "set npz",
    "shchur",
    "ogb",
    "ogb zip",
    "reddit",
    "reddit zip",
    "planetoid",
    "tu",
    "tu zip",
    "tables",
)


@functools.cache
def embedding_model() -> bytes:
    """A fitted FisherEmbedding of D features."""
    from fishergraph import FisherEmbedding

    rng = np.random.default_rng(0)
    model = FisherEmbedding(n_layers=1, dim=4, n_anchors=2, random_state=0)
    return _saved(model.fit(_frame(rng), graph=sp.csr_array(np.eye(N))))


@functools.cache
def classifier_model() -> bytes:
    """A trained FisherClassifier of D features."""
    from fishergraph import FisherClassifier
    from fishergraph.nn import Training

    rng = np.random.default_rng(0)
    training = Training(max_epochs=2, validation_fraction=0.0)
    model = FisherClassifier(n_layers=1, dim=4, n_anchors=2, training=training, random_state=0)
    return _saved(model.fit(_frame(rng), np.arange(N) % 2, graph=sp.csr_array(np.eye(N))))


def _frame(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(N, D)), columns=[f"x{j}" for j in range(D)])


def _saved(model: Any) -> bytes:
    path = Path("model-of-the-suite")
    model.save(path)
    content = path.read_bytes()
    path.unlink()
    return content
