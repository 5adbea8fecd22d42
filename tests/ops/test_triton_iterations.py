"""Several iterations by the program of one set: every way to fold the anchors over the lanes, hubs, and the repair."""

import os
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from contracts import extreme_problem, reference_means  # noqa: E402
from fishergraph import config_context, em_means  # noqa: E402
from fishergraph.ops.segment_sums.triton import entry_runs, merge_parts, sum_parts  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.tensor_sets import Hubs, TensorSets  # noqa: E402
from gradients import assert_close, make  # noqa: E402

interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
ON = pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=interpreted), pytest.param("cuda", marks=pytest.mark.gpu)]
)
SIZES = (0, 1, 9, 2, 4)


@pytest.fixture(autouse=True)
def _small_hubs(monkeypatch):
    monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 3)


def both(case, device, dtype=torch.float64):
    """The means and the mass by the kernels and, in float64, by the plain engine."""
    ours, plain = (case.to(where, kind) for where, kind in ((device, dtype), ("cpu", torch.float64)))
    return [t.cpu().double() for t in ours.means("triton")], plain.means("torch")


@ON
@pytest.mark.parametrize(("p", "d"), [(1, 5), (2, 130), (3, 128), (5, 7), (8, 260)])
def test_every_fold_agrees_with_the_plain_version(p, d, device):
    for ours, plain in zip(*both(make(n=8, sizes=SIZES, p=p, d=d, n_iter=3), device), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-10)


@ON
@pytest.mark.parametrize("prior", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_mass_that_vanishes_is_made_good_in_logs(weighted, prior, device):
    case = make(n=8, sizes=SIZES, p=4, d=7, scale=30.0, variance=0.5, n_iter=3, weighted=weighted, prior=prior)
    (means, _), (known, _) = both(case, device, torch.float32)
    torch.testing.assert_close(means, known, rtol=1e-4, atol=1e-3)


@ON
def test_a_mass_between_two_means_that_nearly_agree(device):
    """Both lie near one far point: scores by products would have lost what tells them apart."""
    problem = extreme_problem("3√d", 0.0, 5)
    points, anchors = (torch.tensor(array, dtype=torch.float32) for array in (problem.points, problem.anchors))
    sets = tensor_sets(problem.sets).to(device)
    with config_context(engine="triton"):
        _, mass = em_means(points.to(device), sets, anchors.to(device), variance=1.0, n_iter=2)
    assert abs(mass.cpu().numpy() - reference_means(problem, 2)[1]).max() < 5e-6


@ON
def test_half_storage_is_summed_in_float32(device):
    case = make(n=8, sizes=SIZES, p=3, d=20, n_iter=2, weighted=False, biased=False)
    case = case.to("cpu", torch.bfloat16).to("cpu")  # what bfloat16 holds
    (means, _), (known, _) = both(case, device, torch.bfloat16)
    torch.testing.assert_close(means, known, rtol=2**-7, atol=2**-7)


# --- the gradients -----------------------------------------------------------------------------------------


def agree(case, device, rtol=1e-9):
    """The gradients by the kernels and by the plain engine, in float64."""
    assert_close(case.to(device).gradients("triton"), case.gradients("torch"), rtol=rtol)


@ON
@pytest.mark.parametrize("prior", [0.0, 0.2])
@pytest.mark.parametrize(("p", "d"), [(1, 5), (3, 130), (8, 200)])
def test_gradients_through_three_iterations(p, d, prior, device):
    agree(make(n=8, sizes=SIZES, p=p, d=d, n_iter=3, prior=prior), device)


@ON
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_if_nothing_was_kept(weighted, device, monkeypatch):
    case = make(n=8, sizes=SIZES, n_iter=3, weighted=weighted)
    kept = case.to(device).gradients("triton")
    monkeypatch.setattr("fishergraph.ops.iterate.torch._KEPT", 0)
    for name, value in case.to(device).gradients("triton").items():
        torch.testing.assert_close(value, kept[name], rtol=1e-12, atol=1e-12)


@ON
@pytest.mark.parametrize("prior", [0.0, 0.2])
def test_gradients_of_a_mass_that_vanishes(prior, device):
    case = make(n=8, sizes=SIZES, p=4, d=7, scale=30.0, variance=0.5, n_iter=3, prior=prior)
    agree(replace(case, weights=case.weights + 0.5), device, rtol=1e-7)
    for name, gradient in case.to(device, torch.float32).gradients("triton").items():
        assert name == "weights" or torch.isfinite(gradient).all(), name


@ON
@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize(("n_iter", "e_step"), [(1, "posterior"), (3, "posterior"), (2, "balanced")])
def test_gradients_a_few_entries_at_a_time(n_iter, e_step, most, device, monkeypatch):
    """The vectors of all entries need not exist at once; a set is never cut."""
    for module in ("attend", "iterate"):
        monkeypatch.setattr(f"fishergraph.ops.{module}.triton_backward.run_entries", lambda values: most)
    agree(make(n=8, sizes=(0, 1, 5, 2, 0, 9, 0), n_iter=n_iter, e_step=e_step, prior=0.2), device)


def test_runs_of_entries_cover_all_sets():
    sets = TensorSets(torch.tensor([0, 0, 3, 4, 4, 9, 10]), torch.zeros(10, dtype=torch.int32), None, 1)
    for most in (1, 3, 4, 9, 10, 11):
        runs = entry_runs(sets, most)
        assert [rows.start for rows, _, _ in runs] == [0, *(rows.stop for rows, _, _ in runs[:-1])]
        assert runs[-1][0].stop == sets.n_sets
        for rows, first, last in runs:
            assert (first, last) == (int(sets.indptr[rows.start]), int(sets.indptr[rows.stop]))
            sizes = torch.diff(sets.indptr[rows.start : rows.stop + 1])
            assert last - first <= most or (sizes > 0).sum() == 1


@ON
def test_parts_are_added_whatever_their_number(device):
    """Fewer than one step of the sum takes, exactly one, and several; in two slabs."""
    offsets = torch.tensor([0, 3, 3 + 16, 3 + 16 + 37], device=device)
    nothing = torch.empty(56, device=device)
    hubs = Hubs(torch.tensor([4, 0, 2], device=device), offsets, nothing, nothing, nothing)
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(2, 56, 5, generator=generator, dtype=torch.float64).to(device)
    expected = torch.stack([parts[:, :3].sum(1), parts[:, 3:19].sum(1), parts[:, 19:].sum(1)], dim=1)
    out = torch.full((2, 6, 5), 7.0, dtype=torch.float64, device=device)
    sum_parts(out, parts, hubs)
    torch.testing.assert_close(out[:, [4, 0, 2]], expected)
    assert bool((out[:, [1, 3, 5]] == 7).all())
    torch.testing.assert_close(merge_parts(parts[1], hubs), expected[1])
