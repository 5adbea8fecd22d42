"""Arrays that hold points."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph.device import LINE, NUMPY, aligned_empty


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.dtype("float32")])
@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (7, 3), (1000, 16)])
def test_points_begin_with_a_cache_line(shape, dtype):
    for _ in range(5):
        points = aligned_empty(shape, dtype)
        assert points.shape == shape
        assert points.dtype == dtype
        assert points.size == 0 or points.ctypes.data % LINE == 0
        assert points.flags.c_contiguous
        assert points.flags.writeable
        points[:] = 3  # all of it is ours
        assert (points == 3).all()


def test_that_is_how_numpy_keeps_points():
    assert NUMPY.empty is aligned_empty
