"""The engines of `em_means`: each keeps the contract, and the choice obeys or raises."""

import os
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contracts import EMContract, TensorContract, members_of, random_problem
from fishergraph.config import config_context
from fishergraph.em.means import em_means
from fishergraph.ops import ENGINES, choose_engine

# With a GPU the kernels run on it, and the interpreter is off.
interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")


class TestNumba(EMContract):
    engine = "numba"


class TestScipy(EMContract):
    engine = "scipy"


class TestTorch(TensorContract):
    engine = "torch"


class TestNumbaOnTensors(TensorContract):
    """The compiled loops on tensors; their row blocks are NumPy arrays."""

    engine = "numba"
    test_the_record_fills_what_it_is_given = None


@interpreted
class TestTriton(TensorContract):
    """Under the interpreter, which is slow: few shapes, and hubs that are small."""

    engine = "triton"
    n_iter = (1,)  # two iterations have their test in the contract of the gradients
    d = (7,)
    p = (1, 3)
    name = ("30",)
    seeds = range(1)
    long = 2000
    degree = 150  # nineteen parts, more than one step of their merge takes
    many: ClassVar = {"n": 20, "n_sets": 8}
    jobs: ClassVar = (2,)

    @pytest.fixture(autouse=True)
    def _small_hubs(self, monkeypatch):
        pytest.importorskip("triton")
        from fishergraph.ops import tensor_sets

        monkeypatch.setattr(tensor_sets, "HUB", 8)
        monkeypatch.setattr(tensor_sets, "LARGE_MEAN", 10**6)  # hubs stay small beside large sets


@pytest.mark.gpu
class TestTorchOnTheGPU(TensorContract):
    engine, device = "torch", "cuda"

    @pytest.fixture(autouse=True)
    def _deterministic(self):
        """Sums of the plain version run in any order on a GPU, unless PyTorch is told otherwise."""
        import torch

        torch.use_deterministic_algorithms(True, warn_only=True)
        yield
        torch.use_deterministic_algorithms(False)


@pytest.mark.gpu
class TestTritonOnTheGPU(TensorContract):
    engine, device = "triton", "cuda"
    degree = 20_000


def test_every_engine_has_its_contract_test():
    classes = [*EMContract.__subclasses__(), *TensorContract.__subclasses__()]
    assert {cls.engine for cls in classes if cls is not TensorContract} == set(ENGINES)


@pytest.mark.parametrize("name", ["nubma", "", 3])
def test_an_unknown_engine_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=r"'numba', 'scipy'"):
        choose_engine(name)


@pytest.mark.parametrize("name", ["numba", "scipy"])
def test_a_named_engine_obeys(name):
    assert choose_engine(name).name == name


def test_a_named_engine_raises_where_it_cannot_and_the_choice_falls_back():
    with pytest.raises(ValueError, match="n_iter=2"):
        choose_engine("scipy", n_iter=2)
    with pytest.raises(ValueError, match=r"'numba' .* cuda"):
        choose_engine("numba", device="cuda")
    with pytest.raises(ValueError, match="no engine"):
        choose_engine(device="abacus")
    assert choose_engine(device="cuda").tensors
    assert choose_engine(n_iter=2).several_iterations
    assert choose_engine(n_iter=2).name == choose_engine().name == "numba"


@pytest.mark.parametrize("name", ["torch", "triton"])
def test_an_engine_for_tensors_refuses_arrays(name):
    pytest.importorskip(name)
    problem = random_problem()
    with config_context(engine=name), pytest.raises(ValueError, match=rf"'{name}' .* NumPy arrays"):
        em_means(problem.points, problem.sets, problem.anchors)


def test_engines_agree_with_each_other():
    problem = random_problem(d=7, p=5, n=300, n_sets=600)
    results = []
    for name in ("numba", "scipy"):
        with config_context(engine=name):
            results.append(em_means(problem.points, problem.sets, problem.anchors, variance=problem.variance, n_jobs=1))
    for other in results[1:]:
        assert_allclose(other.means, results[0].means, rtol=0, atol=1e-12)
        assert_allclose(other.mass, results[0].mass, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------- validation by em_means


def call(problem, **changes):
    arguments = {"points": problem.points, "multisets": problem.sets, "anchors": problem.anchors, **changes}
    return em_means(**arguments)


def test_an_invalid_argument_is_named():
    problem = random_problem()
    bad_row = problem.points.copy()
    bad_row[5, 1] = np.nan
    cases = [
        ({"points": bad_row}, "row 5"),
        ({"points": problem.points[:, 0]}, "matrix"),
        ({"anchors": problem.anchors[:, :2]}, r"\(anchor, 3\)"),
        ({"anchors": problem.anchors[:0]}, "at least one anchor"),
        ({"points": problem.points[:30]}, "30 rows"),
        ({"variance": 0.0}, "variance"),
        ({"prior": -1.0}, "prior"),
        ({"n_iter": -1}, "n_iter"),
        ({"n_iter": 1.5}, "n_iter"),
    ]
    for changes, message in cases:
        with pytest.raises(ValueError, match=message):
            call(problem, **changes)


def test_members_that_are_no_points_never_reach_a_compiled_loop():
    """The loops check nothing: an index past the end would read somebody else's memory."""
    problem = random_problem()
    sets = problem.sets
    wrong = sets.indices.copy()
    wrong[3] = 40
    negative = sets.weights.copy()
    negative[2] = -1.0
    cases = [
        ({"indices": wrong}, "0 to 39"),
        ({"indices": wrong - 5}, "0 to 39"),
        ({"indices": sets.indices[:-1]}, "indptr"),
        ({"indptr": sets.indptr[::-1].copy()}, "indptr"),
        ({"weights": negative}, "weights"),
        ({"weights": sets.weights[:-1]}, "weights"),
        ({"weights": np.full_like(sets.weights, np.nan)}, "weights"),
    ]
    for change, message in cases:
        with pytest.raises(ValueError, match=message):
            call(problem, multisets=replace(sets, **change))


def test_points_that_are_not_floats_become_float32():
    problem = random_problem()
    result = call(problem, points=np.arange(120).reshape(40, 3))
    assert result.means.dtype == np.float32
    assert len(members_of(problem.sets)) == len(result.means)
