"""The families in float64 loops, from their formulas: EM of one multiset from θ_0, and φ. Nothing of the package."""

import math

import numpy as np
from scipy import optimize, special

import reference as ref

LEAST = 1e-3  # the bound on variances, in units of θ_0's
LONGEST = 1 - 1e-4  # the bound on the length of a mean direction


def log_joint(name, x, theta):
    """(anchor,): log p(x, z = j) up to a constant of x. θ is a dict of the arrays of the family's record."""
    out = []
    for j in range(len(theta["log_weights"])):
        if name == "diagonal-mixture":
            m, v = theta["means"][j], theta["variances"][j]
            value = sum(-0.5 * (x[k] - m[k]) ** 2 / v[k] - 0.5 * math.log(v[k]) for k in range(len(x)))
        elif name == "von-mises-fisher":
            m, d = theta["means"][j], len(x)
            length = math.sqrt(math.fsum(m * m))
            kappa = concentration(length, d)
            # log C_d(κ) by SciPy's scaled Bessel function, which serves for small d
            log_norm = (d / 2 - 1) * math.log(kappa) - math.log(special.ive(d / 2 - 1, kappa)) - kappa
            value = log_norm + kappa * float(m @ ref.unit(x)) / length
        else:
            q = theta["probabilities"][j]
            value = math.fsum(x[k] * math.log(q[k]) for k in range(len(x)) if x[k] > 0)
        out.append(theta["log_weights"][j] + value)
    return np.array(out)


def concentration(length, d):
    """κ with I_{d/2}(κ)/I_{d/2−1}(κ) = length, by root finding."""

    def gap(kappa):
        return special.ive(d / 2, kappa) / special.ive(d / 2 - 1, kappa) - length

    return optimize.brentq(gap, 1e-10, 1e7, xtol=1e-13)


def m_step(name, points, weights, alpha, theta_0, prior):
    """θ of the weighted members: maximum likelihood, drawn towards θ_0 by κ members of its own per component."""
    p = len(theta_0["log_weights"])
    pi_0 = np.exp(theta_0["log_weights"])
    mass = np.array([math.fsum(weights[i] * alpha[i][j] for i in range(len(points))) for j in range(p)])
    total = mass.sum() + p * prior
    pi = (mass + p * prior * pi_0) / total if total > 0 else pi_0
    theta = {"log_weights": np.log(pi)}
    rows = []
    for j in range(p):

        def mean(values, own, j=j):
            top = prior * own + sum(weights[i] * alpha[i][j] * values[i] for i in range(len(points)))
            return top / (prior + mass[j]) if prior + mass[j] > 0 else own

        if name == "diagonal-mixture":
            m0, v0 = theta_0["means"][j], theta_0["variances"][j]
            first = mean(points, m0)
            second = mean(points**2, m0**2 + v0)
            rows.append((first, np.maximum(second - first**2, LEAST * v0)))
        elif name == "von-mises-fisher":
            found = mean(np.array([ref.unit(x) for x in points]), theta_0["means"][j])
            length = math.sqrt(math.fsum(found * found))
            rows.append(found * min(1.0, LONGEST / length))
        else:
            found = mean(points, theta_0["trials"] * theta_0["probabilities"][j])
            rows.append(found / found.sum() if found.sum() > 0 else theta_0["probabilities"][j])
    if name == "diagonal-mixture":
        theta |= {"means": np.array([row[0] for row in rows]), "variances": np.array([row[1] for row in rows])}
    else:
        theta |= {"means" if name == "von-mises-fisher" else "probabilities": np.array(rows)}
    return theta | {key: theta_0[key] for key in ("trials", "origin") if key in theta_0}


def em(name, points, weights, theta_0, n_iter=1, prior=0.0, column_penalty=None):
    """(θ, mass) of one multiset after EM from θ_0; with a penalty, or ∞, the transport E-step. No iteration: θ_0."""
    theta, mass = theta_0, np.zeros(len(theta_0["log_weights"]))
    for _ in range(n_iter):
        logs = np.array([log_joint(name, x, theta) for x in points]).reshape(len(points), len(mass))
        logs = np.array([row - ref.log_sum_exp(row) for row in logs]).reshape(logs.shape)
        if column_penalty is not None:
            logs = ref.transport(logs, weights, column_penalty)
        alpha = np.exp(logs)
        theta = m_step(name, points, weights, alpha, theta_0, prior)
        mass = np.array([math.fsum(weights[i] * alpha[i][j] for i in range(len(points))) for j in range(len(mass))])
    return theta, mass


def phi(name, theta, theta_0):
    """I(θ_0)^{1/2} (θ − θ_0), the weights first, then block by block."""
    pi, pi_0 = np.exp(theta["log_weights"]), np.exp(theta_0["log_weights"])
    out = [(a - b) / math.sqrt(b) for a, b in zip(pi, pi_0, strict=True)]
    p = len(pi)
    if name == "diagonal-mixture":
        for j in range(p):
            out.extend(
                math.sqrt(pi_0[j]) * (theta["means"][j] - theta_0["means"][j]) / np.sqrt(theta_0["variances"][j])
            )
        for j in range(p):
            out.extend(math.sqrt(pi_0[j] / 2) * (theta["variances"][j] / theta_0["variances"][j] - 1))
    elif name == "von-mises-fisher":
        for j in range(p):
            m = theta_0["means"][j]
            length, d = math.sqrt(math.fsum(m * m)), len(m)
            kappa, u = concentration(length, d), m / length
            slope = 1 - length**2 - (d - 1) * length / kappa
            covariance = slope * np.outer(u, u) + length / kappa * (np.eye(d) - np.outer(u, u))
            out.extend(math.sqrt(pi_0[j]) * ref.inverse_root(covariance) @ (theta["means"][j] - m))
    else:
        for j in range(p):
            root, known = np.sqrt(theta["probabilities"][j]), np.sqrt(theta_0["probabilities"][j])
            out.extend(2 * math.sqrt(theta_0["trials"] * pi_0[j]) * (root - known))
    return np.array(out)
