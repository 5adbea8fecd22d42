"""Embed a synthetic store by one and by two local workers, in turns, and by two of which one is killed.

    python benchmarks/bench_cluster.py --nodes 400000 --edges 4000000 --turns 3 --kills 10

Appends a row for every turn and every kill to results/cluster.csv. Prints the seconds of every run, by its parts, and
whether its bytes are those of the first one. Workers have one thread each; the coordinator learns on all cores, which
wait for it then. On a machine that does other work too, the processor seconds of the busiest worker tell more than the
clock.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from common import Rows, parser, require

from fishergraph import FisherEmbedding
from fishergraph.graph import as_graph
from fishergraph.scale import Store, StoredEmbedding, stored_pass, write_store


class Clock:
    """Progress bars that keep the seconds of every part of the work, and may act at a step of the workers."""

    def __init__(self, act: Callable[[int], Any] = lambda step: None):
        self.seconds: dict[str, float] = {}
        self.steps, self.act = 0, act

    @contextmanager
    def __call__(self, title: str, steps: int) -> Iterator[Any]:
        start = time.perf_counter()
        yield SimpleNamespace(update=self.update)
        self.seconds[title] = self.seconds.get(title, 0) + time.perf_counter() - start

    def update(self, n: int) -> None:
        self.steps += 1
        self.act(self.steps)


def synthetic_store(path: Path, n_nodes: int, n_edges: int, n_features: int) -> Store:
    """A graph with hubs, and features."""
    rng = np.random.default_rng(0)
    targets = (n_nodes * rng.random(n_edges // 2) ** 2).astype(np.int64)
    edges = np.stack([rng.integers(n_nodes, size=n_edges // 2), targets])
    X = rng.standard_normal((n_nodes, n_features), dtype=np.float32)
    return write_store(path, as_graph(edges, n_nodes=n_nodes, undirected=True), X)


def checksum(embedding: StoredEmbedding) -> int:
    """The CRC-32 of all values."""
    found = 0
    for rows in embedding.slices():
        found = zlib.crc32(np.ascontiguousarray(embedding[rows]), found)
    return found


def embed(store: Path, client: Any, options: argparse.Namespace, clock: Clock) -> StoredEmbedding:
    """Embed anew."""
    shutil.rmtree(store / "embeddings", ignore_errors=True)
    settings: dict[str, Any] = {"n_layers": options.layers, "dim": options.dim, "structure": options.structure}
    model = FisherEmbedding(**settings, random_state=0, n_jobs=None, verbose=clock)
    return model.fit_transform(Store(store, client=client, memory=options.memory))


class Turn(NamedTuple):
    """A run: its seconds, the processor seconds of the coordinator and of each worker, their parts, the checksum."""

    seconds: float
    here: float
    workers: list[float]
    clock: Clock
    found: int


def turn(store: Path, n_workers: int, options: argparse.Namespace, kill: int | None = None) -> Turn:
    """Run with so many workers, of which one is killed at the step `kill`."""
    distributed = require("distributed")
    options_of = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=n_workers, **options_of) as cluster, distributed.Client(cluster) as client:
        if options.warm:
            embed(store, client, options, Clock())
        victim, start = random.choice(list(client.run(os.getpid).values())), time.perf_counter()

        def act(step: int) -> None:
            if step == kill:
                os.kill(victim, signal.SIGKILL)

        clock, before, here = Clock(act), client.run(time.process_time), time.process_time()
        embedding = embed(store, client, options, clock)
        seconds, here = time.perf_counter() - start, time.process_time() - here
        workers = [value - before.get(worker, 0.0) for worker, value in client.run(time.process_time).items()]
        return Turn(seconds, here, workers, clock, checksum(embedding))


def row_of(options: argparse.Namespace, store: Store, n_workers: int, done: Turn, kill: int | None = None) -> dict:
    """The columns of a run; one with a kill has the step of it."""
    return {
        "nodes": store.n_nodes,
        "entries": store.n_edges,
        "features": store.n_features,
        "layers": options.layers,
        "dim": options.dim,
        "memory": options.memory,
        "workers": n_workers,
        "killed_at": kill,
        "seconds": done.seconds,
        "cpu_here": done.here,
        "cpu_busiest": max(done.workers, default=0.0),
    }


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("--nodes", type=int, default=400_000)
    flags.add_argument("--edges", type=int, default=4_000_000)
    flags.add_argument("--features", type=int, default=64)
    flags.add_argument("--layers", type=int, default=2)
    flags.add_argument("--dim", type=int, default=128)
    flags.add_argument("--structure")
    flags.add_argument("--memory", default="2G")
    flags.add_argument("--part-bytes", type=int, default=stored_pass.PART_BYTES)
    flags.add_argument("--turns", type=int, default=3, help="at least 1")
    flags.add_argument("--kills", type=int, default=0)
    flags.add_argument("--seed", type=int, default=0, help="of the steps at which workers are killed")
    flags.add_argument("--warm", action="store_true", help="run once in every cluster before the clock starts")
    options = flags.parse_args()
    rows = Rows("cluster", options)
    if options.quick:
        options.nodes, options.edges, options.turns, options.kills = 2_000, 10_000, 1, 1
    stored_pass.PART_BYTES = options.part_bytes
    with tempfile.TemporaryDirectory() as folder:
        store = synthetic_store(Path(folder) / "store", options.nodes, options.edges, options.features)
        print(store)
        seconds: dict[int, list[float]] = {1: [], 2: []}
        busiest: dict[int, list[float]] = {1: [], 2: []}
        expected = None
        for _ in range(options.turns):
            for n_workers in (1, 2):
                done = turn(store.path, n_workers, options)
                expected = done.found if expected is None else expected
                rows.add(**row_of(options, store, n_workers, done), equal=done.found == expected)
                seconds[n_workers].append(done.seconds)
                busiest[n_workers].append(done.here + max(done.workers))
                parts = ", ".join(f"{title} {value:.1f}" for title, value in done.clock.seconds.items())
                cores = f"here {done.here:.1f}, workers {', '.join(f'{value:.1f}' for value in done.workers)}"
                print(f"{n_workers} workers: {done.seconds:.1f} s, equal bytes: {done.found == expected}")
                print(f"    processor seconds: {cores}\n    seconds: {parts}", flush=True)
        for what, values in (("seconds", seconds), ("processor seconds here and of the busiest worker", busiest)):
            ratios = [one / two for one, two in zip(values[1], values[2], strict=True)]
            texts = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"{what}, one worker / two: {statistics.median(ratios):.2f}, the median of {texts}")
        draws, equal, steps = random.Random(options.seed), 0, done.clock.steps
        for _ in range(options.kills):
            step = draws.randrange(1, int(0.9 * steps))
            done = turn(store.path, 2, options, kill=step)
            equal += done.found == expected and done.clock.steps >= step
            rows.add(**row_of(options, store, 2, done, step), equal=done.found == expected)
            print(
                f"a worker killed at step {step} of {steps}: {done.seconds:.1f} s, equal: {done.found == expected}",
                flush=True,
            )
        if options.kills:
            print(f"{equal} of {options.kills} runs with a killed worker have equal bytes")


if __name__ == "__main__":
    main()
