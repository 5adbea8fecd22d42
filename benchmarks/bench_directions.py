"""In- and out-neighbours apart, and differences of neighbours and nodes: what they cost, and whether they help.

--study time: the ogbn-arxiv graph with its directed edges. Seconds to build the multisets, and of `transform` with one
layer, for in-neighbours alone, undirected edges, both sides apart as `SplitSets`, and the other way
to keep them apart: one mixture of members with two slots, (x_u, 0) and (0, x_u), as `LiftedSets`.

--study directions: accuracy of a linear probe on directed graphs, for undirected edges (the usual practice), each
direction, both apart, and controls: two embeddings side by side, and as many columns of φ from twice the anchors. The
graphs are ogbn_arxiv_sub18k, amazon_computers (its edges are listed as directed; 29 % go both ways) and "readers", made
here, where only the direction tells the class. The heterophilous graphs list every edge once with the smaller number
first: they have no direction.

--study structure: the same on the structure of ogbn_arxiv, without its features; 20,000 of the training nodes train.

--study differences: accuracy on undirected graphs of neighbours, of differences, and of the layers of either beside the
default embedding.

Splits are those of bench_defaults.py: no test node is looked at. A row holds the mean accuracy, the mean gain over the
first setting, pair by pair, and its standard error from the means of the splits.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from bench_defaults import CS, Splits, gain, selection_splits
from common import Rows, data_folder, load, parser, print_table, random_split, timed, tiny_graph

from fishergraph import Differences, FisherEmbedding, LiftedSets, LogisticProbe, Neighbourhood, as_graph
from fishergraph.datasets import GraphData
from fishergraph.multiset.members import consecutive
from fishergraph.multiset.rule import Rule

DIRECTED = ("ogbn_arxiv_sub18k", "amazon_computers", "readers")
UNDIRECTED = (
    *("cora", "citeseer", "pubmed", "amazon_computers", "ogbn_arxiv_sub18k"),
    *("actor", "chameleon_filtered", "squirrel_filtered", "minesweeper"),
)


@dataclass(frozen=True, repr=False)
class TwoSlots(Rule):
    """In- and out-neighbours in slots of their own: (x_u, 0) and (0, x_u)."""

    lifts: ClassVar[bool] = True

    @property
    def slots(self) -> int:
        return 2

    def sets(self, graph: Any, n_jobs: int | None = None, dtype: Any = np.float32) -> LiftedSets:
        both: Any = Neighbourhood(direction="both").sets(graph, n_jobs, dtype)
        side = np.repeat(np.arange(both.parts.n_sets) % 2, np.diff(both.parts.indptr))
        members = np.full((both.n_entries, 2), -1, np.int32)
        members[np.arange(both.n_entries), side] = both.indices
        return LiftedSets(consecutive(both.indptr, both.weights), members, graph.n_nodes)


# --- settings: one embedding, or several side by side ---------------------------------------------------------------

Setting = tuple[dict[str, Any], ...]
_IN, _OUT, _BOTH = (Neighbourhood(direction=side) for side in ("in", "out", "both"))
_UNDIRECTED = Neighbourhood(undirected=True)

DIRECTIONS: dict[str, Setting] = {
    "undirected": ({"multiset": _UNDIRECTED},),
    "in": ({"multiset": _IN},),
    "out": ({"multiset": _OUT},),
    "both": ({"multiset": _BOTH},),
    "in and out, two embeddings": ({"multiset": _IN}, {"multiset": _OUT}),
    "undirected, 8 anchors": ({"multiset": _UNDIRECTED, "n_anchors": 8},),
    "undirected and both, two embeddings": ({"multiset": _UNDIRECTED}, {"multiset": _BOTH}),
    "undirected, no walk": ({"multiset": _UNDIRECTED, "walk": None},),
    "both, no walk": ({"multiset": _BOTH, "walk": None},),
    "two slots, no walk": ({"multiset": TwoSlots()},),
}
_LAYERS = {"walk": None, "block_weights": (0, 1, 1)}  # without ψ_0, which the default embedding has
DIFFERENCES: dict[str, Setting] = {
    "default": ({},),
    "neighbourhood, no walk": ({"walk": None},),
    "open neighbourhood, no walk": ({"walk": None, "multiset": "open-neighbourhood"},),
    "differences": ({"multiset": "differences"},),
    "differences, 1 anchor": ({"multiset": "differences", "n_anchors": 1},),
    "default and open neighbourhood": ({}, {**_LAYERS, "multiset": "open-neighbourhood"}),
    "default and differences": ({}, {**_LAYERS, "multiset": "differences"}),
    "default and differences, 1 anchor": ({}, {**_LAYERS, "multiset": "differences", "n_anchors": 1}),
}


# --- graphs ---------------------------------------------------------------------------------------------------------


def readers(n_readers: int = 1000, n_pages: int = 500, n_features: int = 16, seed: int = 0) -> GraphData:
    """Readers among pages of two topics; class 0 points to topic 0 and has links from topic 1, class 1 the other way.

    Every reader has neighbours of both topics, and no words of its own; pages have no class.
    """
    rng = np.random.default_rng(seed)
    y, topic = rng.integers(2, size=n_readers), np.arange(n_pages) % 2
    centres = np.concatenate([np.zeros((n_readers, n_features)), 2 * rng.normal(size=(2, n_features))[topic]])
    X = (centres + rng.normal(size=centres.shape)).astype(np.float32)
    ends = []
    for v in range(n_readers):
        ends += [(v, n_readers + u) for u in rng.choice(np.flatnonzero(topic == y[v]), 4)]
        ends += [(n_readers + u, v) for u in rng.choice(np.flatnonzero(topic != y[v]), 4)]
    train, val, test = random_split(n_readers, seed, fractions=(0.1, 0.1))
    labels = np.concatenate([y, np.full(n_pages, -1)])
    return GraphData("readers", X, _operator(np.array(ends).T, len(X)), labels, train, val, test)


def directed(name: str, args: Namespace) -> GraphData:
    """The graph with the direction of its edges: row v holds the nodes that point to v."""
    if name == "readers":
        return readers()
    data, folder = load(name, args.data), data_folder(args.data)
    assert folder is not None
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        return replace(data, graph=_operator(arrays["edge_index"], data.n_nodes))


def _operator(ends: np.ndarray, n_nodes: int) -> sp.csr_array:
    values = np.ones(ends.shape[1], np.float32)
    matrix = sp.csr_array(sp.coo_array((values, (ends[1], ends[0])), shape=(n_nodes, n_nodes)))
    matrix.data[:] = 1  # repeated lines are one edge
    return matrix


def splits_of(data: GraphData, args: Namespace) -> Splits:
    if data.name != "readers":
        return selection_splits(data, args.splits)
    orders = [np.random.default_rng(seed).permutation(np.flatnonzero(data.y >= 0)) for seed in range(args.splits)]
    return [tuple(np.split(order, [len(order) // 10, len(order) // 5])) for order in orders]  # type: ignore[misc]


def few_training_nodes(data: GraphData, args: Namespace) -> Splits:
    """The structure of a large graph: some of the training nodes, and the validation nodes in two halves."""
    train, val, _ = data.split()
    size, splits = min(20_000, len(train)), []
    for seed in range(args.splits):
        rng = np.random.default_rng(seed)
        judged = rng.permutation(val)
        splits.append((rng.permutation(train)[:size], judged[: len(val) // 2], judged[len(val) // 2 :][:10_000]))
    return splits


# --- studies --------------------------------------------------------------------------------------------------------


def judge(data: GraphData, setting: Setting, splits: Splits, args: Namespace) -> tuple[np.ndarray, int, float]:
    """(accuracy in percent (seed, split), columns, seconds of the embeddings of one seed)."""
    scores, spent, Z = [], 0.0, np.empty((0, 0))
    for seed in range(args.seeds):
        models = [FisherEmbedding(random_state=seed, n_jobs=args.threads).set_params(**params) for params in setting]

        def embed(models: list[FisherEmbedding] = models) -> np.ndarray:
            return np.hstack([model.fit_transform(data.X, graph=data.graph) for model in models])

        spent, Z = timed(embed)
        probes = [LogisticProbe(Cs=CS, tol=1e-4).fit(Z, data.y, train, choose) for train, choose, _ in splits]
        scores.append([probe.score(Z[s[2]], data.y[s[2]]) for probe, s in zip(probes, splits, strict=True)])
    return 100 * np.array(scores), Z.shape[1], spent


def accuracies(
    study: str,
    settings: dict[str, Setting],
    graphs: list[GraphData],
    make_splits: Callable[[GraphData, Namespace], Splits],
    args: Namespace,
) -> None:
    rows, table = Rows("directions", args), []
    for data in graphs:
        splits, base = make_splits(data, args), None
        for name, setting in settings.items():
            scores, columns, spent = judge(data, setting, splits, args)
            base = scores if base is None else base
            mean, error = gain(scores, base)
            result = {"accuracy": float(scores.mean()), "gain": mean, "gain_se": error}
            shape = {"seeds": args.seeds, "splits": len(splits), "columns": columns}
            rows.add(study=study, graph=data.name, setting=name, **shape, **result, seconds=spent)
            table.append(
                [data.name, name, columns, f"{scores.mean():.2f}", f"{mean:+.2f} ± {error:.2f}", f"{spent:.1f}"]
            )
            print(*table[-1], flush=True)
    print_table(["graph", "setting", "columns", "accuracy", "gain", "s"], table)


def times(args: Namespace) -> None:
    data = readers(60, 20) if args.quick else directed("ogbn_arxiv", args)
    graph, small, rows, table = as_graph(data.graph), readers(200, 50), Rows("directions", args), []
    rules: dict[str, Rule] = {"in": _IN, "undirected": _UNDIRECTED, "both": _BOTH, "two slots": TwoSlots()}
    rules |= {"differences": Differences(), "differences, both": Differences(direction="both")}
    models: dict[str, FisherEmbedding] = {}
    for name, rule in rules.items():
        layers = FisherEmbedding(1, dim=args.dim, walk=None, structure=None, multiset=rule)
        model = layers.set_params(n_jobs=args.threads, random_state=0)
        model.fit(small.X, graph=small.graph)  # compiles
        models[name] = model.fit(data.X, graph=graph)
    build, run = ({name: [] for name in rules} for _ in range(2))
    for _ in range(args.repeat):  # in turn, so that what else the machine does slows all of them
        for name, rule in rules.items():
            build[name].append(timed(lambda rule=rule: rule(graph))[0])
            run[name].append(timed(lambda model=models[name]: model.transform(data.X, graph=graph))[0])
    for name, rule in rules.items():
        layer = {"members": rule(graph).n_entries, "phi": models[name].stack_.layers[0].kernel_map.n_inputs}
        spent = {"build": median(build[name]), "seconds": median(run[name]), "least_seconds": min(run[name])}
        rows.add(study="time", graph=data.name, setting=name, dim=args.dim, **layer, **spent)
        table.append([name, *layer.values(), *(f"{value:.3f}" for value in spent.values())])
    print_table(["multiset", "members", "columns of φ", "build s", "transform s, median", "least"], table)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--study", choices=("time", "directions", "structure", "differences"), default="directions")
    options.add_argument("--graphs", nargs="*", help="graphs of the study (default: all of them)")
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--dim", type=int, default=256)
    options.add_argument("--repeat", type=int, default=7, help="rounds of the study of time")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.seeds, args.splits, args.dim, args.repeat = 1, 2, 8, 1
        times(args)
        accuracies("directions", dict(list(DIRECTIONS.items())[:4]), [readers(100, 40)], splits_of, args)
        accuracies("differences", dict(list(DIFFERENCES.items())[:4]), [tiny_graph()], selection_splits_of, args)
        return
    if args.study == "time":
        times(args)
    elif args.study == "structure":
        data = replace(directed("ogbn_arxiv", args), X=None)
        names = list(DIRECTIONS)[:6]
        accuracies("structure", {name: DIRECTIONS[name] for name in names}, [data], few_training_nodes, args)
    elif args.study == "directions":
        graphs = [directed(name, args) for name in args.graphs or DIRECTED]
        accuracies("directions", DIRECTIONS, graphs, splits_of, args)
    else:
        graphs = [load(name, args.data) for name in args.graphs or UNDIRECTED]
        accuracies("differences", DIFFERENCES, graphs, selection_splits_of, args)


def selection_splits_of(data: GraphData, args: Namespace) -> Splits:
    return selection_splits(data, args.splits)


if __name__ == "__main__":
    main()
