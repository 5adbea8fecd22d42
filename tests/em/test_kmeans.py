"""k-means against its objective and scikit-learn; dense and CSR; degenerate data; the same bits on any thread."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.preprocessing import normalize

import reference as ref
from fishergraph.em.kmeans import kmeans, unit_rows


def generator(seed=0):
    return np.random.default_rng(seed)


def blobs(n=600, k=6, d=4, *, offset=0.0, dtype=np.float32, seed=0):
    points, _ = make_blobs(n, d, centers=k, cluster_std=0.6, random_state=seed)
    return (points + offset).astype(dtype)


def inertia(points, centres):
    points, centres = points.astype(np.float64), centres.astype(np.float64)
    return float(((points[:, None] - centres) ** 2).sum(-1).min(1).sum())


def test_inertia_here_is_the_references():
    points = blobs(60)
    assert_allclose(inertia(points, points[:5]), ref.kmeans_objective(points, points[:5]), rtol=1e-12)


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_the_objective_never_rises(init):
    points = blobs(dtype=np.float64)
    values = [inertia(points, kmeans(points, 9, rng=generator(), init=init, n_iter=n)) for n in range(8)]
    assert values[-1] < values[0]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_inertia_is_scikit_learns_also_far_from_the_origin(offset, dtype):
    """At 10^4 an uncentred ⟨x, c⟩ − ‖c‖²/2 is off by 10 in float32, and the clusters are 3 apart."""
    rng = generator(3)
    points = 3 * rng.normal(size=(6, 4))[rng.integers(6, size=900)] + 0.1 * rng.normal(size=(900, 4))
    points = (points + offset).astype(dtype)
    theirs = KMeans(6, n_init=10, random_state=0).fit(points.astype(np.float64)).inertia_
    ours = [inertia(points, kmeans(points, 6, rng=generator(s), init="k-means++", n_iter=20)) for s in range(6)]
    assert np.min(ours) <= 1.02 * theirs


def test_one_lloyd_iteration_is_scikit_learns():
    points = blobs(dtype=np.float64)
    start = kmeans(points, 6, rng=generator(), n_iter=0)
    theirs = KMeans(6, init=start, n_init=1, max_iter=1, algorithm="lloyd")
    theirs.fit(points)
    assert_allclose(kmeans(points, 6, rng=generator(), n_iter=1), theirs.cluster_centers_, rtol=0, atol=1e-10)


def test_without_iterations_the_centres_are_distinct_points():
    points = np.repeat(blobs(50), 4, axis=0)
    for init in ("random", "k-means++"):
        centres = kmeans(points, 20, rng=generator(), init=init, n_iter=0)
        assert len(np.unique(centres, axis=0)) == 20
        assert {row.tobytes() for row in centres} <= {row.tobytes() for row in points}


def test_plus_plus_starts_lower_than_random():
    points = blobs(400, 12, 2, seed=3)
    mean = {
        init: np.mean([inertia(points, kmeans(points, 12, rng=generator(s), init=init, n_iter=0)) for s in range(20)])
        for init in ("random", "k-means++")
    }
    assert mean["k-means++"] < 0.7 * mean["random"]


def test_spherical_centres_are_unit_vectors_that_raise_the_cosines():
    points = normalize(blobs(dtype=np.float64, k=8, d=6))
    gains = []
    for n in range(6):
        centres = kmeans(points, 8, rng=generator(), spherical=True, n_iter=n)
        assert_allclose(np.linalg.norm(centres, axis=1), 1, rtol=1e-12)
        gains.append((points @ centres.T).max(axis=1).sum())
    assert gains[-1] > gains[0]
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(gains))


def test_spherical_looks_at_directions_alone():
    points = blobs(dtype=np.float64)
    lengths = generator(1).uniform(0.1, 10, size=(len(points), 1))
    plain = kmeans(points, 5, rng=generator(), spherical=True)
    scaled = kmeans(points * lengths, 5, rng=generator(), spherical=True)
    assert_allclose(scaled, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_gives_what_dense_gives(spherical, init, dtype):
    points = sp.random_array((300, 40), density=0.1, rng=generator(), dtype=np.float64).astype(dtype)
    points = sp.csr_array(points)
    options = {"spherical": spherical, "init": init, "n_iter": 3}
    dense = kmeans(points.toarray(), 7, rng=generator(), **options)
    sparse = kmeans(points, 7, rng=generator(), **options)
    assert isinstance(sparse, np.ndarray)
    assert sparse.dtype == dtype
    assert_allclose(sparse, dense, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_same_bits_at_any_number_of_threads_and_another_seed_differs(spherical, sparse):
    points = blobs(20_000, 10, 8)
    points = sp.csr_array(points) if sparse else points
    first, *others = (
        kmeans(points, 16, rng=generator(), spherical=spherical, n_iter=3, n_jobs=jobs) for jobs in (1, 2, 3)
    )
    for other in others:
        assert_array_equal(other, first)
    assert not np.array_equal(kmeans(points, 16, rng=generator(1), spherical=spherical, n_iter=3), first)


def test_the_input_is_read_only_and_left_alone():
    points = blobs()
    copy = points.copy()
    points.flags.writeable = False
    for spherical in (False, True):
        kmeans(points, 4, rng=generator(), spherical=spherical)
    assert_array_equal(points, copy)


# ------------------------------------------------------------------------------------ degenerate data


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("sparse", [False, True])
def test_fewer_distinct_points_than_clusters_give_those_points(init, sparse):
    distinct = np.array([[0.0, 1.0], [2.0, 0.0], [-1.0, 3.0]])
    points = distinct[generator().integers(3, size=50)]
    points = sp.csr_array(points) if sparse else points
    with pytest.warns(UserWarning, match="5 anchors"):
        centres = kmeans(points, 5, rng=generator(), init=init)
    assert_allclose(centres[np.lexsort(centres.T)], distinct[np.lexsort(distinct.T)], rtol=1e-12)


@pytest.mark.parametrize("n_distinct", [3, 90, 400])
def test_points_that_differ_late_are_distinct_and_equal_ones_are_not(n_distinct):
    distinct = np.zeros((n_distinct, 20))
    distinct[:, -1] = np.arange(n_distinct)
    distinct[::2, 0] = 1.0  # half of them share their first entries, and so does the other half
    points = distinct[generator().permutation(np.repeat(np.arange(n_distinct), 4))]
    points[points == 0] *= generator(1).choice([-1.0, 1.0], (points == 0).sum())  # −0.0 and 0.0 are one point
    centres = kmeans(points, n_distinct, rng=generator(), n_iter=0)
    assert_array_equal(centres[np.argsort(centres[:, -1])], distinct)
    with pytest.warns(UserWarning, match=f"only {n_distinct} distinct points"):
        assert len(kmeans(points, n_distinct + 1, rng=generator(), n_iter=0)) == n_distinct


def test_fewer_distinct_directions_than_clusters():
    points = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    with pytest.warns(UserWarning, match="landmarks.*only 2 distinct"):
        centres = kmeans(points, 4, rng=generator(), spherical=True, what="landmarks")
    assert_allclose(centres[np.argsort(centres[:, 0])], [[0, 1], [1, 0]], atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("spherical", [False, True])
def test_nothing_but_zeros(spherical, sparse):
    points = sp.csr_array((6, 3)) if sparse else np.zeros((6, 3))
    with pytest.warns(UserWarning, match="1 are used"):
        centres = kmeans(points, 2, rng=generator(), spherical=spherical)
    assert centres.shape == (1, 3)
    assert np.isfinite(centres).all()
    assert_allclose(np.linalg.norm(centres), 1.0 if spherical else 0.0)


def test_negative_zero_is_zero():
    points = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]])
    with pytest.warns(UserWarning, match="only 2 distinct"):
        assert len(kmeans(points, 3, rng=generator())) == 2


def test_opposite_directions_keep_a_unit_centre():
    points = np.array([[1.0, 0.0], [-1.0, 0.0]])
    centres = kmeans(points, 1, rng=generator(), spherical=True)
    assert_allclose(np.linalg.norm(centres, axis=1), 1)


def test_an_empty_cluster_is_restarted_at_a_badly_served_point():
    """Two copies of one centre: the second gets no point, and takes the outlier that nobody serves."""
    from fishergraph.em.kmeans import _lloyd

    points = np.concatenate([generator().normal(size=(40, 2)), [[-50.0, -50.0]]])
    for shift in (0.0, 1e3):
        for data in (points + shift, sp.csr_array(points + shift)):
            centres = np.zeros((2, 2)) + shift
            assert_allclose(_lloyd(data, centres, data, centres, False, 1)[1], [shift - 50.0, shift - 50.0], rtol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_many_clusters_of_long_vectors_are_separated_in_a_projection(monkeypatch, spherical, sparse):
    """The projected run finds centres as good as the full one; they are averages of the vectors themselves."""
    import fishergraph.em.kmeans as module

    rng = generator()
    heads = rng.normal(size=(130, 520))
    points = (heads[rng.integers(130, size=900)] + 0.5 * rng.normal(size=(900, 520))).astype(np.float32)
    points[np.abs(points) < 1] = 0
    given = sp.csr_array(points) if sparse else points
    seen = unit_rows(points) if spherical else points

    def run(n_jobs=1):
        rng = np.random.default_rng(3)
        return kmeans(given, 130, rng=rng, init="k-means++", spherical=spherical, n_jobs=n_jobs)

    plain = run()
    assert np.array_equal(plain, run(n_jobs=2))  # little work: no projection
    monkeypatch.setattr(module, "_SKETCH_WORK", 0)
    projected = run()
    np.testing.assert_array_equal(projected, run(n_jobs=2))
    monkeypatch.setattr(module, "SKETCH", 10**6)
    full = run()
    np.testing.assert_array_equal(full, plain)
    assert not np.array_equal(projected, full)
    assert ref.kmeans_objective(seen[::8], projected) < 1.1 * ref.kmeans_objective(seen[::8], full)
    if spherical:
        np.testing.assert_allclose(np.linalg.norm(projected, axis=1), 1, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=12),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(["random", "k-means++"]),
)
@pytest.mark.filterwarnings("ignore:asked for")
def test_centres_are_finite_and_no_more_than_the_distinct_points(rows, k, spherical, init):
    points = np.array(rows, dtype=np.float32)
    seen = unit_rows(points)[np.any(points != 0, axis=1)] if spherical else points
    distinct = len(np.unique(seen.round(6), axis=0))
    centres = kmeans(points, k, rng=generator(), spherical=spherical, init=init)
    assert np.isfinite(centres).all()
    assert max(1, min(k, distinct)) <= len(centres) <= k
    if spherical:
        return  # directions that differ by a rounding count as distinct points
    assert len(centres) == min(k, distinct)
    if k >= distinct:
        assert inertia(points, centres) == 0


def test_an_unknown_start_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'random', 'k-means\+\+'"):
        kmeans(blobs(), 3, rng=generator(), init="kmeans++")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_rows_is_scikit_learns(dtype):
    points = blobs(50, dtype=dtype)
    points[7] = 0
    expected = normalize(points)
    assert_allclose(unit_rows(points), expected, rtol=1e-6)
    sparse = unit_rows(sp.csr_array(points))
    assert sp.issparse(sparse)
    assert sparse.dtype == dtype
    assert_allclose(sparse.toarray(), expected, rtol=1e-6)
