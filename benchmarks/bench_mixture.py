"""What the mixture brings: one component (mean pooling) against several, on nodes, sets and whole graphs.

Every row compares a number of components p with p = 1 on the same splits and seeds: the mean score, the mean gain over
p = 1, and its standard error from the means of the splits. No test node and no test fold is looked at.

    --part nodes    `FisherEmbedding` and a logistic probe on the splits of bench_defaults.py. "full" is the default
                    embedding, "layers" has walk=None, structure=None: ψ_0 and the layers alone, "edges" is the default
                    embedding without X. "4, sharp" is p = 4 with GaussianMixture(sharpness=0.5). minesweeper is judged
                    by the area under the ROC curve.
    --part sets     `FisherSetEmbedding` on the bags of bench_set_defaults.py: repeated stratified folds, ridge probe.
    --part graphs   the node layers of `FisherGraphEmbedding`: best inner accuracy of a support vector machine in the
                    training part of every fixed fold. Layers of p components have soft counts, those of one as well.
    --part time     seconds of fit_transform, p = 1, 4, 8 in turns, medians.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bags import BAGS
from bench_defaults import CS, Splits, gain, score, selection_splits
from bench_graphs import ABLATION_GRID, load_set
from bench_set_defaults import NAMES, fold_scores
from bench_sets import selection_half
from common import Rows, load, parser, print_table, timed, tiny_graph

from fishergraph import FisherEmbedding, FisherGraphEmbedding, GaussianMixture, LogisticProbe
from fishergraph._errors import FewPointsWarning
from fishergraph.datasets import GraphData
from fishergraph.lab import inner_scores

GRAPHS = (
    "cora",
    "citeseer",
    "pubmed",
    "amazon_computers",
    "coauthor_physics",
    "ogbn_arxiv_sub18k",
    "actor",
    "chameleon_filtered",
    "squirrel_filtered",
    "minesweeper",
)
TIMED = ("cora", "amazon_computers", "ogbn_arxiv_sub18k")
GRAPH_SETS = ("MUTAG", "PROTEINS", "IMDBBINARY")
EMBEDDINGS: dict[str, dict[str, Any]] = {"full": {}, "layers": {"walk": None, "structure": None}, "edges": {}}
COMPONENTS: dict[str, dict[str, Any]] = {
    "1": {"n_anchors": 1},
    "4": {"n_anchors": 4},
    "8": {"n_anchors": 8},
    "4, sharp": {"n_anchors": 4, "family": GaussianMixture(sharpness=0.5)},
}
SET_COMPONENTS = (1, 4, 8, 32)  # the last is the default

Scores = Callable[[str], np.ndarray]  # components → scores in percent, (seed, split)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--part", choices=list(PARTS), default="nodes")
    options.add_argument("--data-sets", nargs="+", help="names of graphs or sets (default: all of the part)")
    options.add_argument("--embeddings", nargs="+", choices=list(EMBEDDINGS), default=["full", "layers"])
    options.add_argument("--components", nargs="+", choices=list(COMPONENTS), default=["1", "4", "8"])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument(
        "--splits", type=int, default=5, help="splits of nodes, repeats of sets, folds of graphs, or turns"
    )
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--first-split", type=int, default=0, help="for graphs whose splits are drawn")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    warnings.filterwarnings("ignore", category=FewPointsWarning)
    if args.quick:
        args.seeds, args.splits, args.embeddings = 1, 2, ["full"]
    rows, lines = Rows("mixture", args), []
    for row in PARTS[args.part](args):
        rows.add(part=args.part, seeds=args.seeds, splits=args.splits, **row)
        lines.append([row["data"], row["embedding"], row["components"], *(f"{v:.2f}" for v in list(row.values())[3:])])
        print(*lines[-1], flush=True)
    print()
    print_table(["data", "embedding", "p", *list(row)[3:]], lines)


def compared(data: str, embedding: str, scores: Scores, components: list[str]) -> Iterator[dict[str, Any]]:
    """One row for every number of components; the first is the one the others are compared with."""
    base: np.ndarray | None = None
    for name in components:
        found = scores(name)
        base = found if base is None else base
        mean, error = gain(found, base)
        row = {"data": data, "embedding": embedding, "components": name}
        yield row | {"score": float(found.mean()), "gain": mean, "se": error}


def nodes(args: Namespace) -> Iterator[dict[str, Any]]:
    """Node classification."""
    for name in ["tiny"] if args.quick else args.data_sets or GRAPHS:
        data = tiny_graph() if args.quick else load(name, args.data)
        splits = selection_splits(data, args.splits, args.first_split)
        for embedding in args.embeddings:

            def scores(p: str, data=data, splits=splits, embedding=embedding) -> np.ndarray:
                X, setting = None if embedding == "edges" else data.X, {**EMBEDDINGS[embedding], **COMPONENTS[p]}
                return judge(data, X, setting, splits, args)

            yield from compared(name, embedding, scores, args.components)


def judge(data: GraphData, X: Any, setting: dict[str, Any], splits: Splits, args: Namespace) -> np.ndarray:
    """The scores of an embedding in percent, (seed, split).

    Every C is tried. A probe with patience can stop at the smallest ones, which predict one class, if the embedding is
    short.
    """
    scores = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        model = FisherEmbedding(random_state=seed, n_jobs=args.threads).set_params(**setting)
        Z = model.fit_transform(X, graph=data.graph)
        probes = [LogisticProbe(Cs=CS, tol=1e-4).fit(Z, data.y, *split[:2]) for split in splits]
        scores.append([score(data, probe, Z, rows) for probe, (*_, rows) in zip(probes, splits, strict=True)])
    return 100 * np.array(scores)


def sets(args: Namespace) -> Iterator[dict[str, Any]]:
    """Sets of vectors: every repeat has four folds and a seed of its own."""
    for name in ["equal means"] if args.quick else args.data_sets or [*NAMES, "equal means"]:
        bags = BAGS[name]()
        bags = bags.take(selection_half(bags))

        def scores(p: str, bags=bags) -> np.ndarray:
            return 100 * fold_scores(bags, {"n_anchors": int(p)}, args.splits, args.threads)[None]

        yield from compared(name, "sets", scores, [str(p) for p in SET_COMPONENTS])


def graphs(args: Namespace) -> Iterator[dict[str, Any]]:
    """Whole graphs: the default embedding, with other numbers of components in its node layers."""
    for name in ["tiny"] if args.quick else args.data_sets or GRAPH_SETS:
        data = load_set(name, args)

        def scores(p: str, data=data) -> np.ndarray:
            found = []
            for seed in range(args.first_seed, args.first_seed + args.seeds):
                model = FisherGraphEmbedding(random_state=seed, n_jobs=args.threads)
                model.set_params(readout__n_anchors=64, nodes__n_anchors=int(p))
                Z = model.fit_transform(data.graphs)
                found.append(inner_scores(Z, data.y, data.folds[: args.splits], inner=3, **ABLATION_GRID))
            return 100 * np.array(found)

        yield from compared(name, "graphs", scores, [p for p in args.components if p.isdigit()])


def seconds_of(args: Namespace) -> Iterator[dict[str, Any]]:
    """Seconds of `FisherEmbedding.fit_transform`, and the ratio to the first number of components, turn by turn."""
    components = [p for p in args.components if p.isdigit()]
    for name in ["tiny"] if args.quick else args.data_sets or TIMED:
        data = tiny_graph() if args.quick else load(name, args.data)
        for embedding in args.embeddings:

            def fit(p: str, data=data, more=EMBEDDINGS[embedding]) -> float:
                model = FisherEmbedding(random_state=0, n_jobs=args.threads).set_params(**more, **COMPONENTS[p])
                return timed(lambda: model.fit_transform(data.X, graph=data.graph))[0]

            fit(components[0])  # compiles
            took = np.array([[fit(p) for p in components] for _ in range(args.splits)])  # (turn, components)
            seconds, ratios = np.median(took, axis=0), np.median(took / took[:, :1], axis=0)
            for p, second, ratio in zip(components, seconds, ratios, strict=True):
                row = {"data": name, "embedding": embedding, "components": p}
                yield row | {"seconds": float(second), "ratio": float(ratio)}


PARTS: dict[str, Callable[[Namespace], Iterator[dict[str, Any]]]] = {
    "nodes": nodes,
    "sets": sets,
    "graphs": graphs,
    "time": seconds_of,
}


if __name__ == "__main__":
    main()
