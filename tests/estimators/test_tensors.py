"""FisherEmbedding on torch tensors: the lines of the NumPy path, on tensors and on a GPU."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from directed_graph import directed_graph  # noqa: E402
from fishergraph import FisherEmbedding, LogisticProbe, as_graph, config_context  # noqa: E402
from fishergraph._arrays import check_finite_rows  # noqa: E402
from fishergraph._errors import InputError  # noqa: E402
from fishergraph.datasets import load_graph  # noqa: E402
from fishergraph.device import Device  # noqa: E402
from fishergraph.multiset import PageRank, neighbourhoods  # noqa: E402
from fishergraph.ops import torch_device  # noqa: E402
from fishergraph.ops.tensor_edges import edge_neighbourhoods, tensor_sets  # noqa: E402
from fishergraph.ops.tensor_rows import HostRows, SparseRows, first_distinct  # noqa: E402
from models import PUBLISHED, node_model  # noqa: E402

N = 90
CUDA = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
)

each_device = pytest.mark.parametrize("device", ["cpu", CUDA])
pytestmark = [
    pytest.mark.filterwarnings("ignore:asked for:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning"),
]


def small(**changes) -> FisherEmbedding:
    return node_model(**{"n_layers": 2, "n_anchors": 3, "dim": 8, "structure": "auto", "random_state": 0, **changes})


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return directed_graph(N)


def edge_list(A, device="cpu"):
    """(edge_index, weights): the source, a column of A, enters the row of the target."""
    coo = A.tocoo()
    ends = torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64)).to(device)
    return ends, torch.from_numpy(coo.data).to(device)


def assert_near(tensor, array, tol=2e-4):
    """Equal up to the rounding that ψ's inverse root magnifies."""
    tensor = tensor.cpu().numpy() if isinstance(tensor, torch.Tensor) else tensor
    assert tensor.dtype == array.dtype
    np.testing.assert_allclose(tensor, array, rtol=0, atol=tol * max(1.0, float(np.abs(array).max())))


VARIANTS = [
    {},
    PUBLISHED,
    {"kernel": "identity"},
    {"normalize": False, "family__variance": 0.5},
    {"em__n_iter": 3, "counts": True, "em__prior": 0.5},
    {"em__init": "spherical", "block_weights": {"psi0": 0, "psi2": 2, "local": 3}},
    {"em__init": "em", "multiset__weights": "symmetric"},
    {"em__init": "random", "multiset": "open-neighbourhood"},
    {"multiset": "ppr"},
    {"multiset__undirected": True, "multiset__weights": "uniform"},
    {"n_layers": 0},
    {"walk": None},
    {"walk": 0.5, "normalize": False, "multiset": "hops"},
    {"em__n_iter": 0},
]


# --- the same state gives the same output ---------------------------------------------------------------


@each_device
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_transform_agrees_with_the_numpy_path(X, A, variant, device):
    model = small(**variant).fit(X, graph=A)
    expected = model.transform(X, graph=A)
    Z = model.set_params(device=device).transform(torch.from_numpy(X).to(device), graph=A)
    assert isinstance(Z, torch.Tensor)
    assert Z.device.type == device
    assert_near(Z, expected)


@each_device
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_model_fitted_on_tensors_agrees_with_itself_on_numpy(X, A, variant, device):
    model, x = small(**variant, device=device), torch.from_numpy(X).to(device)
    Z = model.fit_transform(x, graph=A)
    assert torch.equal(model.transform(x, graph=A), Z)
    assert torch.equal(small(**variant, device=device).fit(x, graph=A).transform(x, graph=A), Z)
    arrays = [layer.theta.anchors for layer in model.stack_.layers]
    assert all(isinstance(array, np.ndarray) for array in arrays)
    assert_near(Z, model.set_params(device="cpu").transform(X, graph=A))


@each_device
def test_float64_stays_float64_and_agrees_more_closely(X, A, device):
    model = small().fit(X.astype(np.float64), graph=A)
    expected = model.transform(X.astype(np.float64), graph=A)
    Z = model.set_params(device=device).transform(torch.from_numpy(X).double().to(device), graph=A)
    assert_near(Z, expected, tol=1e-9)


