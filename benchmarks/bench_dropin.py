"""Milliseconds of one training step, and of an explanation, where GATConv(1433, 16, heads=4) was: Cora, one layer.

A step is a forward pass, a backward pass and a step of Adam. An explanation is GNNExplainer with three epochs, masks of
edges and of features, on a network of two layers. The layers take turns in one process, so that what else the machine
does falls on all of them; "wall" is time on the clock, "cpu" the time that the process used on all its threads, which
other programs disturb less. Threads that wait in a loop count as used: set OMP_WAIT_POLICY=passive on a busy machine.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from common import Rows, load, load_average, parser, print_table, require, spread, spread_text, tiny_graph

WIDTH, EPOCHS = 64, 3


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=15, help="turns of a step (default 15)")
    options.add_argument("--explained", type=int, default=5, help="turns of an explanation (default 5)")
    args = options.parse_args()
    require("torch_geometric")
    import torch

    torch.set_num_threads(args.threads)
    if args.quick:
        args.rounds, args.explained = 2, 1
    rows = Rows("dropin", args)
    x, edges, y = problem(args)
    layers = makers(x.shape[1])
    steps = {name: step(make(), x, edges) for name, make in layers.items()}
    if layers["FisherConv"]().projection is not None:  # narrow rows are not projected, and are dense
        steps["FisherConv, x sparse"] = step(layers["FisherConv"](), x.to_sparse_csr(), edges)
    keep(rows, "step", measured(steps, args.rounds))
    classes = int(y.max()) + 1
    keep(rows, "explanation", measured(explanations(layers, classes, x, edges), args.explained))
    cells = [(row["work"], row["layer"], spread_text(row, "wall_ms"), spread_text(row, "cpu_ms")) for row in rows.rows]
    print_table(("work", "layer", "wall, ms", "cpu, ms"), cells)


def problem(args: Namespace) -> tuple[Any, Any, Any]:
    """x, edge_index and y."""
    import torch

    data = tiny_graph() if args.quick else load("cora", args.data)
    targets = np.repeat(np.arange(data.n_nodes), np.diff(data.graph.indptr))
    edges = np.stack([data.graph.indices.astype(np.int64), targets])
    return tuple(map(torch.as_tensor, (data.X.toarray().astype(np.float32), edges, data.y)))  # type: ignore


def makers(width: int) -> dict[str, Callable[[], Any]]:
    """A function for every first layer, by its name."""
    from torch_geometric.nn import GATConv, GCNConv

    from fishergraph.nn import FisherConv

    return {
        "FisherConv": lambda: FisherConv(width, WIDTH),
        "FisherConv, project=None": lambda: FisherConv(width, WIDTH, project=None),
        "GATConv, heads=4": lambda: GATConv(width, WIDTH // 4, heads=4),
        "GCNConv": lambda: GCNConv(width, WIDTH),
    }


def step(layer: Any, x: Any, edges: Any) -> Callable[[], None]:
    """One step of training."""
    import torch

    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        layer(x, edges).square().mean().backward()
        optimizer.step()

    return run


def explanations(layers: Mapping[str, Any], classes: int, x: Any, edges: Any) -> dict[str, Callable[[], Any]]:
    """An explanation of one node by every network of two layers."""
    import torch
    from torch_geometric.explain import Explainer, GNNExplainer
    from torch_geometric.nn import GATConv

    from fishergraph.nn import FisherConv

    class Net(torch.nn.Module):
        def __init__(self, first: Any, second: Any):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.second(self.first(x, edge_index).relu(), edge_index)

    def explain(first: Any) -> Callable[[], Any]:
        second = (FisherConv if isinstance(first, FisherConv) else GATConv)(WIDTH, classes)
        explainer = Explainer(
            Net(first, second),
            algorithm=GNNExplainer(epochs=EPOCHS),
            explanation_type="model",
            edge_mask_type="object",
            node_mask_type="attributes",
            model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        )
        return lambda: explainer(x, edges, index=2)

    return {name: explain(make()) for name, make in layers.items()}


def measured(cases: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds on the clock and of the processors of every case, medians with their spread, in turns."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in cases}
    for run in cases.values():
        run()
    for turn in range(rounds):
        for name in list(cases)[:: -1 if turn % 2 else 1]:
            wall, cpu = time.perf_counter(), time.process_time()
            cases[name]()
            times[name][0].append(1e3 * (time.perf_counter() - wall))
            times[name][1].append(1e3 * (time.process_time() - cpu))
    return {name: {**spread(wall, "wall_ms"), **spread(cpu, "cpu_ms")} for name, (wall, cpu) in times.items()}


def keep(rows: Rows, work: str, results: Mapping[str, Mapping[str, float]]) -> None:
    for name, values in results.items():
        rows.add(work=work, layer=name, load=load_average(), **values)


if __name__ == "__main__":
    main()
