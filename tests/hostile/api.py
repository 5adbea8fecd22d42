"""Hostile calls of everything public that takes arrays, graphs, sets or parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import torch
from fishergraph.baselines.features import SGC
from sklearn.base import clone

import fishergraph as fg
from fishergraph import family as families
from fishergraph.datasets import synthetic
from fishergraph.datasets.prepare import Preparation, prepare
from fishergraph.datasets.records import GraphData
from fishergraph.nn import FisherConv, FisherNet
from fishergraph.nn.classifier import FisherClassifier
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.structural import describe_structure
from hostile import ingredients as it
from hostile.ingredients import Rng, made, pick

torch.set_num_threads(1)

SMALL: dict[type, dict[str, Any]] = {
    fg.FisherEmbedding: {"n_layers": 1, "n_anchors": 2, "dim": 4, "random_state": 0, "n_jobs": 1},
    fg.FisherSetEmbedding: {"n_anchors": 2, "dim": 4, "random_state": 0, "n_jobs": 1},
    fg.FisherGraphEmbedding: {
        "n_layers": 1,
        "n_anchors": 2,
        "dim": 4,
        "graph_anchors": 3,
        "graph_dim": 3,
        "random_state": 0,
        "n_jobs": 1,
    },
    FisherClassifier: {"n_layers": 1, "n_anchors": 2, "dim": 4, "max_epochs": 2, "random_state": 0, "n_jobs": 1},
}
Case = tuple[str, Callable[[], Any]]


def make(seed: int) -> Case:
    """(label, action) of a seed."""
    rng = np.random.default_rng(seed)
    names, shares = list(AREAS), np.array([share for _, share in AREAS.values()], dtype=float)
    name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
    label, action = AREAS[name][0](rng)
    return f"{name}: {label}"[:400], action


def _size(rng: Rng) -> tuple[int, int]:
    return int(pick(rng, (1, 2, 5, 8, 12, 20, 30))), int(pick(rng, (1, 2, 3, 5, 8)))


def _settings(kind: type, rng: Rng) -> dict[str, Any]:
    names = [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs", "options")]
    return it.parameters(rng, names)


# --- estimators ---------------------------------------------------------------------------------------------


def _use(model: Any, data: tuple, other: tuple, how: str, change: dict[str, Any]) -> Any:
    """What one way of using an estimator gives."""
    (X, options), (X2, options2) = made(list(data)), made(list(other))
    if how == "transform before fit":
        return model.transform(X, **options)
    if how == "fit_transform":
        return model.fit_transform(X, **options)
    model.fit(X, **options)
    if how == "other data":
        return model.transform(X2, **options2)
    if how == "set_params":
        return model.set_params(**made(change)).transform(X, **options)
    if how == "names":
        return [model.transform(X, **options), len(model.get_feature_names_out()), repr(clone(model))]
    return model.transform(X, **options)


HOW = (
    "fit_transform",
    "fit_transform",
    "fit_transform",
    "transform",
    "transform before fit",
    "other data",
    "set_params",
    "names",
)


def _estimator(kind: type, draw: Callable[[Rng, int], tuple[str, tuple]]) -> Callable[[Rng], Case]:
    def case(rng: Rng) -> Case:
        d = _size(rng)[1]
        settings, how = _settings(kind, rng), pick(rng, HOW)
        (label, data), (_, other) = draw(rng, d), draw(rng, d if rng.random() < 0.5 else d + 1)
        change = _settings(kind, rng)

        def action() -> Any:
            return _use(kind(**{**SMALL[kind], **made(settings)}), data, other, how, change)

        return f"{how} {label} {settings} {change if how == 'set_params' else ''}", action

    return case


def _node_data(rng: Rng, d: int) -> tuple[str, tuple]:
    n = _size(rng)[0]
    label, X = it.matrix(rng, n, d)
    if rng.random() < 0.08:
        label, X = "X=None", None
    name, graph = it.graph(rng, n) if rng.random() < 0.7 else ("no graph", None)
    return f"{label}; {name}", (X, {"graph": graph})


def _set_data(rng: Rng, d: int) -> tuple[str, tuple]:
    label, sets = it.sets(rng, d)
    weights = None
    if rng.random() < 0.25 and isinstance(sets, list):
        weights = [it.vector(rng, s.shape[0] if hasattr(s, "shape") and s.shape else 2)[1] for s in sets]
    elif rng.random() < 0.1:
        weights = it.vector(rng, 10)[1]
    return label, (sets, {"weights": weights})


def _graph_data(rng: Rng, d: int) -> tuple[str, tuple]:
    label, graphs = it.graph_list(rng, d)
    return label, (graphs, {})


# --- functions ----------------------------------------------------------------------------------------------


RANGE_OPTIONS = (
    "variance",
    "prior",
    "bandwidth",
    "n_em_iter",
    "e_step",
    "column_penalty",
    "family",
    "kernel",
    "fisher",
    "tangent",
    "counts",
    "teleport",
    "anchor_method",
    "multiset",
    "weights",
    "input_map",
    "readout",
    "graph_kernel",
    "graph_family",
    "attention",
)


def _ranges(rng: Rng) -> Case:
    """Sound parameters together with features at the ends of their range, which are not normalised."""
    kind = pick(rng, (fg.FisherEmbedding, fg.FisherEmbedding, fg.FisherSetEmbedding, fg.FisherGraphEmbedding))
    known = [name for name in RANGE_OPTIONS if name in inspect.signature(kind).parameters]
    chosen = {name: pick(rng, it.SOUND[name]) for name in (pick(rng, known) for _ in range(int(rng.integers(1, 5))))}
    settings = {**SMALL[kind], "n_layers": int(rng.integers(0, 4)), "normalize": bool(rng.random() < 0.4), **chosen}
    if kind is fg.FisherSetEmbedding:
        del settings["n_layers"]
    scale, dtype = 10.0 ** int(rng.integers(-20, 21)), pick(rng, ("f4", "f8", "f2"))
    X = rng.normal(size=(12, 3)) * scale * 10.0 ** rng.integers(-3, 4, size=3)
    with np.errstate(over="ignore"):
        X = (np.abs(X) if settings.get("family") == "multinomial" else X).astype(dtype)
    A = it.adjacency(rng, 12)
    data: tuple = (X,), {"graph": A}
    if kind is fg.FisherSetEmbedding:
        data = (np.split(X, [2, 3, 8]),), {}
    elif kind is fg.FisherGraphEmbedding:
        data = ([(X[:5], A[:5][:, :5]), (X[5:], A[5:][:, 5:])],), {}
    chosen["X"] = f"{scale:g} {dtype} {settings['normalize']}"
    return f"{kind.__name__} {chosen}", lambda: kind(**settings).fit(*data[0], **data[1]).transform(*data[0], **data[1])


def _call(label: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Case:
    return f"{label} {kwargs}", lambda: function(*made(list(args)), **made(kwargs))


def _as_graph(rng: Rng) -> Case:
    n, _ = _size(rng)
    name, graph = it.graph(rng, n)
    options = {key: it.absurd(rng) for key in ("undirected", "n_nodes", "node_ids") if rng.random() < 0.2}

    def read(graph: Any, **options: Any) -> Any:
        found = fg.as_graph(graph, **options)
        return [found.adjacency, found[: found.n_nodes // 2 + 1].weights]

    return _call(name, read, graph, **options)


def _rules(rng: Rng) -> Case:
    name, graph = it.graph(rng, _size(rng)[0])
    rule, weights = it.rule(rng), pick(rng, ("uniform", "symmetric", None, None, it.absurd(rng)))

    def run(graph: Any, rule: Any) -> Any:
        rule.check()
        sets = rule(fg.as_graph(graph), weights, 1)
        inner = sets.sets if sets.lifted else sets
        return [inner.weights, inner.indices]

    return f"{name} {rule} {weights}", lambda: run(made(graph), made(rule))


def _neighbourhoods(rng: Rng) -> Case:
    name, graph = it.graph(rng, _size(rng)[0])
    options = {key: it.absurd(rng) for key in ("closed", "weights") if rng.random() < 0.3}
    return _call(name, fg.neighbourhoods, graph, **options)


def _tuples(rng: Rng) -> Case:
    name, graph = it.graph(rng, int(rng.integers(1, 8)))
    options = {key: it.absurd(rng) for key in ("k", "s", "weights", "graph_ptr", "max_tuples") if rng.random() < 0.2}
    X = rng.normal(size=(8, 2))

    def run(graph: Any, **options: Any) -> Any:
        found = fg.node_tuples(fg.as_graph(graph), **options)
        return found.features(X[: fg.as_graph(graph).n_nodes])

    return _call(name, run, graph, **options)


def _em_means(rng: Rng) -> Case:
    n, d = _size(rng)
    names, points, anchors = it.matrix(rng, n, d)[0], it.matrix(rng, n, d)[1], it.matrix(rng, 2, d)[1]
    label, sets = it.multisets(rng, n)
    known = ("variance", "prior", "n_em_iter", "e_step", "column_penalty", "engine", "bias")
    means = _by_engine(fg.em_means)
    return _call(f"{names}; {label}", means, points, sets, anchors, n_jobs=1, **it.parameters(rng, known))


def _by_engine(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with `engine` as one more parameter."""

    def run(*arrays: Any, engine: Any = None, **options: Any) -> Any:
        with fg.config_context(engine=engine):
            return function(*arrays, **options)

    return run