@each_device
@pytest.mark.parametrize("kind", ["int64", "float16", "bool"])
def test_other_types_become_float32(A, kind, device):
    x = torch.randint(0, 2, (N, 6), generator=torch.Generator().manual_seed(0)).to(getattr(torch, kind)).to(device)
    model = small(device=device)
    assert torch.equal(model.fit_transform(x, graph=A), model.fit_transform(x.float(), graph=A))


@each_device
def test_a_gradient_is_not_followed(X, A, device):
    x = torch.from_numpy(X).to(device).requires_grad_()
    assert not small(device=device).fit_transform(x, graph=A).requires_grad


@each_device
def test_a_sparse_tensor_is_the_dense_one(A, device):
    dense = sp.random_array(
        (N, 30), density=0.2, rng=np.random.default_rng(0), dtype=np.float32, format="csr"
    ).toarray()
    x = torch.from_numpy(dense).to(device)
    model = small(device=device).fit(x, graph=A)
    sparse = x.to_sparse_csr()
    assert torch.equal(model.transform(sparse, graph=A), model.transform(x, graph=A))
    assert torch.equal(small(device=device).fit_transform(sparse, graph=A), model.transform(x, graph=A))


# --- graphs ---------------------------------------------------------------------------------------------


@each_device
@pytest.mark.parametrize(
    "variant", [{}, {"multiset": "open-neighbourhood"}, {"multiset__weights": "symmetric"}], ids=str
)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("undirected", [True, False])
def test_an_edge_list_on_the_device_is_the_graph(A, variant, weighted, undirected, device):
    edges, weights = edge_list(A, device)
    edges, weights = torch.cat([edges, edges[:, :40]], dim=1), torch.cat([weights, weights[:40]])  # parallel ones add
    pair = (edges, weights) if weighted else edges
    closed, rule = variant.get("multiset") is None, variant.get("weights")
    expected = neighbourhoods(as_graph(pair, undirected=undirected, n_nodes=N), closed=closed, weights=rule)
    ours = edge_neighbourhoods(
        edges, weights if weighted else None, N, closed=closed, weights=rule, undirected=undirected
    )
    # Members stand in another order within their rows: the two are compared as matrices.
    shape = (N, N)
    theirs = sp.csr_array((_weights(expected), expected.indices, expected.indptr), shape=shape).toarray()
    mine = sp.csr_array((_weights(ours), ours.indices.cpu().numpy(), ours.indptr.cpu().numpy()), shape=shape).toarray()
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert ours.n_entries == expected.n_entries
    assert ours.indices.dtype == torch.int32


def _weights(sets) -> np.ndarray:
    weights = np.ones(sets.n_entries, np.float32) if sets.weights is None else sets.weights
    return weights.cpu().numpy() if isinstance(weights, torch.Tensor) else weights


@each_device
def test_every_form_of_the_graph_gives_the_same(X, A, device):
    """Structural columns are those of multisets without their own nodes: a loop is not told from them."""
    x = torch.from_numpy(X).to(device)
    for structure, graph in ((None, A), ("auto", sp.csr_array(sp.triu(A, 1) + sp.tril(A, -1)))):
        model = small(structure=structure, device=device).fit(x, graph=graph)
        expected = model.transform(x, graph=graph).cpu().numpy()
        sets = tensor_sets(neighbourhoods(as_graph(graph))).to(device)
        for form in (sets, edge_list(graph, device), as_graph(graph), edge_list(graph, "cpu")):
            assert_near(model.transform(x, graph=form), expected, tol=1e-5)


@each_device
def test_nodes_are_known_by_the_ids_of_the_graph(X, A, device):
    named = as_graph(nx.relabel_nodes(nx.from_scipy_sparse_array(A), lambda v: f"n{v}"))
    model = small().fit(X, graph=named)
    rows = np.random.default_rng(0).permutation(N)
    Z = model.set_params(device=device).transform(torch.from_numpy(X[rows]).to(device), graph=named[rows])
    assert_near(Z, model.set_params(device="cpu").transform(X, graph=named)[rows])


