"""The mixture of heads: greedy selection against a slow version, what few rows can do, and the guarantee."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fishergraph.probes.calibrate import log_loss
from fishergraph.probes.mixture import at_least_as_accurate, bagged_weights, blend, greedy_weights


def candidates(n_candidates, n_rows, seed=0, n_classes=3):
    """Class numbers, and candidates of different quality, some of them almost alike."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n_rows)
    probas = []
    for k in range(n_candidates):
        logits = (0.5 + k % 3) * np.eye(n_classes)[codes] + rng.normal(size=(n_rows, n_classes))
        probas.append(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    return probas, codes


def true_class(probas, codes):
    return np.array([P[np.arange(len(codes)), codes] for P in probas])


def slow_selection(true, n_additions):
    """Every multiset of candidates that selection passes, by loops; the one with the least loss."""
    chosen, passed = [], []
    for _ in range(n_additions):
        losses = []
        for k in range(len(true)):
            members = [true[j] for j in [*chosen, k]]
            losses.append(
                -sum(np.log(sum(column) / len(members)) for column in zip(*members, strict=True)) / len(true[0])
            )
        chosen.append(int(np.argmin(losses)))
        passed.append((min(losses), list(chosen)))
    best = min(passed, key=lambda entry: entry[0])[1]
    return np.array([best.count(k) / len(best) for k in range(len(true))])


@pytest.mark.parametrize("seed", range(5))
def test_greedy_selection_is_the_slow_one(seed):
    probas, codes = candidates(7, 30, seed)
    true = true_class(probas, codes)
    assert_allclose(greedy_weights(true, 9), slow_selection(true, 9))


def test_bags_are_the_mean_over_halves():
    true = true_class(*candidates(6, 20))
    rng = np.random.default_rng(3)
    slow = np.zeros(6)
    for _ in range(4):
        half = sorted(rng.permutation(6)[:3])
        for k, weight in zip(half, slow_selection(true[half], 15), strict=True):
            slow[k] += weight / 4
    assert_allclose(bagged_weights(true, np.random.default_rng(3), n_bags=4), slow)


def test_a_mixture_of_different_errors_is_better_than_each():
    probas, codes = candidates(9, 400)
    mixed = blend(probas, codes, np.random.default_rng(0))
    P = mixed.proba(probas)
    assert_allclose(P.sum(axis=1), 1)
    assert mixed.weights.sum() == pytest.approx(1)
    assert mixed.loss == pytest.approx(log_loss(P, codes))
    assert mixed.accuracy == np.mean(P.argmax(axis=1) == codes)
    assert mixed.loss < 0.9 * min(log_loss(Q, codes) for Q in probas)
    assert_allclose(mixed.of_used().proba([probas[k] for k in mixed.used]), P)


def test_bags_lose_less_to_a_candidate_that_was_lucky_on_few_rows():
    """Sixty candidates of the same quality: ten rows choose among them, two thousand others judge."""
    losses = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = rng.integers(3, size=2010)
        logits = np.eye(3)[codes] + 1.5 * rng.normal(size=(60, 2010, 3))
        true = true_class(list(np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)), codes)
        weights = greedy_weights(true[:, :10]), bagged_weights(true[:, :10], rng)
        losses.append([-np.log(w @ true[:, 10:]).mean() for w in weights])
    single, bags = np.mean(losses, axis=0)
    assert bags < single - 0.02


@pytest.mark.parametrize("n_rows", [3, 10, 100])
@pytest.mark.parametrize("seed", range(8))
def test_never_less_accurate_than_the_first(n_rows, seed):
    probas, codes = candidates(8, n_rows, seed)
    first = probas[2] if seed % 2 else probas[0]
    mixed = blend([first, *probas], codes, np.random.default_rng(seed))
    assert mixed.accuracy >= np.mean(first.argmax(axis=1) == codes)


def test_as_much_of_the_first_as_is_needed():
    """The second is certain and wrong in one row, the first less certain and right."""
    codes = np.array([0, 0, 1])
    first = np.array([[0.6, 0.4], [0.6, 0.4], [0.4, 0.6]])
    second = np.array([[0.9, 0.1], [0.3, 0.7], [0.1, 0.9]])
    assert_allclose(at_least_as_accurate(np.array([0.0, 1.0]), [first, second], codes), [0.75, 0.25])
    third = np.array([[0.8, 0.2], [0.55, 0.45], [0.2, 0.8]])  # as accurate as the first, and more certain
    towards_third = at_least_as_accurate(np.array([0.0, 1.0, 0.0]), [first, second, third], codes)
    assert towards_third[0] == 0 < towards_third[2]
    hopeless = np.array([[0.9, 0.1], [0.01, 0.99], [0.1, 0.9]])
    assert_allclose(at_least_as_accurate(np.array([0.0, 1.0]), [first, hopeless], codes), [1, 0])
    assert_allclose(at_least_as_accurate(np.array([0.0, 1.0]), [second, first], codes), [0, 1])


def test_without_bags_a_worse_version_of_the_best_has_no_weight():
    """Bags of half of the candidates would miss the best of three in every third bag."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=500)
    logits = np.eye(3)[codes] + 0.5 * rng.normal(size=(500, 3))
    versions = [np.exp(scale * logits) / np.exp(scale * logits).sum(axis=1, keepdims=True) for scale in (2.0, 0.0)]
    versions.append(versions[0] / 2 + np.roll(versions[0], 1, axis=0) / 2)
    assert_allclose(bagged_weights(true_class(versions, codes), None), [1, 0, 0])
    assert_allclose(blend(versions, codes).weights, [1, 0, 0])
    assert bagged_weights(true_class(versions, codes), np.random.default_rng(0))[0] < 0.9


def test_rows_of_a_class_that_nobody_knows():
    probas, codes = candidates(4, 30)
    more = [np.vstack([P, np.full((5, 3), 1 / 3)]) for P in probas]
    known = blend(probas, codes, np.random.default_rng(0))
    mixed = blend(more, np.append(codes, [-1] * 5), np.random.default_rng(0))
    assert_allclose(mixed.weights, known.weights)
    assert mixed.accuracy == pytest.approx(known.accuracy * 30 / 35)
    none = blend(probas, np.full(30, -1), np.random.default_rng(0))
    assert_allclose(none.weights, [1, 0, 0, 0])
    assert none.accuracy == 0
