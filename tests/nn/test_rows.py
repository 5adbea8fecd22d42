"""Rows of x, dense or sparse."""

import pytest

torch = pytest.importorskip("torch")

from fishergraph.nn import rows  # noqa: E402
from fishergraph.nn.rows import dense_if_small, take_rows  # noqa: E402


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_sparse_rows_in_any_order(kind):
    dense = torch.tensor([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 4.0, 0.0]])
    sparse = dense.to_sparse_csr()
    narrow = torch.sparse_csr_tensor(
        sparse.crow_indices().to(kind), sparse.col_indices().to(kind), sparse.values(), sparse.shape
    )
    taken = take_rows(narrow, torch.tensor([2, 1, 0, 2]))
    assert taken.col_indices().dtype == taken.crow_indices().dtype == kind
    assert torch.equal(taken.to_dense(), dense[[2, 1, 0, 2]])


@pytest.mark.filterwarnings("ignore:Sparse")
def test_small_sparse_rows_become_dense(monkeypatch):
    dense = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    assert torch.equal(dense_if_small(dense.to_sparse_csr()), dense)
    assert dense_if_small(dense) is dense
    monkeypatch.setattr(rows, "_DENSE", 23)  # they take 24 bytes
    sparse = dense.to_sparse_csr()
    assert dense_if_small(sparse) is sparse
