"""Are the blocks of an embedding found in its numbers, and never wrong? results/blocks.csv.

    python benchmarks/bench_blocks.py

Random graphs of 80 to 1,500 nodes, with features of four kinds (normal, words, positive numbers, none), degrees from
0.7 to 15, and neighbours that agree, differ or do neither; the embedding has 16 to 256 columns a block and one to three
layers. "missing" are borders of `blocks_` that were not found, "wrong" are those found that it does not have.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Rows, parser, print_table

from fishergraph import FisherEmbedding
from fishergraph.probes.found_blocks import find_blocks


def drawn(rng: np.random.Generator) -> tuple[str, Any, sp.csr_array]:
    """The kind of features, features, and adjacency of a random graph."""
    n, n_features, n_classes = int(rng.choice([80, 150, 300, 700, 1500])), int(rng.choice([3, 10, 40, 300])), 3
    y = rng.integers(n_classes, size=n)
    noise, typical = rng.normal(size=(n, n_features)), np.arange(n_features) % n_classes == y[:, None]
    features = {
        "normal": noise + typical,
        "words": rng.random((n, n_features)) < 0.05 + 0.1 * typical,
        "positive": np.abs(noise),
        "none": None,
    }
    kind = str(rng.choice(list(features)))
    chosen = features[kind]
    X = None if chosen is None else chosen.astype(np.float32)
    inside, outside = rng.choice([0.3, 1.0, 3.0], 2)
    p = rng.choice([0.7, 2.0, 5.0, 15.0]) / n * np.where(y[:, None] == y, inside, outside)
    half = np.triu(rng.random((n, n)) < p, 1)
    return kind, X, sp.csr_array((half | half.T).astype(np.float32))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=150)
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows, results = Rows("blocks", args), []
    for seed in range(3 if args.quick else args.seeds):
        rng = np.random.default_rng(seed)
        kind, X, A = drawn(rng)
        dim, n_layers = int(rng.choice([16, 32, 64, 128, 256])), int(rng.choice([1, 2, 3]))
        model = FisherEmbedding(n_layers, dim=dim, random_state=0, n_jobs=args.threads)
        Z = model.fit_transform(X, graph=A)
        found = {part.stop for part in find_blocks(Z)}
        ends = set(np.cumsum([width for _, width in model.blocks_]).tolist())
        counts = {"borders": len(ends), "missing": len(ends - found), "wrong": len(found - ends)}
        settings = {"nodes": len(Z), "edges": A.nnz, "features": kind, "dim": dim, "layers": n_layers}
        results.append(rows.add(seed=seed, **settings, **counts))
    table = []
    for least in (0, 64, 256):
        some = [row for row in results if row["dim"] >= least]
        whole = sum(row["missing"] == row["wrong"] == 0 for row in some)
        table.append([least, len(some), whole, *(sum(row[key] for row in some) for key in ("missing", "wrong"))])
    print_table(["dim from", "embeddings", "all found", "borders missing", "borders wrong"], table)


if __name__ == "__main__":
    main()
