"""The model file of a `FisherClassifier`: its classes and its network, validated."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph.estimators.model_file import register_components
from fishergraph.nn.checkpoint import check_sign
from fishergraph.nn.mixture import WeightedMixture
from fishergraph.nn.models import FisherNet
from fishergraph.nn.settings import Network, Training

register_components(Network, Training, WeightedMixture)


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


def read_classes(values: Any, name: Any) -> np.ndarray:
    """The labels of the classes, in order, in the dtype of that name."""
    if not isinstance(values, list) or not isinstance(name, str) or len(values) < 1:
        raise TypeError("classes that are not a list")
    dtype = np.dtype(name)
    if all(isinstance(value, str) for value in values):
        fits = dtype.kind == "O" or (dtype.kind == "U" and dtype.itemsize == 4 * max(map(len, values)))
    else:
        fits = dtype.kind in "biuf" and all(isinstance(value, (int, float)) for value in values)
    if not fits:
        raise ValueError(f"classes must have the dtype {name} of the file.")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values or classes.tolist() != sorted(set(values)):
        raise ValueError("classes must be sorted and distinct.")
    return classes
