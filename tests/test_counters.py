"""The counted random numbers against the published generator."""

import numpy as np

from fishergraph.counters import STEP, below, mix, row_state, uniform

# The first outputs of SplitMix64 with the seed 1234567.
PUBLISHED = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)


def states(seed, n):
    with np.errstate(over="ignore"):
        return np.uint64(seed) + STEP * np.arange(1, n + 1, dtype=np.uint64)


def test_the_numbers_are_those_of_splitmix64():
    assert [int(mix(state)) for state in states(1234567, len(PUBLISHED))] == list(PUBLISHED)


def test_draws_are_the_top_53_bits():
    for state, number in zip(states(1234567, len(PUBLISHED)), PUBLISHED, strict=True):
        assert uniform(state) == (number >> 11) / 2**53
        assert below(state, 1000) == int((number >> 11) / 2**53 * 1000)


def test_every_row_has_a_counter_of_its_own():
    first = [int(row_state(np.uint64(3), row)) for row in range(1000)]
    assert len(set(first)) == 1000
    assert first != [int(row_state(np.uint64(4), row)) for row in range(1000)]
