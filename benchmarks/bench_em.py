"""`em_means` and a whole Fisher layer on tensors against graph attention: forward, forward + backward, peak memory.

Side by side in one run, on one graph: the message-materialising layer, PyTorch Geometric's GATConv and GATv2Conv at
equal output width (heads = p, out = d) and with out = d in total, GCNConv, the plain sparse product, and the time that
moving the bytes would take at the bandwidth measured here (every gather missing the cache, every output written).
On a GPU float32 products are rounded to TF32, ours and theirs; our layer and GATConv are also measured without it.
Every round measures all layers in turn, and a row has the medians over the rounds: a slow minute of the machine then
falls on all of them. Layers that need a third of the memory have their rounds after the others: pages that a process
gave back can be slow to get again.

    python benchmarks/bench_em.py                                  # the CPU, the arxiv graph, d = 128, p = 4
    python benchmarks/bench_em.py --device cuda --dim 256 --anchors 8
    python benchmarks/bench_em.py --device cuda --graph products --dim 256 --anchors 8 --only ours
"""

from __future__ import annotations

import gc
import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import PeakMemory, Rows, available_bytes, in_turns, load, parser, print_table, require, spread, timed

torch = require("torch")
from fishergraph.graph import as_graph  # noqa: E402
from fishergraph.multiset import neighbourhoods  # noqa: E402
from fishergraph.ops.iterate.torch import Steps, em_means  # noqa: E402
from fishergraph.ops.linear_head.torch import fisher_linear  # noqa: E402
from fishergraph.ops.posterior.torch import posterior  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.tensor_ops import tensor_engine  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets  # noqa: E402

VARIANCE = 0.05
# (nodes, entries) of the synthetic graphs; degrees fall as a power of the rank.
SIZES = {"reddit": (232_965, 114_848_857), "products": (2_449_029, 126_167_309), "hubs": (169_343, 2_484_941)}


@dataclass
class Case:
    """One layer: `run()` is its forward pass, `inputs` what its backward pass differentiates, `needed` bytes.

    `products` says how a GPU rounds the operands of float32 products: to "tf32", or not at all ("float32"). `moved` are
    the bytes that the forward pass, and forward + backward, move if every gather misses the cache.
    """

    name: str
    run: Callable[[], Any]
    inputs: list[Any]
    needed: int
    backward: bool = True
    products: str = "tf32"
    moved: tuple[float, float] = (float("nan"), float("nan"))

    def exact(self) -> Case:
        """The same layer with products in full float32."""
        return replace(self, name=f"{self.name}, float32 products", products="float32")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", help="cpu or cuda")
    options.add_argument("--graph", default="arxiv", help="arxiv (data folder, or --csr), reddit, products, hubs")
    options.add_argument("--csr", type=Path, help="npz with indptr and indices of the arxiv neighbourhoods")
    options.add_argument("--without", nargs="*", default=[], help="leave out layers whose names contain one of these")
    options.add_argument("--compile", action="store_true", help="PyG's layers by torch.compile too")
    options.add_argument("--dim", type=int, default=128)
    options.add_argument("--anchors", type=int, default=4)
    options.add_argument("--repeat", type=int, default=5, help="calls of a layer in a round (default 5)")
    options.add_argument("--rounds", type=int, default=3, help="rounds over all layers (default 3)")
    options.add_argument("--only", choices=["ours", "all"], default="all")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    sets = make_sets(args)
    torch.manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(sets.n_points, args.dim, device=args.device))
    w = x[: args.anchors] + 0.05 * torch.randn(args.anchors, args.dim, device=args.device)
    rows = Rows("em", args)
    table = []
    largest = int(torch.diff(sets.indptr).max())
    print(f"{args.graph}: {sets.n_sets:,} sets, {sets.n_entries:,} entries, largest {largest:,}")
    cases = [*our_cases(args, sets, x, w), *([] if args.only == "ours" else other_cases(args, sets, x, w))]
    cases = [case for case in cases if not any(part in case.name for part in args.without)]
    kept = {"device": device_name(args.device), "graph": args.graph, "dim": args.dim, "anchors": args.anchors}
    speed = bandwidth(args)
    for case, measured in measure_all(cases, args):
        products = case.products if args.device == "cuda" else "float32"
        times = [measured["forward_ms"], measured["both_ms"]]
        shares = [n_bytes / (1e-3 * time * speed) for n_bytes, time in zip(case.moved, times, strict=True)]
        moved = {"forward_gb": case.moved[0] / 1e9, "both_gb": case.moved[1] / 1e9}
        moved |= {"forward_share": shares[0], "both_share": shares[1]}
        rows.add(**kept, layer=case.name, **measured, products=products, **moved)
        table.append((case.name, *(measured[key] for key in ("forward_ms", "both_ms", "peak_gb"))))
        print("  {:52s} {:9.3f} ms  {:9.3f} ms  {:7.3f} GB".format(*table[-1]), flush=True)
    floor = 4 * (sets.n_entries * args.dim + sets.n_sets * w.numel()) / speed
    rows.add(**kept, layer="floor: every gather missing the cache", forward_ms=1e3 * floor)
    table.append(("floor: every gather missing the cache", 1e3 * floor, float("nan"), 0.0))
    print(f"  floor: every gather missing the cache {1e3 * floor:.3f} ms at {speed / 1e9:,.0f} GB/s")
    print_ratios(table)


