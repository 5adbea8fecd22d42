"""A fitted `GraphProbe` as arrays and JSON, for a model file, and back; what a file holds is validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._validation import check_integer, check_number
from fishergraph.io.array_file import only
from fishergraph.probes.mixture import Blend
from fishergraph.probes.mlp import MLP
from fishergraph.probes.models import AllColumns, Linear, Mixture, Model, Sharpened
from fishergraph.probes.sharpen import Sharpening
from fishergraph.probes.validation import take

Arrays = dict[str, np.ndarray]
_LAYERS = ("W1", "b1", "W2", "b2")  # of a network
_AXES = ("columns", "mean", "axes", "scale")  # of sharpened rows


def pack_mixture(mixture: Mixture, arrays: Arrays) -> dict[str, Any]:
    """The header's entry of a mixture, whose arrays are added to `arrays`."""
    sharpened: list[Sharpened] = []
    entries = []
    for k, (rows, classifier) in enumerate(mixture.models):
        if isinstance(rows, Sharpened) and rows not in sharpened:
            sharpened.append(rows)
        number = sharpened.index(rows) if isinstance(rows, Sharpened) else None
        entries.append({"kind": _pack_classifier(classifier, f"model{k}", arrays), "input": number})
    for k, rows in enumerate(sharpened):
        values = (rows.columns, rows.sharpening.mean, rows.sharpening.axes, rows.sharpening.scale)
        for name, value in zip(_AXES, values, strict=True):
            arrays[f"input{k}.{name}"] = value
    blend = mixture.blend
    arrays["weights"], arrays["temperatures"] = blend.weights, blend.temperatures
    numbers = {"temperature": blend.temperature, "accuracy": blend.accuracy, "loss": blend.loss}
    return {"models": entries, "inputs": len(sharpened), **numbers}


def _pack_classifier(classifier: Any, name: str, arrays: Arrays) -> str:
    if isinstance(classifier, Linear):
        arrays[f"{name}.theta"] = classifier.theta
        return "linear"
    if isinstance(classifier, MLP):
        for part, weight in zip(_LAYERS, classifier.weights, strict=True):
            arrays[f"{name}.{part}"] = weight
        return "mlp"
    raise InputError(
        "the heads 'lightgbm' and 'tabicl' hold models of other packages, which a model file cannot hold; "
        "fit without them, or keep the probe with joblib.",
        parameter="heads",
    )


def unpack_mixture(entry: object, arrays: Arrays, n_columns: int, n_classes: int) -> Mixture:
    """The mixture that `pack_mixture` wrote, for rows with that many columns; its arrays are taken out."""
    fields = only(entry, ("models", "inputs", "temperature", "accuracy", "loss"))
    n_inputs = check_integer(fields["inputs"], "inputs", least=0, most=len(arrays))
    inputs = [_unpack_input(f"input{k}", arrays, n_columns) for k in range(n_inputs)]
    everything, models = AllColumns(), []
    for k, model in enumerate(fields["models"]):
        number = only(model, ("kind", "input"))["input"]
        rows = everything if number is None else inputs[check_integer(number, "input", least=0)]
        width = n_columns if isinstance(rows, AllColumns) else rows.sharpening.axes.shape[1]
        models.append(Model(rows, _unpack_classifier(model["kind"], f"model{k}", arrays, width, n_classes)))
    return Mixture(models, _unpack_blend(fields, arrays, len(models)))


def _unpack_blend(fields: Mapping[str, Any], arrays: Arrays, n_models: int) -> Blend:
    weights, temperatures = (take(arrays, name, (n_models,)) for name in ("weights", "temperatures"))
    if n_models == 0 or weights.min() <= 0 or abs(weights.sum() - 1) > 1e-6 or temperatures.min() <= 0:
        raise ValueError("weights and temperatures must be positive, and weights must sum to one.")
    numbers = [check_number(fields[name], name) for name in ("temperature", "accuracy", "loss")]
    if numbers[0] == 0:
        raise ValueError("temperature must be positive.")
    return Blend(weights, temperatures, *numbers)


def _unpack_input(name: str, arrays: Arrays, n_columns: int) -> Sharpened:
    columns = arrays.pop(f"{name}.columns")
    if columns.ndim != 1 or columns.dtype.kind != "i" or not len(columns):
        raise ValueError(f"{name}.columns must hold column numbers.")
    if columns.min() < 0 or columns.max() >= n_columns or (np.diff(columns) <= 0).any():
        raise ValueError(f"{name}.columns must ascend from 0 to {n_columns - 1}.")
    axes = arrays.pop(f"{name}.axes")
    if axes.ndim != 2 or axes.dtype.kind != "f" or axes.shape[0] != len(columns) or axes.shape[1] < 1:
        raise ValueError(f"{name}.axes must have {len(columns)} rows of floats, got shape {axes.shape}.")
    mean, scale = take(arrays, f"{name}.mean", axes.shape[:1]), take(arrays, f"{name}.scale", axes.shape[1:])
    return Sharpened(columns, Sharpening(mean, axes, scale))


def _unpack_classifier(kind: str, name: str, arrays: Arrays, width: int, n_classes: int) -> Linear | MLP:
    if kind == "linear":
        return Linear(take(arrays, f"{name}.theta", (width + 1, n_classes)))
    if kind != "mlp":
        raise KeyError(kind)
    n_hidden = len(arrays[f"{name}.b1"])
    shapes = (width, n_hidden), (n_hidden,), (n_hidden, n_classes), (n_classes,)
    return MLP([take(arrays, f"{name}.{part}", shape) for part, shape in zip(_LAYERS, shapes, strict=True)])
