"""Every family against independent densities, integrals and libraries: one set of tests for all of them."""

import copy
import math

import numpy as np
import pytest
from array_api_compat import array_namespace
from numpy.testing import assert_allclose
from scipy import stats

from family_examples import MIXED, SINGLE
from fishergraph import FisherEmbedding
from fishergraph._errors import InputError
from fishergraph.em.learn import em_step, learn_family
from fishergraph.family import FAMILIES, choose_family, exact_root, fisher_ratio, retract
from fishergraph.family.base import map_arrays, repeated, split

EXAMPLES = pytest.mark.parametrize("example", [*SINGLE, *MIXED], ids=lambda e: f"{e.name}-{len(e.theta[0])}")
MIXTURES = pytest.mark.parametrize("example", MIXED, ids=lambda e: e.name)
SINGLES = pytest.mark.parametrize("example", SINGLE, ids=lambda e: e.name)


def batch(theta, n=1):
    """θ as the estimates of n sets."""
    return type(theta)(
        *(
            np.broadcast_to(part, (n, *part.shape)) if isinstance(part, np.ndarray) and name != "origin" else part
            for name, part in zip(theta._fields, theta, strict=True)
        )
    )


def first(theta):
    """The first of several θ."""
    return type(theta)(
        *(
            part[0] if isinstance(part, np.ndarray) and name != "origin" else part
            for name, part in zip(theta._fields, theta, strict=True)
        )
    )


def numbers(theta):
    """The parts of θ that are there."""
    return [part for part in theta if part is not None]


def width(example):
    return example.family.whitened(batch(example.theta), example.theta).shape[1]


def step(example, direction, size):
    return first(retract(example.family, size * direction[None, :], example.theta))


def tangent_basis(example):
    """The directions of φ that keep weights, and probabilities, summing to one, (direction, width)."""
    theta, normals, n = example.theta, [], width(example)
    if hasattr(theta, "log_weights"):
        p = len(theta.log_weights)
        normal = np.zeros(n)
        normal[:p] = np.exp(0.5 * theta.log_weights)
        normals.append(normal)
        if hasattr(theta, "probabilities"):
            d = theta.probabilities.shape[1]
            for j in range(p):
                normal = np.zeros(n)
                normal[p + j * d : p + (j + 1) * d] = np.sqrt(theta.probabilities[j])
                normals.append(normal)
    if not normals:
        return np.eye(n)
    _, _, rows = np.linalg.svd(np.array(normals), full_matrices=True)
    return rows[len(normals) :]


def integrated_fisher(example, log_density, size=1e-4):
    """∫ p ∇log p ∇log pᵀ along the tangent directions of φ, by finite differences of another library's density."""
    points, weights = example.rule()
    basis = tangent_basis(example)
    gradients = np.stack(
        [
            (log_density(points, step(example, row, size)) - log_density(points, step(example, row, -size)))
            / (2 * size)
            for row in basis
        ],
        axis=1,
    )
    chances = weights * np.exp(example.log_density(points, example.theta))
    return basis, (gradients * chances[:, None]).T @ gradients


