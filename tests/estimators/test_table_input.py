"""Tables as X: complete numbers give today's bits, other tables are encoded, kept and saved."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fishergraph import (
    Explainer,
    FisherClassifier,
    FisherEmbedding,
    FisherSetEmbedding,
    LinkProbe,
    auto_embed,
    split_edges,
)
from fishergraph._errors import InputError, MissingValueError, TableError
from fishergraph._warn import SchemaWarning
from fishergraph.datasets import load_tables
from fishergraph.graph import as_graph
from fishergraph.tables import TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::fishergraph._warn.ColumnsWarning")

penguins = load_tables("penguins")
NODES = penguins.nodes.to_pandas().set_index("id").iloc[::2]
EDGES = penguins.edges.to_pandas()
EDGES = EDGES[EDGES.source.isin(NODES.index) & EDGES.target.isin(NODES.index)]
X = NODES.drop(columns="Species")
NUMBERS = NODES[["Culmen Length (mm)", "Body Mass (g)"]].fillna(1.0)
ALIKE = NUMBERS / NUMBERS.std()  # of one spread: used as they are


def small(**changes) -> FisherEmbedding:
    return FisherEmbedding(**{"n_layers": 1, "n_anchors": 2, "dim": 8, "random_state": 0, "n_jobs": 1, **changes})


def test_a_table_of_complete_numbers_is_the_array_of_its_numbers():
    graph = as_graph(EDGES, node_ids=NODES.index)
    expected = small().fit_transform(ALIKE.to_numpy(np.float64), graph=graph)
    for table in (ALIKE, pl.from_pandas(ALIKE), pl.from_pandas(ALIKE).to_arrow()):
        model = small()
        np.testing.assert_array_equal(model.fit_transform(table, graph=graph), expected)
        assert model.encoder_ is None
        np.testing.assert_allclose(model.transform(table, graph=graph), expected, atol=1e-6)


def test_vectors_beside_numbers_are_their_columns():
    rows = NUMBERS.to_numpy()
    table = pd.DataFrame({"a": rows[:, 0], "v": list(np.repeat(rows, 2, axis=1))}, index=NODES.index)
    model = small()
    Z = model.fit_transform(table, graph=EDGES)
    assert model.encoder_ is None
    assert model.feature_names_in_.tolist() == ["a", "v_0", "v_1", "v_2", "v_3"]
    np.testing.assert_array_equal(
        Z,
        small().fit_transform(
            np.column_stack([rows[:, :1], np.repeat(rows, 2, axis=1)]), graph=as_graph(EDGES, node_ids=NODES.index)
        ),
    )


def test_a_table_with_words_is_encoded():
    encoder = TableEncoder()
    rows = encoder.fit_transform(X)
    model = small()
    Z = model.fit_transform(X, graph=EDGES)
    np.testing.assert_array_equal(Z, small().fit_transform(rows, graph=as_graph(EDGES, node_ids=NODES.index)))
    assert model.encoder_.schema_ == encoder.schema_
    assert model.n_features_in_ == rows.shape[1]
    shuffled = X.sample(frac=1, random_state=0)[X.columns[::-1]]
    again = pd.DataFrame(model.transform(shuffled, graph=EDGES), index=shuffled.index).loc[X.index]
    np.testing.assert_allclose(again, model.transform(X, graph=EDGES), atol=1e-5)
    named = small().set_output(transform="pandas").fit_transform(X, graph=EDGES)
    assert named.index.equals(X.index)


def test_every_library():
    graph = as_graph(EDGES, node_ids=NODES.index)
    expected = small().fit_transform(X, graph=graph)
    for table in (pl.from_pandas(X), pl.from_pandas(X).to_arrow()):
        np.testing.assert_array_equal(small().fit_transform(table, graph=graph), expected)


@pytest.mark.parametrize("kind", ["embedding", "probe", "network"])
def test_a_file_keeps_the_encoder(kind, tmp_path):
    if kind == "network":
        pytest.importorskip("torch_geometric")
        from fishergraph.nn import Training

        model = FisherClassifier(1, 2, 4, training=Training(max_epochs=2), random_state=0)
    else:
        model = FisherClassifier(1, 2, 8, mode="probe", random_state=0) if kind == "probe" else small()
    y = () if kind == "embedding" else (NODES.Species,)
    model.fit(X, *y, graph=EDGES)
    model.save(tmp_path / "model")
    read = type(model).load(tmp_path / "model")
    assert str(read.encoder_.schema_) == str(model.encoder_.schema_)
    outputs = lambda m: m.transform(X, graph=EDGES) if kind == "embedding" else m.predict_proba(X, graph=EDGES)  # noqa: E731
    np.testing.assert_array_equal(outputs(read), outputs(model))
    with pytest.raises(TableError, match="'Sex'"):
        (read.transform if kind == "embedding" else read.predict)(X.drop(columns="Sex"), graph=EDGES)


def test_a_model_of_numbers_has_a_file_without_an_encoder(tmp_path):
    small().fit(ALIKE, graph=EDGES).save(tmp_path / "m")
    assert FisherEmbedding.load(tmp_path / "m").encoder_ is None


def test_what_another_table_may_have():
    model = small().fit(X, graph=EDGES)
    with pytest.warns(SchemaWarning, match="'more'"):
        model.transform(X.assign(more=1), graph=EDGES)
    with pytest.warns(SchemaWarning, match="'Island'"):
        model.transform(X.assign(Island="Ross"), graph=EDGES)
    assert model.encoder_.unseen_ == {"Island": len(X)}
    with pytest.raises(TableError) as caught:
        model.transform(X.drop(columns=["Sex", "Island"]), graph=EDGES)
    assert caught.value.value == ["Island", "Sex"]
    rows = model.encoder_.transform(X)  # rows that are encoded already
    np.testing.assert_array_equal(
        model.transform(rows, graph=as_graph(EDGES, node_ids=X.index)), model.transform(X, graph=EDGES)
    )
    with pytest.raises(ValueError, match="features"):
        model.transform(rows[:, 1:], graph=as_graph(EDGES, node_ids=X.index))


def test_a_new_fit_forgets_the_encoder():
    model = small().fit(X, graph=EDGES)
    assert model.fit(ALIKE, graph=EDGES).encoder_ is None
    assert model.fit(ALIKE.to_numpy(), graph=as_graph(EDGES, node_ids=X.index)).encoder_ is None


def test_missing_numbers_of_an_array_and_of_a_model_of_numbers_are_errors():
    holes = ALIKE.to_numpy().copy()
    holes[3, 1] = np.nan
    with pytest.raises(MissingValueError, match="row 3"):
        small().fit(holes, graph=as_graph(EDGES, node_ids=X.index))
    model = small().fit(ALIKE, graph=EDGES)
    with pytest.raises(InputError, match="row 3"):
        model.transform(pd.DataFrame(holes, ALIKE.index, ALIKE.columns), graph=EDGES)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = small().fit(X, graph=EDGES)
    with pytest.raises(TableError, match="bytes"):
        model.fit(X.assign(Sex=b"?"), graph=EDGES)
    model.transform(X, graph=EDGES)
    with pytest.raises(TableError, match="'Sex' stands 2 times"):
        small().fit(pd.concat([X, X[["Sex"]]], axis=1), graph=EDGES)


def test_one_warning_names_the_columns():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        small(dim=2).fit(X, graph=EDGES)
    assert [type(entry.message).__name__ for entry in caught].count("ColumnsWarning") == 1


def test_explanations_name_the_columns_of_the_encoding():
    model = small().fit(X, graph=EDGES)
    explainer = Explainer(model, X, graph=EDGES)
    described = {str(name) for name in explainer.describe_anchors(block="psi1").columns["name"]}
    assert described <= set(model.encoder_.get_feature_names_out())


def test_who_else_takes_tables():
    graph = as_graph(EDGES, node_ids=X.index, undirected=True)
    split = split_edges(graph, random_state=0)
    probe = LinkProbe(small(), random_state=0).fit(pl.from_pandas(X), split)
    assert 0 <= probe.evaluate(split.test)["auc"] <= 1
    found = auto_embed(X, EDGES, NODES.Species, settings=[{"n_layers": 1, "dim": 8}], heads=None, random_state=0)
    assert found.embedding.encoder_.schema_.aside
    with pytest.raises((TypeError, ValueError)):
        FisherSetEmbedding(2, 4).fit([X, X])
