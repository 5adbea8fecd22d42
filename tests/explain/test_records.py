"""What comes back as text, HTML and DataFrames; and questions that cannot be answered."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fishergraph import Explainer, FisherEmbedding, FisherGraphEmbedding
from fishergraph._errors import InputError, InputTypeError, MissingExtra, UnknownNodeError
from fishergraph.datasets import load_graph
from fishergraph.explain import Listing
from labelled_graph import EDGES, NODES

X = NODES.set_index("id")[[f"f{j}" for j in range(4)]]


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    model = FisherEmbedding(2, 3, 8, random_state=0).fit(X, graph=EDGES)
    return Explainer(model, X, graph=EDGES)


def test_nodes_and_columns_have_the_names_of_the_tables(explainer):
    why = explainer.explain("paper 03", "paper 41")
    assert (why.first, why.second) == ("paper 03", "paper 41")
    assert why.rows == (explainer.row("paper 03"), explainer.row("paper 41"))
    assert set(why.columns["name"][why.columns["block"] == "walk"]) == set(X.columns)
    assert set(why.pairs["first"]) <= set(X.index)
    assert explainer.ids.tolist() == X.index.tolist()
    attention = explainer.explain("paper 03")
    assert attention.node == "paper 03"
    assert attention.members.tolist() == X.index[attention.rows].tolist()


def test_frames_have_typed_columns(explainer):
    why, attention = explainer.explain("paper 03", "paper 41"), explainer.explain("paper 03")
    for part in ("blocks", "pairs", "members", "columns", "nodes"):
        frame, listing = why.to_pandas(part), getattr(why, part)
        assert list(frame.columns) == list(listing)
        assert len(frame) == len(listing) > 0
        assert frame["value"].dtype == np.float64
    assert why.to_pandas("pairs")["anchor"].dtype == np.int64
    frame = attention.to_pandas()
    assert frame["row"].dtype.kind == "i"
    assert len(frame) == attention.attention.size
    sums = frame.groupby("anchor")["attention"].sum()
    np.testing.assert_allclose(sums, 1)
    described = explainer.describe_anchors()
    assert described.to_pandas("anchors")["n_nodes"].sum() == pytest.approx(len(X))
    assert set(described.to_pandas("nodes")["node"]) <= set(X.index)


def test_texts_name_what_counts(explainer):
    why, attention = explainer.explain("paper 03", "paper 41", cosine=True), explainer.explain("paper 03")
    text = str(why)
    assert text.startswith("Cosine similarity of paper 03 and paper 41: ")
    for block in ("psi0", "psi1", "psi2", "walk", "smooth", "factors", "local"):
        assert f"\n{block}" in text
    largest = why.pairs.take(why.pairs["block"] == "psi1").take(slice(0, 1))
    assert f"{largest['first'][0]}  {largest['second'][0]}" in text
    assert all(member in str(attention) for member in attention.members)
    assert "Anchor 2" in str(explainer.describe_anchors())
    assert repr(why).startswith("Similarity('paper 03', 'paper 41': ")


def test_html_escapes_names():
    ids = np.array(["<script>alert(1)</script>", "a&b", "c", "d"], dtype=object)
    ring = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    model = FisherEmbedding(1, 2, 4, random_state=0).fit(np.eye(4), graph=ring)
    explainer = Explainer(model, np.eye(4), graph=ring, ids=ids, feature_names=["<b>", "x", "y", "z"])
    pages = [
        explainer.explain(ids[0], "a&b")._repr_html_(),
        explainer.explain(ids[0])._repr_html_(),
        explainer.describe_anchors()._repr_html_(),
    ]
    for page in pages:
        assert "<script" not in page
        assert "<b>" not in page
        assert "&lt;script&gt;" in page
        assert page.count("<table>") == page.count("</table>") > 0


def test_a_long_listing_says_how_many_rows_are_left_out():
    listing = Listing({"node": np.arange(30), "name": np.array(["n" * 60] * 30, dtype=object)})
    assert str(listing).endswith("… and 10 more")
    assert "… and 10 more" in listing._repr_html_()
    assert max(map(len, str(listing).splitlines())) < 60


def test_without_pandas_the_error_says_what_to_install(explainer, monkeypatch):
    why = explainer.explain("paper 03", "paper 41")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"fishergraph\[pandas\]"):
        why.to_pandas()


def test_integer_ids_may_be_typed_as_text():
    cora = load_graph("cora")
    model = FisherEmbedding(1, 2, 8, random_state=0).fit(cora.X, graph=cora.graph)
    for explainer in (Explainer(model, cora.X, graph=cora.graph, ids=cora.ids), Explainer(model, cora)):
        assert explainer.row("31336") == explainer.row(31336) == explainer.row(np.int64(31336))
        assert explainer.ids[explainer.row(31336)] == 31336


def test_a_frame_of_other_nodes_is_explained_too(explainer):
    """New nodes, or another graph: whatever transform takes."""
    model = FisherEmbedding(1, 3, 8, structure=None, random_state=0).fit(X, graph=EDGES)
    some = X.index[:30]
    edges = EDGES[EDGES["source"].isin(some) & EDGES["target"].isin(some)]
    Z = model.transform(X.loc[some], graph=edges)
    found = Explainer(model, X.loc[some], graph=edges).explain(some[0], some[1])
    assert found.value == pytest.approx(float(Z[0] @ Z[1]), rel=1e-4)


# --- questions without an answer --------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["paper 3", 3, None, 2.5, ["paper 03"]], ids=str)
def test_an_unknown_node_is_an_error(explainer, node):
    with pytest.raises(UnknownNodeError, match="id of a node") as raised:
        explainer.explain("paper 03", node) if node is not None else explainer.explain(node)
    assert raised.value.parameter == ("v" if node is None else "w")
    if node == "paper 3":
        assert raised.value.advice.startswith("similar ones are 'paper ")


@pytest.mark.parametrize("row", [-1, 48, 1.5, "x"])
def test_an_unknown_row_is_an_error(row):
    model = FisherEmbedding(1, 2, 4, random_state=0).fit(X.to_numpy(), graph=np.array([[0, 1], [1, 2]]))
    explainer = Explainer(model, X.to_numpy(), graph=np.array([[0, 1], [1, 2]]))
    with pytest.raises(UnknownNodeError, match="row number from 0 to 47"):
        explainer.explain(row)


def test_a_model_that_does_not_belong_to_the_data_is_refused(explainer):
    model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=EDGES)
    with pytest.raises(ValueError, match="feature names"):
        Explainer(model, X.rename(columns={"f0": "g"}), graph=EDGES)
    with pytest.raises(ValueError, match="feature names"):
        Explainer(model, X.iloc[:, :3], graph=EDGES)
    with pytest.raises(InputError, match="graph"):
        Explainer(model, X)
    with pytest.raises(InputError, match="X"):
        Explainer(model, graph=EDGES)
    with pytest.raises(InputError, match="dim"):
        Explainer(model.set_params(dim=3), X, graph=EDGES)


def test_other_models_are_refused():
    with pytest.raises(InputTypeError, match="FisherEmbedding"):
        Explainer(FisherGraphEmbedding(), X)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputTypeError, match="weights"):
        Explainer(FisherEmbedding(), X, graph=EDGES, weights=[1])
    with pytest.raises(ValueError, match="fitted"):
        Explainer(FisherEmbedding(), X, graph=EDGES)
    tuples = FisherEmbedding(1, 2, 4, multiset="tuples", random_state=0).fit(X, graph=EDGES)
    with pytest.raises(InputError, match="tuples"):
        Explainer(tuples, X, graph=EDGES)


def test_bad_arguments_are_named(explainer):
    with pytest.raises(InputError, match="block"):
        explainer.explain("paper 03", block="psi7")
    with pytest.raises(InputError, match="block"):
        explainer.explain("paper 03", "paper 04", block="psi7")
    with pytest.raises(InputError, match="cosine"):
        explainer.explain("paper 03", "paper 04", cosine=2)
    with pytest.raises(InputError, match="feature_names"):
        explainer.describe_anchors(["a"])
    with pytest.raises(InputError, match="part"):
        explainer.explain("paper 03", "paper 04").to_pandas("nodez")
    model = FisherEmbedding(0, 2, 4, random_state=0).fit(X, graph=EDGES)
    with pytest.raises(InputError, match="layer"):
        Explainer(model, X, graph=EDGES).explain("paper 03")
    with pytest.raises(InputError, match="ids"):
        Explainer(model, X, graph=EDGES, ids=["a"])
    with pytest.raises(InputError, match="distinct"):
        Explainer(model, X, graph=EDGES, ids=["a"] * 48)
