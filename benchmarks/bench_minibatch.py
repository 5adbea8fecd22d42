"""Test accuracy of networks trained on sampled neighbourhoods: FisherNet, GCN, GraphSAGE, GAT and GATv2, ten seeds.

The graph is ogbn_arxiv_sub18k: a reconstructed random-walk sample of ogbn-arxiv (17,849 of its 169,343 nodes, their
original features, labels and years), so these are no accuracies of ogbn-arxiv. All networks have the same width, two
layers, batch norm, dropout 0.5, one sampler, one loop and the same budget: the learning rate is the one of two with the
higher validation accuracy in one run, then ten seeds; the test nodes are looked at in those alone. p = heads = 4.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from bench_supervised import tensors
from common import Rows, load, mean_std, parameters, parser, print_table, require, tiny_graph

MODELS = ("fisher", "gcn", "sage", "gat", "gatv2")
RATES = (0.003, 0.01)
LAYERS, COMPONENTS, DROPOUT, SEARCH_SEED = 2, 4, 0.5, 1000


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--hidden", type=int, default=128)
    options.add_argument("--epochs", type=int, default=30)
    options.add_argument("--patience", type=int, default=10)
    options.add_argument("--batch-size", type=int, default=1024)
    options.add_argument("--fan-out", type=int, default=10)
    options.add_argument("--device", default="cpu")
    args = options.parse_args()
    require("torch_geometric")
    if args.quick:
        args.seeds, args.hidden, args.epochs, args.batch_size = 2, 16, 2, 20
    data = tiny_graph() if args.quick else load("ogbn_arxiv_sub18k", args.data)
    rows = Rows("minibatch", args)
    for model in args.models:
        tried = [rows.add(stage="grid", **run(data, args, model, lr, SEARCH_SEED, look_at_test=False)) for lr in RATES]
        lr = max(tried, key=lambda row: row["val"])["lr"]
        for seed in range(args.seeds):
            row = rows.add(stage="final", **run(data, args, model, lr, seed, look_at_test=True))
            print(f"  {model} lr {lr} seed {seed}: val {row['val']:.4f}, test {row['test']:.4f}", flush=True)
    summary([row for row in rows.rows if row["stage"] == "final"])


def run(data: Any, args: Namespace, model: str, lr: float, seed: int, *, look_at_test: bool) -> dict[str, Any]:
    """One training: its accuracies, epochs and seconds."""
    import torch

    from fishergraph.nn.training import train

    torch.set_num_threads(args.threads)
    x, edges, y = tensors(data, "cpu", dense=True)
    parts = dict(zip(("train", "val", "test"), (torch.as_tensor(part) for part in data.split()), strict=True))
    torch.manual_seed(seed)
    net = build(model, x.shape[1], int(y.max()) + 1, args.hidden)
    labels = torch.full_like(y, -1)  # the loop is not shown the labels of the test nodes
    for part in ("train", "val"):
        labels[parts[part]] = y[parts[part]]
    history = train(
        net,
        x,
        labels,
        edges,
        train=parts["train"],
        val=parts["val"],
        epochs=args.epochs,
        patience=args.patience,
        lr=lr,
        weight_decay=0.0,
        batch_size=args.batch_size,
        num_neighbors=[args.fan_out] * LAYERS,
        seed=seed,
        device=args.device,
    )
    with torch.no_grad():
        right = (net(x.to(args.device), edges.to(args.device)).argmax(dim=1).cpu() == y).float()
    return {
        "graph": data.name,
        "model": model,
        "hidden": args.hidden,
        "layers": LAYERS,
        "components": COMPONENTS,
        "batch_size": args.batch_size,
        "fan_out": args.fan_out,
        "lr": lr,
        "seed": seed,
        "device": args.device,
        "val": float(right[parts["val"]].mean()),
        "test": float(right[parts["test"]].mean()) if look_at_test else "",
        "best_epoch": history.best_epoch,
        "epochs": len(history.rows),
        "seconds": sum(row["seconds"] for row in history.rows),
        "parameters": parameters(net),
    }


def build(model: str, in_channels: int, n_classes: int, hidden: int) -> Any:
    """The network of that name."""
    from fishergraph.lab.baselines.networks import PyGNetwork
    from fishergraph.nn import FisherNet

    if model == "fisher":
        return FisherNet(in_channels, hidden, LAYERS, n_classes, num_anchors=COMPONENTS, head="relu", dropout=DROPOUT)
    heads = {"heads": COMPONENTS} if "gat" in model else {}
    rest = {"dropout": DROPOUT, "rows": False, "norm": "batch", **heads}
    return PyGNetwork(model, in_channels, hidden, LAYERS, n_classes, **rest)


def summary(rows: list[dict[str, Any]]) -> None:
    """Mean and deviation over the seeds, and seconds per epoch."""
    cells = []
    for model in dict.fromkeys(row["model"] for row in rows):
        runs = [row for row in rows if row["model"] == model]
        pace = float(np.median([row["seconds"] / row["epochs"] for row in runs]))
        accuracy = [mean_std([row[key] for row in runs], 100) for key in ("val", "test")]
        cells.append((model, runs[0]["lr"], *accuracy, pace, runs[0]["parameters"]))
    print_table(("model", "lr", "validation", "test", "s per epoch", "parameters"), cells)


if __name__ == "__main__":
    main()
