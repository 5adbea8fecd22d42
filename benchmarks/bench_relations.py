"""Several relations: what they cost beside one, and whether they help beside the same graph with its types merged.

--study time: `fit_transform` and `transform` with one relation, with two of as many edges (an undirected graph, and the
same graph with its nodes in another order), and of `fit_transform` of one graph that holds the edges of both, in turns.

--study accuracy: accuracy of a linear probe on the test nodes of random splits (10 % train, 10 % choose the probe, 80 %
are judged). Every setting is the default one: nothing was chosen on these nodes.

- "flights": the makers (five classes) of the planes of `load_tables("flights")`. The tables are used as they are, but
  for the maker and the model of a plane, which tell its class. "merged" is one graph of all nodes and edges, with the
  columns of every type, encoded by `TableEncoder`, beside those of the others, and "merged, with types" has the type as
  three columns more. All are undirected and keep the number of flights as weights. "merged, no features" takes features
  from the edges.
- "citations": ogbn_arxiv_sub18k with two relations, cites and cited, against its undirected edges.
- "co-purchases": amazon_computers with two relations, its edges and the ten nearest neighbours by features, against the
  union of both, and against its edges alone.
- "two circles": made here; edges of two kinds, each with communities of its own, and a class for every pair of these.

A row of accuracy holds the mean over splits, and the mean gain over "merged" split by split with its standard error.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Rows, data_folder, in_turns, load, load_average, parser, print_table, spread, timed

from fishergraph import FisherEmbedding, LogisticProbe, Neighbourhood, TableEncoder, as_graph, as_relations
from fishergraph.datasets import load_tables

CS = np.logspace(-2, 4, 7)
MAKERS = ("BOEING", "AIRBUS", "BOMBARDIER", "EMBRAER", "MCDONNELL")

# name of a setting → (features, graph, multiset, the rows that have classes)
Settings = dict[str, tuple[Any, Any, Neighbourhood, Any]]


# --- graphs ---------------------------------------------------------------------------------------------------------


def flights(args: Namespace) -> tuple[Settings, np.ndarray]:
    """Planes, airports and airlines; the class of a plane is its maker."""
    data = load_tables("flights")
    makers = [str(maker).split()[0] if maker else "" for maker in data.nodes["planes"]["manufacturer"].to_pylist()]
    y = np.array([MAKERS.index(maker) if maker in MAKERS else -1 for maker in makers])
    tables = {**data.nodes, "planes": data.nodes["planes"].drop_columns(["manufacturer", "model"])}
    relations = as_relations(data.edges, nodes={name: table["id"] for name, table in tables.items()})
    encoded = [TableEncoder().fit_transform(tables[name].drop_columns("id")) for name in relations.types]
    whole = np.asarray(sp.block_diag(encoded).todense(), np.float32)
    merged = as_graph(relations.union(), undirected=True)
    kinds = np.repeat(np.eye(len(relations.types), dtype=np.float32), list(relations.sizes.values()), axis=0)
    first, both = relations.starts["planes"], Neighbourhood(undirected=True)
    rows = slice(first, first + relations.sizes["planes"])
    settings: Settings = {
        "merged": (whole, merged, Neighbourhood(), rows),
        "merged, with types": (np.hstack([whole, kinds]), merged, Neighbourhood(), rows),
        "merged, no features": (None, merged, Neighbourhood(), rows),
        "relations": (tables, relations, both, "planes"),
    }
    return settings, y


def citations(args: Namespace) -> tuple[Settings, np.ndarray]:
    """Papers that cite each other: both directions as relations, or as undirected edges."""
    data, folder = load("ogbn_arxiv_sub18k", args.data), data_folder(args.data)
    assert folder is not None
    with np.load(folder / "ogbn_arxiv_sub18k.npz", allow_pickle=False) as arrays:
        source, target = arrays["edge_index"]
    ones, n_nodes = np.ones(len(source), np.float32), data.n_nodes
    cited = sp.csr_array(sp.coo_array((ones, (target, source)), shape=(n_nodes, n_nodes)))
    cited.data[:] = 1
    two = {"cited by": cited, "cites": sp.csr_array(cited.T)}
    merged = as_graph(cited, undirected=True)
    every = slice(None)
    return {
        "merged": (data.X, merged, Neighbourhood(), every),
        "relations": (data.X, two, Neighbourhood(), every),
    }, data.y


def purchases(args: Namespace) -> tuple[Settings, np.ndarray]:
    """Products bought together, and products with similar words."""
    data = load("amazon_computers", args.data)
    bought = as_graph(data.graph, undirected=True)
    similar = as_graph(nearest(data.X, 10), undirected=True)
    merged = as_graph(sp.csr_array(bought.adjacency + similar.adjacency))
    every = slice(None)
    return {
        "merged": (data.X, merged, Neighbourhood(), every),
        "bought together alone": (data.X, bought, Neighbourhood(), every),
        "relations": (data.X, {"bought": bought, "similar": similar}, Neighbourhood(), every),
    }, data.y


def nearest(X: Any, k: int) -> sp.csr_array:
    """The k rows with the largest cosines of every row, without itself."""
    rows = np.asarray(X.todense() if sp.issparse(X) else X, np.float32)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    found = []
    for start in range(0, len(rows), 1024):
        cosines = rows[start : start + 1024] @ rows.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1
        found.append(np.argpartition(-cosines, k, axis=1)[:, :k])
    ends = (np.repeat(np.arange(len(rows)), k), np.concatenate(found).ravel())
    return sp.csr_array(sp.coo_array((np.ones(len(ends[0]), np.float32), ends), shape=(len(rows), len(rows))))


def circles(args: Namespace, n_nodes: int = 2000, n_edges: int = 6000) -> tuple[Settings, np.ndarray]:
    """Two kinds of edges; four in five of a kind stay in its community. Features show both communities faintly."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, size=(2, n_nodes))
    relations = {}
    for name, labels in (("work", first), ("home", second)):
        ends = rng.integers(0, n_nodes, (2, 4 * n_edges))
        kept = (labels[ends[0]] == labels[ends[1]]) | (rng.random(4 * n_edges) < 0.25)
        relations[name] = as_graph(ends[:, kept][:, :n_edges], undirected=True, n_nodes=n_nodes)
    signs = np.stack([first, second], axis=1) - 0.5
    X = np.hstack([0.4 * signs, np.zeros((n_nodes, 14))]) + 0.5 * rng.normal(size=(n_nodes, 16))
    merged = as_graph(sp.csr_array(relations["work"].adjacency + relations["home"].adjacency))
    X, every = X.astype(np.float32), slice(None)
    settings: Settings = {
        "merged": (X, merged, Neighbourhood(), every),
        "relations": (X, relations, Neighbourhood(), every),
    }
    return settings, 2 * first + second


