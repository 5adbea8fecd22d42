"""What a notebook shows of estimators: scikit-learn's diagram, and a table of what was learned."""

from __future__ import annotations

import re
from html import unescape

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from fishergraph import (
    FisherClassifier,
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    GraphProbe,
    LogisticProbe,
)
from fishergraph._diagram import Summary

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5)).astype(np.float32)
A = nx.to_scipy_sparse_array(nx.gnm_random_graph(60, 150, seed=0))


def table_of(html):
    """The lines above the table, and its cells, as texts."""
    _, found, part = html.partition('<div class="fishergraph-summary">')
    assert found
    facts = [unescape(text) for text in re.findall(r"<p>(.*?)</p>", part)]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", part)]
    return facts, [[unescape(cell) for cell in row] for row in rows]


def test_the_blocks_of_an_embedding():
    model = FisherEmbedding(2, 3, 8, block_weights={"walk": 0, "psi1": 2.5}, random_state=0).fit(X, graph=A)
    html = model._repr_html_()
    assert "sk-top-container" in html
    facts, rows = table_of(html)
    assert facts[0] == "Fitted on 60 nodes with 5 features"
    assert facts[1].startswith("2 layers, ")
    assert rows[0] == ["block", "columns", "weight", "learned"]
    assert [(row[0], int(row[1])) for row in rows[1:]] == model.blocks_
    assert ["psi1", "8", "2.5", "3 anchors, 8 landmarks"] in rows
    assert model._repr_mimebundle_()["text/html"].endswith(html.partition('<div class="fishergraph-summary">')[2])
    assert model._repr_mimebundle_()["text/plain"] == repr(model)


def test_models_that_were_loaded_say_the_same(tmp_path):
    model = FisherEmbedding(1, 2, 4, structure=None, random_state=0).fit(X, graph=A)
    model.save(tmp_path / "m")
    loaded = FisherEmbedding.load(tmp_path / "m")
    assert loaded.n_samples_fit_ == 60
    assert table_of(loaded._repr_html_()) == table_of(model._repr_html_())


def test_other_estimators():
    sets = FisherSetEmbedding(3, 4, random_state=0).fit([X[:20], X[20:25], X[25:]])
    facts, rows = table_of(sets._repr_html_())
    assert facts == ["Fitted on 3 sets with 5 features", "Input map: mean and variance"]
    assert rows[1] == ["sets", "3", "1", "3 anchors, 3 landmarks"]
    graphs = FisherGraphEmbedding(random_state=0).fit([nx.path_graph(n) for n in range(3, 9)])
    facts, rows = table_of(graphs._repr_html_())
    assert facts[0].startswith("Fitted on 6 graphs with")
    assert [row[0] for row in rows] == ["readout", "psi0", "psi1", "psi2", "psi3"]
    assert sum(int(row[1]) for row in rows[1:]) == len(graphs.get_feature_names_out())
    y = np.where(np.arange(60) % 4 == 0, -1, np.arange(60) % 2)
    classifier = FisherClassifier(1, 2, 4, mode="probe", random_state=0).fit(X, y, graph=A)
    facts, rows = table_of(classifier._repr_html_())
    assert facts[0] == "Fitted on 60 nodes with 5 features; 2 classes"
    assert {row[0]: float(row[1]) for row in rows[1:]} == pytest.approx(classifier.probe_.chosen_, abs=1e-3)
    train, val = np.arange(30), np.arange(30, 60)
    for probe in (LogisticProbe(), GraphProbe(heads=("logistic",), random_state=0)):
        facts, rows = table_of(probe.fit(X, np.arange(60) % 2, train=train, val=val)._repr_html_())
        assert facts[0] == "Fitted on 5 columns; 2 classes"


def test_a_network():
    pytest.importorskip("torch")
    from fishergraph.nn import Training

    model = FisherClassifier(2, 3, 4, training=Training(max_epochs=2), random_state=0).fit(
        X, np.arange(60) % 2, graph=A
    )
    facts, _ = table_of(model._repr_html_())
    assert facts[0] == "Fitted on 60 nodes with 5 features; 2 classes"
    assert re.match(r"Epoch \d of 2, \d+\.\d% of the validation nodes right", facts[1])
    assert facts[2] == "2 layers of width 4 with 3 anchors each"
    assert model.n_samples_fit_ == 60


def test_before_the_fit_there_is_no_table():
    for model in (FisherEmbedding(), FisherSetEmbedding(), FisherGraphEmbedding(), FisherClassifier(), LogisticProbe()):
        assert "fishergraph-summary" not in model._repr_html_()
        assert type(model).__name__ in model._repr_html_()


def test_features_of_the_structure_are_called_so():
    facts, _ = table_of(FisherEmbedding(1, 2, 4, random_state=0).fit(graph=A)._repr_html_())
    assert "structural columns" in facts[0]


def test_without_diagrams_there_is_none():
    model = FisherEmbedding(1, 2, 4, random_state=0).fit(X)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_a_changed_parameter_does_not_stop_the_display():
    model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=A).set_params(dim=9)
    facts, _ = table_of(model._repr_html_())
    assert facts[0] == "Fitted on 60 nodes with 5 features"


def test_inside_pipelines_and_searches():
    pipeline = make_pipeline(FisherEmbedding(1, 2, 4, random_state=0), LogisticRegression()).fit(X, np.arange(60) % 2)
    search = GridSearchCV(FisherClassifier(mode="probe"), {"n_layers": [1]})
    columns = ColumnTransformer([("sets", FisherSetEmbedding(2, 3), [0, 1])]).fit(X)
    for model, name in ((pipeline, "FisherEmbedding"), (search, "FisherClassifier"), (columns, "FisherSetEmbedding")):
        html = model._repr_html_()
        assert name in html
        assert html.count("<div") == html.count("</div>")


def test_components_are_no_boxes_and_their_options_are_not_marked_as_changed():
    html = FisherSetEmbedding(7)._repr_html_()
    assert "sk-parallel" not in html.partition("</style>")[2]
    changed = re.findall(r'<tr class="user-set">.*?</tr>', html, re.DOTALL)
    assert len(changed) <= 1  # older versions of scikit-learn list no parameters
    nested = FisherGraphEmbedding(nodes=FisherEmbedding(dim=5))._repr_html_()
    assert "sk-parallel" in nested.partition("</style>")[2]


def test_texts_are_escaped():
    evil = "<script>alert('x')</script>"
    table = pd.DataFrame(X[:, :1], columns=[evil]).assign(other=X[:, 1])
    assert evil not in FisherEmbedding(1, 2, 4, random_state=0).fit(table)._repr_html_()
    html = Summary((evil,), (evil, "n"), ((evil, 1234567), ("b & c", 2))).html()
    assert evil not in html
    assert "b &amp; c" in html
    assert "1,234,567" in html
