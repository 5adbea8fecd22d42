"""The methods of Table 1: a frozen record per method, with its protocol for small, large and sampled graphs.

The grids of FIE are those of the paper's two appendix tables. The other methods have the settings of their own
publications if the paper gives no grid. A grid holds settings of a method only: nodes, labels and seeds are not
settings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fishergraph._optional import require
from fishergraph._validation import look_up

Settings = Mapping[str, Any]

COLUMNS = ("cora", "citeseer", "pubmed", "reddit", "ogbn-arxiv", "ogbn-products")  # of the paper's table
PLANETOID = COLUMNS[:3]
# The graphs by the kind of their protocol; the sample of ogbn-arxiv is not in the paper.
DATASETS = {name: "small" if name in PLANETOID else "large" for name in COLUMNS} | {"ogbn_arxiv_sub18k": "sample"}
SEARCH_SEED = 1000  # the first seed of a search; the final runs have the seeds 0, 1, …
_ONE_TRIAL: Settings = {"time_budget": None, "n_trials": 1}  # of LightGBM in a quick run
_ON_REQUEST = {"small": ("sage",)}  # it averages wide bags of words for minutes, and is not in the paper there
_NOT_SETTINGS = ("X", "y", "graph", "train", "val", "test", "seed", "split", "nodes", "labels", "mask")


@dataclass(frozen=True)
class Rung:
    """A round of a search: its settings, how many of the best points it keeps, and the seeds of every point."""

    settings: Settings = field(default_factory=dict)
    keep: int = 1
    seeds: int = 1


@dataclass(frozen=True)
class Protocol:
    """How a method is run on a kind of graph: fixed settings, a grid, the rounds that choose from it, final seeds."""

    settings: Settings = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    rungs: tuple[Rung, ...] = (Rung(),)
    seeds: int = 10

    def __post_init__(self):
        for name in itertools.chain(self.settings, self.grid, *(rung.settings for rung in self.rungs)):
            if name in _NOT_SETTINGS:
                raise ValueError(f"a grid must hold settings of a method, got {name!r}; remove it.")

    def points(self) -> list[dict[str, Any]]:
        """The points of the grid; a single empty one if there is no grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]


def point_cost(point: Settings) -> float:
    """The product of the numbers of a point (width, components, layers), which orders points by their cost."""
    return math.prod(value for value in point.values() if isinstance(value, (int, float)))


@dataclass(frozen=True)
class Spec:
    """A line of the table."""

    method: str  # a name of BASELINES
    title: str
    supervised: bool = False
    small: Protocol = Protocol()  # for each kind of graph
    large: Protocol = Protocol()
    sample: Protocol = Protocol()
    quick: Settings = field(default_factory=dict)  # of a quick run
    nested: str | None = None  # a setting of which one fit serves every smaller value too
    components: str | None = None  # the setting that is the number of mixture components
    component_seeds: int = 10  # of each number of components in Figure 4
    cost: int = 0  # methods of higher cost start first
    needs: tuple[tuple[str, str], ...] = ()  # modules that must be installed, with their extras
    paper: str | None = None  # the line of the paper's table to compare with, if it has another name

    def protocol(self, dataset: str, *, quick: bool = False) -> Protocol:
        """The protocol for a graph; a quick one has a corner of the grid, short runs and two seeds."""
        full: Protocol = getattr(self, look_up(DATASETS, dataset, "dataset"))
        if not quick:
            return full
        short = {**self.quick, **({"probe_options": _ONE_TRIAL} if "probe_options" in full.settings else {})}
        rungs = tuple(Rung({**rung.settings, **short}, min(rung.keep, 2)) for rung in full.rungs)  # one seed
        wide = {self.nested, self.components} - {None} or set(full.grid)
        grid = {name: values[: 2 if name in wide else 1] for name, values in full.grid.items()}
        return replace(full, settings={**full.settings, **short}, grid=grid, rungs=rungs, seeds=2)


# --- the protocols ----------------------------------------------------------------------------------------

# The paper's two appendix tables: layers, hidden dimensions, mixture components.
_UNSUPERVISED = {"n_layers": (2, 3, 4), "dim": (128, 256, 512), "n_anchors": (1, 2, 4, 8)}
_SUPERVISED = {"n_layers": (2, 3, 4), "hidden": (16, 32, 64), "heads": (1, 2, 4, 8)}
_DEEPER = {"n_layers": (3, 4, 5)}
_TORCH = (("torch_geometric", "torch"),)


def _boosted(search_seconds: int, final_seconds: int, **options: Any) -> tuple[Settings, tuple[Rung, ...]]:
    """The probe of features on large graphs; the search gives it less time than the final runs."""
    search, final = ({"time_budget": seconds, **options} for seconds in (search_seconds, final_seconds))
    return {"probe": "lightgbm", "probe_options": final}, (Rung({"probe_options": search}),)