@EXAMPLES
def test_densities_are_those_of_scipy_and_integrate_to_one(example):
    points, weights = example.rule()
    picked = points[:: max(1, len(points) // 500)]
    assert_allclose(
        example.family.log_joint(picked, example.theta), example.log_joint(picked, example.theta), atol=1e-9
    )
    assert_allclose(weights @ np.exp(example.family.log_likelihood(points, example.theta)), 1, atol=1e-8)


@EXAMPLES
def test_mean_statistics_are_the_integrals(example):
    family, theta = example.family, example.theta
    points, weights = example.rule()
    joint = np.exp(example.log_joint(points, theta)) * weights[:, None]  # (point, anchor)
    found = joint.T @ family.statistics(points, theta) / joint.sum(axis=0)[:, None]
    assert_allclose(family.mean_statistics(theta), found, atol=1e-8)


@EXAMPLES
def test_the_estimate_of_its_own_mean_statistics_is_theta(example):
    family, theta = example.family, example.theta
    weights = np.exp(theta.log_weights) if hasattr(theta, "log_weights") else np.full(len(theta[0]), 1 / len(theta[0]))
    found = family.estimate(family.mean_statistics(theta)[None], 5 * weights[None], theta)
    for part, expected in zip(numbers(first(found)), numbers(theta), strict=True):
        assert_allclose(part, expected, atol=1e-12)
    assert_allclose(family.whitened(found, theta), 0, atol=1e-12)
    assert_allclose(family.score(family.mean_statistics(theta)[None], 5 * weights[None], theta), 0, atol=1e-12)


@SINGLES
def test_the_fisher_matrix_of_one_component_is_the_integrated_one(example):
    """In the coordinates φ the Fisher matrix is the identity, on the tangent space."""
    _, fisher = integrated_fisher(example, example.log_density)
    assert_allclose(fisher, np.eye(len(fisher)), atol=2e-6)


@MIXTURES
def test_the_approximate_fisher_matrix_is_that_of_the_point_and_its_component(example):
    """∫ Σ_j p(x, j) ∇log p(x, j) ∇log p(x, j)ᵀ is the identity in the coordinates φ."""
    points, weights = example.rule()
    basis, size, total = tangent_basis(example), 1e-4, 0.0
    joint = np.exp(example.log_joint(points, example.theta)) * weights[:, None]
    ahead = [example.log_joint(points, step(example, row, size)) for row in basis]
    behind = [example.log_joint(points, step(example, row, -size)) for row in basis]
    for j in range(joint.shape[1]):
        gradients = np.stack([(a[:, j] - b[:, j]) / (2 * size) for a, b in zip(ahead, behind, strict=True)], axis=1)
        total = total + (gradients * joint[:, j, None]).T @ gradients
    units = example.theta.variance if example.name == "gaussian-mixture" else 1.0
    assert_allclose(units * total, np.eye(len(basis)), atol=5e-6)


@MIXTURES
def test_the_exact_fisher_matrix_is_the_integrated_one(example):
    basis, fisher = integrated_fisher(example, example.log_density)
    if example.name == "gaussian-mixture":  # which is measured in units of σ
        fisher = fisher * example.theta.variance
    exact = fisher_ratio(example.family, example.theta, np.random.default_rng(0), n_samples=400_000)
    by_quadrature = example.name == "gaussian-mixture"  # three anchors span a plane
    assert_allclose(basis @ exact @ basis.T, fisher, atol=1e-6 if by_quadrature else 0.02)
    root = exact_root(example.family, example.theta, np.random.default_rng(0))
    assert_allclose(root, root.T, atol=1e-12)
    assert_allclose(basis @ root @ root @ basis.T, fisher, atol=1e-6 if by_quadrature else 0.05)


def test_the_exact_matrix_by_sampling_is_that_by_quadrature():
    """Four anchors in general position span three dimensions; in a plane they are integrated."""
    family = FAMILIES["gaussian-mixture"]()
    flat = np.random.default_rng(1).normal(size=(4, 2))
    theta = family.theta(np.concatenate([flat, np.zeros((4, 3))], axis=1), 0.8)
    lifted = family.theta(np.concatenate([flat, 1e-9 * np.eye(4)[:, :3]], axis=1), 0.8)
    exact, sampled = (fisher_ratio(family, t, np.random.default_rng(0), n_samples=400_000) for t in (theta, lifted))
    assert_allclose(sampled, exact, atol=0.02)


def test_directions_on_a_line_are_two_signs():
    family = FAMILIES["von-mises-fisher"]()
    theta = family.theta(np.log([0.3, 0.7]), np.array([[0.6], [-0.2]]))
    points = family.sample(theta, 200_000, np.random.default_rng(0))
    assert set(points.ravel()) == {-1.0, 1.0}
    assert_allclose(points.mean(), 0.3 * 0.6 - 0.7 * 0.2, atol=0.01)
    # E[s sᵀ] of the whitened scores s, which are ((α − π)/√π ‖ α (x − m)/√(π (1 − m²))), over the two points.
    expected = np.zeros((4, 4))
    pi, m = np.array([0.3, 0.7]), np.array([0.6, -0.2])
    for x in (-1.0, 1.0):
        joint = pi * (1 + x * m) / 2
        alpha = joint / joint.sum()
        s = np.concatenate([(alpha - pi) / np.sqrt(pi), alpha * (x - m) / np.sqrt(pi * (1 - m**2))])
        expected += joint.sum() * np.outer(s, s)
    found = fisher_ratio(family, theta, np.random.default_rng(0), n_samples=400_000)
    assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize("trials", [0.4, 1.35, 2.0])
def test_the_exact_fisher_matrix_of_counts_whose_mean_number_is_no_integer(trials):
    """Points have ⌊n̄⌋ or ⌈n̄⌉ counts, n̄ on average; E[s sᵀ] by adding up all of them."""
    family, pi, q = FAMILIES["multinomial"](), np.array([0.3, 0.7]), np.array([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]])
    expected, low = np.zeros((8, 8)), math.floor(trials)
    for n, chance in ((low, low + 1 - trials), (low + 1, trials - low)):
        for x in (np.array([a, b, n - a - b]) for a in range(n + 1) for b in range(n - a + 1)):
            joint = pi * [stats.multinomial(n, row).pmf(x) for row in q]
            alpha = joint / joint.sum()
            scores = alpha[:, None] * (x - n * q) / np.sqrt(trials * pi[:, None] * q)
            s = np.concatenate([(alpha - pi) / np.sqrt(pi), scores.ravel()])
            expected += chance * joint.sum() * np.outer(s, s)
    theta = family.theta(np.log(pi), q, trials)
    found = fisher_ratio(family, theta, np.random.default_rng(0), n_samples=400_000)
    assert_allclose(found, expected, atol=0.01)


def test_more_counts_than_an_integer_holds_can_be_drawn():
    family = FAMILIES["multinomial"]()
    theta = family.theta(np.zeros(1), np.array([[0.25, 0.75]]), 1e30)
    points = family.sample(theta, 100, np.random.default_rng(0))
    assert_allclose(points / points.sum(axis=1, keepdims=True), [[0.25, 0.75]] * 100, atol=1e-6)


@MIXTURES
def test_far_components_have_the_approximate_fisher_matrix(example):
    theta = example.theta
    if example.name == "von-mises-fisher":
        theta = theta._replace(means=0.995 * np.array([[1.0, 0, 0], [-1.0, 0, 0]]))
    elif example.name == "multinomial":
        theta = theta._replace(probabilities=np.array([[0.98, 0.01, 0.01], [0.01, 0.01, 0.98]]), trials=40.0)
    else:
        name = "anchors" if example.name == "gaussian-mixture" else "means"
        theta = theta._replace(**{name: 20 * getattr(theta, name)})
    ratio = fisher_ratio(example.family, theta, np.random.default_rng(0), n_samples=800_000)
    other = copy.copy(example)
    object.__setattr__(other, "theta", theta)
    basis = tangent_basis(other)
    assert_allclose(basis @ ratio @ basis.T, np.eye(len(basis)), atol=0.03)


@EXAMPLES
def test_the_score_is_the_gradient_of_the_likelihood(example):
    check_score(example, example.family.sample(example.theta, 40, np.random.default_rng(3)))


def test_the_score_of_counts_with_differing_totals():
    """The gradient of a point's likelihood has its own number of counts in it, not the mean one."""
    example = next(example for example in MIXED if example.name == "multinomial")
    points = example.family.sample(example.theta, 40, np.random.default_rng(3))
    points[::2] *= 3
    assert len(set(points.sum(axis=1))) == 2
    score = check_score(example, points)
    # Probabilities keep their sum: in the coordinates 2 √q the gradient is a tangent of the sphere.
    roots = np.sqrt(example.theta.probabilities)
    _, chords = split(score[None], len(roots), 1, roots.shape[1])
    assert_allclose(np.sum(chords * roots, axis=-1), 0, atol=1e-12)


def check_score(example, points):
    """I^{-1/2} ∇ of the mean log-likelihood, by finite differences along φ."""
    family, theta = example.family, example.theta
    weights = np.random.default_rng(4).uniform(0.5, 2, size=len(points))
    joint = family.log_joint(points, theta)
    alpha = weights[:, None] * np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    mass = alpha.sum(axis=0)
    means = (alpha.T @ family.statistics(points, theta)) / mass[:, None]
    score = family.score(means[None], mass[None], theta)[0]

    def likelihood(other):
        return weights @ example.log_density(points, other) / weights.sum()

    for row in tangent_basis(example):
        slope = (likelihood(step(example, row, 1e-5)) - likelihood(step(example, row, -1e-5))) / 2e-5
        units = theta.variance if example.name == "gaussian-mixture" else 1.0
        assert_allclose(row @ score, slope * units, atol=1e-6)
    return score


@EXAMPLES
def test_the_estimate_maximises_the_likelihood_of_one_component(example):
    """The weighted MLE: no direction of the parameters improves Σ a α log p(x, j)."""
    family, theta = example.family, example.theta
    points = family.sample(theta, 60, np.random.default_rng(5))
    p = len(theta[0])
    alpha = np.random.default_rng(6).dirichlet(np.ones(p), size=60)
    mass = alpha.sum(axis=0)
    means = alpha.T @ family.statistics(points, theta) / mass[:, None]
    best = first(family.estimate(means[None], mass[None], theta))

    def objective(other):
        return float((alpha * example.log_joint(points, other)).sum())

    for row in tangent_basis(example):
        for size in (1e-2, -1e-2):
            # a step from the best, in the coordinates of φ at θ
            other = first(retract(family, family.whitened(batch(best), theta) + size * row, theta))
            assert objective(other) <= objective(best) + 1e-9


@EXAMPLES
def test_retract_is_the_way_back(example):
    family, theta = example.family, example.theta
    points = family.sample(theta, 60, np.random.default_rng(7))
    joint = family.log_joint(points, theta)
    alpha = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    mass = alpha.sum(axis=0)
    found = family.estimate((alpha.T @ family.statistics(points, theta) / mass[:, None])[None], mass[None], theta)
    phi = family.whitened(found, theta)
    for part, expected in zip(numbers(retract(family, phi, theta)), numbers(found), strict=True):
        assert_allclose(part, expected, atol=1e-10)
    root = np.linalg.cholesky(np.eye(phi.shape[1]) + 0.1)
    for part, expected in zip(numbers(retract(family, phi @ root.T, theta, root=root)), numbers(found), strict=True):
        assert_allclose(part, expected, atol=1e-8)


@EXAMPLES
def test_a_retracted_vector_is_a_parameter_however_long(example):
    wild = 50 * np.random.default_rng(8).normal(size=(5, width(example)))
    theta = retract(example.family, wild, example.theta)
    points = example.family.sample(example.theta, 20, np.random.default_rng(9))
    for v in range(5):
        one = type(theta)(
            *(
                part[v] if isinstance(part, np.ndarray) and name != "origin" else part
                for name, part in zip(theta._fields, theta, strict=True)
            )
        )
        assert np.isfinite(example.family.log_likelihood(points, one)).all()


@MIXTURES
def test_em_is_monotone(example):
    """The likelihood, with the logarithm of the prior where there is one, never falls."""
    family = example.family
    points = family.sample(example.theta, 400, np.random.default_rng(10))
    smoothing = getattr(family, "smoothing", 0.0)

    def objective(theta):
        prior = smoothing * np.log(theta.probabilities).sum() if smoothing else 0.0
        return float(family.log_likelihood(points, theta).sum() + prior)

    for seed in range(4):
        theta = learn_family(family, points, 3, n_iter=0, rng=seed)
        bounds, values = repeated(family.single(points), len(theta[0])), [objective(theta)]
        for _ in range(25):
            theta = em_step(family, points, theta, bounds)
            values.append(objective(theta))
        assert min(np.diff(values)) > -1e-9 * abs(values[0])
        assert values[-1] > values[0]


@pytest.mark.parametrize("example", MIXED[1:], ids=lambda e: e.name)
def test_learning_finds_the_truth(example):
    """On many points of well separated components, the learned likelihood is at least that of the truth, less noise."""
    family = example.family
    points = family.sample(example.theta, 5000, np.random.default_rng(11))
    theta = learn_family(family, points, len(example.theta[0]), n_iter=100, rng=0)
    learned = family.log_likelihood(points, theta).mean()
    assert learned > family.log_likelihood(points, example.theta).mean() - 0.05


@EXAMPLES
def test_tensors_give_the_same_and_gradients(example):
    torch = pytest.importorskip("torch")
    family, theta = example.family, example.theta
    points = family.sample(theta, 6, np.random.default_rng(12))
    tensors = map_arrays(theta, torch.tensor)
    rows = torch.tensor(points)
    assert_allclose(family.log_joint(rows, tensors).numpy(), family.log_joint(points, theta), atol=1e-10)
    means = np.random.default_rng(13).uniform(0.2, 1, size=(4, *family.mean_statistics(theta).shape))
    means = means * 0.1 + family.mean_statistics(theta)
    mass = np.random.default_rng(14).uniform(1, 2, size=means.shape[:2])
    for tangent in ("estimate", "score"):
        read = FAMILIES[family.name](tangent=tangent)
        expected = read.phi(means, mass, theta)
        assert_allclose(read.phi(torch.tensor(means), torch.tensor(mass), tensors).numpy(), expected, atol=1e-10)
    moments = torch.tensor(means, requires_grad=True)
    masses = torch.tensor(mass, requires_grad=True)
    if example.name != "gaussian":  # whose variances are cut at a bound
        assert torch.autograd.gradcheck(lambda m, a: family.phi(m, a, tensors), (moments, masses), atol=1e-6)


@EXAMPLES
def test_an_empty_set_has_no_tangent_vector(example):
    family, theta = example.family, example.theta
    means, mass = family.mean_statistics(theta)[None], np.zeros((1, len(theta[0])))
    for tangent in ("estimate", "score"):
        assert_allclose(FAMILIES[family.name](tangent=tangent).phi(means, mass, theta), 0, atol=1e-12)


@pytest.mark.parametrize("tangent", ["estimate", "score"])
@EXAMPLES
def test_a_component_that_was_learned_without_mass_is_usable_in_float32(example, tangent):
    """Parameters are learned in float64; float32 cannot divide by the root of float64's smallest weight."""
    family, theta = FAMILIES[example.family.name](tangent=tangent), example.theta
    means = family.mean_statistics(theta)[None]
    mass = np.ones((1, len(theta[0])))
    mass[0, 0] = 0 if mass.shape[1] > 1 else 1
    learned = map_arrays(family.estimate(means, mass, theta, 0.0), lambda part: part[0] if part.ndim > 1 else part)
    single = map_arrays(learned, lambda part: part.astype(np.float32))
    with np.errstate(over="raise", invalid="raise"):
        phi = family.phi(means.astype(np.float32), mass.astype(np.float32), single)
    assert np.isfinite(phi).all()


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e-16), (np.float32, 1e-37), (np.float64, 1e-155)])
@pytest.mark.parametrize("name", ["gaussian", "diagonal-mixture", "gaussian-mixture"])
def test_points_whose_variance_leaves_the_range_of_their_dtype(name, dtype, scale, columns):
    points, family = np.zeros((30, 4), dtype), choose_family(name)
    points[:, :columns] = scale * np.random.default_rng(0).standard_normal((30, columns))
    theta = learn_family(family, points, 3, rng=0)
    statistics = family.statistics(points, theta)
    assert np.isfinite(family.scores(statistics, theta)).all()
    mass = np.ones((len(points), len(family.mean_statistics(theta))), dtype)
    found = family.estimate(statistics[:, None, :] * mass[..., None], mass, theta)
    assert np.isfinite(family.whitened(found, theta)).all()


