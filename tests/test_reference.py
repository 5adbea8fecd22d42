"""The reference against truths from elsewhere: SciPy, scikit-learn, closed forms, decimal arithmetic."""

import itertools
import math
import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, linalg, special, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.mixture import GaussianMixture

import reference as ref

TWO_PI = 2 * math.pi


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def sample(rng):
    """Points, anchors and a variance at which the responsibilities are neither flat nor hard."""
    return rng.normal(size=(30, 3)), rng.normal(size=(4, 3)), 0.7


def as_set(n):
    return [[(u, 1.0) for u in range(n)]]


def one_sklearn_step(points, means, variance):
    """scikit-learn's mixture after one EM step from equal weights, given means and one variance."""
    p = len(means)
    model = GaussianMixture(
        p,
        covariance_type="spherical",
        max_iter=1,
        reg_covar=0.0,
        weights_init=np.full(p, 1 / p),
        means_init=means,
        precisions_init=np.full(p, 1 / variance),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(points)


# --------------------------------------------------------------------------------------- the mixture


def test_log_normal_is_scipys(sample):
    points, anchors, variance = sample
    expected = stats.multivariate_normal(anchors[0], variance * np.eye(3)).logpdf(points)
    assert_allclose([ref.log_normal(x, anchors[0], variance) for x in points], expected, rtol=1e-13)


def test_log_mixture_with_given_weights(sample):
    points, anchors, variance = sample
    pi = np.array([0.1, 0.2, 0.3, 0.4])
    density = sum(
        w * stats.multivariate_normal(a, variance * np.eye(3)).pdf(points) for w, a in zip(pi, anchors, strict=True)
    )
    values = [ref.log_mixture(x, anchors, variance, np.log(pi)) for x in points]
    assert_allclose(values, np.log(density), rtol=1e-12)


def test_arrays_instead_of_loops_change_nothing(sample):
    points, anchors, variance = sample
    joint = np.array([ref.log_joint(x, anchors, variance) for x in points])
    mixture = np.array([ref.log_mixture(x, anchors, variance) for x in points])
    assert_allclose(ref.log_joint_many(points, anchors, variance), joint, rtol=1e-13)
    assert_allclose(ref.log_mixture_many(points, anchors, variance), mixture, rtol=1e-13)


def test_responsibilities_are_bayes_rule(sample):
    points, anchors, variance = sample
    density = np.stack([stats.multivariate_normal(a, variance * np.eye(3)).pdf(points) for a in anchors], 1)
    alpha = ref.responsibilities(points, anchors, variance)
    assert_allclose(alpha, density / density.sum(1, keepdims=True), rtol=1e-11)
    assert_allclose(alpha.sum(1), 1, rtol=1e-14)


def test_log_responsibilities_survive_where_probabilities_vanish():
    anchors = np.array([[0.0], [100.0]])
    log_alpha = ref.log_responsibilities([[0.0], [50.0]], anchors)
    assert_allclose(log_alpha, [[0.0, -5000.0], [-math.log(2), -math.log(2)]], rtol=1e-14)


def test_log_responsibilities_are_log_softmax(sample):
    points, anchors, variance = sample
    expected = special.log_softmax(-euclidean_distances(points, anchors, squared=True) / (2 * variance), axis=1)
    assert_allclose(ref.log_responsibilities(points, anchors, variance), expected, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------------------ EM


def test_m_step_is_the_quotient_at_moderate_scale(sample, rng):
    points, anchors, variance = sample
    weights, kappa = rng.uniform(0.1, 2.0, size=30), 0.3
    alpha = ref.responsibilities(points, anchors, variance) * weights[:, None]
    for prior in (0.0, kappa):
        naive = (prior * anchors + alpha.T @ points) / (prior + alpha.sum(0))[:, None]
        log_resp = ref.log_responsibilities(points, anchors, variance)
        assert_allclose(ref.m_step(points, weights, log_resp, anchors, prior), naive, rtol=1e-12)


def test_m_step_is_exact_where_the_quotient_is_zero_over_zero(rng):
    """At scale 100 every α of a far anchor underflows; sixty-digit arithmetic still knows the average."""
    points, anchors = 100 * rng.normal(size=(6, 2)), 100 * rng.normal(size=(3, 2))
    assert (ref.responsibilities(points, anchors).sum(0) == 0).any()
    means = ref.em_means(points, as_set(6), anchors)[0][0]
    with localcontext() as context:
        context.prec, context.Emin = 60, -999_999
        exact = np.zeros((3, 2))
        density = [
            [
                (-sum((Decimal(float(a)) - Decimal(float(b))) ** 2 for a, b in zip(x, w, strict=True)) / 2).exp()
                for w in anchors
            ]
            for x in points
        ]
        for j in range(3):
            alpha = [row[j] / sum(row) for row in density]
            for k in range(2):
                total = sum(a * Decimal(float(x[k])) for a, x in zip(alpha, points, strict=True))
                exact[j, k] = float(total / sum(alpha))
    assert_allclose(means, exact, rtol=1e-10)


@pytest.mark.parametrize("n_iter", [1, 2, 4])
def test_em_is_scikit_learns(sample, n_iter):
    points, anchors, variance = sample
    means = anchors
    for _ in range(n_iter):
        last = means
        model = one_sklearn_step(points, means, variance)
        means = model.means_
    ours, mass = ref.em_means(points, as_set(30), anchors, variance, n_iter=n_iter)
    assert_allclose(ours[0], means, rtol=1e-11, atol=1e-12)
    # scikit-learn reports the responsibilities of the last E-step as the mixture weights of its M-step.
    assert_allclose(mass[0], 30 * model.weights_, rtol=1e-11)
    assert model.lower_bound_ == pytest.approx(ref.log_likelihood(points, np.ones(30), last, variance) / 30, rel=1e-12)


def test_em_weights_are_repetitions(sample):
    points, anchors, variance = sample
    weighted = [[(0, 3.0), (1, 1.0), (2, 2.0), (3, 0.0)]]
    repeated = [[(u, 1.0) for u in (0, 0, 0, 1, 2, 2)]]
    for a, b in zip(
        ref.em_means(points, weighted, anchors, variance, 0.2, 3),
        ref.em_means(points, repeated, anchors, variance, 0.2, 3),
        strict=True,
    ):
        assert_allclose(a, b, rtol=1e-12)


def test_em_prior_is_a_pseudo_point_at_each_anchor(sample):
    """The MAP objective is the bound plus −κ ‖μ_j − w_j‖² / 2σ²; the estimate is its stationary point."""
    points, anchors, variance = sample
    kappa = 0.8
    means = ref.em_means(points, as_set(30), anchors, variance, kappa)[0][0]

    def objective(theta):
        penalty = kappa * np.sum((theta - anchors) ** 2) / (2 * variance)
        return ref.em_lower_bound(points, np.ones(30), theta, anchors, variance) - penalty

    for direction in np.eye(12).reshape(12, 4, 3):
        slope = (objective(means + 1e-4 * direction) - objective(means - 1e-4 * direction)) / 2e-4
        assert abs(slope) < 1e-7


def test_em_edge_cases(sample):
    points, anchors, variance = sample
    sets = [[], [(4, 0.0)], [(4, 2.0)]]
    means, mass = ref.em_means(points, sets, anchors, variance)
    assert_array_equal(means[:2], [anchors, anchors])
    assert_array_equal(mass[:2], 0)
    assert_allclose(means[2], np.tile(points[4], (4, 1)), rtol=1e-14)
    assert mass[2].sum() == pytest.approx(2.0, rel=1e-14)
    means, mass = ref.em_means(points, sets, anchors, variance, n_iter=0)
    assert_array_equal(means, [anchors] * 3)
    assert_array_equal(mass, 0)
    assert_array_equal(ref.em_means(points, [[]], anchors, prior=1.0)[0][0], anchors)


def test_one_anchor_is_mean_pooling(sample):
    points, anchors, _ = sample
    means, mass = ref.em_means(points, as_set(30), anchors[:1], n_iter=2)
    assert_allclose(means[0, 0], points.mean(0), rtol=1e-12)
    assert_allclose(mass, [[30.0]], rtol=1e-14)
    assert_allclose(ref.reference_attention_means(points, as_set(30), anchors[:1])[0, 0], points.mean(0), rtol=1e-12)


def test_many_iterations_reach_a_stationary_likelihood(sample):
    points, anchors, variance = sample
    means = ref.em_means(points, as_set(30), anchors, variance, n_iter=800)[0][0]
    slopes = ref.score(points, means, variance).sum(0)
    assert np.abs(slopes).max() < 1e-5


def test_many_iterations_with_a_prior_reach_the_map_estimate(sample):
    """Every iteration pulls to the anchors: the limit maximises log-likelihood − κ ‖θ − θ_0‖² / 2σ²."""
    points, anchors, variance = sample
    kappa = 2.0
    means = ref.em_means(points, as_set(30), anchors, variance, kappa, n_iter=300)[0][0]
    slopes = ref.score(points, means, variance).sum(0) - kappa * (means - anchors).ravel() / variance
    assert np.abs(slopes).max() < 1e-8


def test_reference_attention_in_arrays(sample):
    points, anchors, _ = sample
    weights = np.linspace(0.5, 2, 30)
    points[3] = 0
    norms = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    alpha = special.softmax(points / norms @ anchors.T / 3, axis=1)
    attention = special.softmax(alpha + np.log(weights)[:, None], axis=0)
    means = ref.reference_attention_means(points, [list(enumerate(weights)), []], anchors)
    assert_allclose(means[0], attention.T @ points, rtol=1e-12)
    assert_array_equal(means[1], anchors)


def test_soft_counts():
    assert_allclose(ref.soft_counts([[0.0, 1e-20, math.e - 1]]), [[0.0, 1e-20, 1.0]], rtol=1e-15)


# ------------------------------------------------------------------------------- embeddings, kernels


def test_kernel_is_the_product_of_embeddings(sample, rng):
    _, anchors, _ = sample
    means = rng.normal(size=(2, 4, 3))
    half = rng.normal(size=(12, 12))
    fisher = half @ half.T
    for metric, root in ((0.25, None), (0.25, 0.5), (fisher, ref.matrix_root(fisher))):
        phi = ref.fisher_embedding(means, anchors, root)
        assert phi.shape == (2, 12)
        kernel = ref.tangent_kernel(means[0], means[1].ravel(), anchors, metric)
        assert phi[0] @ phi[1] == pytest.approx(kernel, rel=1e-10)
        half_distance = 0.5 * np.sum((phi[0] - phi[1]) ** 2)
        assert ref.kl_expansion(means[0], means[1], metric) == pytest.approx(half_distance, rel=1e-10)
    assert_allclose(ref.fisher_embedding(means, anchors)[1, 3:6], 0.5 * (means[1, 1] - anchors[1]), rtol=1e-14)


def test_matrix_roots_are_scipys(rng):
    half = rng.normal(size=(5, 5))
    matrix = half @ half.T
    assert_allclose(ref.matrix_root(matrix), linalg.sqrtm(matrix), rtol=1e-8, atol=1e-8)
    assert_allclose(ref.inverse_root(matrix), linalg.inv(linalg.sqrtm(matrix)), rtol=1e-7, atol=1e-7)
    tiny = np.diag([1.0, 1e-13, 0.25])
    assert_array_equal(ref.inverse_root(tiny), np.diag([1.0, 0.0, 2.0]))
    singular = half[:, :2] @ half[:, :2].T
    assert_allclose(ref.inverse_root(singular) @ ref.inverse_root(singular), linalg.pinvh(singular), atol=1e-8)


def test_multilayer_kernel_is_the_product_of_concatenations(rng):
    psis, psis2 = ([rng.normal(size=d) for d in (3, 5, 2)] for _ in range(2))
    assert ref.multilayer_kernel(psis, psis2) == pytest.approx(np.concatenate(psis) @ np.concatenate(psis2))
    weights = [0.0, 2.0, 0.5]
    scaled = [np.concatenate([math.sqrt(b) * psi for b, psi in zip(weights, p, strict=True)]) for p in (psis, psis2)]
    assert ref.multilayer_kernel(psis, psis2, weights) == pytest.approx(scaled[0] @ scaled[1])


# ----------------------------------------------------------------------------------------- integrals


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("variance", [1.0, 0.05, 4.0])
def test_fisher_matrix_of_one_gaussian(d, variance):
    fisher = ref.fisher_matrix_quadrature(np.full((1, d), 3.0), variance)
    assert_allclose(fisher, np.eye(d) / variance, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("distance", [0.0, 0.5, 2.0, 4.0, 6.0, 9.0, 13.0, 30.0])
def test_fisher_matrix_is_scipys_integral(distance):
    """Two entries by adaptive integration of the defining expectation, the score by a complex step."""
    anchors = np.array([-distance / 2, distance / 2])

    def log_density(theta, x):
        exponents = -0.5 * (x - theta) ** 2
        shift = exponents.real.max()
        return shift + np.log(np.exp(exponents - shift).sum()) - math.log(2 * math.sqrt(TWO_PI))

    def score(x, j):
        return log_density(anchors + 1e-30j * np.eye(2)[j], x).imag / 1e-30

    def entry(i, j):
        cuts = [0.0, *anchors, *(np.array([-1, 1, -0.1, 0.1]) * 2)]
        value, _ = integrate.quad(
            lambda x: score(x, i) * score(x, j) * math.exp(log_density(anchors + 0j, x).real),
            *(-distance / 2 - 12, distance / 2 + 12),
            points=sorted(set(cuts)),
            epsabs=1e-12,
            epsrel=1e-12,
            limit=500,
        )
        return value

    fisher = ref.fisher_matrix_quadrature(anchors[:, None])
    assert_allclose(fisher, [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]], atol=1e-10)


def test_fisher_matrix_is_gauss_hermites_in_the_plane(rng):
    anchors, variance = rng.normal(size=(3, 2)), 0.8
    nodes, masses = np.polynomial.hermite_e.hermegauss(160)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    weight = np.outer(masses, masses).ravel() / TWO_PI / 3
    expected = np.zeros((6, 6))
    for anchor in anchors:
        x = anchor + math.sqrt(variance) * grid
        alpha = special.softmax(-euclidean_distances(x, anchors, squared=True) / (2 * variance), axis=1)
        gradient = (alpha[:, :, None] * (x[:, None] - anchors) / variance).reshape(-1, 6)
        expected += gradient.T @ (gradient * weight[:, None])
    assert_allclose(ref.fisher_matrix_quadrature(anchors, variance), expected, atol=1e-9)


def test_fisher_matrix_scales_with_the_variance(rng):
    anchors = rng.normal(size=(3, 2))
    scaled = ref.fisher_matrix_quadrature(5 * anchors, 25.0)
    assert_allclose(25 * scaled, ref.fisher_matrix_quadrature(anchors), atol=1e-11)


def test_fisher_matrix_tends_to_the_identity_over_p():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.9]])
    gaps = [np.abs(ref.fisher_matrix_quadrature(s * corners) - np.eye(6) / 3).max() for s in (2, 4, 8, 16, 32)]
    assert all(b < a for a, b in itertools.pairwise(gaps))
    assert gaps[0] > 1e-2
    assert gaps[-1] < 1e-12


