"""The gradients of `em_means` on tensors: each engine keeps the contract."""

import os
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch")

from gradients import GradientContract  # noqa: E402


class TestTorch(GradientContract):
    engine = "torch"


class TestNumba(GradientContract):
    engine = "numba"


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
class TestTriton(GradientContract):
    """Under the interpreter, which is slow; hubs are small, and there are two tiles of anchors and of features."""

    engine = "triton"
    p = (1, 9)
    d = (7, 300)
    degree = 12
    checked = (("posterior", 0.3, 1), ("posterior", 0.0, 2))
    e_step = ("posterior", "balanced")
    n_iter = (1, 2)
    usual: ClassVar = {"n": 4, "sizes": (0, 1, 5, 2), "p": 2, "d": 3}
    seeds = range(4)

    @pytest.fixture(autouse=True)
    def _small_hubs(self, monkeypatch):
        pytest.importorskip("triton")
        monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 3)


@pytest.mark.gpu
class TestTorchOnTheGPU(GradientContract):
    engine, device = "torch", "cuda"
    bits_of_strides = False  # a product of matrices has a kernel of its own for every layout

    @pytest.fixture(autouse=True)
    def _deterministic(self):
        """Sums of the plain version run in any order on a GPU, unless PyTorch is told otherwise."""
        torch.use_deterministic_algorithms(True, warn_only=True)
        yield
        torch.use_deterministic_algorithms(False)


@pytest.mark.gpu
class TestTritonOnTheGPU(GradientContract):
    engine, device = "triton", "cuda"
    degree = 20_000
