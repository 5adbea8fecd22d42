"""Hostile calls of the networks: tensors, modules and the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import fishergraph as fg
from fishergraph import FisherClassifier
from fishergraph.nn import FisherAggregation, FisherConv, FisherNet, Training, tensor_sets, train
from hostile import ingredients as it
from hostile.estimator_cases import SMALL, Case, node_data, settings_of, size
from hostile.function_cases import by_engine, labels
from hostile.ingredients import Rng, made, pick
from hostile.parameters import absurd, nested, options_of, parameters, value

torch.set_num_threads(1)
_TRAIN = ("lr", "weight_decay", "patience", "schedule", "batch_size", "num_neighbors", "near", "amp", "seed", "val")
_TRAIN += ("edge_weight", "loader", "checkpoint_every", "resume", "log", "checkpoint", "device")
_CALLS = {  # arguments of a call, beside features and edges
    "conv": ("size", "edge_weight", "return_attention_weights"),
    "net": ("batch", "batch_size", "num_sampled_nodes_per_hop", "edge_weight"),
    "aggregation": ("dim_size", "dim", "index", "ptr"),
}
_SMALL = {"n_layers": 1, "n_anchors": 2, "dim": 4, "training": Training(max_epochs=2), "random_state": 0, "n_jobs": 1}


def _tensor(rng: Rng, shape: tuple) -> torch.Tensor:
    array = it.dense(rng, shape)[1]
    native = np.array(array, dtype=array.dtype.newbyteorder("="), copy=True, subok=False)
    if native.dtype.kind not in "biufc" or native.dtype.itemsize > (16 if native.dtype.kind == "c" else 8):
        native = rng.normal(size=shape)
    tensor = torch.from_numpy(np.ascontiguousarray(native))
    return (
        tensor.to(pick(rng, (torch.float32, torch.float64, torch.float16, torch.bfloat16)))
        if rng.random() < 0.5
        else tensor
    )


def _edge_index(rng: Rng, n: int) -> Any:
    edges = np.stack(it.adjacency(rng, n).nonzero())
    if edges.size and rng.random() < 0.2:
        edges[0, 0] = pick(rng, (-1, n, 10**6))
    return torch.from_numpy(edges.astype(pick(rng, ("i8", "i8", "i8", "i4", "f8", "u1"))))


def tensors(rng: Rng) -> Case:
    n, d = size(rng)
    x, edges = _tensor(rng, (n, d)), _edge_index(rng, n)
    which = pick(rng, ("conv", "conv", "net", "aggregation", "train", "em_means", "sets", "embedding"))
    if which in ("conv", "net", "aggregation") and not bool(torch.isfinite(x.real.float()).all()):
        x = torch.randn(n, d)  # modules of PyTorch pass NaN on, and what float32 cannot hold as infinity
    weights = None if rng.random() < 0.6 else torch.from_numpy(it.edge_weights(rng, edges.shape[-1]).astype("f8"))
    label = f"{which} {x.dtype} {tuple(x.shape)} {edges.dtype}"
    beside = {key: absurd(rng) for key in _CALLS.get(which, ()) if rng.random() < 0.05}
    if which == "conv":
        settings = {"num_anchors": 2, **settings_of(FisherConv, rng)}
        settings = {"in_channels": d, "out_channels": 3, **settings}
        beside = {"edge_weight": weights, **beside}
        return f"{label} {settings} {beside}", lambda: FisherConv(**made(settings))(x, edges, **beside)
    if which == "net":
        settings = {"in_channels": d, "hidden_channels": 3, "num_layers": 1, "out_channels": 2, "num_anchors": 2}
        settings |= settings_of(FisherNet, rng)
        extra = pick(rng, [name for name in options_of(FisherConv) if "channels" not in name])
        settings |= {extra: value(rng, extra)} if rng.random() < 0.4 else {}
        beside = {"edge_weight": weights, **beside}
        return f"{label} {settings} {beside}", lambda: FisherNet(**made(settings))(x, edges, **beside)
    if which == "aggregation":
        settings = {"in_channels": d, "out_channels": 3, "num_anchors": 2, **settings_of(FisherAggregation, rng)}
        beside = {"index": torch.sort(torch.from_numpy(rng.integers(0, 4, size=n)))[0], **beside}
        return f"{label} {settings} {beside}", lambda: FisherAggregation(**made(settings))(x, **beside)
    if which == "train":
        options = {name: value(rng, name) for name in _TRAIN if rng.random() < 0.15}
        rows = pick(rng, (np.arange(n), np.arange(n) + 1, absurd(rng)))
        y = labels(rng, n)

        def run_train() -> Any:
            net = FisherNet(d, 3, 1, 2, num_anchors=2)
            return train(net, x, y, edges, **{"train": rows, "epochs": 1, **made(options)}).rows

        return f"{label} {options} {rows} {y}", run_train
    if which == "sets":
        options = {key: absurd(rng) for key in ("n_sets", "n_points") if rng.random() < 0.3}
        return f"{label} {options}", lambda: tensor_sets(edges, weights=weights, **options).weights
    if which == "embedding":
        settings = settings_of(fg.FisherEmbedding, rng)
        model = {**SMALL[fg.FisherEmbedding], **settings}
        return f"{label} {settings}", lambda: fg.FisherEmbedding(**made(model)).fit_transform(x, graph=edges)
    options = parameters(rng, ("variance", "prior", "n_iter", "e_step", "column_penalty", "bias", "engine"))
    anchors = _tensor(rng, (2, d))

    def run() -> Any:
        return list(
            by_engine(fg.em_means)(x, tensor_sets(edges, n_sets=n, n_points=n, weights=weights), anchors, **options)
        )

    return f"{label} {options}", run


def classifier(rng: Rng) -> Case:
    n = 12
    (label, (X, beside)), settings, y = node_data(rng, 3), settings_of(FisherClassifier, rng), labels(rng, n)
    change = nested(rng, FisherClassifier) if rng.random() < 0.4 else {}
    if X is not None and tuple(getattr(X, "shape", ()))[:1] != (n,):
        X, beside = it.matrix(rng, n, 3)[1], {"graph": it.graph(rng, n)[1]}

    def run() -> Any:
        model = FisherClassifier(**{**_SMALL, **made(settings)}).set_params(**made(change))
        if isinstance(model.training, Training):  # training is bounded elsewhere
            model.set_params(training__max_epochs=min(model.training.max_epochs, 2))
        return model.fit(X, y, **made(beside)).predict_proba(X, **made(beside))

    return f"{label} {y} {settings} {change}", run
