"""Baselines: other people's classifiers of nodes behind one fit and predict, to be measured beside ours.

    from fishergraph.baselines import BASELINES, baseline
    from fishergraph.datasets import load_graph

    cora = load_graph("cora")
    train, val, test = cora.split()
    model = baseline("gat", hidden=64).fit(cora.X, cora.y, graph=cora.graph, train=train, val=val, seed=0)
    model.val_score_                 # to choose settings by
    model.score(cora.y, test)        # to look at once
    model.predict(), model.predict_proba(test)

`baseline(name, **settings)` gives an object whose settings are plain values: it can be pickled, printed, cloned, and
written down as (name, settings). The names, with the settings of their papers, stand in the table `BASELINES`:

    wwl, sgc, s2gc, sign        features without training, then a probe                   features
    node2vec                    features from random walks, then a probe                  node2vec
    fie, fie-reference          FisherEmbedding by the paper's equations, or by the
                                rule of its authors' code, then a probe                   features
    label-propagation           labels along edges, no features                           label_propagation
    mlp                         no graph                                                  networks
    gcn, sage, gat, gatv2       PyTorch Geometric's, trained by fishergraph.nn.train      networks
    fie-supervised              FisherNet, trained in the same way                        networks

One task is transductive: features, a graph, labels, and the nodes to train and to validate on. Labels of other nodes
are put away at the door, so no baseline can see a test label, whatever it is given. `fit` returns self; `seed` is an
argument of `fit`, and the same seed gives the same answer; nothing touches the global random state.

Baselines of features take `probe="logistic"` (the default), "lightgbm" or "mlp", and `probe_options`, for instance
`baseline("sgc", probe="lightgbm", probe_options={"time_budget": 600})`. Trained ones take `device`, `epochs`,
`batch_size` and `fan_out`. The extras are `torch` for trained ones, `baselines` for node2vec, `automl` for LightGBM.

A new baseline is a class with `_run(task, seed, progress)`, or a `Probed` with `_features`, and a line in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any

from fishergraph._validation import look_up
from fishergraph.baselines.base import Baseline

__all__ = ["BASELINES", "Baseline", "Recipe", "baseline"]


@dataclass(frozen=True)
class Recipe:
    """A line of the table: the class, imported when it is used, and the settings that make it what it is called."""

    home: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, **settings: Any) -> Baseline:
        """The baseline with these settings in place of its own."""
        kind = getattr(import_module(f"fishergraph.baselines.{self.home}"), self.kind)
        known = {name: None for name in signature(kind).parameters if name != "kind"}
        for name in settings:
            look_up(known, name, f"a setting of {self.kind}")
        return kind(**{**self.settings, **settings})


BASELINES: dict[str, Recipe] = {
    "wwl": Recipe("features", "WWL"),
    "node2vec": Recipe("node2vec", "Node2Vec"),
    "sgc": Recipe("features", "SGC"),
    "s2gc": Recipe("features", "S2GC"),
    "sign": Recipe("features", "SIGN"),
    "fie": Recipe("features", "FIE"),
    "fie-reference": Recipe("features", "FIE", {"attention": "reference", "bandwidth": 1.0}),
    "label-propagation": Recipe("label_propagation", "LabelPropagation"),
    "mlp": Recipe("networks", "Network", {"kind": "mlp"}),
    "gcn": Recipe("networks", "Network", {"kind": "gcn"}),
    "sage": Recipe("networks", "Network", {"kind": "sage", "hidden": 64}),
    "gat": Recipe("networks", "Network", {"kind": "gat", "hidden": 64, "heads": 8, "dropout": 0.6, "lr": 0.005}),
    "gatv2": Recipe("networks", "Network", {"kind": "gatv2", "hidden": 64, "heads": 8, "dropout": 0.6, "lr": 0.005}),
    "fie-supervised": Recipe("networks", "SupervisedFIE"),
}


def baseline(name: str, **settings: Any) -> Baseline:
    """The baseline of that name, with the settings of its paper but for the given ones; `fit` it next."""
    return look_up(BASELINES, name, "name").make(**settings)
