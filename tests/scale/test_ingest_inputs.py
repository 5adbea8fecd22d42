"""What ingest reads: tables, folders, patterns, URLs, arrays, packed files and the layouts of other libraries."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from fishergraph import as_graph
from fishergraph.datasets import load_graph, read_graph, write_npz
from fishergraph.io.tables import read_edges, read_nodes
from fishergraph.scale import ingest, write_store
from fishergraph.scale.ingestion import job
from shared_data import needs_shared_data, shared_data

RNG = np.random.default_rng(0)
SOURCE, TARGET = RNG.integers(50, size=(2, 400))
WEIGHT = RNG.random(400)
X = RNG.standard_normal((50, 4)).astype(np.float32)
TABLE = pa.table({"source": SOURCE, "target": TARGET, "weight": WEIGHT})


@pytest.fixture(params=[None, 2000], ids=["one block", "blocks"])
def budget(request, monkeypatch):
    """Edges at once, or a few at a time."""
    if request.param is not None:
        monkeypatch.setattr(job, "_work", lambda memory: request.param)
        monkeypatch.setattr(job.np, "clip", lambda value, low, high: 70)
    return request.param


@pytest.fixture
def expected(tmp_path):
    """The store of the table, made in memory."""
    return write_store(tmp_path / "expected", as_graph(TABLE))


def same(found, graph, features=None, **options):
    """The store holds a graph and features that were made in memory."""
    path = found.path.with_name(found.path.name + "_memory")
    assert found.digest == write_store(path, graph, features, **options).digest
    assert found.check() == []


# --- tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt", ".parquet"])
def test_tables(tmp_path, budget, expected, suffix):
    path = tmp_path / f"edges{suffix}"
    write_table(TABLE, path)
    assert ingest(path, tmp_path / "store").digest == expected.digest


def write_table(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    options = pacsv.WriteOptions(delimiter="," if ".csv" in path.name else "\t")
    with pa.output_stream(path) as stream:
        pacsv.write_csv(table, stream, options)


def test_a_text_file_without_header_and_with_comments(tmp_path, budget, expected):
    path = tmp_path / "edges.txt"
    rows = zip(SOURCE, TARGET, WEIGHT.tolist(), strict=True)
    path.write_text("# a graph\n# FromNodeId\tToNodeId\n\n" + "".join(f"{a}\t{b}\t{w!r}\n" for a, b, w in rows))
    assert ingest(path, tmp_path / "store").digest == expected.digest
    path.write_text("# a graph\n" + "".join(f"{a} {b}\n" for a, b in zip(SOURCE, TARGET, strict=True)))
    same(ingest(path, tmp_path / "plain"), as_graph(TABLE.select(["source", "target"])))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("how", ["folder", "nested", "pattern"])
def test_many_files(tmp_path, budget, expected, suffix, how):
    folder = tmp_path / "edges"
    for k in range(4):
        part = folder / f"year={k}" if how == "nested" else folder
        part.mkdir(parents=True, exist_ok=True)
        write_table(TABLE.slice(100 * k, 100), part / f"part-{k}{suffix}")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").touch()
    path = f"{folder}/part-*{suffix}" if how == "pattern" else folder
    assert ingest(path, tmp_path / "store").digest == expected.digest


TEXTS = [
    "source,target\na,b\nb,c\n",
    "source,target\n1,2\n2,x\n",  # one column of text makes text of the other
    "source,target\n007,1\n1,8\n",  # as printed, or else text
    "source,target\n 1 , 2\n2,1\n",  # blanks do not count
    'source,target\n"a b",c\n"1",c\n',
    "source,target\n-5,3\n3,-5\n",
    "source,target\nNA,b\nb,c\n",  # a word among words
    "u,v\n1,2\n",
    "SRC,Dst,Weight\n1,2,3\n",
    "\ufeffsource,target\n1,2\n",
    "1,2\n2,3\n",
    "1,2,0.5\n2,3,1\n",
    "source,target\r\n1,2\r\n2,1\r\n",
    "source,target,other\n1,2,x\n2,1,y\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_read_as_it_is_in_memory(tmp_path, text):
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="utf-8")
    same(ingest(path, tmp_path / "store"), as_graph(read_edges(path)))


def test_text_after_many_numbers_makes_text_of_them(tmp_path, budget):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in zip(SOURCE, TARGET, strict=True)) + "x,1\n")
    same(ingest(path, tmp_path / "store"), as_graph(read_edges(path)))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_tables_of_nodes(tmp_path, budget, suffix):
    ids = RNG.permutation(50)
    nodes = pa.table(
        {"name": ids, "a": X[:, 0], "flag": X[:, 1] > 0, "count": (X[:, 2] * 9).astype(int), "topic": ["x"] * 50}
    )
    write_table(nodes, tmp_path / f"nodes{suffix}")
    write_table(TABLE, tmp_path / "edges.parquet")
    arguments = tmp_path / "edges.parquet", tmp_path / "store", tmp_path / f"nodes{suffix}"
    found = ingest(*arguments, id_column="name", drop=["topic"])
    names, features, columns = read_nodes(arguments[2], "name", drop=["topic"])
    assert found.feature_names == columns == ["a", "flag", "count"]
    same(found, as_graph(TABLE, node_ids=names), features, feature_names=columns)


def test_columns_of_lists(tmp_path, budget):
    """What vector databases write: all features of a node in one column."""
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
    loose = pa.array(X.tolist())
    for k, column in enumerate((fixed, loose)):
        pq.write_table(pa.table({"id": np.arange(50), "z": column}), tmp_path / "nodes.parquet")
        write_table(TABLE, tmp_path / "edges.parquet")
        found = ingest(tmp_path / "edges.parquet", tmp_path / f"store{k}", tmp_path / "nodes.parquet")
        same(found, as_graph(TABLE, n_nodes=None, node_ids=np.arange(50)), X)


def test_nodes_in_several_files(tmp_path, budget):
    (tmp_path / "nodes").mkdir()
    table = pa.table({"id": np.arange(50)[::-1], "a": X[:, 0], "b": X[:, 1]})
    for k in range(5):
        pq.write_table(table.slice(10 * k, 10), tmp_path / "nodes" / f"{k}.parquet")
    write_table(TABLE, tmp_path / "edges.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "store", tmp_path / "nodes")
    same(found, as_graph(TABLE, node_ids=np.arange(50)[::-1]), X[:, :2])


# --- arrays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16, ">i8"])
@pytest.mark.parametrize("form", ["(2, E)", "(E, 2)", "(2, E) by columns", "(E, 2) by columns"])
def test_arrays_of_edges(tmp_path, budget, form, dtype):
    edges = np.stack([SOURCE, TARGET]).astype(dtype)
    edges = edges.T if form.startswith("(E") else edges
    np.save(tmp_path / "edges.npy", np.asarray(edges, order="F" if "columns" in form else "C"))
    same(ingest(tmp_path / "edges.npy", tmp_path / "store"), as_graph(np.stack([SOURCE, TARGET])))


def test_two_edges_in_an_array(tmp_path):
    """Of shape (2, 2), which `as_graph` reads as (2, E)."""
    np.save(tmp_path / "edges.npy", np.array([[0, 1], [2, 3]]))
    same(ingest(tmp_path / "edges.npy", tmp_path / "store"), as_graph(np.array([[0, 1], [2, 3]])))


def test_numbers_without_edges_are_nodes_in_an_array(tmp_path):
    """Row numbers are kept, where ids of a table would be counted."""
    np.save(tmp_path / "edges.npy", np.array([[5], [2]]))
    assert ingest(tmp_path / "edges.npy", tmp_path / "store").n_nodes == 6


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, ">f4"])
def test_a_matrix_of_features(tmp_path, budget, order, dtype):
    matrix = np.asarray((9 * X).astype(dtype), order=order)
    np.save(tmp_path / "X.npy", matrix)
    write_table(TABLE, tmp_path / "edges.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "store", tmp_path / "X.npy")
    same(found, as_graph(TABLE, node_ids=np.arange(50)), matrix.astype(np.float32))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "ids", "both ways", "edges"])
def test_npz_files(tmp_path, budget, packed, kind):
    arrays = {"edge_index": np.stack([SOURCE, TARGET]), "edge_weight": WEIGHT.astype(np.float32)}
    features, ids = None, None
    if kind in ("dense", "both ways"):
        features = arrays["x"] = X
    if kind in ("sparse", "ids"):
        features = sp.csr_array(np.where(X > 0, X, 0))
        arrays |= {f"x_{name}": getattr(features, name) for name in ("data", "indices", "indptr")}
        arrays["x_shape"] = np.array(features.shape)
    if kind == "ids":
        ids = arrays["ids"] = np.array([f"n{k}" for k in range(50)])
    arrays["undirected"] = np.array(kind == "both ways")
    (np.savez_compressed if packed else np.savez)(tmp_path / "graph.npz", **arrays)
    found = ingest(tmp_path / "graph.npz", tmp_path / "store")
    graph = as_graph(read_edges(tmp_path / "graph.npz"), node_ids=ids if ids is not None else np.arange(50))
    same(found, graph, features)


def test_ids_of_an_npz_file_are_found_in_another_file_of_nodes(tmp_path, budget):
    ids = np.array([f"n{k}" for k in range(50)])
    np.savez(tmp_path / "graph.npz", edge_index=np.stack([SOURCE, TARGET]), ids=ids)
    pq.write_table(pa.table({"id": ids[::-1], "f": X[:, 0]}), tmp_path / "nodes.parquet")
    found = ingest(tmp_path / "graph.npz", tmp_path / "store", tmp_path / "nodes.parquet")
    same(found, as_graph(read_edges(tmp_path / "graph.npz"), node_ids=ids[::-1]), X[:, :1], feature_names=["f"])


def test_the_files_of_write_npz(tmp_path):
    cora = load_graph("cora")
    write_npz(cora, tmp_path / "cora.npz")
    same(ingest(tmp_path / "cora.npz", tmp_path / "store"), as_graph(cora.graph), cora.X, ids=cora.ids)


# --- layouts of other libraries -------------------------------------------------------------------------


def write_ogb(folder, *, zipped=True):
    """A graph in OGB's text layout."""
    (folder / "raw").mkdir(parents=True)

    def write(name, rows):
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        with gzip.open(folder / "raw" / f"{name}.csv.gz", "wt") as file:
            file.write(text)

    write("edge", zip(SOURCE, TARGET, strict=True))
    write("num-node-list", [[52]])
    write("num-edge-list", [[len(SOURCE)]])
    write("node-feat", np.vstack([X, X[:2]]).tolist())
    write("node-label", [[0]] * 52)


