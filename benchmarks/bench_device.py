"""`FisherEmbedding` on tensors: fit_transform and transform on a GPU, the data already there, with peak memory.

Graphs have hubs: the members of a set are drawn with chances that fall as a power of their number. With `--profile` the
kernels of one fit_transform are listed. Without a GPU, and with `--quick`, it runs on tensors of the CPU.
"""

from __future__ import annotations

import time
from typing import Any

from common import Rows, parser, print_table, require

from fishergraph import FisherEmbedding
from fishergraph.device import Device

# nodes, entries, features
SIZES = {
    "arxiv": (169_343, 2_500_000, 128),
    "reddit": (232_965, 115_000_000, 602),
    "products": (2_449_029, 126_000_000, 100),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", nargs="+", default=["arxiv", "products"], choices=list(SIZES))
    options.add_argument("--precisions", nargs="+", default=["float32", "tf32", "bf16"])
    options.add_argument("--layers", type=int, default=3)
    options.add_argument("--anchors", type=int, default=8)
    options.add_argument("--dim", type=int, default=256)
    options.add_argument("--block-mb", type=int, nargs="+", default=[32], help="bytes of φ in a block, in MB")
    options.add_argument("--profile", action="store_true")
    args = options.parse_args()
    torch = require("torch")
    device = "cuda" if torch.cuda.is_available() and not args.quick else "cpu"
    sizes = {name: SIZES[name] for name in args.sizes} if device == "cuda" else {"tiny": (300, 2_000, 20)}
    if device == "cpu":
        args.precisions, args.dim, args.layers = ["float32"], 16, 2
    rows = Rows("device", args)
    for name, size in sizes.items():
        x, sets = data(torch, device, *size)
        for megabytes in args.block_mb:
            for precision in args.precisions:
                row = measure(torch, args, device, precision, megabytes, x, sets)
                rows.add(graph=name, device=device, precision=precision, block_mb=megabytes, **row)
                print(
                    name, precision, f"{megabytes} MB", {key: round(value, 4) for key, value in row.items()}, flush=True
                )
    keys = ("graph", "precision", "block_mb", "fit_transform_s", "transform_s", "peak_gb")
    print_table(list(keys), [[str(row[key]) for key in keys] for row in rows.rows])


def data(torch: Any, device: str, n_nodes: int, n_entries: int, n_features: int) -> tuple[Any, Any]:
    """X and the multisets of a random graph with hubs, on the device."""
    from fishergraph.ops.tensor_edges import edge_neighbourhoods

    generator = torch.Generator(device).manual_seed(0)

    def draw(power: float) -> Any:
        chance = torch.rand(n_entries // 2, generator=generator, device=device)
        return (n_nodes * chance**power).long().clamp_(max=n_nodes - 1)

    edges = torch.stack([draw(1.0), draw(2.0)])
    sets = edge_neighbourhoods(edges, None, n_nodes, undirected=True, weights="uniform")
    return torch.randn(n_nodes, n_features, generator=generator, device=device), sets


def measure(torch: Any, args: Any, device: str, precision: str, megabytes: int, x: Any, sets: Any) -> dict[str, float]:
    """Seconds of the second of two runs, and the peak memory of the device."""
    import fishergraph._parallel

    fishergraph._parallel._GPU_BYTES = megabytes * 2**20
    model = FisherEmbedding(
        n_layers=args.layers,
        n_anchors=args.anchors,
        dim=args.dim,
        device=Device(device, precision=precision),
        random_state=0,
    )

    def timed(function: Any) -> float:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            function()
            if device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return min(times[1:])

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    fit = timed(lambda: model.fit_transform(x, graph=sets))
    run = timed(lambda: model.transform(x, graph=sets))
    if args.profile:
        with torch.profiler.profile() as profile:
            model.fit_transform(x, graph=sets)
        print(profile.key_averages().table(sort_by="self_cuda_time_total", row_limit=25))
    peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0
    return {"fit_transform_s": fit, "transform_s": run, "peak_gb": peak}


if __name__ == "__main__":
    main()
