"""A store that is whole, and one that is not: damage is named, and values that nobody could have computed are found."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from commands import call
from fishergraph import FisherEmbedding
from fishergraph._errors import FileFormatError, InputError
from fishergraph.scale import Store, verify, write_store
from fishergraph.scale import run as scale_run
from fishergraph.scale.arrays import checksum
from fishergraph.scale.run_folder import RunFolder

N_NODES = 1500  # three row blocks of a layer


def random_graph(seed=0, n_nodes=N_NODES, n_edges=4000):
    return np.random.default_rng(seed).integers(n_nodes, size=(2, n_edges))


def features(seed=0, n_nodes=N_NODES):
    return np.random.default_rng(seed).normal(size=(n_nodes, 12)).astype(np.float32)


def layers(**more):
    return FisherEmbedding(**{"dim": 8, "n_anchors": 2, "walk": None, "structure": None, "random_state": 0, **more})


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    store = write_store(tmp_path_factory.mktemp("verify") / "graph", random_graph(), features(), undirected=True)
    layers(walk=0.3).fit_transform(store)
    return store.path


@pytest.fixture
def store(embedded, tmp_path):
    return Store(shutil.copytree(embedded, tmp_path / "copy"))


def flip(path, position=-5):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))


def names(found):
    return {check.name for check in found.checks if not check.same}


def test_a_whole_store_is_the_same(store):
    found = verify(store, random_state=0)
    assert found.is_same, str(found)
    assert found.differences == []
    computed = [check.name for check in found.checks if "the same bits" in check.detail]
    assert computed == [f"embeddings/default psi{t}" for t in range(3)]
    assert "full" in str(found)


def test_full_computes_everything_again(store):
    found = verify(store.path, full=True)
    assert found.is_same, str(found)
    assert sum("all rows computed again" in check.detail for check in found.checks) == 5
    assert not list((store.path / "embeddings").glob(".*"))


@pytest.mark.parametrize(
    "array", ["indices.npy", "features.npy", "embeddings/default/psi1.npy", "embeddings/default/walk.npy"]
)
def test_a_flipped_bit_is_named_by_file_and_rows(store, array):
    flip(store.path / array)
    (text,) = verify(store, sample=0).differences
    assert array in text
    assert "rows" in text


def test_damage_of_multisets_and_missing_files_are_named(store):
    (folder,) = (store.path / "multisets").iterdir()
    flip(folder / "indices.npy")
    (text,) = verify(store, sample=0).differences
    assert f"multisets/{folder.name}/indices.npy, rows" in text
    (folder / "indices.npy").unlink()
    (store.path / "embeddings" / "default" / "psi2.npy").unlink()
    found = verify(store, sample=0).differences
    assert ["missing" in text for text in found] == [True, True]


def test_the_part_of_a_damaged_row_is_named(embedded, tmp_path, monkeypatch):
    monkeypatch.setattr("fishergraph.scale.stored_pass.PART_BYTES", 500 * 8 * 4)
    store = write_store(tmp_path / "parts", random_graph(), features(), undirected=True)
    layers().fit_transform(store)
    flip(store.path / "embeddings" / "default" / "psi2.npy")
    (text,) = verify(store).differences
    assert text.endswith("psi2.npy, rows 750 to 1,499")


def test_values_with_right_checksums_and_wrong_bits_are_found(store):
    folder = store.path / "embeddings" / "default"
    values = np.load(folder / "psi2.npy")
    values[700] = np.nextafter(values[700], 9)
    np.save(folder / "psi2.npy", values)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["arrays"]["psi2"]["checksums"] = [checksum(values)]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (text,) = verify(store).differences
    assert "psi2" in text
    assert "1 rows have other bits, 700 to 700" in text
    assert verify(store, sample=0).is_same


def test_two_stores_are_compared(store, embedded, tmp_path):
    assert verify(embedded, store).is_same
    other = write_store(tmp_path / "other", random_graph(1), features(), undirected=True)
    layers(walk=0.3, n_anchors=3).fit_transform(other)
    found = names(verify(store, other))
    assert found >= {"graph", "embeddings/default parameters", "embeddings/default psi1", "embeddings/default model"}
    assert not found & {"features", "ids"}
    assert "n_anchors is 2 and 3" in str(verify(store, other))


def test_two_runs_are_compared(store):
    again = Store(store.path, name="again")
    layers(walk=0.3, n_jobs=1).fit_transform(again)
    runs = [store.path / "embeddings" / name for name in ("default", "again")]
    assert verify(*runs).is_same
    layers(walk=0.3, random_state=1).fit_transform(Store(store.path, name="other"))
    found = verify(runs[0], store.path / "embeddings" / "other")
    assert "the seed differs" in str(found)
    assert "rows 0 to 1,499" in str(found)
    with pytest.raises(InputError, match="two stores"):
        verify(store, runs[0])


def test_runs_that_have_not_ended_or_belong_elsewhere_are_named(store, monkeypatch):
    folder = store.path / "embeddings" / "default"
    monkeypatch.setattr("fishergraph.scale.verification.cpu_target", lambda: {"cpu": "another"})
    found = verify(store)
    assert found.is_same
    assert "another processor" in str(found)
    identity = RunFolder(folder).identity
    (folder / "run.json").write_text(json.dumps({**identity, "store": "of another graph"}))
    assert "another graph" in str(verify(store))
    assert not verify(store).is_same
    (folder / "manifest.json").unlink()
    (check,) = (check for check in verify(store).checks if check.skipped)
    assert check.name == "embeddings/default"
    assert "skipped  embeddings/default: it has not ended" in str(verify(store))
    with pytest.raises(FileFormatError, match="not ended"):
        verify(folder, folder)


def test_a_run_without_features_is_verified(tmp_path):
    store = write_store(tmp_path / "edges", random_graph(), undirected=True)
    FisherEmbedding(dim=8, n_anchors=2, random_state=0).fit_transform(store)
    assert verify(store).is_same
    assert verify(store, full=True).is_same


@pytest.mark.parametrize(
    "more", [{"family": "diagonal-mixture"}, {"multiset": "hops"}, {"n_layers": 0}, {"counts": True}]
)
def test_rows_of_other_settings_are_computed_again(tmp_path, more):
    store = write_store(tmp_path / "graph", random_graph(), features(), undirected=True)
    layers(**more).fit_transform(store)
    found = verify(store)
    assert found.is_same, str(found)
    assert "computed again: the same bits" in str(found)


# --- what changed is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"dim": 9}, "dim"), ({"random_state": 1}, "random_state"), ({"block_weights": {"psi1": 2}}, "weights")],
)
def test_a_changed_parameter_is_refused(store, settings, word):
    with pytest.raises(InputError, match=word):
        layers(walk=0.3).set_params(**settings).fit_transform(store)


@pytest.mark.parametrize(("graph", "X"), [(1, 0), (0, 1)])
def test_a_changed_graph_or_features_are_refused(store, graph, X):
    shutil.move(store.path / "embeddings", store.path.parent / "embeddings")
    other = write_store(store.path, random_graph(graph), features(X), undirected=True, overwrite=True)
    shutil.move(store.path.parent / "embeddings", store.path)
    with pytest.raises(InputError, match="graph with its features"):
        layers(walk=0.3).fit_transform(other)


def test_another_processor_or_version_is_refused(store, monkeypatch):
    monkeypatch.setattr(scale_run, "cpu_target", lambda: {"cpu": "another"})
    with pytest.raises(InputError, match="processor"):
        layers(walk=0.3).fit_transform(store)
    monkeypatch.undo()
    monkeypatch.setattr(scale_run, "__version__", "0.0.0")
    with pytest.raises(InputError, match="version"):
        layers(walk=0.3).fit_transform(store)


def test_a_block_of_weight_zero_leaves_no_file(tmp_path):
    store = write_store(tmp_path / "graph", random_graph(), features(), undirected=True)
    Z = layers(walk=0.3, block_weights={"walk": 0}).fit_transform(store)
    assert [name for name, _ in Z.blocks_] == ["psi0", "psi1", "psi2", "smooth"]
    assert not (store.path / "embeddings" / "default" / "walk.npy").exists()
    assert verify(store).is_same


# --- the command ----------------------------------------------------------------------------------------


def test_the_command_says_what_differs_and_leaves_with_1(store):
    done = call("verify", store.path, "--sample", "1")
    assert done.exit_code == 0, done.output
    assert "nothing differs" in done.output
    flip(store.path / "embeddings" / "default" / "psi0.npy")
    done = call("verify", store.path, "--quiet")
    assert done.exit_code == 1
    assert done.output.startswith("DIFFERS  embeddings/default psi0: embeddings/default/psi0.npy, rows")
    assert len(done.output.splitlines()) == 1