GRAPHS: dict[str, Callable[[Namespace], tuple[Settings, np.ndarray]]] = {
    "flights": flights,
    "citations": citations,
    "co-purchases": purchases,
    "two circles": circles,
}


# --- studies --------------------------------------------------------------------------------------------------------


def splits_of(y: np.ndarray, n_splits: int, n_judged: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(train, choose, judge) of random splits of the nodes with a class."""
    for seed in range(100, 100 + n_splits):
        order = np.random.default_rng(seed).permutation(np.flatnonzero(y >= 0))
        train, choose, judge = np.split(order, [len(order) // 10, len(order) // 5])
        yield train, choose, judge[:n_judged]


def accuracy(args: Namespace, graphs: list[str]) -> None:
    rows, table = Rows("relations", args), []
    for graph in graphs:
        settings, y = GRAPHS[graph](args)
        base: np.ndarray | None = None
        for name, (X, edges, multiset, place) in settings.items():
            model = FisherEmbedding(dim=args.dim, multiset=multiset, random_state=0, n_jobs=args.threads)
            spent, out = timed(lambda model=model, X=X, edges=edges: model.fit_transform(X, graph=edges))
            Z = np.asarray(out[place])
            scores = []
            for train, choose, judge in splits_of(y, args.splits, args.judged):
                probe = LogisticProbe(Cs=CS, tol=1e-3).fit(Z, y, train, choose)
                scores.append(100 * probe.score(Z[judge], y[judge]))
            found = np.array(scores)
            base = found if base is None else base
            error = (found - base).std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0.0
            result = {"accuracy": found.mean(), "gain": (found - base).mean(), "gain_se": error}
            shape = {"splits": args.splits, "columns": Z.shape[1], "dim": args.dim}
            rows.add(study="accuracy", graph=graph, setting=name, **shape, **result, seconds=spent)
            gain = f"{result['gain']:+.2f} ± {error:.2f}"
            table.append([graph, name, Z.shape[1], f"{found.mean():.2f}", gain, f"{spent:.1f}"])
            print(*table[-1], flush=True)
    print_table(["graph", "setting", "columns", "accuracy", "gain", "s"], table)


def times(args: Namespace) -> None:
    """One relation, and two of as many edges."""
    if args.quick:
        settings, _ = circles(args, 200, 400)
        X, graphs = settings["relations"][0], settings["relations"][1]
        first, second, name = graphs["work"], graphs["home"], "two circles"
    else:
        name = args.time_graph
        data = load(name, args.data)
        X, first = data.X, as_graph(data.graph, undirected=True)
        order = np.random.default_rng(0).permutation(first.n_nodes)
        second = as_graph(sp.csr_array(first.adjacency[order][:, order]))
    merged = as_graph(sp.csr_array(first.adjacency + second.adjacency))
    graphs = {
        "one graph": first,
        "one relation": {"a": first},
        "two relations": {"a": first, "b": second},
        "merged": merged,
    }
    make = lambda: FisherEmbedding(dim=args.dim, random_state=0, n_jobs=args.threads)  # noqa: E731
    fitted = {key: make().fit(X, graph=graph) for key, graph in graphs.items()}  # compiles
    fits = {
        key: lambda graph=graph: timed(lambda: make().fit_transform(X, graph=graph))[0] for key, graph in graphs.items()
    }
    runs = {
        key: lambda key=key, graph=graph: timed(lambda: fitted[key].transform(X, graph=graph))[0]
        for key, graph in graphs.items()
    }
    rows, table = Rows("relations", args), []
    for call, cases in (("fit_transform", fits), ("transform", runs)):
        spent = in_turns(cases, args.repeat)
        for key, values in spent.items():
            ratio = float(np.median(np.array(values) / np.array(spent["one graph"])))
            row = {**spread(values, "seconds"), "ratio": ratio, "load": load_average()}
            rows.add(study="time", graph=name, setting=key, call=call, dim=args.dim, **row)
            table.append([call, key, *(f"{row[part]:.2f}" for part in ("seconds", "seconds_least", "ratio"))])
    print_table(["call", "setting", "median s", "least s", "ratio to one graph, by rounds"], table)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--study", choices=("time", "accuracy"), default="accuracy")
    options.add_argument("--graphs", nargs="*", choices=list(GRAPHS), help="graphs of the study (default: all of them)")
    options.add_argument("--time-graph", default="coauthor_physics", help="graph of the study of time")
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--judged", type=int, default=100_000, help="the most nodes that are judged")
    options.add_argument("--dim", type=int, default=256)
    options.add_argument("--repeat", type=int, default=5, help="rounds of the study of time")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.splits, args.dim, args.repeat, args.judged = 2, 8, 1, 50
        times(args)
        accuracy(args, ["two circles"])
    elif args.study == "time":
        times(args)
    else:
        accuracy(args, args.graphs or list(GRAPHS))


if __name__ == "__main__":
    main()
