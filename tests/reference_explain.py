"""The slow reference of explanations: float64, loops, one function per equation, nothing of the package imported.

Multisets are lists of pairs (point index, weight a_vu ≥ 0), as in `reference`.
"""

import math

import numpy as np

import reference as ref


def attention(points, members, anchors, variance=1.0):
    """(member, anchor): a_vu α_uj / D_vj with D_vj = Σ_u a_vu α_uj."""
    alpha = ref.responsibilities([points[u] for u, _ in members], anchors, variance)
    out = np.zeros(alpha.shape)
    for j in range(len(anchors)):
        total = math.fsum(a * alpha[i, j] for i, (_, a) in enumerate(members))
        for i, (_, a) in enumerate(members):
            out[i, j] = a * alpha[i, j] / total
    return out


def pair_products(points, first, second, anchors, variance=1.0, prior=0.0):
    """(anchor, member of v, of w): (1/p) c_vuj c_wu'j ⟨x_u − w_j, x_u' − w_j⟩, c_vuj = a_vu α_uj / (κ + D_vj)."""
    anchors, coefficients = np.asarray(anchors, dtype=np.float64), []
    for members in (first, second):
        alpha = ref.responsibilities([points[u] for u, _ in members], anchors, variance)
        c = np.zeros(alpha.shape)
        for j in range(len(anchors)):
            total = prior + math.fsum(a * alpha[i, j] for i, (_, a) in enumerate(members))
            for i, (_, a) in enumerate(members):
                c[i, j] = a * alpha[i, j] / total
        coefficients.append(c)
    out = np.zeros((len(anchors), len(first), len(second)))
    for j, w in enumerate(anchors):
        for i, (u, _) in enumerate(first):
            for k, (other, _) in enumerate(second):
                product = math.fsum((points[u] - w) * (points[other] - w))
                out[j, i, k] = coefficients[0][i, j] * coefficients[1][k, j] * product / len(anchors)
    return out


def kernel_split(phi, other, landmarks, bandwidth):
    """(lengths, product, remainder): k at cosine zero, what the cosine adds to it, and ⟨ψ, ψ'⟩ − k."""
    lengths = float(np.linalg.norm(phi)) * float(np.linalg.norm(other)) * math.exp(-1 / bandwidth**2)
    kernel = ref.exponential_kernel(phi, other, bandwidth)
    psi = ref.nystrom([phi, other], landmarks, bandwidth, cutoff=1e-6)
    return lengths, kernel - lengths, float(psi[0] @ psi[1]) - kernel


def shared_equally(form, first, second):
    """(entry,): the shares of xᵀ B y, each term x_i B_ij y_j half to i and half to j."""
    out = np.zeros(len(first))
    for i in range(len(first)):
        for j in range(len(second)):
            out[i] += 0.5 * first[i] * form[i, j] * second[j]
            out[j] += 0.5 * first[i] * form[i, j] * second[j]
    return out


def walk_ends(sets, teleport, n_steps):
    """(node, node): where walks end, α Σ_{k<K} (1 − α)^k P^k + (1 − α)^K P^K."""
    n = len(sets)
    move = np.zeros((n, n))
    for v, members in enumerate(sets):
        total = math.fsum(a for _, a in members)
        for u, a in members:
            move[v, u] += a / total if total > 0 else 0.0
    ends = np.zeros((n, n))
    for k in range(n_steps):
        ends += teleport * (1 - teleport) ** k * np.linalg.matrix_power(move, k)
    return ends + (1 - teleport) ** n_steps * np.linalg.matrix_power(move, n_steps)


def surprise(points, members, anchors, variance=1.0):
    """n_v ‖φ_v‖² with n_v = (Σ_u a_vu)² / Σ_u a_vu², for the mixture of Eq. 16."""
    if not members:
        return 0.0
    means, _ = ref.em_means(points, [members], anchors, variance)
    phi = ref.fisher_embedding(means, anchors)[0]
    size = math.fsum(a for _, a in members) ** 2 / math.fsum(a * a for _, a in members)
    return size * math.fsum(phi * phi)
