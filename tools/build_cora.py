"""Build the bundled Cora from the PyPI wheel `graphdatascience` 2.2 (Apache-2.0).

    python tools/build_cora.py [WHEEL] --order cora_paper_ids.txt

Without WHEEL the wheel is fetched with pip. The wheel keys Cora by paper id; `--order` names a text file
whose line i is the paper id of node i in the Planetoid order, the order of the public split.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "fishergraph" / "datasets" / "data" / "cora.npz"
REQUIREMENT = "graphdatascience==2.2"
FOLDER = "graphdatascience/resources/cora"

# subject: (its number in the wheel, its class in Planetoid); the former as in SUBJECT_TO_ID of the wheel's
# serialize_cora.py, the latter as in the published files.
SUBJECTS = {
    "Neural_Networks": (0, 3),
    "Rule_Learning": (1, 6),
    "Reinforcement_Learning": (2, 1),
    "Probabilistic_Methods": (3, 4),
    "Theory": (4, 0),
    "Genetic_Algorithms": (5, 2),
    "Case_Based": (6, 5),
}
PUBLIC_SPLIT = {"train_mask": (0, 140), "val_mask": (140, 640), "test_mask": (1708, 2708)}


def fetch_wheel(folder: Path) -> Path:
    """The path of the wheel, downloaded by pip into `folder`."""
    command = [sys.executable, "-m", "pip", "download", REQUIREMENT, "--no-deps", "--dest", str(folder)]
    subprocess.run(command, check=True)
    return next(folder.glob("graphdatascience-*.whl"))


def read_tables(wheel: Path) -> tuple[dict, dict]:
    """The wheel's node table and citation table, each as a dictionary of NumPy columns."""
    with zipfile.ZipFile(wheel) as archive:
        nodes = pq.read_table(io.BytesIO(archive.read(f"{FOLDER}/cora_nodes.parquet.gzip")))
        cites = pq.read_table(io.BytesIO(archive.read(f"{FOLDER}/cora_rels.parquet.gzip")))
    words = np.stack(nodes["features"].to_numpy())
    node_table = {"id": nodes["nodeId"].to_numpy(), "subject": nodes["subject"].to_numpy(), "words": words}
    cite_table = {"source": cites["sourceNodeId"].to_numpy(), "target": cites["targetNodeId"].to_numpy()}
    return node_table, cite_table


def rows_of(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The positions in `ids` of each wanted id."""
    order = np.argsort(ids)
    rows = order[np.searchsorted(ids[order], wanted).clip(max=len(ids) - 1)]
    if not np.array_equal(ids[rows], wanted):
        raise SystemExit("the wheel and the order file must hold the same paper ids; check the order file.")
    return rows


def assemble(nodes: dict, cites: dict, paper_ids: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of the `.npz` file, nodes in the order of `paper_ids`, edges in both directions."""
    rows = rows_of(nodes["id"], paper_ids)
    n_nodes = len(paper_ids)
    if n_nodes != len(nodes["id"]) or len(np.unique(rows)) != n_nodes:
        raise SystemExit(f"the order file must list all {len(nodes['id'])} papers once, got {n_nodes} lines.")
    to_class = np.array([planetoid for _, planetoid in sorted(SUBJECTS.values())])
    X = sp.csr_array(nodes["words"][rows].astype(np.float32))
    source, target = (rows_of(paper_ids, cites[end]) for end in ("source", "target"))
    pairs = np.stack([np.append(source, target), np.append(target, source)])
    pairs = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
    arrays = {
        # int16 holds all node and word numbers and halves the file; the reader widens them.
        "edge_index": pairs.astype(np.int16),
        "y": to_class[nodes["subject"][rows]].astype(np.int8),
        "x_data": X.data,
        "x_indices": X.indices.astype(np.int16),
        "x_indptr": X.indptr.astype(np.int32),
        "x_shape": np.array(X.shape, dtype=np.int32),
        "ids": paper_ids.astype(np.int64),
        "licence": np.array("Apache-2.0"),
        "source": np.array("Cora from the PyPI wheel graphdatascience 2.2, in the order of Planetoid"),
    }
    for mask, (start, stop) in PUBLIC_SPLIT.items():
        node = np.arange(n_nodes)
        arrays[mask] = (node >= start) & (node < stop)
    return arrays


def main() -> None:
    """Write the bundled file."""
    parser = argparse.ArgumentParser(description="Build the bundled Cora.")
    parser.add_argument("wheel", nargs="?", type=Path, help="graphdatascience 2.2; fetched if not given")
    parser.add_argument("--order", type=Path, required=True, help="paper ids in Planetoid order, one a line")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the file to write")
    arguments = parser.parse_args()
    paper_ids = np.array(arguments.order.read_text().split(), dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:
        nodes, cites = read_tables(arguments.wheel or fetch_wheel(Path(folder)))
    arrays = assemble(nodes, cites, paper_ids)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.output, **arrays)  # type: ignore[arg-type]
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