# Large graphs are trained on sampled batches. The sample is small enough for two cores and for steps on the whole
# graph: three seeds, no weight decay. The accuracy of one boosted model varies by a point with its seed: five are
# averaged, in the search too.
_BATCHES: Settings = {"batch_size": 1024, "fan_out": [10, 10, 10], "epochs": 100, "patience": 20}
_SAMPLE_SEEDS = 3
_SIZE: Settings = {"hidden": 256, "n_layers": 3}
_SAMPLE_TRAINING: Settings = {
    **_SIZE,
    **{"dropout": 0.5, "lr": 0.005, "weight_decay": 0.0, "epochs": 300, "patience": 50},
}


def _features(
    method: str,
    title: str,
    grid: Mapping[str, tuple[Any, ...]],
    *,
    large_grid: Settings | None = None,
    sample_grid: Settings | None = None,
    sample_settings: Settings | None = None,
    search_seeds: int = 1,
    **more: Any,
) -> Spec:
    """A method with a probe; the three mappings are its changes on large graphs and on the sample."""
    settings, rungs = _boosted(60, 600)
    large = Protocol(settings, {**grid, **(large_grid or {})}, rungs)
    settings, rungs = _boosted(30, 150, n_models=5)
    settings = {**settings, **(sample_settings or {})}
    sample = Protocol(settings, {**grid, **(sample_grid or {})}, rungs, seeds=_SAMPLE_SEEDS)
    small = Protocol(grid=grid, rungs=(Rung(seeds=search_seeds),))
    return Spec(method, title, small=small, large=large, sample=sample, **more)


def _network(method: str, title: str, *, cost: int = 0, **large: Any) -> Spec:
    """A network with the settings of its publication; on the sample, those that all networks have there."""
    return Spec(
        method,
        title,
        supervised=True,
        large=Protocol({**_BATCHES, **_SIZE, **large}),
        sample=Protocol({**_SAMPLE_TRAINING, "norm": "batch"}, seeds=_SAMPLE_SEEDS),
        quick={"epochs": 15},
        cost=cost,
        needs=_TORCH,
    )


def _fie(method: str, title: str, **more: Any) -> Spec:
    sample_grid = {"n_layers": (3, 4), "dim": (128, 512), "n_anchors": (1, 4)}
    grids = {"large_grid": _DEEPER, "sample_grid": sample_grid}
    return _features(method, title, _UNSUPERVISED, components="n_anchors", search_seeds=5, **grids, **more)


_NODE2VEC = _features(
    "node2vec",
    "Node2vec",
    {},
    cost=1,
    needs=(("gensim", "baselines"),),
    quick={"n_walks": 1, "walk_length": 20},
    sample_settings={"n_walks": 20},
)
_RELU: Settings = {"options": {"head": "relu"}}  # the paper's head on large graphs
_TRAINED_FIE = Spec(
    "fie-supervised",
    "FIE sup",
    supervised=True,
    # Every point of the grid for 100 epochs; eight go on.
    small=Protocol(grid=_SUPERVISED, rungs=(Rung({"epochs": 100, "patience": None}, keep=8), Rung())),
    large=Protocol(
        {**_BATCHES, **_RELU}, {**_SUPERVISED, **_DEEPER, "hidden": (128, 256)}, rungs=(Rung({"epochs": 10}),)
    ),
    sample=Protocol({**_SAMPLE_TRAINING, **_RELU}, seeds=_SAMPLE_SEEDS),
    quick={"epochs": 15},
    components="heads",
    component_seeds=3,
    cost=2,
    needs=_TORCH,
)

# In the order of the table.
SPECS: dict[str, Spec] = {
    spec.method: spec
    for spec in (
        _features("wwl", "WWL", {"n_iter": (1, 2, 3, 4)}),
        _NODE2VEC,
        _features("sgc", "SGC", {"n_steps": (2, 3, 4)}),
        _features("s2gc", "S²GC", {"n_steps": (8, 16)}),
        _features("sign", "SIGN", {"n_steps": (2, 3, 4)}),
        _fie("fie", "FIE unsup", nested="n_layers"),
        _fie("fie-reference", "FIE unsup, the authors' rule", paper="fie"),
        _network("mlp", "MLP", batch_size=None, fan_out=None),
        Spec("label-propagation", "Label Propagation", supervised=True, sample=Protocol(seeds=_SAMPLE_SEEDS)),
        _network("gcn", "GCN"),
        _network("sage", "GraphSAGE"),
        _network("gat", "GAT", cost=1),
        _network("gatv2", "GATv2", cost=1),
        _TRAINED_FIE,
    )
}


def choose_specs(methods: Iterable[str] | None) -> list[Spec]:
    """The records of these methods, or of all; raises for an unknown name or a package that is not installed."""
    specs = [look_up(SPECS, name, "a method") for name in (SPECS if methods is None else dict.fromkeys(methods))]
    for module, extra in dict.fromkeys(need for spec in specs for need in spec.needs):
        require(module, extra=extra)
    return specs


def on_request(method: str, dataset: str) -> bool:
    """Whether a method runs on a graph only if it is named."""
    return method in _ON_REQUEST.get(DATASETS[dataset], ())


def choose_datasets(names: Iterable[str]) -> list[str]:
    """The names, each once; an unknown one raises ValueError."""
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        look_up(DATASETS, name, "a dataset")
    return chosen
