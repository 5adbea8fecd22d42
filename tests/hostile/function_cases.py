"""Hostile calls of the functions: graphs, multisets, EM, families, kernels, bounds, probes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fishergraph as fg
from fishergraph import family as families
from fishergraph.datasets import synthetic
from fishergraph.datasets.prepare import Preparation, prepare
from fishergraph.datasets.records import GraphData
from fishergraph.lab import nested_scores
from fishergraph.lab.baselines.smoothing import SGC
from fishergraph.structural import fit_structure
from hostile import ingredients as it
from hostile.estimator_cases import SMALL, Case, graph_data, node_data, set_data, settings_of, size
from hostile.ingredients import Rng, made, pick
from hostile.parameters import FAMILIES, KINDS, SOUND, absurd, component, parameters


def call(label: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Case:
    return f"{label} {kwargs}", lambda: function(*made(list(args)), **made(kwargs))


def as_graph(rng: Rng) -> Case:
    n, _ = size(rng)
    name, graph = it.graph(rng, n)
    options = {key: absurd(rng) for key in ("undirected", "n_nodes", "node_ids") if rng.random() < 0.2}

    def read(graph: Any, **options: Any) -> Any:
        found = fg.as_graph(graph, **options)
        return [found.adjacency, found[: found.n_nodes // 2 + 1].weights]

    return call(name, read, graph, **options)


def rules(rng: Rng) -> Case:
    name, graph = it.graph(rng, size(rng)[0])
    rule = component(rng, pick(rng, KINDS["multiset"]))
    beside = {key: absurd(rng) for key in ("n_jobs", "dtype") if rng.random() < 0.05}

    def run(graph: Any, rule: Any) -> Any:
        sets = rule(graph, **{"n_jobs": 1, **beside})
        inner = sets.sets if sets.lifted else sets
        return [inner.weights, inner.indices]

    return f"{name} {rule} {beside}", lambda: run(made(graph), made(rule))


def neighbourhoods(rng: Rng) -> Case:
    name, graph = it.graph(rng, size(rng)[0])
    options = {key: absurd(rng) for key in ("closed", "weights") if rng.random() < 0.3}
    return call(name, fg.neighbourhoods, graph, **options)


def tuples(rng: Rng) -> Case:
    name, graph = it.graph(rng, int(rng.integers(1, 8)))
    options = {key: absurd(rng) for key in ("k", "s", "weights", "graph_ptr", "max_tuples") if rng.random() < 0.2}
    X = rng.normal(size=(8, 2))

    def run(graph: Any, **options: Any) -> Any:
        found = fg.node_tuples(fg.as_graph(graph), **options)
        return found.features(X[: fg.as_graph(graph).n_nodes])

    return call(name, run, graph, **options)


def em_means(rng: Rng) -> Case:
    n, d = size(rng)
    names, points, anchors = it.matrix(rng, n, d)[0], it.matrix(rng, n, d)[1], it.matrix(rng, 2, d)[1]
    label, sets = it.multisets(rng, n)
    known = ("variance", "prior", "n_iter", "e_step", "column_penalty", "engine", "bias")
    return call(f"{names}; {label}", by_engine(fg.em_means), points, sets, anchors, n_jobs=1, **parameters(rng, known))


def by_engine(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with `engine` as one more parameter."""

    def run(*arrays: Any, engine: Any = None, **options: Any) -> Any:
        with fg.config_context(engine=engine):
            return function(*arrays, **options)

    return run


def em_estimate(rng: Rng) -> Case:
    n, d = size(rng)
    label, points = it.matrix(rng, n, d)
    name, sets = it.multisets(rng, n)
    family = pick(rng, families.FAMILIES)
    options = parameters(rng, ("prior", "n_iter", "e_step", "column_penalty", "engine"))
    sample = np.abs(rng.normal(size=(9, d)))

    def run(points: Any, sets: Any, **options: Any) -> Any:
        theta = fg.learn_family(families.FAMILIES[family](), sample, 2, rng=0)
        found, mass = by_engine(fg.em_estimate)(points, sets, theta, **options)
        return [found, mass, fg.tangent_kernel(found, found, theta)]

    return call(f"{family} {label}; {name}", run, points, sets, **options)


def learn(rng: Rng) -> Case:
    n, d = size(rng)
    label, points = it.matrix(rng, n, d)
    options = {key: absurd(rng) for key in ("n_iter", "rng") if rng.random() < 0.15}
    count = absurd(rng) if rng.random() < 0.2 else 2
    if rng.random() < 0.5:
        more = {"method": SOUND["init"], "init": ("random", "k-means++")}
        options |= {key: pick(rng, (*values, absurd(rng))) for key, values in more.items() if rng.random() < 0.5}
        options |= {key: absurd(rng) for key in ("variance",) if rng.random() < 0.2}
        return call(f"anchors {label} {count}", fg.learn_anchors, points, count, n_jobs=1, **options)
    family = component(rng, pick(rng, FAMILIES))
    return call(f"{family} {label} {count}", fg.learn_family, family, points, count, n_jobs=1, **options)


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
                absurd(rng),
                it.matrix(rng, p, d)[1],
                it.dense(rng, np.shape(found[k]) or (1,))[1] if found[k] is not None else 1,
            ),
        )
    return families.FAMILIES[name].theta(*found)


