"""A store is embedded with the bits of a run in memory, within its memory, and goes on after any interruption."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph import EM, FisherEmbedding, Neighbourhood, Paths, Structure
from fishergraph._errors import FileFormatError, InputError, NotEnoughMemory
from fishergraph.scale import Store, StoredEmbedding, StoreWriter, write_store
from fishergraph.scale.run import LocalExecutor
from fishergraph.scale.run_folder import RunFolder
from scale.stores import random_graph, random_store, small_budget, small_parts

SETTINGS = {
    "default": {},
    "layers alone": {"walk": None, "structure": None, "n_layers": 3},
    "counts and local columns": {"counts": True, "structure": "local"},
    "symmetric weights": {"multiset": Neighbourhood(weights="symmetric"), "structure": None},
    "open, uniform": {"multiset": Neighbourhood(closed=False, weights="uniform"), "walk": None, "structure": None},
    "PageRank multisets": {"multiset": "ppr", "walk": None, "structure": None},
    "no unit rows": {"normalize": False, "structure": None},
    "no layers": {"n_layers": 0},
    "projection": {"structure": Structure("projection")},
    "identity": {"kernel": "identity", "n_layers": 1, "structure": None, "walk": None},
    "weights of blocks": {"block_weights": {"psi0": 0, "walk": 2.0}, "structure": None},
    "published": dict(FisherEmbedding.published_code().get_params(deep=False), n_layers=2),
}


def model(**settings) -> FisherEmbedding:
    return FisherEmbedding(**{"dim": 16, "random_state": 3, **settings})


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_bits_are_those_of_memory(tmp_path, monkeypatch, name, tiled):
    store, graph, X = random_store(tmp_path / "s", weighted=name == "symmetric weights")
    settings = {**SETTINGS[name], "dim": 16, "random_state": 3}
    small_parts(monkeypatch)
    if tiled:
        small_budget(monkeypatch)
    in_memory, stored = FisherEmbedding(**settings), FisherEmbedding(**settings)
    Z = in_memory.fit_transform(X, graph=graph)
    S = stored.fit_transform(store)
    assert isinstance(S, StoredEmbedding)
    assert S.blocks_ == in_memory.blocks_ == stored.blocks_
    assert S.dtype == Z.dtype
    np.testing.assert_array_equal(np.asarray(S), Z)
    assert not (S.path / "work").exists()


@pytest.mark.parametrize("options", [{"sparse": True}, {"weighted": True}])
def test_kinds_of_features_and_weights(tmp_path, monkeypatch, options):
    store, graph, X = random_store(tmp_path / "s", **options)
    small_budget(monkeypatch)
    np.testing.assert_array_equal(np.asarray(model().fit_transform(store)), model().fit_transform(X, graph=graph))


def test_a_sample_of_rows_is_learned_from(tmp_path, monkeypatch):
    """More rows than the sample: maps are learned from some of them."""
    store, graph, X = random_store(tmp_path / "s", n_nodes=6000)
    small_budget(monkeypatch)
    settings = {"n_layers": 2, "structure": None}
    np.testing.assert_array_equal(
        np.asarray(model(**settings).fit_transform(store)), model(**settings).fit_transform(X, graph=graph)
    )


def test_a_graph_without_features(tmp_path):
    graph, _ = random_graph()
    store = write_store(tmp_path / "s", graph)
    stored = model()
    S = stored.fit_transform(store)
    np.testing.assert_array_equal(np.asarray(S), model().fit_transform(graph=graph))
    assert stored.n_features_in_ == 16
    assert stored.structural_


def test_float16_features_are_read_as_float32(tmp_path):
    graph, X = random_graph()
    half = X.astype(np.float16)
    with StoreWriter(tmp_path / "s") as writer:
        writer.array("indptr", graph.indptr.shape, np.int64)[:] = graph.indptr
        writer.array("indices", graph.indices.shape, graph.indices.dtype)[:] = graph.indices
        writer.array("features", half.shape, np.float16)[:] = half
    S = model().fit_transform(Store(tmp_path / "s"))
    np.testing.assert_array_equal(np.asarray(S), model().fit_transform(half.astype(np.float32), graph=graph))


def test_transform_and_the_model_file(tmp_path):
    store, graph, X = random_store(tmp_path / "s")
    stored = model()
    S = stored.fit_transform(store)
    other, other_graph, other_X = random_store(tmp_path / "t", seed=1)
    expected = stored.transform(other_X, graph=other_graph)
    np.testing.assert_array_equal(np.asarray(stored.transform(other)), expected)
    loaded = FisherEmbedding.load(S.path / "model.safetensors")
    np.testing.assert_array_equal(np.asarray(loaded.transform(Store(store.path, name="again"))), np.asarray(S))
    np.testing.assert_array_equal(loaded.transform(X, graph=graph), np.asarray(S))
    assert list(stored.get_feature_names_out()[:2]) == ["psi0_0", "psi0_1"]


def test_rows_of_the_embedding(tmp_path):
    store, _graph, _X = random_store(tmp_path / "s")
    S = model().fit_transform(store)
    Z = np.asarray(S)
    rows = np.array([5, 3, 800, 3])
    np.testing.assert_array_equal(S[rows], Z[rows])
    np.testing.assert_array_equal(S[-1], Z[-1])
    np.testing.assert_array_equal(S[10:40], Z[10:40])
    np.testing.assert_array_equal(np.concatenate([S[part] for part in S.slices(100)]), Z)
    name, width = S.blocks_[0]
    np.testing.assert_array_equal(S.block(name)[:], Z[:, :width])


class Interrupted(Exception):
    pass


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    store, graph, X = random_store(tmp_path / "s")
    expected = model().fit_transform(X, graph=graph)
    small_parts(monkeypatch)
    small_budget(monkeypatch)
    computed: list[tuple[str, int]] = []
    original = LocalExecutor.run

    def interrupted(self, folder, task, log, advance):
        """Stop before the second missing part of a task."""
        for part in log.missing[:2]:
            if part == log.missing[-1] or part == log.missing[0]:
                computed.append((task.name, part))
                log.mark(part, task.compute(part, advance))
        if log.missing:
            raise Interrupted

    monkeypatch.setattr(LocalExecutor, "run", interrupted)
    for _ in range(1000):
        try:
            S = model().fit_transform(store)
            break
        except Interrupted:
            continue
    monkeypatch.setattr(LocalExecutor, "run", original)
    np.testing.assert_array_equal(np.asarray(S), expected)
    assert len(set(computed)) == len(computed), "a part that was written is not computed again"
    assert len(computed) > 20


def test_a_run_without_a_seed_goes_on_with_the_one_it_drew(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")
    first = model(random_state=None).fit_transform(store)
    again = model(random_state=None).fit_transform(store)
    np.testing.assert_array_equal(np.asarray(first), np.asarray(again))


def test_a_finished_run_is_not_computed_again(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")
    S = model().fit_transform(store)
    monkeypatch.setattr(LocalExecutor, "run", None)
    np.testing.assert_array_equal(np.asarray(model().fit_transform(store)), np.asarray(S))


# --- what is refused -------------------------------------------------------------------------------------


def test_another_parameter_is_refused(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    model().fit(store)
    with pytest.raises(InputError) as caught:
        model(n_anchors=2).fit(store)
    assert caught.value.parameter == "n_anchors"
    with pytest.raises(InputError) as caught:
        model(random_state=4).fit(store)
    assert caught.value.parameter == "random_state"
    assert caught.value.settings == {"overwrite": True}
    with pytest.raises(InputError) as caught:
        model(block_weights={"walk": 2.0}).fit(store)
    assert caught.value.parameter == "block_weights"
    with pytest.raises(InputError) as caught:  # which has other blocks, and so other weights of blocks
        model(structure=None, random_state=4).fit(store)
    assert caught.value.parameter == "structure"
    model(n_anchors=2).fit(Store(store.path, overwrite=True))
    model(n_anchors=3).fit(Store(store.path, name="other"))


def test_another_graph_is_refused(tmp_path):
    store, graph, X = random_store(tmp_path / "s")
    model().fit(store)
    kept = (tmp_path / "s" / "embeddings").rename(tmp_path / "kept")
    changed = write_store(tmp_path / "s", graph, X + 1, overwrite=True)
    kept.rename(tmp_path / "s" / "embeddings")
    with pytest.raises(InputError) as caught:
        model().fit(changed)
    assert "graph" in caught.value.parameter


def test_another_processor_is_refused(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")
    model().fit(store)
    monkeypatch.setattr("fishergraph.scale.run.cpu_target", lambda: {"cpu": "another"})
    with pytest.raises(InputError) as caught:
        model().fit(store)
    assert "processor" in caught.value.parameter


def test_too_little_memory_is_refused_with_the_least_that_works(tmp_path):
    store, *_ = random_store(tmp_path / "s", n_nodes=3000)
    with pytest.raises(NotEnoughMemory) as caught:
        model(structure=None).fit(Store(store.path, memory="100M"))
    assert caught.value.available == 10**8
    model(structure=None).fit(Store(store.path, memory=int(caught.value.needed * 1.2)))


@pytest.mark.parametrize("refused", [{"memory": "400M"}, {"multiset": Paths(2)}])
def test_a_refused_run_does_not_take_its_name(tmp_path, refused):
    graph, X = random_graph(20_000)
    store = write_store(tmp_path / "s", graph, X)
    settings = {key: refused[key] for key in refused if key != "memory"}
    with pytest.raises((NotEnoughMemory, InputError)):
        model(n_anchors=32, **settings).fit(Store(store.path, memory=refused.get("memory")))
    assert not (store.path / "embeddings").exists()


def test_a_run_without_a_finished_part_does_not_hold_its_name(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")

    def stopped(self, folder, task, log, advance):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(LocalExecutor, "run", stopped)
        with pytest.raises(Interrupted):
            model(structure=None).fit(store)
    assert (store.path / "embeddings" / "default" / "run.json").is_file()
    changed = model(n_anchors=2, structure=None)
    with RunFolder(store.path / "embeddings" / "default").locked(), pytest.raises(InputError, match="process"):
        changed.fit(store)  # somebody is about to write the first part
    changed.fit(store)
    assert StoredEmbedding(store.path / "embeddings" / "default").shape[0] == store.n_nodes


@pytest.mark.parametrize("memory", ["a lot", "-1G", 0, True])
def test_memory_is_a_number_of_bytes(tmp_path, memory):
    store, *_ = random_store(tmp_path / "s")
    with pytest.raises(InputError, match="memory"):
        model().fit(Store(store.path, memory=memory))


@pytest.mark.parametrize("rule", [Paths(2), Neighbourhood(undirected=True)])
def test_multisets_that_a_store_does_not_have(tmp_path, rule):
    graph, X = random_graph()
    store = write_store(tmp_path / "s", graph, X)
    with pytest.raises(InputError) as caught:
        model(multiset=rule, structure=None).fit(store)
    assert caught.value.parameter == "multiset"


def test_tiles_need_the_default_steps(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")
    small_budget(monkeypatch)
    with pytest.raises(InputError, match="memory"):
        model(em=EM(n_iter=3), structure=None, walk=None).fit(store)


def test_no_graph_and_no_device_beside_a_store(tmp_path):
    store, graph, _ = random_store(tmp_path / "s")
    with pytest.raises(InputError) as caught:
        model().fit(store, graph=graph)
    assert caught.value.parameter == "graph"
    with pytest.raises(InputError) as caught:
        model(device="cuda").fit(store)
    assert caught.value.parameter == "device"


def test_a_model_with_features_and_a_store_without(tmp_path):
    graph, X = random_graph()
    fitted = model().fit(X, graph=graph)
    with pytest.raises(InputError, match="store"):
        fitted.transform(write_store(tmp_path / "s", graph))


def test_no_structure_and_no_features(tmp_path):
    graph, _ = random_graph()
    with pytest.raises(InputError, match="structure"):
        model(structure=None).fit(write_store(tmp_path / "s", graph))


def test_a_run_that_has_not_ended_is_no_embedding(tmp_path):
    with pytest.raises(FileFormatError):
        StoredEmbedding(tmp_path)


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a/b"])
def test_names_of_runs(tmp_path, name):
    store, *_ = random_store(tmp_path / "s")
    with pytest.raises(InputError, match="name"):
        model().fit(Store(store.path, name=name))
