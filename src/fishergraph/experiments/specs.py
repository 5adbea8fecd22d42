"""What Table 1 consists of: a frozen record per method, with its settings and grid on each kind of graph: small, large,
and the sample of a large one.

The grids of FIE are those of the paper's two appendix tables; the others have the settings of their own publications
where the paper gives no grid. A grid holds settings of a method and nothing else: nodes, labels and seeds are none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fishergraph._optional import require
from fishergraph._validation import look_up
from fishergraph.experiments.paper import COLUMNS

Settings = Mapping[str, Any]

# The graphs of the table, and the kind of each; the sample of ogbn-arxiv is not in the paper.
DATASETS = {name: "small" if name in COLUMNS[:3] else "large" for name in COLUMNS} | {"ogbn_arxiv_sub18k": "sample"}
PLANETOID = COLUMNS[:3]
SEARCH_SEED = 1000  # the first of every search; the final runs have the seeds 0, 1, …
_ONE_TRIAL: Settings = {"time_budget": None, "n_trials": 1}  # of LightGBM in a quick run
_LEFT_OUT = {"small": ("sage",)}  # it averages whole bags of words for minutes, and the paper has no number for it
_NOT_SETTINGS = ("X", "y", "graph", "train", "val", "test", "seed", "split", "nodes", "labels", "mask")


@dataclass(frozen=True)
class Rung:
    """A round of the search: each point that is left is fitted with these settings on top, with `seeds` seeds; the best
    `keep` by their mean go on."""

    settings: Settings = field(default_factory=dict)
    keep: int = 1
    seeds: int = 1


@dataclass(frozen=True)
class Protocol:
    """What a method is run with on a kind of graph: fixed settings, a grid, and the rounds that choose from it."""

    settings: Settings = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    rungs: tuple[Rung, ...] = (Rung(),)
    seeds: int = 10

    def __post_init__(self):
        for name in itertools.chain(self.settings, self.grid, *(rung.settings for rung in self.rungs)):
            if name in _NOT_SETTINGS:
                raise ValueError(
                    f"a grid must hold settings of a method, got {name!r}; nodes, labels and seeds cannot be chosen."
                )

    def points(self) -> list[dict[str, Any]]:
        """The points of the grid; a single one without settings where there is no grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]


def point_cost(point: Settings) -> float:
    """What orders points from cheap to dear: the product of their numbers (width, components, layers)."""
    return math.prod(value for value in point.values() if isinstance(value, (int, float)))


@dataclass(frozen=True)
class Spec:
    """A line of the table: a name of `BASELINES`, what it is called, and its protocols.

    quick       settings of a quick run
    nested      the setting of which one fit serves every smaller value too, or None
    components  the setting that is the number of mixture components, or None; and how many seeds Figure 4 has of it
    heavy       what takes longest starts first
    needs       (module, extra) that must be installed
    paper       the line of the paper's table to stand beside, where it has another name
    """

    method: str
    title: str
    supervised: bool = False
    small: Protocol = Protocol()
    large: Protocol = Protocol()
    sample: Protocol = Protocol()
    quick: Settings = field(default_factory=dict)
    nested: str | None = None
    components: str | None = None
    component_seeds: int = 10
    heavy: int = 0
    needs: tuple[tuple[str, str], ...] = ()
    paper: str | None = None

    def protocol(self, dataset: str, *, quick: bool = False) -> Protocol:
        """The protocol on a graph of the table; a quick one has a corner of the grid, short runs and two seeds."""
        full: Protocol = getattr(self, look_up(DATASETS, dataset, "dataset"))
        if not quick:
            return full
        brief = {**self.quick, **({"probe_options": _ONE_TRIAL} if "probe_options" in full.settings else {})}
        rungs = tuple(Rung({**rung.settings, **brief}, min(rung.keep, 2)) for rung in full.rungs)  # one seed
        wide = {self.nested, self.components} - {None} or set(full.grid)
        grid = {name: values[: 2 if name in wide else 1] for name, values in full.grid.items()}
        return replace(full, settings={**full.settings, **brief}, grid=grid, rungs=rungs, seeds=2)


# The paper's two appendix tables: layers, hidden dimensions, mixture components.
_UNSUPERVISED = {"n_layers": (2, 3, 4), "dim": (128, 256, 512), "n_anchors": (1, 2, 4, 8)}
_SUPERVISED = {"n_layers": (2, 3, 4), "hidden": (16, 32, 64), "heads": (1, 2, 4, 8)}
_DEEPER = {"n_layers": (3, 4, 5)}

# Features on large graphs are read off by LightGBM; the search gives it less time than the final runs.
_BOOSTED: Settings = {"probe": "lightgbm", "probe_options": {"time_budget": 600}}
_BRIEFLY = (Rung({"probe_options": {"time_budget": 60}}),)
_SAMPLED: Settings = {"batch_size": 1024, "fan_out": [10, 10, 10], "epochs": 100, "patience": 20}
_TORCH, _WALKS = (("torch_geometric", "torch"),), (("gensim", "baselines"),)
# The sample is small enough for two cores and for steps on the whole graph: three seeds, and no penalty. The accuracy
# of one boosted model varies by a point with its seed: five are averaged, in the search too.
_SAMPLE_SEEDS = 3
_SAMPLE_BOOSTED: Settings = {"probe": "lightgbm", "probe_options": {"time_budget": 150, "n_models": 5}}
_SAMPLE_BRIEFLY = (Rung({"probe_options": {"time_budget": 30, "n_models": 5}}),)
_SAMPLE_WHOLE: Settings = {
    "hidden": 256, "n_layers": 3, "dropout": 0.5, "lr": 0.005, "weight_decay": 0.0, "epochs": 300, "patience": 50,
}  # fmt: skip


