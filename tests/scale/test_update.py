"""A changed graph: the bytes of a full transform, and rows that nothing changed are not computed."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from commands import call
from fishergraph import FisherEmbedding, as_graph
from fishergraph._errors import InputError, InputTypeError, UnknownNodeError
from fishergraph.multiset import Neighbourhood
from fishergraph.scale import Store, StoredEmbedding, update, verify, write_store
from fishergraph.scale import commit as scale_commit
from fishergraph.scale.arrays import checksum
from fishergraph.scale.updating import blocks as updating_blocks
from fishergraph.scale.updating import job as updating_job
from fishergraph.scale.updating.patched import PatchedRows, patched_checksums, row_differences

N_NODES, N_FEATURES = 1300, 10  # three row blocks of a layer


def random_rows(n_rows, seed):
    return np.random.default_rng(seed).normal(size=(n_rows, N_FEATURES)).astype(np.float32)


def random_pairs(n_edges, seed, n_nodes=N_NODES):
    return np.random.default_rng(seed).integers(n_nodes, size=(2, n_edges))


def adjacency(pairs, n_nodes=N_NODES):
    """Row v lists the sources of the edges to v."""
    A = sp.lil_array((n_nodes, n_nodes), dtype=np.float32)
    A[pairs[1], pairs[0]] = 1
    return A


def layers(**more):
    return FisherEmbedding(**{"dim": 12, "n_anchors": 2, "walk": None, "structure": None, "random_state": 0, **more})


def make(folder, *, undirected=False, X=None, ids=None, weights=False, **settings):
    """A store and its model."""
    A = adjacency(random_pairs(3000, 1))
    A = A.maximum(A.T) if undirected else sp.csr_array(A)
    if weights:
        A = sp.csr_array(A)
        A.data = np.random.default_rng(3).random(A.nnz).astype(np.float32) + 0.1
    graph = as_graph(A)
    store = write_store(folder / "graph", graph, random_rows(N_NODES, 0) if X is None else X(), ids=ids)
    if undirected:  # what `ingest` notes
        manifest = json.loads((store.path / "manifest.json").read_text())
        manifest["facts"]["undirected"] = True
        (store.path / "manifest.json").write_text(json.dumps(manifest))
        store.reopen()
    model = layers(**settings)
    model.fit_transform(store)
    return store, model


def check_updated(store, model):
    """The run has the bytes of a full transform of the store as it is now, and its checksums are those of its files."""
    Z = model.transform(Store(store.path, name="full"))
    full, updated = (store.path / "embeddings" / name for name in ("full", "default"))
    for name, _ in Z.blocks_:
        assert np.array_equal(np.load(full / f"{name}.npy"), np.load(updated / f"{name}.npy")), name
    compared = verify(updated, full)
    assert compared.is_same, str(compared)
    found = verify(store)
    assert found.is_same, str(found)
    assert not list(store.path.glob(".*"))
    assert not (store.path / "update.commit").exists()


def check_graph(store, A):
    """The files of the graph are those of a new store of that matrix."""
    other = write_store(store.path.parent / "other", as_graph(sp.csr_array(A)), overwrite=True)
    for name in ("indptr", "indices"):
        assert np.array_equal(np.load(other.path / f"{name}.npy"), np.load(store.path / f"{name}.npy")), name


@pytest.fixture
def in_blocks(request, monkeypatch):
    """Gather rows, or compute whole row blocks as where products depend on the place of a row."""
    if request.param:
        monkeypatch.setattr(updating_blocks, "_is_exact", lambda *args: False)
    return request.param


both_ways = pytest.mark.parametrize("in_blocks", [False, True], indirect=True, ids=["rows", "blocks"])


# --- by the model that embedded the store -----------------------------------------------------------------


def test_a_model_updates_its_store(tmp_path):
    store, model = make(tmp_path)
    pairs = random_pairs(5, 2)
    report = model.update(store, edges=pairs)
    assert report.changes["edges added"] == 5
    assert report.stages[1].n_changed == len(np.unique(pairs[1]))
    check_updated(store, model)
    assert np.array_equal(np.asarray(model.transform(store)), np.asarray(model.transform(Store(store.path, name="b"))))


def test_a_model_with_another_run_or_without_a_store(tmp_path):
    store, model = make(tmp_path)
    with pytest.raises(NotFittedError):
        layers().update(store, edges=[(0, 1)])
    with pytest.raises(InputTypeError, match="Store"):
        model.update(str(store.path), edges=[(0, 1)])
    other = layers(random_state=1).fit(Store(store.path, name="other"))
    shutil.rmtree(store.path / "embeddings" / "other")
    with pytest.raises(InputError, match="fitted model"):
        other.update(store, edges=[(0, 1)])
    model.n_anchors = 3
    with pytest.raises(InputError, match="n_anchors"):
        model.update(store, edges=[(0, 1)])
    assert store.n_edges == Store(store.path).n_edges


# --- the bytes of a full run ------------------------------------------------------------------------------


@both_ways
def test_new_edges(tmp_path, in_blocks):
    store, model = make(tmp_path)
    pairs, A = random_pairs(12, 5), adjacency(random_pairs(3000, 1))
    report = update(store, edges=pairs)
    A[pairs[1], pairs[0]] = 1
    check_graph(store, A)
    check_updated(store, model)
    psi0, psi1, psi2 = report.stages
    assert (psi0.how, psi0.n_computed) == ("none", 0)
    assert psi1.n_changed == len(np.unique(pairs[1]))
    assert psi2.n_changed > psi1.n_changed
    assert psi1.how == psi2.how == ("blocks" if in_blocks else "rows")
    assert psi2.n_changed < 100
    if not in_blocks:
        assert psi1.n_computed == psi1.n_changed
        assert psi2.n_computed < 100


@both_ways
def test_edges_that_go(tmp_path, in_blocks):
    store, model = make(tmp_path, undirected=True)
    pairs, A = random_pairs(3000, 1)[:, :20], adjacency(random_pairs(3000, 1))
    A = sp.lil_array(A.maximum(A.T))
    pairs = pairs[:, pairs[0] != pairs[1]]
    report = update(store, remove=pairs)
    A[pairs[1], pairs[0]] = 0
    A[pairs[0], pairs[1]] = 0
    check_graph(store, A)
    check_updated(store, model)
    assert report.changes["edges removed"] == 2 * pairs.shape[1]


@both_ways
@pytest.mark.parametrize("ids", [None, "integers", "texts"])
def test_new_nodes(tmp_path, in_blocks, ids):
    names = {None: None, "integers": 7 * np.arange(N_NODES)[::-1], "texts": [f"node {k}" for k in range(N_NODES)]}[ids]
    store, model = make(tmp_path, ids=names)
    new = {None: [N_NODES, N_NODES + 1], "integers": [5, -3], "texts": ["über", "x"]}[ids]
    old = 0 if names is None else names[0]
    edges = [(new[0], old), (old, new[0]), (new[0], new[1])]
    report = update(store, nodes=(new, random_rows(2, 9)), edges=edges)
    assert store.n_nodes == N_NODES + 2
    assert report.changes["nodes added"] == 2
    if ids is not None:
        assert store.ids[N_NODES:].tolist() == new
        assert store.ids[:3].tolist() == list(names[:3])
    assert np.array_equal(store.features[N_NODES:], random_rows(2, 9))
    check_updated(store, model)
    assert len(StoredEmbedding(store.path / "embeddings" / "default")) == N_NODES + 2


@pytest.mark.parametrize("n_new", [1, 5, 300])
def test_new_nodes_move_the_blocks(tmp_path, n_new):
    """Wide maps: where products depend on the place of a row, rows that moved have other bits in a full run."""
    X = np.random.default_rng(0).normal(size=(N_NODES, 64)).astype(np.float32)
    store, model = make(tmp_path, X=lambda: X, dim=48)
    new = np.random.default_rng(1).normal(size=(n_new, 64)).astype(np.float32)
    update(store, nodes=(range(N_NODES, N_NODES + n_new), new), edges=[(N_NODES, 3)])
    check_updated(store, model)


@both_ways
@pytest.mark.parametrize("sparse", [False, True])
def test_changed_features(tmp_path, in_blocks, sparse):
    def X():
        rows = np.maximum(random_rows(N_NODES, 0), 0)
        return sp.csr_array(rows) if sparse else rows

    store, model = make(tmp_path, X=X)
    rows = np.array([700, 3, 8])
    new = np.maximum(random_rows(3, 4), 0)
    report = update(store, nodes=(rows, sp.csr_array(new) if sparse else new))
    expected = X().toarray() if sparse else X()
    expected[rows] = new
    kept = store.features[:]
    assert np.array_equal(kept.toarray() if sparse else kept, expected)
    check_updated(store, model)
    assert report.stages[0].n_changed == 3
    assert report.changes["rows of the graph changed"] == 0


@both_ways
def test_nodes_that_go_and_come_again(tmp_path, in_blocks):
    store, model = make(tmp_path, ids=[f"n{k}" for k in range(N_NODES)])
    A = adjacency(random_pairs(3000, 1))
    update(store, remove_nodes=["n5", "n900"])
    for v in (5, 900):
        A[v] = 0
        A[:, [v]] = 0
    check_graph(store, A)
    check_updated(store, model)
    assert store.removed[:].tolist() == [5, 900]
    assert not store.features[5:6].any()
    with pytest.raises(UnknownNodeError, match="n5"):
        update(store, edges=[("n5", "n6")])
    update(store, nodes=(["n5"], random_rows(1, 8)), edges=[("n5", "n6")])
    assert store.removed[:].tolist() == [900]
    assert store.n_nodes == N_NODES
    shutil.rmtree(store.path / "embeddings" / "full")
    check_updated(store, model)


@pytest.mark.parametrize(
    "settings",
    [
        {"multiset": Neighbourhood(weights="symmetric")},
        {"multiset": "open-neighbourhood"},
        {"multiset": "hops"},
        {"family": "diagonal-mixture"},
        {"counts": True, "n_layers": 3},
        {"kernel": "identity", "n_layers": 1},
        {"n_layers": 0},
        {"walk": 0.2, "structure": "auto"},
    ],
    ids=str,
)
@pytest.mark.parametrize("grows", [False, True])
def test_other_settings(tmp_path, settings, grows):
    store, model = make(tmp_path, undirected=True, weights=True, **settings)
    nodes = ([N_NODES, 4] if grows else [4], random_rows(2 if grows else 1, 6))
    update(store, edges=[(1, 2, 0.5), (2, 70, 2.0)], nodes=nodes)
    check_updated(store, model)


def test_a_graph_without_features(tmp_path):
    store = write_store(tmp_path / "graph", random_pairs(3000, 1))
    model = FisherEmbedding(dim=12, n_anchors=2, random_state=0)
    model.fit_transform(store)
    report = update(store, edges=random_pairs(5, 2))
    assert {stage.how for stage in report.stages} >= {"all"}
    check_updated(store, model)


def test_several_updates_and_several_runs(tmp_path):
    store, model = make(tmp_path)
    other = layers(n_anchors=3, multiset="open-neighbourhood")
    other.fit_transform(Store(store.path, name="other"))
    for k in range(3):
        report = update(store, edges=random_pairs(5, k + 10), remove=random_pairs(3000, 1)[:, k : k + 1])
    assert {stage.run for stage in report.stages} == {"default", "other"}
    check_updated(store, model)
    again = other.transform(Store(store.path, name="other full"))
    assert np.array_equal(np.asarray(again), np.asarray(StoredEmbedding(store.path / "embeddings" / "other")))


def test_where_nothing_changes_nothing_is_computed(tmp_path):
    store, _ = make(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*.npy")}
    pairs = random_pairs(3000, 1)[:, :5]
    report = update(store, edges=pairs, nodes=([3], random_rows(N_NODES, 0)[3:4]))
    assert report.stages == ()
    assert "nothing changed" in str(report)
    assert {path: path.stat().st_mtime_ns for path in store.path.rglob("*.npy")} == before


def test_propagation_stops_where_bits_are_the_same(tmp_path):
    """A second edge between copies of one node changes a multiset, and no mean."""
    X = np.ones((N_NODES, N_FEATURES), np.float32)
    store, model = make(tmp_path, X=lambda: X)
    report = update(store, edges=[(0, 1)])
    assert [stage.n_changed for stage in report.stages] == [0, 0, 0]
    assert report.stages[2].n_computed == 1  # its own multiset changed
    check_updated(store, model)


def test_columns_from_the_graph_are_kept_if_features_change(tmp_path):
    store, model = make(tmp_path, walk=0.2, structure="auto")
    report = update(store, nodes=([4], random_rows(1, 6)))
    how = {stage.stage: stage.how for stage in report.stages}
    assert how["walk"] == how["smooth"] == "all"
    assert how["factors"] == how["local"] == "none"
    check_updated(store, model)


def test_transform_of_the_store_is_the_updated_run(tmp_path):
    store, model = make(tmp_path)
    update(store, edges=random_pairs(5, 2), model=model)
    written = (store.path / "embeddings" / "default" / "psi2.npy").stat().st_mtime_ns
    model.transform(store)
    assert (store.path / "embeddings" / "default" / "psi2.npy").stat().st_mtime_ns == written
    with pytest.raises(InputError, match="transform"):
        layers().fit_transform(store)


def test_new_weights_replace_old_ones(tmp_path):
    store, model = make(tmp_path, weights=True)
    source, target = random_pairs(3000, 1)[:, 0].tolist()
    update(store, edges=[(source, target, 9.0)])
    assert store.weights[:].max() == 9
    check_updated(store, model)


# --- drift ----------------------------------------------------------------------------------------------


def test_drift_says_when_to_fit_again(tmp_path):
    X = random_rows(N_NODES, 0) * np.geomspace(1, 0.01, N_FEATURES, dtype=np.float32)
    store, _ = make(tmp_path, X=lambda: X)
    rows = np.arange(0, 200)
    like = update(store, nodes=(rows, X[1000:1200]))
    assert 0 < like.drift < 1.5
    assert not like.fit_again
    unlike = update(store, nodes=(rows, X[1000:1200, ::-1].copy()))
    assert unlike.drift > 1.5
    assert "fit again" in str(unlike)


# --- killed ---------------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def test_a_killed_update_leaves_the_store_or_is_finished_later(tmp_path, monkeypatch):
    """Killed at every step of the commit, the store holds the old graph or, once it is opened again, the new one."""
    store, model = make(tmp_path)
    backup = shutil.copytree(store.path, tmp_path / "backup")
    pairs = random_pairs(5, 2)
    steps = 0
    while True:
        shutil.rmtree(store.path)
        shutil.copytree(backup, store.path)
        left, own = steps, {name: getattr(os, name) for name in ("replace", "pwrite", "fsync")}

        def killing(name, own=own):
            def call(*args):
                nonlocal left
                if left == 0:
                    raise Killed
                left -= 1
                return own[name](*args)

            return call

        with monkeypatch.context() as patch:
            apply = scale_commit.Commit.apply

            def applied(self, path, patch=patch, apply=apply, own=own):
                for name in own:
                    patch.setattr(os, name, killing(name))
                apply(self, path)

            patch.setattr(scale_commit.Commit, "apply", applied)
            try:
                update(store, edges=pairs)
                done = True
            except Killed:
                done = False
        found = Store(store.path)
        assert not (store.path / "update.commit").exists()
        assert verify(found, sample=1).is_same, steps
        if steps % 5 == 0 or done:
            is_new = found.n_edges != Store(backup).n_edges
            assert is_new or not done
            if is_new:
                check_updated(found, model)
            else:
                update(found, edges=pairs)
                assert not list(store.path.glob(".*"))
                check_updated(found, model)
        if done:
            break
        steps += 1
    assert steps > 10


def test_an_update_waits_for_no_other_writer(tmp_path):
    store, _ = make(tmp_path)
    with updating_job._locked(store), pytest.raises(InputError, match="another process"):
        update(store, edges=[(0, 1)])


# --- bad input ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    return make(folder, ids=[f"node {k}" for k in range(N_NODES)])[0].path


def files(path):
    return {one: one.stat().st_mtime_ns for one in path.rglob("*") if one.is_file() and one.name != "lock"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            {"edges": [("node 3", "Node 44"), ("nobody", "node 5")]},
            ["2 edges", "'Node 44' of edge 0", "near 'node 44'"],
        ),
        ({"edges": [(f"x{k}", "node 1") for k in range(9)]}, ["9 edges", "'x4' of edge 4", "…"]),
        ({"remove": [("node 0", "node 1")]}, ["not there", "'node 0' to 'node 1'"]),
        ({"remove_nodes": ["node 3", "who"]}, ["who"]),
        ({"nodes": (["node 3"], np.ones((1, 3)))}, ["10 features", "3"]),
        ({"nodes": (["node 3", "node 4"], random_rows(3, 0))}, ["2 rows"]),
        ({"nodes": (["node 3", "node 3"], random_rows(2, 0))}, ["distinct"]),
        ({"nodes": (["node 3"], np.full((1, N_FEATURES), np.nan))}, ["nodes"]),
        ({"edges": [("node 3", "node 4", 2.0)]}, ["weights"]),
        ({"unknown": "ignore"}, ["unknown"]),
        ({"edges": 3}, ["edges"]),
        ({"nodes": 3}, ["nodes"]),
        ({"model": layers()}, ["model", "'default'"]),
    ],
)
def test_bad_input_is_named_and_changes_nothing(named, call, words):
    before = files(named)
    with pytest.raises((InputError, TypeError)) as error:
        update(named, **call)
    for word in words:
        assert word in str(error.value)
    assert files(named) == before


def test_unknown_nodes_are_dropped_or_added(named, tmp_path):
    store = Store(shutil.copytree(named, tmp_path / "copy"))
    edges = [("node 3", "new"), ("node 3", "node 4")]
    report = update(store, edges=edges, remove=[("node 0", "node 1")], unknown="drop")
    assert report.changes["edges left out"] == 1
    assert store.n_nodes == N_NODES
    report = update(store, edges=edges, unknown="add")
    assert store.n_nodes == N_NODES + 1
    assert store.ids[N_NODES:].tolist() == ["new"]
    assert not store.features[N_NODES:].any()


def test_row_numbers_of_new_nodes_have_no_gap(tmp_path):
    store, _ = make(tmp_path)
    with pytest.raises(InputError, match="1,300 to 1,300"):
        update(store, edges=[(0, N_NODES + 7)], unknown="add")
    with pytest.raises(InputError, match="integers"):
        update(store, edges=[("a", "b")])


def test_a_model_of_another_store_is_refused(tmp_path, named):
    store, _ = make(tmp_path)
    other = layers(random_state=3)
    other.fit_transform(Store(store.path, name="other"))
    with pytest.raises(InputError, match="model"):
        update(named, model=other)


def test_runs_that_cannot_be_computed_here_are_refused(named, tmp_path, monkeypatch):
    store = Store(shutil.copytree(named, tmp_path / "copy"))
    monkeypatch.setattr(updating_job, "cpu_target", lambda: {"cpu": "another"})
    with pytest.raises(InputError, match="processor"):
        update(store, edges=[("node 1", "node 2")])


# --- parts ----------------------------------------------------------------------------------------------


def test_checksums_follow_from_the_rows_that_changed():
    rng = np.random.default_rng(0)
    old = rng.normal(size=(500, 3)).astype(np.float32)
    for n_changed in (0, 1, 60):
        rows = np.sort(rng.permutation(500)[:n_changed])
        new = old.copy()
        new[rows] = rng.normal(size=(n_changed, 3))
        entry = {
            "borders": [0, 1, 200, 500],
            "checksums": [checksum(old[:1]), checksum(old[1:200]), checksum(old[200:])],
        }
        patched = PatchedRows(old, rows, new[rows], 500)
        found = patched_checksums(entry, entry["borders"], patched, rows, row_differences(old[rows], new[rows])[0])
        assert found == [checksum(new[:1]), checksum(new[1:200]), checksum(new[200:])]


def test_places_of_other_classes_get_their_rows(monkeypatch):
    classes = {4: np.array([0, 1, 0, 1]), 5: np.array([0, 0, 1, 1, 2])}
    rows, kinds = np.arange(100, 112), np.array([0, 0, 0, 0, 0, 1, 2, 1, 1, 0, 2, 0])
    groups = updating_blocks.gathered(rows, kinds, classes)
    kind_of = dict(zip(rows.tolist(), kinds.tolist(), strict=True))
    placed = []
    for k in range(groups.n_blocks):
        block, places = groups.blocks[k], groups.places[k]
        assert [kind_of[row] for row in block[places].tolist()] == classes[len(block)][places].tolist()
        assert (np.diff(groups.rows(k)) > 0).all()
        placed += groups.rows(k).tolist()
    assert sorted(placed) == rows.tolist()


# --- the command ----------------------------------------------------------------------------------------


def test_the_command_reads_files_and_says_what_it_did(tmp_path):
    store, model = make(tmp_path, ids=np.arange(N_NODES) + 10)
    X = random_rows(2, 5)
    columns = ",".join(f"f{k}" for k in range(N_FEATURES))
    rows = [",".join([str(name), *map(repr, map(float, row))]) for name, row in zip((12, 5000), X, strict=True)]
    (tmp_path / "nodes.csv").write_text("\n".join([f"id,{columns}", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n12,5000\n5000,20\n")
    (tmp_path / "gone.csv").write_text("id\n30\n31\n")
    given = (
        "--edges",
        tmp_path / "edges.csv",
        "--nodes",
        tmp_path / "nodes.csv",
        "--remove-nodes",
        tmp_path / "gone.csv",
    )
    done = call("update", store.path, *given)
    assert done.exit_code == 0, done.output
    assert "1 nodes added" in done.output
    assert "default psi2:" in done.output
    store.reopen()
    assert np.array_equal(store.features[N_NODES:], X[1:])
    assert store.removed[:].tolist() == [20, 21]
    check_updated(store, model)


def test_the_command_explains_a_wrong_call(tmp_path, named):
    (tmp_path / "edges.csv").write_text("source,target\nnode 3,node 999999\n")
    done = call("update", named, "--edges", tmp_path / "edges.csv")
    assert done.exit_code == 1
    assert "1 edge with another end" in done.stderr
    assert call("update", named).exit_code == 2
    assert call("update", named, "--edges", tmp_path / "edges.csv", "--unknown", "no").exit_code == 2


def test_columns_of_a_file_are_matched_by_name(tmp_path):
    graph, X = random_pairs(300, 0, 100), random_rows(100, 0)[:, :3]
    store = write_store(tmp_path / "graph", graph, X, feature_names=["a", "b", "c"])
    (tmp_path / "nodes.csv").write_text("id,c,a,b\n7,3,1,2\n")
    update(store, nodes=tmp_path / "nodes.csv")
    assert store.features[7:8].tolist() == [[1, 2, 3]]
    (tmp_path / "nodes.csv").write_text("id,c,a\n7,3,1\n")
    with pytest.raises(InputError, match="'b'"):
        update(store, nodes=tmp_path / "nodes.csv")