@EXAMPLES
def test_float32_stays_float32(example):
    family, theta = example.family, map_arrays(example.theta, lambda part: part.astype(np.float32))
    points = family.sample(theta, 5, np.random.default_rng(0)).astype(np.float32)
    assert family.log_joint(points, theta).dtype == np.float32
    means = np.repeat(family.mean_statistics(theta)[None], 2, axis=0)
    assert family.phi(means, np.ones((2, len(theta[0])), np.float32), theta).dtype == np.float32


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("unit", [False, True])
def test_normalisations(power, unit):
    example = MIXED[1]
    family = type(example.family)(tangent="score", power=power, unit=unit)
    points = family.sample(example.theta, 30, np.random.default_rng(2))
    joint = family.log_joint(points, example.theta)
    alpha = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    mass = alpha.sum(axis=0)
    means = (alpha.T @ family.statistics(points, example.theta) / mass[:, None])[None]
    plain = FAMILIES["diagonal-mixture"](tangent="score").phi(means, mass[None], example.theta)
    expected = np.sign(plain) * np.abs(plain) ** power
    expected = expected / np.linalg.norm(expected) if unit else expected
    assert_allclose(family.phi(means, mass[None], example.theta), expected, rtol=1e-12)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(InputError, match="'gaussian-mixture', 'gaussian'"):
        choose_family("cauchy")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("gaussian", "fisher", "full"),
        ("gaussian", "tangent", "log"),
        ("diagonal-mixture", "power", 0.0),
        ("multinomial", "smoothing", 0),
        ("multinomial", "following", FAMILIES["multinomial"]()),
        ("gaussian-mixture", "variance", 0.0),
        ("gaussian-mixture", "sharpness", 1.5),
    ],
)
def test_options_are_validated_when_a_family_is_made(name, option, value):
    with pytest.raises(InputError) as error:
        FAMILIES[name](**{option: value})
    assert error.value.parameter.startswith(option)


