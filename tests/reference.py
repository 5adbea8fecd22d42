"""The slow reference: float64, loops, one function per equation, nothing of the package imported.

Every fast path is measured against these functions, so they are written to be read beside the paper, and
where plain float64 would lose digits they stay in logs. Axes: set v, point u, anchor j, feature.

Multisets are plain Python: `sets` is a list over sets, each a list of pairs (point index, weight a_vu ≥ 0).
A parameter θ = {μ_1, …, μ_p} is an array (anchor, feature); flattened, it runs (anchor, feature) too.
"""

import itertools
import math

import numpy as np

# ------------------------------------------------------------------------------- the mixture, Eq. 16


def log_normal(x, mean, variance=1.0):
    """log N(x; mean, variance · I), the component density inside Eq. 16."""
    x, mean = np.asarray(x, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    return -0.5 * float(np.sum((x - mean) ** 2)) / variance - 0.5 * len(x) * math.log(2 * math.pi * variance)


def log_sum_exp(values):
    """log Σ_i exp(values_i), shifted by the largest value."""
    shift = max(values)
    return shift + math.log(math.fsum(math.exp(value - shift) for value in values))


def log_joint(x, anchors, variance=1.0, log_weights=None):
    """(anchor,): log p_θ(x, z = j) = log π_j + log N(x; w_j, σ²I), the terms of Eq. 16; default π_j = 1/p."""
    p = len(anchors)
    if log_weights is None:
        log_weights = [-math.log(p)] * p
    return np.array([log_weights[j] + log_normal(x, anchors[j], variance) for j in range(p)])


def log_mixture(x, anchors, variance=1.0, log_weights=None):
    """log p_θ(x) = log Σ_j π_j N(x; w_j, σ²I), Eq. 16."""
    return log_sum_exp(log_joint(x, anchors, variance, log_weights))


# ---------------------------------------------------------------------------- EM, Eqs. 11, 14 and 17


def log_responsibilities(points, anchors, variance=1.0):
    """(point, anchor): log α_uj = log p_θ(x_u, z = j) − log p_θ(x_u), the E-step above Eq. 17, in logs."""
    points, anchors = np.asarray(points, dtype=np.float64), np.asarray(anchors, dtype=np.float64)
    out = np.zeros((len(points), len(anchors)))
    for u in range(len(points)):
        log_terms = log_joint(points[u], anchors, variance)
        # Gaps to the largest term first: a common offset never costs log α its digits.
        gaps = log_terms - np.max(log_terms)
        out[u] = gaps - math.log(math.fsum(math.exp(gap) for gap in gaps))
    return out


def responsibilities(points, anchors, variance=1.0):
    """(point, anchor): α_uj = N(x_u; w_j, σ²I) / Σ_l N(x_u; w_l, σ²I), the E-step above Eq. 17."""
    return np.exp(log_responsibilities(points, anchors, variance))


def m_step(points, weights, log_resp, anchors, prior=0.0):
    """(anchor, feature): μ_j = (κ w_j + Σ_i a_i α_ij x_i) / (κ + Σ_i a_i α_ij), Eq. 17, weights a, prior κ.

    `log_resp` holds log α_ij. Every term enters as the exponential of its log minus the largest log of the
    column, so the denominator is at least 1. Without any term (empty multiset, κ = 0) μ_j = w_j, the limit
    κ → 0.
    """
    points, anchors = np.asarray(points, dtype=np.float64), np.asarray(anchors, dtype=np.float64)
    means = anchors.copy()
    for j in range(len(anchors)):
        terms = [(math.log(a) + log_resp[i][j], points[i]) for i, a in enumerate(weights) if a > 0]
        if prior > 0:
            terms.append((math.log(prior), anchors[j]))
        if not terms:
            continue
        shift = max(log_term for log_term, _ in terms)
        numerator, denominator = np.zeros(anchors.shape[1]), 0.0
        for log_term, x in terms:
            numerator += math.exp(log_term - shift) * x
            denominator += math.exp(log_term - shift)
        means[j] = numerator / denominator
    return means


def em_means(points, sets, anchors, variance=1.0, prior=0.0, n_iter=1):
    """(means, mass): n_iter EM iterations of every multiset from θ_0, Eq. 14 (one) towards Eq. 11 (many).

    means is (set, anchor, feature); mass is (set, anchor), Σ_u a_vu α_uj of the last E-step. The first E-step
    is at the anchors, every later one at the set's own means; the prior always pulls towards the anchors.
    With n_iter = 0, and for an empty set, the means are the anchors and the mass is 0.
    """
    points, anchors = np.asarray(points, dtype=np.float64), np.asarray(anchors, dtype=np.float64)
    p, d = anchors.shape
    means, mass = np.zeros((len(sets), p, d)), np.zeros((len(sets), p))
    for v, members in enumerate(sets):
        members_x = np.array([points[u] for u, _ in members]).reshape(len(members), d)
        weights = [float(a) for _, a in members]
        theta = anchors
        for _ in range(n_iter):
            log_resp = log_responsibilities(members_x, theta, variance)
            theta = m_step(members_x, weights, log_resp, anchors, prior)
            for j in range(p):
                mass[v, j] = math.fsum(a * math.exp(log_resp[i][j]) for i, a in enumerate(weights))
        means[v] = theta
    return means, mass


def soft_counts(mass):
    """log(1 + Σ_u a_vu α_uj) per set and anchor, the counts that an ML estimate of Eq. 11 forgets."""
    return np.vectorize(math.log1p, otypes=[np.float64])(np.asarray(mass, dtype=np.float64))


def transport(scores, weights=None, column_penalty=math.inf, n_sweeps=100_000):
    """(point, anchor): the log α of one multiset that maximises, over rows Σ_j α_ij = 1 (Appendix C, in its intent),

        Σ_ij a_i α_ij (s_ij − log α_ij) − τ Σ_j m_j log(m_j / (A/p)),   m_j = Σ_i a_i α_ij,   A = Σ_i a_i.

    τ = `column_penalty`; at τ = ∞ the last term is the constraint m_j = A/p. The maximiser is
    log α_ij = s_ij + f_i + g_j with g_j = −τ log(m_j p / A), and Sinkhorn–Knopp finds it: rows, then columns, in turn.
    Its sweeps are slow where scores are large, so this is for moderate ones. No weight at all: the posterior.
    """
    scores = np.asarray(scores, dtype=np.float64)
    (n, p), a = scores.shape, [1.0] * len(scores) if weights is None else [float(w) for w in weights]
    total, columns = math.fsum(a), [0.0] * p
    damping = 1.0 if math.isinf(column_penalty) else column_penalty / (column_penalty + 1.0)
    rows = [-log_sum_exp(scores[i]) for i in range(n)]
    for _ in range(n_sweeps if total > 0 else 0):
        before = columns
        columns = []
        for j in range(p):
            column = log_sum_exp([math.log(a[i]) + scores[i, j] + rows[i] for i in range(n) if a[i] > 0])
            columns.append(damping * (math.log(total / p) - column))
        rows = [-log_sum_exp([scores[i, j] + columns[j] for j in range(p)]) for i in range(n)]
        if max(abs(new - old) for new, old in zip(columns, before, strict=True)) < 1e-14:
            break
    return np.array([[scores[i, j] + rows[i] + columns[j] for j in range(p)] for i in range(n)]).reshape(n, p)


def unit(x):
    """x / ‖x‖, and 0 for the zero vector."""
    x = np.asarray(x, dtype=np.float64)
    norm = math.sqrt(math.fsum(x * x))
    return x / norm if norm > 0 else np.zeros_like(x)


def reference_attention_means(points, sets, anchors):
    """(set, anchor, feature): Σ_u attention_vuj x_u by the published code's rule, which is not Eq. 17.

    α_uj = softmax_j(⟨x̂_u, w_j⟩ / d) from unit-normalised points; then a second softmax, over probabilities,
    attention_vuj = a_vu exp(α_uj) / Σ_u' a_vu' exp(α_u'j); the average is of the raw points. An empty set has
    the anchors.
    """
    points, anchors = np.asarray(points, dtype=np.float64), np.asarray(anchors, dtype=np.float64)
    p, d = anchors.shape
    means = np.zeros((len(sets), p, d))
    for v, members in enumerate(sets):
        numerator, denominator = np.zeros((p, d)), np.zeros(p)
        for u, a in members:
            scores = [float(unit(points[u]) @ anchors[j]) / d for j in range(p)]
            for j in range(p):
                alpha = math.exp(scores[j] - log_sum_exp(scores))
                numerator[j] += a * math.exp(alpha) * points[u]
                denominator[j] += a * math.exp(alpha)
        for j in range(p):
            means[v, j] = numerator[j] / denominator[j] if denominator[j] > 0 else anchors[j]
    return means


# ----------------------------------------------------------------- embeddings and kernels, Eqs. 2–18


def as_matrix(scalar_or_matrix, size):
    """A scalar c as c · I of that size; a matrix as it is."""
    if np.ndim(scalar_or_matrix) == 0:
        return float(scalar_or_matrix) * np.eye(size)
    return np.asarray(scalar_or_matrix, dtype=np.float64)


def fisher_embedding(means, anchors, fisher_root=None):
    """(set, anchor · feature): φ = I(θ_0)^{1/2} (θ − θ_0), Eq. 18 (and 10, 13), flattened (anchor, feature).

    `fisher_root` is a scalar, by default the p^{-1/2} of Eq. 18, or a matrix (p·d, p·d).
    """
    means, anchors = np.asarray(means, dtype=np.float64), np.asarray(anchors, dtype=np.float64)
    p, d = anchors.shape
    root = as_matrix(p**-0.5 if fisher_root is None else fisher_root, p * d)
    out = np.zeros((len(means), p * d))
    for v in range(len(means)):
        out[v] = root @ (means[v] - anchors).ravel()
    return out


def fisher_inner_product(theta, theta2, fisher):
    """⟨θ, θ'⟩ = θᵀ I(θ_0) θ', Eq. 6; `fisher` is a scalar or a matrix (p·d, p·d)."""
    theta, theta2 = np.ravel(theta).astype(np.float64), np.ravel(theta2).astype(np.float64)
    return float(theta @ as_matrix(fisher, len(theta)) @ theta2)


def tangent_kernel(theta, theta2, anchors, fisher):
    """K(θ, θ') = (θ − θ_0)ᵀ I(θ_0) (θ' − θ_0), Eq. 9, an instance of Eq. 4; Eq. 12 for estimates θ, θ'."""
    theta_0 = np.ravel(anchors).astype(np.float64)
    return fisher_inner_product(np.ravel(theta) - theta_0, np.ravel(theta2) - theta_0, fisher)


def kl_expansion(theta, theta2, fisher):
    """½ (θ − θ')ᵀ I (θ − θ'), the second-order term of Lemma 4.2 (Eq. 8) and of Theorem 4.3 (Eq. 15)."""
    step = np.ravel(theta).astype(np.float64) - np.ravel(theta2)
    return 0.5 * fisher_inner_product(step, step, fisher)


def multilayer_kernel(psis, psis2, weights=None):
    """K(v, v') = Σ_t b_t ⟨ψ_t(v), ψ_t(v')⟩, Eq. 2 (there b_t = 1); `psis` lists the vectors ψ_0(v) … ψ_T(v).

    A weight multiplies the inner product, so a concatenation scales block t by √b_t.
    """
    if weights is None:
        weights = [1.0] * len(psis)
    return math.fsum(
        b * float(np.asarray(psi, dtype=np.float64) @ np.asarray(psi2, dtype=np.float64))
        for b, psi, psi2 in zip(weights, psis, psis2, strict=True)
    )


def matrix_root(matrix):
    """The symmetric square root M^{1/2} of a positive semi-definite matrix, the I(θ_0)^{1/2} of Eq. 10."""
    values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def inverse_root(matrix, cutoff=1e-10):
    """The symmetric pseudo-inverse square root; eigenvalues up to cutoff × the largest count as zero."""
    values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
    kept = values > cutoff * values[-1]
    return (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T


# ------------------------------------------------------ integrals over the mixture, Eqs. 7, 8 and 15


def normal_quadrature(mean, variance=1.0, step=0.1):
    """Yields x (n, d) and weight (n,) with Σ weight · f(x) ≈ E f(X) for X ~ N(mean, σ²I), d ≤ 2.

    The trapezoid rule on a product grid of spacing step · σ out to 10 σ, one grid line at a time. For an
    analytic f its error is about exp(−2πa/step), a being the distance (in σ) from the real axis to the
    nearest singularity of f, so the step can be chosen beforehand; Gauss–Hermite has no such handle and is
    slow on the steep responsibilities of far components.
    """
    mean = np.asarray(mean, dtype=np.float64)
    if len(mean) > 2:
        raise ValueError(f"quadrature expects 1 or 2 features, got {len(mean)}; use Monte Carlo.")
    half = math.ceil(10 / step)
    nodes = step * np.arange(-half, half + 1)
    masses = step * np.exp(-0.5 * nodes**2) / math.sqrt(2 * math.pi)
    sigma = math.sqrt(variance)
    if len(mean) == 1:
        yield mean + sigma * nodes[:, None], masses
        return
    for node, mass in zip(nodes, masses, strict=True):
        line = np.stack([np.full_like(nodes, node), nodes], axis=1)
        yield mean + sigma * line, mass * masses


def log_joint_many(x, means, variance=1.0):
    """(n, p): `log_joint` of every row of x, with arrays in the place of the loop over points."""
    x, (p, d) = np.asarray(x, dtype=np.float64), np.shape(means)
    out = np.zeros((len(x), p))
    for j in range(p):
        out[:, j] = -0.5 * np.sum((x - means[j]) ** 2, axis=1) / variance
    return out - 0.5 * d * math.log(2 * math.pi * variance) - math.log(p)


def log_mixture_many(x, means, variance=1.0):
    """(n,): `log_mixture` of every row of x."""
    log_terms = log_joint_many(x, means, variance)
    shift = np.max(log_terms, axis=1)
    return shift + np.log(np.sum(np.exp(log_terms - shift[:, None]), axis=1))


def score(x, anchors, variance=1.0):
    """(n, anchor · feature): ∇_θ log p_θ(x) at θ_0, inside Eq. 7; block j is α_j(x) (x − w_j) / σ²."""
    anchors = np.asarray(anchors, dtype=np.float64)
    alpha = np.exp(log_joint_many(x, anchors, variance) - log_mixture_many(x, anchors, variance)[:, None])
    return np.concatenate([alpha[:, [j]] * (x - anchors[j]) / variance for j in range(len(anchors))], axis=1)


def fisher_matrix_quadrature(anchors, variance=1.0):
    """(p·d, p·d): I(θ_0) = E[∇ log p_θ ∇ log p_θᵀ] of the mixture's means, Eq. 7, accurate to 1e-8; d ≤ 2.

    Responsibilities are singular where the mixture density vanishes: between components δ apart (in σ), at
    distance π/δ from the real axis, where the density is about exp(−δ²/8). Together the error is about
    exp(−2π²/(δ step) − δ²/8), below 1e-12 for every δ at this step.
    """
    anchors = np.asarray(anchors, dtype=np.float64)
    fisher = np.zeros((anchors.size, anchors.size))
    for anchor in anchors:
        for x, weight in normal_quadrature(anchor, variance, step=0.1):
            gradient = score(x, anchors, variance)
            fisher += (gradient * weight[:, None]).T @ gradient / len(anchors)
    return fisher


def fisher_matrix_monte_carlo(anchors, n, seed, variance=1.0):
    """(p·d, p·d): the average of ∇ log p_θ ∇ log p_θᵀ over n samples of p_θ_0, unbiased for Eq. 7."""
    anchors = np.asarray(anchors, dtype=np.float64)
    rng = np.random.default_rng(seed)
    component = rng.integers(len(anchors), size=n)
    x = anchors[component] + math.sqrt(variance) * rng.standard_normal((n, anchors.shape[1]))
    gradient = score(x, anchors, variance)
    return gradient.T @ gradient / n


def kl_divergence_quadrature(p_means, q_means, variance=1.0):
    """KL(p‖q) = ∫ p log(p/q) for two mixtures of Eq. 16, in that order, the D of Eqs. 8 and 15; d ≤ 2.

    log q may bend sharply in the middle of p, so the step shrinks with the spread of q's components.
    """
    p_means, q_means = np.asarray(p_means, dtype=np.float64), np.asarray(q_means, dtype=np.float64)
    spread = float(np.max(np.ptp(q_means, axis=0))) / math.sqrt(variance)
    step = min(0.1, 0.6 / spread) if spread > 0 else 0.1
    total = 0.0
    for mean in p_means:
        for x, weight in normal_quadrature(mean, variance, step):
            log_ratio = log_mixture_many(x, p_means, variance) - log_mixture_many(x, q_means, variance)
            total += float(weight @ log_ratio) / len(p_means)
    return total


# ------------------------------------------------------ likelihood and its bound, Eqs. 11, 14, 20–23


def log_likelihood(points, weights, means, variance=1.0):
    """Σ_i a_i log p_θ(x_i), the weighted sample's objective of Eq. 11 (a sum, not an average)."""
    return math.fsum(a * log_mixture(x, means, variance) for x, a in zip(points, weights, strict=True))


def em_lower_bound(points, weights, theta, theta0, variance=1.0):
    """Σ_i a_i E_{z|x_i,θ_0}[log p_θ(x_i, z) − log p_θ_0(z|x_i)], Eq. 21, with the maximiser of Eq. 14."""
    total = []
    for x, a in zip(points, weights, strict=True):
        joint = log_joint(x, theta, variance)
        posterior = log_responsibilities([x], theta0, variance)[0]
        for j in range(len(theta)):
            total.append(a * math.exp(posterior[j]) * (joint[j] - posterior[j]))
    return math.fsum(total)


def posterior_kl(x, theta0, theta, variance=1.0):
    """KL(p_θ_0(z|x) ‖ p_θ(z|x)), Eq. 23: what the bound of Eq. 22 misses of log p_θ(x) at one point x."""
    log_p = log_responsibilities([x], theta0, variance)[0]
    log_q = log_responsibilities([x], theta, variance)[0]
    return math.fsum(math.exp(log_p[j]) * (log_p[j] - log_q[j]) for j in range(len(log_p)))


# ----------------------------------------------------------- around the equations: graph, ψ, k-means


def symmetric_weights(adjacency):
    """(node, node): D^{-1/2} A D^{-1/2}, D the row sums of a dense A with its self-loops; 0 where D = 0."""
    adjacency = np.asarray(adjacency, dtype=np.float64)
    degree = [math.fsum(row) for row in adjacency]
    out = np.zeros_like(adjacency)
    for v, u in itertools.product(range(len(adjacency)), repeat=2):
        if degree[v] * degree[u] > 0:
            out[v, u] = adjacency[v, u] / math.sqrt(degree[v] * degree[u])
    return out


def directed_members(edges, n, direction, closed):
    """For every node v the (u, weight) of its neighbours in order of u: "in" those with an edge to v, "out" from v.

    `edges` are (source, target, weight); parallel edges add. If `closed`, v is a member once, of weight one unless an
    edge from v to v says otherwise.
    """
    sets = []
    for v in range(n):
        total = {}
        for source, target, weight in edges:
            here, other = (target, source) if direction == "in" else (source, target)
            if here == v:
                total[other] = total.get(other, 0.0) + weight
        if closed and v not in total:
            total[v] = 1.0
        sets.append(sorted(total.items()))
    return sets


def difference_means(points, sets, anchors, variance=1.0, n_iter=1):
    """(means, mass) of the multisets {x_u − x_v : u ∈ S(v)}, as `em_means`; set v belongs to point v."""
    differences, lists = [], []
    for v, members in enumerate(sets):
        first = len(differences)
        differences += [np.asarray(points[u], dtype=np.float64) - points[v] for u, _ in members]
        lists.append([(first + i, a) for i, (_, a) in enumerate(members)])
    return em_means(differences, lists, anchors, variance, n_iter=n_iter)


def walk_operator(adjacency, symmetric=False):
    """M of a diffusion: missing loops of weight one, then D^-1 A, or D_row^-½ A D_column^-½."""
    closed = adjacency + np.diag(np.where(np.diag(adjacency) == 0, 1.0, 0.0))
    rows, columns = closed.sum(axis=1, keepdims=True), closed.sum(axis=0, keepdims=True)
    return closed / np.sqrt(rows * columns) if symmetric else closed / rows


def pagerank(operator, teleport):
    """α (I − (1 − α) M)^-1."""
    identity = np.eye(len(operator))
    return teleport * np.linalg.inv(identity - (1.0 - teleport) * operator)


def heat_kernel(operator, time):
    """exp(−t (I − M)), by its Taylor series."""
    term = math.exp(-time) * np.eye(len(operator))
    total = np.zeros_like(term)
    for k in range(1, 400):
        total = total + term
        term = term @ operator * time / k
    return total


def step_average(operator, steps, root):
    """r I + (1 − r) / K · Σ_{k=1}^K M^k."""
    powers = [np.linalg.matrix_power(operator, k) for k in range(1, steps + 1)]
    return root * np.eye(len(operator)) + (1.0 - root) / steps * sum(powers)


def walk_means(points, sets, teleport, n_steps):
    """(set, feature): μ_v = Σ_u π_v(u) b_u x_u / Σ_u π_v(u) b_u, b_u = (Σ_v a_vu)^-½; a sum of zero counts as the mean.

    π_v = α Σ_{k<K} (1 − α)^k e_v P^k + (1 − α)^K e_v P^K, where P moves to a member u of set v with probability
    a_vu / Σ_u a_vu; where a set has no weight the walk is lost.
    """
    points, n = np.asarray(points, dtype=np.float64), len(sets)
    move, received = np.zeros((n, n)), np.zeros(n)
    for v, members in enumerate(sets):
        total = math.fsum(a for _, a in members)
        for u, a in members:
            received[u] += a
            if total > 0:
                move[v, u] += a / total
    ends, under_way = np.zeros((n, n)), np.eye(n)
    for _ in range(n_steps):
        ends += teleport * under_way
        under_way = (1 - teleport) * under_way @ move
    ends += under_way
    usual = math.fsum(received) / max(np.count_nonzero(received), 1) or 1.0
    weights = np.array([(total or usual) ** -0.5 for total in received])
    means = np.zeros(points.shape)
    for v in range(n):
        shares = ends[v] * weights
        means[v] = shares @ points / math.fsum(shares)
    return means


def exponential_kernel(x, y, bandwidth=1.0):
    """‖x‖ ‖y‖ exp((⟨x̂, ŷ⟩ − 1) / bandwidth²), the dot-product kernel of ψ; 0 when x or y is 0."""
    norms = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
    return norms * math.exp((float(unit(x) @ unit(y)) - 1.0) / bandwidth**2)


def nystrom(x, landmarks, bandwidth=1.0, cutoff=1e-10):
    """(n, landmark): ψ(x) = ‖x‖ κ(⟨x̂, W⟩) K_WW^{-1/2} with κ(u) = exp((u − 1) / bandwidth²); ψ(0) = 0.

    The rows of W = `landmarks` are unit vectors; K_WW = κ(W Wᵀ), and its inverse root is `inverse_root`'s.
    """
    x, landmarks = np.asarray(x, dtype=np.float64), np.asarray(landmarks, dtype=np.float64)
    m = len(landmarks)
    gram = np.zeros((m, m))
    for a, b in itertools.product(range(m), repeat=2):
        gram[a, b] = math.exp((float(landmarks[a] @ landmarks[b]) - 1.0) / bandwidth**2)
    root = inverse_root(gram, cutoff)
    out = np.zeros((len(x), m))
    for i in range(len(x)):
        norm = float(np.linalg.norm(x[i]))
        row = [norm * math.exp((float(unit(x[i]) @ w) - 1.0) / bandwidth**2) for w in landmarks]
        out[i] = np.array(row) @ root
    return out


def wl_colours(neighbours, labels, n_rounds):
    """(node,) integer colours after n_rounds of Weisfeiler–Lehman refinement, Lemma 3.1.

    c_t(v) = g(c_{t-1}(v), {c_{t-1}(u) : u ∈ N(v)}), g numbering the signatures in sorted order, so
    that the colours depend on no node order. Colours of two graphs compare only when both are refined
    together, as one disjoint union.
    """

    def number(signatures):
        order = {signature: i for i, signature in enumerate(sorted(set(signatures)))}
        return [order[signature] for signature in signatures]

    colours = number(list(labels))
    for _ in range(n_rounds):
        colours = number([(colours[v], tuple(sorted(colours[u] for u in neighbours[v]))) for v in range(len(colours))])
    return np.array(colours, dtype=np.int64)


def kmeans_objective(points, centres):
    """Σ_i min_j ‖x_i − c_j‖², what k-means minimises when it learns the anchors."""
    points, centres = np.asarray(points, dtype=np.float64), np.asarray(centres, dtype=np.float64)
    return math.fsum(min(float(np.sum((x - centre) ** 2)) for centre in centres) for x in points)


# --- several relations ---------------------------------------------------------------------------------------


def relational_members(edges, n_targets, closed, key):
    """[(source, weight)] of every target of a relation; a target of its own type is a member of its own set.

    `edges` lists (source, target, weight); parallel edges add. A self-loop is there once.
    """
    rows = [{} for _ in range(n_targets)]
    for source, target, weight in edges:
        rows[target][source] = rows[target].get(source, 0.0) + weight
    if closed and key[0] == key[2]:
        for v, row in enumerate(rows):
            row.setdefault(v, 1.0)
    return [sorted(row.items()) for row in rows]


def relational_points(parts, axes):
    """x_v = (P_1 ψ_1(v), …, P_k ψ_k(v)) divided by its length; a single part is not projected."""
    n = len(parts[0])
    rows = []
    for v in range(n):
        pieces = []
        for part, columns in zip(parts, [None] if axes is None else axes, strict=True):
            row = np.asarray(part[v], dtype=np.float64)
            if columns is not None:
                row = np.array([math.fsum(row * column) for column in np.asarray(columns, np.float64).T])
            pieces.append(row)
        rows.append(unit(np.concatenate(pieces)))
    return np.array(rows)
