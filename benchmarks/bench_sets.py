"""Sets of vectors: `FisherSetEmbedding` beside pooling, Fisher vectors and an optimal-transport embedding.

Data: what scikit-learn includes (bags.py), and sets with one mean. Half of the bags, drawn once, are for testing;
the defaults of `FisherSetEmbedding` were chosen on the other half (docs/decisions.md). Ten seeds: each draws 80 % of
the other half for training and a quarter of these for validation. Every method is tried with each of its settings and
with both probes (ridge regression, an RBF machine, on standardised columns); the best on validation is fitted again to
all of the training bags and tested once. "defaults" has no setting to choose but the probe.

    mean pooling        the mean of the members
    mean, covariance    and their covariance
    Fisher vectors      scikit-image, diagonal mixture of 8, 32 or 128 components, power and L2 normalisation
    optimal transport   POT, exact plan to 8, 32 or 128 k-means centres, barycentres minus centres (linear OT)
    fishergraph         defaults; or 8, 32 or 128 anchors, with and without the kernel map

Members are standardised for all methods; where they have weights, methods that know none get copies. Neighbourhoods
with one mean: `FisherEmbedding` with one layer and φ itself, one anchor against eight, a logistic probe.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bags import BAGS, Bags
from common import Rows, mean_std, parser, print_table, require
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fishergraph import FisherEmbedding, FisherSetEmbedding, GaussianMixture, Nystrom
from fishergraph._errors import FewPointsWarning
from fishergraph.datasets import equal_mean_graph

SPLIT_SEED = 12345
PROBES: dict[str, Callable[[], Any]] = {
    "ridge": lambda: RidgeClassifierCV(np.logspace(-2, 5, 8)),
    "rbf": lambda: SVC(C=10.0),
}
Embed = Callable[[Bags, Bags, int], tuple[np.ndarray, np.ndarray]]  # (train, test, seed) → their embeddings


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=10, help="number of seeds (default 10)")
    options.add_argument("--data-sets", nargs="+", choices=list(BAGS), default=list(BAGS), help="which bags")
    options.add_argument("--methods", nargs="+", help="which methods, by the beginnings of their names (default: all)")
    args = options.parse_args()
    for package in ("skimage", "ot"):
        require(package)
    warnings.filterwarnings("ignore", category=FewPointsWarning)  # few sets have fewer landmarks
    if args.quick:
        args.seeds, args.data_sets = 1, ["equal means"]
    rows = Rows("sets", args)
    for name in args.data_sets:
        bags = BAGS[name]()
        if args.quick:
            bags = bags.take(np.arange(80))
        for method, settings in methods(args.threads, args.quick).items():
            if args.methods and not method.startswith(tuple(args.methods)):
                continue
            for seed in range(args.seeds):
                rows.add(data=name, method=method, seed=seed, **one_run(bags, settings, seed))
            shown = [row["test"] for row in rows.rows if row["data"] == name and row["method"] == method]
            print(f"{name}: {method} {mean_std(shown, 100)}", flush=True)
    for seed in range(args.seeds):
        for method, n_anchors in (("mean pooling, one anchor", 1), ("fishergraph, eight anchors", 8)):
            row = neighbourhoods(n_anchors, seed, args.threads)
            rows.add(data="equal means, neighbourhoods", method=method, seed=seed, **row)
    summary(rows.rows)


def summary(rows: list[dict[str, Any]]) -> None:
    """Means over the seeds."""
    print()
    lines = []
    for key in dict.fromkeys((row["data"], row["method"]) for row in rows):
        mine = [row for row in rows if (row["data"], row["method"]) == key]
        seconds = float(np.median([row["seconds"] for row in mine]))
        lines.append([": ".join(key), mean_std([row["test"] for row in mine], 100), seconds])
    print_table(["", "test %", "embedding s"], lines)


def one_run(bags: Bags, settings: dict[str, Embed], seed: int) -> dict[str, Any]:
    """Validation and test accuracy of one seed, the setting that was chosen, and the seconds of its embedding."""
    train, test = split(bags, seed)
    fit, val = train_test_split(np.arange(len(train.y)), test_size=0.25, stratify=train.y, random_state=seed)
    inner = train.take(fit), train.take(val)
    tried = {}
    for name, embed in settings.items():
        Z = embed(*inner, seed)
        for probe in PROBES:
            tried[name, probe] = score(*Z, inner[0].y, inner[1].y, probe)
    name, probe = max(tried, key=lambda key: tried[key])  # the first of equals
    start = time.perf_counter()
    Z = settings[name](train, test, seed)
    seconds = time.perf_counter() - start
    accuracy = score(*Z, train.y, test.y, probe)
    return {
        "setting": name,
        "probe": probe,
        "val": tried[name, probe],
        "test": accuracy,
        "columns": Z[0].shape[1],
        "seconds": seconds,
        "train_sets": len(train.y),
        "test_sets": len(test.y),
    }


def selection_half(bags: Bags) -> np.ndarray:
    """The numbers of the bags that are not for testing."""
    rows = np.arange(len(bags.y))
    return np.sort(train_test_split(rows, test_size=0.5, stratify=bags.y, random_state=SPLIT_SEED)[0])


def split(bags: Bags, seed: int) -> tuple[Bags, Bags]:
    """(train, test): the test half is the same for all seeds."""
    selection = selection_half(bags)
    test = np.setdiff1d(np.arange(len(bags.y)), selection)
    train, _ = train_test_split(selection, test_size=0.2, stratify=bags.y[selection], random_state=seed)
    return bags.take(np.sort(train)), bags.take(test)


def score(Z: np.ndarray, other: np.ndarray, y: np.ndarray, other_y: np.ndarray, probe: str) -> float:
    return make_pipeline(StandardScaler(), PROBES[probe]()).fit(Z, y).score(other, other_y)


# The methods.


def methods(threads: int, quick: bool) -> dict[str, dict[str, Embed]]:
    """Every method with its settings."""
    sizes = (8,) if quick else (8, 32, 128)
    ours = {
        f"{p} anchors, {name}": fisher(n_anchors=p, kernel=kernel, n_jobs=threads)
        for p in sizes
        for name, kernel in (("exp", Nystrom(bandwidth=0.8)), ("identity", "identity"))
    }
    return {
        "mean pooling": {"mean": pooled(mean)},
        "mean, covariance": {"moments": pooled(moments)},
        "Fisher vectors (scikit-image)": {f"{p} components": fisher_vectors(p) for p in sizes},
        "optimal transport (POT)": {f"{p} centres": transport(p) for p in sizes},
        "fishergraph, defaults": {"defaults": fisher(n_jobs=threads)},
        "fishergraph, chosen": ours,
    }


def fisher(**params: Any) -> Embed:
    """`FisherSetEmbedding` with these parameters."""

    def embed(train: Bags, test: Bags, seed: int) -> tuple[np.ndarray, np.ndarray]:
        model = FisherSetEmbedding(**params, random_state=seed)
        Z = model.fit_transform(train.sets, weights=train.weights)
        return Z, model.transform(test.sets, weights=test.weights)

    return embed


def member_scaler(train: Bags) -> StandardScaler:
    return StandardScaler().fit(np.concatenate(train.copies()))


def standardised(train: Bags, test: Bags) -> Iterator[list[np.ndarray]]:
    """The sets of both with members to scale; weights as copies."""
    scaler = member_scaler(train)
    return ([scaler.transform(points) for points in bags.copies()] for bags in (train, test))


def mean(points: np.ndarray) -> np.ndarray:
    return points.mean(axis=0)


def moments(points: np.ndarray) -> np.ndarray:
    upper = np.triu_indices(points.shape[1])
    return np.concatenate([mean(points), np.cov(points.T, bias=True).reshape(points.shape[1], -1)[upper]])


def pooled(pool: Callable[[np.ndarray], np.ndarray]) -> Embed:
    def embed(train: Bags, test: Bags, seed: int) -> tuple[np.ndarray, np.ndarray]:
        first, second = (np.stack([pool(points) for points in sets]) for sets in standardised(train, test))
        return first, second

    return embed


def fisher_vectors(n_modes: int) -> Embed:
    """scikit-image's improved Fisher vectors; the mixture is learned from at most 20,000 members."""

    def embed(train: Bags, test: Bags, seed: int) -> tuple[np.ndarray, np.ndarray]:
        feature = require("skimage.feature")
        sets, others = standardised(train, test)
        members = np.concatenate(sets)
        rows = np.random.default_rng(seed).permutation(len(members))[:20_000]
        mixture = {"covariance_type": "diag", "random_state": seed, "reg_covar": 1e-3}
        gmm = feature.learn_gmm(members[rows], n_modes=n_modes, gm_args=mixture)
        first, second = (
            np.stack([feature.fisher_vector(points, gmm, improved=True) for points in part]) for part in (sets, others)
        )
        return first, second

    return embed