def _features(method: str, title: str, grid: Mapping[str, tuple[Any, ...]], **more: Any) -> Spec:
    """A method that is features and a probe; `deeper` and `sampled`: where its grid differs on large graphs, and on the
    sample; `quicker`: settings it has on the sample."""
    deeper, sampled, rung = more.pop("deeper", {}), more.pop("sampled", {}), Rung(seeds=more.pop("search_seeds", 1))
    quicker: Settings = {**_SAMPLE_BOOSTED, **more.pop("quicker", {})}
    small, large = Protocol(grid=grid, rungs=(rung,)), Protocol(_BOOSTED, {**grid, **deeper}, _BRIEFLY)
    sample = Protocol(quicker, {**grid, **sampled}, _SAMPLE_BRIEFLY, seeds=_SAMPLE_SEEDS)
    return Spec(method, title, small=small, large=large, sample=sample, **more)


def _network(method: str, title: str, *, large: Settings, **more: Any) -> Spec:
    """A network with the settings of its publication; on the sample, those that all networks have there."""
    return Spec(
        method, title, supervised=True, small=Protocol(), large=Protocol({**_SAMPLED, **large}),
        sample=Protocol({**_SAMPLE_WHOLE, "norm": "batch"}, seeds=_SAMPLE_SEEDS), needs=_TORCH,
        **{"quick": {"epochs": 15}, **more},
    )  # fmt: skip


_FEW_WALKS: dict[str, Any] = {"quick": {"n_walks": 1, "walk_length": 20}, "quicker": {"n_walks": 20}}
_FIE: dict[str, Any] = {
    "deeper": _DEEPER, "components": "n_anchors", "search_seeds": 5,
    "sampled": {"n_layers": (3, 4), "dim": (128, 512), "n_anchors": (1, 4)},
}  # fmt: skip
_SHORT = Rung({"epochs": 100, "patience": None}, keep=8)  # every point of the grid for 100 epochs; eight go on
_RELU: Settings = {"options": {"head": "relu"}}  # the paper's head on large graphs
_TRAINED = Spec(
    "fie-supervised", "FIE sup", supervised=True,
    small=Protocol(grid=_SUPERVISED, rungs=(_SHORT, Rung())),
    large=Protocol(
        settings={**_SAMPLED, **_RELU}, rungs=(Rung({"epochs": 10}),),
        grid={**_SUPERVISED, **_DEEPER, "hidden": (128, 256)},
    ),
    sample=Protocol({**_SAMPLE_WHOLE, **_RELU}, seeds=_SAMPLE_SEEDS),
    quick={"epochs": 15}, components="heads", component_seeds=3, heavy=2, needs=_TORCH,
)  # fmt: skip

# In the order of the table.
SPECS: dict[str, Spec] = {
    spec.method: spec
    for spec in (
        _features("wwl", "WWL", {"n_iter": (1, 2, 3, 4)}),
        _features("node2vec", "Node2vec", {}, heavy=1, needs=_WALKS, **_FEW_WALKS),
        _features("sgc", "SGC", {"n_steps": (2, 3, 4)}),
        _features("s2gc", "S²GC", {"n_steps": (8, 16)}),
        _features("sign", "SIGN", {"n_steps": (2, 3, 4)}),
        _features("fie", "FIE unsup", _UNSUPERVISED, nested="n_layers", **_FIE),
        _features("fie-reference", "FIE unsup, the authors' rule", _UNSUPERVISED, paper="fie", **_FIE),
        _network("mlp", "MLP", large={"hidden": 256, "n_layers": 3, "batch_size": None, "fan_out": None}),
        Spec("label-propagation", "Label Propagation", supervised=True, sample=Protocol(seeds=_SAMPLE_SEEDS)),
        _network("gcn", "GCN", large={"hidden": 256, "n_layers": 3}),
        _network("sage", "GraphSAGE", large={"hidden": 256, "n_layers": 3}),
        _network("gat", "GAT", large={"hidden": 256, "n_layers": 3}, heavy=1),
        _network("gatv2", "GATv2", large={"hidden": 256, "n_layers": 3}, heavy=1),
        _TRAINED,
    )
}


def choose_specs(methods: Iterable[str] | None) -> list[Spec]:
    """The records of these methods, or of all; an unknown name lists the known ones, a missing package its pip line."""
    specs = [look_up(SPECS, name, "a method") for name in (SPECS if methods is None else dict.fromkeys(methods))]
    for module, extra in dict.fromkeys(need for spec in specs for need in spec.needs):
        require(module, extra=extra)
    return specs


def left_out(method: str, dataset: str) -> bool:
    """Whether a method is run on a graph only where it is asked for by name."""
    return method in _LEFT_OUT.get(DATASETS[dataset], ())


def choose_datasets(names: Iterable[str]) -> list[str]:
    """The names of graphs of the table, each once; an unknown one lists the known ones."""
    for name in (chosen := list(dict.fromkeys(names))):
        look_up(DATASETS, name, "a dataset")
    return chosen