def divergence(rng: Rng) -> Case:
    d = int(rng.integers(1, 4))
    p, q = _theta(rng, d), _theta(rng, d)
    q = type(p)(*p) if rng.random() < 0.7 else q
    function = pick(rng, (fg.kl_divergence, families.kl_bound, families.monte_carlo_kl))
    options = {"n_samples": 50, "rng": 0} if function is families.monte_carlo_kl else {}
    return call(f"{function.__name__} {p} {q}", function, p, q, **options)


def retract(rng: Rng) -> Case:
    d = int(rng.integers(1, 4))
    theta = _theta(rng, d)
    family = next(f for f in families.FAMILIES.values() if f.theta is type(theta))()
    label, phi = it.matrix(rng, 3, family.width(1 if family.name == "gaussian" else 2, d))
    return call(f"{label} {theta}", fg.retract, family, phi, theta)


def embedding(rng: Rng) -> Case:
    n, d = size(rng)
    label, means = it.dense(rng, (n, 2, d))
    means = pick(rng, (means, means, means.tolist(), pick(rng, it.JUNK)))
    anchors, mass = it.matrix(rng, 2, d)[1], it.dense(rng, (n, 2))[1]
    root = pick(rng, (None, None, 0.5, absurd(rng), np.eye(2 * d), it.dense(rng, (2 * d, 2 * d))[1]))
    if rng.random() < 0.5:
        return call(f"tangent {label} {root}", fg.tangent_kernel, means, means, anchors, fisher_root=root)
    mass = mass if rng.random() < 0.5 else None
    return call(f"phi {label} {root}", fg.fisher_embedding, means, anchors, fisher_root=root, mass=mass)


def kernels(rng: Rng) -> Case:
    kind, function, draw = pick(
        rng,
        (
            (fg.FisherEmbedding, fg.node_kernel, node_data),
            (fg.FisherSetEmbedding, fg.set_kernel, set_data),
            (fg.FisherGraphEmbedding, fg.graph_kernel, graph_data),
        ),
    )
    label, (X, beside) = draw(rng, 3)
    settings = settings_of(kind, rng)
    options = {key: absurd(rng) for key in ("cosine", "other", "n_jobs") if rng.random() < 0.2}
    options = {"n_jobs": 1, **options, "cosine": options.get("cosine", bool(rng.random() < 0.5))}

    def run(X: Any, **options: Any) -> Any:
        model = kind(**{**SMALL[kind], **made(settings)}) if rng.random() < 0.9 else absurd(rng)
        return function(X, **options, embedding=model)

    return call(f"{function.__name__} {label} {settings}", run, X, **beside, **options)


def structural(rng: Rng) -> Case:
    n = int(pick(rng, (1, 2, 5, 12, 30)))
    name, graph = it.graph(rng, n)
    options = {key: absurd(rng) for key in ("kind", "dim", "seed") if rng.random() < 0.15}
    options = {"kind": pick(rng, SOUND["structure"]), "dim": int(pick(rng, (4, 8, 40))), **options}
    if rng.random() < 0.2:
        return call(f"known {name}", known_again, graph, structure_options(rng), it.graph(rng, n)[1])
    return call(name, fg.structural_features, graph, **options)


def structure_options(rng: Rng) -> dict[str, Any]:
    """The options of a `Structure`, sound ones for the most part."""
    sound = {"columns": pick(rng, SOUND["structure"]), "n_factors": pick(rng, (None, 4, 9)), "weight": 0.5}
    return {key: absurd(rng) if rng.random() < 0.1 else value for key, value in sound.items()}


def known_again(graph: Any, options: dict[str, Any], other: Any) -> Any:
    """The columns of another graph, by what was learned from the first."""
    structure = fg.Structure(**options)
    graph, other = fg.as_graph(graph), fg.as_graph(other)
    fitted, _ = fit_structure(structure, graph, graph.ids, width=structure.n_columns(8, features=True), seed=0)
    return list(fitted.columns(other, other.ids).values())


def bounds(rng: Rng) -> Case:
    n = int(pick(rng, (1, 3, 9)))
    if rng.random() < 0.5:
        label, scores = it.vector(rng, n)
        y = pick(rng, (np.where(rng.random(n) < 0.5, -1, 1), it.vector(rng, n)[1]))
        diagonal = pick(rng, (np.ones(n), it.vector(rng, n)[1]))
        options = {key: absurd(rng) for key in ("margin", "delta", "chosen") if rng.random() < 0.2}
        norm = absurd(rng) if rng.random() < 0.2 else 1.0
        return call(f"margin {label}", fg.margin_bound, scores, y, norm=norm, diagonal=diagonal, **options)
    label, anchors = it.matrix(rng, 3, 2)
    if rng.random() < 0.5:
        root = pick(rng, (None, absurd(rng), it.dense(rng, (6, 6))[1]))
        return call(f"lipschitz {label} {root}", fg.lipschitz_constant, anchors, fisher_root=root)
    options = {key: absurd(rng) if rng.random() < 0.4 else 1.0 for key in ("variance", "radius")}
    return call(f"set lipschitz {label}", fg.set_lipschitz_constant, anchors, **options)


