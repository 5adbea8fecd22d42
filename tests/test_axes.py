"""Principal axes of X, averaged by PageRank and sharpened: against NumPy's decompositions in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fishergraph import FisherEmbedding, Walk
from fishergraph._errors import InputError
from fishergraph.axes import fit_axes, fit_scaled, fit_sharpening, frequency_weights, principal_axes

RNG = np.random.default_rng(0)
N = 60


def words(n: int = N, d: int = 40) -> np.ndarray:
    """Binary rows with common and rare columns, none of them empty."""
    X = (RNG.random((n, d)) < np.linspace(0.05, 0.6, d)).astype(np.float64)
    X[np.arange(d) % n, np.arange(d)] = 1
    return X


@pytest.fixture
def A() -> sp.csr_array:
    A = sp.random_array((N, N), density=0.1, rng=np.random.default_rng(1), format="csr")
    return sp.csr_array((A + A.T) > 0).astype(np.float64)


def test_weights_of_binary_columns_are_roots_of_inverse_frequencies():
    X = words()
    expected = np.sqrt(np.log(N / X.sum(axis=0)))
    for rows in (X, 0.25 * X, sp.csr_array(X)):
        assert_allclose(frequency_weights(rows), expected, rtol=1e-12)


def test_other_columns_keep_their_weight():
    X = np.column_stack([RNG.normal(size=N), np.ones(N), np.zeros(N), np.arange(N) < 2, 3.0 * (np.arange(N) < 6)])
    expected = [1, 1, 1, np.sqrt(np.log(N / 2)), np.sqrt(np.log(N / 6))]
    for rows in (X, sp.csr_array(X)):
        assert_allclose(frequency_weights(rows), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(200, 30), (30, 200)])
@pytest.mark.parametrize("sparse", [False, True])
def test_axes_are_those_of_the_singular_value_decomposition(shape, sparse):
    X = RNG.normal(size=shape) * 0.7 ** np.arange(shape[1])
    values, directions = principal_axes(sp.csr_array(X) if sparse else X, 6, np.random.default_rng(2))
    S, Vt = np.linalg.svd(X, full_matrices=False)[1:]
    assert_allclose(values, S[:6], rtol=1e-6)
    assert_allclose(np.abs(np.sum(directions * Vt[:6], axis=1)), 1, atol=1e-5)
    assert_allclose(directions @ directions.T, np.eye(6), atol=1e-8)
    assert directions.flags.c_contiguous


def test_fewer_axes_if_the_rank_is_lower():
    X = RNG.normal(size=(50, 2)) @ RNG.normal(size=(2, 20))
    assert principal_axes(X, 8, np.random.default_rng(3))[1].shape == (2, 20)
    values, directions = principal_axes(np.zeros((5, 4)), 3, np.random.default_rng(3))
    assert_array_equal(values, [0])
    assert directions.shape == (1, 4)


@pytest.mark.parametrize("whitening", [0.0, 0.5, 1.0])
def test_coordinates_are_partly_whitened(whitening):
    X = words()
    axes = fit_axes(X, 5, whitening, np.random.default_rng(4), unit=True)
    weighted = X * np.sqrt(np.log(N / X.sum(axis=0)))
    weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    U, S, _ = np.linalg.svd(weighted, full_matrices=False)
    F = U[:, :5] * S[:5] ** (1 - whitening)
    F *= np.sqrt(N / np.sum(F**2))
    mapped = axes(X)
    assert_allclose(mapped @ mapped.T, F @ F.T, atol=1e-3)
    assert_allclose(axes(sp.csr_array(X)), mapped, atol=1e-12)
    assert_allclose(np.sum(mapped**2) / N, 1, rtol=1e-10)
    plain = U[:, :5] * S[:5]
    assert_allclose((mapped * axes.spread) @ (mapped * axes.spread).T, plain @ plain.T, atol=1e-3)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_sharpening_scales_principal_axes_by_their_spread(power):
    means = RNG.normal(size=(N, 4)) @ RNG.normal(size=(4, 4)) + 3
    sharpened = fit_sharpening(means, 4, power, unit=True)(means)
    centred = means - means.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(centred.T, bias=True))
    expected = centred @ vectors * values ** (power / 2)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert_allclose(sharpened @ sharpened.T, expected @ expected.T, atol=1e-9)


def test_leading_axes_alone_are_kept():
    means = RNG.normal(size=(N, 6)) * [5, 4, 3, 2, 1, 0.5]
    wide, narrow = (fit_sharpening(means, n, 1.0, unit=False)(means) for n in (6, 2))
    assert_array_equal(wide[:, :2], narrow)


def test_standardised_columns_and_constant_ones():
    columns = np.column_stack([RNG.normal(3, 2, size=(N, 2)), np.full(N, 1.0)])
    scaled = fit_scaled(columns, None, unit=False)
    rows = scaled.phi(columns)
    assert_allclose(rows[:, :2].mean(axis=0), 0, atol=1e-12)
    assert_allclose((rows[:, :2] ** 2).mean(axis=0), 1 / 3)
    assert_array_equal(rows[:, 2], 1)


def test_the_block_is_the_sharpened_sum_of_the_axes(A):
    X = words()
    model = FisherEmbedding(n_layers=0, dim=6, structure=None, block_weights=[0, 0, 1], random_state=0)
    Z = model.fit_transform(X, graph=A)
    closed = (A.toarray() > 0) | np.eye(N, dtype=bool)
    P, b = closed / closed.sum(axis=1, keepdims=True), closed.sum(axis=0) ** -0.5
    symmetric = P * b / b[:, None]  # D^-½ A D^-½
    values = start = model.stack_.axes(X)
    for _ in range(Walk().n_steps):
        values = 0.9 * symmetric @ values + 0.1 * start
    assert_allclose(symmetric, symmetric.T, atol=1e-12)
    assert_allclose(Z, model.stack_.columns[1](values), atol=1e-9)
    assert_allclose(np.linalg.norm(Z, axis=1), 1)


def test_few_axes(A):
    narrow = FisherEmbedding(dim=5, walk=Walk(n_axes=3), structure=None, random_state=0).fit(words(), graph=A)
    assert dict(narrow.blocks_)["smooth"] == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_file_and_any_number_of_threads_give_the_same_bits(A, tmp_path, dtype):
    X = sp.csr_array(words().astype(dtype))
    model = FisherEmbedding(dim=5, random_state=0, n_jobs=1)
    Z = model.fit_transform(X, graph=A)
    assert Z.dtype == dtype
    assert_array_equal(FisherEmbedding(dim=5, random_state=0, n_jobs=2).fit_transform(X, graph=A), Z)
    model.save(tmp_path / "model")
    assert_array_equal(FisherEmbedding.load(tmp_path / "model").transform(X, graph=A), Z)


def test_constant_features_stay_finite(A):
    model = FisherEmbedding(dim=4, structure=None, random_state=0)
    Z = model.fit_transform(np.ones((N, 3), dtype=np.float32), graph=A)
    assert np.isfinite(Z).all()
    assert_allclose(np.abs(Z[:, -1]), 1)  # the one axis has the degrees of the nodes, above or below their mean


@pytest.mark.parametrize("options", [{"n_axes": 0}, {"whitening": 1.5}, {"sharpening": -0.1}], ids=str)
def test_options_out_of_range(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Walk(**options)
