"""The nodes of a page as a Parquet file that embedding-atlas opens:

    embedding-atlas FILE --x projection_x --y projection_y --neighbors neighbors

`neighbors` is a structure {ids, distances}. The ids are row numbers from zero, the nearest first, and the distances are
one minus the cosine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph.explore.build import Content
from fishergraph.io.files import replacing

if TYPE_CHECKING:
    import pyarrow as pa

X, Y, NEIGHBOURS = "projection_x", "projection_y", "neighbors"


def atlas_table(content: Content) -> pa.Table:
    """A row per node of the page, in the order of the embedding."""
    import pyarrow as pa

    order = np.argsort(content.rows, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    x, y = content.maps[0].points[order].T
    taken = {"id", X, Y, NEIGHBOURS}
    columns: dict[str, Any] = {"id": pa.array(content.nodes.ids[content.rows][order].tolist())}
    columns |= {X: pa.array(x.astype(np.float32)), Y: pa.array(y.astype(np.float32))}
    near = content.nearest
    if near.k:
        ids = pa.FixedSizeListArray.from_arrays(pa.array(place[near.rows[order]].reshape(-1)), near.k)
        gaps = np.maximum(1 - near.similarities[order], 0).astype(np.float32)
        distances = pa.FixedSizeListArray.from_arrays(pa.array(gaps.reshape(-1)), near.k)
        lists = [ids.cast(pa.list_(pa.int64())), distances.cast(pa.list_(pa.float32()))]
        columns[NEIGHBOURS] = pa.StructArray.from_arrays(lists, names=["ids", "distances"])
    for one, name in ((1, f"{X}_2"), (2, f"{X}_3")):
        if one < len(content.maps):
            more = content.maps[one].points[order].astype(np.float32)
            columns |= {name: pa.array(more[:, 0]), name.replace(X, Y): pa.array(more[:, 1])}
    for column in content.columns:
        name = column.name
        while name in taken or name in columns:
            name += "_"
        columns[name] = column.take(order).arrow()
    return pa.table(columns)


def write_atlas(path: Path, content: Content) -> None:
    """Write the table; the file appears complete or not at all."""
    import pyarrow.parquet as pq

    with replacing(path) as part:
        pq.write_table(atlas_table(content), part, compression="zstd")
