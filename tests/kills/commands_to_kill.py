"""The commands that are killed: tiny input, the command line, and what of its output is the same in every run.

Seconds, memory and dates differ between runs of the same command. They are left out of what is compared; everything
else is compared to the last bit.
"""

from __future__ import annotations

import atexit
import csv
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import safe_open

from fishergraph import as_graph
from small_table import DATASET, data_home

# What differs between two runs; the checksum is one of a header that holds seconds.
VOLATILE = {"seconds", "started", "cpu_seconds", "peak_mb", "checksum", "available_bytes"}


@dataclass(frozen=True)
class Killed:
    """A command, what it reads, and how each of its files is compared; `whole` files by their bytes."""

    name: str
    line: str
    prepare: Callable[[Path], Any]
    compare: dict[str, Callable[[Path], Any]]
    may_stay: tuple[str, ...] = ()  # files that a killed run may leave, such as a lock that nobody holds

    @property
    def arguments(self) -> list[str]:
        return self.line.split()


def whole(path: Path) -> str:
    """The bytes of a file, as their checksum."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stable(value: Any) -> Any:
    """JSON without what differs between runs."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    return [stable(item) for item in value] if isinstance(value, list) else value


def json_file(path: Path) -> Any:
    return stable(json.loads(path.read_text(encoding="utf-8")))


def json_rows(path: Path) -> Any:
    """The rows of a file, in any order: jobs end in any."""
    rows = [stable(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def csv_rows(path: Path) -> Any:
    with path.open(encoding="utf-8", newline="") as file:
        return [stable(row) for row in csv.DictReader(file)]


def tensors(path: Path) -> Any:
    """The arrays and the header of a model or a checkpoint; safetensors writes the entries of a header in any order."""
    with safe_open(str(path), framework="numpy") as file:
        header = {key: json.loads(value) if value[:1] in "{[" else value for key, value in file.metadata().items()}
        arrays = {name: hashlib.sha256(file.get_tensor(name).tobytes()).hexdigest() for name in file.keys()}  # noqa: SIM118
    return stable(header), arrays


def without_times(path: Path) -> Any:
    """The lines of a table up to its columns of seconds and memory."""
    return [line.split("|")[:5] for line in path.read_text(encoding="utf-8").splitlines()]


def write_tables(folder: Path, n: int = 40) -> None:
    """edges.csv, and nodes.csv with three features, a topic and a split."""
    rng = np.random.default_rng(0)
    topics = np.arange(n) % 2
    lines = [f"n{i},{topics[i]},{'train' if i < 16 else 'val' if i < 28 else 'test'}" for i in range(n)]
    features = rng.normal(size=(n, 3)) + topics[:, None]
    rows = [",".join([line, *(f"{x:.4f}" for x in row)]) for line, row in zip(lines, features, strict=True)]
    (folder / "nodes.csv").write_text("\n".join(["id,topic,part,f0,f1,f2", *rows, ""]), encoding="utf-8")
    edges = [f"n{i},n{j}" for i, j in rng.integers(0, n, (3 * n, 2)) if i != j]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges, ""]), encoding="utf-8")


def make_nothing(folder: Path) -> None:
    """Some commands read nothing."""


def make_home(folder: Path) -> None:
    (folder / "data").mkdir()
    data_home(folder / "data")


def make_large_tables(folder: Path) -> None:
    write_tables(folder, 8000)


def make_store(folder: Path) -> None:
    """graph.store, and new.csv with edges that are not in it."""
    from fishergraph.scale import write_store

    rng = np.random.default_rng(0)
    edges = rng.integers(0, 6000, (2, 30_000))
    graph = sp.csr_array((np.ones(edges.shape[1], np.float32), (edges[1], edges[0])), shape=(6000, 6000))
    X = rng.normal(size=(6000, 12)).astype(np.float32)
    write_store(folder / "graph.store", as_graph(graph, undirected=True), X)
    lines = [f"{a},{b}" for a, b in rng.integers(0, 6000, (200, 2))]
    (folder / "new.csv").write_text("\n".join(["source,target", *lines, ""]), encoding="utf-8")


def make_embedded_store(folder: Path) -> None:
    """The same, with an embedding in it; it is made once."""
    shutil.copytree(_embedded(), folder, dirs_exist_ok=True)


@cache
def _embedded() -> Path:
    from fishergraph import FisherEmbedding
    from fishergraph.scale import Store

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_store(folder)
    model = FisherEmbedding(dim=16, random_state=0, structure=None, n_jobs=1)
    model.fit_transform(Store(folder / "graph.store"))
    return folder


def of_store(names: str, blocks: str) -> dict[str, Callable[[Path], Any]]:
    """How the files of a store and of its embedding are compared."""
    run = "graph.store/embeddings/default"
    kinds: dict[str, Callable[[Path], Any]] = {f"graph.store/{name}.npy": whole for name in names.split()}
    kinds["graph.store/manifest.json"] = json_file
    if blocks:
        kinds |= {f"{run}/{name}.npy": whole for name in blocks.split()}
        kinds |= {f"{run}/manifest.json": json_file, f"{run}/model.safetensors": tensors}
    return kinds


TRAIN = Killed(
    "train",
    "train edges.csv -n nodes.csv --label topic --split part --undirected --seed 0 --max-epochs 60 --n-layers 1 "
    "--dim 4 --n-anchors 2 --jobs 1 --checkpoint run.ckpt --resume --log rows.csv -o model",
    write_tables,
    {"model": tensors, "model.run.json": json_file, "run.ckpt": tensors, "rows.csv": csv_rows},
)
EMBED = Killed(
    "embed",
    "embed edges.csv -n nodes.csv --drop topic --drop part --undirected --seed 0 --n-layers 1 --dim 4 --n-anchors 2 "
    "--jobs 1 --save fitted -o out.csv",
    write_tables,
    {"out.csv": whole, "out.csv.run.json": json_file, "fitted": tensors},
)
CONVERT = Killed(
    "convert",
    f"data convert data/{DATASET}.npz out.csv",
    make_home,
    {"out.nodes.csv": whole, "out.edges.csv": whole},
)
SIMULATE = Killed("simulate", "lab simulate modes --quick -o .", make_nothing, {"simulations.jsonl": json_rows})
# Its jobs are processes of their own.
TABLE = Killed(
    "table1",
    f"lab run table1 --methods wwl label-propagation --datasets {DATASET} --data data --jobs 1 --quick -o .",
    make_home,
    {"table1.jsonl": json_rows, "table1.md": without_times, "table1.tex": whole, "table1.csv": csv_rows},
    may_stay=("table1.jsonl.lock",),
)
INGEST = Killed(
    "ingest",
    "ingest edges.csv nodes.csv --drop topic --drop part --undirected -q --overwrite -o graph.store",
    make_large_tables,
    of_store("indptr indices features ids_text ids_offsets", ""),
)
EMBED_STORE = Killed(
    "embed-store",
    "embed graph.store --seed 0 --dim 16 --jobs 1 --memory 2G -q",
    make_store,
    of_store("indptr indices", "psi0 psi1 psi2 walk smooth factors local"),
)
UPDATE = Killed(
    "update",
    "update graph.store --edges new.csv --jobs 1 -q",
    make_embedded_store,
    of_store("indptr indices", "psi0 psi1 psi2 walk smooth"),
    may_stay=("graph.store/lock", "graph.store/embeddings/default/lock"),
)
COMMANDS = {command.name: command for command in (TRAIN, EMBED, CONVERT, SIMULATE, TABLE, INGEST, EMBED_STORE, UPDATE)}
