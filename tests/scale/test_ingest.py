"""Ingest gives the arrays of `as_graph`, to the last bit, whatever the budget, the ids and the options are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fishergraph import as_graph
from fishergraph.scale import Store, ingest, write_store
from fishergraph.scale.arrays import Growing
from fishergraph.scale.ingestion import ids as ids_module
from fishergraph.scale.ingestion import job, rows
from fishergraph.scale.ingestion.rows import write_rows

ALPHABET = np.array(["a", "b", "é", "ß", "z", "Z", "0", "10", "9", "\U0001f600", "ab" * 30])


@pytest.fixture(params=[None, 40_000], ids=["one bucket", "many buckets"])
def budget(request, monkeypatch):
    """All at once, or in many buckets and ranges of ids."""
    if request.param is not None:
        monkeypatch.setattr(job, "_work", lambda memory: request.param)
    return request.param


def table_of(kind: str, seed: int = 0, n_edges: int = 3000, weights: str = "none") -> pa.Table:
    """Random edges with parallel ones, self-loops and edges of weight zero."""
    rng = np.random.default_rng(seed)
    n = 120
    ends = np.minimum(rng.integers(n, size=(2, n_edges)), rng.integers(n, size=(2, n_edges)))
    names = {
        "counted": np.arange(n),
        "gaps": np.sort(rng.choice(5 * n, n, replace=False)),
        "wide": np.sort(rng.integers(-(2**62), 2**62, n)),
        "text": np.array(
            ["".join(rng.choice(ALPHABET, rng.integers(1, 6))) + str(k) for k in rng.permutation(n)], dtype=object
        ),
        "digits": np.array([str(k).zfill(k % 4) for k in range(n)], dtype=object),
    }[kind]
    columns = {"source": names[ends[0]], "target": names[ends[1]]}
    if weights == "float32":
        columns["weight"] = rng.lognormal(0, 4, n_edges).astype(np.float32)
    if weights == "float64":
        columns["weight"] = np.where(rng.random(n_edges) < 0.05, 0, rng.lognormal(0, 4, n_edges))
    if weights == "integers":
        columns["weight"] = rng.integers(0, 3, n_edges)
    return pa.table(columns)


def same_arrays(found: Store, expected: Store) -> None:
    """Two stores have the same files, byte by byte."""
    names = sorted(path.name for path in expected.path.glob("*.npy"))
    assert sorted(path.name for path in found.path.glob("*.npy")) == names
    for name in names:
        assert (found.path / name).read_bytes() == (expected.path / name).read_bytes(), name
    assert found.digest == expected.digest
    assert found.check() == []


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weights", ["none", "float32", "float64", "integers"])
@pytest.mark.parametrize("kind", ["counted", "gaps", "wide", "text", "digits"])
def test_the_bits_are_those_of_memory(tmp_path, budget, kind, weights, undirected):
    table = table_of(kind, weights=weights)
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=700)
    found = ingest(tmp_path / "edges.parquet", tmp_path / "found", undirected=undirected)
    same_arrays(found, write_store(tmp_path / "memory", as_graph(table, undirected=undirected)))


@pytest.mark.parametrize("sorted_rows", [False, True])
def test_parallel_edges_are_added_in_the_order_of_memory(tmp_path, budget, sorted_rows):
    """Sums of more than two floats depend on the order, which SciPy's sort changes only if some row is not sorted."""
    rng = np.random.default_rng(1)
    n, n_edges = 40, 8000
    source, target = rng.integers(n, size=(2, n_edges))
    if sorted_rows:
        source = np.sort(source)
    table = pa.table({"source": source, "target": target, "weight": rng.lognormal(0, 3, n_edges).astype(np.float32)})
    if not sorted_rows:  # the first rows are sorted, and a later one is not
        early = np.argsort(np.where(target < n - 5, source, n), kind="stable")
        table = table.take(pa.array(early))
    pq.write_table(table, tmp_path / "edges.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "found")
    same_arrays(found, write_store(tmp_path / "memory", as_graph(table)))


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("kind", ["counted", "gaps", "wide", "text", "digits"])
def test_rows_are_in_the_order_of_the_nodes(tmp_path, budget, kind, undirected):
    table = table_of(kind)
    rng = np.random.default_rng(2)
    names = np.unique(np.concatenate([table.column(k).to_numpy() for k in (0, 1)]))
    names = rng.permutation(np.concatenate([names, ["lonely"] if names.dtype == object else [2**62 + 5]]))
    X = rng.standard_normal((len(names), 3)).astype(np.float32)
    nodes = pd.DataFrame({"id": names, "x": X[:, 0], "y": X[:, 1], "label": "a", "z": X[:, 2]})
    nodes.to_parquet(tmp_path / "nodes.parquet")
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=500)
    found = ingest(
        tmp_path / "edges.parquet",
        tmp_path / "found",
        tmp_path / "nodes.parquet",
        undirected=undirected,
        drop=["label"],
    )
    assert found.feature_names == ["x", "y", "z"]
    graph = as_graph(table, node_ids=names, undirected=undirected)
    same_arrays(found, write_store(tmp_path / "memory", graph, X))


