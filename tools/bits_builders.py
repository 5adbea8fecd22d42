"""Objects and calls of the library for tools/bits.py: the only file of it that knows the interface.

Each function takes plain settings (tools/bits_settings.py) under the parameter names of the first recording. After a
change of the interface, translate them here; then the hashes of both versions can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from bits_settings import Settings

import fishergraph

THREADS = {"n_jobs": 1}  # of everything that has threads; --jobs sets it
SEEDED: Settings = {"random_state": 0}


def make_engine(settings: Settings) -> AbstractContextManager:
    """The context that chooses the engine of these settings."""
    return fishergraph.config_context(engine=settings.get("backend"))


def make_multiset(given: tuple[str, Settings], **options: Any) -> Any:
    """What estimators take as `multiset`, from (name, options)."""
    name, own = given
    kinds = {"hops": "Hops", "pagerank": "PageRank", "heat": "HeatKernel", "step-average": "StepAverage"}
    kinds |= {"pairs": "Pairs", "paths": "Paths", "tuples": "Tuples"}
    kinds |= {"differences": "Differences", "neighbourhood": "Neighbourhood", "open-neighbourhood": "Neighbourhood"}
    options = {**own, **options, **({"closed": False} if name == "open-neighbourhood" else {})}
    return getattr(fishergraph, kinds[name])(**options)


_FAMILIES = {"gaussian-mixture": "GaussianMixture", "diagonal-mixture": "DiagonalMixture", "gaussian": "Gaussian"}
_FAMILIES |= {"von-mises-fisher": "VonMisesFisherMixture", "multinomial": "MultinomialMixture"}


def make_family(given: tuple[str, Settings], sharpness: float = 0.9, variance: Any = "auto", **options: Any) -> Any:
    """What estimators take as `family`, from (name, options)."""
    name, own = given
    mixture = {"sharpness": sharpness, "variance": variance}
    if name == "gaussian-mixture":
        options |= mixture
    if name == "multinomial":
        options["following"] = fishergraph.GaussianMixture(**mixture)
    return getattr(fishergraph, _FAMILIES[name])(**{**options, **own})


def take(settings: Settings, **names: str) -> Settings:
    """The settings of these names, which are taken out, under other names."""
    return {new: settings.pop(old) for old, new in names.items() if old in settings}


def layer_params(settings: Settings, *, sharpness: float, prior: float, bandwidth: float) -> Settings:
    """`family`, `em` and `kernel` of an estimator with these defaults; the settings are taken out."""
    steps = {"n_iter": "n_iter", "e_step": "e_step", "column_penalty": "column_penalty", "prior": "prior"}
    em = {"prior": prior, **take(settings, **steps, anchor_method="init", max_samples="max_samples")}
    mixture = take(settings, sharpness="sharpness", variance="variance", fisher="fisher", tangent="tangent")
    family = settings.pop("family", ("gaussian-mixture", {}))
    width = settings.pop("bandwidth", bandwidth)
    kernel = {"exp": fishergraph.Nystrom(bandwidth=width)}.get(settings.get("kernel", "exp"), "identity")
    settings.pop("kernel", None)
    return {
        "family": make_family(family, **{"sharpness": sharpness, **mixture}),
        "em": fishergraph.EM(**em),
        "kernel": kernel,
    }


# Estimators.


def node_params(given: Settings, *, sharpness: float = 0.9, bandwidth: float = 1.5) -> Settings:
    """The parameters of `FisherEmbedding`."""
    settings = {name: value for name, value in given.items() if name != "backend"}
    attention = settings.pop("attention", "posterior")
    params = layer_params(settings, sharpness=sharpness, prior=0.0, bandwidth=bandwidth)
    if attention == "reference":
        from fishergraph.published import PublishedMixture, PublishedNystrom

        kernel = params["kernel"]
        params["family"] = PublishedMixture()
        params["kernel"] = kernel if kernel == "identity" else PublishedNystrom(bandwidth=kernel.bandwidth)
        settings["teleport"] = None
    edges = take(settings, weights="weights", undirected="undirected")
    params["multiset"] = make_multiset(settings.pop("multiset", ("neighbourhood", {})), **edges)
    return {**params, **take(settings, teleport="walk"), **settings}


def make_node(settings: Settings) -> Any:
    return fishergraph.FisherEmbedding(**node_params(settings), **SEEDED, **THREADS)


def make_set(given: Settings) -> Any:
    settings = {name: value for name, value in given.items() if name != "backend"}
    params = layer_params(settings, sharpness=0.5, prior=1.0, bandwidth=0.8)
    if settings.get("input_map") == "exp":
        settings["input_map"] = fishergraph.Nystrom(bandwidth=given.get("bandwidth", 0.8))
    return fishergraph.FisherSetEmbedding(**params, **settings, **SEEDED, **THREADS)


def make_graph(given: Settings) -> Any:
    settings = dict(given)
    readout = take(
        settings,
        graph_anchors="n_anchors",
        readout="reading",
        graph_kernel="kernel",
        graph_dim="dim",
        unit_blocks="unit",
    )
    readout.setdefault("n_anchors", 128)
    family = settings.pop("graph_family", ("gaussian-mixture", {}))
    mixture = {name: settings[name] for name in ("variance",) if name in settings}
    readout["family"] = make_family(family, sharpness=settings.pop("graph_sharpness", 0.1), **mixture)
    if readout.get("kernel") == "exp":
        readout["kernel"] = fishergraph.Nystrom(bandwidth=settings.get("bandwidth", 1.0))
    own = take(settings, inputs="inputs", device="device")
    nodes = {"n_layers": 3, "n_anchors": 8, "dim": 128, "counts": True, "teleport": None, **settings}
    embedding = fishergraph.FisherEmbedding(**node_params(nodes, sharpness=0.4, bandwidth=1.0))
    parts = {"nodes": embedding, "readout": fishergraph.Readout(**readout)}
    return fishergraph.FisherGraphEmbedding(**parts, **own, **SEEDED, **THREADS)


def make_classifier(given: Settings) -> Any:
    from fishergraph.nn import Network, Training

    settings = {name: value for name, value in given.items() if name != "backend"}
    parts = {"network": Network, "training": Training}
    nested = {name: take(settings, **{key: key for key in kind().get_params()}) for name, kind in parts.items()}
    edges = take(settings, weights="weights", undirected="undirected")
    settings["multiset"] = make_multiset(settings.pop("multiset", ("neighbourhood", {})), **edges)
    layer = layer_params(settings, sharpness=0.9, prior=0.0, bandwidth=1.5)
    layer.pop("kernel")
    made = {name: kind(**nested[name]) for name, kind in parts.items()}
    return fishergraph.FisherClassifier(**made, **layer, **settings, **SEEDED, **THREADS)


def make_probe(settings: Settings) -> Any:
    return fishergraph.LogisticProbe(**settings)


# PyTorch Geometric. The settings have the parameter names of its layers.


def conv_params(given: Settings, bandwidth: float) -> Settings:
    """The parameters of a Fisher layer."""
    settings = {name: value for name, value in given.items() if name != "backend"}
    settings |= take(settings, num_em_steps="n_iter")
    head, width = settings.get("head"), settings.pop("bandwidth", bandwidth)
    if head == "nystrom":
        settings["head"] = fishergraph.Nystrom(bandwidth=width)
    if not settings.pop("bias", True) and head in (None, "linear"):
        from fishergraph.nn import LinearMap

        settings["head"] = LinearMap(bias=False)
    layer = layer_params(settings, sharpness=0.9, prior=0.0, bandwidth=1.5)
    layer.pop("kernel")
    if settings.pop("mixture_bias", False):
        from fishergraph.nn import WeightedMixture

        layer["family"] = WeightedMixture(**layer["family"].get_params())
    rule = {"weights": settings.pop("weights", None)}
    slots = settings.pop("slots", None)
    loops = settings.pop("add_self_loops", True)
    if slots is not None:
        settings["multiset"] = make_multiset(("paths", {"length": slots - 1}))
    else:
        settings["multiset"] = make_multiset(("neighbourhood", {"closed": loops}), **rule)
    return {**layer, **settings}


def make_conv(in_channels: int, settings: Settings) -> Any:
    from fishergraph.nn import FisherConv

    return FisherConv(in_channels, **{"out_channels": 8, "num_anchors": 3, **conv_params(settings, 1.5)})


def make_net(in_channels: int, settings: Settings) -> Any:
    from fishergraph.nn import FisherNet

    settings = {"head": "nystrom", **settings}
    return FisherNet(in_channels, 12, 2, **{"out_channels": 3, "num_anchors": 3, **conv_params(settings, 0.7)})


def make_aggregation(in_channels: int, settings: Settings) -> Any:
    from fishergraph.nn import FisherAggregation

    params = conv_params(settings, 1.5)
    params.pop("multiset")
    return FisherAggregation(in_channels, **{"num_anchors": 3, **params})


def run_training(net: Any, x: Any, y: Any, edge_index: Any, **options: Any) -> np.ndarray:
    """Train the network; the loss of every epoch."""
    from fishergraph.nn import train

    return np.array(train(net, x, y, edge_index, seed=0, **options, **THREADS).column("loss"))


# Functions.


def without_engine(settings: Settings) -> Settings:
    """The settings that functions take; `make_engine` has the engine."""
    return {name: value for name, value in settings.items() if name != "backend"}


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
    from fishergraph.ops.tensor_edges import tensor_sets

    return tensor_sets(sets)


def run_anchors(points: Any, n_anchors: int, **settings: Any) -> Any:
    return fishergraph.learn_anchors(points, n_anchors, rng=0, **settings, **THREADS)


def run_em_means(points: Any, sets: Any, anchors: Any, settings: Settings) -> tuple[Any, Any]:
    """Means and masses, of arrays or of tensors."""
    threads = THREADS if isinstance(points, np.ndarray) else {}
    means, mass = fishergraph.em_means(points, sets, anchors, variance=0.3, **without_engine(settings), **threads)
    return means, mass


def run_em_estimate(points: Any, sets: Any, family: str, settings: Settings) -> list[Any]:
    """The arrays of θ_0, of θ_ML of every multiset, and the masses."""
    theta = fishergraph.learn_family(make_family((family, {})), points, 3, rng=0, **THREADS)
    estimate, mass = fishergraph.em_estimate(points, sets, theta, **without_engine(settings))
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
