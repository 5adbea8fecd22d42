"""The parameters of a trained network that `FisherClassifier` has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fishergraph._errors import InputError
from fishergraph._validation import MOST_COLUMNS, MOST_LAYERS, check_integer
from fishergraph.device import Device
from fishergraph.multiset import Rule

if TYPE_CHECKING:
    from fishergraph.nn import Training

SIZES = {"n_layers": 2, "n_anchors": 4, "dim": 64}  # of a network, if they are None
# The arguments of the network that come from a parameter of another name.
PARAMETERS = {
    "hidden_channels": "dim",
    "num_layers": "n_layers",
    "num_anchors": "n_anchors",
    **dict.fromkeys(("head", "heads", "jk", "dropout", "input_dropout"), "network"),
}


def component(kind: str, value: object) -> Any:
    """The component `Network` or `Training`, the default one for None; imports torch."""
    from fishergraph.nn import settings

    chosen: dict[str, Any] = {"network": settings.choose_network, "training": settings.choose_training}
    return chosen[kind](value)


def check_sizes(sizes: Mapping[str, Any]) -> None:
    """Raise an `InputError` unless the sizes of a network are integers in their ranges."""
    check_integer(sizes["n_layers"], "n_layers", least=0, most=MOST_LAYERS)
    check_integer(sizes["n_anchors"], "n_anchors", least=1, most=MOST_COLUMNS)
    check_integer(sizes["dim"], "dim", least=1, most=MOST_COLUMNS)


def check_network(device: Device, rule: Rule, training: Training) -> None:
    """Raise an `InputError` for a device or a multiset with which a network cannot be trained so."""
    if device.precision != "float32":
        expected = "have precision='float32' for a network"
        raise InputError(parameter="device", value=device, expected=expected, advice="use Training(amp='bf16')")
    if training.batch_size is not None and (rule.lifts or rule.kinds > 1):
        why = "whose members are made of several nodes" if rule.lifts else "which keeps directions apart"
        expected = f"be None with multiset={rule!r}, {why}"
        raise InputError(parameter="batch_size", value=training.batch_size, expected=expected)
