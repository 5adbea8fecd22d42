"""Small models of every kind, to be saved: (fitted model, what is done with the loaded one)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph import (
    EM,
    DiagonalMixture,
    Differences,
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    Hops,
    MultinomialMixture,
    Neighbourhood,
    Nystrom,
    PageRank,
    Paths,
    Readout,
    Tuples,
    VonMisesFisherMixture,
    Walk,
)
from fishergraph.device import Device

N, D = 24, 4
_rng = np.random.default_rng(0)
X = _rng.normal(size=(N, D)).astype(np.float32)
COUNTS = _rng.poisson(2.0, size=(N, D)).astype(np.float32)
GRAPH = sp.csr_array(sp.random_array((N, N), density=0.15, rng=_rng))
Y = np.arange(N) % 3
SETS = [_rng.normal(size=(n, D)) for n in (5, 3, 1, 6, 4, 2, 3, 3)]
RINGS = {n: np.stack([np.arange(n), np.roll(np.arange(n), 1)]) for n in range(2, 8)}
GRAPHS = [
    {"X": _rng.normal(size=(n, 2)), "tags": _rng.integers(3, size=n), "graph": RINGS[n]} for n in (4, 5, 6, 3, 7, 5)
]
TAGGED = [(["C", "N", "O", "C"][:n], RINGS[n]) for n in (2, 3, 4, 3)]


def _node(**options: Any) -> tuple[Any, Callable[[Any], Any]]:
    data = {"counts": COUNTS, "none": None}.get(options.pop("data", ""), X)
    make = options.pop("make", FisherEmbedding)
    model = make(**{"n_layers": 2, "n_anchors": 2, "dim": 5, "random_state": 0, "n_jobs": 1, **options})
    data = data.astype(np.float64) if options.get("family") == "gaussian" else data
    return model.fit(data, graph=GRAPH), lambda model: model.transform(data, graph=GRAPH)


def _set(**options: Any) -> tuple[Any, Callable[[Any], Any]]:
    sets = [np.abs(np.rint(3 * members)) for members in SETS] if options.get("family") == "multinomial" else SETS
    model = FisherSetEmbedding(**{"n_anchors": 2, "dim": 4, "random_state": 0, "n_jobs": 1, **options})
    return model.fit(sets), lambda model: model.transform(sets)


def _graphs(graphs: list, nodes: dict[str, Any], **options: Any) -> tuple[Any, Callable[[Any], Any]]:
    inner = FisherEmbedding(**{"n_layers": 1, "n_anchors": 2, "dim": 4, "walk": None, "counts": True, **nodes})
    model = FisherGraphEmbedding(inner, **{"readout": Readout(3), "random_state": 0, "n_jobs": 1, **options})
    return model.fit(graphs), lambda model: model.transform(graphs)


MODELS: dict[str, Callable[[], tuple[Any, Callable[[Any], Any]]]] = {
    "node": _node,
    "node, plain": lambda: _node(kernel="identity", normalize=False, walk=None, counts=True, em=EM(prior=0.5)),
    "node, options": lambda: _node(
        multiset=Neighbourhood(closed=False, weights="symmetric", undirected=True),
        family=GaussianMixture(variance=0.3, power=0.5, unit=True),
        em=EM(n_iter=2, e_step="unbalanced", column_penalty=0.5, init="spherical", max_samples=20),
        kernel=Nystrom(bandwidth=0.9),
        walk=Walk(teleport=0.3),
        device=Device(),
    ),
    "node, published": lambda: _node(make=FisherEmbedding.published_code),
    "node, diagonal": lambda: _node(family="diagonal-mixture"),
    "node, gaussian": lambda: _node(family="gaussian"),
    "node, directions": lambda: _node(family=VonMisesFisherMixture(tangent="score")),
    "node, counts": lambda: _node(
        family=MultinomialMixture(tangent="score", following=DiagonalMixture(power=0.5)), data="counts"
    ),
    "node, exact": lambda: _node(family=DiagonalMixture(fisher="exact"), n_layers=1, dim=3),
    "node, pagerank": lambda: _node(multiset=PageRank(members=5, weights="symmetric")),
    "node, hops": lambda: _node(multiset=Hops(2, 0.5), block_weights=(1, 0, 2, 1, 1, 0, 2)),
    "node, both directions": lambda: _node(multiset=Neighbourhood(direction="both"), kernel="identity", counts=True),
    "node, differences": lambda: _node(multiset=Differences(direction="both")),
    "node, paths": lambda: _node(multiset=Paths(2)),
    "node, tuples": lambda: _node(multiset=Tuples(2), n_layers=1),
    "node, structure": lambda: _node(data="none", structure="degree", n_layers=1),
    "sets": _set,
    "sets, wide": lambda: _set(input_map="exp", kernel="identity", family="diagonal-mixture"),
    "sets, counts": lambda: _set(family="multinomial"),
    "graphs": lambda: _graphs(GRAPHS, {}),
    "graphs, cores": lambda: _graphs(
        GRAPHS, {}, inputs=("features", "cores"), readout=Readout(3, "both", kernel="exp", em=EM(n_iter=2), dim=4)
    ),
    "graphs, walk": lambda: _graphs(
        GRAPHS, {"walk": 0.2, "block_weights": (1, 0, 2, 1)}, readout=Readout(3, unit=True)
    ),
    "graphs, tags": lambda: _graphs(TAGGED, {"multiset": Tuples(2)}),
}
