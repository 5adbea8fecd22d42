"""Presets: settings of `FisherEmbedding` by name."""

from __future__ import annotations

from typing import Any, Self

from fishergraph._validation import look_up
from fishergraph.family import GaussianMixture
from fishergraph.published import PublishedMixture, PublishedNystrom

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"n_layers": 1, "dim": 128, "n_anchors": 1, "structure": "local"},
    # Of what needs more time, nothing else helped without a loss elsewhere (benchmarks/results/presets.csv).
    "best": {"n_layers": 4},
    # The equations of the paper: no averaged features, no structure, unit variance.
    "paper": {"walk": None, "structure": None, "family": GaussianMixture(variance=1.0)},
}


def choose_preset(name: str) -> dict[str, Any]:
    """Return the parameters of the preset of that name."""
    return look_up(PRESETS, name, "preset")


class Presets:
    """Class methods of an estimator that make it with settings of a name."""

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Return an estimator with the settings of a name.

        Parameters
        ----------
        name : {"default", "fast", "best", "paper"}
            "fast" has one layer of 128 columns with one component, "best" four layers, "paper" the equations of the
            paper alone. `auto_embed` chooses settings on labels.
        **changes
            Parameters that replace those of the preset.

        Returns
        -------
        FisherEmbedding
            The unfitted estimator.

        Examples
        --------
        >>> from fishergraph import FisherEmbedding
        >>> FisherEmbedding.preset("fast")
        FisherEmbedding(n_layers=1, n_anchors=1, dim=128, structure='local')
        """
        return cls(**{**choose_preset(name), **changes})

    @classmethod
    def published_code(cls, **changes: Any) -> Self:
        """Return an estimator with the rule of the authors' published code.

        Parameters
        ----------
        **changes
            Parameters that replace those of the rule, such as ``dim=512, n_anchors=8, n_layers=4``.

        Returns
        -------
        FisherEmbedding
            The unfitted estimator.

        Examples
        --------
        >>> from fishergraph import FisherEmbedding
        >>> FisherEmbedding.published_code(n_layers=3)
        FisherEmbedding(n_layers=3, family=PublishedMixture(), kernel=PublishedNystrom(), walk=None, structure=None)
        """
        components = {"family": PublishedMixture(), "kernel": PublishedNystrom()}
        rule: dict[str, Any] = {**components, "walk": None, "structure": None}
        return cls(**{**rule, **changes})
