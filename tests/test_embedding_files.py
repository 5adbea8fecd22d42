"""Files of embeddings: what is written by blocks of rows comes back, in every format and layout, or not at all."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from commands import ok, wrong
from fishergraph import FisherEmbedding
from fishergraph._errors import FileFormatError, InputError
from fishergraph.io import embedding_file
from fishergraph.io.embedding_file import EmbeddingWriter, ids_path, write_embedding
from fishergraph.io.tables import read_columns, read_embedding, read_nodes

RNG = np.random.default_rng(0)
needs = {
    name: pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"needs {name}")
    for name in ("lance", "zarr", "duckdb")
}
FILES = [(".parquet", "vector"), (".parquet", "wide"), *((s, None) for s in (".csv", ".tsv.gz", ".npz", ".npy"))]
FOLDERS = [pytest.param((f".{name}", None), marks=needs[name]) for name in ("lance", "zarr")]
IDS = {
    "rows": None,
    "integers": np.arange(30)[::-1] * 10 - 5,
    "text": np.array([f"é,{k}" for k in range(30)]),
    "objects": [("a", k) for k in range(30)],
}
EMBEDDING = RNG.normal(size=(30, 6))


class Sliced:
    """Values that are read by slices, such as the ids of a store."""

    def __init__(self, values):
        self.values, self.longest = values, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        self.longest = max(self.longest, rows.stop - rows.start)
        return self.values[rows]


# --- round trips ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("file", [*FILES, *FOLDERS])
def test_an_embedding_comes_back(tmp_path, file, kind, dtype):
    suffix, layout = file
    Z, ids = EMBEDDING.astype(dtype), IDS[kind]
    told: list[int] = []
    about = {"blocks": [("psi0", 4), ("walk", 2)], "parameters": {"dim": 2, "walk": np.float32(0.5)}}
    names = [f"psi0_{k}" for k in range(4)] + ["walk_0", "walk_1"]
    path = tmp_path / f"z{suffix}"
    for _ in range(2):  # the second one replaces the first
        write_embedding(path, ids, Z, names, layout=layout, advance=told.append, **about)
    found = read_embedding(path)
    expected = np.arange(30) if ids is None else [str(name) for name in ids] if kind == "objects" else ids
    np.testing.assert_array_equal(found.ids, expected)
    np.testing.assert_allclose(found.Z, Z.astype(np.float32), rtol=1e-6)
    assert sum(told) > 0
    if suffix != ".npy":
        assert found.names == names
    if suffix in (".parquet", ".lance", ".zarr"):
        assert found.blocks == about["blocks"]
        assert found.parameters == {"dim": 2, "walk": 0.5}
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("file", [*FILES, *FOLDERS])
def test_ids_and_rows_are_read_by_slices(tmp_path, monkeypatch, file):
    suffix, layout = file
    monkeypatch.setattr(embedding_file, "ID_ROWS", 7)
    for limit in ("_GROUP", "_WIDE_GROUP", "_TEXT_GROUP"):
        monkeypatch.setattr(embedding_file, limit, 4 * 6 * 8)
    texts = np.array([f"node {k}" for k in range(30)], dtype=object)
    ids, told = Sliced(texts), []
    with EmbeddingWriter(
        tmp_path / f"z{suffix}", (30, 6), ids, layout=layout, advance=told.append, dtype=np.float32
    ) as writer:
        for start in range(0, 30, 11):
            writer.write(EMBEDDING[start : start + 11].astype(np.float32))
    assert ids.longest <= 8
    found = read_embedding(tmp_path / f"z{suffix}")
    np.testing.assert_array_equal(found.ids, texts)
    np.testing.assert_allclose(found.Z, EMBEDDING, rtol=1e-6)
    assert len(told) > 1 or suffix in (".csv", ".tsv.gz")


@pytest.mark.parametrize("file", FILES)
def test_the_bytes_do_not_depend_on_the_blocks(tmp_path, monkeypatch, file):
    suffix, layout = file
    for limit in ("_GROUP", "_WIDE_GROUP", "_TEXT_GROUP"):
        monkeypatch.setattr(embedding_file, limit, 4 * 6 * 8)
    contents = []
    for step in (1, 8, 9, 30):
        with EmbeddingWriter(tmp_path / f"z{suffix}", (30, 6), IDS["text"], layout=layout) as writer:
            for start in range(0, 30, step):
                writer.write(EMBEDDING[start : start + step])
        # The header of a gzip file holds the time.
        contents.append((tmp_path / f"z{suffix}").read_bytes()[20:])
    assert len(set(contents)) == 1
    if suffix == ".parquet":
        assert pq.read_metadata(tmp_path / "z.parquet").num_row_groups == 4


def test_a_parquet_file_has_one_column_of_vectors(tmp_path):
    path = tmp_path / "z.parquet"
    write_embedding(path, IDS["text"], EMBEDDING.astype(np.float32), blocks=[("psi0", 4), ("walk", 2)])
    schema = pq.read_schema(path)
    assert schema.names == ["id", "embedding"]
    assert schema.field("embedding").type.list_size == 6
    assert str(schema.field("embedding").type.value_type) == "float"
    about = json.loads(schema.metadata[b"fishergraph"])
    assert about["blocks"] == [{"name": "psi0", "first": 0, "width": 4}, {"name": "walk", "first": 4, "width": 2}]
    assert about["names"] == [f"z{k}" for k in range(6)]


def test_a_matrix_has_its_ids_beside_it(tmp_path):
    write_embedding(tmp_path / "z.npy", IDS["text"], EMBEDDING.astype(np.float16))
    assert sorted(os.listdir(tmp_path)) == ["z.ids.npy", "z.npy"]
    assert np.load(tmp_path / "z.npy").dtype == np.float16
    assert np.load(ids_path(tmp_path / "z.npy")).tolist() == IDS["text"].tolist()
    np.save(tmp_path / "f.npy", np.asfortranarray(EMBEDDING))
    ids, X, names = read_nodes(tmp_path / "f.npy")
    np.testing.assert_array_equal(X, EMBEDDING.astype(np.float32))
    assert ids.tolist() == list(range(30))
    assert names[0] == "x0"


# --- other programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("layout", ["vector", "wide"])
def test_pandas_and_polars_read_it_and_write_it_again(tmp_path, layout, dtype):
    path, Z = tmp_path / "z.parquet", EMBEDDING.astype(dtype)
    write_embedding(path, IDS["text"], Z, layout=layout)
    frame = pd.read_parquet(path)
    values = np.stack(frame["embedding"]) if layout == "vector" else frame.drop(columns="id").to_numpy()
    np.testing.assert_array_equal(values, Z)
    other = pl.read_parquet(path)
    assert other["id"].to_list() == IDS["text"].tolist()
    frame.to_parquet(tmp_path / "pandas.parquet")
    other.write_parquet(tmp_path / "polars.parquet")
    for name in ("pandas", "polars"):
        ids, X, _ = read_nodes(tmp_path / f"{name}.parquet")
        np.testing.assert_array_equal(X, Z.astype(np.float32))
        assert ids.tolist() == IDS["text"].tolist()


@needs["duckdb"]
def test_duckdb_finds_neighbours(tmp_path):
    import duckdb

    path, Z = tmp_path / "z.parquet", EMBEDDING.astype(np.float32)
    write_embedding(path, IDS["text"], Z)
    rows = duckdb.sql(
        f"select b.id, array_cosine_similarity(a.embedding::FLOAT[6], b.embedding::FLOAT[6]) as s from '{path}' a, "
        f"'{path}' b where a.id = 'é,3' order by s desc"
    ).fetchall()
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    expected = unit @ unit[3]
    assert [name for name, _ in rows] == [IDS["text"][k] for k in np.argsort(-expected)]
    np.testing.assert_allclose([s for _, s in rows], np.sort(expected)[::-1], atol=1e-6)
    duckdb.sql(f"copy (select id, embedding::FLOAT[6] as e from '{path}') to '{tmp_path}/d.parquet'")
    np.testing.assert_array_equal(read_nodes(tmp_path / "d.parquet")[1], Z)


# --- columns of vectors as features ---------------------------------------------------------------------


def put(tmp_path, **columns):
    pq.write_table(pa.table(columns), tmp_path / "n.parquet", row_group_size=2)
    return tmp_path / "n.parquet"


VECTORS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
KINDS = {
    "fixed": pa.list_(pa.float32(), 2),
    "list": pa.list_(pa.float64()),
    "large": pa.large_list(pa.int32()),
    "half": pa.list_(pa.float16(), 2),
    "decimal": pa.list_(pa.decimal128(10, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_vectors_stand_beside_numbers(tmp_path, kind):
    kind = KINDS[kind]
    entries = pa.array([1, 2, 3, 4, 5, 6], pa.int16()).cast(kind.value_type)
    values = pa.FixedSizeListArray.from_arrays(entries, 2).cast(kind)
    path = put(tmp_path, id=["a", "b", "c"], f=[7, 8, 9], v=values, label=["x", "y", "x"])
    ids, X, names = read_nodes(path, drop=["label"])
    assert ids.tolist() == ["a", "b", "c"]
    assert names == ["f", "v_0", "v_1"]
    assert X.tolist() == [[7, 1, 2], [8, 3, 4], [9, 5, 6]]
    assert X.dtype == np.float32
    _, X, names = read_nodes(path, only=["v_1", "f"])
    assert names == ["f", "v_1"]
    assert X.tolist() == [[7, 2], [8, 4], [9, 6]]
    assert read_nodes(path, only=["f"])[2] == ["f"]
    assert read_columns(path, ["label"]) == [["x", "y", "x"]]


def test_large_numbers_in_vectors_keep_their_digits(tmp_path):
    path = put(tmp_path, id=[1, 2, 3], f=[0.1, 0.2, 0.3], v=[[1.0], [2.0], [2.0**24 + 1]])
    _, X, _ = read_nodes(path)
    assert X.dtype == np.float64
    assert X[2].tolist() == [0.3, 2.0**24 + 1]


WRONG_VECTORS = {
    "ragged": (pa.array([[1.0, 2.0], [3.0, 4.0], [5.0]]), "1 numbers in row 2"),
    "longer": (pa.array([[1.0], [3.0], [5.0, 6.0, 7.0]]), "3 numbers in row 2"),
    "missing": (pa.array([[1.0], [3.0], None]), "missing value in row 2"),
    "missing fixed": (pa.array([[1.0], [3.0], None], pa.list_(pa.float32(), 1)), "missing value in row 2"),
    "missing first": (pa.array([None, [1.0], [3.0]]), "missing value in row 0"),
    "missing entry": (pa.array([[1.0, 2.0], [3.0, 2.0], [5.0, None]]), "missing value in row 2"),
    "infinite": (pa.array([[1.0], [3.0], [np.inf]]), "infinity in row 2"),
    "too large": (pa.array([[1.0], [3.0], [1e39]]), "3.4e38"),
    "words": (pa.array([["a"], ["b"], ["c"]]), "other values"),
    "nested": (pa.array([[[1.0]], [[1.0]], [[1.0]]]), "other values"),
}


@pytest.mark.parametrize("case", WRONG_VECTORS)
def test_wrong_vectors_are_named_by_their_row(tmp_path, case):
    column, pattern = WRONG_VECTORS[case]
    with pytest.raises(ValueError, match=pattern):
        read_nodes(put(tmp_path, id=[1, 2, 3], v=column))


def test_two_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="'v_0' again"):
        read_nodes(put(tmp_path, id=[1, 2, 3], v=VECTORS, v_0=[1, 2, 3]))


@pytest.mark.parametrize("names", [["a"], ["a", "a"], "ab", None, [1, 2]])
def test_what_another_program_says_of_names_is_not_trusted(tmp_path, names):
    schema = pa.schema([("v", pa.list_(pa.float32(), 2))])
    schema = schema.with_metadata({"fishergraph": json.dumps({"column": "v", "names": names, "blocks": 3})})
    pq.write_table(pa.table({"v": pa.array(VECTORS, schema.types[0])}, schema=schema), tmp_path / "n.parquet")
    assert read_nodes(tmp_path / "n.parquet")[2] == ["v_0", "v_1"]


def test_tables_in_memory_may_have_vectors():
    Z = EMBEDDING.astype(np.float32)
    graph = sp.csr_array((RNG.random((30, 30)) < 0.2).astype(np.float32))
    columns = {"f": np.arange(30, dtype=np.float32), "v": list(Z)}
    options = {"n_layers": 1, "dim": 4, "random_state": 0}
    expected = FisherEmbedding(**options).fit(np.column_stack([columns["f"], Z]), graph=graph)
    frame = pd.DataFrame(columns, index=range(30))
    arrow = pa.table({"f": columns["f"], "v": pa.FixedSizeListArray.from_arrays(pa.array(Z.ravel()), 6)})
    for table in (frame, pl.DataFrame(arrow), pl.DataFrame(columns), arrow):
        model = FisherEmbedding(**options).fit(table, graph=graph)
        assert model.n_features_in_ == 7
        np.testing.assert_allclose(
            model.transform(table, graph=graph), expected.transform(np.column_stack([columns["f"], Z]), graph=graph)
        )
    assert model.feature_names_in_.tolist() == ["f", *(f"v_{k}" for k in range(6))]
    frame.at[4, "v"] = Z[4, :2]
    with pytest.raises(InputError, match="2 numbers in row 4"):
        FisherEmbedding(**options).fit(frame, graph=graph)


# --- commands -------------------------------------------------------------------------------------------


@pytest.fixture
def graph_files(tmp_path):
    ends = RNG.integers(0, 40, (2, 200))
    pd.DataFrame({"source": ends[0], "target": ends[1]}).to_csv(tmp_path / "e.csv", index=False)
    frame = pd.DataFrame({"id": range(40), "f": RNG.normal(size=40), "g": RNG.normal(size=40)})
    frame.to_csv(tmp_path / "n.csv", index=False)
    return tmp_path / "e.csv", tmp_path / "n.csv"


SMALL = ["--n-layers", "1", "--n-anchors", "2", "--dim", "4", "--undirected", "--jobs", "1", "--seed", "0"]


@pytest.mark.parametrize("file", [*FILES, *FOLDERS])
def test_what_embed_writes_is_read_by_the_commands(tmp_path, graph_files, file):
    suffix, layout = file
    edges, nodes = graph_files
    z = tmp_path / f"z{suffix}"
    for _ in range(2):
        done = ok("embed", edges, "-n", nodes, "-o", z, *SMALL, *(["--layout", layout] if layout else []))
    assert ("z.ids.npy" in done.stdout) == (suffix == ".npy")
    ok("embed", edges, "-n", z, "-o", tmp_path / "again.npz", *SMALL)
    ok("embed", edges, "-n", z, "-o", tmp_path / f"more{suffix}", "--save", tmp_path / "m", *SMALL)
    ok("embed", edges, "-n", z, "-o", tmp_path / "third.npz", "--model", tmp_path / "m")
    first, third = (np.load(tmp_path / f"{name}.npz")["x"] for name in ("again", "third"))
    np.testing.assert_array_equal(first, third)


def test_train_and_predict_take_a_column_of_vectors(tmp_path, graph_files):
    edges, nodes = graph_files
    ok("embed", edges, "-n", nodes, "-o", tmp_path / "z.parquet", *SMALL)
    table = pq.read_table(tmp_path / "z.parquet")
    table = table.append_column("topic", pa.array(["ape", "bee"] * 20))
    pq.write_table(table, tmp_path / "l.parquet")
    learned = ["--label", "topic", "--mode", "probe", *SMALL, "-o", tmp_path / "m"]
    ok("train", edges, "-n", tmp_path / "l.parquet", *learned)
    for name in ("l", "z"):
        ok("predict", edges, "-n", tmp_path / f"{name}.parquet", "--model", tmp_path / "m", "-o", tmp_path / "p.csv")
        assert set(pd.read_csv(tmp_path / "p.csv")["prediction"]) <= {"ape", "bee"}


@pytest.mark.parametrize(("output", "layout"), [("z.csv", "vector"), ("z.npz", "wide"), ("z.parquet", "long")])
def test_a_layout_that_a_file_cannot_have(graph_files, tmp_path, output, layout):
    wrong("layout", "embed", graph_files[0], "-o", tmp_path / output, "--layout", layout)


# --- failures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [*FILES, *FOLDERS])
def test_rows_that_do_not_fit_leave_nothing(tmp_path, file):
    suffix, layout = file
    path, Z = tmp_path / f"z{suffix}", EMBEDDING.astype(np.float32)
    bad = Z.copy()
    bad[25, 1] = np.nan
    cases = {
        "all": [Z[:29]],
        "left": [Z[:20], Z[:20]],
        "the": [Z[:, :5]],
        "row 25": [bad[:20], bad[20:]],
    }

    def write(blocks):
        with EmbeddingWriter(path, Z.shape, IDS["text"], layout=layout) as writer:
            for block in blocks:
                writer.write(block)

    for word, blocks in cases.items():
        with pytest.raises(InputError, match=word):
            write(blocks)
        assert os.listdir(tmp_path) == []
    write([Z])
    with pytest.raises(InputError):
        write([-Z[:10]])
    np.testing.assert_allclose(read_embedding(path).Z, Z, rtol=1e-6)


def test_wrong_arguments_of_a_writer(tmp_path, monkeypatch):
    for options in (
        {"ids": ["a"] * 30},
        {"ids": ["a"]},
        {"names": ["a"]},
        {"names": ["id", *"abcde"]},
        {"dtype": np.complex64},
        {"blocks": [("psi0", 5)]},
        {"layout": "long"},
    ):
        with pytest.raises(InputError):
            EmbeddingWriter(tmp_path / "z.parquet", (30, 6), **options)
    monkeypatch.setattr(embedding_file, "ID_ROWS", 7)
    for mixed in ([*range(21), *"abcdefghi"], [*"abcdefg", *range(23)]):
        with pytest.raises(InputError, match="integers or all text"):
            write_embedding(tmp_path / "z.npy", Sliced(np.array(mixed, dtype=object)), EMBEDDING)
    assert os.listdir(tmp_path) == []


KILLED = """
import os, signal, sys
import numpy as np
from fishergraph.io import embedding_file
from fishergraph.io.embedding_file import EmbeddingWriter
embedding_file._GROUP = 4096
with EmbeddingWriter(sys.argv[1], (3000, 8)) as writer:
    writer.write(np.ones((1000, 8), np.float32))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("file", [(".parquet", None), (".npy", None), *FOLDERS])
