"""Reddit's pair, OGB's tables and the npz of Shchur et al.: as others read them, and damaged ones."""

import csv
import gzip
import io

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.datasets import ogb, read_graph
from published import D, E, N, both_ways, example, lines, ogb_files, reddit_files, shchur_file, write_files, zipped

DATA = example()


def same(data, expected, *, loops=True, x=None):
    np.testing.assert_array_equal(data.graph.toarray(), both_ways(expected["edges"], loops=loops))
    np.testing.assert_array_equal(
        data.X.toarray() if sp.issparse(data.X) else data.X, expected["x"] if x is None else x
    )
    np.testing.assert_array_equal(data.y, expected["y"])
    assert data.graph.dtype == data.X.dtype == np.float32
    assert data.y.dtype == np.int64
    assert data.graph.has_canonical_format


def same_split(data, expected):
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(data, part), expected[part])
        assert getattr(data, part).dtype == np.int64


# --- OGB ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["time", "sales_ranking"])
@pytest.mark.parametrize("form", ["folder", "folder in a folder", "zip", "unpacked"])
def test_ogb(tmp_path, kind, form):
    files = ogb_files(DATA, kind)
    path = tmp_path / "ogbn_small"
    if form == "zip":
        path = tmp_path / "small.zip"
        path.write_bytes(zipped(files, "small/"))
    elif form == "unpacked":
        write_files(path, {name.removesuffix(".gz"): gzip.decompress(content) for name, content in files.items()})
    else:
        write_files(path / "small" if "in" in form else path, files)
    data = read_graph(path)
    same(data, DATA)
    same_split(data, DATA)
    assert data.class_names == ("class 0", "class 1", "class 2", "class 3")
    assert data.name == path.stem


def test_ogb_in_blocks_of_few_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(ogb, "BLOCK", 256)
    same(read_graph(write_files(tmp_path, ogb_files(DATA))), DATA)


def test_ogb_as_a_csv_reader_reads_it(tmp_path):
    """The layout by the standard library: nothing of the package, nothing of Arrow."""
    write_files(tmp_path, ogb_files(DATA))
    rows = {}
    for name in ("edge", "node-feat", "node-label"):
        with gzip.open(tmp_path / "raw" / f"{name}.csv.gz", "rt", newline="") as file:
            rows[name] = [[float(cell) for cell in row] for row in csv.reader(file)]
    data = read_graph(tmp_path)
    np.testing.assert_array_equal(data.X, np.array(rows["node-feat"], dtype=np.float32))
    np.testing.assert_array_equal(data.y, np.array(rows["node-label"])[:, 0])
    np.testing.assert_array_equal(data.graph.toarray(), both_ways(np.array(rows["edge"], dtype=int)))


def test_ogb_labels_that_are_absent_and_no_split(tmp_path):
    files = {name: content for name, content in ogb_files(DATA).items() if not name.startswith(("split", "mapping"))}
    cells = ["nan" if i == 3 else str(label) for i, label in enumerate(DATA["y"])]
    files["raw/node-label.csv.gz"] = gzip.compress("\n".join(cells).encode())
    data = read_graph(write_files(tmp_path, files))
    assert data.y[3] == -1
    np.testing.assert_array_equal(np.delete(data.y, 3), np.delete(DATA["y"], 3))
    assert data.n_splits == 0
    assert data.class_names is None


