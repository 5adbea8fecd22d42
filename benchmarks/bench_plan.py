"""What `plan` predicts against what runs take: memory, disk, bytes, wall and processor seconds.

    python benchmarks/bench_plan.py --graphs 1e6 1e7 --budgets 1G 4G

Graphs are those of `bench_scale.py`, undirected. A plan is made before each run and after it, with a probe of its own:
the load of a machine changes. Its time is the mean of the two. The run is a process of its own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench_scale import GRAPHS
from bench_store import RUN, SETTINGS, make_store, run_one
from common import Rows, parser, print_table

MEASURES = ("seconds", "memory_mb", "kept_mb", "read_mb", "written_mb")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="+", default=["1e6", "eighth", "1e7"], choices=list(GRAPHS))
    options.add_argument("--budgets", nargs="+", default=["1G", "4G"])
    options.add_argument("--folder", type=Path, help="folder of the graphs (default: a temporary one)")
    args = options.parse_args()
    if args.quick:
        args.graphs, args.budgets = ["tiny"], ["1G"]
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fishergraph-plan-"))
    try:
        measure(args, folder)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def measure(args: argparse.Namespace, folder: Path) -> None:
    """One row per graph and budget."""
    rows, table = Rows("plan", args), []
    for graph in args.graphs:
        store = make_store(folder, graph)
        for budget in args.budgets:
            predicted, found = compared(store, budget, args.threads)
            ratios = {name: predicted[name] / max(found[name], 1e-9) for name in MEASURES}
            both = {"predicted": predicted, "measured": found}
            values = {f"{name}_{kind}": one[name] for name in MEASURES for kind, one in both.items()}
            rows.add(graph=graph, budget=budget, **values)
            table.append([graph, budget, *(round(ratios[name], 2) for name in MEASURES)])
            print_table(["predicted / measured", "budget", "time", "memory", "kept", "read", "written"], table)


def compared(store: Path, budget: str, threads: int) -> tuple[dict[str, float], dict[str, float]]:
    """(what was predicted, what was measured) of one run."""
    shutil.rmtree(store / "multisets", ignore_errors=True)
    shutil.rmtree(store / "embeddings", ignore_errors=True)
    before = planned(store, budget, threads)
    run = run_one(store, budget, threads)
    files = [file for path in ("multisets", f"embeddings/{RUN}") for file in (store / path).rglob("*")]
    found = {
        "seconds": run["seconds"],
        "memory_mb": run["peak_mb"],
        "kept_mb": sum(file.stat().st_size for file in files if file.is_file()) / 1e6,
        "read_mb": run["read_mb"],
        "written_mb": run["written_mb"],
    }
    for path in ("multisets", "embeddings"):
        shutil.rmtree(store / path)
    after = planned(store, budget, threads)
    return before | {"seconds": (before["seconds"] + after["seconds"]) / 2}, found


def planned(store: Path, budget: str, threads: int) -> dict[str, Any]:
    """What `plan` says of the store without its multisets."""
    from fishergraph import FisherEmbedding
    from fishergraph.scale import Store, plan

    found = plan(Store(store), FisherEmbedding(**SETTINGS, n_jobs=threads), memory=budget)
    return {
        "seconds": found.seconds,
        "memory_mb": found.resident / 1e6,
        "kept_mb": found.kept / 1e6,
        "read_mb": sum(stage.read for stage in found.stages) / 1e6,
        "written_mb": sum(stage.written for stage in found.stages) / 1e6,
    }


if __name__ == "__main__":
    main()
