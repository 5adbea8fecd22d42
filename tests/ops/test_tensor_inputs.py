"""Validation of `em_means` on tensors: invalid combinations are named before a kernel is launched."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fishergraph.config import config_context  # noqa: E402
from fishergraph.em.means import em_means  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets  # noqa: E402

interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
on_gpu = pytest.mark.gpu
HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])


def example(n=8, d=3, p=2, dtype=torch.float32, device="cpu", sizes=(3, 0, 5, 1), seed=0):
    rng = np.random.default_rng(seed)
    indptr = torch.tensor([0, *sizes]).cumsum(0)
    sets = TensorSets(indptr, torch.tensor(rng.integers(n, size=int(indptr[-1]))), None, n).to(device)
    points, anchors = (torch.tensor(rng.normal(size=(rows, d))).to(device, dtype) for rows in (n, p))
    return {"points": points, "multisets": sets, "anchors": anchors}


def means_by(engine, **given):
    with config_context(engine=engine):
        return em_means(**given)


def bad_sets(**changes):
    given = {"indptr": torch.tensor([0, 3]), "indices": torch.tensor([0, 1, 7]), "weights": None, "n_points": 8}
    return TensorSets(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"points": torch.ones(8)}, ValueError, r"shape \(8,\)"),
        ({"points": torch.ones(8, 3).long()}, ValueError, "int64"),
        ({"points": torch.ones(8, 3).cfloat()}, ValueError, "points"),
        ({"points": torch.ones(7, 3)}, ValueError, "7 rows"),
        ({"anchors": torch.ones(2, 4)}, ValueError, r"\(2, 4\)"),
        ({"anchors": torch.ones(0, 3)}, ValueError, "at least one anchor"),
        ({"anchors": torch.ones(2)}, ValueError, "anchors"),
        ({"anchors": np.ones((2, 3))}, TypeError, "anchors"),
        ({"anchors": torch.ones(2, 3).to("meta")}, ValueError, "meta"),
        ({"points": torch.ones(8, 3).to("meta")}, ValueError, "anchors"),
        ({"bias": torch.ones(3)}, ValueError, "reshape"),
        ({"bias": torch.ones(2, 1)}, ValueError, "bias"),
        ({"bias": [0.0, 1.0]}, TypeError, "bias"),
        ({"bias": torch.ones(2).to("meta")}, ValueError, "bias"),
        ({"multisets": torch.ones(2, 3)}, TypeError, "TensorSets"),
        ({"multisets": bad_sets(indices=torch.tensor([0, 1, 8]))}, ValueError, "0 … 8"),
        ({"multisets": bad_sets(indices=torch.tensor([0, -1, 2]))}, ValueError, "got -1 … 2"),
        ({"multisets": bad_sets(indptr=torch.tensor([0, 4]))}, ValueError, "indptr"),
        ({"multisets": bad_sets(indptr=torch.tensor([0, 2, 1, 3]))}, ValueError, "indptr"),
        ({"multisets": bad_sets(indptr=torch.tensor([0, 3]).int())}, ValueError, "indptr"),
        ({"multisets": bad_sets(indices=torch.tensor([0.0, 1.0, 2.0]))}, ValueError, "indices"),
        ({"multisets": bad_sets(weights=torch.ones(2))}, ValueError, "3 entries"),
        ({"multisets": bad_sets(weights=torch.ones(3).to("meta"))}, ValueError, "weights"),
        ({"points": torch.zeros(8, 0), "anchors": torch.zeros(2, 0)}, ValueError, "at least one feature"),
        ({"variance": 0.0}, ValueError, "variance"),
        ({"prior": -1.0}, ValueError, "prior"),
        ({"n_iter": -1}, ValueError, "n_iter"),
        ({"e_step": "balancd"}, ValueError, "'balancd'"),
        ({"engine": "nubma"}, ValueError, "'nubma'"),
        ({"engine": "scipy"}, ValueError, "'scipy' .* NumPy arrays"),
    ],
)
@pytest.mark.parametrize("engine", ["torch", "numba"])
def test_what_is_wrong_is_named(changes, error, message, engine):
    with pytest.raises(error, match=message):
        means_by(**{"engine": engine, **example(), **changes})


def test_sets_and_points_on_other_devices():
    given = example()
    sets = given["multisets"]
    away = TensorSets(sets.indptr.to("meta"), sets.indices.to("meta"), None, 8)
    with pytest.raises(ValueError, match="meta"):
        em_means(**{**given, "multisets": away})
    meta = {"points": given["points"].to("meta"), "anchors": given["anchors"].to("meta"), "multisets": away}
    with pytest.raises(ValueError, match=r"no engine .*meta"):
        em_means(**meta)


def test_sets_are_checked_once():
    given = example()
    em_means(**given)
    sets = given["multisets"]
    assert sets.__dict__["sound"]
    assert sets.block(slice(1, 3)).__dict__["sound"]


# ------------------------------------------------------------------------------ a named engine obeys or raises


@HALVES
def test_numba_refuses_halves_and_the_choice_falls_back_with_a_reason(dtype, caplog):
    given = example(dtype=dtype)
    with pytest.raises(ValueError, match=r"'numba' .* float32, float64"):
        means_by("numba", **given)
    with caplog.at_level(logging.WARNING, "fishergraph"):
        found = em_means(**given)
    assert found.means.dtype == dtype
    assert found.mass.dtype == torch.float32
    assert len(caplog.records) == 1
    assert "engine numba is not used" in caplog.text
    assert str(dtype).removeprefix("torch.") in caplog.text


def test_the_choice_on_a_cpu_is_numba_and_says_nothing(caplog):
    with caplog.at_level(logging.INFO, "fishergraph"):
        ours = em_means(**example())
    assert not caplog.records
    theirs = means_by("numba", **example())
    assert torch.equal(ours.means, theirs.means)


def test_a_missing_package_is_the_reason(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "fishergraph.ops._numba.tensors", None)
    for kept in ("_loaded", "_choices"):
        monkeypatch.setattr(f"fishergraph.ops.tensor_ops.{kept}", {})
    with pytest.raises(ImportError, match="'numba' needs a missing package"):
        means_by("numba", **example())
    with caplog.at_level(logging.WARNING, "fishergraph"):
        ours = em_means(**example())
    assert "engine numba is not used: import of fishergraph.ops._numba.tensors" in caplog.text
    assert torch.equal(ours.means, means_by("torch", **example()).means)


def test_triton_refuses_a_cpu_without_its_interpreter():
    code = """
