"""Writing and reading embeddings: every format against numpy.save and numpy.load, and encodings of Parquet.

Formats take turns, and so do sizes. A write ends when the file is on the disk (fsync). Reads are cold: the pages of the
file are dropped from memory first. The wide matrix is written in one call and the long one by blocks of rows.

    python bench_files.py                       # rows of the studies "wide" and "long"
    python bench_files.py --study encodings     # how Parquet may store the column of vectors, on a real embedding
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fishergraph import FisherEmbedding
from fishergraph.io.embedding_file import EmbeddingWriter
from fishergraph.io.tables import read_embedding

SHAPES = {"wide": (170_000, 1472), "long": (2_450_000, 640)}
QUICK = {"wide": (400, 64), "long": (900, 16)}
FORMATS = [
    ("numpy", None),
    (".parquet", "vector"),
    (".parquet", "wide"),
    (".npz", None),
    (".npy", None),
    (".lance", None),
    (".zarr", None),
]
BLOCK = 2**16  # rows of a block of the long matrix
PLAIN = {"use_dictionary": False, "write_statistics": False}
SPLIT = {"use_byte_stream_split": ["embedding.list.element"]}
ENCODINGS: dict[str, dict[str, Any]] = {
    "plain": {"compression": "none"},
    "lz4": {"compression": "lz4"},
    "zstd 1": {"compression": "zstd", "compression_level": 1},
    "split, lz4": {"compression": "lz4", "use_byte_stream_split": ["embedding.list.element"]},
    "split, zstd 1": {
        "compression": "zstd",
        "compression_level": 1,
        "use_byte_stream_split": ["embedding.list.element"],
    },
    "dictionary, snappy": {"compression": "snappy", "use_dictionary": True},
}


def main() -> None:
    options = common.parser(__doc__)
    options.add_argument("--study", choices=["formats", "encodings"], help="one of them (default: formats)")
    options.add_argument("--only", nargs="+", metavar="SUFFIX", help="formats beside NumPy's (default: all)")
    options.add_argument("--repeat", type=int, default=5, help="turns; the medians are kept (default 5)")
    options.add_argument("--folder", type=Path, help="folder on the disk to measure (default: that of temporary files)")
    options = options.parse_args()
    pa.set_cpu_count(options.threads)
    rows = common.Rows("files", options)
    repeat = 1 if options.quick else options.repeat
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if options.quick or options.study != "encodings":
            kinds = [kind for kind in FORMATS if not options.only or kind[0] in ("numpy", *options.only)]
            for study, shape in (QUICK if options.quick else SHAPES).items():
                compare_formats(study, shape, kinds, folder, rows, repeat if study == "wide" else max(repeat // 2, 1))
        if options.quick or options.study == "encodings":
            compare_encodings(options, folder, rows, repeat)


def compare_formats(
    study: str, shape: tuple[int, int], kinds: list, folder: Path, rows: common.Rows, repeat: int
) -> None:
    """Write and read every format in turns."""
    rng = np.random.default_rng(0)
    block = rng.normal(size=(min(BLOCK, shape[0]), shape[1])).astype(np.float32)
    whole = rng.permuted(np.resize(block, shape), axis=1) if study == "wide" else None
    seconds: dict[tuple, list[tuple[float, float]]] = {}
    sizes = {}
    for _ in range(repeat):
        for kind in kinds:
            if (found := one_turn(kind, shape, block, whole, folder)) is not None:
                seconds.setdefault(kind, []).append(found[:2])
                sizes[kind] = found[2]
    n_bytes = 4 * shape[0] * shape[1]
    base = [statistics.median(values) for values in zip(*seconds["numpy", None], strict=True)]
    table = []
    for kind, values in seconds.items():
        write, read = (statistics.median(column) for column in zip(*values, strict=True))
        layout = kind[1] or ""
        rows.add(
            study=study, rows=shape[0], columns=shape[1], format=kind[0], layout=layout, repeat=len(values),
            write_seconds=write, read_seconds=read, write_ratio=write / base[0], read_ratio=read / base[1],
            size_ratio=sizes[kind] / n_bytes,
        )  # fmt: skip
        speeds = (n_bytes / write / 1e9, n_bytes / read / 1e9)
        table.append((f"{kind[0]} {layout}", write, read, write / base[0], read / base[1], *speeds))
    print(f"\n{study}: {shape[0]:,} x {shape[1]:,} float32, {n_bytes / 1e9:.2f} GB, medians of turns")
    common.print_table(("format", "write s", "read s", "/ numpy", "/ numpy", "write GB/s", "read GB/s"), table)


def one_turn(kind: tuple, shape: tuple, block: Any, whole: Any, folder: Path) -> tuple[float, float, int] | None:
    """Seconds of writing and reading, and bytes; None if a package is not installed."""
    suffix, _ = kind
    path = folder / ("z.npy" if suffix == "numpy" else f"z{suffix}")
    try:
        start = time.perf_counter()
        save(path, kind, shape, block, whole)
        to_disk(folder)
        written = time.perf_counter() - start
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        to_disk(folder, forget=True)
        start = time.perf_counter()
        found = np.load(path) if suffix == "numpy" else read_embedding(path).Z
        seconds = time.perf_counter() - start
        if found.shape != shape:
            raise AssertionError(f"{found.shape} was read, {shape} was written")
        return written, seconds, size
    except ImportError:
        return None
    finally:
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def save(path: Path, kind: tuple, shape: tuple, block: Any, whole: Any) -> None:
    suffix, layout = kind
    if suffix == "numpy":
        save_numpy(path, shape, block, whole)
        return
    with EmbeddingWriter(path, shape, layout=layout) as writer:
        for values in blocks(shape, block, whole):
            writer.write(values)


def save_numpy(path: Path, shape: tuple, block: Any, whole: Any) -> None:
    if whole is not None:
        np.save(path, whole)
        return
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for values in blocks(shape, block, whole):
            values.tofile(file)


def blocks(shape: tuple, block: Any, whole: Any) -> Any:
    if whole is not None:
        return [whole]
    return (block[: min(len(block), shape[0] - start)] for start in range(0, shape[0], len(block)))


def to_disk(folder: Path, *, forget: bool = False) -> None:
    """Wait until all files are on the disk, and drop their pages if asked and possible."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            if forget and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                os.fsync(handle)
            os.close(handle)