def test_ogb_in_text(tmp_path, budget):
    write_ogb(tmp_path / "ogb")
    found = ingest(tmp_path / "ogb", tmp_path / "store", undirected=True)
    graph = as_graph(np.stack([SOURCE, TARGET]), n_nodes=52, undirected=True)
    same(found, graph, np.vstack([X, X[:2]]))
    read = read_graph(tmp_path / "ogb")  # which drops the weights of parallel edges
    assert np.array_equal(found.indices[:], read.graph.indices)


def test_ogb_in_arrays(tmp_path, budget):
    (tmp_path / "ogb" / "raw").mkdir(parents=True)
    arrays = {"edge_index": np.stack([SOURCE, TARGET]), "node_feat": X.astype(np.float16)}
    arrays |= {"num_nodes_list": np.array([50]), "num_edges_list": np.array([400])}
    np.savez_compressed(tmp_path / "ogb" / "raw" / "data.npz", **arrays)
    found = ingest(tmp_path / "ogb", tmp_path / "store", dtype="float16")
    assert np.load(found.path / "features.npy").tolist() == X.astype(np.float16).tolist()
    graph = as_graph(np.stack([SOURCE, TARGET]), n_nodes=50)
    assert np.array_equal(found.indices[:], graph.indices)
    assert np.array_equal(found.indptr[:], graph.indptr)


