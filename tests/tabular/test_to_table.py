"""`to_table` against loops over nodes and neighbours, and what it may not see."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.decomposition import PCA

from fishergraph import FisherEmbedding, Walk, as_graph, load_graph, to_table
from fishergraph._errors import InputError

N = 50
RNG = np.random.default_rng(0)
IDS = [f"n{k}" for k in range(N)]
AGE = np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(40, 10, N))
JOB = [None if RNG.random() < 0.1 else str(RNG.choice(["cook", "smith", "clerk"])) for _ in range(N)]
PEOPLE = pd.DataFrame(
    {
        "age": AGE,
        "job": JOB,
        "member": RNG.random(N) < 0.5,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(900, size=N), "D"),
        "name": [f"person {k}" for k in range(N)],
    },
    index=IDS,
)
ENDS = RNG.integers(N - 1, size=(2, 160))  # the last node has no edge
EDGES = pd.DataFrame({"source": np.array(IDS)[ENDS[0]], "target": np.array(IDS)[ENDS[1]], "weight": RNG.random(160)})
LABELS = np.where(RNG.random(N) < 0.5, "red", "blue")
TRAIN = np.arange(N) % 3 > 0


def weights_between(edges, nodes):
    """w_uv + w_vu of different nodes, by loops."""
    W = np.zeros((len(nodes), len(nodes)))
    for source, target, weight in edges.itertuples(index=False):
        if source != target and source in nodes and target in nodes:
            W[nodes.index(target), nodes.index(source)] += weight
            W[nodes.index(source), nodes.index(target)] += weight
    return W


def mean_around(W, values):
    """The mean over the neighbours whose value is known, by loops."""
    found = []
    for v in range(len(W)):
        known = [(W[v, u], values[u]) for u in range(len(W)) if W[v, u] > 0 and not np.isnan(values[u])]
        found.append(np.average([x for _, x in known], weights=[w for w, _ in known]) if known else np.nan)
    return np.array(found)


W = weights_between(EDGES, IDS)


@pytest.fixture(scope="module")
def table():
    return to_table(PEOPLE, EDGES)


def test_own_columns_keep_their_types(table):
    own = table[list(PEOPLE.columns)]
    assert own["age"].tolist() == pytest.approx(AGE.tolist(), nan_ok=True)
    assert own["member"].dtype == bool
    assert own["since"].tolist() == PEOPLE["since"].tolist()
    assert isinstance(own["job"].dtype, pd.CategoricalDtype)
    assert table.index.tolist() == IDS


def test_means_and_shares_of_the_neighbours(table):
    np.testing.assert_allclose(table["age_mean_neighbours"], mean_around(W, AGE), rtol=1e-6)
    member = PEOPLE["member"].to_numpy().astype(float)
    np.testing.assert_allclose(table["member_mean_neighbours"], mean_around(W, member), rtol=1e-6, atol=1e-7)
    for job in ("cook", "smith", "clerk"):
        values = np.array([np.nan if own is None else float(own == job) for own in JOB])
        np.testing.assert_allclose(table[f"job={job}_share_neighbours"], mean_around(W, values), rtol=1e-6, atol=1e-7)
    assert np.isnan(table["age_mean_neighbours"].iloc[-1])  # nobody is there
    assert not [name for name in table if name.startswith(("name=", "since_"))]


@pytest.mark.parametrize("teleport", [0.1, 0.5])
def test_means_by_pagerank(teleport):
    """Walks of all lengths up to the steps of `Walk`, one matrix product after the other."""
    walk = Walk(teleport)
    A = as_graph(EDGES, undirected=True, node_ids=IDS).adjacency.toarray().astype(float)
    A[np.diag_indices(N)] = np.where(A.diagonal() > 0, A.diagonal(), 1)
    b = A.sum(axis=0) ** -0.5
    P = A / A.sum(axis=1, keepdims=True)

    def walked(x):
        h = x
        for _ in range(walk.n_steps):
            h = (1 - teleport) * P @ h + teleport * x
        return h

    known = ~np.isnan(AGE)
    expected = walked(np.where(known, AGE, 0) * b) / walked(known * b)
    table = to_table(PEOPLE, EDGES, walk=walk)
    np.testing.assert_allclose(table["age_pagerank"], expected, rtol=1e-5)


def test_structural_columns(table):
    nx = pytest.importorskip("networkx")
    G = nx.from_numpy_array(W > 0)
    assert table["triangles"].tolist() == [nx.triangles(G)[v] for v in G]
    assert table["core_number"].tolist() == [nx.core_number(G)[v] for v in G]
    np.testing.assert_allclose(table["clustering"], [nx.clustering(G)[v] for v in G], atol=1e-6)
    assert table["triangles"].dtype == np.int64
    received = EDGES.groupby("target")["weight"].sum().reindex(IDS, fill_value=0)
    np.testing.assert_allclose(table["log_in_degree"], np.log1p(received), rtol=1e-6)
    both = to_table(PEOPLE, as_graph(EDGES, undirected=True, node_ids=IDS))
    assert {"log_degree", "log_in_degree"} & set(both) == {"log_degree"}


def test_every_kind_of_table_says_the_same(table):
    arrow = to_table(PEOPLE, EDGES, kind="arrow")
    polars = to_table(PEOPLE, EDGES, kind="polars")
    assert (type(arrow), type(polars)) == (pa.Table, pl.DataFrame)
    assert arrow["id"].to_pylist() == polars["id"].to_list() == IDS
    assert arrow.column_names[1:] == polars.columns[1:] == list(table.columns)
    for name in ("age_mean_neighbours", "job=cook_share_neighbours", "triangles"):
        assert arrow[name].to_pylist() == polars[name].to_list()
        np.testing.assert_array_equal(arrow[name].to_pandas().to_numpy(), table[name].to_numpy())
    assert arrow["since"].type == pa.Table.from_pandas(PEOPLE)["since"].type
    assert arrow["age_mean_neighbours"].null_count == int(table["age_mean_neighbours"].isna().sum()) > 0
    graph = as_graph(EDGES, node_ids=IDS)
    for X in (pl.from_pandas(PEOPLE), pa.Table.from_pandas(PEOPLE, preserve_index=False)):
        assert to_table(X, graph, kind="arrow").equals(arrow)


def test_matrices_have_names():
    graph = as_graph(EDGES, node_ids=IDS)
    X = RNG.normal(size=(N, 2))
    assert {"x0", "x1_pagerank"} <= set(to_table(X, graph))
    assert {"height", "width_mean_neighbours"} <= set(to_table(X, graph, names=["height", "width"]))
    assert "log_in_degree" in to_table(None, graph)


# --- labels ----------------------------------------------------------------------------------------------


def test_labels_of_neighbours_that_train():
    table = to_table(PEOPLE, EDGES, y=LABELS, train=TRAIN, label="colour")
    values = np.where(TRAIN, (LABELS == "red").astype(float), np.nan)
    np.testing.assert_allclose(table["colour=red_share_neighbours"], mean_around(W, values), rtol=1e-6, atol=1e-7)
    assert table["colour_labelled_neighbours"].tolist() == ((W > 0).astype(int) @ TRAIN.astype(int)).tolist()


def test_numbers_as_labels():
    y = RNG.normal(size=N)
    table = to_table(PEOPLE, EDGES, y=y, train=TRAIN)
    np.testing.assert_allclose(table["label_mean_neighbours"], mean_around(W, np.where(TRAIN, y, np.nan)), rtol=1e-5)


def test_no_row_has_its_own_label_and_none_those_of_other_rows():
    """Labels outside the training rows change nothing, and that of a training row nothing in its own row."""
    table = to_table(PEOPLE, EDGES, y=LABELS, train=TRAIN)
    others = np.where(TRAIN, LABELS, "green")
    pd.testing.assert_frame_equal(to_table(PEOPLE, EDGES, y=others, train=TRAIN), table)
    for row in np.flatnonzero(TRAIN)[:10]:
        flipped = LABELS.copy()
        flipped[row] = "blue" if flipped[row] == "red" else "red"
        after = to_table(PEOPLE, EDGES, y=flipped, train=TRAIN)
        pd.testing.assert_frame_equal(after.iloc[[row]], table.iloc[[row]])


def test_inductive_rows_of_the_training_do_not_know_the_others():
    model = FisherEmbedding(dim=8, n_anchors=2, structure="local", random_state=0)
    X = np.nan_to_num(PEOPLE[["age", "member"]].to_numpy(dtype=np.float64))
    graph = as_graph(EDGES, node_ids=IDS)
    model.fit(X[TRAIN], graph=graph[np.flatnonzero(TRAIN)])
    options = {"y": LABELS, "train": TRAIN, "inductive": True, "axes": 3, "model": model}
    table = to_table(PEOPLE, EDGES, features=X, **options)
    part = EDGES[EDGES["source"].isin(set(PEOPLE.index[TRAIN])) & EDGES["target"].isin(set(PEOPLE.index[TRAIN]))]
    inner = weights_between(part, PEOPLE.index[TRAIN].tolist())
    expected = mean_around(inner, AGE[TRAIN])
    np.testing.assert_allclose(table["age_mean_neighbours"][TRAIN], expected, rtol=1e-6)
    np.testing.assert_allclose(table["age_mean_neighbours"][~TRAIN], mean_around(W, AGE)[~TRAIN], rtol=1e-6)
    Z = model.transform(X[TRAIN], graph=graph[np.flatnonzero(TRAIN)])
    axes = PCA(3, random_state=0).fit(Z)
    np.testing.assert_allclose(table[[f"axis_{k}" for k in range(3)]][TRAIN], axes.transform(Z), atol=1e-5)
    whole = axes.transform(model.transform(X, graph=graph))
    np.testing.assert_allclose(table[[f"axis_{k}" for k in range(3)]][~TRAIN], whole[~TRAIN], atol=1e-5)
    changed = PEOPLE.copy()
    changed.loc[~TRAIN, "age"] += 100
    after = to_table(changed, EDGES, features=np.where(TRAIN[:, None], X, 7), **options)
    pd.testing.assert_frame_equal(after[TRAIN], table[TRAIN])


# --- a model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"multiset": "hops"}, {"family": "von-mises-fisher"}])
def test_soft_counts_at_the_anchors(options):
    """They are those that the layer appends with counts=True."""
    cora = load_graph("cora")
    X, graph = cora.X[:300], cora.graph[:300, :300]
    model = FisherEmbedding(1, 3, 16, counts=True, kernel="identity", walk=None, structure=None, random_state=0)
    model.set_params(**options).fit(X, graph=graph)
    Z = model.transform(X, graph=graph)
    table = to_table(X, graph, model)
    names = [name for name in table if name.startswith("anchor_")]
    np.testing.assert_allclose(table[names], Z[:, -len(names) :], rtol=1e-5)
    assert len(names) == 3


# --- mistakes --------------------------------------------------------------------------------------------


def test_mistakes():
    with pytest.raises(InputError, match="graph"):
        to_table(PEOPLE)
    with pytest.raises(InputError, match="train"):
        to_table(PEOPLE, EDGES, y=LABELS)
    with pytest.raises(InputError, match="train"):
        to_table(PEOPLE, EDGES, inductive=True)
    with pytest.raises(InputError, match="train"):
        to_table(PEOPLE, EDGES, y=LABELS, train=[])
    with pytest.raises(InputError, match="model"):
        to_table(PEOPLE, EDGES, axes=2)
    with pytest.raises(InputError, match="kind"):
        to_table(PEOPLE, EDGES, kind="csv")
    with pytest.raises(InputError, match="49"):
        to_table(PEOPLE, EDGES, y=LABELS[1:], train=TRAIN)
    with pytest.raises(InputError, match="names"):
        to_table(np.ones((N, 2)), as_graph(EDGES, node_ids=IDS), names=["a"])
    with pytest.raises(InputError, match="column 'id'"):
        to_table(np.ones((N, 1)), as_graph(EDGES, node_ids=IDS), names=["id"], kind="arrow")
