"""Without a card the Triton kernels run under their interpreter: that has to be said before triton is imported."""

import contextlib
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


def quicken_the_interpreter():
    """Triton swaps its language for the interpreter's at every call of a device function; at the first is enough.

    What a launch swaps it gives back and swaps again; what a device function swaps beyond that stays.
    """
    from triton.runtime.interpreter import InterpretedFunction, _patch_lang

    swapped = set()

    def call(self, *args, **kwargs):
        if self.fn not in swapped:
            _patch_lang(self.fn)
            swapped.add(self.fn)
        return self.rewrite()(*args, **kwargs)

    InterpretedFunction.__call__ = call


if not CARD:
    os.environ.setdefault("TRITON_INTERPRET", "1")
    with contextlib.suppress(ImportError):  # no triton, or one that is built otherwise
        quicken_the_interpreter()


def pytest_collection_modifyitems(items):
    for item in items:
        if not CARD and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