def test_fisher_matrix_monte_carlo_agrees_within_its_error(rng):
    anchors, variance, n = rng.normal(size=(3, 2)), 0.8, 200_000
    exact = ref.fisher_matrix_quadrature(anchors, variance)
    estimate = ref.fisher_matrix_monte_carlo(anchors, n, 0, variance)
    assert np.abs(estimate - exact).max() < 6 / math.sqrt(n) * 3 * exact.max()
    assert_array_equal(estimate, ref.fisher_matrix_monte_carlo(anchors, n, 0, variance))
    # In three dimensions there is no grid, but one Gaussian has the closed form.
    single = ref.fisher_matrix_monte_carlo(np.ones((1, 3)), n, 1, variance)
    assert_allclose(single, np.eye(3) / variance, atol=0.03)


def test_quadrature_refuses_three_features():
    with pytest.raises(ValueError, match="got 3"):
        ref.fisher_matrix_quadrature(np.zeros((2, 3)))


@pytest.mark.parametrize("d", [1, 2])
def test_kl_of_two_gaussians(d):
    p, q, variance = np.full((1, d), -1.0), np.full((1, d), 2.5), 0.3
    expected = d * 3.5**2 / (2 * variance)
    assert ref.kl_divergence_quadrature(p, q, variance) == pytest.approx(expected, rel=1e-12)
    assert ref.kl_divergence_quadrature(np.repeat(p, 3, 0), q, variance) == pytest.approx(expected, rel=1e-12)
    assert ref.kl_divergence_quadrature(p, p, variance) == 0