def test_numbers_and_text_match_by_their_digits(tmp_path, budget):
    edges = pa.table({"source": ["1", "x"], "target": ["2", "1"]})
    pq.write_table(edges, tmp_path / "edges.parquet")
    pq.write_table(pa.table({"source": [7, 2], "target": [2, 7]}), tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"id": [7, 2, 1]}), tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"id": ["2", "x", "1", "7"]}), tmp_path / "words.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "a", tmp_path / "words.parquet")
    same_arrays(found, write_store(tmp_path / "b", as_graph(edges, node_ids=["2", "x", "1", "7"])))
    found = ingest(tmp_path / "numbers.parquet", tmp_path / "c", tmp_path / "words.parquet")
    numbers = pa.table({"source": [7, 2], "target": [2, 7]})
    same_arrays(found, write_store(tmp_path / "d", as_graph(numbers, node_ids=["2", "x", "1", "7"])))
    words = pa.table({"source": ["1"], "target": ["2"]})
    pq.write_table(words, tmp_path / "edges.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "e", tmp_path / "nodes.parquet")
    assert found.ids[:].tolist() == [7, 2, 1]
    same_arrays(found, write_store(tmp_path / "f", as_graph(words, node_ids=np.array([7, 2, 1]))))


def test_ids_that_are_the_row_numbers_are_not_written(tmp_path, budget):
    table = table_of("counted")
    pq.write_table(table, tmp_path / "edges.parquet")
    pq.write_table(pa.table({"id": np.arange(150)}), tmp_path / "nodes.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "found", tmp_path / "nodes.parquet")
    assert found.ids is None
    assert found.n_nodes == 150
    same_arrays(found, write_store(tmp_path / "memory", as_graph(table, node_ids=np.arange(150))))


# --- options --------------------------------------------------------------------------------------------


def write_csv(path, text):
    path.write_text(text)
    return path


def test_parallel_edges_once(tmp_path, budget):
    edges = write_csv(tmp_path / "e.csv", "source,target,weight\n0,1,2\n0,1,5\n1,0,3\n1,1,1\n1,1,1\n")
    store = ingest(edges, tmp_path / "store", duplicates="once")
    assert store.weights[:].tolist() == [3, 5, 1]
    assert store.facts["parallel"] == 2
    store = ingest(edges, tmp_path / "store", duplicates="once", undirected=True, overwrite=True)
    assert store.weights[:].tolist() == [5, 5, 1]
    edges = write_csv(tmp_path / "e.csv", "source,target\n0,1\n0,1\n1,0\n")
    assert ingest(edges, tmp_path / "store", duplicates="once", overwrite=True).weights is None
    assert ingest(edges, tmp_path / "store", overwrite=True).weights[:].tolist() == [1, 2]


def test_self_loops_are_dropped(tmp_path, budget):
    table = table_of("counted", weights="float64")
    pq.write_table(table, tmp_path / "edges.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "found", self_loops="drop")
    loops = table.column("source").to_numpy() == table.column("target").to_numpy()
    assert found.facts["dropped"] == {
        "unknown": 0,
        "self_loops": int(loops.sum()),
        "weight_zero": found.facts["dropped"]["weight_zero"],
    }
    ids = np.unique(np.concatenate([table.column(k).to_numpy() for k in (0, 1)]))
    kept = as_graph(table.filter(pa.array(~loops)), node_ids=ids)
    same_arrays(found, write_store(tmp_path / "memory", kept))


@pytest.mark.parametrize("kind", ["numbers", "counted", "text"])
def test_edges_to_unknown_nodes(tmp_path, budget, kind):
    ids = {"numbers": [5, 9, 7], "counted": [0, 1, 2], "text": ["ann", "bob", "eve"]}[kind]
    new = {"numbers": [8, 11], "counted": [6, 4], "text": ["zoe", "al"]}[kind]
    edges = pa.table({"source": [ids[0], ids[1], new[0], new[1]], "target": [ids[1], new[0], new[0], ids[2]]})
    pq.write_table(edges, tmp_path / "edges.parquet")
    pq.write_table(pa.table({"id": ids, "x": [1.0, 2.0, 3.0]}), tmp_path / "nodes.parquet")
    arguments = tmp_path / "edges.parquet", tmp_path / "store", tmp_path / "nodes.parquet"
    dropped = ingest(*arguments, unknown="drop")
    assert dropped.facts["dropped"]["unknown"] == 3
    kept = as_graph(edges.slice(0, 1), node_ids=ids)
    same_arrays(dropped, write_store(tmp_path / "kept", kept, np.array([[1], [2], [3]], np.float32)))
    added = ingest(*arguments, unknown="add", overwrite=True)
    assert added.facts["nodes_added"] == 2
    graph = as_graph(edges, node_ids=[*ids, *sorted(new)])
    X = np.array([[1], [2], [3], [0], [0]], np.float32)
    same_arrays(added, write_store(tmp_path / "all", graph, X))


def test_text_is_added_to_numbers(tmp_path, budget):
    edges = write_csv(tmp_path / "e.csv", "source,target\n1,2\nx,1\n")
    nodes = write_csv(tmp_path / "n.csv", "id,f\n2,0.5\n1,1.5\n")
    store = ingest(edges, tmp_path / "store", nodes, unknown="add")
    assert store.ids[:].tolist() == ["2", "1", "x"]
    assert store.features[:].tolist() == [[0.5], [1.5], [0]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_type_of_the_features(tmp_path, dtype):
    edges = write_csv(tmp_path / "e.csv", "source,target\n0,1\n")
    nodes = write_csv(tmp_path / "n.csv", "id,f\n0,0.1\n1,7\n")
    store = ingest(edges, tmp_path / "store", nodes, dtype=dtype)
    assert np.load(tmp_path / "store" / "features.npy").tolist() == np.array([[0.1], [7]], dtype).tolist()
    assert store.features.dtype == np.dtype(dtype)


def test_digits_that_float32_rounds_are_a_warning(tmp_path):
    edges = write_csv(tmp_path / "e.csv", "source,target\n0,1\n")
    nodes = write_csv(tmp_path / "n.csv", "id,time\n0,1700000001\n1,7\n")
    with pytest.warns(UserWarning, match=r"time.*float64"):
        ingest(edges, tmp_path / "store", nodes)
    store = ingest(edges, tmp_path / "store", nodes, dtype="float64", overwrite=True)
    assert store.features[:].tolist() == [[1700000001], [7]]


def test_columns_of_other_names(tmp_path):
    edges = write_csv(tmp_path / "e.csv", "b,w,a,weight\n0,2.5,1,9\n")
    store = ingest(edges, tmp_path / "store", source="a", target="b", weight="w")
    assert store.indices[:].tolist() == [1]
    assert store.weights[:].tolist() == [2.5]


# --- memory and progress --------------------------------------------------------------------------------


def test_progress_is_reported_and_ends_near_its_total(tmp_path):
    pq.write_table(table_of("wide"), tmp_path / "edges.parquet")
    seen: dict[str, list[int]] = {}

    class Bar:
        def __init__(self, title, steps):
            self.steps = seen.setdefault(title, [steps, 0])

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def update(self, n):
            self.steps[1] += n

    ingest(tmp_path / "edges.parquet", tmp_path / "store", verbose=Bar)
    assert list(seen) == ["reading edges", "sorting ids", "numbering nodes", "sorting edges", "checksums"]
    assert all(done > 0.3 * total for total, done in seen.values()), seen


def test_a_small_budget_uses_many_buckets(tmp_path, monkeypatch):
    made = []
    fill = rows.Buckets._fill
    monkeypatch.setattr(rows.Buckets, "_fill", lambda self, *args: made.append(len(self)) or fill(self, *args))
    ranges = []
    merge = ids_module._merged
    monkeypatch.setattr(ids_module, "_merged", lambda parts: ranges.append(1) or merge(parts))
    monkeypatch.setattr(job, "_work", lambda memory: 4000)
    table = table_of("wide")
    (tmp_path / "edges").mkdir()
    for k in range(10):
        pq.write_table(table.slice(300 * k, 300), tmp_path / "edges" / f"{k}.parquet")
    found = ingest(tmp_path / "edges", tmp_path / "found", undirected=True)
    assert min(made) > 30
    assert len(ranges) >= 8
    same_arrays(found, write_store(tmp_path / "memory", as_graph(table, undirected=True)))


@pytest.mark.parametrize("undirected", [False, True])
def test_more_nodes_than_counters(tmp_path, monkeypatch, undirected):
    """The targets of large graphs are counted by blocks of rows."""
    monkeypatch.setattr(rows, "_BLOCKS", 16)
    monkeypatch.setattr(job, "_work", lambda memory: 20_000)
    table = table_of("gaps", weights="float32")
    pq.write_table(table, tmp_path / "edges.parquet")
    found = ingest(tmp_path / "edges.parquet", tmp_path / "found", undirected=undirected)
    same_arrays(found, write_store(tmp_path / "memory", as_graph(table, undirected=undirected)))


@pytest.mark.slow
def test_rows_past_2_to_the_31(tmp_path):
    """Numbers of nodes that need 64 bits; the 16 GB of row offsets are not kept."""

    class Last:
        def __init__(self):
            self.n_rows, self.last = 0, None

        def append(self, values):
            self.n_rows += len(values)
            self.last = values[-1]

    n, offsets, files = 2**31 + 100, Last(), {}

    def growing(name, dtype):
        files[name] = offsets if name == "indptr" else Growing(tmp_path / name, dtype)
        return files[name]

    source = np.array([2**31 + 5, 3, 3, 2**31 + 99])
    target = np.array([2**31 + 7, 2**31 + 7, 2**31 + 7, 0])
    options = {"undirected": False, "once": False, "work": 2**28, "advance": lambda k: None}
    write_rows(lambda: iter([(source, target, None)]), n, None, growing, tmp_path, **options)
    indices = files["indices"].finish()
    assert indices.dtype == np.int64
    assert indices[:].tolist() == [2**31 + 99, 3, 2**31 + 5]
    assert files["weights"].finish()[:].tolist() == [1, 2, 1]
    assert (offsets.n_rows, offsets.last) == (n + 1, 3)


def test_facts_tell_what_was_read(tmp_path):
    pq.write_table(table_of("counted"), tmp_path / "edges.parquet")
    store = ingest(str(tmp_path / "edges.parquet"), tmp_path / "store", undirected=True)
    assert store.facts["edges_read"] == 3000
    assert store.facts["undirected"] is True
    assert store.facts["edges"] == str(tmp_path / "edges.parquet")
    assert store.facts["parallel"] > 0
