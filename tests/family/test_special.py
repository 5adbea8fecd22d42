"""Bessel functions against mpmath at any order and argument, log-factorials against SciPy, packed matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from fishergraph.family.special import (
    bessel,
    concentration,
    log_factorial,
    mean_length,
    pack,
    pack_products,
    symmetric_power,
    unpack,
)


@pytest.mark.parametrize("d", [2, 3, 5, 20, 256, 1000])
@pytest.mark.parametrize("kappa", [0.0, 1e-3, 0.5, 30.0, 300.0, 1e4])
def test_bessel_is_mpmaths(d, kappa):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(40):
        order, x = mp.mpf(d) / 2 - 1, mp.mpf(kappa)
        if kappa == 0:
            log, length, slope = -order * mp.log(2) - mp.loggamma(order + 1), mp.mpf(0), mp.mpf(1) / d
        else:
            low, high = mp.besseli(order, x), mp.besseli(order + 1, x)
            log, length = mp.log(low) - order * mp.log(x), high / low
            slope = 1 - length**2 - (d - 1) / x * length
    assert_allclose(bessel(0.5 * d - 1, np.array(kappa))[0], float(log), rtol=1e-9, atol=1e-9)
    found, ratio, derivative = mean_length(d, np.array(kappa))
    assert_allclose(found, float(length), rtol=1e-9)
    assert_allclose(ratio * kappa, found, rtol=1e-12)
    assert_allclose(derivative, float(slope), rtol=1e-6)
    assert_allclose(concentration(d, np.array(float(length))), kappa, rtol=1e-7)


def test_the_line_has_two_directions():
    kappa = np.array([0.0, 0.3, 2.0])
    assert_allclose(mean_length(1, kappa)[0], np.tanh(kappa), rtol=1e-9)


def test_log_factorial_is_scipys():
    counts = np.array([0.0, 0.5, 1, 2, 3.7, 10, 1e3, 1e6])
    assert_allclose(log_factorial(counts), special.gammaln(counts + 1), rtol=1e-12, atol=1e-12)


def test_packed_matrices():
    rng = np.random.default_rng(0)
    a, b = (m + m.swapaxes(-1, -2) for m in rng.normal(size=(2, 3, 4, 4)))
    assert_allclose((pack(a) * pack(b)).sum(axis=-1), (a * b).sum(axis=(-2, -1)))
    assert_allclose(unpack(pack(a), 4), a, rtol=1e-15)
    x = rng.normal(size=(5, 4))
    assert_allclose(pack_products(x), pack(x[:, :, None] * x[:, None, :]), rtol=1e-14)
    square = a @ a
    root = symmetric_power(square, 0.5)
    assert_allclose(root @ root, square, atol=1e-12)
