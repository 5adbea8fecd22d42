"""Objects and calls of the library for tools/bits.py: the only file of it that knows the interface.

Each function takes plain settings (tools/bits_settings.py) under the parameter names of the first recording. After a
change of the interface, translate them here; then the hashes of both versions can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from bits_settings import Settings

import fishergraph

THREADS = {"n_jobs": 1}  # of everything that has threads; --jobs sets it
SEEDED: Settings = {"random_state": 0}


def make_engine(settings: Settings) -> AbstractContextManager:
    """The context that chooses the engine of these settings; none, while `backend` is a parameter."""
    return nullcontext()


def make_multiset(given: tuple[str, Settings]) -> Any:
    """What estimators take as `multiset`, from (name, options)."""
    name, options = given
    kinds = {"hops": "Hops", "pagerank": "PageRank", "heat": "HeatKernel", "step-average": "StepAverage"}
    kinds |= {"pairs": "Pairs", "paths": "Paths", "tuples": "Tuples"}
    return getattr(fishergraph, kinds[name])(**options) if name in kinds else name


def make_family(given: tuple[str, Settings]) -> Any:
    """What estimators take as `family`, from (name, options)."""
    kinds = {"gaussian-mixture": "GaussianMixture", "diagonal-mixture": "DiagonalMixture", "gaussian": "Gaussian"}
    kinds |= {"von-mises-fisher": "VonMisesFisherMixture", "multinomial": "MultinomialMixture"}
    return getattr(fishergraph, kinds[given[0]])(**given[1])


def made(settings: Settings) -> Settings:
    """The settings with objects in the place of pairs (name, options)."""
    builders = {"multiset": make_multiset, "family": make_family, "graph_family": make_family}
    return {key: builders[key](value) if key in builders else value for key, value in settings.items()}


# Estimators.


def make_node(settings: Settings) -> Any:
    return fishergraph.FisherEmbedding(**made(settings), **SEEDED, **THREADS)


def make_set(settings: Settings) -> Any:
    return fishergraph.FisherSetEmbedding(**made(settings), **SEEDED, **THREADS)


def make_graph(settings: Settings) -> Any:
    return fishergraph.FisherGraphEmbedding(**made(settings), **SEEDED, **THREADS)


def make_classifier(settings: Settings) -> Any:
    """A classifier; it takes the name of a family alone."""
    family = settings.get("family", ("gaussian-mixture", {}))[0]
    return fishergraph.FisherClassifier(**{**made(settings), "family": family}, **SEEDED, **THREADS)


def make_probe(settings: Settings) -> Any:
    return fishergraph.LogisticProbe(**settings)


# PyTorch Geometric. The settings have the parameter names of its layers.


def make_conv(in_channels: int, settings: Settings) -> Any:
    from fishergraph.nn import FisherConv

    return FisherConv(in_channels, **{"out_channels": 8, "num_anchors": 3, **made(settings)})


def make_net(in_channels: int, settings: Settings) -> Any:
    from fishergraph.nn import FisherNet

    return FisherNet(in_channels, 12, 2, **{"out_channels": 3, "num_anchors": 3, **made(settings)})


def make_aggregation(in_channels: int, settings: Settings) -> Any:
    from fishergraph.nn import FisherAggregation

    return FisherAggregation(in_channels, **{"num_anchors": 3, **made(settings)})


def run_training(net: Any, x: Any, y: Any, edge_index: Any, **options: Any) -> np.ndarray:
    """Train the network; the loss of every epoch."""
    from fishergraph.nn import train

    return np.array(train(net, x, y, edge_index, seed=0, **options, **THREADS).column("loss"))


# Functions.


def load_cora() -> Any:
    return fishergraph.load_graph("cora")


def make_sets(adjacency: Any, dtype: str) -> Any:
    """The closed neighbourhoods of a graph, with its weights."""
    return fishergraph.neighbourhoods(fishergraph.as_graph(adjacency), dtype=dtype)


def make_paths(adjacency: Any, dtype: str) -> tuple[Any, Settings]:
    """The paths of a graph as multisets, and the settings of a layer that takes them."""
    sets = make_multiset(("paths", {}))(fishergraph.as_graph(adjacency), dtype=dtype)
    return sets, {"slots": sets.slots}


def make_tensor_sets(sets: Any) -> Any:
    from fishergraph.ops.torch_edges import tensor_sets

    return tensor_sets(sets)


def run_anchors(points: Any, n_anchors: int, **settings: Any) -> Any:
    return fishergraph.learn_anchors(points, n_anchors, rng=0, **settings, **THREADS)


def run_em_means(points: Any, sets: Any, anchors: Any, settings: Settings) -> tuple[Any, Any]:
    """Means and masses, of arrays or of tensors."""
    threads = THREADS if isinstance(points, np.ndarray) else {}
    means, mass = fishergraph.em_means(points, sets, anchors, variance=0.3, **settings, **threads)
    return means, mass


def run_em_estimate(points: Any, sets: Any, family: str, settings: Settings) -> list[Any]:
    """The arrays of θ_0, of θ_ML of every multiset, and the masses."""
    theta = fishergraph.learn_family(make_family((family, {})), points, 3, rng=0, **THREADS)
    estimate, mass = fishergraph.em_estimate(points, sets, theta, **settings)
    return [part for part in (*theta, *estimate, mass) if part is not None]


def run_phi(means: Any, anchors: Any, mass: Any) -> Any:
    return fishergraph.fisher_embedding(means, anchors, mass=mass)


def run_tangent_kernel(means: Any, other_means: Any, anchors: Any) -> Any:
    return fishergraph.tangent_kernel(means, other_means, anchors)


def run_structure(adjacency: Any, kind: str) -> Any:
    return fishergraph.structural_features(adjacency, kind, dim=8, seed=1)


def run_node_kernel(settings: Settings, nodes: Sequence[Any], other: Sequence[Any], *, cosine: bool) -> Any:
    """The kernel of (X, graph) and (X, graph)."""
    return fishergraph.node_kernel(*nodes, *other, embedding=make_node(settings), cosine=cosine, **THREADS)


def run_set_kernel(settings: Settings, sets: Any, other: Any = None, *, cosine: bool = False) -> Any:
    return fishergraph.set_kernel(sets, other, embedding=make_set(settings), cosine=cosine, **THREADS)


def run_graph_kernel(settings: Settings, graphs: Any, other: Any = None, *, cosine: bool = False) -> Any:
    return fishergraph.graph_kernel(graphs, other, embedding=make_graph(settings), cosine=cosine, **THREADS)
