"""`fishergraph embed STORE`: a store is embedded in place, and its rows may be written to a file."""

from __future__ import annotations

import numpy as np
import pytest

from commands import call, ok, record_of, wrong
from fishergraph import FisherEmbedding
from fishergraph.io.tables import read_embedding
from fishergraph.scale import StoredEmbedding, write_store
from scale.stores import random_graph

OPTIONS = ("--dim", 8, "--structure", "none", "--seed", 3)


@pytest.fixture
def store(tmp_path):
    graph, X = random_graph(300)
    return write_store(tmp_path / "g.store", graph, X, ids=np.arange(300) * 7)


def expected():
    graph, X = random_graph(300)
    return FisherEmbedding(dim=8, structure=None, random_state=3).fit_transform(X, graph=graph)


def test_the_file_has_the_rows_of_memory(store, tmp_path):
    out = tmp_path / "z.parquet"
    result = ok("embed", store.path, *OPTIONS, "--memory", "16G", "-o", out)
    read = read_embedding(out)
    np.testing.assert_array_equal(read.ids, np.arange(300) * 7)
    np.testing.assert_array_equal(read.Z, expected())
    assert str(out) in result.stdout
    assert record_of(out)["output"]["rows"] == 300
    np.testing.assert_array_equal(np.asarray(StoredEmbedding(store.path / "embeddings" / "default")), expected())


def test_a_store_needs_no_file(store):
    ok("embed", store.path, *OPTIONS, "--name", "small")
    assert record_of(store.path / "embeddings" / "small")["parameters"]["dim"] == 8


def test_a_saved_model_embeds_another_store(store, tmp_path):
    ok("embed", store.path, *OPTIONS)
    model = store.path / "embeddings" / "default" / "model.safetensors"
    ok("embed", store.path, "--model", model, "--name", "again", "-o", tmp_path / "z.npz")
    np.testing.assert_array_equal(read_embedding(tmp_path / "z.npz").Z, expected())


def test_without_a_seed_a_run_goes_on_with_the_one_it_drew(store):
    ok("embed", store.path, *OPTIONS[:-2])
    first = np.asarray(StoredEmbedding(store.path / "embeddings" / "default"))
    ok("embed", store.path, *OPTIONS[:-2])
    np.testing.assert_array_equal(np.asarray(StoredEmbedding(store.path / "embeddings" / "default")), first)


def test_what_is_refused(store, tmp_path):
    wrong("--nodes", "embed", store.path, "-n", tmp_path / "n.csv")
    edges = tmp_path / "e.csv"
    edges.write_text("source,target\na,b\n")
    wrong("--output", "embed", edges)
    wrong("--name", "embed", edges, "--memory", "4G", "--name", "a", "-o", tmp_path / "z.npz")
    wrong("--tune", "embed", edges, "--memory", "4G", "--tune", "--label", "x", "-o", tmp_path / "z.npz")
    wrong("--separator", "embed", edges, "--memory", "4G", "--separator", "tab", "-o", tmp_path / "z.npz")
    wrong("one --nodes", "embed", edges, "-n", "a=a.csv", "--memory", "4G", "-o", tmp_path / "z.npz")
    wrong("is there already", "embed", edges, "--store", store.path)
    wrong("memory", "embed", edges, "--memory", "much", "-o", tmp_path / "z.npz")


def test_errors_name_options(store):
    """Nothing is in Python's notation."""
    result = call("embed", store.path, "--dim", 8, "--seed", 3, "--memory", "10M")
    assert "set --memory" in result.stderr
    ok("embed", store.path, *OPTIONS)
    for changed in (("--seed", 4), ("--dim", 9)):
        result = call("embed", store.path, *OPTIONS, *changed)
        assert result.exit_code == 1
        assert changed[0] in result.stderr
        assert "set --overwrite" in result.stderr


def test_too_little_memory_leaves_the_embedding_that_is_there(store):
    ok("embed", store.path, *OPTIONS)
    result = call("embed", store.path, "--dim", 9, "--memory", "10M", "--overwrite")
    assert result.exit_code == 1
    assert "memory" in result.stderr
    np.testing.assert_array_equal(np.asarray(StoredEmbedding(store.path / "embeddings" / "default")), expected())


def test_long_work_is_planned_first(store, monkeypatch):
    monkeypatch.setattr("fishergraph.cli.embed_store._LONG", 1)
    assert "psi1" in ok("embed", store.path, *OPTIONS).stderr
    assert ok("embed", store.path, *OPTIONS).stderr == ""  # nothing is left to do
    assert ok("embed", store.path, *OPTIONS, "--name", "q", "-q").stderr == ""


# --- files in one command --------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """Edges and nodes with ids, and the options of both."""
    rng = np.random.default_rng(0)
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    lines = [f"n{a},n{b}" for a, b in rng.integers(0, 120, (400, 2))]
    edges.write_text("\n".join(["source,target", *lines, "n1,who", ""]))
    rows = [f"n{k},x," + ",".join(f"{x:.3f}" for x in rng.normal(size=6)) for k in range(120)]
    nodes.write_text("\n".join(["name,topic,a,b,c,d,e,f", *rows, ""]))
    return edges, nodes


READ = ("--id-column", "name", "--drop", "topic", "--undirected", "--unknown", "drop")


def test_files_in_one_command_have_the_bytes_of_two(files, tmp_path):
    edges, nodes = files
    one, two, kept = (tmp_path / name for name in ("one", "two", "kept"))
    for folder in (one, two, kept):
        folder.mkdir()
    ok("ingest", edges, nodes, *READ, "-q", "-o", tmp_path / "g.store")
    ok("embed", tmp_path / "g.store", *OPTIONS, "-o", two / "z.parquet")
    result = ok("embed", edges, "-n", nodes, *READ, *OPTIONS, "--memory", "16G", "-o", one / "z.parquet")
    assert str(one / "z.parquet") in result.stdout
    assert "store" not in result.stdout
    assert (one / "z.parquet").read_bytes() == (two / "z.parquet").read_bytes()
    assert sorted(path.name for path in one.iterdir()) == ["z.parquet", "z.parquet.run.json"]
    found = record_of(one / "z.parquet")
    assert found["input"]["edges"] == str(edges)
    assert found["seconds"]["ingest"] > 0
    ok("embed", edges, "-n", nodes, *READ, *OPTIONS, "--store", kept / "g.store", "--name", "a")
    Z = StoredEmbedding(kept / "g.store" / "embeddings" / "a")
    np.testing.assert_array_equal(np.asarray(Z), read_embedding(two / "z.parquet").Z)


@pytest.mark.parametrize("failure", ["ingest", "embed", "write"])
def test_a_failure_leaves_no_store(files, tmp_path, monkeypatch, failure):
    edges, nodes = files
    out = tmp_path / "out"
    out.mkdir()
    left = out / ".z.parquet.999999999-0a0a0a0a.store"  # of a process that was killed
    left.mkdir()
    more = [*READ]
    if failure == "ingest":
        more = [option for option in READ if option not in ("--unknown", "drop")]
    elif failure == "embed":
        more += ["--multiset", "paths"]
    else:

        def broken(*args, **options):
            raise OSError(28, "No space left on device", "z.parquet")

        monkeypatch.setattr("fishergraph.io.embedding_file.write_embedding", broken)
    result = call("embed", edges, "-n", nodes, *more, *OPTIONS, "--memory", "16G", "-o", out / "z.parquet")
    assert result.exit_code != 0
    assert list(out.iterdir()) == []