@each_device
def test_no_edge_travels_through_the_host(X, A, device, monkeypatch):
    """Structural columns are computed in host memory; nothing else is."""
    edges, _ = edge_list(A, device)
    monkeypatch.setattr("fishergraph.estimators.inputs.as_graph", None)
    small(structure=None, device=device).fit_transform(torch.from_numpy(X).to(device), graph=edges)


def test_a_diffusion_of_an_edge_list_is_built_on_the_host(X, A):
    edges = edge_list(A)[0]
    edges = torch.cat([edges, torch.tensor([[N - 1], [N - 1]])], dim=1)
    model = small(multiset=PageRank(members=4)).fit(X, graph=edges)
    assert_near(model.transform(torch.from_numpy(X), graph=edges), model.transform(X, graph=edges))


# --- NumPy arrays on a device ---------------------------------------------------------------------------


def hosted(device: str) -> AbstractContextManager[None]:
    """NumPy arrays pass through tensors; on the CPU the engine of that name does it."""
    return nullcontext() if device == "cuda" else config_context(engine="torch")


@each_device
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_host_rows_are_streamed_and_the_result_is_numpy(X, A, make, device):
    model = small(device=device)
    with hosted(device):
        Z = model.fit_transform(make(X), graph=A)
        assert isinstance(Z, np.ndarray)
        np.testing.assert_array_equal(model.transform(make(X), graph=A), Z)
    assert_near(Z, small(device=device).fit_transform(torch.from_numpy(X).to(device), graph=A).cpu().numpy())
    assert_near(Z, model.set_params(device="cpu").transform(make(X), graph=A))


@each_device
def test_structural_features_are_streamed(A, device):
    with hosted(device):
        Z = small(device=device).fit_transform(None, graph=A)
    assert Z.shape[0] == N
    assert np.isfinite(Z).all()


@each_device
def test_blocks_do_not_change_the_result(X, A, device, monkeypatch):
    with hosted(device):
        model = small(device=device).fit(X, graph=A)
        expected = model.transform(X, graph=A)
        monkeypatch.setattr("fishergraph._parallel._GPU_ROWS", (16, 32))
        monkeypatch.setattr("fishergraph.layer.block_rows", lambda *_: 16)
        monkeypatch.setattr("fishergraph.passes.block_rows", lambda *_: 32)
        assert_near(model.transform(X, graph=A), expected, tol=1e-5)


def test_rows_are_what_they_are_taken_from(X):
    sparse = sp.csr_array(np.where(X > 0.5, X, 0))
    picks = torch.tensor([3, 3, 80, 0])
    tensor = torch.from_numpy(sparse.toarray())
    for rows in (HostRows(sparse, torch.device("cpu")), SparseRows(tensor.to_sparse_csr())):
        assert rows.shape == X.shape
        assert torch.equal(rows[10:30], tensor[10:30])
        assert torch.equal(rows[picks], tensor[picks])


def test_a_sum_that_overflows_is_not_taken_for_an_infinity():
    check_finite_rows(torch.full((10, 4), 3e38))
    with pytest.raises(ValueError, match="row 3"):
        check_finite_rows(torch.full((10, 4), 3e38).index_fill(0, torch.tensor([3]), torch.inf))


def test_a_run_that_cannot_fit_is_refused_with_numbers(X, A, monkeypatch):
    monkeypatch.setattr(torch_device, "free_bytes", lambda device: 10**6)
    with pytest.raises(MemoryError, match="90 rows"):
        small().fit(torch.from_numpy(X), graph=A)
    monkeypatch.setattr(torch_device, "free_bytes", lambda device: int(269.5e6))
    wide = {"dim": 80, "em__max_samples": 10, "n_anchors": 1}
    small(**wide).fit(torch.from_numpy(X), graph=A)
    with pytest.raises(MemoryError, match="host"):
        small(**wide, n_layers=60).fit_transform(torch.from_numpy(X), graph=A)
    with config_context(engine="torch"):
        small(**wide, n_layers=60).fit_transform(X, graph=A)


# --- fitting ---------------------------------------------------------------------------------------------