def labels(rng: Rng, n: int) -> Any:
    y = np.arange(n) % 2
    how = int(rng.integers(10))
    if how == 0:
        return it.vector(rng, n)[1]
    if how == 1:
        return np.array([f"c{k}" for k in y], dtype=object if rng.random() < 0.5 else None)
    if how == 2:
        return np.ma.masked_array(y, mask=y == 0)
    return y


def rows(rng: Rng, low: int, high: int) -> Any:
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
                absurd(rng),
                np.concatenate([rows, rows]),
                rows.astype("u8"),
                rows.tolist(),
            ),
        )
    )


def probes(rng: Rng) -> Case:
    n = 12
    label, Z = it.matrix(rng, n, 3)
    y = labels(rng, n)
    if rng.random() < 0.6:
        settings = settings_of(fg.LogisticProbe, rng)

        def fit() -> Any:
            probe = fg.LogisticProbe(**{"max_iter": 50, **settings}).fit(Z, y, train, val)
            return [probe.coef_, probe.predict_proba(Z), probe.val_score_]

        train, val = rows(rng, 0, 6), rows(rng, 6, 10)
        return f"logistic {label} {y} {train} {settings}", fit
    if rng.random() < 0.5:
        return _graph_probe(rng, label, Z, y)
    folds = [(rows(rng, 0, 8), rows(rng, 8, 12))] if rng.random() < 0.9 else absurd(rng)
    names = ("probes", "Cs", "gammas", "inner", "repeats", "random_state")
    options = {"inner": 2, **{key: absurd(rng) for key in names if rng.random() < 0.08}}
    if rng.random() < 0.3:
        options["probes"] = (pick(rng, ("rbf-svm", "linear-svm", "logistic")),)
    return call(f"nested {label} {folds}", lambda *a, **k: nested_scores(*a, **k).test, Z, y, folds, **options)


def _graph_probe(rng: Rng, label: str, Z: Any, y: Any) -> Case:
    graph = pick(rng, (None, np.eye(12, k=1), absurd(rng)))
    settings = {"heads": ("blocks", "sharpen", "mlp"), "random_state": 0}
    names = ("blocks", "heads", "fit_on", "random_state", "n_jobs")
    settings |= {key: absurd(rng) for key in names if rng.random() < 0.1}
    train, val = rows(rng, 0, 6), rows(rng, 6, 10)

    def fit() -> Any:
        probe = fg.GraphProbe(graph, **settings).fit(Z, y, train, val)
        return [probe.predict_proba(), probe.predict_proba(Z), probe.val_score_, probe.val_ece_]

    return f"graph probe {label} {y} {train} {settings}", fit


def as_graphs(rng: Rng) -> Case:
    label, graphs = it.graph_list(rng, 2)
    options = {key: absurd(rng) for key in ("features", "tags", "edge_tags", "undirected") if rng.random() < 0.1}

    def run(graphs: Any, **options: Any) -> Any:
        found = fg.as_graphs(graphs, **options)
        return [found.graph.weights, len(found), found[0].graph.weights]

    return call(label, run, graphs, **options)


def helpers(rng: Rng) -> Case:
    n, d = size(rng)
    which = int(rng.integers(5))
    if which == 0:
        names = ("n_sets", "n_members", "n_classes", "noise", "seed")
        options = {"n_sets": 6, "n_members": 4, **{key: absurd(rng) for key in names if rng.random() < 0.2}}
        return call("equal_mean_sets", lambda **k: synthetic.equal_mean_sets(**k)[0][0], **options)
    if which == 1:
        label, X = it.matrix(rng, n, d)
        options = {key: absurd(rng) for key in ("binary", "rows", "loops") if rng.random() < 0.3}

        def run() -> Any:
            data = GraphData("x", X, it.adjacency(rng, n).astype("f4"), np.zeros(n, int), *[np.arange(0)] * 3)
            return prepare(data, Preparation(**options)).X

        return f"prepare {label} {options}", run
    if which == 2:
        label, X = it.matrix(rng, 12, d)
        y, train, val = labels(rng, 12), rows(rng, 0, 6), rows(rng, 6, 10)
        return f"SGC {label}", lambda: SGC().fit(X, y, graph=it.adjacency(rng, 12), train=train, val=val).proba_
    if which == 3:
        ptr = pick(rng, (absurd(rng), it.vector(rng, 4)[1], np.array([0, 2, 3]), np.array([0, 3, 1])))
        return call("node_sets", fg.node_sets, ptr)
    label, X = it.matrix(rng, n, d)
    count, kernel = pick(rng, (3, absurd(rng))), component(rng, fg.Nystrom)

    def nystrom(X: Any, count: Any, kernel: Any) -> Any:
        model = fg.FisherEmbedding(n_layers=0, dim=count, kernel=kernel, random_state=0, n_jobs=1)
        return model.fit_transform(X)

    return call(f"nystrom {label} {count} {kernel}", nystrom, X, count, kernel)