def test_a_killed_writer_leaves_the_old_file_and_the_next_one_cleans_up(tmp_path, file):
    path = tmp_path / f"z{file[0]}"
    write_embedding(path, None, EMBEDDING)
    before = sorted(os.listdir(tmp_path))
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) > len(before)  # what the killed writer left is hidden
    np.testing.assert_array_equal(read_embedding(path).Z, EMBEDDING.astype(np.float32))
    write_embedding(path, None, EMBEDDING + 1)
    assert sorted(os.listdir(tmp_path)) == before
    np.testing.assert_array_equal(read_embedding(path).Z, (EMBEDDING + 1).astype(np.float32))


@pytest.mark.parametrize("name", ["lance", "zarr"])
def test_only_a_folder_of_the_same_kind_is_replaced(tmp_path, name):
    pytest.importorskip(name)
    path = tmp_path / f"z.{name}"
    path.mkdir()
    path.joinpath("thesis.tex").write_text("dear")
    with pytest.raises(FileExistsError, match="not replaced"):
        write_embedding(path, None, EMBEDDING)
    assert path.joinpath("thesis.tex").read_text() == "dear"
    with pytest.raises(FileFormatError, match=str(path)):
        read_embedding(path)
    (tmp_path / f"f.{name}").write_text("a file")
    with pytest.raises(FileExistsError, match="is a file"):
        write_embedding(tmp_path / f"f.{name}", None, EMBEDDING)
    with pytest.raises(FileFormatError, match="folder"):
        read_embedding(tmp_path / f"f.{name}")
    with pytest.raises(FileNotFoundError):
        read_embedding(tmp_path / f"absent.{name}")