def _em_estimate(rng: Rng) -> Case:
    n, d = _size(rng)
    label, points = it.matrix(rng, n, d)
    name, sets = it.multisets(rng, n)
    family = pick(rng, families.FAMILIES)
    options = it.parameters(rng, ("prior", "n_em_iter", "e_step", "column_penalty", "engine"))
    sample = np.abs(rng.normal(size=(9, d)))

    def run(points: Any, sets: Any, **options: Any) -> Any:
        theta = fg.learn_family(families.FAMILIES[family](), sample, 2, rng=0)
        found, mass = _by_engine(fg.em_estimate)(points, sets, theta, **options)
        return [found, mass, fg.tangent_kernel(found, found, theta)]

    return _call(f"{family} {label}; {name}", run, points, sets, **options)


def _learn(rng: Rng) -> Case:
    n, d = _size(rng)
    label, points = it.matrix(rng, n, d)
    options = {key: it.absurd(rng) for key in ("n_iter", "rng") if rng.random() < 0.15}
    count = it.absurd(rng) if rng.random() < 0.2 else 2
    if rng.random() < 0.5:
        more = {"method": it.SOUND["anchor_method"], "init": ("random", "k-means++")}
        options |= {key: pick(rng, (*values, it.absurd(rng))) for key, values in more.items() if rng.random() < 0.5}
        options |= {key: it.absurd(rng) for key in ("variance",) if rng.random() < 0.2}
        return _call(f"anchors {label} {count}", fg.learn_anchors, points, count, n_jobs=1, **options)
    family = it.family(rng)
    return _call(f"{family} {label} {count}", fg.learn_family, family, points, count, n_jobs=1, **options)