@pytest.mark.parametrize("q", [[[0.5], [3.0]], [[-4.0], [4.0]], [[-30.0], [30.0], [7.0]], [[-60.0], [61.0]]])
def test_kl_of_mixtures_is_scipys_integral_in_that_order(q):
    p, q = np.array([[0.0], [1.5]]), np.array(q)

    def log_density(means, x):
        return special.logsumexp(stats.norm.logpdf(x, means.ravel())) - math.log(len(means))

    def kl(a, b):
        def integrand(x):
            return math.exp(log_density(a, x)) * (log_density(a, x) - log_density(b, x))

        cuts = np.unique(np.concatenate([a.ravel(), b.ravel(), [0.5, -11.5, 18.5]]))
        low, high = a.min() - 12, a.max() + 12
        cuts = cuts[(cuts > low) & (cuts < high)]
        return integrate.quad(integrand, low, high, points=cuts, epsabs=1e-11, epsrel=1e-11, limit=500)[0]

    assert ref.kl_divergence_quadrature(p, q) == pytest.approx(kl(p, q), rel=1e-9, abs=1e-9)
    assert ref.kl_divergence_quadrature(q, p) == pytest.approx(kl(q, p), rel=1e-9, abs=1e-9)
    assert abs(kl(p, q) - kl(q, p)) > 1e-3


