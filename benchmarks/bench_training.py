"""Seconds and peak memory of one epoch of full-batch training: FisherNet beside GAT and GATv2 at equal hidden width.

An epoch is a forward pass, a backward pass and a step of Adam on the whole graph. On a GPU an epoch of `train`, which
measures accuracies too, stands beside it: `train` captures that of a small graph. All networks have three layers of the
same width, dropout 0.5, and p = heads = 4; ours ends each layer with batch norm and ReLU, and has an input map where x
is wider than the layers. Every model runs in a process of its own, and they take turns, so that what else the machine
does falls on all of them. On arxiv the features are random, 128 as in the original: the time does not depend on them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import SUPPRESS, Namespace
from typing import Any

import numpy as np
from common import PeakMemory, Rows, load, parameters, parser, print_table, require, seconds, spread, tiny_graph

MODELS = ("fisher", "gat", "gatv2")
GRAPHS = ("pubmed", "arxiv")
LAYERS, COMPONENTS, ARXIV_FEATURES, ARXIV_CLASSES = 3, 4, 128, 40


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="*", default=list(GRAPHS))
    options.add_argument("--models", nargs="*", default=list(MODELS))
    options.add_argument("--hidden", type=int, default=128)
    options.add_argument("--device", default="cpu")
    options.add_argument("--rounds", type=int, default=3, help="turns that every model has (default 3)")
    options.add_argument("--one", help=SUPPRESS)
    args = options.parse_args()
    require("torch_geometric")
    if args.one:
        print(json.dumps(measure(args, *args.one.split(":"))))
        return
    if args.quick:
        args.graphs, args.rounds, args.hidden = ["tiny"], 1, 16
    rows = Rows("training", args)
    for graph in args.graphs:
        results = {model: [] for model in args.models}
        for _ in range(args.rounds):
            for model in args.models:
                results[model].append(in_own_process(graph, model, args))
        for model, runs in results.items():
            middle = spread([run["epoch_s"] for run in runs], "epoch_s")
            if args.device != "cpu":
                middle |= spread([run["train_s"] for run in runs], "train_s")
            least = {"peak_gb": min(run["peak_gb"] for run in runs)}
            rows.add(
                graph=graph,
                model=model,
                device=args.device,
                hidden=args.hidden,
                layers=LAYERS,
                components=COMPONENTS,
                rounds=args.rounds,
                **{**runs[0], **middle, **least},
            )
        table([row for row in rows.rows if row["graph"] == graph])


def in_own_process(graph: str, model: str, args: Namespace) -> dict[str, Any]:
    """The measures of one model, by this script itself."""
    named = {"hidden": args.hidden, "device": args.device, "threads": args.threads, "data": args.data}
    options = [part for key, value in named.items() if value is not None for part in (f"--{key}", str(value))]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--one", f"{graph}:{model}", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{model} on {graph} ended with status {done.returncode}.")
    return json.loads(done.stdout.splitlines()[-1])


def measure(args: Namespace, graph: str, model: str) -> dict[str, Any]:
    """Median seconds of an epoch, and the most memory that epochs took beyond the data."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    x, edges, y, train = (part.to(args.device) for part in problem(graph, args))
    torch.manual_seed(0)
    net = build(model, x.shape[1], int(y.max()) + 1, args.hidden).to(args.device).train()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    gpu = args.device != "cpu"

    def epoch() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(x, edges)[train], y[train]).backward()
        optimizer.step()
        if gpu:
            torch.cuda.synchronize()

    peak = peak_of(epoch, gpu)
    times = seconds(epoch, repeat=20 if gpu else 3, warm_up=3 if gpu else 1)
    trained = {"train_s": seconds_of_train(net, x, y, edges, train)} if gpu else {}
    return {
        **trained,
        "nodes": x.shape[0],
        "edges": edges.shape[1],
        "parameters": parameters(net),
        "epoch_s": times,
        "peak_gb": peak / 1e9,
    }


def seconds_of_train(net: Any, x: Any, y: Any, edges: Any, nodes: Any) -> float:
    """The median seconds of an epoch of `train`, after its warm-up."""
    from fishergraph.nn import train

    history = train(net, x, y, edges, train=nodes, epochs=40, patience=None)
    return float(np.median([row["seconds"] for row in history.rows[10:]]))


def peak_of(epoch: Any, gpu: bool) -> int:
    """The most bytes beyond those held before; of a second epoch, when compiling is done."""
    import torch

    epoch()
    if not gpu:
        with PeakMemory() as memory:
            epoch()
        return memory.extra
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    epoch()
    return torch.cuda.max_memory_allocated() - before


def problem(graph: str, args: Namespace) -> tuple[Any, ...]:
    """x, edge_index, y, and the numbers of the training nodes."""
    import torch

    data = tiny_graph() if graph == "tiny" else load({"arxiv": "ogbn_arxiv"}.get(graph, graph), args.data)
    targets = np.repeat(np.arange(data.n_nodes), np.diff(data.graph.indptr))
    edges = np.stack([data.graph.indices.astype(np.int64), targets])
    if graph == "arxiv":
        x = np.random.default_rng(0).standard_normal((data.n_nodes, ARXIV_FEATURES), dtype=np.float32)
    else:
        x = data.X.toarray().astype(np.float32) if hasattr(data.X, "toarray") else data.X.astype(np.float32)
    train = data.split()[0]
    return tuple(torch.as_tensor(part) for part in (x, edges, data.y, train))


def build(model: str, in_channels: int, n_classes: int, hidden: int) -> Any:
    """The network of that name."""
    from fishergraph.lab.baselines.networks import PyGNetwork
    from fishergraph.nn import FisherNet

    if model == "fisher":
        return FisherNet(
            in_channels,
            hidden,
            LAYERS,
            n_classes,
            num_anchors=COMPONENTS,
            head="relu",
            jk="last",
            input_map=in_channels > hidden,
            dropout=0.5,
        )
    return PyGNetwork(model, in_channels, hidden, LAYERS, n_classes, heads=COMPONENTS, dropout=0.5, rows=False)


def table(rows: list[dict[str, Any]]) -> None:
    """Seconds, memory, and how many times ours."""
    ours = next((row for row in rows if row["model"] == "fisher"), None)
    cells = []
    for row in rows:
        ratios = ("", "") if ours is None else (row["epoch_s"] / ours["epoch_s"], row["peak_gb"] / ours["peak_gb"])
        cells.append((f"{row['graph']} {row['model']}", row["epoch_s"], ratios[0], row["peak_gb"], ratios[1]))
    print_table(("graph, model", "s per epoch", "× ours", "peak GB", "× ours"), cells)


if __name__ == "__main__":
    main()
