"""Defaults of `FisherGraphEmbedding`: settings by inner validation, with one set left out at a time, and the default.

The classifier is the same everywhere, and the documented one (docs/graphs.md): columns are centred, an RBF support
vector machine has scikit-learn's γ, one over the mean squared length of the rows, and C is the best of 1, 3, 10.
Accuracies are those of cross-validation inside the training parts of the first folds; test parts are not scored, except
by the last study.

    --study changes    inner accuracy of every change on every set (default)
    --study left-out   from those rows: for each set the change that is best on the others, and what it has there
    --study default    the untouched default on the ten test folds, learned without labels from all graphs of a set
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from bench_graphs import load_set
from common import RESULTS, Rows, mean_std, parser, print_table, read_rows
from numpy.typing import DTypeLike
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import FeatureUnion
from sklearn.svm import SVC

from fishergraph import FisherGraphEmbedding, Graphs
from fishergraph._parallel import one_blas_thread
from fishergraph.graph import Graph
from fishergraph.lab.nested import squared_distances
from fishergraph.multiset import SplitSets, neighbourhoods, singletons
from fishergraph.multiset.rule import Rule
from fishergraph.multiset.split import side_by_side

CS = (1.0, 3.0, 10.0)

# name of the set: (training parts, seeds of embeddings, parts of the inner validation, its repeats)
SETS = {
    "MUTAG": (3, 3, 5, 2),
    "PROTEINS": (2, 2, 5, 2),
    "IMDBBINARY": (2, 2, 5, 2),
    "NCI1": (1, 1, 3, 1),
    "COLLAB": (1, 1, 3, 1),
}


@dataclass(frozen=True, repr=False)
class Apart(Rule):
    """A node and its neighbours as two multisets side by side: Weisfeiler and Lehman's pair of colour and colours."""

    @property
    def kinds(self) -> int:
        return 2

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> SplitSets:
        return side_by_side([singletons(graph.n_nodes), neighbourhoods(graph, closed=False)])


# Written out, so that the rows stay comparable if a default changes.
OLD: dict[str, Any] = {
    "nodes__n_layers": 3,
    "nodes__n_anchors": 8,
    "readout__n_anchors": 128,
    "readout__family__sharpness": 0.1,
    "readout__reading": "counts",
}
MEANS: dict[str, Any] = {**OLD, "nodes__n_anchors": 1}
WIDE: dict[str, Any] = {**MEANS, "readout__n_anchors": 256}
CHANGES: dict[str, dict[str, Any]] = {
    "8 anchors in layers, 128 in readouts": OLD,
    "8 anchors in layers, 256 in readouts": {**OLD, "readout__n_anchors": 256},
    "one anchor in layers": MEANS,
    "one anchor, 256 in readouts": WIDE,
    "one anchor, one in readouts for 16 graphs, 128 to 256": {**MEANS, "readout__n_anchors": "auto"},
    "one anchor, 64 in readouts": {**MEANS, "readout__n_anchors": 64},
    "one anchor, 512 in readouts": {**MEANS, "readout__n_anchors": 512},
    "one anchor, sharpness 0.2, 256 in readouts": {**WIDE, "readout__family__sharpness": 0.2},
    "one anchor, sharpness 0.3, 256 in readouts": {**WIDE, "readout__family__sharpness": 0.3},
    "one anchor, one layer": {**MEANS, "nodes__n_layers": 1},
    "one anchor, two layers": {**MEANS, "nodes__n_layers": 2},
    "one anchor, core numbers": {**MEANS, "cores": True},
    "one anchor, open neighbourhoods": {**MEANS, "nodes__multiset": "open-neighbourhood"},
    "one anchor, nodes apart from neighbours": {**MEANS, "nodes__multiset": Apart()},
    "one anchor, weights": {**MEANS, "readout__reading": "weights"},
    "one anchor, von Mises-Fisher in readouts": {**MEANS, "readout__family": "von-mises-fisher"},
    "one anchor, two seeds side by side": {**MEANS, "seeds": 2},
}
TINY: dict[str, Any] = {"nodes__n_layers": 1, "readout__n_anchors": 4}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="which sets")
    options.add_argument("--study", choices=list(STUDIES), default="changes")
    options.add_argument("--changes", nargs="+", help="names of changes (default all)")
    options.add_argument("--seeds", type=int, help="seeds of embeddings (default: those of SETS, of the default 1)")
    options.add_argument("--first-seed", type=int, default=0, help="of the study default")
    args = options.parse_args()
    STUDIES[args.study](args)


def make(settings: dict[str, Any], graphs: Graphs, seed: int, threads: int) -> Any:
    """The embedding with these settings, or several seeds of it side by side."""
    settings = dict(settings)
    seeds = settings.pop("seeds", 1)
    if settings.pop("cores", False):
        settings["inputs"] = ("degrees", "cores") if graphs.tags is None else ("tags", "degrees", "cores")
    seeded = range(seed * seeds, (seed + 1) * seeds)
    models = [FisherGraphEmbedding(random_state=s, n_jobs=threads).set_params(**settings) for s in seeded]
    return models[0] if seeds == 1 else FeatureUnion([(str(s), model) for s, model in enumerate(models)])