def _theta(rng: Rng, d: int) -> Any:
    """A parameter record made by hand, at times with a hostile part."""
    p = 2
    parts = {
        "gaussian-mixture": [rng.normal(size=(p, d)), 1.0],
        "gaussian": [rng.normal(size=(1, d)), np.eye(d)[None], np.zeros(d)],
        "diagonal-mixture": [np.log(np.full(p, 1 / p)), rng.normal(size=(p, d)), np.ones((p, d)), np.zeros(d)],
        "von-mises-fisher": [np.log(np.full(p, 1 / p)), 0.3 * np.ones((p, d)) / d, None],
        "multinomial": [np.log(np.full(p, 1 / p)), np.full((p, d), 1 / d), 3.0],
    }
    name = pick(rng, parts)
    found = parts[name]
    if rng.random() < 0.6:
        k = int(rng.integers(len(found)))
        found[k] = pick(
            rng,
            (
                it.absurd(rng),
                it.matrix(rng, p, d)[1],
                it.dense(rng, np.shape(found[k]) or (1,))[1] if found[k] is not None else 1,
            ),
        )
    return families.FAMILIES[name].theta(*found)


def _divergence(rng: Rng) -> Case:
    d = int(rng.integers(1, 4))
    p, q = _theta(rng, d), _theta(rng, d)
    q = type(p)(*p) if rng.random() < 0.7 else q
    function = pick(rng, (fg.kl_divergence, families.kl_bound, families.monte_carlo_kl))
    options = {"n_samples": 50, "rng": 0} if function is families.monte_carlo_kl else {}
    return _call(f"{function.__name__} {p} {q}", function, p, q, **options)


def _retract(rng: Rng) -> Case:
    d = int(rng.integers(1, 4))
    theta = _theta(rng, d)
    family = next(f for f in families.FAMILIES.values() if f.theta is type(theta))()
    label, phi = it.matrix(rng, 3, family.width(1 if family.name == "gaussian" else 2, d))
    return _call(f"{label} {theta}", fg.retract, family, phi, theta)