def test_kl_expansion_is_cubic_with_the_exact_fisher_matrix(rng):
    """Lemma 4.2: the error of the second-order term falls eightfold when the step is halved."""
    anchors, direction = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    fisher = ref.fisher_matrix_quadrature(anchors)
    errors = []
    for step in (0.1, 0.05, 0.025):
        theta = anchors + step * direction
        exact = ref.kl_divergence_quadrature(anchors, theta)
        errors.append(abs(exact - ref.kl_expansion(theta, anchors, fisher)))
    slopes = np.diff(np.log(errors)) / math.log(0.5)
    assert (slopes > 2.7).all()


# ----------------------------------------------------------------------------------------- the bound


def test_log_likelihood_is_scikit_learns(sample, rng):
    points, anchors, variance = sample
    model = one_sklearn_step(points, anchors, variance)
    model.means_, model.weights_ = anchors, np.full(4, 0.25)
    model.precisions_cholesky_ = np.full(4, variance**-0.5)
    weights = rng.uniform(size=30)
    expected = weights @ model.score_samples(points)
    assert ref.log_likelihood(points, weights, anchors, variance) == pytest.approx(expected, rel=1e-12)


def test_bound_plus_posterior_kl_is_the_likelihood(sample, rng):
    points, theta0, variance = sample
    theta, weights = rng.normal(size=(4, 3)), rng.uniform(size=30)
    gap = sum(a * ref.posterior_kl(x, theta0, theta, variance) for x, a in zip(points, weights, strict=True))
    bound = ref.em_lower_bound(points, weights, theta, theta0, variance)
    assert gap > 0
    assert bound + gap == pytest.approx(ref.log_likelihood(points, weights, theta, variance), rel=1e-12)
    alpha = ref.responsibilities(points[:1], theta0, variance)[0]
    beta = ref.responsibilities(points[:1], theta, variance)[0]
    assert ref.posterior_kl(points[0], theta0, theta, variance) == pytest.approx(stats.entropy(alpha, beta))
    tight = ref.em_lower_bound(points, weights, theta, theta, variance)
    assert tight == pytest.approx(ref.log_likelihood(points, weights, theta, variance), rel=1e-12)


