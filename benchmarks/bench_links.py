"""Link prediction: edges held out, 85 % of them for the embedding, 5 % for choices and 10 % to judge.

As many random pairs without an edge are beside them. A split belongs to a seed; no method sees the judging edges before
it is judged, and no embedding the validation edges. Methods:

    similarity     the cosine of the default embedding
    probe          LinkProbe with the default embedding
    probe-vectors  LinkProbe that gets the default embedding as vectors, and learns from the validation edges alone
    raw, sgc, netmf, node2vec
                   their vectors; the cosine, or logistic regression on products of columns learned from the training
                   edges, chosen on the validation edges
    X+probe        LinkProbe on these vectors, with all heads; its seconds are without those of the vectors
    gae, vgae      graph autoencoders with two GCN layers, and gae-mlp with a network that reads pairs; the settings
                   below and the epoch are chosen on the validation edges

Directed graphs are read undirected unless --directed is given; then an edge and its reverse are two pairs, and are held
out together. Columns of a row: area under the ROC curve, average precision, hits@10, hits@50, hits@100 (in percent).
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from functools import lru_cache
from typing import Any

import numpy as np
from common import Rows, load, mean_std, parser, print_table, timed, tiny_graph

from fishergraph import FisherEmbedding, LinkProbe, Neighbourhood, Vectors, as_graph, split_edges
from fishergraph.datasets import GraphData
from fishergraph.lab import baseline
from fishergraph.probes import EdgeSplit, link_metrics

OTHERS = ("raw", "sgc", "netmf", "node2vec")
WIDE = {"hidden": 128, "dim": 64, "dropout": 0.5}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "gae": [{"hidden": 32, "dim": 16}, WIDE],
    "vgae": [{"hidden": 32, "dim": 16, "variational": True}, {**WIDE, "variational": True}],
    "gae-mlp": [{**WIDE, "decoder": "mlp"}],
}
METHODS = ("similarity", "probe", "probe-vectors", *OTHERS, *(f"{name}+probe" for name in OTHERS), *SETTINGS)


def embedding(seed: int, args: Namespace) -> FisherEmbedding:
    """The default embedding; of a directed graph it averages over both ends of edges."""
    both = Neighbourhood(undirected=True) if args.directed else "neighbourhood"
    return FisherEmbedding(multiset=both, random_state=seed, n_jobs=args.threads)


def evaluate(
    data: GraphData, split: EdgeSplit, method: str, seed: int, args: Namespace
) -> tuple[dict[str, float], str]:
    """The measures of a method on the judging edges, and what it chose."""
    if method in SETTINGS:
        return autoencoder(data, split, SETTINGS[method], seed, args)
    probe: dict[str, Any] = {"random_state": seed, "n_jobs": args.threads}
    if method == "similarity":
        Z = embedding(seed, args).fit_transform(data.X, graph=split.graph)
        return link_metrics(Vectors(Z).link_scores(split.test), split.test.edges), ""
    if method == "probe":
        fitted = LinkProbe(embedding(seed, args), **probe).fit(data.X, split)
    elif method == "probe-vectors":
        model = embedding(seed, args)
        Z = model.fit_transform(data.X, graph=split.graph)
        fitted = LinkProbe(blocks=model.blocks_, **probe).fit(Z, split)
    else:
        name, _, more = method.partition("+")
        heads = ("similarity", "products", *(("logistic", "boosted") if more else ()))
        fitted = LinkProbe(heads=heads, **probe).fit(vectors(data, split, name, seed), split)
    return fitted.evaluate(split.test), fitted.head_


@lru_cache(maxsize=len(OTHERS))
def vectors(data: GraphData, split: EdgeSplit, name: str, seed: int) -> Any:
    """The vectors of another method, from the training graph."""
    if name == "raw":
        return np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float32)
    return baseline(name).vectors(data.X, split.graph, seed=seed)


def autoencoder(
    data: GraphData, split: EdgeSplit, settings: list[dict[str, Any]], seed: int, args: Namespace
) -> tuple[dict[str, float], str]:
    """The measures of the autoencoder whose settings are best on the validation edges."""
    from fishergraph.lab.baselines.autoencoder import GraphAutoencoder

    shared = {"device": args.device, "n_jobs": args.threads} | ({"epochs": 10} if args.quick else {})
    fitted = [GraphAutoencoder(**chosen, **shared).fit(data.X, split, seed=seed) for chosen in settings]
    best = max(range(len(fitted)), key=lambda number: fitted[number].val_score_)
    return link_metrics(fitted[best].decision_function(split.test), split.test.edges), str(settings[best])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    options.add_argument("--graphs", nargs="*", default=["cora", "citeseer", "pubmed"])
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--directed", action="store_true", help="keep the directions of edges")
    options.add_argument("--device", default="cpu", help="of the autoencoders")
    args = options.parse_args()
    warnings.simplefilter("ignore")
    if args.quick:
        args.seeds, args.methods = 1, [name for name in METHODS if "node2vec" not in name and not name.endswith("mlp")]
    rows, table = Rows("links", args), []
    for name in ["tiny"] if args.quick else args.graphs:
        data = tiny_graph() if args.quick else load(name, args.data)
        graph = as_graph(data.graph, undirected=not args.directed)
        results: dict[str, list[dict[str, Any]]] = {method: [] for method in args.methods}
        for seed in range(args.first, args.first + args.seeds):
            split = split_edges(graph, random_state=seed)
            for method in args.methods:
                spent, (measures, chosen) = timed(lambda: evaluate(data, split, method, seed, args))  # noqa: B023
                shares = {key: 100 * value for key, value in measures.items()}
                settings = {"graph": name, "method": method, "directed": args.directed, "seed": seed, "chosen": chosen}
                device = args.device if method in SETTINGS else "cpu"
                results[method].append(rows.add(**settings, device=device, seconds=spent, **shares))
                print(name, seed, method, f"{shares['auc']:.2f}", f"{spent:.1f} s", flush=True)
        for method, found in results.items():
            columns = [key for key in ("auc", "average_precision", "hits@10", "hits@50") if key in found[0]]
            cells = [mean_std([row[key] for row in found]) for key in columns]
            table.append([name, method, *cells, f"{np.median([row['seconds'] for row in found]):.1f}"])
    print_table(["graph", "method", "AUC", "AP", *(["hits@10", "hits@50"] if len(table[0]) > 5 else []), "s"], table)


if __name__ == "__main__":
    main()