def _embedding(rng: Rng) -> Case:
    n, d = _size(rng)
    label, means = it.dense(rng, (n, 2, d))
    means = pick(rng, (means, means, means.tolist(), pick(rng, it.JUNK)))
    anchors, mass = it.matrix(rng, 2, d)[1], it.dense(rng, (n, 2))[1]
    root = pick(rng, (None, None, 0.5, it.absurd(rng), np.eye(2 * d), it.dense(rng, (2 * d, 2 * d))[1]))
    if rng.random() < 0.5:
        return _call(f"tangent {label} {root}", fg.tangent_kernel, means, means, anchors, fisher_root=root)
    mass = mass if rng.random() < 0.5 else None
    return _call(f"phi {label} {root}", fg.fisher_embedding, means, anchors, fisher_root=root, mass=mass)


def _kernels(rng: Rng) -> Case:
    kind, function, draw = pick(
        rng,
        (
            (fg.FisherEmbedding, fg.node_kernel, _node_data),
            (fg.FisherSetEmbedding, fg.set_kernel, _set_data),
            (fg.FisherGraphEmbedding, fg.graph_kernel, _graph_data),
        ),
    )
    label, (X, beside) = draw(rng, 3)
    settings = _settings(kind, rng)
    options = {key: it.absurd(rng) for key in ("cosine", "other", "n_jobs") if rng.random() < 0.2}
    options = {"n_jobs": 1, **options, "cosine": options.get("cosine", bool(rng.random() < 0.5))}

    def run(X: Any, **options: Any) -> Any:
        model = kind(**{**SMALL[kind], **made(settings)}) if rng.random() < 0.9 else it.absurd(rng)
        return function(X, **options, embedding=model)

    return _call(f"{function.__name__} {label} {settings}", run, X, **beside, **options)


def _structural(rng: Rng) -> Case:
    n = int(pick(rng, (1, 2, 5, 12, 30)))
    name, graph = it.graph(rng, n)
    options = {key: it.absurd(rng) for key in ("kind", "dim", "seed") if rng.random() < 0.15}
    options = {"kind": pick(rng, it.SOUND["structure"]), "dim": int(pick(rng, (4, 8, 40))), **options}
    if rng.random() < 0.1:
        return _call("describe", describe_structure, **options)
    return _call(name, fg.structural_features, graph, **options)


def _bounds(rng: Rng) -> Case:
    n = int(pick(rng, (1, 3, 9)))
    if rng.random() < 0.5:
        label, scores = it.vector(rng, n)
        y = pick(rng, (np.where(rng.random(n) < 0.5, -1, 1), it.vector(rng, n)[1]))
        diagonal = pick(rng, (np.ones(n), it.vector(rng, n)[1]))
        options = {key: it.absurd(rng) for key in ("margin", "delta", "chosen") if rng.random() < 0.2}
        norm = it.absurd(rng) if rng.random() < 0.2 else 1.0
        return _call(f"margin {label}", fg.margin_bound, scores, y, norm=norm, diagonal=diagonal, **options)
    label, anchors = it.matrix(rng, 3, 2)
    if rng.random() < 0.5:
        root = pick(rng, (None, it.absurd(rng), it.dense(rng, (6, 6))[1]))
        return _call(f"lipschitz {label} {root}", fg.lipschitz_constant, anchors, fisher_root=root)
    options = {key: it.absurd(rng) if rng.random() < 0.4 else 1.0 for key in ("variance", "radius")}
    return _call(f"set lipschitz {label}", fg.set_lipschitz_constant, anchors, **options)


def _labels(rng: Rng, n: int) -> Any:
    y = np.arange(n) % 2
    how = int(rng.integers(10))
    if how == 0:
        return it.vector(rng, n)[1]
    if how == 1:
        return np.array([f"c{k}" for k in y], dtype=object if rng.random() < 0.5 else None)
    if how == 2:
        return np.ma.masked_array(y, mask=y == 0)
    return y


def _rows(rng: Rng, low: int, high: int) -> Any:
    rows = np.arange(low, high)
    return (
        rows
        if rng.random() < 0.8
        else pick(
            rng,
            (
                rows.astype(float),
                -rows,
                rows[:0],
                rows + 100,
                it.absurd(rng),
                np.concatenate([rows, rows]),
                rows.astype("u8"),
                rows.tolist(),
            ),
        )
    )