def test_likelihood_never_falls(sample):
    points, anchors, variance = sample
    values = [
        ref.log_likelihood(
            points,
            np.ones(30),
            ref.em_means(points, as_set(30), anchors, variance, n_iter=n)[0][0],
            variance,
        )
        for n in range(6)
    ]
    assert (np.diff(values) > 0).all()


# ------------------------------------------------------------------------------ around the equations


def test_symmetric_weights():
    adjacency = np.array([[1.0, 1, 0, 0], [1, 1, 2, 0], [0, 2, 1, 0], [0, 0, 0, 0]])
    root = np.diag([2**-0.5, 4**-0.5, 3**-0.5, 0.0])
    assert_allclose(ref.symmetric_weights(adjacency), root @ adjacency @ root, rtol=1e-15)
    assert np.linalg.eigvalsh(ref.symmetric_weights(adjacency))[-1] == pytest.approx(1.0)


def test_nystrom_is_exact_on_rays_through_the_landmarks(rng):
    landmarks = rng.normal(size=(5, 3))
    landmarks /= np.linalg.norm(landmarks, axis=1, keepdims=True)
    x = np.concatenate([landmarks * [[1.0], [2], [0.5], [3], [1]], np.zeros((1, 3)), rng.normal(size=(4, 3))])
    psi = ref.nystrom(x, landmarks, 0.7)
    gram = np.array([[ref.exponential_kernel(a, b, 0.7) for b in x] for a in x])
    assert_allclose(psi[:6] @ psi.T, gram[:6], atol=1e-10)
    assert_array_equal(psi[5], 0)
    assert (np.sum(psi**2, axis=1) <= np.diag(gram) + 1e-10).all()