def cut(content):
    return content[: len(content) // 2]


FEATURES, EDGES, LABELS = ogb_files(DATA)["raw/node-feat.csv.gz"], ogb_files(DATA)["raw/edge.csv.gz"], lines(DATA["y"])
BAD_OGB = {
    "a truncated gzip": (
        "raw/node-feat.csv.gz",
        cut(FEATURES),
        r"node-feat\.csv\.gz'.*row 0 or later",
    ),
    "truncated edges": (
        "raw/edge.csv.gz",
        cut(EDGES),
        r"edge\.csv\.gz'.*lines of 2 numbers",
    ),
    "truncated labels": ("raw/node-label.csv.gz", cut(LABELS), r"node-label\.csv\.gz'.*lines of 1"),
    "no gzip": ("raw/edge.csv.gz", b"<html>404</html>", r"edge\.csv\.gz'"),
    "it is empty": ("raw/edge.csv.gz", b"", r"edge\.csv\.gz'"),
    "an empty table": ("raw/edge.csv.gz", gzip.compress(b""), r"edge\.csv\.gz'"),
    "too few rows": ("raw/node-feat.csv.gz", lines(DATA["x"][:-1]), "30 rows"),
    "too many rows": ("raw/edge.csv.gz", lines(np.vstack([DATA["edges"]] * 2)), "70 rows"),
    "text": ("raw/node-feat.csv.gz", gzip.compress(b"a,b\nc,d\n"), "2 numbers"),
    "a ragged row": ("raw/node-feat.csv.gz", gzip.compress(b"1,2\n3\n"), r"Expected 2 columns"),
    "a node that is not": (
        "raw/edge.csv.gz",
        lines(np.full((E, 2), N)),
        "30 to 30",
    ),
    "NaN": (
        "raw/node-feat.csv.gz",
        lines(np.where(DATA["x"] == DATA["x"][4, 1], np.nan, DATA["x"])),
        "infinity in row 4",
    ),
    "a split of others": (
        "split/time/test.csv.gz",
        lines(np.array([2, -1])),
        r"test\.csv\.gz'.*node numbers",
    ),
    "no nodes": ("raw/num-node-list.csv.gz", lines(np.array([0])), r"positive number"),
    "other names": (
        "mapping/labelidx2arxivcategeory.csv.gz",
        gzip.compress(b"a\nb\n"),
        "per line",
    ),
}


@pytest.mark.parametrize("what", BAD_OGB)
@pytest.mark.parametrize("form", ["folder", "zip"])
def test_bad_ogb(tmp_path, what, form):
    name, content, message = BAD_OGB[what]
    files = ogb_files(DATA) | {name: content}
    path = tmp_path
    if form == "zip":
        path = tmp_path / "arxiv.zip"
        path.write_bytes(zipped(files, "arxiv/"))
    else:
        write_files(tmp_path, files)
    with pytest.raises(ValueError, match=message) as caught:
        read_graph(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_ogb_without_a_file(tmp_path):
    files = ogb_files(DATA)
    del files["raw/node-label.csv.gz"]
    with pytest.raises(FileNotFoundError, match="node-label"):
        read_graph(write_files(tmp_path, files))


# --- Reddit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["folder", "raw", "zip"])
def test_reddit(tmp_path, form):
    path = tmp_path / "reddit.zip"
    if form == "zip":
        path.write_bytes(zipped(reddit_files(DATA)))
    else:
        path = tmp_path / "Reddit"
        write_files(path / "raw" if form == "raw" else path, reddit_files(DATA))
    data = read_graph(path)
    same(data, DATA)
    same_split(data, DATA)


def test_reddit_as_pytorch_geometric_reads_it(tmp_path):
    datasets = pytest.importorskip("torch_geometric.datasets")
    write_files(tmp_path / "raw", reddit_files(DATA))
    data, other = read_graph(tmp_path), datasets.Reddit(str(tmp_path))[0]
    A = np.zeros((N, N))
    A[tuple(other.edge_index.numpy())] = 1
    np.testing.assert_array_equal(data.graph.toarray(), np.maximum(A, A.T))
    np.testing.assert_array_equal(data.X, other.x.numpy())
    np.testing.assert_array_equal(data.y, other.y.numpy())
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(data, part), np.flatnonzero(getattr(other, f"{part}_mask").numpy()))


def saved(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def saved_graph(n, indices=(), indptr=None):
    matrix = sp.csr_matrix((n, n))
    pieces = (np.ones(len(indices)), np.array(indices, dtype=int), matrix.indptr if indptr is None else indptr)
    matrix.data, matrix.indices, matrix.indptr = pieces
    stream = io.BytesIO()
    sp.save_npz(stream, matrix)
    return stream.getvalue()


GOOD = {"feature": np.ones((N, D)), "label": DATA["y"], "node_types": np.ones(N, dtype=int)}
BAD_REDDIT = {
    "a cut file": (
        "reddit_data.npz",
        cut(reddit_files(DATA)["reddit_data.npz"]),
        r"reddit_data\.npz",
    ),
    "a cut graph": (
        "reddit_graph.npz",
        cut(reddit_files(DATA)["reddit_graph.npz"]),
        r"reddit_graph\.npz",
    ),
    "an array in its place": ("reddit_graph.npz", saved(a=np.ones(3)), r"reddit_graph\.npz"),
    "no labels": ("reddit_data.npz", saved(feature=np.ones((N, D)), node_types=np.ones(N, int)), r"an array 'label'"),
    "fewer features": ("reddit_data.npz", saved(**(GOOD | {"feature": np.ones((3, D))})), r"features of 30 nodes"),
    "infinity": ("reddit_data.npz", saved(**(GOOD | {"feature": np.full((N, D), np.inf)})), "row 0"),
    "fewer kinds": (
        "reddit_data.npz",
        saved(**(GOOD | {"node_types": np.ones(4, dtype=int)})),
        r"'node_types' of shape",
    ),
    "another graph": ("reddit_graph.npz", saved_graph(7), r"shape \(7, 7\)"),
    "a graph that points outside": (
        "reddit_graph.npz",
        saved_graph(N, [N], np.minimum(np.arange(N + 1), 1)),
        "indices",
    ),
    "a graph with pointers beyond it": (
        "reddit_graph.npz",
        saved_graph(N, [0], np.array([0, 9] + [1] * (N - 1))),
        r"reddit_graph\.npz",
    ),
}


@pytest.mark.parametrize("what", BAD_REDDIT)
def test_bad_reddit(tmp_path, what):
    name, content, message = BAD_REDDIT[what]
    with pytest.raises(ValueError, match=message):
        read_graph(write_files(tmp_path, reddit_files(DATA) | {name: content}))


def test_reddit_without_its_graph(tmp_path):
    files = reddit_files(DATA)
    del files["reddit_graph.npz"]
    with pytest.raises(FileNotFoundError, match=r"file reddit_graph\.npz"):
        read_graph(write_files(tmp_path, files))


# --- Shchur et al. --------------------------------------------------------------------------------------


def test_shchur(tmp_path):
    (tmp_path / "g.npz").write_bytes(shchur_file(DATA))
    data = read_graph(tmp_path / "g.npz")
    same(data, DATA, loops=False, x=np.round(np.abs(DATA["x"]) * 2))
    assert sp.issparse(data.X)
    assert data.n_splits == 0


def test_shchur_with_dense_features(tmp_path):
    dense = {f"attr_{piece}": None for piece in ("data", "indices", "indptr", "shape")}
    (tmp_path / "g.npz").write_bytes(shchur_file(DATA, attr_matrix=DATA["x"], **dense))
    same(read_graph(tmp_path / "g.npz"), DATA, loops=False)


def test_shchur_as_pytorch_geometric_reads_it(tmp_path):
    datasets = pytest.importorskip("torch_geometric.datasets")
    write_files(tmp_path / "Computers" / "raw", {"amazon_electronics_computers.npz": shchur_file(DATA)})
    data = read_graph(tmp_path / "Computers" / "raw" / "amazon_electronics_computers.npz")
    other = datasets.Amazon(str(tmp_path), "Computers")[0]
    edges = np.stack(data.graph.nonzero())
    np.testing.assert_array_equal(edges, other.edge_index.numpy())
    np.testing.assert_array_equal(data.X.toarray() > 0, other.x.numpy() > 0)  # which makes counts ones
    np.testing.assert_array_equal(data.y, other.y.numpy())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "an array 'labels'"),
        ({"labels": DATA["y"][:5]}, "adjacency"),
        ({"labels": DATA["x"]}, "integers in 'labels'"),
        ({"adj_indices": None}, "an array 'adj_indices'"),
        ({"adj_indices": np.full(E, 99)}, "adj_data"),
        ({"attr_shape": np.array([N, 1])}, "attr_data"),
        ({"attr_data": None}, "an array 'attr_data'"),
        ({"attr_shape": np.array([3, 5])}, "attr_data"),
        ({"labels": np.array([None] * N)}, "cannot be read"),
    ],
)
def test_bad_shchur(tmp_path, changes, message):
    path = tmp_path / "g.npz"
    path.write_bytes(shchur_file(DATA, **changes))
    with pytest.raises(ValueError, match=message) as caught:
        read_graph(path)
    assert str(path) in str(caught.value)


