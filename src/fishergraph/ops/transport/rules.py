"""The balanced and unbalanced E-steps: how they are solved, and the constants that the engines share.

The unknowns of one multiset are the p potentials g of log α_ij = log softmax_j(s_ij + g_j). With the weights
b_i = a_i / Σ a of the members, the column marginal m_j = Σ_i b_i α_ij has to meet its target
q_j = softmax_j(−g_j / τ), which is 1/p at τ = ∞. That is Sinkhorn's fixed point with the common constant of g taken
out. Newton's equation for it,

    Σ_k W_jk (δ_j − δ_k) + m_j δ_j / τ = q_j − m_j,    W_jk = Σ_i b_i α_ij α_ik,

is that of an electrical network: conductances W between the anchors, leaks m/τ to the ground, currents q − m. Newton
alone overshoots where α is hard. Sinkhorn alone (each anchor by itself: δ_j = log(q_j/m_j) / (1 + 1/τ)) is slow. So
Sinkhorn's step is taken in full, and the rest of Newton's is damped by its length. Large scores are approached from
scores divided by a power of four; the potentials of one stage start the next. Four to eight steps then suffice for
scores of 1 to 10, and fifty for scores of 10⁴. `tests/plain_transport.py` is the same on any array.
"""

from __future__ import annotations

from fishergraph._warn import warn

# The largest difference of two scores of a member in the first stage.
GAP = 16.0
# The factor between the scores of two stages.
GROWTH = 4.0
# A marginal is far from its target beyond a factor e; a step is short if it changes α by up to that factor.
FAR = 1.0
# Steps before giving up; the largest number observed is 48, at scores of 10⁴.
MAX_ITER = 200
# A conductance below this many smallest normal numbers counts as zero: a division by it would overflow.
NONE = 1e8


def default_tolerance(itemsize: int) -> float:
    """The violation of the marginals at which the steps end, by the bytes of a float.

    It is max_j |m_j − q_j| / (q_j (1 + log⁺(1 / (p q_j)))) for masses m and targets q, p |m_j − 1/p| at q_j = 1/p.
    Relative to each target, because an anchor that only light members choose has a small one. A mass of q_j is a sum of
    exponentials of log q_j, whose rounding error grows with the log. Masses below `NONE` smallest normal numbers count
    as equal.
    """
    return 1e-10 if itemsize == 8 else 1e-6


def warn_unmet(residual: float, tolerance: float, max_iter: int) -> None:
    """Warn that a marginal was not met; the result is the last step, whose rows sum to one."""
    warn(
        "transport",
        f"a transport E-step did not converge: after {max_iter} steps the masses of the anchors miss their targets by "
        f"{residual:.1e} of themselves, more than {tolerance:.0e}; the last step is used. "
        "Scores this far apart need a larger variance, or e_step='posterior'.",
    )
