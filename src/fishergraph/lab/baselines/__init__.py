"""Published classifiers of nodes with one interface, for comparison; docs/reproduction.md has an example.

The names of the table `BASELINES`, each with the settings of its paper:

    wwl, sgc, s2gc, sign        features without training, then a probe                   smoothing
    label-propagation           labels along edges, no features                           smoothing
    node2vec                    features from random walks, then a probe                  node2vec
    netmf                       factors of the log-walk matrix, then a probe              netmf
    fie, fie-reference          FisherEmbedding by the paper's equations, or by the
                                rule of its authors' code, then a probe                   fisher
    mlp                         no graph                                                  networks
    gcn, sage, gat, gatv2       PyTorch Geometric's layers, trained by fishergraph.nn     networks
    fie-supervised              FisherNet, trained in the same way                        networks

The task is transductive: features, a graph, labels, and the nodes for training and validation. The labels of all other
nodes are removed before a method runs. The same seed gives the same result; the global random state is not used.

To add a baseline, write a class with `_run(task, seed, progress)`, or a `Probed` with `_features`, and add it to the
table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any

from fishergraph._validation import look_up
from fishergraph.lab.baselines.base import Baseline

__all__ = ["BASELINES", "Baseline", "Recipe", "baseline"]


@dataclass(frozen=True)
class Recipe:
    """An entry of `BASELINES`: a class, imported at its first use, and the settings that differ from its defaults."""

    module: str
    class_name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, **settings: Any) -> Baseline:
        """The baseline, with these settings instead of the recipe's."""
        kind = getattr(import_module(f"fishergraph.lab.baselines.{self.module}"), self.class_name)
        allowed = {name: None for name in signature(kind).parameters if name != "kind"}
        for name in settings:
            look_up(allowed, name, f"a setting of {self.class_name}")
        return kind(**{**self.settings, **settings})


_ATTENTION = {"hidden": 64, "heads": 8, "dropout": 0.6, "lr": 0.005}

BASELINES: dict[str, Recipe] = {
    "wwl": Recipe("smoothing", "WWL"),
    "node2vec": Recipe("node2vec", "Node2Vec"),
    "netmf": Recipe("netmf", "NetMF"),
    "sgc": Recipe("smoothing", "SGC"),
    "s2gc": Recipe("smoothing", "S2GC"),
    "sign": Recipe("smoothing", "SIGN"),
    "fie": Recipe("fisher", "FIE"),
    "fie-reference": Recipe("fisher", "FIE", {"attention": "reference", "bandwidth": 1.0}),
    "label-propagation": Recipe("smoothing", "LabelPropagation"),
    "mlp": Recipe("networks", "Network", {"kind": "mlp"}),
    "gcn": Recipe("networks", "Network", {"kind": "gcn"}),
    "sage": Recipe("networks", "Network", {"kind": "sage", "hidden": 64}),
    "gat": Recipe("networks", "Network", {"kind": "gat", **_ATTENTION}),
    "gatv2": Recipe("networks", "Network", {"kind": "gatv2", **_ATTENTION}),
    "fie-supervised": Recipe("networks", "SupervisedFIE"),
}


def baseline(name: str, **settings: Any) -> Baseline:
    """Make a baseline by name.

    Parameters
    ----------
    name : str
        A key of `BASELINES`.
    **settings
        Settings to change; all others are those of the method's paper.

    Returns
    -------
    Baseline
        Not fitted yet.

    See Also
    --------
    fishergraph.FisherClassifier : A trained classifier of nodes with scikit-learn's interface.

    Examples
    --------
    >>> from fishergraph.lab import baseline
    >>> baseline("sgc", n_steps=3)
    SGC(n_steps=3)
    """
    return look_up(BASELINES, name, "name").make(**settings)