# --- any path -------------------------------------------------------------------------------------------


def test_a_path_of_no_layout_says_what_is_known_and_what_is_there(tmp_path):
    (tmp_path / "letter.docx").write_bytes(b"PK\x03\x04")
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    np.savez(tmp_path / "set.npz", graph_ptr=np.array([0, 2]), y=np.ones(1))
    for path, got in (
        (tmp_path / "letter.docx", r"a file of the type '\.docx'"),
        (tmp_path / "other.npz", "an npz file with the arrays weights"),
        (tmp_path / "set.npz", "a set of graphs, which load_graphs reads"),
        (tmp_path, "a folder with letter.docx, other.npz, set.npz"),
    ):
        with pytest.raises(ValueError, match=got):
            read_graph(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="nothing"):
        read_graph(tmp_path / "empty")


@pytest.mark.parametrize("name", ["g.npz", "arxiv.zip"])
def test_a_web_page_under_the_name_of_an_archive(tmp_path, name):
    (tmp_path / name).write_bytes(b"<!DOCTYPE html>\n<html>Not found</html>")
    with pytest.raises(ValueError, match="HTML"):
        read_graph(tmp_path / name)


def test_half_an_archive(tmp_path):
    (tmp_path / "arxiv.zip").write_bytes(cut(zipped(ogb_files(DATA), "arxiv/")))
    with pytest.raises(ValueError, match=r"arxiv\.zip'"):
        read_graph(tmp_path / "arxiv.zip")


def test_a_path_with_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_graph(tmp_path / "absent.npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="it is empty"):
        read_graph(tmp_path / "empty.npz")
