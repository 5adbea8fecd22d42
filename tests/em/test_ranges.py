"""Numbers at the ends of what float32 holds: `em_means` refuses what would become NaN, and is exact up to there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fishergraph import em_means
from fishergraph.multiset import Multisets

torch = pytest.importorskip("torch")

POINTS = np.arange(12, dtype=np.float32).reshape(4, 3)
SETS = Multisets(np.array([0, 3, 4]), np.array([0, 1, 2, 3], np.int32), None, 4)


def means(points=POINTS, sets=SETS, anchors=POINTS[:2], *, kind, **options):
    if kind == "numpy":
        return em_means(points, sets, anchors, **options)
    found = em_means(torch.from_numpy(points), sets, torch.from_numpy(anchors), **options)
    return type(found)(found.means.numpy(), found.mass.numpy())


KINDS = pytest.mark.parametrize("kind", ["numpy", "torch"])


@KINDS
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("points", {"points": POINTS * np.float32(1e20)}),
        ("anchors", {"anchors": POINTS[:2] * np.float32(1e25) + np.float32(1e25)}),
        ("variance", {"variance": 1e39}),
        ("variance", {"variance": 1e-39}),
        ("prior", {"prior": 1e39}),
        ("weights", {"sets": Multisets(SETS.indptr, SETS.indices, np.full(4, 1e38), 4)}),
    ],
)
def test_what_would_become_nan_is_refused_by_name(kind, name, change):
    with pytest.raises(ValueError, match=name):
        means(kind=kind, **change)


@KINDS
def test_a_scale_below_the_bound_gives_the_scaled_means(kind):
    scale = np.float32(2.0**40)
    expected = means(kind=kind, variance=0.5)
    got = means(POINTS * scale, SETS, POINTS[:2] * scale, kind=kind, variance=0.5 * float(scale) ** 2)
    assert_allclose(got.means, expected.means * scale, rtol=1e-5)
    assert_allclose(got.mass, expected.mass, rtol=1e-5)
