"""The cases of tools/bits.py: what is done with which settings and data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import bits_builders as build
import numpy as np
import scipy.sparse as sp
from bits_data import Nodes, adjacency, bags, edge_tensors, features, graphs, nodes
from bits_settings import (
    CLASSIFIER,
    CONV,
    CORA,
    EM,
    FAMILIES,
    FAMILY_OPTIONS,
    GRAPH,
    LAYER,
    MULTISETS,
    NET,
    NODE,
    SET,
    SMALL_GRAPH,
    SMALL_NET,
    SMALL_NODE,
    SMALL_SET,
    Settings,
)


class Unordered(tuple):
    """Arrays whose order does not matter, such as the parameters of a network; None is left out."""

    def __new__(cls, arrays: Iterable[Any]) -> Unordered:
        return super().__new__(cls, (array for array in arrays if array is not None))


class Case(NamedTuple):
    """The name, the names of the outputs, and the function that yields them."""

    name: str
    outputs: tuple[str, ...]
    run: Callable[[], Iterable[Any]]


TRANSFORMER = ("fit_transform", "transform", "load")


def transformer(make: Callable[[Settings], Any], settings: Settings, first: Any, other: Any) -> Iterator[Any]:
    """Outputs on the data of the fit, on other data, and on these after save and load; data are (X, keywords)."""
    with build.make_engine(settings):
        model = make(settings)
        yield model.fit_transform(first[0], **first[1])
        yield model.transform(other[0], **other[1])
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model")
            yield type(model).load(Path(folder) / "model").transform(other[0], **other[1])


def run_node(settings: Settings, dtype: str, kind: str) -> Iterator[Any]:
    def given(data: Nodes) -> tuple[Any, Settings]:
        if kind == "no-features":
            return None, {"graph": data.graph}
        X = features(data, "dense" if kind == "no-graph" else kind, dtype, settings)
        if kind == "no-graph":
            return X, {}
        return X, {"graph": edge_tensors(data.graph, dtype) if kind.startswith("tensor") else data.graph}

    settings = {**SMALL_NODE, **settings}
    return transformer(build.make_node, settings, given(nodes(0, 600)), given(nodes(1, 300)))


def node_cases() -> Iterator[Case]:
    def case(name: str, settings: Settings, *inputs: tuple[str, str]) -> Iterator[Case]:
        for dtype, kind in inputs:
            yield Case(f"node/{name}/{dtype}/{kind}", TRANSFORMER, partial(run_node, settings, dtype, kind))

    single, double = ("float32", "dense"), ("float64", "csr")
    tensors = (("float32", "tensor"), ("float64", "tensor-csr"))
    for name, settings in NODE.items():
        yield from case(name, settings, single, double)
    for number, (name, settings) in enumerate(FAMILY_OPTIONS.items()):
        yield from case(name, settings, double if number % 2 else single)
    yield from case(
        "defaults", {}, ("float64", "dense"), ("float32", "csr"), ("float32", "no-graph"), ("float32", "zero-rows")
    )
    for name in ("pagerank", "hops", "paths", "open-neighbourhood", "symmetric-weights", "undirected"):
        yield from case(name, MULTISETS[name], tensors[0])
    for name in ("defaults", "balanced", "3-iterations", "identity-kernel-counts", "spherical-anchors"):
        yield from case(name, LAYER[name], *tensors)
    for name in ("published-code", "no-walk"):
        yield from case(name, NODE[name], *tensors)
    for name in FAMILIES:
        yield from case(name, {"family": (name, {})}, tensors[0])
    for name in ("projection", "degree", "spectral"):
        for number in range(2):
            settings = {"structure": name, "multiset": ("pagerank" if number else "neighbourhood", {})}
            yield from case(f"{name}-{settings['multiset'][0]}", settings, ("float32", "no-features"))


def run_set(settings: Settings, dtype: str, kind: str) -> Iterator[Any]:
    def given(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[Any, Settings]:
        counts = settings.get("family", ("",))[0] == "multinomial"
        points, offsets = (data[1] if counts else data[0]).astype(dtype), data[2]
        if kind in ("list", "csr", "tensors"):
            sets = [points[start:stop] for start, stop in pairwise(offsets)]
            if kind == "tensors":
                import torch

                return [torch.from_numpy(part) for part in sets], {}
            return [sp.csr_array(part * (part > 0)) for part in sets] if kind == "csr" else sets, {}
        weights = np.random.default_rng(5).uniform(0.1, 2.0, size=len(points))
        return (points, offsets), {"weights": weights} if kind == "weighted" else {}

    return transformer(build.make_set, {**SMALL_SET, **settings}, given(bags(0, 150)), given(bags(1, 60)))


def run_long_sets(dtype: str) -> Iterator[Any]:
    """Sums over sets of 20,000 members."""
    rng = np.random.default_rng(3)
    points, offsets = rng.normal(size=(40_010, 3)).astype(dtype) + 5, np.array([0, 20_000, 20_010, 40_010])
    given = (points, offsets), {}
    return transformer(build.make_set, {**SMALL_SET, "kernel": "identity", "counts": True}, given, given)


def set_cases() -> Iterator[Case]:
    def case(name: str, settings: Settings, *inputs: tuple[str, str]) -> Iterator[Case]:
        for dtype, kind in inputs:
            yield Case(f"set/{name}/{dtype}/{kind}", TRANSFORMER, partial(run_set, settings, dtype, kind))

    for number, (name, settings) in enumerate([*SET.items(), *FAMILY_OPTIONS.items()]):
        yield from case(name, settings, ("float64", "weighted") if number % 2 else ("float32", "offsets"))
    for dtype in ("float32", "float64"):
        yield from case("defaults", {}, (dtype, "list"), (dtype, "csr"), (dtype, "tensors"))
        yield Case(f"set/long/{dtype}/offsets", TRANSFORMER, partial(run_long_sets, dtype))
    yield from case("3-iterations", {"n_iter": 3}, ("float32", "tensors"), ("float32", "weighted"))
    for family in FAMILIES:
        yield from case(family, {"family": (family, {})}, ("float64", "tensors"))


def graph_cases() -> Iterator[Case]:
    given, other = (graphs(0, 50), {}), (graphs(1, 20), {})
    for name, settings in GRAPH.items():
        run = partial(transformer, build.make_graph, {**SMALL_GRAPH, **settings}, given, other)
        yield Case(f"graph/{name}/float32/dictionaries", TRANSFORMER, run)
    bare = (([adjacency(entry) for entry in data], {}) for data, _ in (given, other))
    run = partial(transformer, build.make_graph, SMALL_GRAPH, *bare)
    yield Case("graph/defaults/float32/adjacency", TRANSFORMER, run)


def run_classifier(settings: Settings, dtype: str, kind: str) -> Iterator[Any]:
    def given(data: Nodes) -> Settings:
        X = None if kind == "no-features" else features(data, kind, dtype, settings)
        return {"X": X, "graph": data.graph}

    first, other = nodes(0, 600), nodes(1, 300)
    y, val = first.y.copy(), np.arange(120, 200)
    y[200:] = -1
    model = build.make_classifier({**SMALL_NET, **settings}).fit(y=y, val=val, **given(first))
    yield model.predict_proba(**given(first))
    yield model.predict_proba(**given(other))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        yield type(model).load(Path(folder) / "model").predict_proba(**given(other))


def classifier_cases() -> Iterator[Case]:
    def case(name: str, settings: Settings, dtype: str, kind: str) -> Case:
        run = partial(run_classifier, settings, dtype, kind)
        return Case(f"classifier/{name}/{dtype}/{kind}", ("fit", "predict", "load"), run)

    for number, (name, settings) in enumerate(CLASSIFIER.items()):
        yield case(name, settings, *(("float64", "csr") if number % 2 else ("float32", "dense")))
    yield case("defaults", {}, "float64", "dense")
    yield case("defaults", {}, "float32", "no-features")


def run_conv(settings: Settings, dtype: str, edges: str = "edges") -> Iterator[Any]:
    """Output of a layer initialised from data, its gradients, and what it has after three steps of Adam."""
    import torch

    data = nodes(0, 600)
    x = features(data, "tensor", dtype, settings).requires_grad_()
    index, weight = edge_tensors(data.graph, dtype)
    if edges == "paths":
        weight = None
        index, more = build.make_paths(data.graph, dtype)
        settings = {**settings, **more}
    with build.make_engine(settings):
        torch.manual_seed(0)
        conv = build.make_conv(x.shape[1], settings).to(x.dtype)
        conv.init_from_data(x.detach(), index, weight, seed=0)
        z = conv(x, index, weight)
        yield z
        (z * torch.linspace(0.5, 1.5, z.shape[1], dtype=z.dtype)).square().sum().backward()
        yield [x.grad, Unordered(parameter.grad for parameter in conv.parameters())]
        optimizer = torch.optim.Adam(conv.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            conv(x.detach(), index, weight).square().mean().backward()
            optimizer.step()
        yield Unordered(conv.parameters())
        yield conv.eval()(x, index, weight)


def run_attention(dtype: str) -> Iterator[Any]:
    """The attention of a layer, an aggregation, and a layer between two kinds of nodes."""
    import torch

    data = nodes(0, 600)
    x, (index, weight) = features(data, "tensor", dtype, {}), edge_tensors(data.graph, dtype)
    torch.manual_seed(0)
    conv = build.make_conv(x.shape[1], {"heads": 2}).to(x.dtype).init_from_data(x, index, weight)
    z, (edges, attention) = conv(x, index, weight, return_attention_weights=True)
    yield [z, edges, attention]
    pool = build.make_aggregation(x.shape[1], {"counts": True}).to(x.dtype).init_from_data(x)
    yield pool(x, torch.from_numpy(data.y))
    few = index[:, index[1] < 40]
    yield build.make_conv(x.shape[1], {"add_self_loops": False}).to(x.dtype)((x, x[:40]), few)


def run_star(dtype: str) -> Iterator[Any]:
    """A layer over a multiset of 40,000 members."""
    import torch

    x = torch.from_numpy(np.random.default_rng(4).normal(size=(40_000, 3)).astype(dtype)).requires_grad_()
    index = torch.stack([torch.arange(40_000), torch.zeros(40_000, dtype=torch.int64)])
    torch.manual_seed(0)
    conv = build.make_conv(3, {"normalize": False}).to(x.dtype)
    z = conv(x, index)
    yield z
    z.square().sum().backward()
    yield [x.grad, Unordered(parameter.grad for parameter in conv.parameters())]


def run_net(settings: Settings, dtype: str) -> Iterator[Any]:
    """A network: initialised from data, trained for three epochs, and all nodes layer by layer."""
    import torch

    settings = dict(settings)
    options, data = settings.pop("train", {}), nodes(0, 600)
    x, (index, weight) = features(data, "tensor", dtype, settings), edge_tensors(data.graph, dtype)
    torch.manual_seed(0)
    net = build.make_net(x.shape[1], settings).to(x.dtype)
    net.init_from_data(x, index, weight, seed=0)
    yield net.eval()(x, index, weight)
    rows = {"train": np.arange(150), "val": np.arange(150, 250)}
    losses = build.run_training(net, x, data.y, index, edge_weight=weight, **rows, epochs=3, **options)
    yield [losses, Unordered(net.parameters())]
    yield net.inference(x, index, weight, batch_size=200)


def run_pooled_net() -> Iterator[Any]:
    """Networks with one row per graph."""
    import torch

    data, batch = nodes(0, 600), torch.arange(600) // 30
    x, (index, weight) = features(data, "tensor", "float32", {}), edge_tensors(data.graph, "float32")
    for pooling in ("fisher", "mean"):
        torch.manual_seed(0)
        yield build.make_net(x.shape[1], {"pooling": pooling}).init_from_data(x, index, weight)(
            x, index, weight, batch=batch
        )


def nn_cases() -> Iterator[Case]:
    outputs = ("forward", "gradients", "steps", "after")
    for number, (name, settings) in enumerate(CONV.items()):
        for dtype in ("float32", "float64")[number % 2 :][:1] if number > 6 else ("float32", "float64"):
            yield Case(f"conv/{name}/{dtype}/tensor", outputs, partial(run_conv, settings, dtype))
    for head in ("linear", "nystrom"):
        yield Case(f"conv/paths-{head}/float32/tensor", outputs, partial(run_conv, {"head": head}, "float32", "paths"))
    for dtype in ("float32", "float64"):
        names = ("attention", "aggregation", "bipartite")
        yield Case(f"conv/attention/{dtype}/tensor", names, partial(run_attention, dtype))
        yield Case(f"conv/star/{dtype}/tensor", outputs[:2], partial(run_star, dtype))
    for number, (name, settings) in enumerate(NET.items()):
        dtype = "float32" if number % 2 == 0 or name in ("multinomial", "bfloat16") else "float64"
        yield Case(
            f"net/{name}/{dtype}/tensor", ("forward", "training", "inference"), partial(run_net, settings, dtype)
        )
    yield Case("net/pooling/float32/tensor", ("fisher", "mean"), run_pooled_net)


def run_em(settings: Settings, dtype: str, tensors: bool) -> Iterator[Any]:
    """Means and masses; with tensors also the gradients."""
    data = nodes(0, 600)
    points, sets = data.reals.astype(dtype), build.make_sets(data.graph, dtype)
    anchors = build.run_anchors(points, 3)
    with build.make_engine(settings):
        if not tensors:
            yield build.run_em_means(points, sets, anchors, settings)
            return
        import torch

        leaves = [torch.from_numpy(part).requires_grad_() for part in (points, anchors)]
        means, mass = build.run_em_means(leaves[0], build.make_tensor_sets(sets), leaves[1], settings)
        yield [means, mass]
        (means.square().sum() + mass.sum()).backward()
        yield Unordered(leaf.grad for leaf in leaves)


def run_family(family: str, dtype: str) -> Iterator[Any]:
    """EM of any family, from parameters learned from the points."""
    data = nodes(0, 600)
    points, sets = features(data, "dense", dtype, {"family": (family, {})}), build.make_sets(data.graph, dtype)
    for settings in ({}, {"n_iter": 3, "prior": 0.5}, {"e_step": "unbalanced"}):
        yield build.run_em_estimate(points, sets, family, settings)


def em_cases() -> Iterator[Case]:
    for name, settings in EM.items():
        for dtype in ("float32", "float64"):
            if settings.get("backend") != "torch":
                yield Case(f"em/{name}/{dtype}/dense", ("means",), partial(run_em, settings, dtype, False))
            if settings.get("backend") != "scipy":
                outputs = ("means", "gradients")
                yield Case(f"em/{name}/{dtype}/tensor", outputs, partial(run_em, settings, dtype, True))
    for number, family in enumerate(FAMILIES):
        dtype, outputs = ("float32", "float64")[number % 2], ("posterior", "3-iterations", "unbalanced")
        yield Case(f"em/{family}/{dtype}/dense", outputs, partial(run_family, family, dtype))


def run_kernels(dtype: str) -> Iterator[Any]:
    train, test = ((features(data, "dense", dtype, {}), data.graph) for data in (nodes(0, 600), nodes(1, 300)))
    for cosine in (False, True):
        yield build.run_node_kernel(SMALL_NODE, test, train, cosine=cosine)
    sets, other = ((points.astype(dtype), offsets) for points, _, offsets in (bags(0, 150), bags(1, 60)))
    yield build.run_set_kernel(SMALL_SET, sets)
    yield build.run_set_kernel(SMALL_SET, other, sets, cosine=True)
    yield build.run_graph_kernel(SMALL_GRAPH, graphs(0, 50))
    yield build.run_graph_kernel(SMALL_GRAPH, graphs(1, 20), graphs(0, 50), cosine=True)


def run_functions(dtype: str) -> Iterator[Any]:
    """The functions behind the estimators, one by one."""
    data = nodes(0, 600)
    points = data.reals.astype(dtype)
    anchors = build.run_anchors(points, 4, method="em", init="k-means++")
    yield anchors
    means, mass = build.run_em_means(points, build.make_sets(data.graph, dtype), anchors, {})
    yield build.run_phi(means, anchors, mass)
    yield build.run_tangent_kernel(means[:100], means[100:150], anchors)
    yield [build.run_structure(data.graph, kind) for kind in ("projection", "degree", "spectral")]


def run_probe(settings: Settings, dtype: str) -> Iterator[Any]:
    data = nodes(0, 600)
    Z = features(data, "dense", dtype, {})
    probe = build.make_probe(settings).fit(Z, data.y, np.arange(100), np.arange(100, 200))
    yield [probe.coef_, probe.intercept_, probe.val_scores_]
    yield probe.predict_proba(Z)


def other_cases() -> Iterator[Case]:
    kernels = ("node", "node-cosine", "set", "set-cosine", "graph", "graph-cosine")
    functions = ("anchors", "phi", "tangent-kernel", "structure")
    for dtype in ("float32", "float64"):
        yield Case(f"kernel/all/{dtype}/dense", kernels, partial(run_kernels, dtype))
        yield Case(f"function/all/{dtype}/dense", functions, partial(run_functions, dtype))
        for name, settings in {"defaults": {}, "refit": {"fit_on": "train+val", "patience": 3}}.items():
            yield Case(f"probe/{name}/{dtype}/dense", ("fit", "predict"), partial(run_probe, settings, dtype))


def run_cora(settings: Settings, dtype: str) -> Iterator[Any]:
    """The embedding at full size, its lower half as another graph, and a probe on the standard split."""
    cora = build.load_cora()
    X = None if "structure" in settings else cora.X.astype(dtype)
    model = build.make_node(settings)
    Z = model.fit_transform(X, graph=cora.graph)
    yield Z
    yield model.transform(X, graph=sp.csr_array(sp.tril(cora.graph)))
    train, val, _ = cora.split()
    yield build.make_probe({"Cs": [0.1, 10.0]}).fit(Z, cora.y, train, val).coef_


def run_cora_classifier() -> Iterator[Any]:
    cora = build.load_cora()
    y = np.where(np.isin(np.arange(len(cora.y)), cora.test), -1, cora.y)
    model = build.make_classifier({"max_epochs": 3}).fit(cora.X, y, graph=cora.graph, val=cora.val)
    yield model.predict_proba(cora.X, graph=cora.graph)


def cora_cases() -> Iterator[Case]:
    outputs = ("fit_transform", "transform", "probe")
    for name, settings in CORA.items():
        yield Case(f"cora/{name}/float32/csr", outputs, partial(run_cora, settings, "float32"))
    yield Case("cora/defaults/float64/csr", outputs, partial(run_cora, {}, "float64"))
    yield Case("cora/classifier/float32/csr", ("fit",), run_cora_classifier)


def all_cases() -> list[Case]:
    makers = (node_cases, set_cases, graph_cases, classifier_cases, nn_cases, em_cases, other_cases, cora_cases)
    return [case for maker in makers for case in maker()]
