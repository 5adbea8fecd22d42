"""What has to be said before NumPy, PyTorch and Triton are imported: threads, and the interpreter of the kernels."""

import contextlib
import os
import signal

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # Tests run side by side, one for each core: threads in them would wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job in the background ignores Ctrl-C, and so would the commands that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

try:
    import torch
except ImportError:
    GPU = False
else:
    GPU = torch.cuda.is_available()
    # Small tensors gain nothing from threads, and wait long for them where tests run side by side.
    torch.set_num_threads(1)

if not GPU:  # the Triton kernels run under their interpreter
    os.environ.setdefault("TRITON_INTERPRET", "1")
    with contextlib.suppress(ImportError):  # no triton, or one that is built otherwise
        from quick_interpreter import quicken

        quicken()


def pytest_collection_modifyitems(items):
    for item in items:
        if not GPU and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def steady_memory(monkeypatch):
    """Budgets count what a process has, and one of tests has more after each: here it always has the same."""
    monkeypatch.setattr("fishergraph.scale.memory.resident_bytes", lambda: 300 * 2**20)


@pytest.fixture
def engine(request):
    """The name of an engine that computes for the length of a test: `parametrize("engine", […], indirect=True)`."""
    from fishergraph import config_context

    if request.param in ("torch", "triton"):
        pytest.importorskip("torch")
    with config_context(engine=request.param):
        yield request.param
