"""The network of a `FisherClassifier`: trained on the labelled nodes of a graph, and read from a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph._errors import InputError
from fishergraph._progress import costing, progress_bar
from fishergraph.costs import network_learning
from fishergraph.nn.checkpoint import check_sign
from fishergraph.nn.history import History
from fishergraph.nn.models import FisherNet
from fishergraph.nn.rows import as_tensor
from fishergraph.nn.settings import Network, Training
from fishergraph.nn.task import check_split
from fishergraph.nn.training import own_randomness, train
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.torch_device import find_device, to_numpy
from fishergraph.ops.torch_threads import sleeping_threads, torch_threads
from fishergraph.part import NONE, part_sets, rows_within


def fit_network(
    X: Any,
    sets: Any,
    codes: np.ndarray,
    held: np.ndarray,
    *,
    classes: Sequence[Any],
    config: Mapping[str, Any],
    network: Network,
    training: Training,
    device: str,
    seed: int,
    n_jobs: int | None,
    verbose: Any,
    files: Mapping[str, Any],
) -> tuple[FisherNet, History]:
    """The trained network, and a row per epoch; rows that are labelled and not held out are trained on."""
    rows = np.setdiff1d(np.flatnonzero(codes >= 0), held)
    check_split(*map(torch.from_numpy, (codes, rows, held)), names=classes)
    if len(codes) == 1 and network.head == "relu":
        raise InputError("head='relu' has a batch norm, which needs two rows, got n_samples=1; use 'linear'.")
    x, members, place = _on_host(X, device), tensor_sets(sets), find_device(device)
    options = _train_options(training, place, seed, n_jobs, verbose, files)
    with torch_threads(n_jobs), sleeping_threads():
        with own_randomness(place, seed):
            net = FisherNet(**config).to(place, x.dtype)
            if network.learns_start:
                cost = network_learning(x.shape, *(config[k] for k in ("hidden_channels", "num_layers", "num_anchors")))
                with costing(progress_bar(verbose), "learning", cost):
                    net.init_from_data(x.to(place), members.to(place), seed=seed)
        return net, train(net, x, codes, members, train=rows, val=held, **options)


def fit_stored_network(
    store: Any,
    codes: np.ndarray,
    held: np.ndarray,
    *,
    classes: Sequence[Any],
    config: Mapping[str, Any],
    network: Network,
    training: Training,
    device: str,
    seed: int,
    n_jobs: int | None,
    verbose: Any,
    files: Mapping[str, Any],
) -> tuple[FisherNet, History]:
    """`fit_network` on a graph that is read by rows, such as a `Store`."""
    rows = np.setdiff1d(np.flatnonzero(codes >= 0), held)
    check_split(*map(torch.from_numpy, (codes, rows, held)), names=classes)
    if training.batch_size is None:
        expected, advice = "be given for a store", "pass training=Training(batch_size=512)"
        raise InputError(parameter="batch_size", expected=expected, got="None", advice=advice)
    place = find_device(device)
    options = _train_options(training, place, seed, n_jobs, verbose, files)
    with torch_threads(n_jobs):
        with own_randomness(place, seed):
            net = FisherNet(**config).to(place)
            if network.learns_start:
                net.init_from_data(store, seed=seed)
        return net, train(net, store, torch.from_numpy(codes), train=rows, val=held, **options)


def stored_outputs(net: FisherNet, store: Any, *, device: str, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """`network_outputs` of a graph that is read by rows; the logits are kept in it."""
    with torch_threads(n_jobs):
        logits = net.to(find_device(device)).inference(store)
    proba = np.empty(logits.shape, logits.dtype)
    for rows in logits.slices():
        proba[rows] = torch.softmax(torch.from_numpy(np.ascontiguousarray(logits[rows])), dim=1).numpy()
    if not np.isfinite(proba).all():
        text = "the network returns numbers that are not finite; rescale X, fit again, or get the model file again."
        raise InputError(text, parameter="X")
    return proba.argmax(axis=1), proba


def network_outputs(
    net: FisherNet, X: Any, sets: Any, rows: np.ndarray | None = None, *, device: str, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The class numbers (row,) and class probabilities (row, class) of a trained network, of all rows or of some.

    The rows that the layers read of others are run with them.
    """
    if rows is not None and getattr(sets, "pool", None) is None:
        near, inner = rows_within(sets, np.unique(rows), len(net.convs))
        X, sets = X[near], part_sets(sets, np.where(inner, near, NONE), near)
        rows = np.searchsorted(near, rows)
    with torch_threads(n_jobs), sleeping_threads():
        place, first = find_device(device), next(net.parameters())
        logits = net.to(place).inference(_on_host(X, device).to(first.dtype), tensor_sets(sets), device=place)
        if not bool(torch.isfinite(logits).all()):
            text = "the network returns numbers that are not finite; rescale X, fit again, or get the model file again."
            raise InputError(text, parameter="X")
        logits = logits if rows is None else logits[torch.from_numpy(rows).to(logits.device)]
        return to_numpy(logits.argmax(1)), to_numpy(torch.softmax(logits, dim=1))


def network_weights(net: FisherNet) -> dict[str, np.ndarray]:
    """The weights and buffers of a network by name."""
    return {name: to_numpy(tensor) for name, tensor in net.state_dict().items()}


def _train_options(
    training: Training, place: torch.device, seed: int, n_jobs: int | None, verbose: Any, files: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of `train`."""
    options = training.get_params()
    del options["validation_fraction"]
    options |= {"epochs": options.pop("max_epochs"), "num_neighbors": options.pop("fan_out")}
    return options | {"device": place, "seed": seed, "n_jobs": n_jobs, "progress": verbose, **files}


def _on_host(X: Any, device: str) -> Tensor:
    """X as a tensor in host memory: in its own dtype for the CPU, in float32 for a GPU."""
    return as_tensor(X.astype(X.dtype if device == "cpu" else np.float32, copy=False))


# --- model files ------------------------------------------------------------------------------------------


def read_network(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> FisherNet:
    """The network of these arguments with its weights, which are taken out of `arrays`.

    Nothing is allocated before the shapes are compared.
    """
    if config["num_layers"] > len(arrays):
        raise ValueError(f"{config['num_layers']} layers must have weights, got {len(arrays)} arrays.")
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in FisherNet(**config).state_dict().items()}
    weights = {name: _weight(arrays.pop(name), name, shape) for name, shape in shapes.items()}
    dtypes = {weight.dtype for name, weight in weights.items() if name.endswith("weight")}
    if len(dtypes) != 1:
        raise ValueError(f"the weights of a network must have one dtype, got {len(dtypes)}.")
    net = FisherNet(**config).to(dtypes.pop()).eval()
    net.load_state_dict(weights)
    return net


def _weight(array: np.ndarray, name: str, shape: torch.Size) -> Tensor:
    """One tensor of the state, of this shape."""
    if array.shape != tuple(shape):
        raise ValueError(f"{name} must have the shape {tuple(shape)}, got {array.shape}.")
    counted = name.endswith("num_batches_tracked")
    if array.dtype not in ((np.int64,) if counted else (np.float32, np.float64)):
        raise ValueError(f"{name} must hold {'integers' if counted else 'floats'}, got {array.dtype}.")
    weight = torch.from_numpy(array.copy())
    check_sign(name, weight)
    return weight
