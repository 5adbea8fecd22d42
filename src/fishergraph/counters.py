"""Counter-based random numbers: SplitMix64 (Steele, Lea and Flood 2014).

The numbers of a row depend only on a key and on the row, not on threads or on the order of rows. No state is shared.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled_exactly as compiled

# The step of the counter and the constants of the mixing function.
STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


@compiled
def mix(state):
    """The output function of SplitMix64: adjacent states give unrelated numbers."""
    state = (state ^ (state >> _30)) * _FIRST
    state = (state ^ (state >> _27)) * _SECOND
    return state ^ (state >> _31)


@compiled
def row_state(key, row):
    """The first state of the counter of a row; every draw adds STEP to it."""
    return mix(key ^ mix(np.uint64(row) + STEP))


@compiled
def below(state, bound):
    """A uniform integer in [0, bound), from 53 bits: the bias is at most bound / 2^53."""
    return np.int64(np.float64(np.int64(mix(state) >> _11)) * (bound * 2.0**-53))


@compiled
def uniform(state):
    """A uniform number in [0, 1), of 53 bits."""
    return np.float64(np.int64(mix(state) >> _11)) * 2.0**-53