def _probes(rng: Rng) -> Case:
    n = 12
    label, Z = it.matrix(rng, n, 3)
    y = _labels(rng, n)
    if rng.random() < 0.6:
        settings = _settings(fg.LogisticProbe, rng)

        def fit() -> Any:
            probe = fg.LogisticProbe(**{"max_iter": 50, **settings}).fit(Z, y, train, val)
            return [probe.coef_, probe.predict_proba(Z), probe.val_score_]

        train, val = _rows(rng, 0, 6), _rows(rng, 6, 10)
        return f"logistic {label} {y} {train} {settings}", fit
    folds = [(_rows(rng, 0, 8), _rows(rng, 8, 12))] if rng.random() < 0.9 else it.absurd(rng)
    names = ("probes", "Cs", "gammas", "inner", "repeats", "random_state")
    options = {"inner": 2, **{key: it.absurd(rng) for key in names if rng.random() < 0.08}}
    if rng.random() < 0.3:
        options["probes"] = (pick(rng, ("rbf-svm", "linear-svm", "logistic")),)
    return _call(f"nested {label} {folds}", lambda *a, **k: fg.nested_scores(*a, **k).test, Z, y, folds, **options)


def _as_graphs(rng: Rng) -> Case:
    label, graphs = it.graph_list(rng, 2)
    options = {key: it.absurd(rng) for key in ("features", "tags", "edge_tags", "undirected") if rng.random() < 0.1}

    def run(graphs: Any, **options: Any) -> Any:
        found = fg.as_graphs(graphs, **options)
        return [found.graph.weights, len(found), found[0].graph.weights]

    return _call(label, run, graphs, **options)


def _helpers(rng: Rng) -> Case:
    n, d = _size(rng)
    which = int(rng.integers(5))
    if which == 0:
        names = ("n_sets", "n_members", "n_classes", "noise", "seed")
        options = {"n_sets": 6, "n_members": 4, **{key: it.absurd(rng) for key in names if rng.random() < 0.2}}
        return _call("equal_mean_sets", lambda **k: synthetic.equal_mean_sets(**k)[0][0], **options)
    if which == 1:
        label, X = it.matrix(rng, n, d)
        options = {key: it.absurd(rng) for key in ("binary", "rows", "loops") if rng.random() < 0.3}

        def run() -> Any:
            data = GraphData("x", X, it.adjacency(rng, n).astype("f4"), np.zeros(n, int), *[np.arange(0)] * 3)
            return prepare(data, Preparation(**options)).X

        return f"prepare {label} {options}", run
    if which == 2:
        label, X = it.matrix(rng, 12, d)
        y, train, val = _labels(rng, 12), _rows(rng, 0, 6), _rows(rng, 6, 10)
        return f"SGC {label}", lambda: SGC().fit(X, y, graph=it.adjacency(rng, 12), train=train, val=val).proba_
    if which == 3:
        ptr = pick(rng, (it.absurd(rng), it.vector(rng, 4)[1], np.array([0, 2, 3]), np.array([0, 3, 1])))
        return _call("node_sets", fg.node_sets, ptr)
    label, X = it.matrix(rng, n, d)
    count, options = pick(rng, (3, it.absurd(rng))), {"bandwidth": pick(rng, (1.0, it.absurd(rng)))}

    def nystrom(X: Any, count: Any, **options: Any) -> Any:
        return fg.FisherEmbedding(n_layers=0, dim=count, random_state=0, n_jobs=1, **options).fit_transform(X)

    return _call(f"nystrom {label} {count}", nystrom, X, count, **options)


# --- tensors ------------------------------------------------------------------------------------------------


def _tensor(rng: Rng, shape: tuple) -> torch.Tensor:
    array = it.dense(rng, shape)[1]
    native = np.array(array, dtype=array.dtype.newbyteorder("="), copy=True, subok=False)
    if native.dtype.kind not in "biufc" or native.dtype.itemsize > (16 if native.dtype.kind == "c" else 8):
        native = rng.normal(size=shape)
    tensor = torch.from_numpy(np.ascontiguousarray(native))
    return (
        tensor.to(pick(rng, (torch.float32, torch.float64, torch.float16, torch.bfloat16)))
        if rng.random() < 0.5
        else tensor
    )


