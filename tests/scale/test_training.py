"""Networks on a store: the batches, losses and weights of a training in memory, from files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import FisherClassifier, Neighbourhood, Paths  # noqa: E402
from fishergraph._errors import InputError, NotEnoughMemory  # noqa: E402
from fishergraph.nn import FisherNet, Training, tensor_sets, train  # noqa: E402
from fishergraph.nn.loader import CSRNeighborLoader  # noqa: E402
from fishergraph.nn.rows import as_tensor  # noqa: E402
from fishergraph.nn.stored import opened  # noqa: E402
from fishergraph.scale import Store, StoredEmbedding, write_store  # noqa: E402
from fishergraph.scale.arrays import FileArray  # noqa: E402
from scale.stores import random_graph, random_store  # noqa: E402

N, CLASSES = 900, 3
Y = torch.arange(N) % CLASSES
SPLIT: dict[str, Any] = {"train": range(300), "val": range(300, 500)}
BATCHES: dict[str, Any] = {"batch_size": 64, "num_neighbors": 4, "n_jobs": 1}
KINDS = {
    "plain": ({}, Neighbourhood()),
    "symmetric weights": ({"weighted": True}, Neighbourhood(weights="symmetric")),
    "sparse features, open": ({"sparse": True}, Neighbourhood(closed=False)),
    "weights of edges": ({"weighted": True}, Neighbourhood()),
}


@pytest.fixture(params=["memory", "files"])
def place(request, monkeypatch):
    """Whether features, multisets and the arrays between layers fit into memory."""
    if request.param == "files":
        monkeypatch.setattr("fishergraph.scale.rows._spare_bytes", lambda store: 2**16)
        monkeypatch.setattr("fishergraph.nn.stored.HOP_ENTRIES", 100)
    return request.param


def network(rule: Any = "neighbourhood", **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return FisherNet(20, 8, 2, **{"out_channels": CLASSES, "num_anchors": 2, "multiset": rule, **options})


def both(path, kind):
    """A store, and its features and multisets in memory."""
    options, rule = KINDS[kind]
    store, graph, X = random_store(path, **options)
    return store, as_tensor(X), tensor_sets(rule.sets(graph, None, np.float32)), rule


def same_weights(one, other):
    others = other.state_dict()
    return all(torch.equal(value, others[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_is_that_in_memory(tmp_path, place, kind):
    store, x, sets, rule = both(tmp_path / "s", kind)
    nets = [network(rule, dropout=0.5), network(rule, dropout=0.5)]
    options = {**SPLIT, **BATCHES, "epochs": 2, "seed": 1}
    expected, found = train(nets[0], x, Y, sets, **options), train(nets[1], store, Y, **options)
    assert [row["loss"] for row in found.rows] == [row["loss"] for row in expected.rows]
    for name in ("train_accuracy", "val_accuracy", "val_loss"):
        np.testing.assert_allclose([row[name] for row in found.rows], [row[name] for row in expected.rows], rtol=1e-5)
    assert same_weights(*nets)
    assert not list(store.path.glob(".rows.*"))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_multisets_in_memory(tmp_path, place, kind):
    store, x, sets, rule = both(tmp_path / "s", kind)
    options = {"num_neighbors": [5, 3], "batch_size": 50, "shuffle": True, "y": Y, "seed": 2}
    with opened(network(rule), store, None, None) as graph:
        assert isinstance(graph.data.features, (np.ndarray, type(None))) == (place == "memory" and not x.is_sparse_csr)
        assert isinstance(graph.data.sets.indices, FileArray) == (place == "files")
        loaders = CSRNeighborLoader(sets, x=x, **options), CSRNeighborLoader(graph, **options)
        for expected, found in zip(*loaders, strict=True):
            assert set(found.keys()) == set(expected.keys())
            for name in ("n_id", "e_id", "edge_index", "y", "input_id", "edge_weight"):
                if name in expected:
                    assert torch.equal(torch.as_tensor(found[name]), torch.as_tensor(expected[name])), name
            assert torch.equal(*(batch["x"].to_dense() for batch in (found, expected)))
            assert found.num_sampled_nodes == expected.num_sampled_nodes
            assert found.num_sampled_edges == expected.num_sampled_edges


@pytest.mark.parametrize(
    "options", [{}, {"input_map": False}, {"head": "relu", "jk": "last"}, {"family": "multinomial"}]
)
def test_anchors_and_landmarks_are_learned_as_in_memory(tmp_path, place, options):
    graph, X = random_graph(weighted=True)
    if "family" in options:
        X = np.abs(np.round(X))
    store = write_store(tmp_path / "s", graph, X)
    rule = Neighbourhood(weights="symmetric")
    expected = network(rule, **options).init_from_data(as_tensor(X), tensor_sets(rule(graph)), seed=3)
    found = network(rule, **options).init_from_data(store, seed=3)
    others = found.state_dict()
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(others[name], value, rtol=1e-4, atol=1e-5)
    if place == "memory":
        assert same_weights(expected, found)


OUTPUTS = [
    ({}, ["logits"]),
    ({"out_channels": None}, ["psi0", "psi1", "psi2"]),
    ({"out_channels": None, "input_map": False}, ["psi1", "psi2"]),
    ({"out_channels": None, "jk": "last"}, ["psi2"]),
]


@pytest.mark.parametrize(("options", "names"), OUTPUTS)
def test_inference_is_that_in_memory_and_is_kept_in_the_store(tmp_path, place, options, names):
    store, x, sets, rule = both(tmp_path / "s", "symmetric weights")
    net = network(rule, dropout=0.3, **options)
    found = net.inference(store)
    assert isinstance(found, StoredEmbedding)
    assert net.training
    np.testing.assert_allclose(found[:], net.inference(x, sets).numpy(), rtol=2e-5, atol=1e-6)
    assert [name for name, _ in found.blocks_] == names
    assert not list(store.path.glob(".rows.*"))


def test_what_is_kept_belongs_to_one_network(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    first = network().inference(store)
    written = (first.path / "logits.npy").stat().st_mtime_ns
    assert (network().inference(store).path / "logits.npy").stat().st_mtime_ns == written
    other = network(num_anchors=3)
    with pytest.raises(InputError, match="num_anchors"):
        other.inference(store)
    other.inference(Store(store.path, name="other"))
    replaced = other.inference(Store(store.path, overwrite=True))
    np.testing.assert_array_equal(replaced[:], np.asarray(StoredEmbedding(store.path / "embeddings" / "other")))


def test_features_of_16_bits(tmp_path, place):
    graph, X = random_graph()
    store, narrow = write_store(tmp_path / "s", graph, X), X.astype(np.float16)
    store = Store(store.path)
    with_halves(store, narrow)
    store, nets = Store(store.path), [network(), network()]
    options = {**SPLIT, **BATCHES, "epochs": 1}
    expected = train(nets[0], torch.from_numpy(narrow), Y, tensor_sets(Neighbourhood()(graph)), **options)
    assert train(nets[1], store, Y, **options).rows[0]["loss"] == expected.rows[0]["loss"]


def with_halves(store, X):
    """Write the features of a store again."""
    import json

    from fishergraph.scale.store import array_entry

    array = FileArray.create(store.path / "features.npy", X.shape, X.dtype)
    array[:] = X
    store.manifest["arrays"]["features"] = array_entry(array)
    (store.path / "manifest.json").write_text(json.dumps(store.manifest))


def test_a_resumed_run_has_the_same_numbers(tmp_path):
    store, graph, X = random_store(tmp_path / "s")
    options = {**SPLIT, **BATCHES, "seed": 4, "checkpoint": tmp_path / "run"}
    whole = train(network(dropout=0.5), store, Y, **options, epochs=4)
    (tmp_path / "run").unlink()
    train(network(dropout=0.5), store, Y, **options, epochs=2)
    resumed = train(network(dropout=0.5), store, Y, **options, epochs=4, resume=True)
    assert [row["loss"] for row in resumed.rows] == [row["loss"] for row in whole.rows]
    other = write_store(tmp_path / "other", graph, X + 1)
    with pytest.raises(InputError, match="store"):
        train(network(dropout=0.5), other, Y, **options, epochs=4, resume=True)


WRONG = {
    "labels of another length": ({}, {"y": Y[1:]}, "900"),
    "the whole graph at once": ({}, {"batch_size": None}, "batch_size"),
    "near": ({}, {"near": True}, "near"),
    "a loader": ({}, {"loader": [1], "batch_size": None}, "loader"),
    "edges beside the store": ({}, {"edge_index": torch.zeros(2, 0).long()}, "edge_index"),
    "weights beside the store": ({}, {"edge_weight": torch.zeros(0)}, "edge_weight"),
    "another width": ({"in_channels": 7}, {}, "7 features"),
    "members of several rows": ({"multiset": Paths(2)}, {}, "multiset"),
    "a readout": ({"pooling": "mean"}, {}, "readout"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_says_what_to_do(tmp_path, case):
    model, options, word = WRONG[case]
    store, *_ = random_store(tmp_path / "s")
    net = FisherNet(**{"in_channels": 20, "hidden_channels": 8, "num_layers": 2, "out_channels": CLASSES, **model})
    with pytest.raises(InputError, match=word):
        train(net, store, **{"y": Y, "epochs": 1, **SPLIT, **BATCHES, **options})


def test_other_models_and_types_are_refused(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    for model, word in ((torch.nn.Linear(20, 3), "FisherNet"), (network().half(), "float16")):
        with pytest.raises(InputError, match=word):
            train(model, store, Y, epochs=1, **SPLIT, **BATCHES)


def test_a_store_without_features(tmp_path):
    store = write_store(tmp_path / "s", random_graph()[0])
    for work in (lambda: train(network(), store, Y, **SPLIT, **BATCHES), lambda: network().inference(store)):
        with pytest.raises(InputError, match="features"):
            work()


def test_a_store_that_was_written_again(tmp_path):
    store, graph, X = random_store(tmp_path / "s")
    write_store(store.path, graph, X[::-1], overwrite=True)
    with pytest.raises(InputError, match="open it again"):
        train(network(), store, Y, epochs=1, **SPLIT, **BATCHES)


def test_a_budget_that_is_too_small_names_one_that_is_not(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    with pytest.raises(NotEnoughMemory, match="set memory") as caught:
        train(network(), Store(store.path, memory="100M"), Y, epochs=1, **SPLIT, **BATCHES)
    text = str(caught.value).rsplit("memory='", 1)[1].split("'")[0]
    assert len(train(network(), Store(store.path, memory=text), Y, epochs=1, **SPLIT, **BATCHES)) == 1


def test_files_of_a_killed_training_are_removed_by_the_next(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    left = store.path / ".rows.999999999-0.work"
    left.mkdir()
    train(network(), store, Y, epochs=1, **SPLIT, **BATCHES)
    assert not left.exists()


def test_chosen_rows_that_are_read_in_pieces(tmp_path, monkeypatch):
    """Rows near each other are read together, up to a number of bytes."""
    monkeypatch.setattr("fishergraph.scale.arrays._TOGETHER", 64)
    values = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    array = FileArray.create(tmp_path / "a.npy", values.shape, values.dtype)
    array[:] = values
    chosen = np.random.default_rng(0).integers(1000, size=400)
    np.testing.assert_array_equal(array[chosen], values[chosen])
    np.testing.assert_array_equal(array[np.sort(chosen)], values[np.sort(chosen)])


# --- FisherClassifier ------------------------------------------------------------------------------------


def classifier(**options):
    training = Training(**{"max_epochs": 3, "batch_size": 64, "fan_out": 4, **options})
    return FisherClassifier(dim=8, n_anchors=2, training=training, random_state=0, n_jobs=1)


def labels():
    y = np.array(["a", "b", "c"])[np.asarray(Y)].astype(object)
    y[400:] = None
    return y


def test_a_classifier_of_a_store_is_that_of_the_graph_in_memory(tmp_path):
    store, graph, X = random_store(tmp_path / "s")
    expected = classifier().fit(X, labels(), graph=graph)
    found = classifier().fit(store, labels())
    assert same_weights(expected.net_, found.net_)
    assert found.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found.predict_proba(store), expected.predict_proba(X, graph=graph), rtol=1e-4, atol=1e-6)
    assert found.score(store, labels()) == pytest.approx(expected.score(X, labels(), graph=graph), abs=0.01)
    found.save(tmp_path / "model")
    loaded = FisherClassifier.load(tmp_path / "model")
    assert loaded.predict(store).tolist() == found.predict(store).tolist()
    assert loaded.predict(X, graph=graph).tolist() == expected.predict(X, graph=graph).tolist()


def test_a_classifier_refuses_what_a_store_cannot_do(tmp_path):
    store, graph, _ = random_store(tmp_path / "s")
    for model, options, word in (
        (classifier(batch_size=None), {}, "batch_size"),
        (classifier(), {"graph": graph}, "graph"),
        (FisherClassifier(mode="probe"), {}, "mode"),
    ):
        with pytest.raises(InputError) as caught:
            model.fit(store, labels(), **options)
        assert caught.value.parameter == word
    with pytest.raises(InputError, match="label"):
        classifier().fit(store, labels()[1:])