import torch
from fishergraph import config_context, em_means
from fishergraph.ops.tensor_sets import TensorSets
try:
    sets = TensorSets(torch.tensor([0, 1]), torch.tensor([0]), None, 1)
    with config_context(engine="triton"):
        em_means(torch.ones(1, 1), sets, torch.ones(1, 1))
except ValueError as error:
    print(error)
"""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "it runs on cuda, and these are on cpu" in done.stdout


# ---------------------------------------------------------------------------------------------------- halves


@HALVES
@pytest.mark.parametrize("n_iter", [1, 2])
@pytest.mark.parametrize(
    ("engine", "device"),
    [
        ("torch", "cpu"),
        pytest.param("triton", "cpu", marks=interpreted),
        pytest.param("torch", "cuda", marks=on_gpu),
        pytest.param("triton", "cuda", marks=on_gpu),
    ],
)
def test_storage_in_halves_agrees_with_float32(engine, device, n_iter, dtype, monkeypatch):
    """Points of 16 bits are the same points in float32; what is computed from them is rounded once, at the end.

    For bf16 the matrix units take rounded coefficients in one iteration, and Triton's interpreter cuts bits off.
    """
    if device == "cpu":
        monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 4)
    given = example(d=20, dtype=dtype, device=device, sizes=(3, 0, 7, 1))
    wide = {**given, "points": given["points"].float(), "anchors": given["anchors"].float()}
    results = []
    for arguments in (given, wide):
        leaves = {name: arguments[name].clone().requires_grad_() for name in ("points", "anchors")}
        means, mass = means_by(engine, **{**arguments, **leaves}, n_iter=n_iter, variance=4.0)
        ((means.float() ** 2).sum() + mass.sum()).backward()
        results.append([means, mass, *(leaf.grad for leaf in leaves.values())])
    assert [tensor.dtype for tensor in results[0]] == [dtype, torch.float32, dtype, dtype]
    rounding = torch.finfo(dtype).eps
    for name, ours, theirs in zip(("means", "mass", "points", "anchors"), *results, strict=True):
        scale = max(1.0, float(theirs.abs().max()))
        # A gradient starts from means that were rounded.
        units = engine == "triton" and n_iter == 1 and dtype == torch.bfloat16
        most = 1e-6 if name == "mass" else ((1.5 if units else 0.5) if name == "means" else 4) * rounding + 1e-6
        assert float((ours.float() - theirs).abs().max()) <= most * scale, name


@pytest.mark.parametrize("engine", ["torch", "numba"])
def test_anchors_and_weights_of_another_precision(engine):
    given = example()
    sets = given["multisets"].weighted(torch.rand(9, dtype=torch.float64).requires_grad_())
    anchors = given["anchors"].double().requires_grad_()
    with config_context(engine=engine):
        means, mass = em_means(given["points"], sets, anchors, n_iter=2)
    assert means.dtype == mass.dtype == torch.float32
    means.sum().backward()
    assert anchors.grad.dtype == sets.weights.grad.dtype == torch.float64


def test_multisets_of_arrays_are_taken_along():
    given = example()
    sets = given["multisets"]
    from fishergraph.multiset import Multisets

    arrays = Multisets(sets.indptr.numpy(), sets.indices.numpy(), None, 8)
    ours, theirs = em_means(**{**given, "multisets": arrays}), em_means(**given)
    assert torch.equal(ours.means, theirs.means)
    assert tensor_sets(arrays).n_points == 8
