"""Test accuracy of trained networks on the public splits of Cora, Citeseer and Pubmed, ten seeds, mean ± deviation.

FisherNet, and GAT and GATv2 of PyTorch Geometric, tuned by the same budget: the paper's supervised grid (layers, hidden
width, and mixture components or heads), from which the same points are drawn for every model; the one with the highest
validation accuracy is trained with ten other seeds. The test nodes are looked at in those runs alone. All else is
fixed: for ours what the paper says (Adam at 0.001, dropout 0.5, weights from the data), for GAT and GATv2 what GAT's
authors say (Adam at 0.005, dropout 0.6). All share one loop: early stopping on validation accuracy.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from common import Rows, load, mean_std, parameters, parser, print_table, require, tiny_graph

DATASETS = ("cora", "citeseer", "pubmed")
MODELS = ("fisher", "gat", "gatv2")
# The paper's: layers, hidden width, mixture components (heads).
GRID = tuple(itertools.product((2, 3, 4), (16, 32, 64), (1, 2, 4, 8)))
FIXED: dict[str, dict[str, Any]] = {
    "fisher": {"lr": 0.001, "dropout": 0.5, "weight_decay": 5e-4},
    "gat": {"lr": 0.005, "dropout": 0.6, "weight_decay": 5e-4},
    "gatv2": {"lr": 0.005, "dropout": 0.6, "weight_decay": 5e-4},
}
SEARCH_SEED = 1000


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--datasets", nargs="*", default=list(DATASETS))
    options.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    options.add_argument("--budget", type=int, default=12, help="points of the grid that are tried (default 12)")
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--epochs", type=int, default=600)
    options.add_argument("--patience", type=int, default=100)
    options.add_argument("--device", default="cpu")
    options.add_argument("--jobs", type=int, default=1, help="runs side by side, each on one thread")
    args = options.parse_args()
    require("torch_geometric")
    if args.quick:
        args.datasets, args.budget, args.seeds, args.epochs = ["tiny"], 2, 2, 3
    rows = Rows("supervised", args)
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        pairs = list(itertools.product(args.datasets, args.models))
        tried = run_all(
            pool, args, rows, [(*pair, point, SEARCH_SEED) for pair in pairs for point in draw(args)], "grid"
        )
        chosen = {pair: best([row for row in tried if (row["dataset"], row["model"]) == pair]) for pair in pairs}
        final = [(*pair, chosen[pair], seed) for pair in pairs for seed in range(args.seeds)]
        done = run_all(pool, args, rows, final, "final")
    summary(done)


def draw(args: Namespace) -> list[tuple[int, int, int]]:
    """The points of the grid that every model is tried at: the same for all."""
    order = np.random.default_rng(0).permutation(len(GRID))
    return [GRID[k] for k in order[: args.budget]]


def best(rows: list[dict[str, Any]]) -> tuple[int, int, int]:
    """The point with the highest validation accuracy; of equal ones that with the fewest parameters."""
    row = min(rows, key=lambda row: (-row["val"], row["parameters"]))
    return row["layers"], row["hidden"], row["components"]


def run_all(pool: Any, args: Namespace, rows: Rows, jobs: list[tuple], stage: str) -> list[dict[str, Any]]:
    """The rows of all runs, in the order in which they were asked for."""
    common = {"stage": stage, "device": args.device, "epochs": args.epochs, "patience": args.patience}
    waiting = [pool.submit(run, args, *job, look_at_test=stage == "final") for job in jobs]
    done = []
    for future in waiting:
        row = rows.add(**common, **future.result())
        done.append(row)
        test = f", test {row['test']:.4f}" if stage == "final" else ""
        shape = (row["layers"], row["hidden"], row["components"])
        print(f"  {row['dataset']} {row['model']} {shape} seed {row['seed']}: val {row['val']:.4f}{test}", flush=True)
    return done


@lru_cache(maxsize=1)
def read(name: str, folder: Path | None) -> Any:
    """The graph, kept for the next run of this process."""
    return tiny_graph() if name == "tiny" else load(name, folder)


def run(
    args: Namespace, dataset: str, model: str, point: tuple[int, int, int], seed: int, *, look_at_test: bool
) -> dict[str, Any]:
    """One training: its accuracies, its best epoch and its seconds."""
    import torch

    from fishergraph.nn.training import train

    torch.set_num_threads(1)
    data = read(dataset, args.data)
    nodes = dict(zip(("train", "val", "test"), (torch.as_tensor(part) for part in data.split()), strict=True))
    x, edges, y = tensors(data, args.device, dense=model != "fisher" or args.device != "cpu")
    net = build(model, x, edges, int(y.max()) + 1, point, seed).to(args.device)
    fixed = FIXED[model]
    history = train(
        net, x, y, edges, train=nodes["train"], val=nodes["val"], epochs=args.epochs, patience=args.patience,
        lr=fixed["lr"], weight_decay=fixed["weight_decay"], seed=seed,
    )  # fmt: skip
    with torch.no_grad():
        right = (net(x, edges).argmax(dim=1) == y).float().cpu()
    return {
        "dataset": dataset, "model": model, "layers": point[0], "hidden": point[1], "components": point[2],
        "seed": seed, **fixed, "val": float(right[nodes["val"]].mean()),
        "test": float(right[nodes["test"]].mean()) if look_at_test else "",
        "best_epoch": history.best_epoch, "seconds": sum(row["seconds"] for row in history.rows),
        "parameters": parameters(net),
    }  # fmt: skip


def tensors(data: Any, device: str, *, dense: bool) -> tuple[Any, Any, Any]:
    """x, edge_index and y; bags of words stay sparse where the model takes them."""
    import torch

    X = data.X.tocsr().astype(np.float32) if hasattr(data.X, "tocsr") else np.asarray(data.X, np.float32)
    if dense:
        x = torch.from_numpy(X.toarray() if hasattr(X, "toarray") else X)
    else:
        parts = (torch.from_numpy(part) for part in (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data))
        x = torch.sparse_csr_tensor(*parts, X.shape)
    targets = np.repeat(np.arange(data.n_nodes), np.diff(data.graph.indptr))
    edges = torch.from_numpy(np.stack([data.graph.indices.astype(np.int64), targets]))
    return x.to(device), edges.to(device), torch.from_numpy(data.y).to(device)


def build(model: str, x: Any, edges: Any, n_classes: int, point: tuple[int, int, int], seed: int) -> Any:
    """The network of that name at a point of the grid."""
    import torch

    from fishergraph.baselines.stacks import Stack
    from fishergraph.nn import FisherNet

    layers, hidden, components = point
    torch.manual_seed(seed)
    dropout = FIXED[model]["dropout"]
    if model != "fisher":
        return Stack(model, x.shape[1], hidden, layers, n_classes, heads=components, dropout=dropout)
    net = FisherNet(x.shape[1], hidden, layers, n_classes, num_anchors=components, dropout=dropout)
    return net.to(x.device).init_from_data(x, edges, seed=seed)


def summary(rows: list[dict[str, Any]]) -> None:
    """Mean and deviation over the seeds."""
    cells = []
    for dataset, model in dict.fromkeys((row["dataset"], row["model"]) for row in rows):
        runs = [row for row in rows if (row["dataset"], row["model"]) == (dataset, model)]
        shape = "/".join(str(runs[0][key]) for key in ("layers", "hidden", "components"))
        seconds = float(np.median([row["seconds"] for row in runs]))
        accuracy = {key: mean_std([row[key] for row in runs], 100) for key in ("val", "test")}
        cells.append((dataset, model, shape, accuracy["val"], accuracy["test"], seconds))
    print_table(("graph", "model", "layers/hidden/components", "validation", "test", "seconds"), cells)


if __name__ == "__main__":
    main()