def test_nystrom_with_a_landmark_twice(rng):
    landmarks = rng.normal(size=(4, 3))
    landmarks /= np.linalg.norm(landmarks, axis=1, keepdims=True)
    x = rng.normal(size=(6, 3))
    once, twice = ref.nystrom(x, landmarks), ref.nystrom(x, landmarks[[0, 1, 2, 3, 3]])
    assert_allclose(twice @ twice.T, once @ once.T, atol=1e-8)


def test_exponential_kernel_is_homogeneous_and_positive(rng):
    x = rng.normal(size=(8, 3))
    gram = np.array([[ref.exponential_kernel(a, b) for b in x] for a in x])
    assert_allclose(np.diag(gram), np.sum(x**2, axis=1), rtol=1e-13)
    assert np.linalg.eigvalsh(gram)[0] > 0
    assert ref.exponential_kernel(3 * x[0], x[1]) == pytest.approx(3 * gram[0, 1])
    assert ref.exponential_kernel(np.zeros(3), x[0]) == 0
    cosine = x[0] @ x[1] / np.linalg.norm(x[0]) / np.linalg.norm(x[1])
    expected = np.linalg.norm(x[0]) * np.linalg.norm(x[1]) * math.exp(4 * (cosine - 1))
    assert ref.exponential_kernel(x[0], x[1], 0.5) == pytest.approx(expected)


def test_wl_colours():
    path = [[1], [0, 2], [1, 3], [2, 4], [3]]
    assert_array_equal(ref.wl_colours(path, [5] * 5, 0), [0] * 5)
    assert_array_equal(ref.wl_colours(path, [5] * 5, 1), [0, 1, 1, 1, 0])
    assert len(set(ref.wl_colours(path, [5] * 5, 2))) == 3
    assert_array_equal(ref.wl_colours([[], []], [3, 8], 2), [0, 1])  # no neighbours, still its own colour
    # A hexagon and two triangles: the pair that WL famously cannot tell apart.
    regular = [
        [1, 5],
        [0, 2],
        [1, 3],
        [2, 4],
        [3, 5],
        [4, 0],
        [7, 8],
        [6, 8],
        [6, 7],
        [10, 11],
        [9, 11],
        [9, 10],
    ]
    assert set(ref.wl_colours(regular, [0] * 12, 5)) == {0}
    assert len(set(ref.wl_colours(regular, [1] + [0] * 11, 3))) > 2


def test_wl_colours_do_not_depend_on_the_node_order(rng):
    n = 12
    upper = np.triu(rng.random((n, n)) < 0.3, 1)
    adjacency, labels = upper | upper.T, rng.integers(2, size=n)
    order = rng.permutation(n)
    shuffled = adjacency[np.ix_(order, order)]
    plain = ref.wl_colours([np.flatnonzero(row) for row in adjacency], labels, 3)
    permuted = ref.wl_colours([np.flatnonzero(row) for row in shuffled], labels[order], 3)
    assert_array_equal(permuted, plain[order])


def test_kmeans_objective(sample):
    points, anchors, _ = sample
    expected = (euclidean_distances(points, anchors) ** 2).min(1).sum()
    assert ref.kmeans_objective(points, anchors) == pytest.approx(expected)
    assert ref.kmeans_objective(points, points) == 0