@pytest.mark.parametrize("name", ["lance", "zarr"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"fishergraph\[{name}\]"):
        write_embedding(tmp_path / f"z.{name}", None, EMBEDDING)


def damage_pickled(path: Path) -> None:
    np.save(path, np.array([[object()]]), allow_pickle=True)


def damage_short(path: Path) -> None:
    np.save(path, EMBEDDING)
    path.write_bytes(path.read_bytes()[:-8])


def damage_text(path: Path) -> None:
    path.write_text("id,x\n1,2\n")


def damage_axes(path: Path) -> None:
    np.save(path, np.ones(3))


def damage_header(path: Path) -> None:
    np.save(path, np.ones((2, 2)))
    path.write_bytes(path.read_bytes().replace(b"(2, 2)", b"(2,-2)"))


@pytest.mark.parametrize("damage", [damage_pickled, damage_short, damage_text, damage_axes, damage_header])
def test_a_matrix_that_is_none(tmp_path, damage):
    damage(tmp_path / "z.npy")
    with pytest.raises(FileFormatError, match=r"z\.npy"):
        read_nodes(tmp_path / "z.npy")


def test_ids_of_another_length_beside_a_matrix(tmp_path):
    write_embedding(tmp_path / "z.npy", None, EMBEDDING)
    np.save(tmp_path / "z.ids.npy", np.arange(29))
    with pytest.raises(FileFormatError, match="ids"):
        read_nodes(tmp_path / "z.npy")


def test_lists_that_unpack_to_too_much(tmp_path):
    column = pa.array([None] * 100, pa.list_(pa.float32(), 10**6))
    pq.write_table(pa.table({"id": range(100), "v": column}), tmp_path / "n.parquet")
    with pytest.raises(FileFormatError, match="unpack"):
        read_nodes(tmp_path / "n.parquet")
    column = pa.array([[0.0] * 10**6] * 100)
    pq.write_table(pa.table({"id": range(100), "v": column}), tmp_path / "m.parquet")
    with pytest.raises(FileFormatError, match="unpack"):
        read_nodes(tmp_path / "m.parquet")


def test_a_damaged_block_is_named(tmp_path):
    write_embedding(tmp_path / "z.parquet", None, np.ones((3000, 8), np.float32))
    content = bytearray((tmp_path / "z.parquet").read_bytes())
    content[4:400] = bytes(396)
    (tmp_path / "z.parquet").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"z\.parquet"):
        read_embedding(tmp_path / "z.parquet")
