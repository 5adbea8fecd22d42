"""What every engine of `em_means` on tensors owes its gradients. An engine's test is a subclass that sets its name.

The plain engine is checked by finite differences, the others by the same and by the plain one in float64.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
import torch

from fishergraph.config import config_context
from fishergraph.em.means import em_means
from fishergraph.ops.tensor_sets import TensorSets

E_STEPS = ("posterior", "balanced", "unbalanced")
LEAVES = ("points", "anchors", "bias", "weights")


@dataclass(frozen=True, eq=False)
class Case:
    """One call of `em_means` with what comes back to it, in float64; float32 holds its values exactly."""

    points: torch.Tensor
    anchors: torch.Tensor
    bias: torch.Tensor | None
    weights: torch.Tensor | None
    sets: TensorSets
    grad_means: torch.Tensor | None
    grad_mass: torch.Tensor | None
    variance: float
    prior: float = 0.0
    n_iter: int = 1
    e_step: str = "posterior"

    def to(self, device, dtype=torch.float64):
        """The case on a device, in another precision."""
        names = (*LEAVES, "grad_means", "grad_mass")
        tensors = {name: getattr(self, name) for name in names}
        moved = {name: None if t is None else t.to(device, dtype) for name, t in tensors.items()}
        return replace(self, sets=self.sets.to(device), **moved)

    def leaves(self, names=LEAVES):
        """Those that are given, wanting a gradient."""
        given = {name: getattr(self, name) for name in names}
        return {name: t.detach().clone().requires_grad_() for name, t in given.items() if t is not None}

    def means(self, engine, **leaves):
        """(means, mass) by an engine, with some of the tensors replaced."""
        with config_context(engine=engine):
            return self.configured_means(**leaves)

    def configured_means(self, **leaves):
        """The same by the configured engine."""
        given = {name: leaves.get(name, getattr(self, name)) for name in LEAVES}
        return em_means(
            given["points"],
            self.sets.weighted(given["weights"]),
            given["anchors"],
            bias=given["bias"],
            variance=self.variance,
            prior=self.prior,
            n_iter=self.n_iter,
            e_step=self.e_step,
        )

    def gradients(self, engine, names=LEAVES):
        """{"means", "mass", and the gradient of every input of ⟨means, grad_means⟩ + ⟨mass, grad_mass⟩}."""
        leaves = self.leaves(names)
        means, mass = self.means(engine, **leaves)
        outputs = [(t, g) for t, g in ((means, self.grad_means), (mass, self.grad_mass)) if g is not None]
        tensors, grads = zip(*outputs, strict=True)
        found = torch.autograd.grad(tensors, list(leaves.values()), grads, allow_unused=True)
        return {"means": means.detach(), "mass": mass.detach(), **dict(zip(leaves, found, strict=True))}


def make(
    *,
    n,
    sizes,
    p=3,
    d=4,
    weighted=True,
    biased=True,
    scale=1.0,
    variance=None,
    seed=0,
    **options,
):
    """Sets with repeated members and some weights of zero, among them a set that weighs nothing."""
    rng = np.random.default_rng([seed, p, d, n])
    indptr = torch.tensor([0, *sizes]).cumsum(0)
    n_entries = int(indptr[-1])
    weights = np.where(rng.random(n_entries) < 0.2, 0.0, rng.uniform(0.2, 3, n_entries))
    weights[:1] = 0.0

    def draw(*shape, of=None):
        values = scale * rng.normal(size=shape) if of is None else of
        return torch.tensor(np.asarray(values, np.float32).astype(np.float64))

    return Case(
        draw(n, d),
        draw(p, d),
        draw(p, of=rng.normal(size=p)) if biased else None,
        draw(of=weights) if weighted else None,
        TensorSets(indptr, torch.tensor(rng.integers(n, size=n_entries)), None, n),
        draw(len(sizes), p, d, of=rng.normal(size=(len(sizes), p, d))),
        draw(len(sizes), p, of=rng.normal(size=(len(sizes), p))),
        float(scale**2 * np.sqrt(d)) if variance is None else variance,
        **options,
    )


def assert_close(got, known, *, rtol=1e-9):
    """Every tensor agrees, relative to the largest number in it."""
    assert got.keys() == known.keys()
    for name, expected in known.items():
        scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
        torch.testing.assert_close(
            got[name].cpu().double(), expected.double(), rtol=rtol, atol=rtol * scale, msg=lambda m, n=name: f"{n}: {m}"
        )


def assert_same_bits(got, known):
    for name, expected in known.items():
        assert torch.equal(got[name], expected), name


def errors(found, exact):
    """How far each tensor is off, relative to the largest number in it."""
    return {k: float((found[k].cpu().double() - e).abs().max() / e.abs().max().clamp(min=1)) for k, e in exact.items()}


class GradientContract:
    """What the gradients of `em_means` with the engine `self.engine` are, whatever the engine."""

    engine: str
    device = "cpu"
    # What tests are run over; an interpreter takes fewer.
    p = (1, 3, 8, 33)
    d = (1, 7, 128, 513)
    degree = 10_000
    usual: ClassVar = {"n": 12, "sizes": (0, 1, 2, 3, 5, 8, 13)}
    seeds = range(5)
    bits_of_strides = True  # whether a tensor that is not contiguous gives the same bits, not only the same numbers
    checked = (
        *product(["posterior"], (0.0, 0.3), (1, 2, 3)),
        *product(["balanced", "unbalanced"], (0.3,), (1, 2)),
        ("balanced", 0.0, 3),
        ("unbalanced", 0.0, 3),
    )
    e_step = E_STEPS
    n_iter = (1, 2, 3)

    def pytest_generate_tests(self, metafunc):
        marks = metafunc.definition.iter_markers("parametrize")
        given = {name for mark in marks for name in mark.args[0].replace(" ", "").split(",")}
        for name in ("p", "d", "checked", "e_step", "n_iter"):
            if name in metafunc.fixturenames and name not in given:
                metafunc.parametrize(name, getattr(self, name))

    def make(self, **options):
        return make(**{**self.usual, **options})

    def gradients(self, case, dtype=torch.float64, **how):
        return case.to(self.device, dtype).gradients(self.engine, **how)

    def assert_agrees(self, case, **how):
        assert_close(self.gradients(case, **how), case.gradients("torch", **how))

    # --------------------------------------------------------------------------------- finite differences

    def test_gradcheck(self, checked):
        e_step, prior, n_iter = checked
        case = self.make(p=2, d=2, n=4, sizes=(0, 1, 3), prior=prior, n_iter=n_iter, e_step=e_step)
        case = replace(case, weights=case.weights + 0.5).to(self.device)  # at a weight of zero a set changes its rule
        names, leaves = zip(*case.leaves().items(), strict=True)
        whole = e_step == "posterior" and self.engine != "triton"  # or in one random direction, which is faster
        assert torch.autograd.gradcheck(
            lambda *given: tuple(case.means(self.engine, **dict(zip(names, given, strict=True)))),
            leaves,
            fast_mode=not whole,
            atol=1e-5 if e_step == "posterior" else 1e-4,
        )

    # ------------------------------------------------------------------------------------------ agreement

    def test_every_shape(self, p, d):
        self.assert_agrees(self.make(p=p, d=d))

    def test_every_step(self, e_step, n_iter):
        self.assert_agrees(self.make(prior=0.2, e_step=e_step, n_iter=n_iter))

    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("biased", [False, True])
    def test_with_and_without_weights_and_bias(self, biased, weighted, n_iter):
        self.assert_agrees(self.make(weighted=weighted, biased=biased, n_iter=n_iter))

    @pytest.mark.parametrize("names", [("points",), ("anchors",), ("bias",), ("weights",), ("points", "weights")])
    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_some_leaves_alone(self, n_iter, names):
        self.assert_agrees(self.make(n_iter=n_iter, sizes=(0, 1, 4)), names=names)

    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_the_mass_or_the_means_alone(self, n_iter):
        case = self.make(n_iter=n_iter)
        for other in (replace(case, grad_mass=None), replace(case, grad_means=None)):
            known = {name: g for name, g in other.gradients("torch").items() if g is not None}
            got = self.gradients(other)
            for name in got.keys() - known.keys():  # autograd knows that this one has no say; zero is as good
                assert got[name] is None or not got[name].any(), name
            assert_close({name: got[name] for name in known}, known)

    @pytest.mark.parametrize("sizes", [(), (0,), (0, 0, 0), (1,), (1, 1)])
    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_empty_and_single_sets(self, n_iter, sizes):
        for prior in (0.0, 0.5):
            self.assert_agrees(self.make(sizes=sizes, n_iter=n_iter, prior=prior))

    @pytest.mark.parametrize("e_step", ["posterior", "balanced"])
    def test_no_iteration(self, e_step):
        case = self.make(n_iter=0, e_step=e_step)
        got = self.gradients(replace(case, grad_mass=None), names=("anchors",))
        torch.testing.assert_close(got["anchors"].cpu(), case.grad_means.sum(dim=0))

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_a_set_and_a_point_of_very_many_entries(self, n_iter, weighted):
        case = self.make(n=min(40, self.degree), sizes=(3, self.degree, 0, 2), weighted=weighted, n_iter=n_iter)
        indices = case.sets.indices.clone()
        indices[self.degree // 4 : self.degree // 2 + 2] = 7  # the same point again and again
        self.assert_agrees(replace(case, sets=replace(case.sets, indices=indices)))

    @pytest.mark.parametrize("prior", [0.0, 1e-3])
    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_where_responsibilities_underflow(self, n_iter, prior):
        case = self.make(p=4, d=7, scale=30.0, variance=0.5, n_iter=n_iter, prior=prior)
        # Members of weight zero may sit at an anchor nobody else is near: the gradient of their weight is 10^100.
        case = replace(case, weights=case.weights + 0.5)
        assert_close(self.gradients(case), case.gradients("torch"), rtol=1e-7)
        for name, gradient in self.gradients(case, torch.float32).items():
            assert torch.isfinite(gradient).all(), name

    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_members_of_weight_zero_never_make_a_nan(self, n_iter):
        case = self.make(p=4, d=7, scale=30.0, variance=0.5, n_iter=n_iter)
        got = self.gradients(case, torch.float32)
        for name in ("means", "mass", "points", "anchors", "bias"):
            assert torch.isfinite(got[name]).all(), name

    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("scale", [1.0, 5.0])
    def test_float32_is_at_most_twice_as_far_off_as_the_plain_version(self, scale, n_iter):
        fast, plain = [], []
        for seed in self.seeds:
            case = self.make(p=3, d=16, scale=scale, n_iter=n_iter, seed=seed, prior=0.1)
            exact, single = case.gradients("torch"), case.to("cpu", torch.float32)
            fast.append(errors(self.gradients(case, torch.float32), exact))
            plain.append(errors(single.gradients("torch"), exact))
        for name in exact:
            ours, theirs = (np.array([e[name] for e in found]) + 1e-7 for found in (fast, plain))
            ratio = np.exp(np.mean(np.log(ours) - np.log(theirs)))
            assert ratio <= 2, f"{name}: {ratio:.2g} times as far off as the plain version"

    # ------------------------------------------------------------------------------------------ machinery

    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_the_same_bits_again_and_for_other_indices(self, n_iter):
        case = self.make(n_iter=n_iter)
        narrow = replace(case, sets=replace(case.sets, indices=case.sets.indices.int()))
        expected = self.gradients(case)
        assert_same_bits(self.gradients(case), expected)
        assert_same_bits(self.gradients(narrow), expected)

    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_tensors_that_are_not_contiguous(self, n_iter):
        case = self.make(n_iter=n_iter).to(self.device)
        expected = case.gradients(self.engine)
        strided = {name: torch.stack([getattr(case, name)] * 2, dim=-1)[..., 0] for name in LEAVES}
        turned = {name: getattr(case, name).T.contiguous().T for name in ("points", "anchors")}
        upstream = case.grad_means.permute(2, 1, 0).contiguous().permute(2, 1, 0)
        for other in (strided, turned, {}):
            leaves = {**case.leaves(), **{name: tensor.detach().requires_grad_() for name, tensor in other.items()}}
            assert not any(leaves[name].is_contiguous() for name in other)
            means, mass = case.means(self.engine, **leaves)
            found = torch.autograd.grad([means, mass], list(leaves.values()), [upstream, case.grad_mass])
            result = {"means": means, "mass": mass, **dict(zip(leaves, found, strict=True))}
            if self.bits_of_strides:
                assert_same_bits(result, expected)
            else:
                assert_close(result, {name: value.cpu() for name, value in expected.items()}, rtol=1e-12)

    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("e_step", ["posterior", "balanced"])
    def test_a_row_block(self, e_step, n_iter):
        """The entries of a block do not begin at zero, and the weights of the others get no gradient."""
        case = self.make(n_iter=n_iter, e_step=e_step).to(self.device)
        rows = slice(2, 4)
        block = replace(
            case, sets=case.sets.block(rows), grad_means=case.grad_means[rows], grad_mass=case.grad_mass[rows]
        )
        masked = replace(case, grad_means=torch.zeros_like(case.grad_means), grad_mass=torch.zeros_like(case.grad_mass))
        masked.grad_means[rows], masked.grad_mass[rows] = block.grad_means, block.grad_mass
        known = masked.to("cpu").gradients("torch")
        known = {**known, "means": known["means"][rows], "mass": known["mass"][rows]}
        assert_close(block.gradients(self.engine), known)

    def test_several_iterations_in_chunks_of_sets(self, monkeypatch):
        case = self.make(n_iter=2)
        expected = self.gradients(case)
        monkeypatch.setattr("fishergraph.ops.iterate.torch_backward._CHUNK", 40)
        assert_close(self.gradients(case), {name: value.cpu() for name, value in expected.items()}, rtol=1e-12)

    @pytest.mark.parametrize("n_iter", [1, 2])
    def test_second_derivatives_or_a_clear_message(self, n_iter):
        case = self.make(p=2, d=2, n=3, sizes=(1, 2), n_iter=n_iter).to(self.device)
        case = replace(case, weights=case.weights + 0.5)
        leaves = case.leaves()
        if self.engine == "torch":
            assert torch.autograd.gradgradcheck(
                lambda *given: tuple(case.means("torch", **dict(zip(leaves, given, strict=True)))),
                tuple(leaves.values()),
                fast_mode=True,
            )
            return
        means, _ = case.means(self.engine, **leaves)
        first = torch.autograd.grad(means.sum(), leaves["points"], create_graph=True)[0]
        with pytest.raises(NotImplementedError, match="differentiated"):
            torch.autograd.grad((first**2).sum(), leaves["points"])

    @pytest.mark.parametrize("n_iter", [1, 2])
    @pytest.mark.parametrize("e_step", ["posterior", "balanced"])
    def test_the_compiler_takes_it_whole(self, e_step, n_iter):
        case = self.make(n_iter=n_iter, e_step=e_step, sizes=(0, 1, 4)).to(self.device)
        case.sets.prepare()
        torch._dynamo.reset()

        def loss(points, anchors, bias, weights):
            given = {"points": points.tanh(), "anchors": 2 * anchors, "bias": bias, "weights": weights}
            means, mass = case.configured_means(**given)
            return (means * case.grad_means).sum() + (mass * case.grad_mass).sum()

        results = []
        for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
            leaves = tuple(case.leaves().values())
            with config_context(engine=self.engine):
                value = function(*leaves)
            results.append([value, *torch.autograd.grad(value, leaves)])
        for ours, theirs in zip(*results, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
