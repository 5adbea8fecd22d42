"""The model file of a `FisherClassifier`: what is written, and the model made of it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fishergraph._version import __version__
from fishergraph.estimators.model_file import (
    COMMON,
    given_params,
    only,
    pack_features,
    plain_params,
    unpack_features,
    write_file,
)
from fishergraph.multiset import Tuples, choose_multiset, makes_lifted, slots_of
from fishergraph.nn.model_state import read_classes, read_history, read_network
from fishergraph.ops.torch_device import to_numpy

C = TypeVar("C")


def save_classifier(model: Any, path: str | Path) -> None:
    """Write a trained classifier to one safetensors file."""
    header = {
        "class": type(model).__name__,
        "fishergraph": __version__,
        "params": plain_params(model),
        **pack_features(model),
        "classes": model.classes_.tolist(),
        "classes_type": model.classes_.dtype.str,
        "network": model.net_.config(),
        "history": vars(model.history_),
    }
    write_file(path, header, {name: to_numpy(tensor) for name, tensor in model.net_.state_dict().items()})


def restore_classifier(cls: type[C], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> C:
    """The classifier of a header and its arrays."""
    only(header, (*COMMON, "classes", "classes_type", "network", "history"))
    model: Any = cls(**given_params(header))
    model._check_params()
    unpack_features(model, header)
    model.classes_ = read_classes(header["classes"], header["classes_type"])
    rule = choose_multiset(model.multiset)
    width = model.n_features_in_
    expected = {
        "in_channels": rule.n_columns(width) if isinstance(rule, Tuples) else width,
        "out_channels": len(model.classes_),
        "slots": slots_of(model.multiset) if makes_lifted(model.multiset) else None,
        "pooling": None,
    }
    model.net_ = read_network(header["network"], arrays, expected)
    model.history_ = read_history(header["history"])
    model.n_iter_ = len(model.history_)
    return model
