"""A graph as two tables, one of its nodes and one of its edges, for the command line and for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._file_checks import check_folder, check_suffix, replacing
from fishergraph.datasets.record import GraphData

TABLES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".parquet": ""}
CELLS = 1 << 22  # of a block of rows in memory


def table_paths(path: str | Path) -> tuple[Path, Path]:
    """The paths of the edges and of the nodes: `graph.csv` gives `graph.edges.csv` and `graph.nodes.csv`."""
    path = Path(path)
    suffix = check_suffix(path, TABLES)
    stem = path.name[: -len(suffix)]
    return path.with_name(f"{stem}.edges{suffix}"), path.with_name(f"{stem}.nodes{suffix}")


def write_tables(data: GraphData, path: str | Path) -> tuple[Path, Path]:
    """The paths of two tables, now written: edges (source, target, both directions) and nodes.

    A row per node: id, label (its name where classes have names, empty where there is none), the split as train, val,
    test or empty (split0, split1, … where there are several), and the features x0, x1, ….
    """
    edges, nodes = table_paths(path)
    for target in (edges, nodes):
        check_folder(target)
    ids = np.arange(data.n_nodes) if data.ids is None else data.ids
    ids = ids.astype(str) if ids.dtype == object else ids
    ends = data.graph.tocoo()
    _write(
        edges, {"source": lambda rows: ids[ends.row[rows]], "target": lambda rows: ids[ends.col[rows]]}, data.graph.nnz
    )
    columns = {"id": lambda rows: ids[rows], "label": _label_column(data)} | _split_columns(data)
    _write(nodes, columns, data.n_nodes, data.X)
    return edges, nodes


def _label_column(data: GraphData) -> Any:
    names = None if data.class_names is None else np.array([*data.class_names, ""])
    labels = data.y if names is None else names[np.where(data.y < 0, len(names) - 1, data.y)]
    return lambda rows: np.ma.masked_where(data.y[rows] < 0, labels[rows])


def _split_columns(data: GraphData) -> dict[str, Any]:
    columns = {}
    for k in range(data.n_splits):
        column = np.full(data.n_nodes, "", dtype="<U5")
        for word, part in zip(("train", "val", "test"), data.split(k), strict=True):
            if part is not None:
                column[part] = word
        columns["split" if data.n_splits == 1 else f"split{k}"] = column.__getitem__
    return columns


def _write(path: Path, columns: dict[str, Any], n_rows: int, X: Any = None) -> None:
    """Write a table by blocks of rows; a column is a function of the rows. The file appears complete or not at all."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    suffix = check_suffix(path, TABLES)
    width = 0 if X is None else X.shape[1]
    step = max(CELLS // (width + len(columns)), 1)
    first = _block(columns, slice(0, 1), X)
    packing = "gzip" if suffix.endswith(".gz") else None
    with replacing(path) as part, part.open("wb") as file, pa.output_stream(file, compression=packing) as sink:
        if suffix == ".parquet":
            writer = pq.ParquetWriter(sink, first.schema)
        else:
            writer = pacsv.CSVWriter(sink, first.schema, write_options=pacsv.WriteOptions(delimiter=TABLES[suffix]))
        with writer:
            for start in range(0, n_rows, step):
                writer.write_table(_block(columns, slice(start, min(start + step, n_rows)), X))


def _block(columns: dict[str, Any], rows: slice, X: Any) -> Any:
    """Some rows of the table."""
    import pyarrow as pa

    arrays = {name: _arrow(column(rows)) for name, column in columns.items()}
    if X is not None:
        block = X[rows].toarray() if sp.issparse(X) else X[rows]
        arrays |= {f"x{j}": pa.array(np.ascontiguousarray(block[:, j])) for j in range(X.shape[1])}
    return pa.table(arrays)


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ma.MaskedArray):
        return pa.array(np.asarray(values.data), mask=np.ma.getmaskarray(values))
    return pa.array(values)
