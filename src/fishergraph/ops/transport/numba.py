"""The transport E-steps of one multiset, compiled and in place (see `rules`).

Bytes per sweep: the logs of one multiset (4·n·p), which stay in the cache; an exponential per entry. The p × p network
is built in the same sweep and held, as are all sums, in float64.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, inner
from fishergraph.ops.transport.rules import FAR, GAP, GROWTH, NONE

# Rows of the scratch behind the p × p conductances.
_MASS, _TARGET, _POTENTIAL, _SHIFT, _PLAIN, _LEAK, _ROW = range(7)


def scratch(n_anchors: int) -> np.ndarray:
    """The scratch of one thread for any number of multisets, (anchor + 7, anchor)."""
    return np.empty((n_anchors + 7, n_anchors), np.float64)


@inner
def _add_member(weight, alpha, mass, network):
    """mass_j += b α_j and network_jk += b α_j α_k for k < j, of one member with the mixture weight b."""
    for j in range(len(mass)):
        product = weight * alpha[j]
        mass[j] += product
        for k in range(j):
            network[j, k] += product * alpha[k]


@inner
def _sweep(logs, weights, step, start, n_members, scale, total, network):
    """log α_ij ← log softmax_j(scale · (log α_ij + shift_j)); then the mass and the network of the new α."""
    p = logs.shape[1]
    mass, shift, row = network[p + _MASS], network[p + _SHIFT], network[p + _ROW]
    for j in range(p):
        mass[j] = 0
        for k in range(j):
            network[j, k] = 0
    for i in range(n_members):
        line = logs[i]
        highest = -np.inf
        for j in range(p):
            row[j] = scale * (line[j] + shift[j])
            highest = max(highest, row[j])
        norm = 0.0
        for j in range(p):
            line[j] = row[j] - highest
            row[j] = np.exp(line[j])
            norm += row[j]
        log_norm, inverse = np.log(norm), 1 / norm
        for j in range(p):
            line[j] -= log_norm
            row[j] *= inverse
        weight = weights[(start + i) * step] / total
        if weight > 0:
            _add_member(weight, row, mass, network)


@inner
def _solve(network, currents, fallback, least):
    """currents ← y with Σ_k W_jk (y_j − y_k) + leak_j y_j = current_j: an electrical network, node by node.

    Eliminating a node spreads its conductances over its neighbours (star–mesh): without a subtraction, so y has all its
    digits even if every conductance is tiny. A node without conductance takes its fallback.
    """
    p = len(currents)
    leak, pivot = network[p + _LEAK], network[p + _ROW]
    for k in range(p - 1, -1, -1):
        pivot[k] = leak[k]
        for j in range(k):
            pivot[k] += network[k, j]
        if pivot[k] > least:
            for j in range(k):
                factor = network[k, j] / pivot[k]
                currents[j] += factor * currents[k]
                leak[j] += factor * leak[k]
                for i in range(j):
                    network[j, i] += factor * network[k, i]
    for k in range(p):
        if pivot[k] > least:
            for j in range(k):
                currents[k] += network[k, j] * currents[j]
            currents[k] /= pivot[k]
        else:
            currents[k] = fallback[k]


@inner
def _set_target(slack, least, network):
    """target_j = softmax_j(−slack · g_j) of the potentials g; returns the violation (`default_tolerance`)."""
    p = network.shape[1]
    mass, target, potential = network[p + _MASS], network[p + _TARGET], network[p + _POTENTIAL]
    highest, norm, violation = -np.inf, 0.0, 0.0
    for j in range(p):
        highest = max(highest, -slack * potential[j])
    for j in range(p):
        target[j] = np.exp(-slack * potential[j] - highest)
        norm += target[j]
    for j in range(p):
        target[j] /= norm
        goal, reached = max(target[j], least), max(mass[j], least)
        violation = max(violation, abs(reached - goal) / (goal * (1 + max(0.0, -np.log(p * goal)))))
    return violation


@inner
def _newton_shift(slack, least, network):
    """shift_j: Sinkhorn's step and the damped rest of Newton's; returns whether both were small."""
    p = network.shape[1]
    mass, target, shift = network[p + _MASS], network[p + _TARGET], network[p + _SHIFT]
    plain, leak = network[p + _PLAIN], network[p + _LEAK]
    mean, furthest = 0.0, 0.0
    for j in range(p):
        plain[j] = np.log(max(target[j], least)) - np.log(max(mass[j], least))
        mean += mass[j] * plain[j]
        furthest = max(furthest, abs(plain[j]))
    for j in range(p):
        # Far from the solution Newton uses the logs of the marginals, close to it the marginals.
        shift[j] = mass[j] * (plain[j] - mean) if furthest > FAR else target[j] - mass[j]
        leak[j] = slack * mass[j]
        plain[j] = (plain[j] - mean) / (1 + slack)
    _solve(network, shift, plain, NONE * least)
    lowest, highest = np.inf, -np.inf
    for j in range(p):
        shift[j] -= plain[j]
        lowest, highest = min(lowest, shift[j]), max(highest, shift[j])
    reach = highest - lowest
    damping = np.log1p(reach) / reach if 0 < reach < np.inf else 0.0
    for j in range(p):
        shift[j] = plain[j] + damping * shift[j] if damping > 0 else plain[j]
    return max(furthest, reach) <= FAR


@inner
def _first_stage(logs, weights, step, start, n_members):
    """The power of `GROWTH` that divides the scores at first: no two scores of a member differ by more than `GAP`."""
    reach = 0.0
    for i in range(n_members):
        if weights[(start + i) * step] > 0:
            reach = max(reach, np.float64(logs[i].max()) - np.float64(logs[i].min()))
    stage = 1.0
    while reach > GAP * stage:
        stage *= GROWTH
    return stage


@compiled
def transport_row(logs, weights, step, start, n_members, slack, tolerance, max_iter, network):
    """Turn the scores of one multiset into the log-responsibilities of its transport E-step, in place.

    logs (n_members or more, anchor) hold s_ij, then log α_ij. slack is 1/τ: 0 is balanced. weights[(start + i) · step]
    is the weight of member i, network the `scratch`. Returns the number of sweeps and the remaining violation, zero if
    it converged.
    """
    p = logs.shape[1]
    total = 0.0
    for i in range(n_members):
        total += weights[(start + i) * step]
    for j in range(p):
        network[p + _POTENTIAL, j] = network[p + _SHIFT, j] = 0
    if not total > 0 or slack == np.inf:  # no weight, or no constraint on the marginal: the posterior
        _sweep(logs, weights, step, start, n_members, 1.0, 1.0, network)
        return 0, 0.0
    stage = _first_stage(logs, weights, step, start, n_members)
    potential, shift, least = network[p + _POTENTIAL], network[p + _SHIFT], np.finfo(logs.dtype).tiny
    _sweep(logs, weights, step, start, n_members, 1 / stage, total, network)
    for sweep in range(max_iter):
        violation = _set_target(slack * stage, NONE * least, network)
        if violation <= tolerance and stage == 1:
            return sweep, 0.0
        close = _newton_shift(slack * stage, least, network) or violation <= tolerance
        grow = GROWTH if close and stage > 1 else 1.0
        stage /= grow
        for j in range(p):
            potential[j] = grow * (potential[j] + shift[j])
        _sweep(logs, weights, step, start, n_members, grow, total, network)
    violation = _set_target(slack * stage, NONE * least, network)
    return max_iter, 0.0 if violation <= tolerance and stage == 1 else violation
