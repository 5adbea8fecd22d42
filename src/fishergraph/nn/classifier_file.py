"""The model file of a `FisherClassifier`: what is written, and the model made of it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from fishergraph._version import __version__
from fishergraph.estimators.model_file import given_params, pack_features, plain_params, unpack_features, write_file
from fishergraph.nn.history import History
from fishergraph.nn.models import FisherNet
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
    model: Any = cls(**given_params(header))
    unpack_features(model, header)
    model.classes_ = np.array(header["classes"], dtype=header["classes_type"])
    state = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    model.net_ = FisherNet(**header["network"]).to(state["classifier.weight"].dtype).eval()
    model.net_.load_state_dict(state)
    model.history_ = History(**header["history"])
    model.n_iter_ = len(model.history_)
    return model