@each_device
def test_cora_is_classified_as_well_as_by_the_numpy_fit(device):
    """On validation nodes; two seeds of either path lie this close to each other."""
    data = load_graph("cora")
    train, val, _ = data.split()
    options = {"n_layers": 2, "dim": 64, "random_state": 0}
    embedded = [FisherEmbedding(**options).fit_transform(data.X, graph=data.graph)]
    with hosted(device):
        embedded.append(FisherEmbedding(**options, device=device).fit_transform(data.X, graph=data.graph))
    scores = [LogisticProbe().fit(Z, data.y, train, val).val_score_ for Z in embedded]
    assert abs(scores[0] - scores[1]) < 0.03


@each_device
def test_seeds_are_honoured(X, A, device):
    x = torch.from_numpy(X).to(device)
    one, again, other = (small(device=device, random_state=s).fit_transform(x, graph=A) for s in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_the_global_random_state_is_left_alone(X, A):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    small().fit(torch.from_numpy(X), graph=A)
    assert torch.equal(torch.get_rng_state(), before)


@each_device
def test_a_model_moves_between_devices_through_a_file(X, A, tmp_path, device):
    model = small(device=device)
    Z = model.fit_transform(torch.from_numpy(X).to(device), graph=A)
    model.save(tmp_path / "model")
    loaded = FisherEmbedding.load(tmp_path / "model", device="cpu")
    assert loaded.device == "cpu"
    assert_near(Z, loaded.transform(X, graph=A))
    loaded.save(tmp_path / "again")
    back = FisherEmbedding.load(tmp_path / "again").set_params(device=device)
    assert torch.equal(back.transform(torch.from_numpy(X).to(device), graph=A), Z)


def test_distinct_rows_are_found_in_order():
    rows = torch.tensor([[1.0, 2], [0, 0], [1, 2], [-0.0, 0], [3, 1]])
    assert first_distinct(rows).tolist() == [0, 1, 4]
    assert first_distinct(rows[:0]).tolist() == []


# --- edges of the data -----------------------------------------------------------------------------------


@each_device
def test_constant_features(A, device):
    model = small(device=device)
    Z = model.fit_transform(torch.ones(N, 4, device=device), graph=A)
    assert torch.isfinite(Z).all()
    assert model.blocks_ == [
        *((name, 1) for name in ("psi0", "psi1", "psi2", "walk", "smooth")),
        ("factors", 4),
        ("local", 8),
    ]


@each_device
def test_zero_features(A, device):
    Z = small(structure=None, device=device).fit_transform(torch.zeros(N, 4, device=device), graph=A)
    assert torch.count_nonzero(Z) == 0


@each_device
@pytest.mark.parametrize("n", [1, 2])
def test_fewer_points_than_anchors(n, device):
    x = torch.eye(n, 3, device=device)
    model = small(device=device)
    with pytest.warns(UserWarning, match=f"3 anchors.* {n} "):
        Z = model.fit_transform(x, graph=torch.zeros(2, 0, dtype=torch.int64, device=device))
    assert torch.isfinite(Z).all()
    assert_near(Z, model.set_params(device="cpu").transform(x.cpu().numpy(), graph=np.zeros((2, 0), int)))


@each_device
def test_an_empty_open_graph(X, device):
    x = torch.from_numpy(X).to(device)
    edges = torch.zeros(2, 0, dtype=torch.int64, device=device)
    model = small(device=device, multiset="open-neighbourhood")
    Z = model.fit_transform(x, graph=edges)
    columns = dict(zip(model.get_feature_names_out(), Z.T, strict=True))
    for name, column in columns.items():  # the layers and the structure have nothing to read
        assert bool(column.any()) == name.startswith(("psi0", "walk", "smooth", "local")), name


@each_device
def test_without_a_graph_rows_are_their_own_sets(X, device):
    x = torch.from_numpy(X).to(device)
    loops = torch.arange(N, device=device).repeat(2, 1)
    alone = small(device=device).fit(x).transform(x)
    looped = small(structure=None, device=device).fit(x, graph=loops).transform(x, graph=loops)
    assert_near(alone, looped.cpu().numpy(), tol=1e-6)


def refused(match, x, error=ValueError, graph=None, **params):
    with pytest.raises(error, match=match):
        small(**params).fit(x, graph=graph)


@each_device
@pytest.mark.parametrize("sparse", [False, True])
def test_the_first_bad_row_is_named(X, sparse, device):
    x = torch.from_numpy(X).to(device).clone()
    x[[7, 40], [2, 1]] = torch.tensor([torch.inf, torch.nan], device=device)
    refused("infinity in row 7", x.to_sparse_csr() if sparse else x, device=device)


def test_bad_tensors_are_refused(X):
    x = torch.from_numpy(X)
    refused("shape", x[0])
    refused("shape", x[:0])
    refused("Complex", x.to(torch.complex64))
    refused("sparse_coo", x.to_sparse(), TypeError)
    refused("largest entry", x * 0 + 1e30, normalize=False)
    model = small().fit(x)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(x[:, :4])


def test_bad_graphs_are_refused(X, A):
    x, (edges, weights) = torch.from_numpy(X), edge_list(A)
    refused("edge_index", x, graph=edges.float())
    refused("0 to 49", x[:50], graph=edges)
    refused("negative", x, graph=(edges, -weights))
    refused("floats", x, graph=(edges, weights[1:]))
    refused("50 rows", x[:50], graph=tensor_sets(neighbourhoods(as_graph(A))))


def test_backends_know_their_arrays(X):
    with config_context(engine="numba"):
        refused("numba.*tensors", torch.from_numpy(X))


# --- devices and precisions -------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "mps", None, 0])
def test_unknown_devices_are_refused(X, device):
    refused("device .*" + re.escape(repr(device)), X, device=device)


def test_a_missing_gpu_is_an_error(X, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refused("no CUDA device", X, RuntimeError, device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    refused("'cuda:2'", X, device="cuda:2")


def test_a_missing_torch_is_an_error(X, monkeypatch):
    import importlib

    real = importlib.import_module

    def missing(name, *rest):
        if name == "torch":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    refused(r"fishergraph\[gpu\]", X, ImportError, device="cuda")


def test_precisions_belong_to_gpus(X):
    for value, words in (("tf32", "CPU"), ("fp16", "'float32', 'tf32', 'bf16'")):
        with pytest.raises(InputError, match=words) as error:
            small(device__precision=value).fit(X)
        assert "precision" in error.value.parameter


@pytest.mark.parametrize("mode", ["float32", "tf32", "bf16"])
def test_the_precision_of_products_is_set_and_restored(mode):
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    with torch_device.working(torch.device("cpu"), mode):
        assert settings.fp32_precision == ("ieee" if mode == "float32" else "tf32")
        assert not torch.is_grad_enabled()
    assert settings.fp32_precision == before


@pytest.mark.parametrize("variant", VARIANTS[:7], ids=str)
def test_points_kept_in_bf16_are_near(X, A, variant, monkeypatch):
    """bf16 has 8 bits: a point is off by 2^-9 of itself. The place is made by hand: on a CPU nobody asks for it."""
    model = small(**variant).fit(X, graph=A)
    expected = model.transform(X, graph=A)
    real = torch_device.tensor_workspace
    monkeypatch.setattr(
        torch_device, "tensor_workspace", lambda device, **k: real(device, **{**k, "precision": "bf16"})
    )
    Z = model.transform(torch.from_numpy(X), graph=A)
    error = np.linalg.norm(Z.numpy() - expected) / np.linalg.norm(expected)
    assert 0 < error < 0.05
    small(**variant).fit(torch.from_numpy(X), graph=A)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("precision", "tol"), [("float32", 1e-4), ("tf32", 0.05), ("bf16", 0.1)])
def test_precisions_on_a_gpu(precision, tol):
    data = load_graph("cora")
    model = FisherEmbedding(random_state=0).fit(data.X, graph=data.graph)
    expected = model.transform(data.X, graph=data.graph)
    Z = model.set_params(device=Device("cuda", precision=precision)).transform(data.X, graph=data.graph)
    assert np.linalg.norm(Z - expected) <= tol * np.linalg.norm(expected)