def bandwidth(args: Namespace) -> float:
    """Bytes read and written per second by a large copy."""
    size = 1 << (20 if args.quick else 26 if args.device == "cpu" else 29)
    a = torch.ones(size, device=args.device)
    b = torch.empty_like(a)
    return 8 * size / (1e-3 * median_ms(lambda: b.copy_(a), args))


def make_sets(args: Namespace) -> TensorSets:
    """The graph's closed neighbourhoods on the device, their transpose and hubs found."""
    if args.quick:
        sets = random_sets(300, 2000, args.device)
    elif args.graph in SIZES:
        sets = random_sets(*SIZES[args.graph], args.device, power=0.9 if args.graph == "hubs" else 0.6)
    elif args.csr is not None:
        with np.load(args.csr) as file:
            parts = [torch.from_numpy(file[name]).to(args.device) for name in ("indptr", "indices")]
        sets = TensorSets(parts[0], parts[1], None, len(parts[0]) - 1)
    else:
        sets = tensor_sets(neighbourhoods(as_graph(load("ogbn_arxiv", args.data).graph))).to(args.device)
    sets.pack(transpose=True)
    return sets


def random_sets(n_nodes: int, n_entries: int, device: str, power: float = 0.6) -> TensorSets:
    """Sets whose sizes and members follow a power law; every node has one member at least."""
    generator = torch.Generator(device=device).manual_seed(0)
    share = torch.arange(1, n_nodes + 1, device=device, dtype=torch.float64) ** -power
    share = share[torch.randperm(n_nodes, generator=generator, device=device)]
    sizes = 1 + (share / share.sum() * (n_entries - n_nodes)).long()
    indptr = torch.zeros(n_nodes + 1, dtype=torch.int64, device=device)
    indptr[1:] = sizes.cumsum(0)
    cumulated = share.cumsum(0) / share.sum()
    indices = torch.empty(int(indptr[-1]), dtype=torch.int32, device=device)
    for part in indices.split(1 << 24):
        drawn = torch.rand(len(part), generator=generator, device=device, dtype=torch.float64)
        part.copy_(torch.searchsorted(cumulated, drawn).clamp_(max=n_nodes - 1))
    return TensorSets(indptr, indices, None, n_nodes)


# The layers.