def compare_encodings(options: Any, folder: Path, rows: common.Rows, repeat: int) -> None:
    """Seconds and sizes of encodings of the column of vectors, on the embedding of a real graph."""
    data = common.tiny_graph() if options.quick else common.load("ogbn_arxiv", options.data)
    Z = FisherEmbedding(dim=16 if options.quick else 256, random_state=0).fit_transform(data.X, graph=data.graph)
    entry = pa.field("element", pa.float32(), nullable=False)
    schema = pa.schema([pa.field("embedding", pa.list_(entry, Z.shape[1]), nullable=False)])
    path, step = folder / "z.parquet", max(2**25 // (4 * Z.shape[1]), 1)
    seconds: dict[str, list[tuple[float, float]]] = {}
    sizes = {}
    for _ in range(repeat):
        for name, settings in ENCODINGS.items():
            start = time.perf_counter()
            with pq.ParquetWriter(
                path, schema, **{"use_dictionary": False, "write_statistics": False} | settings
            ) as out:
                for at in range(0, len(Z), step):
                    values = pa.array(Z[at : at + step].reshape(-1))
                    column = pa.FixedSizeListArray.from_arrays(values, type=schema.field(0).type)
                    out.write_table(pa.Table.from_arrays([column], schema=schema), step)
            to_disk(folder)
            written, size = time.perf_counter() - start, path.stat().st_size
            to_disk(folder, forget=True)
            start = time.perf_counter()
            read_embedding(path)
            seconds.setdefault(name, []).append((written, time.perf_counter() - start))
            sizes[name] = size
    table = []
    for name, values in seconds.items():
        write, read = (statistics.median(column) for column in zip(*values, strict=True))
        rows.add(
            study="encodings", rows=Z.shape[0], columns=Z.shape[1], format=".parquet", layout=name, repeat=repeat,
            write_seconds=write, read_seconds=read, size_ratio=sizes[name] / Z.nbytes,
        )  # fmt: skip
        table.append((name, write, read, sizes[name] / Z.nbytes))
    print(f"\nencodings: {Z.shape[0]:,} x {Z.shape[1]:,} float32 of {data.name}, medians of {repeat} turns")
    common.print_table(("encoding", "write s", "read s", "size"), table)


if __name__ == "__main__":
    main()
