"""Room 2: the statistical manifolds (Section 4.4). A family says what a density is; it knows no multisets."""

from fishergraph.family.gaussian_mixture import (
    fisher_root,
    log_joint,
    log_likelihood,
    relative_log_joint,
)

__all__ = ["fisher_root", "log_joint", "log_likelihood", "relative_log_joint"]
