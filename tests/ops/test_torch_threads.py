"""PyTorch's threads: held while a call with `n_jobs` lasts, given back afterwards, and one in a forked child."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import FisherClassifier, FisherEmbedding  # noqa: E402
from fishergraph._parallel import n_threads  # noqa: E402
from fishergraph.lab.baselines import baseline  # noqa: E402
from fishergraph.nn import FisherNet, Training, train  # noqa: E402
from fishergraph.ops import torch_threads as module  # noqa: E402
from fishergraph.ops.torch_threads import torch_threads  # noqa: E402

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 40)).astype(np.float32)
A = sp.csr_array(sp.random(N, N, 0.02, random_state=0))
Y = np.arange(N) % 3


@pytest.fixture(autouse=True)
def three_threads():
    """So that a number that is not given back shows."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_a_number_holds_torch_to_one_thread_and_the_loops_to_that_many():
    free = n_threads(None)
    with torch_threads(2):
        assert (torch.get_num_threads(), n_threads(None), n_threads(5)) == (1, 2, 5)
        with torch_threads(3):
            assert (torch.get_num_threads(), n_threads(None)) == (1, 3)
        with torch_threads(None):
            assert n_threads(None) == 2
    assert (torch.get_num_threads(), n_threads(None)) == (3, free)


@pytest.mark.parametrize("n_jobs", [None, -1])
def test_every_core_leaves_torch_as_it_is(n_jobs):
    with torch_threads(n_jobs):
        assert torch.get_num_threads() == 3


def test_the_last_of_two_threads_gives_the_number_back():
    inside, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with torch_threads(1):
            inside.set()
            leave.wait(20)
        seen.append(torch.get_num_threads())

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(20)
    with torch_threads(1):
        pass
    leave.set()
    thread.join()
    assert (torch.get_num_threads(), seen) == (3, [3])


def seen_in(call, monkeypatch) -> set[tuple[int, int]]:
    """(threads of torch, threads of a loop) while epochs or layers run."""
    from fishergraph import _parallel

    seen, real = set(), _parallel._Work.run

    def run(self, threads):
        seen.add((torch.get_num_threads(), n_threads(None)))
        return real(self, threads)

    monkeypatch.setattr(_parallel._Work, "run", run)
    call()
    return seen


def test_n_jobs_bounds_every_call_that_takes_it(monkeypatch):
    tensor, y, rows = torch.from_numpy(X), torch.from_numpy(Y), np.arange(60)
    edges = torch.from_numpy(np.stack(A.nonzero()).astype(np.int64))
    small = {"hidden": 4, "epochs": 1, "n_jobs": 1}
    model = FisherClassifier(1, 2, 4, training=Training(max_epochs=1), n_jobs=1, random_state=0)
    calls = {
        "fit": lambda: model.fit(X, Y, graph=A),
        "predict": lambda: model.predict(X, graph=A),
        "train": lambda: train(FisherNet(40, 4, 1, 3), tensor, y, edges, train=rows, epochs=1, n_jobs=1),
        "baseline": lambda: baseline("fie-supervised", **small).fit(X, Y, graph=A, train=rows, val=rows + 60),
        "tensors": lambda: FisherEmbedding(1, 2, 4, n_jobs=1, random_state=0).fit_transform(tensor, graph=A),
    }
    seen = set()
    for name, call in calls.items():
        threads = seen_in(call, monkeypatch)
        assert threads <= {(1, 1)}, name  # a call with single blocks starts no threads
        assert torch.get_num_threads() == 3, name
        seen |= threads
    assert seen == {(1, 1)}


def test_any_number_of_jobs_gives_the_same_bits():
    def chances(n_jobs):
        model = FisherClassifier(1, 2, 32, training=Training(max_epochs=2), n_jobs=n_jobs, random_state=0).fit(
            X, Y, graph=A
        )
        return model.predict_proba(X, graph=A)

    expected = chances(1)
    assert all(np.array_equal(chances(n_jobs), expected) for n_jobs in (2, 3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_can_train():
    """OpenMP has threads here that the child does not have, and would wait for."""
    x = torch.ones(600, 600)
    _ = (x @ x, x.sum(), x.exp())
    expected = FisherClassifier(1, 2, 8, training=Training(max_epochs=1), n_jobs=1, random_state=0).fit(X, Y, graph=A)

    def work() -> bool:
        found = FisherClassifier(1, 2, 8, training=Training(max_epochs=1), random_state=0).fit(X, Y, graph=A)
        return np.array_equal(found.predict_proba(X, graph=A), expected.predict_proba(X, graph=A))

    from test_parallel import forked

    assert forked(work) == 0
    assert module._state["forked"] is False


def holders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "fishergraph-threads"]


def test_waiting_threads_sleep_while_a_network_is_trained(monkeypatch):
    """A thread with threads of its own makes OpenMP's outnumber the cores; one is enough, and none stays.

    Free cores need none.
    """
    seen = set()
    real = FisherNet.forward

    def forward(self, *args, **options):
        seen.add((len(holders()), torch.get_num_threads()))
        return real(self, *args, **options)

    monkeypatch.setattr(FisherNet, "forward", forward)
    for n_jobs, load, expected in ((None, 1000.0, {(1, 3)}), (1, 1000.0, {(0, 1)}), (None, 0.1, {(0, 3)})):
        monkeypatch.setattr(module.os, "getloadavg", lambda load=load: (load, load, load))
        seen.clear()
        FisherClassifier(1, 2, 8, training=Training(max_epochs=1), n_jobs=n_jobs, random_state=0).fit(X, Y, graph=A)
        assert seen == expected
        assert holders() == []
    monkeypatch.setattr(module, "are_busy", lambda: True)
    with module.sleeping_threads(), module.sleeping_threads():
        assert len(holders()) == 1
    with pytest.raises(ZeroDivisionError), module.sleeping_threads():
        raise ZeroDivisionError
    assert (holders(), module._state["sleepers"]) == ([], 0)
