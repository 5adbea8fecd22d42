"""Test accuracy of trained networks on the public splits of Cora, Citeseer and Pubmed, ten seeds, mean ± deviation.

FisherNet, and GAT and GATv2 of PyTorch Geometric, tuned by the same budget: the paper's supervised grid (layers, hidden
width, and mixture components or heads), from which the same points are drawn for every model; the one with the highest
validation accuracy is trained with ten other seeds. The test nodes are looked at in those runs alone. All else is
fixed: for ours what the paper says (Adam at 0.001, dropout 0.5, weights from the data), for GAT and GATv2 what GAT's
authors say (Adam at 0.005, dropout 0.6). All share one loop: early stopping on validation accuracy.

`--wide` tunes the learning rate and the dropout of the features (for attention: all of its dropout) as well.
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
# The paper's; components are the heads of attention.
SHAPES: dict[str, tuple] = {"layers": (2, 3, 4), "hidden": (16, 32, 64), "components": (1, 2, 4, 8)}
FIXED: dict[str, dict[str, Any]] = {
    "fisher": {"lr": 0.001, "dropout": 0.5, "input_dropout": 0.0, "weight_decay": 5e-4},
    "gat": {"lr": 0.005, "dropout": 0.6, "weight_decay": 5e-4},
    "gatv2": {"lr": 0.005, "dropout": 0.6, "weight_decay": 5e-4},
}
# As many values for every model: the same numbers of points are drawn, and they have the same shapes and rates.
RATES = (0.001, 0.005, 0.01)
WIDE: dict[str, dict[str, tuple]] = {
    "fisher": {"lr": RATES, "input_dropout": (0.0, 0.5)},
    "gat": {"lr": RATES, "dropout": (0.5, 0.6)},
    "gatv2": {"lr": RATES, "dropout": (0.5, 0.6)},
}
SEARCH_SEED = 1000


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--datasets", nargs="*", default=list(DATASETS))
    options.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    options.add_argument("--wide", action="store_true", help="tune the learning rate and the dropout too")
    options.add_argument("--budget", type=int, default=12, help="points of the grid that are tried (default 12)")
    options.add_argument("--search-seeds", type=int, default=1, help="seeds whose mean is compared (default 1)")
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--epochs", type=int, default=600)
    options.add_argument("--patience", type=int, default=100)
    options.add_argument("--device", default="cpu")
    options.add_argument("--jobs", type=int, default=1, help="runs side by side, each on one thread")
    args = options.parse_args()
    require("torch_geometric")
    if args.quick:
        args.datasets, args.budget, args.seeds, args.epochs = ["tiny"], 2, 2, 3
    rows = Rows("supervised_wide" if args.wide else "supervised", args)
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        pairs = list(itertools.product(args.datasets, args.models))
        seeds = range(SEARCH_SEED, SEARCH_SEED + args.search_seeds)
        search = [(*pair, point, seed) for pair in pairs for point in draw(args, pair[1]) for seed in seeds]
        tried = run_all(pool, args, rows, search, "grid")
        chosen = {pair: best([row for row in tried if (row["dataset"], row["model"]) == pair]) for pair in pairs}
        final = [(*pair, chosen[pair], seed) for pair in pairs for seed in range(args.seeds)]
        done = run_all(pool, args, rows, final, "final")
    summary(done)


def draw(args: Namespace, model: str) -> list[dict[str, Any]]:
    """The points of its grid that a model is tried at, as settings."""
    axes = SHAPES | (WIDE[model] if args.wide else {})
    grid = list(itertools.product(*axes.values()))
    order = np.random.default_rng(0).permutation(len(grid))
    return [FIXED[model] | dict(zip(axes, grid[k], strict=True)) for k in order[: args.budget]]


def best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The settings with the highest validation accuracy; of equal ones those with the fewest parameters."""
    names = [*SHAPES, *FIXED[rows[0]["model"]]]
    runs: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault(tuple(row[name] for name in names), []).append(row)
    mean = {point: float(np.mean([row["val"] for row in same])) for point, same in runs.items()}
    return dict(zip(names, min(runs, key=lambda point: (-mean[point], runs[point][0]["parameters"])), strict=True))