def transport(n_centres: int) -> Embed:
    """Linear optimal transport: where an exact plan to fixed centres takes its mass from, minus the centres."""

    def embed(train: Bags, test: Bags, seed: int) -> tuple[np.ndarray, np.ndarray]:
        scaler = member_scaler(train)
        members = scaler.transform(np.concatenate(train.copies()))
        centres = KMeans(n_centres, n_init=1, random_state=seed).fit(members).cluster_centers_
        first, second = (
            np.stack([barycentres(scaler.transform(points), centres, weights) for points, weights in weighted(part)])
            for part in (train, test)
        )
        return first, second

    return embed


def weighted(bags: Bags) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(members, their weights, which sum to one) of every set."""
    weights = bags.weights or [np.ones(len(points)) for points in bags.sets]
    return ((points, part / part.sum()) for points, part in zip(bags.sets, weights, strict=True))


def barycentres(points: np.ndarray, centres: np.ndarray, weights: np.ndarray) -> np.ndarray:
    ot = require("ot")
    even = np.full(len(centres), 1 / len(centres))
    plan = ot.emd(weights.astype(np.float64), even, ot.dist(points.astype(np.float64), centres.astype(np.float64)))
    return (len(centres) * (plan.T @ points) - centres).ravel()


def neighbourhoods(n_anchors: int, seed: int, threads: int) -> dict[str, Any]:
    """Test accuracy on nodes whose neighbourhoods have one mean."""
    data = equal_mean_graph(seed=seed)
    model = FisherEmbedding(
        1,
        n_anchors,
        family=GaussianMixture(sharpness=0.5),
        kernel="identity",
        walk=None,
        structure=None,
        normalize=False,
        random_state=seed,
        n_jobs=threads,
    )
    start = time.perf_counter()
    Z = model.fit_transform(data.X, graph=data.graph)
    seconds = time.perf_counter() - start
    train, val, test = data.split()
    probe = make_pipeline(StandardScaler(), LogisticRegression()).fit(Z[train], data.y[train])
    return {
        "setting": f"{n_anchors} anchors, identity",
        "probe": "logistic",
        "val": probe.score(Z[val], data.y[val]),
        "test": probe.score(Z[test], data.y[test]),
        "columns": Z.shape[1],
        "seconds": seconds,
        "train_sets": len(train),
        "test_sets": len(test),
    }


if __name__ == "__main__":
    main()
