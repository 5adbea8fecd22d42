"""Steps on receptive fields: the logits, gradients and histories of the whole graph, from a part of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import Neighbourhood  # noqa: E402
from fishergraph.nn import FisherNet, train  # noqa: E402
from fishergraph.nn.batches import receptive_field  # noqa: E402
from fishergraph.nn.rows import as_tensor  # noqa: E402

N, CLASSES = 60, 3
rng = np.random.default_rng(0)
TRAIN, VAL = torch.arange(4), torch.arange(4, 10)
Y = torch.from_numpy(rng.integers(0, CLASSES, N))
# A sparse graph, so that some nodes are far from all labels.
EDGES = torch.from_numpy(np.stack([np.arange(N), np.roll(np.arange(N), 1)]))
EDGES = torch.cat([EDGES, EDGES.flip(0), torch.from_numpy(rng.integers(0, N // 2, (2, 12)))], dim=1)
WEIGHTS = torch.from_numpy(rng.random(EDGES.shape[1])).double() + 0.1
WORDS = sp.csr_array((rng.random((N, 12)) < 0.3) * rng.random((N, 12)))


def features(kind):
    return as_tensor(WORDS) if kind == "sparse" else torch.from_numpy(WORDS.toarray())


def network(n_layers, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = FisherNet(12, 8, n_layers, CLASSES, num_anchors=2, **options).double()
    return net.init_from_data(features("dense"), EDGES, seed=0)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"multiset": Neighbourhood(weights="symmetric")}, {"jk": "last"}],
    ids=["plain", "symmetric", "last"],
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_logits_and_gradients_are_those_of_the_whole_graph(n_layers, options, kind):
    net, x = network(n_layers, dropout=0.0, **options), features(kind)
    sets = net.sets(EDGES, WEIGHTS, N)
    field = receptive_field(x, sets, TRAIN, n_layers)
    assert field.x.shape[0] == sum(field.per_hop) < N
    found = {}
    for name, logits in (("whole", net(x, EDGES, WEIGHTS)[TRAIN]), ("near", field.logits(net))):
        net.zero_grad()
        torch.nn.functional.cross_entropy(logits, Y[TRAIN]).backward()
        found[name] = [logits.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)]
    for near, whole in zip(found["near"], found["whole"], strict=True):
        torch.testing.assert_close(near, whole, rtol=1e-9, atol=1e-11)


def test_a_training_without_dropout_has_the_same_history():
    histories = []
    for near in (False, True):
        net = copy.deepcopy(network(2, dropout=0.0))
        history = train(net, features("sparse"), Y, EDGES, train=TRAIN, val=VAL, epochs=6, near=near, lr=0.05)
        histories.append(
            [[row[key] for key in ("loss", "train_accuracy", "val_accuracy", "val_loss")] for row in history.rows]
        )
    np.testing.assert_allclose(histories[1], histories[0], rtol=1e-9)


def test_with_dropout_it_trains_and_repeats_itself():
    first, again = (
        train(network(2, dropout=0.5), features("dense"), Y, EDGES, train=TRAIN, val=VAL, epochs=5, near=True, seed=3)
        for _ in range(2)
    )
    assert [row["loss"] for row in first.rows] == [row["loss"] for row in again.rows]


def test_what_it_cannot_do_is_said():
    given = {"train": TRAIN, "val": VAL, "epochs": 1, "near": True}
    with pytest.raises(ValueError, match="near"):
        train(network(2), features("dense"), Y, EDGES, batch_size=2, **given)
    with pytest.raises(ValueError, match="Linear"):
        train(torch.nn.Linear(12, CLASSES).double(), features("dense"), Y, EDGES, **given)
    with pytest.raises(ValueError, match="near"):
        train(network(2), features("dense"), Y, EDGES, **{**given, "near": 1})
