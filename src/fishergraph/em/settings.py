"""`EM`: how a multiset is projected onto the manifold, and how the anchors are learned. The E-step by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fishergraph._component import Component
from fishergraph._errors import InputTypeError
from fishergraph._typing import Array
from fishergraph._validation import MOST_ITERATIONS, check_integer, check_number, look_up
from fishergraph.family import relative_log_joint
from fishergraph.family.base import log_softmax

# Where the anchors of a Gaussian mixture come from.
METHODS: dict[str, None] = dict.fromkeys(("kmeans", "spherical", "em", "random"))
E_STEPS: dict[str, None] = dict.fromkeys(("posterior", "balanced", "unbalanced"))


def posterior(points: Array, anchors: Array, variance: float = 1.0) -> Any:
    """log α_ij = log p(z_i = j | x_i): the log-joint normalised over the anchors (Section 4.4), (point, anchor)."""
    return log_softmax(relative_log_joint(points, anchors, variance))


def e_step_slack(e_step: str, column_penalty: float) -> float:
    """1/τ of the penalty on the anchors' masses in a set: ∞ is the posterior, 0 is balanced."""
    return EM(e_step=e_step, column_penalty=column_penalty).slack


@dataclass(frozen=True, repr=False)
class EM(Component):
    """Expectation-maximisation from the anchors (Eq. 14, 17).

    Parameters
    ----------
    n_iter : int, default=1
        Iterations; 1 is the paper, 0 gives φ = 0.
    e_step : {"posterior", "balanced", "unbalanced"}, default="posterior"
        "balanced" gives every anchor the same mass in every multiset, "unbalanced" penalises deviations from that.
    column_penalty : float, default=1.0
        The weight τ of the penalty of "unbalanced": 0 is the posterior, a large one is balanced.
    prior : float, default=0.0
        The weight κ of an anchor as one more member of its component; 0 is the paper.
    init : {"kmeans", "spherical", "em", "random"}, default="kmeans"
        How the anchors of a Gaussian mixture are learned; "spherical" is for unit vectors. Other families start from
        k-means and then learn all of their parameters.
    max_samples : int, default=300_000
        The most points that k-means reads.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `em`.
    fishergraph.em_means : EM as a function.

    Examples
    --------
    >>> from fishergraph import EM, FisherEmbedding
    >>> FisherEmbedding(em=EM(n_iter=3, e_step="balanced"))
    FisherEmbedding(em=EM(n_iter=3, e_step='balanced'))
    """

    n_iter: int = 1
    e_step: str = "posterior"
    column_penalty: float = 1.0
    prior: float = 0.0
    init: str = "kmeans"
    max_samples: int = 300_000

    def check(self) -> None:
        """Raise unless every option is valid."""
        check_integer(self.n_iter, "n_iter", least=0, most=MOST_ITERATIONS)
        look_up(E_STEPS, self.e_step, "e_step")
        check_number(self.column_penalty, "column_penalty")
        check_number(self.prior, "prior", most=1e12)
        look_up(METHODS, self.init, "init")
        check_integer(self.max_samples, "max_samples", least=1)

    @property
    def slack(self) -> float:
        """1/τ of the E-step: ∞ is the posterior, 0 is balanced."""
        if self.e_step == "balanced":
            return 0.0
        return (
            1 / float(self.column_penalty) if self.e_step == "unbalanced" and self.column_penalty > 1e-15 else math.inf
        )

    @property
    def is_posterior(self) -> bool:
        """Whether the E-step is the posterior."""
        return self.slack == math.inf


_DEFAULT = EM()


def choose_em(em: EM | None) -> EM:
    """Return the settings, the default ones for None."""
    if em is None:
        return _DEFAULT
    if not isinstance(em, EM):
        raise InputTypeError(parameter="em", value=em, expected="be an EM component or None", advice="pass EM(…)")
    return em