def run_all(pool: Any, args: Namespace, rows: Rows, jobs: list[tuple], stage: str) -> list[dict[str, Any]]:
    """The rows of all runs, in the order in which they were asked for."""
    common = {"stage": stage, "device": args.device, "epochs": args.epochs, "patience": args.patience}
    waiting = [pool.submit(run, args, *job, look_at_test=stage == "final") for job in jobs]
    done = []
    for future in waiting:
        row = rows.add(**common, **future.result())
        done.append(row)
        test = f", test {row['test']:.4f}" if stage == "final" else ""
        print(
            f"  {row['dataset']} {row['model']} {_text(row)} seed {row['seed']}: val {row['val']:.4f}{test}", flush=True
        )
    return done


@lru_cache(maxsize=1)
def read(name: str, folder: Path | None) -> Any:
    """The graph, kept for the next run of this process."""
    return tiny_graph() if name == "tiny" else load(name, folder)


def run(
    args: Namespace, dataset: str, model: str, point: dict[str, Any], seed: int, *, look_at_test: bool
) -> dict[str, Any]:
    """One training: its accuracies, its best epoch and its seconds."""
    import torch

    from fishergraph.nn.training import train

    torch.set_num_threads(1)
    data = read(dataset, args.data)
    nodes = dict(zip(("train", "val", "test"), (torch.as_tensor(part) for part in data.split()), strict=True))
    x, edges, y = tensors(data, args.device, dense=model != "fisher" or args.device != "cpu")
    net = build(model, x, edges, int(y.max()) + 1, point, seed).to(args.device)
    history = train(
        net,
        x,
        y,
        edges,
        train=nodes["train"],
        val=nodes["val"],
        epochs=args.epochs,
        patience=args.patience,
        lr=point["lr"],
        weight_decay=point["weight_decay"],
        seed=seed,
    )
    with torch.no_grad():
        right = (net(x, edges).argmax(dim=1) == y).float().cpu()
    return {
        "dataset": dataset,
        "model": model,
        **point,
        "seed": seed,
        "val": float(right[nodes["val"]].mean()),
        "test": float(right[nodes["test"]].mean()) if look_at_test else "",
        "best_epoch": history.best_epoch,
        "seconds": sum(row["seconds"] for row in history.rows),
        "parameters": parameters(net),
    }


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


def build(model: str, x: Any, edges: Any, n_classes: int, point: dict[str, Any], seed: int) -> Any:
    """The network of that name at a point of the grid."""
    import torch

    from fishergraph.lab.baselines.networks import PyGNetwork
    from fishergraph.nn import FisherNet

    torch.manual_seed(seed)
    shape = (x.shape[1], point["hidden"], point["layers"], n_classes)
    if model != "fisher":
        return PyGNetwork(model, *shape, heads=point["components"], dropout=point["dropout"])
    dropout = {name: point[name] for name in ("dropout", "input_dropout")}
    net = FisherNet(*shape, num_anchors=point["components"], **dropout)
    return net.to(x.device).init_from_data(x, edges, seed=seed)


def _text(row: dict[str, Any]) -> str:
    """The settings of a row that may differ within a search."""
    names = [*SHAPES, "lr", "dropout", "input_dropout"]
    return "/".join(f"{row[name]:g}" for name in names if name in row)


def summary(rows: list[dict[str, Any]]) -> None:
    """Mean and deviation over the seeds."""
    cells = []
    for dataset, model in dict.fromkeys((row["dataset"], row["model"]) for row in rows):
        runs = [row for row in rows if (row["dataset"], row["model"]) == (dataset, model)]
        seconds = float(np.median([row["seconds"] for row in runs]))
        accuracy = {key: mean_std([row[key] for row in runs], 100) for key in ("val", "test")}
        cells.append((dataset, model, _text(runs[0]), accuracy["val"], accuracy["test"], seconds))
    print_table(("graph", "model", "layers/hidden/components/lr/dropout", "validation", "test", "seconds"), cells)


if __name__ == "__main__":
    main()
