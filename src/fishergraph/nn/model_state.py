"""What a model file of `FisherClassifier` holds, checked: the network, the classes and the history."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph._validation import check_flag, check_integer
from fishergraph.estimators.model_file import only
from fishergraph.nn.history import COLUMNS, History
from fishergraph.nn.models import FisherNet

_AGAIN = "get the file again."


def read_network(config: dict[str, Any], arrays: dict[str, np.ndarray], expected: dict[str, Any]) -> FisherNet:
    """The network of these arguments with these weights, which are taken out of `arrays`.

    `expected` are arguments that other parts of the file decide. Nothing is allocated before the shapes are compared.
    """
    for name, value in expected.items():
        if config.get(name) != value:
            raise ValueError(f"{name} of the network must be {value!r}, got {config.get(name)!r}; {_AGAIN}")
    check_integer(config["num_layers"], "num_layers", least=0, most=len(arrays))
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in FisherNet(**config).state_dict().items()}
    weights = {name: _weight(arrays.pop(name), name, shape) for name, shape in shapes.items()}
    kinds = {weight.dtype for name, weight in weights.items() if name.endswith("weight")}
    if len(kinds) != 1:
        raise ValueError(f"the weights of a network must be of one type, got {len(kinds)}; {_AGAIN}")
    net = FisherNet(**config).to(kinds.pop()).eval()
    net.load_state_dict(weights)
    return net


def _weight(array: np.ndarray, name: str, shape: torch.Size) -> Tensor:
    """One tensor of the state, of this shape."""
    if array.shape != tuple(shape):
        raise ValueError(f"{name} must have the shape {tuple(shape)}, got {array.shape}; {_AGAIN}")
    counted = name.endswith("num_batches_tracked")
    if array.dtype not in ((np.int64,) if counted else (np.float32, np.float64)):
        raise ValueError(f"{name} must hold {'integers' if counted else 'floats'}, got {array.dtype}; {_AGAIN}")
    weight = torch.from_numpy(array.copy())
    check_sign(name, weight)
    return weight


def check_sign(name: str, weight: Tensor) -> None:
    """Raise where a variance, or the mean number of counts, is not positive, or what a batch norm has seen negative."""
    positive = bool((weight > 0).all()) if name.endswith("_extra_state") else True
    counted = name.endswith(("num_batches_tracked", "running_var"))
    if not positive or (counted and bool((weight < 0).any())):
        raise ValueError(f"{name} must be {'not negative' if counted else 'positive'}, got others; {_AGAIN}")


def read_classes(values: Any, kind: Any) -> np.ndarray:
    """The labels of the classes, in order, in the type that they had."""
    if not isinstance(values, list) or not isinstance(kind, str) or len(values) < 1:
        raise TypeError("classes that are no list")
    dtype = np.dtype(kind)
    texts = all(isinstance(value, str) for value in values)
    if texts:
        fits = dtype.kind == "O" or (dtype.kind == "U" and dtype.itemsize == 4 * max(map(len, values)))
    else:
        fits = dtype.kind in "biuf" and all(isinstance(value, (int, float)) for value in values)
    if not fits:
        raise ValueError(f"classes must be of the type that the file says, got others than {kind}; {_AGAIN}")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values or classes.tolist() != sorted(set(values)):
        raise ValueError(f"classes must be sorted and distinct, got others; {_AGAIN}")
    return classes


def read_history(entry: Any) -> History:
    """The rows of a training, and how it ended."""
    only(entry, ("rows", "best_epoch", "stopped_early", "interrupted"))
    rows = entry["rows"]
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        raise TypeError("a history whose rows are no rows")
    best = check_integer(entry["best_epoch"], "best_epoch", least=0, most=len(rows))
    flags = (check_flag(entry.get(name, False), name) for name in ("stopped_early", "interrupted"))
    return History(rows, best, *flags)


def _is_row(row: Any) -> bool:
    numbers = (int, float, type(None))
    return (
        isinstance(row, dict) and set(row) == set(COLUMNS) and all(isinstance(row[name], numbers) for name in COLUMNS)
    )
