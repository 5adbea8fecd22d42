"""Without a card the Triton kernels run under their interpreter: that has to be said before triton is imported."""

import os

import pytest

try:
    import torch
except ImportError:
    CARD = False
else:
    CARD = torch.cuda.is_available()
    # Small tensors gain nothing from threads, and wait long for them where tests run side by side.
    torch.set_num_threads(1)

if not CARD:
    os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_collection_modifyitems(items):
    for item in items:
        if not CARD and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
