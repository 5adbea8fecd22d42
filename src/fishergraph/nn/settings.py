"""`Network` and `Training`: the options of `FisherClassifier` that belong to the network and to its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._component import Component
from fishergraph._errors import InputTypeError
from fishergraph._validation import MOST_COLUMNS, check_integer, check_number, look_up
from fishergraph.kernel_map import Nystrom
from fishergraph.nn.heads import choose_head
from fishergraph.nn.loader import check_fan_outs
from fishergraph.nn.loop import AMP
from fishergraph.nn.models import JK
from fishergraph.nn.training import MOST_EPOCHS, MOST_RATE, SCHEDULES

_INITS = {"data": True, "random": False}


@dataclass(frozen=True, repr=False)
class Network(Component):
    """What the network of a `FisherClassifier` is made of.

    Parameters
    ----------
    head : {"nystrom", "relu", "linear"} or Nystrom, default="nystrom"
        What makes the output of a layer from φ; "nystrom" is ``Nystrom(bandwidth=0.7)``.
    heads : int, default=1
        Mixtures side by side in a layer.
    jk : {"cat", "last"}, default="cat"
        Whether the classifier gets all layers or the last one.
    dropout : float in [0, 1], default=0.5
        Dropout of the rows that enter a layer or the classifier.
    input_dropout : float in [0, 1], default=0.0
        Dropout of X itself.
    init : {"data", "random"}, default="data"
        Start from anchors and landmarks that k-means finds without labels, or from random ones.

    See Also
    --------
    fishergraph.FisherClassifier : Takes it as `network`.
    FisherNet : The network itself.

    Examples
    --------
    >>> from fishergraph import FisherClassifier
    >>> from fishergraph.nn import Network
    >>> FisherClassifier(network=Network(head="relu", dropout=0.2))
    FisherClassifier(network=Network(head='relu', dropout=0.2))
    """

    head: str | Nystrom = "nystrom"
    heads: int = 1
    jk: str = "cat"
    dropout: float = 0.5
    input_dropout: float = 0.0
    init: str = "data"

    def check(self) -> None:
        """Raise unless every option is valid."""
        choose_head(self.head, identity=False)
        check_integer(self.heads, "heads", least=1, most=MOST_COLUMNS)
        look_up(JK, self.jk, "jk")
        check_number(self.dropout, "dropout", most=1.0)
        check_number(self.input_dropout, "input_dropout", most=1.0)
        look_up(_INITS, self.init, "init")

    @property
    def learns_start(self) -> bool:
        """Whether anchors and landmarks start from data."""
        return _INITS[self.init]


@dataclass(frozen=True, repr=False)
class Training(Component):
    """How a `FisherClassifier` is trained.

    Parameters
    ----------
    lr : float, default=0.001
        Learning rate of Adam.
    weight_decay : float, default=5e-4
        Weight decay of Adam.
    max_epochs : int, default=500
        The most epochs.
    patience : int or None, default=100
        Epochs without a better one after which the training stops; None never stops.
    schedule : {None, "cosine", "plateau"}, default=None
        Of the learning rate, as in `train`.
    validation_fraction : float in [0, 0.9], default=0.1
        The fraction of the labelled rows of each class that is held out if `fit` gets no `val`; 0 holds none out, and
        runs all epochs.
    batch_size : int or None, default=None
        Rows to train on in a step; None takes the whole graph at once, as multisets of pairs, paths and tuples must.
        Predictions always use all neighbours.
    fan_out : int, list of int or None, default=None
        Neighbours sampled at each distance with `batch_size`, one number or one per layer; None is 10.
    amp : {False, True, "bf16", "fp16"}, default=False
        The precision of products in training, as in `train`.

    See Also
    --------
    fishergraph.FisherClassifier : Takes it as `training`.
    train : Train a network.

    Examples
    --------
    >>> from fishergraph import FisherClassifier
    >>> from fishergraph.nn import Training
    >>> FisherClassifier(training=Training(lr=0.01, max_epochs=200))
    FisherClassifier(training=Training(lr=0.01, max_epochs=200))
    """

    lr: float = 0.001
    weight_decay: float = 5e-4
    max_epochs: int = 500
    patience: int | None = 100
    schedule: str | None = None
    validation_fraction: float = 0.1
    batch_size: int | None = None
    fan_out: Any = None
    amp: bool | str = False

    def check(self) -> None:
        """Raise unless every option is valid."""
        check_number(self.lr, "lr", strict=True, most=MOST_RATE)
        check_number(self.weight_decay, "weight_decay", most=MOST_RATE)
        check_integer(self.max_epochs, "max_epochs", least=1, most=MOST_EPOCHS)
        if self.patience is not None:
            check_integer(self.patience, "patience (or None)", least=1)
        look_up(SCHEDULES, "none" if self.schedule is None else self.schedule, "schedule (or None)")
        check_number(self.validation_fraction, "validation_fraction", most=0.9)
        if self.batch_size is not None:
            check_integer(self.batch_size, "batch_size (or None)", least=1, most=MOST_COLUMNS)
        if self.fan_out is not None:
            single = isinstance(self.fan_out, (int, np.integer))
            check_fan_outs([self.fan_out] if single else self.fan_out, "fan_out")
        if not isinstance(self.amp, bool):
            look_up(AMP, self.amp, "amp (or True, False)")


def choose_network(network: Network | None) -> Network:
    """Return the component, the default one for None."""
    return _choose(network, Network, "network")


def choose_training(training: Training | None) -> Training:
    """Return the component, the default one for None."""
    return _choose(training, Training, "training")


def _choose(value: Any, kind: Any, name: str) -> Any:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        expected, advice = f"be a {kind.__name__} component", f"pass {kind.__name__}(…)"
        raise InputTypeError(parameter=name, value=value, expected=expected, advice=advice)
    return value
