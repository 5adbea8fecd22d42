"""The rule of the authors' published code, as components of its own (`FisherEmbedding.published_code`).

The published code is not the published method. It divides cosines by the feature dimension, takes a second softmax over
probabilities, whitens nothing, and leaves the last layer without a kernel map (docs/deviations.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from array_api_compat import array_namespace

from fishergraph.family.base import log_softmax
from fishergraph.family.gaussian_mixture import CentreMixture, GaussianMixtureTheta
from fishergraph.kernel_map import Nystrom


@dataclass(frozen=True, repr=False)
class PublishedMixture(CentreMixture):
    """The mixture of the authors' code: unit anchors, responsibilities by cosines, and no factor p^{-1/2}.

    Parameters
    ----------
    fisher, tangent, power, unit : options
        See `Family`.
    """

    name: ClassVar[str] = "published-mixture"
    spherical: ClassVar[bool] = True
    is_posterior: ClassVar[bool] = False
    unit_points: ClassVar[bool] = False

    def at_centres(self, centres: Any, members: Any) -> GaussianMixtureTheta:
        """θ_0 with these means; there is no variance."""
        return GaussianMixtureTheta(centres, 1.0)

    def fisher_root(self, n_anchors: int) -> float:
        """1: the published code does not whiten."""
        return 1.0

    def log_responsibilities(self, statistics: Any, theta: GaussianMixtureTheta) -> Any:
        """softmax_j(⟨x_i/‖x_i‖, w_j⟩ / d), (point, anchor), as if these probabilities were the logs of α.

        The softmax of the M-step over the multiset then runs over probabilities instead of their logs, which leaves the
        attention nearly flat.
        """
        xp = array_namespace(statistics, theta.anchors)
        squares = xp.sum(statistics * statistics, axis=1, keepdims=True)
        unit = statistics / xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))
        return xp.exp(log_softmax(unit @ theta.anchors.T / statistics.shape[1]))


@dataclass(frozen=True, repr=False)
class PublishedNystrom(Nystrom):
    """The kernel map of the authors' code: a shrunk inverse root, and φ itself after the last layer.

    Parameters
    ----------
    bandwidth : float, default=1.5
        σ of the exponential kernel.
    """

    shrinkage: ClassVar[float] = 1e-2
    maps_last: ClassVar[bool] = False