def our_cases(args: Namespace, sets: TensorSets, x: Any, w: Any) -> Iterator[Case]:
    """Ours: the M-step with its whole output, a layer with its projection, several iterations, half storage."""
    engine = tensor_engine(None, x)
    points, anchors = x.clone().requires_grad_(), w.clone().requires_grad_()
    torch.manual_seed(1)
    weight = (torch.randn(args.dim, w.numel(), device=args.device) / w.numel() ** 0.5).requires_grad_()
    whole, gathered = 4 * sets.n_sets * w.numel(), 4 * sets.n_entries * args.dim
    # Forward: members read, means written. Backward: the gradient of the means written and read, members read, their
    # vectors written and read.
    moved = (gathered + whole, 4 * gathered + 3 * whole)
    one = Steps(VARIANCE, 0.0, 1)
    run = lambda: em_means(points, sets, anchors, one)[0]  # noqa: E731
    yield Case("fishergraph em_means", run, [points, anchors], 4 * whole, moved=moved)

    def layer() -> Any:
        logs = posterior(engine, points, anchors, VARIANCE)
        return fisher_linear(engine, points, logs, sets, anchors, weight, fisher_root=args.anchors**-0.5)

    head = Case("fishergraph layer, linear head p·d → d", layer, [points, anchors, weight], 4 * whole)
    yield from (head, head.exact()) if args.device == "cuda" else (head,)
    three = Steps(VARIANCE, 0.0, 3)
    deep = args.device == "cuda" and args.graph in ("arxiv", "hubs")
    yield Case(
        "fishergraph em_means, 3 EM iterations",
        lambda: em_means(points, sets, anchors, three)[0],
        [points, anchors],
        3 * whole,
        deep,
    )
    if args.device == "cuda":
        half, halves = x.bfloat16(), ((gathered + whole) / 2, float("nan"))
        run = lambda: em_means(half, sets, anchors, one)[0]  # noqa: E731
        yield Case("fishergraph em_means, bf16 storage", run, [], whole, False, moved=halves)


def other_cases(args: Namespace, sets: TensorSets, x: Any, w: Any) -> Iterator[Case]:
    """The published way, PyTorch Geometric's layers, and the sparse product."""
    from plain_fie import message_layer

    points, anchors = x.clone().requires_grad_(), w.clone().requires_grad_()
    edges = torch.stack([sets.indices.long(), sets.rows])
    n_entries, width = sets.n_entries, 4 * sets.n_entries * args.dim
    yield Case(
        "messages (entry × feature × anchor)",
        lambda: message_layer(points, edges, anchors),
        [points, anchors],
        4 * args.anchors * width,
    )
    ones = torch.ones(n_entries, device=args.device)
    matrix = torch.sparse_csr_tensor(sets.indptr, sets.indices.long(), ones, (sets.n_sets, sets.n_points))
    yield Case("sparse product N × d", lambda: matrix @ x, [], 2 * 4 * x.numel(), False)
    yield from pyg_cases(args, points, edges, width)


def pyg_cases(args: Namespace, points: Any, edges: Any, width: int) -> Iterator[Case]:
    """GATConv, GATv2Conv, GCNConv on the same edges."""
    try:
        from torch_geometric.nn import GATConv, GATv2Conv, GCNConv
    except ImportError:
        print("  left out: the PyTorch Geometric layers (torch_geometric is not installed)")
        return
    share = args.dim // args.anchors
    for kind, out, said, factor in (
        (GATConv, share, "out = d in total", 3),
        (GATv2Conv, share, "out = d in total", 5),
        (GATConv, args.dim, "out = d each", 3 * args.anchors),
        (GATv2Conv, args.dim, "out = d each", 5 * args.anchors),
    ):
        torch.manual_seed(2)
        layer = kind(args.dim, out, heads=args.anchors, add_self_loops=False).to(args.device)
        name = f"PyG {kind.__name__}, heads = p, {said}"
        case = Case(name, lambda layer=layer: layer(points, edges), [points, *layer.parameters()], factor * width)
        both = args.device == "cuda" and (kind, out) == (GATConv, share)
        yield from (case, case.exact()) if both else (case,)
        if args.compile and out == share:
            yield compiled(case, layer, points, edges)
    torch.manual_seed(2)
    layer = GCNConv(args.dim, args.dim, add_self_loops=False).to(args.device)
    case = Case("PyG GCNConv", lambda: layer(points, edges), [points, *layer.parameters()], 4 * width)
    yield from (case, compiled(case, layer, points, edges)) if args.compile else (case,)


