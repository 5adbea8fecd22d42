"""Multisets of the ogbn-arxiv graph: seconds to build them, their members, and seconds of two layers over them."""

from __future__ import annotations

from common import Rows, load, parser, print_table, timed, tiny_graph

from fishergraph import FisherEmbedding, HeatKernel, Hops, PageRank, Pairs, Paths, StepAverage, as_graph
from fishergraph.multiset import choose_multiset

MULTISETS = [
    "neighbourhood",
    Hops(2),
    Hops(3),
    PageRank(),
    HeatKernel(),
    StepAverage(),
    Pairs(),
    Paths(2, max_paths=32),
    Paths(2),
    Paths(3, max_paths=32),
]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--dim", type=int, default=128)
    options.add_argument("--anchors", type=int, default=4)
    args = options.parse_args()
    data = tiny_graph() if args.quick else load("ogbn_arxiv", args.data)
    graph, small, rows, table = as_graph(data.graph), tiny_graph(n_nodes=600), Rows("multisets", args), []
    for multiset in MULTISETS:
        shape = {"dim": min(args.dim, 16) if args.quick else args.dim, "n_anchors": args.anchors}
        model = FisherEmbedding(
            2, multiset=multiset, walk=None, structure=None, n_jobs=args.threads, random_state=0, **shape
        )
        model.fit(small.X, graph=small.graph)  # compiles
        build = choose_multiset(multiset)
        seconds, sets = timed(lambda build=build: build(graph, n_jobs=args.threads))
        members = sets.n_entries
        del sets
        whole, _ = timed(lambda model=model: model.fit_transform(data.X, graph=data.graph))
        row = {"multiset": str(multiset), "members": members, "build_seconds": seconds, "seconds": whole}
        rows.add(graph=data.name, layers=2, **shape, **row)
        table.append(list(row.values()))
        print(*table[-1], flush=True)
    print_table(["multiset", "members", "build s", "two layers, all s"], table)


if __name__ == "__main__":
    main()
