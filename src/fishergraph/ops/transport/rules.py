"""Constants and a warning of the three versions of the transport E-steps; `em.transport` explains them."""

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