def _edge_index(rng: Rng, n: int) -> Any:
    edges = np.stack(it.adjacency(rng, n).nonzero())
    if edges.size and rng.random() < 0.2:
        edges[0, 0] = pick(rng, (-1, n, 10**6))
    return torch.from_numpy(edges.astype(pick(rng, ("i8", "i8", "i8", "i4", "f8", "u1"))))


def _tensors(rng: Rng) -> Case:
    n, d = _size(rng)
    x, edges = _tensor(rng, (n, d)), _edge_index(rng, n)
    which = pick(rng, ("conv", "net", "em_means", "sets", "embedding"))
    if which in ("conv", "net") and not bool(torch.isfinite(x.real.float()).all()):
        x = torch.randn(n, d)  # modules of PyTorch pass NaN on, and what float32 cannot hold as infinity
    weights = None if rng.random() < 0.6 else torch.from_numpy(it.edge_weights(rng, edges.shape[-1]).astype("f8"))
    label = f"{which} {x.dtype} {tuple(x.shape)} {edges.dtype}"
    if which == "conv":
        settings = {"num_anchors": 2, **_settings(FisherConv, rng)}
        settings = {"in_channels": d, "out_channels": 3, **settings}
        return f"{label} {settings}", lambda: FisherConv(**made(settings))(x, edges, weights)
    if which == "net":
        settings = {"in_channels": d, "hidden_channels": 3, "num_layers": 1, "out_channels": 2, "num_anchors": 2}
        settings |= _settings(FisherNet, rng)
        return f"{label} {settings}", lambda: FisherNet(**made(settings))(x, edges, weights)
    if which == "sets":
        options = {key: it.absurd(rng) for key in ("n_sets", "n_points") if rng.random() < 0.3}
        return f"{label} {options}", lambda: tensor_sets(edges, weights=weights, **options).weights
    if which == "embedding":
        settings = _settings(fg.FisherEmbedding, rng)
        model = {**SMALL[fg.FisherEmbedding], **settings}
        return f"{label} {settings}", lambda: fg.FisherEmbedding(**made(model)).fit_transform(x, graph=edges)
    options = it.parameters(rng, ("variance", "prior", "n_em_iter", "e_step", "column_penalty", "bias", "engine"))
    anchors = _tensor(rng, (2, d))

    def run() -> Any:
        return list(
            _by_engine(fg.em_means)(x, tensor_sets(edges, n_sets=n, n_points=n, weights=weights), anchors, **options)
        )

    return f"{label} {options}", run


def _classifier(rng: Rng) -> Case:
    n = 12
    (label, (X, beside)), settings, y = _node_data(rng, 3), _settings(FisherClassifier, rng), _labels(rng, n)
    if isinstance(settings.get("max_epochs"), Real) and settings["max_epochs"] > 2:
        settings.pop("max_epochs")  # training is bounded elsewhere
    if X is not None and tuple(getattr(X, "shape", ()))[:1] != (n,):
        X, beside = it.matrix(rng, n, 3)[1], {"graph": it.graph(rng, n)[1]}

    def run() -> Any:
        model = FisherClassifier(**{**SMALL[FisherClassifier], **made(settings)})
        return model.fit(X, y, **made(beside)).predict_proba(X, **made(beside))

    return f"{label} {y} {settings}", run


AREAS: dict[str, tuple[Callable[[Rng], Case], float]] = {
    "FisherEmbedding": (_estimator(fg.FisherEmbedding, _node_data), 24),
    "FisherSetEmbedding": (_estimator(fg.FisherSetEmbedding, _set_data), 14),
    "FisherGraphEmbedding": (_estimator(fg.FisherGraphEmbedding, _graph_data), 12),
    "ranges": (_ranges, 8),
    "as_graph": (_as_graph, 5),
    "as_graphs": (_as_graphs, 3),
    "rules": (_rules, 6),
    "neighbourhoods": (_neighbourhoods, 2),
    "node_tuples": (_tuples, 2),
    "em_means": (_em_means, 6),
    "em_estimate": (_em_estimate, 4),
    "learn": (_learn, 5),
    "divergence": (_divergence, 3),
    "retract": (_retract, 2),
    "embedding": (_embedding, 4),
    "kernels": (_kernels, 5),
    "structural": (_structural, 4),
    "bounds": (_bounds, 4),
    "probes": (_probes, 5),
    "helpers": (_helpers, 4),
    "tensors": (_tensors, 5),
    "FisherClassifier": (_classifier, 1),
}