def test_data_outside_the_support():
    with pytest.raises(ValueError, match="zeros in row 1"):
        FAMILIES["von-mises-fisher"]().check_points(np.array([[1.0, 0], [0, 0]]))
    with pytest.raises(ValueError, match="row 2"):
        FAMILIES["multinomial"]().check_points(np.array([[1.0, 0], [0, 0], [3, -2]]))
    with pytest.raises(ValueError, match="200"):
        FAMILIES["gaussian"]().check_width(200)
    theta = FAMILIES["gaussian-mixture"].theta(np.zeros((4, 2000)), 1.0)
    with pytest.raises(ValueError, match="exact"):
        fisher_ratio(FAMILIES["gaussian-mixture"](), theta, np.random.default_rng(0))


def test_no_namespace_is_left_behind():
    """Strict arrays, which have nothing but the standard, pass through densities and φ."""
    xp = pytest.importorskip("array_api_strict")
    for example in MIXED:
        family, theta = example.family, map_arrays(example.theta, xp.asarray)
        points = xp.asarray(family.sample(example.theta, 4, np.random.default_rng(0)))
        got = family.log_joint(points, theta)
        assert array_namespace(got) is array_namespace(points)
        assert_allclose(np.asarray(got), family.log_joint(np.asarray(points), example.theta), atol=1e-10)
        means = xp.asarray(np.asarray(family.mean_statistics(example.theta))[None] * 1.01)
        mass = xp.ones((1, len(example.theta[0])), dtype=xp.float64)
        assert math.prod(family.phi(means, mass, theta).shape) == width(example)


