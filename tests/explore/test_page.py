"""The page as a file: it holds what it should, needs nothing else, and runs nothing that is in the data."""

from __future__ import annotations

import hashlib
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import unpacked_page as unpack
from fishergraph import Explainer, FisherClassifier, FisherEmbedding, as_graph
from fishergraph._errors import InputError, InputTypeError
from fishergraph.explore import explore
from fishergraph.explore.html import asset

HOSTILE = [
    "</script><img src=x onerror=hacked()>",
    "</script ",
    "<!--<script>",
    "]]>&amp;&#60;",
    "{{script}}",
    "${alert(1)}",
    "\u2028line\u2029",
    "'\"`",
    "a\tb\nc",
    "ünïcödé 😀",
    "=HYPERLINK(1)",
    " blank ",
    "__proto__",
]


def embedding(n=40, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


class Elements(HTMLParser):
    """Names and attributes of all elements, and the bodies of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.bodies, self._open = [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data):
        if self._open in ("script", "style") and data.strip():
            self.bodies.append((self._open, self.found[-1][1], data))


def test_a_page_holds_its_nodes():
    rng = np.random.default_rng(0)
    ids = [f"n{k}" for k in range(40)]
    graph = nx.relabel_nodes(nx.gnp_random_graph(40, 0.2, seed=0), dict(enumerate(ids)))
    notes = [None, *map(str, range(39))]
    fields = pd.DataFrame({"age": rng.integers(90, size=40), "note": notes}, index=ids)
    labels = np.arange(40) % 3
    page = explore(embedding(), graph, ids=ids, fields=fields, labels=labels, names=["x", "y", "z"], maps="pca")
    read = unpack.Unpacked(page.html)
    shown = unpack.ids(read)
    rows = [ids.index(name) for name in shown]
    assert sorted(rows) == list(range(40))
    assert unpack.array(read.parts, read.about["rows"]) == rows
    assert unpack.column(read, "age") == [float(fields["age"].iloc[v]) for v in rows]
    assert unpack.column(read, "note") == [notes[v] for v in rows]
    assert unpack.column(read, "label") == ["xyz"[v % 3] for v in rows]
    assert unpack.column(read, "degree") == [graph.degree(ids[v]) for v in rows]
    edges = {frozenset((shown[v], shown[u])) for v, u in unpack.edges(read)}
    assert edges == {frozenset(edge) for edge in graph.edges}
    assert read.about["colour"] == 0
    assert page.n_nodes == 40


@pytest.mark.parametrize("place", ["ids", "labels", "texts", "names of columns", "title", "categories"])
def test_text_from_the_data_is_no_markup(place):
    n = len(HOSTILE) * 3
    repeated = [HOSTILE[k % len(HOSTILE)] for k in range(n)]
    options = {
        "ids": {"ids": [f"{text} {k}" for k, text in enumerate(repeated)]},
        "labels": {"labels": repeated},
        "texts": {"fields": {"text": [f"{text} {k}" for k, text in enumerate(repeated)]}},
        "names of columns": {"fields": {text: np.arange(n) for text in HOSTILE}},
        "title": {"title": " ".join(HOSTILE)},
        "categories": {"fields": {"word": repeated}},
    }[place]
    plain = Elements(explore(embedding(n), maps="pca").html)
    page = explore(embedding(n), maps="pca", **options)
    data = page.html.split('id="about">')[1].split("</script>")[0]
    assert not set("<>&") & set(data)
    hostile = Elements(page.html)
    parts = {attributes.get("id", "") for tag, attributes in hostile.found if tag == "script"}
    same = [entry for entry in hostile.found if not str(entry[1].get("id", "")).startswith("part-")]
    expected = [entry for entry in plain.found if not str(entry[1].get("id", "")).startswith("part-")]
    assert [tag for tag, _ in same] == [tag for tag, _ in expected]
    assert "hacked" not in str([attributes for _, attributes in same])
    assert {"about", "part-0"} <= parts
    read = unpack.Unpacked(page.html)
    known = {
        "ids": lambda: sorted(unpack.ids(read)) == sorted(options["ids"]),
        "labels": lambda: set(unpack.column(read, "label")) == set(HOSTILE),
        "texts": lambda: sorted(unpack.column(read, "text")) == sorted(options["fields"]["text"]),
        "names of columns": lambda: set(HOSTILE) <= {column["name"] for column in read.about["columns"]},
        "title": lambda: read.about["title"] == options["title"],
        "categories": lambda: set(unpack.column(read, "word")) == set(HOSTILE),
    }
    assert known[place]()


def test_a_page_needs_nothing_else():
    page = explore(embedding(), maps="pca").html
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert not {"src", "href", "srcset", "action", "background", "poster"} & set(attributes), tag
        assert not [name for name in attributes if name.startswith("on")], tag
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "data:" not in own.replace("data-", "")
    assert not re.search(r"@import|url\(", asset("page.css"))


def test_the_policy_admits_the_script_of_the_page_alone():
    elements = Elements(explore(embedding(), maps="pca").html)
    policy = next(a["content"] for tag, a in elements.found if tag == "meta" and "http-equiv" in a)
    running = [body for tag, attributes, body in elements.bodies if tag == "script" and "type" not in attributes]
    (script,) = running
    digest = hashlib.sha256(script.encode()).digest()
    import base64

    assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe-inline" not in policy


def test_one_seed_gives_one_page():
    graph = as_graph(nx.gnp_random_graph(40, 0.2, seed=0))
    first, second = (explore(embedding(), graph, random_state=3).html for _ in range(2))
    assert first == second


def test_a_model_adds_reasons(tmp_path):
    graph = as_graph(nx.connected_watts_strogatz_graph(60, 4, 0.2, seed=0))
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 5)), columns=list("abcde"))
    model = FisherEmbedding(1, 3, 8, random_state=0)
    Z = model.fit_transform(X, graph=graph)
    page = explore(Z, graph, model=model, X=X, maps="pca")
    about = unpack.Unpacked(page.html).about
    assert about["attention"]["anchors"] == 3
    assert len(about["attention"]["words"]) == 3
    assert about["alike"]["blocks"] == [name for name, _ in model.blocks_]
    assert about["features"]["names"] == list("abcde")
    assert about["model"] == "FisherEmbedding"
    read = unpack.Unpacked(page.html)
    assert [column["role"] for column in about["columns"]] == ["cluster", "degree", *["anomaly"] * 3]
    odd = Explainer(model, X, graph=graph).anomaly_scores()
    assert unpack.column(read, "anomaly") == [round(float(odd.scores[v]), 2) for v in unpack.ids(read)]
    reasons = dict(zip(unpack.ids(read), unpack.column(read, "odd by"), strict=True))
    assert {v for v, text in reasons.items() if text is not None} == set(np.flatnonzero(odd.scores >= 3).tolist())
    assert {text.split()[0] for text in reasons.values() if text is not None} <= {"being", "its"}
    assert [block["words"] for block in about["blocks"]][:2] == ["own features", "direct neighbours"]


def test_a_classifier_adds_predictions():
    graph = as_graph(nx.connected_watts_strogatz_graph(60, 4, 0.2, seed=0))
    rng = np.random.default_rng(0)
    y = np.arange(60) // 20
    X = (np.eye(3)[y] + 0.3 * rng.normal(size=(60, 3))).astype(np.float32)
    model = FisherClassifier(n_layers=1, n_anchors=2, dim=8, mode="probe", random_state=0).fit(X, y, graph=graph)
    Z = model.embedding_.transform(X, graph=graph)
    read = unpack.Unpacked(explore(Z, graph, model=model, X=X, maps="pca").html)
    rows = unpack.ids(read)
    predicted = model.predict(X, graph=graph)
    assert unpack.column(read, "prediction") == [str(predicted[v]) for v in rows]
    assert all(0 < value <= 1 for value in unpack.column(read, "confidence"))
    assert read.about["attention"]["anchors"] == 2


def test_a_model_that_does_not_belong():
    graph = as_graph(nx.connected_watts_strogatz_graph(60, 4, 0.2, seed=0))
    X = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    model = FisherEmbedding(1, 3, 8, random_state=0)
    Z = model.fit_transform(X, graph=graph)
    with pytest.raises(InputError, match="model"):
        explore(Z[:, :4], graph, model=model, X=X, maps="pca")
    other = FisherEmbedding(1, 3, 8, random_state=0).fit(X[::-1], graph=graph)
    with pytest.raises(InputError, match="made the embedding"):
        explore(Z, graph, model=other, X=X, maps="pca")
    with pytest.raises(InputTypeError, match="fitted"):
        explore(Z, graph, model=object(), X=X, maps="pca")
    with pytest.raises(InputError, match="X"):
        explore(Z, graph, model=model, X=X[:10], maps="pca")


def test_features_are_matched_by_ids():
    ids = [f"n{k}" for k in range(30)]
    X = pd.DataFrame({"a": np.arange(30.0), "b": 1.0}, index=ids)
    page = explore(embedding(30), ids=ids[::-1], X=X, maps="pca")
    read = unpack.Unpacked(page.html)
    first = unpack.ids(read)[0]
    value, scale = unpack.array(read.parts, read.about["features"]["value"])[0], read.about["features"]["scale"]
    standard = (X["a"] - X["a"].mean()) / X["a"].std(ddof=0)
    assert value * scale == pytest.approx(standard[first], abs=scale)
    with pytest.raises(InputError, match="'n29'"):
        explore(embedding(30), ids=ids, X=X.iloc[:29], maps="pca")


def test_a_sample_says_so():
    page = explore(embedding(500), max_points=100, maps="pca", ids=[f"n{k}" for k in range(500)])
    read = unpack.Unpacked(page.html)
    assert page.n_nodes <= 100
    assert read.about["total"] == 500
    assert "of 500 nodes" in page.notes[0]
    assert "raster" in read.about["maps"][0]
    assert sum(unpack.array(read.parts, read.about["maps"][0]["raster"])) == pytest.approx(500, rel=0.05)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_handful_of_nodes(n):
    page = explore(embedding(n), [(0, n - 1)] if n > 1 else None, labels=list(range(n)))
    assert page.n_nodes == n


def test_nodes_that_are_all_alike():
    assert explore(np.ones((30, 4)), maps=["pca", "tsne"]).n_nodes == 30
    assert explore(np.zeros((30, 4)), maps="pca").n_nodes == 30


def test_the_colour_at_first():
    fields = {"age": np.arange(40), "text": [f"t{k}" for k in range(40)]}
    read = unpack.Unpacked(explore(embedding(), fields=fields, maps="pca", colour="age").html)
    assert read.about["columns"][read.about["colour"]]["name"] == "age"
    with pytest.raises(InputError, match="'age'"):
        explore(embedding(), fields=fields, maps="pca", colour="text")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_neighbours": 0}, "n_neighbours"),
        ({"max_points": 5}, "max_points"),
        ({"random_state": -1}, "random_state"),
        ({"names": ["a"]}, "names"),
        ({"feature_names": ["a"], "X": np.ones((40, 3))}, "feature_names"),
        ({"path": "/nowhere/page.html"}, "nowhere"),
    ],
)
def test_wrong_options(options, word):
    with pytest.raises((ValueError, OSError), match=word):
        explore(embedding(), maps="pca", **options)


def test_saving(tmp_path):
    page = explore(embedding(), maps="pca", path=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert page.save(tmp_path / "again.html").read_bytes() == page.html.encode()
    assert repr(page) == f"Page(40 nodes, {len(page.html.encode()) / 1e6:.1f} MB)"
    with pytest.raises(IsADirectoryError):
        page.save(tmp_path)


def test_a_notebook_shows_the_same_page():
    page = explore(embedding(), labels=(HOSTILE * 4)[:40], maps="pca")
    frame = page._repr_html_()
    (tag, attributes), *others = Elements(frame).found
    assert (tag, others) == ("iframe", [])
    assert attributes["srcdoc"] == page.html
    assert "allow-same-origin" not in attributes["sandbox"]
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == page.html


# --- the bundle -----------------------------------------------------------------------------------------------

SOURCES = Path(__file__).resolve().parents[2] / "page"


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the page are in the checkout alone")
def test_the_bundle_is_built_from_its_sources():
    files = ["package-lock.json", "build.mjs", *(f"src/{path.name}" for path in (SOURCES / "src").iterdir())]
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0".encode() + (SOURCES / name).read_bytes() + b"\0")
    assert f"sources {digest.hexdigest()}" in asset("page.js")[:120], "run npm ci && npm run build in page/"


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the page are in the checkout alone")
def test_the_script_never_writes_markup():
    for path in (SOURCES / "src").glob("*.js"):
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|fetch\(|XMLHttp", path.read_text()
        )
        assert not found, path.name


def test_licences_of_all_that_is_bundled():
    text = asset("LICENSES.txt")
    for name in ("regl-scatterplot", "regl", "gl-matrix", "dom-2d-camera", "earcut", "pub-sub-es", "kdbush"):
        assert re.search(rf"(?m)^{name} [\d.]+ \((MIT|ISC)\)", text), name
    assert text.count("WITHOUT WARRANTY") + text.count("DISCLAIMS ALL WARRANTIES") >= 9