def changes(args: Namespace) -> None:
    """Inner accuracy of every change on every set."""
    rows = Rows("graph_defaults", args)
    for name in args.changes or CHANGES:
        for set_name in args.sets[: 1 if args.quick else None]:
            data = load_set(set_name, args)
            folds, seeds, inner, repeats = (1, 1, 2, 1) if args.quick else SETS[set_name]
            seeds = args.seeds or seeds
            scores, seconds, width = [], 0.0, 0
            for seed in range(seeds):
                start = time.perf_counter()
                model = make(TINY if args.quick else CHANGES[name], data.graphs, seed, args.threads)
                Z = model.fit_transform(data.graphs)
                seconds, width = time.perf_counter() - start, Z.shape[1]
                scores += [inner_accuracy(Z[fit], data.y[fit], inner, repeats) for fit, _ in data.folds[:folds]]
            value = float(np.mean(scores))
            row = {"set": data.name, "change": name, "seeds": seeds, "columns": width, "inner": value}
            rows.add(study="changes", **row, seconds=seconds)
            print(f"{name}: {data.name}: {100 * value:.2f}, {width} columns, {seconds:.1f} s", flush=True)
        if args.quick:
            return


def inner_accuracy(Z: np.ndarray, y: np.ndarray, inner: int, repeats: int) -> float:
    """The accuracy of cross-validation with the best C."""
    centred = Z.astype(np.float64) - Z.mean(axis=0, dtype=np.float64)
    gram = np.exp(-squared_distances(centred) / np.mean(np.sum(centred**2, axis=1)))
    splits = list(RepeatedStratifiedKFold(n_splits=inner, n_repeats=repeats, random_state=0).split(Z, y))

    def score(C: float, fit: np.ndarray, val: np.ndarray) -> float:
        model = SVC(C=C, kernel="precomputed", cache_size=500).fit(gram[np.ix_(fit, fit)], y[fit])
        return float(model.score(gram[np.ix_(val, fit)], y[val]))

    with one_blas_thread():
        return max(float(np.mean([score(C, *split) for split in splits])) for C in CS)


def left_out(args: Namespace) -> None:
    """For each set, the change with the highest mean gain over the first one on the other sets, and its gain there."""
    rows = read_rows((args.results or RESULTS) / "graph_defaults.csv")
    kept = [row for row in rows if row["study"] == "changes" and int(row["seeds"]) == SETS[row["set"]][1]]
    inner = {(row["change"], row["set"]): 100 * float(row["inner"]) for row in kept}
    base = next(iter(CHANGES))
    full = [change for change in CHANGES if all((change, name) in inner for name in args.sets)]
    gain = {(change, name): inner[change, name] - inner[base, name] for change in full for name in args.sets}
    lines = [
        [change, *(gain[change, name] for name in args.sets), mean_gain(gain, change, args.sets)] for change in full
    ]
    table = [[line[0], *(f"{value:+.2f}" for value in line[1:])] for line in lines]
    print_table(["gain over the first row", *args.sets, "mean"], table)
    for name in args.sets:
        others = [other for other in args.sets if other != name]
        best = max(full, key=partial(mean_gain, gain, sets=others))
        print(f"{name} left out: {best}, {mean_gain(gain, best, others):+.2f} there, {gain[best, name]:+.2f} on {name}")


def mean_gain(gain: dict[tuple[str, str], float], change: str, sets: list[str]) -> float:
    """The mean gain of a change over these sets."""
    return float(np.mean([gain[change, name] for name in sets]))


def default(args: Namespace) -> None:
    """Test accuracy of the default: C is chosen by five parts inside the training part of every fold."""
    rows = Rows("graph_defaults", args)
    lines = []
    for name in args.sets[: 1 if args.quick else None]:
        data, means = load_set(name, args), []
        for seed in range(args.first_seed, args.first_seed + (args.seeds or 1)):
            start = time.perf_counter()
            Z = make(TINY if args.quick else {}, data.graphs, seed, args.threads).fit_transform(data.graphs)
            seconds = time.perf_counter() - start
            scores = fold_scores(Z, data, partial(rows.add, study="default", set=data.name, seed=seed))
            summary = {"test": float(np.mean(scores)), "std": float(np.std(scores, ddof=1)), "seed": seed}
            rows.add(study="default, all folds", set=data.name, columns=Z.shape[1], seconds=seconds, **summary)
            means.append(summary["test"])
            print(name, seed, mean_std(scores, 100), Z.shape[1], f"{seconds:.1f} s", flush=True)
        lines.append([name, len(means), mean_std(means, 100)])
    print_table(["", "seeds", "test %, mean of ten folds"], lines)


def fold_scores(Z: np.ndarray, data: Any, add: Callable[..., Any]) -> list[float]:
    """The test accuracy of every fold; `add` writes a row."""
    distances, scores = squared_distances(Z.astype(np.float64)), []
    for number, (train, test) in enumerate(data.folds):
        gram = np.exp(-distances / np.mean(np.sum((Z[train] - Z[train].mean(axis=0)) ** 2, axis=1)))
        parts = StratifiedKFold(5, shuffle=True, random_state=0)
        search = GridSearchCV(SVC(kernel="precomputed", cache_size=500), {"C": CS}, cv=parts)
        with one_blas_thread():
            search.fit(gram[np.ix_(train, train)], data.y[train])
        scores.append(float(search.score(gram[np.ix_(test, train)], data.y[test])))
        add(fold=number, C=search.best_params_["C"], inner=search.best_score_, test=scores[-1])
    return scores


STUDIES: dict[str, Callable[[Namespace], None]] = {"changes": changes, "left-out": left_out, "default": default}

if __name__ == "__main__":
    main()