@pytest.mark.parametrize("n_anchors", [1, 2])
def test_smoothing_is_the_count_that_every_word_has_beforehand(n_anchors):
    """q_w = (Σ α x_w + s) / (Σ_w Σ α x_w + d s); a parameter without an effect would leave all of these equal."""
    counts = np.array([[4.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 5.0], [0.0, 0.0, 2.0]])
    least = {}
    for smoothing in (0.01, 0.5, 10.0):
        theta = learn_family(FAMILIES["multinomial"](smoothing=smoothing), counts, n_anchors, rng=0)
        least[smoothing] = theta.probabilities[:, 1]  # of the word that nobody has
        if n_anchors == 1:
            totals = counts.sum(axis=0) + smoothing
            np.testing.assert_allclose(theta.probabilities, totals[None] / totals.sum(), rtol=1e-12)
    assert (least[0.01] < least[0.5]).all()
    assert (least[0.5] < least[10.0]).all()


def test_smoothing_reaches_the_embedding():
    X = np.random.default_rng(0).poisson(1.0, size=(20, 4)).astype(float)
    given = {"n_layers": 1, "n_anchors": 2, "dim": 4, "kernel": "identity", "random_state": 0, "n_jobs": 1}
    one, other = (
        FisherEmbedding(family=FAMILIES["multinomial"](smoothing=smoothing), **given).fit_transform(X)
        for smoothing in (0.5, 5.0)
    )
    assert np.abs(one - other).max() > 1e-2