def compiled(case: Case, layer: Any, points: Any, edges: Any) -> Case:
    """The same layer by torch.compile, which is done before the first round."""
    function = torch.compile(layer)
    return replace(case, name=f"{case.name}, torch.compile", run=lambda: function(points, edges))


# Measuring.


def measure_all(cases: list[Case], args: Namespace) -> Iterator[tuple[Case, dict[str, float]]]:
    """The medians over the rounds of every layer that fits into memory, and the peak of one call in GB."""
    free, groups = free_bytes(args.device), ([], [])
    for case in cases:
        if case.needed > 0.9 * free:
            print(f"  left out: {case.name} needs about {case.needed / 1e9:.0f} GB", flush=True)
        else:
            groups[case.needed > free / 3].append(case)
    for group in groups:
        by_name = {case.name: (lambda case=case: measure(case, args)) for case in group}
        times = in_turns(by_name, 1 if args.quick else args.rounds)
        for case in group:
            forward, both = zip(*times[case.name], strict=True)
            peak = peak_gb(lambda case=case: run(case, backward=case.backward), args.device)
            yield case, {**spread(forward, "forward_ms"), **spread(both, "both_ms"), "peak_gb": peak}


def measure(case: Case, args: Namespace) -> tuple[float, float]:
    """Medians of the forward pass and of forward + backward, in milliseconds."""
    forward = median_ms(lambda: run(case, backward=False), args)
    return forward, median_ms(lambda: run(case, backward=True), args) if case.backward else float("nan")


def run(case: Case, *, backward: bool) -> None:
    """One call of a layer, with its gradients or without any."""
    torch.backends.cuda.matmul.allow_tf32 = case.products == "tf32"
    if backward:
        out = case.run()
        torch.autograd.grad(out, case.inputs, torch.ones_like(out), allow_unused=True)
    else:
        with torch.no_grad():
            case.run()


def median_ms(function: Callable[[], Any], args: Namespace) -> float:
    """The median over the repeats, after warming up; on a GPU, timed by events in one stream."""
    repeat = 1 if args.quick else args.repeat
    if args.device == "cpu":
        first = timed(function)[0]
        # What takes this long needs no warming up, and its spread is small beside the ratios.
        return 1e3 * first if first > 5 else statistics.median(1e3 * timed(function)[0] for _ in range(repeat))
    for _ in range(3):
        function()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(4 * repeat)]
    for begin, end in pairs:  # the GPU is kept busy: the host's launches overlap with the call before
        begin.record()
        function()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in pairs)


def peak_gb(function: Callable[[], Any], device: str) -> float:
    """The most memory beyond what was there before, in GB."""
    gc.collect()
    if device == "cpu":
        with PeakMemory() as memory:
            function()
        return memory.extra / 1e9
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e9


def free_bytes(device: str) -> int:
    return available_bytes() if device == "cpu" else torch.cuda.mem_get_info()[0]


def device_name(device: str) -> str:
    return "cpu" if device == "cpu" else torch.cuda.get_device_name()


def print_ratios(table: list[tuple]) -> None:
    """How many times the time of our first row, and of our layer, each other layer takes."""
    ours = {name: (forward, both) for name, forward, both, _ in table if name.startswith("fishergraph")}
    em, layer = ours.get("fishergraph em_means"), ours.get("fishergraph layer, linear head p·d → d")
    if em is None or layer is None:
        return
    lines = [
        (name, forward / em[0], both / em[1], forward / layer[0], both / layer[1]) for name, forward, both, _ in table
    ]
    print_table(["layer", "÷ em fwd", "÷ em both", "÷ layer fwd", "÷ layer both"], lines)


if __name__ == "__main__":
    main()
