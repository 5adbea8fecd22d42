"""`Readout`: how a graph is read as the multiset of its nodes' points."""

from __future__ import annotations

from dataclasses import dataclass

from fishergraph import _validation
from fishergraph._component import Component
from fishergraph._errors import InputTypeError
from fishergraph.em.settings import EM, choose_em
from fishergraph.estimators.base import make_layer
from fishergraph.family import Family, GaussianMixture, choose_family
from fishergraph.kernel_map import Kernel, choose_kernel
from fishergraph.layer import READINGS, Layer

# The components of a readout that is to choose their number.
_GRAPHS_PER_ANCHOR, _LEAST, _MOST = 16, 128, 256


@dataclass(frozen=True, repr=False)
class Readout(Component):
    """How a graph is read as the multiset of its nodes' points, after each stage.

    Parameters
    ----------
    n_anchors : int or "auto", default="auto"
        Number of mixture components. "auto" is one for every 16 graphs of fit, but at least 128 and at most 256.
    reading : {"counts", "weights", "means", "both"}, default="counts"
        "counts" is log(1 + mass_j) of every component, a soft histogram: with hard assignments that of Weisfeiler and
        Lehman's colours. "weights" is √(mass_j / Σ_l mass_l), for which the Fisher metric of the weights is the
        Euclidean one. "means" is φ of the components' means (`dim` columns per component), "both" these and the counts.
    family : str or component, default=GaussianMixture(sharpness=0.1)
        The manifold; see `FisherEmbedding`.
    em : EM, optional
        E-step, iterations and prior; None takes those of the node layers.
    kernel : {"identity", "exp"} or component, default="identity"
        φ of the readout itself, or a Nyström map of it.
    dim : int, default=256
        Width of that map.
    unit : bool, default=False
        Divide every block of a graph by its length, which hides the graph's size.

    See Also
    --------
    fishergraph.FisherGraphEmbedding : Takes it as `readout`.

    Examples
    --------
    >>> from fishergraph import FisherGraphEmbedding, Readout
    >>> FisherGraphEmbedding(readout=Readout(n_anchors=16, reading="means"))
    FisherGraphEmbedding(readout=Readout(n_anchors=16, reading='means'))
    """

    n_anchors: int | str = "auto"
    reading: str = "counts"
    family: str | Family = GaussianMixture(sharpness=0.1)
    em: EM | None = None
    kernel: str | Kernel = "identity"
    dim: int = 256
    unit: bool = False

    def check(self) -> None:
        """Raise unless every option is valid."""
        if not isinstance(self.n_anchors, str) or self.n_anchors != "auto":
            _validation.check_integer(self.n_anchors, "n_anchors (or 'auto')", least=1, most=_validation.MOST_ANCHORS)
        _validation.look_up(READINGS, self.reading, "reading")
        choose_family(self.family)
        choose_em(self.em)
        choose_kernel(self.kernel)
        _validation.check_integer(self.dim, "dim", least=1, most=_validation.MOST_COLUMNS)
        _validation.check_flag(self.unit, "unit")

    def layer(self, em: EM, n_graphs: int | None = None) -> Layer:
        """The settings of the layer that reads graphs, with the components for so many or with the most.

        `em` are those of the node layers.
        """
        n_anchors = self.n_anchors
        if isinstance(n_anchors, str):
            n_anchors = _MOST if n_graphs is None else min(max(n_graphs // _GRAPHS_PER_ANCHOR, _LEAST), _MOST)
        return make_layer(
            n_anchors,
            self.dim,
            family=self.family,
            em=self.em or em,
            kernel=self.kernel,
            reading=self.reading,
            unit=True,
        )


def choose_readout(readout: str | Readout | None) -> Readout:
    """Return the component; a text is its reading."""
    if readout is None:
        return Readout()
    if isinstance(readout, str):
        return Readout(reading=readout)
    if not isinstance(readout, Readout):
        raise InputTypeError(
            parameter="readout", value=readout, expected="be a Readout, a reading or None", advice="pass Readout(…)"
        )
    return readout