@pytest.mark.parametrize("weights", [None, "edge_weight", "edge_attr"])
def test_pyg(tmp_path, budget, weights):
    torch = pytest.importorskip("torch")
    pyg = pytest.importorskip("torch_geometric.data")
    data = pyg.Data(x=torch.from_numpy(X), edge_index=torch.from_numpy(np.stack([SOURCE, TARGET])))
    if weights is not None:
        data[weights] = torch.from_numpy(WEIGHT)
    (tmp_path / "set" / "processed").mkdir(parents=True)
    torch.save((data.to_dict(), None, type(data)), tmp_path / "set" / "processed" / "data.pt")
    same(ingest(tmp_path / "set", tmp_path / "store"), as_graph(data), X)
    torch.save(data, tmp_path / "data.pt")
    same(ingest(tmp_path / "data.pt", tmp_path / "single"), as_graph(data), X)


def test_shchur(tmp_path):
    cora = load_graph("cora")
    A, features = sp.csr_matrix(cora.graph), sp.csr_matrix(cora.X)
    arrays = {f"adj_{name}": getattr(A, name) for name in ("data", "indices", "indptr", "shape")}
    arrays |= {f"attr_{name}": getattr(features, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "cora.npz", labels=cora.y, **arrays)
    read = read_graph(tmp_path / "cora.npz")
    same(ingest(tmp_path / "cora.npz", tmp_path / "store"), as_graph(read.graph), read.X)


@pytest.mark.slow
@needs_shared_data
def test_a_real_graph(tmp_path):
    path = shared_data() / "arxiv.npz"
    if not path.is_file():
        pytest.skip("arxiv is not there")
    arrays = np.load(path)
    found = ingest(path, tmp_path / "store", memory="1G")
    assert found.n_nodes == 169_343
    assert np.array_equal(found.features[:1000], arrays["x"][:1000].astype(np.float32))
    same(found, as_graph(read_edges(path), node_ids=np.arange(found.n_nodes)), arrays["x"])


# --- URLs -----------------------------------------------------------------------------------------------


@pytest.fixture
def remote():
    """A file system in memory, behind fsspec."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.mark.parametrize("path", ["memory://bucket/edges", "memory://bucket/edges/*.parquet"])
def test_urls(tmp_path, budget, remote, expected, path):
    for k in range(4):
        write_table(TABLE.slice(100 * k, 100), tmp_path / "part.parquet")
        remote.pipe(f"/bucket/edges/year={k % 2}-{k}.parquet", (tmp_path / "part.parquet").read_bytes())
    remote.pipe("/bucket/edges/_SUCCESS", b"")
    order = [0, 2, 1, 3]
    table = pa.concat_tables([TABLE.slice(100 * k, 100) for k in order])
    found = ingest(path, tmp_path / "store")
    same(found, as_graph(table))
    assert not list(tmp_path.glob(".store*"))


def test_urls_of_nodes_and_arrays(tmp_path, budget, remote):
    for name, values in (("X", X), ("edges", np.stack([SOURCE, TARGET]))):
        np.save(tmp_path / f"{name}.npy", values)
        remote.pipe(f"/bucket/{name}.npy", (tmp_path / f"{name}.npy").read_bytes())
    found = ingest("memory://bucket/edges.npy", tmp_path / "store", "memory://bucket/X.npy")
    same(found, as_graph(np.stack([SOURCE, TARGET]), n_nodes=50), X)
    edges = ingest(f"file://{tmp_path}/edges.npy", tmp_path / "local")
    assert edges.n_nodes == max(SOURCE.max(), TARGET.max()) + 1


def test_the_manifest_names_the_files(tmp_path):
    write_table(TABLE, tmp_path / "edges.csv")
    store = ingest(tmp_path / "edges.csv", tmp_path / "store")
    facts = json.loads((store.path / "manifest.json").read_text())["facts"]
    assert facts["edges"] == str(tmp_path / "edges.csv")
    assert facts["nodes"] is None
