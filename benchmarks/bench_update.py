"""A graph in a store that changes: an update against a full transform of the changed store, with the same model.

Edges between random nodes are added, some at a time, in both directions. Every update is compared with a transform of
the changed store in the same process: wall-clock seconds, CPU seconds, and whether all bytes are the same.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Rows, load, parser, print_table, tiny_graph

from fishergraph import FisherEmbedding, as_graph
from fishergraph.scale import Store, update, verify, write_store

LAYERS: dict[str, Any] = {"walk": None, "structure": None}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graph", default="ogbn_arxiv", help="the graph (default ogbn_arxiv)")
    options.add_argument("--edges", type=int, nargs="+", default=[10, 100, 1000], help="edges that are added")
    options.add_argument("--repeat", type=int, default=3, help="updates of each size (default 3)")
    given = options.parse_args()
    if given.quick:
        given.edges, given.repeat = [5], 1
    data = tiny_graph() if given.quick else load(given.graph, given.data)
    rows = Rows("update", given)
    folder = Path(tempfile.mkdtemp(prefix="fishergraph-update-"))
    try:
        for blocks, settings in (("layers", LAYERS), ("layers and walk", {"structure": None})):
            measure(rows, data, folder / blocks.replace(" ", "-"), blocks, settings, given)
    finally:
        shutil.rmtree(folder)
    header = [
        "blocks",
        "edges",
        "rows of psi1",
        "rows of psi2",
        "update s",
        "CPU s",
        "transform s",
        "CPU s",
        "ratio",
        "CPU ratio",
        "same",
    ]
    keys = [
        "blocks",
        "edges",
        "psi1_rows",
        "psi2_rows",
        "update_s",
        "update_cpu_s",
        "transform_s",
        "transform_cpu_s",
        "ratio",
        "cpu_ratio",
        "same",
    ]
    print_table(header, [[row[key] for key in keys] for row in rows.rows])


def measure(rows: Rows, data: Any, path: Path, blocks: str, settings: dict[str, Any], given: Any) -> None:
    """Updates of a store, one after the other."""
    A = sp.csr_array(data.graph)
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    write_store(path, as_graph(sp.csr_array(((A + A.T) > 0).astype(np.float32))), np.asarray(X, dtype=np.float32))
    model = FisherEmbedding(2, dim=256, random_state=0, n_jobs=given.threads, **settings)
    fit_s, _, _ = clocked(lambda: model.fit_transform(Store(path)))
    rng = np.random.default_rng(0)
    add(path, rng, 5, given.threads)  # compiles, and tries out where rows have the same bits
    for n_edges in given.edges if blocks == "layers" else given.edges[-1:]:
        for _ in range(given.repeat):
            update_s, update_cpu, report = clocked(lambda n=n_edges: add(path, rng, n, given.threads))
            full = Store(path, name="full", overwrite=True)
            transform_s, transform_cpu, _ = clocked(lambda store=full: model.transform(store))
            same = verify(path / "embeddings" / "default", path / "embeddings" / "full").is_same
            computed = {stage.stage: stage.n_computed for stage in report.stages if stage.run == "default"}
            shutil.rmtree(path / "embeddings" / "full")
            rows.add(
                graph=data.name,
                blocks=blocks,
                nodes=A.shape[0],
                edges=n_edges,
                psi1_rows=computed["psi1"],
                psi2_rows=computed["psi2"],
                update_s=update_s,
                update_cpu_s=update_cpu,
                transform_s=transform_s,
                transform_cpu_s=transform_cpu,
                fit_transform_s=fit_s,
                ratio=transform_s / update_s,
                cpu_ratio=transform_cpu / update_cpu,
                same=same,
            )


def add(path: Path, rng: np.random.Generator, n_edges: int, threads: int) -> Any:
    """Add edges between random nodes, in both directions."""
    ends = rng.integers(Store(path).n_nodes, size=(2, n_edges))
    return update(path, edges=np.concatenate([ends, ends[::-1]], axis=1), n_jobs=threads)


def clocked(function: Any) -> tuple[float, float, Any]:
    """Wall-clock seconds, CPU seconds, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - cpu, result


if __name__ == "__main__":
    main()
