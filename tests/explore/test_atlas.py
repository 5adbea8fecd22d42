"""The Parquet file for embedding-atlas: row numbers of neighbours, in the order of the embedding."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fishergraph._errors import InputError
from fishergraph.explore import explore


def test_a_table_that_embedding_atlas_opens(tmp_path):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 6)).astype(np.float32)
    days = [None if k % 5 == 0 else datetime.date(2021, 1, 1 + k % 28) for k in range(50)]
    fields = {"day": days, "id_number": list(range(50)), "projection_x": ["mine"] * 50, "note": [None, "a"] * 25}
    ids = [f"n{k}" for k in range(50)]
    page = explore(Z, ids=ids, fields=fields, labels=np.arange(50) % 2, maps=["pca", "tsne"], n_neighbours=4)
    table = pq.read_table(page.to_parquet(tmp_path / "atlas.parquet"))
    assert table["id"].to_pylist() == ids
    for name in ("projection_x", "projection_y"):
        assert table[name].type == pa.float32()
    U = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    for v, entry in enumerate(table["neighbors"].to_pylist()):
        order = sorted((w for w in range(50) if w != v), key=lambda w: -float(U[v] @ U[w]))
        assert entry["ids"] == order[:4]
        assert np.allclose(entry["distances"], [1 - float(U[v] @ U[w]) for w in order[:4]], atol=1e-5)
    assert table["day"].to_pylist() == days
    assert table["note"].to_pylist() == fields["note"]
    assert table["projection_x_"].to_pylist() == ["mine"] * 50
    assert table["label"].to_pylist() == [str(v % 2) for v in range(50)]
    centred = Z - Z.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    assert abs(np.corrcoef(table["projection_x"].to_numpy(), centred @ axis)[0, 1]) > 0.999


def test_the_neighbours_of_a_sample_are_rows_of_the_file(tmp_path):
    page = explore(np.random.default_rng(0).normal(size=(400, 5)), max_points=100, maps="pca")
    table = pq.read_table(page.to_parquet(tmp_path / "atlas.parquet"))
    assert len(table) == page.n_nodes
    assert max(max(entry["ids"]) for entry in table["neighbors"].to_pylist()) < page.n_nodes
    assert table["id"].to_pylist() == sorted(table["id"].to_pylist())


def test_another_suffix(tmp_path):
    with pytest.raises(InputError, match="parquet"):
        explore(np.eye(5), maps="pca").to_parquet(tmp_path / "atlas.csv")
