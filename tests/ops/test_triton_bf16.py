"""The M-step of points in bf16 on matrix units: hubs, pairs, tiles, weights, beside the plain version in float64."""

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from fishergraph.ops.attend import triton  # noqa: E402
from fishergraph.ops.attend.torch import plain_attend  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets  # noqa: E402

interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
ON = pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=interpreted), pytest.param("cuda", marks=pytest.mark.gpu)]
)
# Empty ones first, last and beside a hub, a hub alone, two side by side, and an odd number of sets.
SIZES = (0, 3, 17, 0, 1, 30, 26, 2, 5, 0, 40)
# Rounding a coefficient moves a mean by this share of the members' spread, rounding the mean by this share of itself.
HALF_ULP = 2.0**-9


@pytest.fixture(autouse=True)
def _small_hubs(monkeypatch):
    monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 20)


def example(p, d, *, weighted=False, by_entry=False, sizes=SIZES, n=9, seed=0):
    """(points in bf16, log α, sets, anchors)."""
    generator = torch.Generator().manual_seed(seed)
    indptr = torch.tensor([0, *sizes]).cumsum(0)
    n_entries = int(indptr[-1])
    indices = torch.randint(n, (n_entries,), generator=generator)
    weights = torch.rand(n_entries, generator=generator) if weighted else None
    scores = torch.randn(n_entries if by_entry else n, p, generator=generator)
    points = torch.randn(n, d, generator=generator).bfloat16()
    anchors = torch.randn(p, d, generator=generator)
    return points, torch.log_softmax(scores, 1), TensorSets(indptr, indices, weights, n), anchors


def check(given, device, *, prior=0.0, by_entry=False, block=None):
    points, logs, sets, anchors = given
    on_device = sets.to(device) if block is None else sets.to(device).block(block)
    out = torch.full((on_device.n_sets, *anchors.shape), torch.nan, dtype=torch.bfloat16, device=device)
    assert triton.uses_matrix_units(points, out, logs, None)
    found = triton.attend(
        points.to(device), logs.to(device), on_device, anchors.to(device), prior=prior, by_entry=by_entry, out=out
    )
    weights = None if sets.weights is None else sets.weights.double()
    wide = sets.weighted(weights) if block is None else sets.weighted(weights).block(block)
    known = plain_attend(points.double(), logs.double(), wide, anchors.double(), prior, by_entry, False)
    means, mass, log_total = (tensor.cpu().double() for tensor in found)
    spread = float(points.abs().max())
    rounding = 2 if device == "cpu" else 1  # the interpreter cuts bits off
    assert ((means - known[0]).abs() <= rounding * HALF_ULP * (known[0].abs() + 2 * spread)).all()
    torch.testing.assert_close(mass, known[1], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(log_total, known[2], rtol=1e-6, atol=1e-6)


@ON
@pytest.mark.parametrize("p", [1, 3, 8, 9, 17])
@pytest.mark.parametrize("d", [1, 20, 128, 300])
def test_every_tile_agrees_with_the_plain_version(p, d, device):
    check(example(p, d), device)


@ON
@pytest.mark.parametrize("prior", [0.0, 0.3])
@pytest.mark.parametrize("by_entry", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_priors_and_responsibilities_of_entries(weighted, by_entry, prior, device):
    check(example(5, 24, weighted=weighted, by_entry=by_entry), device, prior=prior, by_entry=by_entry)


@ON
@pytest.mark.parametrize("block", [slice(1, 4), slice(3, 11), slice(6, 7), slice(0, 1)])
def test_blocks_of_rows_begin_anywhere(block, device):
    check(example(4, 16), device, block=block)


@ON
def test_the_mean_of_equal_points_is_that_point(device):
    points, logs, sets, anchors = example(8, 32)
    points = points[:1].expand(9, -1).contiguous()
    means, _, _ = triton.attend(points.to(device), logs.to(device), sets.to(device), anchors.to(device))
    known = torch.where((torch.tensor(SIZES) > 0)[:, None, None], points[0], anchors.bfloat16())
    # The interpreter cuts bits off where a GPU rounds.
    torch.testing.assert_close(means.cpu(), known, rtol=2**-7 if device == "cpu" else 0.0, atol=0.0)


@ON
def test_a_vanishing_mass_is_made_good_in_logs(device):
    points, logs, sets, anchors = example(3, 16)
    logs = logs - torch.tensor([0.0, 200.0, 0.0])  # exp underflows at the second anchor
    found, _, _ = triton.attend(points.to(device), logs.to(device), sets.to(device), anchors.to(device))
    known, _, _ = plain_attend(points.double(), logs.double(), sets, anchors.double(), 0.0, False, False)
    torch.testing.assert_close(found.cpu().double(), known, rtol=2**-6, atol=2**-6)
