"""Sizes that no network and no training can have are refused at once, in a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import FisherClassifier  # noqa: E402
from fishergraph._errors import InputTypeError, NotEnoughMemory  # noqa: E402
from fishergraph.lab.baselines import baseline  # noqa: E402
from fishergraph.nn import FisherConv, FisherNet, Training, WeightedMixture, channels, heads, mixture, models, train  # noqa: E402

HUGE = 10**9
X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
A = sp.csr_array(np.roll(np.eye(12), 1, axis=1))
Y = np.arange(12) % 2


def fit(**options):
    x, y, edges = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(np.stack(A.nonzero()).astype(np.int64))
    return train(FisherNet(3, 4, 1, 2), x, y, edges, train=torch.arange(8), **options)


def test_a_size_that_is_too_large_is_named():
    cases = {
        "epochs": lambda: fit(epochs=HUGE),
        "batch_size": lambda: fit(batch_size=2**70),
        "num_neighbors": lambda: fit(batch_size=2, num_neighbors=2**70),
        "lr": lambda: fit(lr=1e300),
        "weight_decay": lambda: fit(weight_decay=1e300),
        "max_epochs": lambda: FisherClassifier(training=Training(max_epochs=HUGE)),
        "n_steps": lambda: baseline("sgc", n_steps=HUGE).fit(X, Y, graph=A, train=np.arange(6), val=np.arange(6, 9)),
        "hidden": lambda: baseline("gcn", hidden=HUGE).fit(X, Y, graph=A, train=np.arange(6), val=np.arange(6, 9)),
    }
    for name, make in cases.items():
        with pytest.raises(ValueError, match=rf"^{name} must be .* at most "):
            make()


def test_a_parameter_that_memory_cannot_hold_is_a_memory_error(monkeypatch):
    def full(*shape):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    makers = {
        "weight": (channels.torch, "empty", lambda: FisherConv(3, 4)),
        "bias": (heads.torch, "empty", lambda: heads.LinearHead(-1, 4)),
        "weights": (mixture.torch, "zeros", lambda: FisherConv(-1, 4, family=WeightedMixture())),
        "norm": (heads.nn, "BatchNorm1d", lambda: FisherConv(-1, 4, head="relu")),
        "classifier": (models, "Linear", lambda: FisherNet(-1, 4, 1, 2)),
    }
    for module, name, make in makers.values():
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(NotEnoughMemory, match="memory"):
                make()


def test_a_loader_that_is_not_iterable():
    with pytest.raises(InputTypeError, match="loader"):
        fit(loader=3)
