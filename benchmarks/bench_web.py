"""Small graphs whose neighbours differ, like the web pages of a university: never worse than the features alone?

    python benchmarks/bench_web.py

Planted graphs. A page has a class (of unequal sizes) and words, of which some are typical of its class. It links to
pages of the next class, not of its own, and mostly to a few that many link to. --mixed gives the share of links that go
anywhere instead: with 1.0 edges say nothing. Of the nodes 48 % train, 32 % choose and 20 % judge, drawn with the seed.

    raw         the features and LogisticProbe
    logistic    the default embedding and LogisticProbe
    one-block   the default embedding and GraphProbe, told that all columns are one block
    array       the same, and nothing said of blocks: it finds them in the numbers
    blocks      the same with `model.blocks_`
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import Rows, mean_std, parser, print_table, random_split

from fishergraph import FisherEmbedding, GraphProbe, LogisticProbe
from fishergraph.datasets.records import undirected_graph

_SIZES = (0.35, 0.25, 0.2, 0.15, 0.05)  # of the classes
_N_WORDS, _TYPICAL, _OTHER = 500, 0.09, 0.03


def web_graph(n: int, mixed: float, seed: int) -> tuple[np.ndarray, Any, np.ndarray]:
    """Words, graph and classes of n pages."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(_SIZES), n, p=_SIZES)
    typical = np.arange(_N_WORDS) % len(_SIZES) == y[:, None]
    words = (rng.random((n, _N_WORDS)) < np.where(typical, _TYPICAL, _OTHER)).astype(np.float32)
    popular = 1 / (1 + rng.permutation(n))
    sources, targets = [], []
    for v in range(n):
        wanted = popular * (1.0 if rng.random() < mixed else y == (y[v] + 1) % len(_SIZES))
        wanted[v] = 0
        sources += [v, v]
        targets += rng.choice(n, 2, p=wanted / wanted.sum()).tolist()
    return words, undirected_graph(np.array(sources), np.array(targets), n), y


def scores(n: int, mixed: float, seed: int, args: argparse.Namespace) -> dict[str, float]:
    """The accuracy of every method on the judging nodes, in percent, and how many blocks an array had."""
    X, graph, y = web_graph(n, mixed, seed)
    train, val, judged = random_split(n, seed, fractions=(0.48, 0.32))
    model = FisherEmbedding(random_state=seed, n_jobs=args.threads)
    Z = model.fit_transform(X, graph=graph)
    options: dict[str, Any] = {"random_state": seed, "n_jobs": args.threads}
    found = GraphProbe(graph, **options).fit(Z, y, train, val)
    fitted = {
        "raw": (LogisticProbe().fit(X, y, train, val), X),
        "logistic": (LogisticProbe().fit(Z, y, train, val), Z),
        "one-block": (GraphProbe(graph, blocks=[Z.shape[1]], **options).fit(Z, y, train, val), Z),
        "array": (found, Z),
        "blocks": (GraphProbe(graph, blocks=model.blocks_, **options).fit(Z, y, train, val), Z),
    }
    result = {name: 100 * float(np.mean(probe.predict(T)[judged] == y[judged])) for name, (probe, T) in fitted.items()}
    return {**result, "blocks_found": len(found.blocks_)}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--nodes", type=int, nargs="*", default=[200, 800])
    options.add_argument("--mixed", type=float, nargs="*", default=[0.2, 1.0])
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.seeds, args.nodes, args.mixed = 1, [120], [0.2]
    rows, table = Rows("web", args), []
    for n in args.nodes:
        for mixed in args.mixed:
            found = [rows.add(nodes=n, mixed=mixed, seed=s, **scores(n, mixed, s, args)) for s in range(args.seeds)]
            names = ("raw", "logistic", "one-block", "array", "blocks")
            table.append([n, mixed, *(mean_std([row[name] for row in found]) for name in names)])
            print(*table[-1], flush=True)
    print_table(["nodes", "mixed", "raw", "logistic", "one block", "array", "blocks"], table)


if __name__ == "__main__":
    main()
