"""Hostile parameters: values of every option of every component and estimator, sound ones among them."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import numpy as np

import fishergraph as fg
from fishergraph import family as families
from fishergraph import multiset as multisets
from fishergraph._component import Component
from fishergraph.device import Device
from fishergraph.kernel_map import Identity, Standardize
from fishergraph.nn import Network, Training, WeightedMixture
from fishergraph.published import PublishedMixture, PublishedNystrom
from hostile.ingredients import Later, Rng, made, pick

FAMILIES = (*families.FAMILIES.values(), PublishedMixture, WeightedMixture)
KERNELS = (fg.Nystrom, Identity, PublishedNystrom)
# The components that a parameter or an option takes.
KINDS: dict[str, tuple[type[Component], ...]] = {
    "multiset": multisets.RULES,
    "family": FAMILIES,
    "following": FAMILIES,
    "em": (fg.EM,),
    "kernel": KERNELS,
    "input_map": (*KERNELS, Standardize),
    "walk": (fg.Walk,),
    "readout": (fg.Readout,),
    "device": (Device,),
    "network": (Network,),
    "training": (Training,),
    "head": (fg.Nystrom, Identity),
}
COMPONENTS = tuple(dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds))

ABSURD = (
    None,
    "",
    "auto",
    "posterior ",
    -1,
    0,
    1,
    2,
    2**70,
    10**9,
    10**30,
    -(2**70),
    np.nan,
    np.inf,
    -np.inf,
    1e-300,
    1e300,
    1e-30,
    1e30,
    0.5,
    1.5,
    True,
    False,
    [],
    {},
    (),
    object(),
    np.float32(2),
    np.int64(3),
    np.array(3),
    np.array([1, 2]),
    np.array(["a"]),
    1j,
    b"cpu",
    "kmean",
    "exp ",
    "Neighbourhood",
    float,
    # Components in the wrong parameter, and classes in place of what they make.
    fg.EM(),
    fg.Walk(),
    fg.Hops(),
    fg.Nystrom(),
    fg.GaussianMixture(),
    fg.Readout(),
    Device(),
    Network(),
    Training(),
    fg.EM,
    fg.Hops,
    fg.Walk,
    fg.FisherEmbedding,
    fg.FisherSetEmbedding(),
)

NAMES = ("gaussian-mixture", "gaussian", "diagonal-mixture", "von-mises-fisher", "multinomial")
SOUND: dict[str, tuple] = {
    # estimators
    "n_layers": (0, 1, 2, 3),
    "n_anchors": (1, 2, 3, np.int64(3)),
    "dim": (1, 3, 8, np.int32(4)),
    "family": NAMES,
    "following": NAMES,
    "multiset": (
        *("neighbourhood", "open-neighbourhood", "differences", "hops", "pairs", "paths", "tuples"),
        *("ppr", "heat", "s2gc"),
    ),
    "kernel": ("exp", "identity"),
    "input_map": ("exp", "identity", "standardize"),
    "walk": (None, 0.01, 0.5, 1.0, 1),
    "em": (None,),
    "device": ("cpu",),
    "structure": ("projection", "degree", "spectral", "factors", "local"),
    "normalize": (True, False),
    "counts": (True, False),
    "block_weights": (None, [1, 1, 1, 1], [0, 0, 1, 0], [1e300, 1, 1, 1], [1e-300, 1, 1, 1], [1, 1, 1], [1, 1]),
    "inputs": ("auto", "degrees", ["degrees", "cores"], ["tags"], ["features", "degrees"]),
    "readout": (None, "counts", "weights", "means", "both"),
    "n_jobs": (1,),
    # EM
    "n_iter": (0, 1, 2, 3),
    "e_step": ("posterior", "balanced", "unbalanced"),
    "column_penalty": (0.0, 1e-6, 1e6),
    "prior": (0.0, 1.0, 1e12),
    "init": ("kmeans", "spherical", "em", "random"),
    "max_samples": (1, 10, 300_000),
    # families
    "variance": (1.0, 1e-12, 1e12, "auto"),
    "sharpness": (0.1, 0.5, 0.9, 1.0),
    "fisher": ("approximate", "exact"),
    "tangent": ("estimate", "score"),
    "power": (0.5, 1.0, 1e-3),
    "unit": (True, False),
    "smoothing": (0.5, 1e-6, 1e6),
    # kernels, walks, readouts, devices
    "bandwidth": (0.01, 1.0, 1e6),
    "teleport": (0.01, 0.1, 1.0),
    "reading": ("counts", "weights", "means", "both"),
    "name": ("cpu",),
    "precision": ("float32",),
    # multisets
    "weights": ("uniform", "symmetric", None),
    "undirected": (True, False),
    "closed": (True, False),
    "direction": (None, "in", "out", "both"),
    "members": (None, 1, 2, 64),
    "tolerance": (1e-4, 1e-15, 1.0),
    "time": (0.0, 5.0, 100.0),
    "steps": (1, 16, 100),
    "root": (0.05, 1.0, 1e-12),
    "k": (1, 2, 3),
    "decay": (1.0, 0.5, 1e-12),
    "seed": (0, 1, 2**64 - 1),
    "length": (1, 2, 5, 64),
    "max_paths": (None, 1, 128),
    "max_total": (10, 100_000_000),
    "s": (None, 1, 2),
    "max_tuples": (1, 100, 200_000),
    # functions
    "engine": (None, "numba", "scipy", "torch", "triton"),
    # networks
    "in_channels": (3, (3, 3), -1),
    "out_channels": (1, 3, None),
    "hidden_channels": (1, 3),
    "num_layers": (1, 2),
    "num_anchors": (1, 2, 3),
    "head": ("nystrom", "relu", "linear", "identity"),
    "heads": (1, 2),
    "concat": (True, False),
    "jk": ("cat", "last"),
    "dropout": (0.0, 0.5, 1.0),
    "input_dropout": (0.0, 0.5, 1.0),
    "member_dropout": (0.0, 0.5, 1.0),
    "residual": (True, False),
    "bias": (True, False),
    "project": ("auto", None, 1, 3),
    "pooling": (None, "mean", "fisher"),
    # training
    "lr": (0.001, 1.0, 1e-12),
    "weight_decay": (0.0, 5e-4, 1.0),
    "max_epochs": (1, 2),
    "patience": (None, 1, 100),
    "schedule": (None, "cosine", "plateau"),
    "validation_fraction": (0.0, 0.1, 0.9),
    "batch_size": (None, 1, 4, 100),
    "fan_out": (None, 1, 10, [2, 3], (2,)),
    "amp": (False, True, "bf16", "fp16"),
}
# These would leave the process: other devices, any number of threads, output to the screen.
_LEFT_OUT = {"device", "verbose", "n_jobs"}


def absurd(rng: Rng) -> Any:
    """A value that is wrong nearly everywhere."""
    return pick(rng, ABSURD)


def options_of(kind: type) -> list[str]:
    """The names of the options of a component, or of the parameters of an estimator or function."""
    if isinstance(kind, type) and issubclass(kind, Component):
        return [field.name for field in fields(kind)]
    return [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs", "options")]


def value(rng: Rng, name: str) -> Any:
    """A value of an option: a component that fits, another sound value, or an absurd one."""
    if name in KINDS and rng.random() < 0.5:
        return component(rng, pick(rng, KINDS[name]))
    return pick(rng, SOUND[name]) if name in SOUND and rng.random() < 0.6 else absurd(rng)


def component(rng: Rng, kind: type[Component]) -> Later:
    """A component of which up to two options have other values, made within the case."""
    names = options_of(kind)
    chosen = {pick(rng, names): 0 for _ in range(int(rng.integers(0, 3)))} if names else {}
    chosen = {name: value(rng, name) for name in chosen}
    return Later(lambda: kind(**made(chosen)))


def parameters(rng: Rng, names: Any) -> dict[str, Any]:
    """Up to three changed parameters of a constructor: other sound values, or absurd ones."""
    names = [name for name in names if name not in _LEFT_OUT or rng.random() < 0.1]
    found = {}
    for _ in range(int(pick(rng, (0, 0, 0, 0, 1, 1, 1, 2, 3)))):
        name = pick(rng, names)
        if name != "verbose":  # a callable there is the caller's own progress bar
            found[name] = nodes(rng) if name == "nodes" and rng.random() < 0.7 else value(rng, name)
    return found


def nodes(rng: Rng) -> Later:
    """A small node embedding for graphs, with other parameters."""
    chosen = {name: each for name, each in parameters(rng, options_of(fg.FisherEmbedding)).items() if name != "n_jobs"}
    small = {"n_layers": 1, "n_anchors": 2, "dim": 4, "walk": None}
    return Later(lambda: fg.FisherEmbedding(**{**small, **made(chosen)}))


def nested(rng: Rng, kind: type) -> dict[str, Any]:
    """Parameters of `set_params` with nested names, such as family__sharpness or nodes__em__prior."""
    found = {}
    for _ in range(int(rng.integers(1, 4))):
        name = _nested_name(rng, options_of(kind))
        found[name] = value(rng, name.rpartition("__")[2])
    return {name: each for name, each in found.items() if "verbose" not in name and "n_jobs" not in name}


def _nested_name(rng: Rng, names: list[str]) -> str:
    if rng.random() < 0.1:
        return pick(
            rng, ("nothing", "family__nothing", "a__b", "em__", "__em", "em__n_iter__x", "dim__x", "device__name")
        )
    first = pick(rng, [name for name in names if name in KINDS or name == "nodes"])
    if first == "nodes":
        return f"nodes__{_nested_name(rng, options_of(fg.FisherEmbedding))}"
    options = options_of(pick(rng, KINDS[first]))
    if not options:
        return first
    option = pick(rng, options)
    if option in KINDS and rng.random() < 0.5:  # an option of a component in a component
        inner = options_of(pick(rng, KINDS[option]))
        return f"{first}__{option}__{pick(rng, inner)}" if inner else f"{first}__{option}"
    return f"{first}__{option}"


def sound(rng: Rng, name: str) -> Any:
    """A value of an option that is possible by itself; components have such options too."""
    if name in KINDS and name not in ("device", "readout") and (name not in SOUND or rng.random() < 0.6):
        kind = pick(rng, KINDS[name])
        names = [option for option in options_of(kind) if option in SOUND]
        chosen = {pick(rng, names): None for _ in range(int(rng.integers(0, 3)))} if names else {}
        chosen = {option: sound(rng, option) for option in chosen}
        return Later(lambda: kind(**made(chosen)))
    return pick(rng, SOUND[name])
