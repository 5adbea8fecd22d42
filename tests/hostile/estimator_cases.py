"""Hostile calls of the estimators and of the components that they take."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

import fishergraph as fg
from fishergraph.device import choose_device
from fishergraph.em.settings import choose_em
from fishergraph.estimators.graphs import choose_nodes
from fishergraph.estimators.readout import choose_readout
from fishergraph.family import choose_family
from fishergraph.kernel_map import choose_kernel
from fishergraph.multiset import choose_multiset
from fishergraph.walk import choose_walk
from hostile import ingredients as it
from hostile import parameters
from hostile.ingredients import Rng, made, pick
from hostile.rule import Fault

Case = tuple[str, Callable[[], Any]]
SMALL: dict[type, dict[str, Any]] = {
    fg.FisherEmbedding: {"n_layers": 1, "n_anchors": 2, "dim": 4, "random_state": 0, "n_jobs": 1},
    fg.FisherSetEmbedding: {"n_anchors": 2, "dim": 4, "random_state": 0, "n_jobs": 1},
    fg.FisherGraphEmbedding: {
        "nodes": fg.FisherEmbedding(n_layers=1, n_anchors=2, dim=4, walk=None, counts=True),
        "readout": fg.Readout(n_anchors=3, dim=3),
        "random_state": 0,
        "n_jobs": 1,
    },
}


def size(rng: Rng) -> tuple[int, int]:
    """(rows, columns)."""
    return int(pick(rng, (1, 2, 5, 8, 12, 20, 30))), int(pick(rng, (1, 2, 3, 5, 8)))


def settings_of(kind: type, rng: Rng) -> dict[str, Any]:
    """Changed parameters of an estimator or a module."""
    return parameters.parameters(rng, parameters.options_of(kind))


# --- data ---------------------------------------------------------------------------------------------------


def node_data(rng: Rng, d: int) -> tuple[str, tuple]:
    """Features and a graph."""
    n = size(rng)[0]
    label, X = it.matrix(rng, n, d)
    if rng.random() < 0.08:
        label, X = "X=None", None
    name, graph = it.graph(rng, n) if rng.random() < 0.7 else ("no graph", None)
    return f"{label}; {name}", (X, {"graph": graph})


def set_data(rng: Rng, d: int) -> tuple[str, tuple]:
    """Sets and the weights of their members."""
    label, sets = it.sets(rng, d)
    weights = None
    if rng.random() < 0.25 and isinstance(sets, list):
        weights = [it.vector(rng, s.shape[0] if hasattr(s, "shape") and s.shape else 2)[1] for s in sets]
    elif rng.random() < 0.1:
        weights = it.vector(rng, 10)[1]
    return label, (sets, {"weights": weights})


def graph_data(rng: Rng, d: int) -> tuple[str, tuple]:
    """A list of graphs."""
    label, graphs = it.graph_list(rng, d)
    return label, (graphs, {})


DATA = {
    fg.FisherEmbedding: node_data,
    fg.FisherSetEmbedding: set_data,
    fg.FisherGraphEmbedding: graph_data,
}

# --- estimators ---------------------------------------------------------------------------------------------


def _use(model: Any, data: tuple, other: tuple, how: str, change: dict[str, Any]) -> Any:
    """What one way of using an estimator gives."""
    (X, options), (X2, options2) = made(list(data)), made(list(other))
    if how == "transform before fit":
        return model.transform(X, **options)
    if how == "fit_transform":
        return model.fit_transform(X, **options)
    if how == "nested, then fit":
        return model.set_params(**made(change)).fit_transform(X, **options)
    model.fit(X, **options)
    if how == "other data":
        return model.transform(X2, **options2)
    if how in ("set_params", "nested"):
        return model.set_params(**made(change)).transform(X, **options)
    if how == "names":
        return [model.transform(X, **options), len(model.get_feature_names_out()), _parameters(model)]
    return model.transform(X, **options)


def _parameters(model: Any) -> int:
    """The length of what describes a model: its representation, its parameters and those of a clone."""
    return len(repr(clone(model))) + len(model.get_params()) + len(clone(model).get_params(deep=False))


HOW = (
    "fit_transform",
    "fit_transform",
    "fit_transform",
    "transform",
    "transform before fit",
    "other data",
    "set_params",
    "nested",
    "nested, then fit",
    "names",
)


def estimator(kind: type) -> Callable[[Rng], Case]:
    """The cases of an estimator."""

    def case(rng: Rng) -> Case:
        d = size(rng)[1]
        settings, how = settings_of(kind, rng), pick(rng, HOW)
        (label, data), (_, other) = DATA[kind](rng, d), DATA[kind](rng, d if rng.random() < 0.5 else d + 1)
        change = parameters.nested(rng, kind) if "nested" in how else settings_of(kind, rng)

        def action() -> Any:
            return _use(kind(**{**SMALL[kind], **made(settings)}), data, other, how, change)

        return f"{how} {label} {settings} {change if 'set' in how or 'nested' in how else ''}", action

    return case


def named(rng: Rng) -> Case:
    """Estimators that are made by a name, with other parameters."""
    label, (X, options) = node_data(rng, 3)
    changes = {**SMALL[fg.FisherEmbedding], **settings_of(fg.FisherEmbedding, rng)}
    name = pick(rng, ("default", "fast", "best", "paper", "published", parameters.absurd(rng)))

    def action() -> Any:
        make = fg.FisherEmbedding.published_code if isinstance(name, str) and name == "published" else _preset(name)
        return make(**made(changes)).fit_transform(made(X), **made(options))

    return f"{name} {label} {changes}", action


def _preset(name: Any) -> Callable[..., Any]:
    return lambda **changes: fg.FisherEmbedding.preset(name, **changes)


def ranges(rng: Rng) -> Case:
    """Sound parameters together with features at the ends of their range, which are not normalised."""
    kind = pick(rng, (fg.FisherEmbedding, fg.FisherEmbedding, fg.FisherSetEmbedding, fg.FisherGraphEmbedding))
    counts = rng.random() < 0.15
    model = fg.FisherEmbedding if kind is fg.FisherGraphEmbedding else kind
    settings = {**SMALL[model], **_sound(rng, parameters.options_of(model), counts=counts)}
    settings["normalize"] = bool(rng.random() < 0.4)
    if model is fg.FisherEmbedding:
        settings["n_layers"] = int(rng.integers(0, 4))
    readout = {"n_anchors": 3, "dim": 3, **_sound(rng, parameters.options_of(fg.Readout), counts=False)}
    scale, dtype = 10.0 ** int(rng.integers(-20, 21)), pick(rng, ("f4", "f8", "f2"))
    X = rng.normal(size=(12, 3)) * scale * 10.0 ** rng.integers(-3, 4, size=3)
    with np.errstate(over="ignore"):
        X = (np.abs(X) if counts else X).astype(dtype)
    A = it.adjacency(rng, 12)

    def action() -> Any:
        if kind is fg.FisherGraphEmbedding:
            given = made({name: each for name, each in settings.items() if name not in ("n_jobs", "random_state")})
            whole = kind(fg.FisherEmbedding(**given), fg.Readout(**made(readout)), random_state=0, n_jobs=1)
            graphs = [(X[:5], A[:5][:, :5]), (X[5:], A[5:][:, 5:])]
            return whole.fit(graphs).transform(graphs)
        if kind is fg.FisherSetEmbedding:
            sets = np.split(X, [2, 3, 8])
            return kind(**made(settings)).fit(sets).transform(sets)
        return kind(**made(settings)).fit(X, graph=A).transform(X, graph=A)

    return f"{kind.__name__} {scale:g} {dtype} {settings} {readout}", action


def _sound(rng: Rng, names: list[str], *, counts: bool) -> dict[str, Any]:
    """Up to four parameters with sound values, components with sound options among them."""
    left_out = ("device", "structure", "inputs", "block_weights", "random_state", "n_jobs", "verbose", "n_layers")
    names = [name for name in names if name not in left_out]
    chosen = {pick(rng, names): None for _ in range(int(rng.integers(1, 5)))}
    found = {
        name: parameters.sound(rng, name) for name in chosen if name in parameters.SOUND or name in parameters.KINDS
    }
    return found | ({"family": "multinomial"} if counts else {})


# --- components ---------------------------------------------------------------------------------------------


def components(rng: Rng) -> Case:
    """A component with hostile options, and a changed copy of it."""
    kind = pick(rng, parameters.COMPONENTS)
    waiting = parameters.component(rng, kind)
    names = [*parameters.options_of(kind), "nothing", "__x", "family__sharpness", "following__variance", "em__n_iter"]
    change = {pick(rng, names): 0 for _ in range(int(rng.integers(0, 3)))}
    change = {name: parameters.value(rng, name.rpartition("__")[2]) for name in change}

    def action() -> Any:
        one = made(waiting)
        two = one.set_params(**made(change))
        for record in (one, two):
            if clone(record) != record or pickle.loads(pickle.dumps(record)) != record:
                raise Fault(f"a copy of {record!r} is another component")
            if hash(record) != hash(type(record)(**record.get_params(deep=False))) or not repr(record):
                raise Fault(f"{record!r} is not what its parameters make")
        return [one.get_params(), two.get_params()]

    return f"{kind.__name__} {waiting} {change}", action


CHOICES: dict[str, Callable[[Any], Any]] = {
    "multiset": choose_multiset,
    "family": choose_family,
    "em": choose_em,
    "kernel": choose_kernel,
    "walk": choose_walk,
    "device": choose_device,
    "readout": choose_readout,
    "nodes": choose_nodes,
}


def choices(rng: Rng) -> Case:
    """What a parameter of an estimator becomes: a component of its kind, or an error."""
    name = pick(rng, CHOICES)
    value = parameters.nodes(rng) if name == "nodes" and rng.random() < 0.5 else parameters.value(rng, name)

    def action() -> Any:
        chosen = CHOICES[name](made(value))
        kinds = fg.FisherEmbedding if name == "nodes" else parameters.KINDS[name]
        if not isinstance(chosen, kinds) and not (name == "walk" and chosen is None):
            raise Fault(f"{name}={value!r} became {chosen!r}")
        return chosen if name == "nodes" else chosen.get_params() if chosen else None

    return f"{name}={value}", action
