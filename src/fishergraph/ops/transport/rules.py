"""What the three versions of the transport E-steps share: numbers, which `em.transport` explains, and a warning."""

from __future__ import annotations

from fishergraph._warn import warn

# A stage starts where no score of a member differs by more than this from another.
GAP = 16.0
# The scores of the next stage are those of this one times this.
GROWTH = 4.0
# A marginal is far from its target at more than a factor e, and a step is short at up to the same in α.
FAR = 1.0
# Steps before giving up; 48 is the most that was seen, at scores of 10⁴.
MAX_ITER = 200
# A conductance below this many of the smallest normal numbers is none: what is divided by it would overflow.
NONE = 1e8


def default_tolerance(itemsize: int) -> float:
    """The violation of the marginals at which the steps end, by the bytes of a float.

    It is max_j |m_j − q_j| / (q_j (1 + log⁺(1 / (p q_j)))) for masses m and targets q, p |m_j − 1/p| at q_j = 1/p.
    Relative to each target: an anchor that light members alone choose has a small one. A mass of q_j is a sum of
    exponentials of log q_j, whose rounding grows with the log. Masses below `NONE` of the smallest normal numbers are
    alike.
    """
    return 1e-10 if itemsize == 8 else 1e-6


def warn_unmet(residual: float, tolerance: float, max_iter: int) -> None:
    """Warn that a marginal was not met: the last step, whose rows sum to one, is the result."""
    warn(
        "transport",
        f"a transport E-step did not converge: after {max_iter} steps the masses of the anchors miss their targets by "
        f"{residual:.1e} of themselves, {tolerance:.0e} was asked for; the last step is used. "
        "Scores this far apart need a larger variance, or e_step='posterior'.",
    )
