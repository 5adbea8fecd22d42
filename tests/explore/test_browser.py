"""The page in headless Chromium: real clicks, keys, lassos, both themes, small windows, links, no network."""

from __future__ import annotations

import csv
import html
import importlib.util
import io
import re
import time
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from fishergraph import FisherEmbedding, as_graph
from fishergraph.explore import explore
from fishergraph.explore.html import frame

_spec = importlib.util.spec_from_file_location("browser", Path(__file__).resolve().parents[2] / "tools" / "browser.py")
browser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "there is a browser"),
]

SIDE = 11
N = SIDE * SIDE
HOSTILE = "</script><img src=x onerror=window.hacked=1>"
IDS = [HOSTILE if k == 60 else f"node {k}" for k in range(N)]
PALETTE = {"ape": (0, 114, 178), "bee": (230, 159, 0), "cat": (0, 158, 115)}
KINDS = ["ape", "bee", "cat"]


def positions():
    """Nodes on a grid: number k is in column k % 11 and row k // 11 from below."""
    x, y = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE))
    return np.stack([x.ravel(), y.ravel()], axis=1)


class Example:
    """A page of nodes on a grid, and what it is made of."""

    def __init__(self, folder: Path):
        self.graph = as_graph(nx.relabel_nodes(nx.grid_2d_graph(SIDE, SIDE), lambda rc: rc[0] * SIDE + rc[1]))
        rng = np.random.default_rng(0)
        self.X = pd.DataFrame(rng.normal(size=(N, 4)), columns=["wide", "deep", "tall", "old"])
        self.model = FisherEmbedding(1, 2, 8, random_state=0)
        self.Z = self.model.fit_transform(self.X, graph=self.graph)
        self.kinds = [None if k % 20 == 7 else KINDS[k % 3] for k in range(N)]
        self.fields = pd.DataFrame(
            {
                "age": [None if k == 3 else k / 8 for k in range(N)],
                "born": pd.to_datetime([f"19{10 + k % 80}-03-05" for k in range(N)]),
                "code": [f"{k:04d}" for k in range(N)],
                "story": [f"{HOSTILE} {k}" if k % 2 else "" for k in range(N)],
            }
        )
        options = {"ids": IDS, "labels": self.kinds, "fields": self.fields, "model": self.model, "X": self.X}
        maps = {"grid": positions(), "turned": positions()[:, ::-1]}
        self.page = explore(self.Z, self.graph, maps=maps, title="A & B </title>", n_neighbours=5, **options)
        self.path = self.page.save(folder / "page.html")

    @property
    def url(self) -> str:
        return self.path.as_uri()


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return Example(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def window(downloads):
    with browser.browser(1200, 800, downloads=downloads) as driver:
        yield driver


@pytest.fixture
def opened(window, example):
    """The page, with the whole map in known places."""
    return visit(window, example)


def visit(window, example, link="x=0&y=0&zoom=0.8", *, width=1200, height=700, mobile=False, dark=False):
    browser.set_window(window, width, height, mobile=mobile)
    browser.set_scheme(window, dark=dark)
    js(window, "try { localStorage.clear() } catch {}")  # the theme of the test before
    window.get("about:blank")
    browser.open_page(window, f"{example.url}#{link}")
    return window


def js(window, script, *arguments):
    return window.execute_script(script, *arguments)


def text(window, selector):
    return js(window, "return document.querySelector(arguments[0])?.textContent ?? null", selector)


def texts(window, selector):
    return js(window, "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)


def link_of(window):
    time.sleep(0.3)
    return dict(re.findall(r"([a-z]+)=([^&]*)", js(window, "return location.hash")))


def box_of(window, name):
    """Where an element is in the window."""
    return js(window, "return document.getElementById(arguments[0]).getBoundingClientRect().toJSON()", name)


def place_of(window, x, y, zoom=0.8, centre=(0, 0)):
    """Where a point of the map is in the window."""
    box = box_of(window, "stage")
    scale = min(box["width"], box["height"]) / 2 * zoom
    left, top = box["left"] + box["width"] / 2, box["top"] + box["height"] / 2
    return left + (x - centre[0]) * scale, top - (y - centre[1]) * scale


def mouse(window, kind, x, y, **more):
    window.execute_cdp_cmd(
        "Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1, **more}
    )


def click(window, node, **where):
    at = place_of(window, *positions()[node], **where)
    mouse(window, "mouseMoved", *at, button="none")
    mouse(window, "mousePressed", *at, buttons=1)
    mouse(window, "mouseReleased", *at)


def drag(window, path, *, shift=False):
    """Press at the first place and release at the last; the places are of the map."""
    at = [place_of(window, *point) for point in path]
    modifiers = 8 if shift else 0
    mouse(window, "mouseMoved", *at[0], button="none")
    mouse(window, "mousePressed", *at[0], buttons=1, modifiers=modifiers)
    for x, y in at[1:]:
        mouse(window, "mouseMoved", x, y, buttons=1, modifiers=modifiers)
    mouse(window, "mouseReleased", *at[-1], modifiers=modifiers)


def press(window, key, code=None):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(window).send_keys(key).perform()
    time.sleep(0.1)


def wait(window, script):
    return browser.wait_until(window, script, 10)


def colour_at(window, x, y):
    """The colour of the window at a place, a mean over 3 × 3 pixels."""
    image = pytest.importorskip("PIL.Image")
    shot = image.open(io.BytesIO(window.get_screenshot_as_png())).convert("RGB")
    box = [round(value) for value in (x - 1, y - 1, x + 2, y + 2)]
    return np.asarray(shot.crop(box)).reshape(-1, 3).mean(axis=0)


def close_to(found, colour, tolerance=60):
    return np.abs(found - np.array(colour)).max() < tolerance


# --- what is drawn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("renderer", ["WebGL", "canvas"])
def test_points_have_the_colours_of_their_labels(window, example, renderer):
    more = "" if renderer == "WebGL" else "&renderer=canvas"
    visit(window, example, "x=0&y=0&zoom=0.8&labels=no" + more)
    time.sleep(0.5)
    for node in (36, 37, 38, 71, 72, 73):
        assert close_to(colour_at(window, *place_of(window, *positions()[node])), PALETTE[example.kinds[node]])
    between = place_of(window, 0.1, 0.1)
    assert close_to(colour_at(window, *between), (251, 250, 248), 12)
    press(window, "?")
    assert ("WebGL" if renderer == "WebGL" else "plain canvas") in text(window, ".made")


def test_a_browser_without_webgl(example):
    with browser.browser(1200, 800, webgl=False) as window:
        visit(window, example)
        click(window, 36)
        assert text(window, "#node-id") == IDS[36]
        assert close_to(colour_at(window, *place_of(window, *positions()[38])), PALETTE[example.kinds[38]])


def test_points_stay_when_webgl_is_lost(window, example):
    script = """
        const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
            const context = get.call(this, kind, ...more);
            const webgl = kind.includes("webgl") && context;
            if (webgl) window.lose = () => webgl.getExtension("WEBGL_lose_context").loseContext();
            return context;
        };
    """
    added = window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        visit(window, example, "x=0&y=0&zoom=0.8&labels=no")
        js(window, "window.lose()")
        wait(window, "return document.getElementById('status').textContent.includes('plain canvas')")
        time.sleep(0.5)
        assert close_to(colour_at(window, *place_of(window, *positions()[38])), PALETTE[example.kinds[38]])
        click(window, 38)
        assert text(window, "#node-id") == IDS[38]
    finally:
        window.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_nothing_is_fetched_and_nothing_complains(window, example):
    window.get_log("browser")
    window.execute_cdp_cmd("Network.enable", {})
    window.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    try:
        visit(window, example)
        click(window, 60)
        press(window, "w")
        press(window, "m")
        assert js(window, "return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
        assert browser.complaints(window) == []
    finally:
        window.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
        )


def test_text_from_the_data_runs_nowhere(opened, example):
    for node in (60, 61, 59):
        click(opened, node)
        press(opened, "w")
        assert text(opened, "#node-id") == IDS[node]
    press(opened, "/")
    press(opened, "</script>")
    assert HOSTILE in texts(opened, "#hits .hit-id")
    assert js(opened, "return window.hacked") is None
    assert js(opened, "return document.querySelectorAll('img').length") == 0
    assert js(opened, "return document.title") == "A & B </title>"
    # The policy of the document would stop what the page does not.
    js(opened, "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hacked=1>')")
    js(
        opened,
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 2'; document.body.append(s)",
    )
    time.sleep(0.3)
    assert js(opened, "return window.hacked") is None


# --- one node -----------------------------------------------------------------------------------------------


def test_a_click_shows_the_fields_as_they_are(opened, example):
    click(opened, 61)
    names, values = texts(opened, "#fields dt"), texts(opened, "#fields dd")
    shown = dict(zip(names, values, strict=True))
    assert shown["label"] == example.kinds[61]
    assert shown["age"] == "7.625"
    assert shown["born"] == "1971-03-05"
    assert shown["code"] == "0061"
    assert shown["story"] == f"{HOSTILE} 61"
    assert shown["degree"] == "4"
    click(opened, 3)
    shown = dict(zip(texts(opened, "#fields dt"), texts(opened, "#fields dd"), strict=True))
    assert shown["age"] == "—"
    click(opened, 7)
    assert "—" in texts(opened, "#fields dd")
    click(opened, 8)
    assert "(empty)" in texts(opened, "#fields dd")


def test_neighbours_are_side_by_side(opened, example):
    click(opened, 36)
    linked = set(texts(opened, "#linked .neighbour:not(.itself) .name"))
    assert linked == {IDS[25], IDS[35], IDS[37], IDS[47]}
    U = example.Z / np.linalg.norm(example.Z, axis=1, keepdims=True)
    order = [w for w in np.argsort(-(U @ U[36]), kind="stable") if w != 36][:5]
    assert texts(opened, "#near .neighbour .name") == [IDS[w] for w in order]
    similarities = [float(value) for value in texts(opened, "#near .neighbour .number")]
    assert np.abs(similarities - U[order] @ U[36]).max() < 0.006
    both = {IDS[w] for w in order} & linked
    assert set(texts(opened, "#near .both .name")) == both
    boxes = [box_of(opened, name) for name in ("linked", "near")]
    assert boxes[0]["right"] <= boxes[1]["left"]
    assert boxes[0]["top"] == boxes[1]["top"]


def test_attention_of_every_anchor(opened, example):
    from fishergraph import Explainer

    click(opened, 36)
    expected = Explainer(example.model, example.X, graph=example.graph).explain(36)
    rows = js(
        opened,
        "return [...document.querySelectorAll('#linked .neighbour')]"
        ".map((row) => [row.querySelector('.name').textContent, row.querySelector('.cells').title])",
    )
    assert len(rows) == 5
    shares = {name: [float(value) for value in re.findall(r": ([\d.]+) %", title)] for name, title in rows}
    assert np.allclose(np.sum(list(shares.values()), axis=0), 100, atol=2)
    for member, attention in zip(expected.rows.tolist(), expected.attention, strict=True):
        name = "itself" if member == 36 else IDS[member]
        assert np.abs(np.array(shares[name]) - 100 * attention).max() < 1.5


def test_why_two_nodes_are_alike(opened, example):
    click(opened, 36)
    js(opened, "document.querySelector('#near .why').click()")
    card = text(opened, "#why")
    other = texts(opened, "#near .neighbour .name")[0]
    assert IDS[36] in card
    assert other in card
    parts = [float(value) for value in texts(opened, "#why section:nth-of-type(1) td.number")]
    blocks = dict(example.model.blocks_)
    total = parts[len(blocks)]
    assert sum(parts[: len(blocks)]) == pytest.approx(total, abs=0.05)
    assert f"similarity {total:.2f}" in card
    v, w = 36, IDS.index(other)
    U = example.Z / np.linalg.norm(example.Z, axis=1, keepdims=True)
    borders = np.cumsum([0, *blocks.values()])
    exact = [float(U[v, a:b] @ U[w, a:b]) for a, b in pairwise(borders)]
    assert np.abs(np.array(parts[: len(blocks)]) - exact).max() < 0.011
    assert link_of(opened)["with"] == quote(other).replace("%20", "+")
    js(opened, "document.querySelector('#why button.plain').click()")
    assert text(opened, "#why") is None


def test_why_of_any_two_nodes(opened):
    click(opened, 36)
    at = place_of(opened, *positions()[99])
    mouse(opened, "mousePressed", *at, buttons=1, modifiers=1)
    mouse(opened, "mouseReleased", *at, modifiers=1)
    assert text(opened, "#node-id") == IDS[36]
    assert IDS[99] in text(opened, "#why")
    assert "not on the page" in text(opened, "#why")


def test_what_both_lack_is_no_reason(window, example, tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"wide": rng.normal(size=N), "gap": (np.arange(N) == 100).astype(float)})
    model = FisherEmbedding(1, 2, 8, random_state=0)
    Z = model.fit_transform(X, graph=example.graph)
    options = {"fields": X, "model": model, "X": X, "maps": {"grid": positions()}}
    path = explore(Z, example.graph, **options).save(tmp_path / "p.html")
    browser.open_page(window, f"{path.as_uri()}#node=36&with=37")
    shown = texts(window, "#why th")
    assert not any("gap" in name for name in shown)
    assert "explainer.explain(36, 37, cosine=True)" in text(window, "#why .exact")
    value = dict(zip(texts(window, "#fields dt"), texts(window, "#fields dd"), strict=True))["wide"]
    assert value == f"{X['wide'][36]:.6g}"
    titles = js(window, "return [...document.querySelectorAll('#fields dd')].map((e) => e.title)")
    assert repr(float(X["wide"][36])) in titles
    browser.open_page(window, f"{path.as_uri()}#node=99&with=100")
    wait(window, "return document.getElementById('node-id')?.textContent === '99'")
    assert "gap" in texts(window, "#why th")  # the rare value, without a word for its direction


@pytest.mark.parametrize(("width", "height"), [(1200, 700), (390, 780)])
def test_a_link_to_two_nodes_shows_both(window, example, width, height):
    for other in (0, 59, 120):
        visit(window, example, f"node=node+61&with={quote(IDS[other])}", width=width, height=height, mobile=width < 500)
        time.sleep(0.8)
        box, found = box_of(window, "stage"), link_of(window)
        zoom, centre = float(found["zoom"]), (float(found["x"]), float(found["y"]))
        for node in (61, other):
            x, y = place_of(window, *positions()[node], zoom, centre)
            assert box["left"] < x < box["right"]
            assert box["top"] < y < box["bottom"]


def test_a_neighbour_leads_to_its_node(opened):
    click(opened, 36)
    js(opened, "[...document.querySelectorAll('#linked .name')].find((e) => e.textContent === 'node 47').click()")
    assert text(opened, "#node-id") == "node 47"
    press(opened, "n")
    assert text(opened, "#node-id") != "node 47"
    press(opened, "p")
    assert text(opened, "#node-id") == "node 47"


def test_hovering_names_a_node(opened, example):
    mouse(opened, "mouseMoved", *place_of(opened, *positions()[38]), button="none")
    wait(opened, "return !document.getElementById('tip').hidden")
    assert text(opened, "#tip strong") == IDS[38]
    assert text(opened, "#tip span") == f"label: {example.kinds[38]}"
    mouse(opened, "mouseMoved", *place_of(opened, 0.1, 0.1), button="none")
    wait(opened, "return document.getElementById('tip').hidden")


def test_a_click_beside_all_points_leaves_the_node(opened):
    click(opened, 36)
    at = place_of(opened, 0.1, 0.1)
    mouse(opened, "mousePressed", *at, buttons=1)
    mouse(opened, "mouseReleased", *at)
    assert text(opened, "#node-id") is None


# --- many nodes ---------------------------------------------------------------------------------------------

SQUARE = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.4)]
INSIDE = [k for k in range(N) if np.abs(positions()[k]).max() < 0.45]


@pytest.mark.parametrize("how", ["shift", "key", "button"])
def test_a_lasso_selects_what_is_inside(opened, how):
    if how == "key":
        press(opened, "s")
    if how == "button":
        js(opened, "document.getElementById('lasso-mode').click()")
    drag(opened, SQUARE, shift=how == "shift")
    assert text(opened, "#panel h2") == f"{len(INSIDE)} nodes"
    assert set(texts(opened, "#panel .listed .name")) == {IDS[k] for k in INSIDE}


def test_a_selection_is_exported(opened, example, downloads):
    for old in downloads.glob("*.csv"):
        old.unlink()
    drag(opened, SQUARE, shift=True)
    js(opened, "document.getElementById('export').click()")
    path, end = downloads / "selection.csv", time.monotonic() + 10
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.1)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [IDS[k] for k in INSIDE]
    for k, row in zip(INSIDE, rows, strict=True):
        assert row["label"] == (example.kinds[k] or "")
        assert row["story"] == example.fields["story"][k]
        assert row["code"] == f"{k:04d}"
        assert float(row["age"]) == k / 8


def test_a_lasso_around_nothing(opened):
    drag(opened, [(0.02, 0.02), (0.18, 0.02), (0.1, 0.18), (0.02, 0.04)], shift=True)
    assert text(opened, "#panel h2") == "Nothing selected"


def test_a_category_alone(opened, example):
    js(opened, "[...document.querySelectorAll('.entry')].find((e) => e.textContent.startsWith('bee')).click()")
    assert texts(opened, ".entry[aria-pressed=true] .entry-name") == ["bee"]
    time.sleep(0.5)
    assert close_to(colour_at(opened, *place_of(opened, *positions()[37])), PALETTE["bee"])
    assert not close_to(colour_at(opened, *place_of(opened, *positions()[36])), PALETTE["ape"], 40)
    assert link_of(opened)["only"] == "bee"
    drag(opened, SQUARE, shift=True)
    assert set(texts(opened, "#panel .listed .name")) == {IDS[k] for k in INSIDE if example.kinds[k] == "bee"}


def test_the_legend_counts(opened, example):
    rows = dict(zip(texts(opened, ".entry-name"), texts(opened, ".entry-count"), strict=True))
    expected = {kind: str(example.kinds.count(kind)) for kind in KINDS} | {"missing": str(example.kinds.count(None))}
    assert rows == expected


def choose(window, name):
    """Colour by the column of that name."""
    script = """
        const select = document.getElementById("colour");
        select.value = [...select.options].find((option) => option.text === arguments[0]).value;
        select.dispatchEvent(new Event("change"));
    """
    js(window, script, name)


def test_numbers_and_dates_have_a_scale(opened):
    choose(opened, "age")
    wait(opened, "return document.querySelector('.ticks')")
    assert texts(opened, ".ticks span") == ["0", "7.5", "15"]
    assert link_of(opened)["colour"] == "age"
    assert texts(opened, ".entry-name") == ["missing"]
    choose(opened, "born")
    wait(opened, "return document.querySelector('.ticks span').textContent.startsWith('19')")
    assert texts(opened, ".ticks span") == ["1910-03-05", "1989-03-05"]
    choose(opened, "degree")
    wait(
        opened,
        "return [...document.querySelectorAll('.switches button')].some((b) => b.textContent === 'as categories')",
    )
    js(
        opened,
        "[...document.querySelectorAll('.switches button')].find((b) => b.textContent === 'as categories').click()",
    )
    wait(opened, "return document.querySelectorAll('.entry-name').length === 3")
    assert texts(opened, ".entry-name") == ["2", "3", "4"]


# --- search, keys, link -------------------------------------------------------------------------------------


def test_search_by_id(opened):
    press(opened, "/")
    press(opened, "node 11")
    assert texts(opened, "#hits .hit-id") == ["node 11", *[f"node 11{k}" for k in range(10)]]
    press(opened, "\ue007")
    assert text(opened, "#node-id") == "node 11"


def test_search_in_texts_and_categories(opened, example):
    press(opened, "/")
    press(opened, "CAT")
    assert "matches, strong on the map" in texts(opened, "#hits li")[-1]
    press(opened, "\ue003" * 3)
    press(opened, "0061")
    assert texts(opened, "#hits .hit-text") == ["code: 0061"]


def test_search_for_nothing(opened):
    press(opened, "/")
    press(opened, "nobody")
    assert "No node matches" in texts(opened, "#hits li")[0]
    press(opened, "\ue00c")
    assert js(opened, "return document.getElementById('search').value") == ""


def test_keys(opened):
    opened.execute_script("document.getElementById('stage').focus()")
    zoom = float(link_of(opened)["zoom"])
    press(opened, "+")
    time.sleep(0.6)
    assert float(link_of(opened)["zoom"]) > 1.5 * zoom
    press(opened, "\ue014")  # arrow right
    assert float(link_of(opened)["x"]) > 0
    press(opened, "0")
    time.sleep(0.9)
    assert "zoom" not in link_of(opened)
    press(opened, "c")
    assert link_of(opened)["colour"] == "cluster"
    press(opened, "m")
    assert link_of(opened)["map"] == "turned"
    press(opened, "l")
    assert link_of(opened)["labels"] == "no"
    press(opened, "d")
    assert js(opened, "return document.documentElement.dataset.theme") == "dark"
    press(opened, "?")
    assert text(opened, "#panel h2") == "About this map"


def test_another_map_moves_the_nodes(opened):
    press(opened, "m")
    time.sleep(1.2)
    click(opened, 38)  # which is where number 58 was before
    column, row = 38 % SIDE, 38 // SIDE
    assert text(opened, "#node-id") == IDS[column * SIDE + row]


def test_a_link_restores_the_view(window, example, opened):
    click(opened, 47)
    press(opened, "c")
    press(opened, "d")
    time.sleep(0.5)
    link = js(opened, "return location.hash").lstrip("#")
    assert link_of(opened)["node"] == "node+47"
    visit(window, example, link)
    assert text(window, "#node-id") == "node 47"
    assert js(window, "return document.documentElement.dataset.theme") == "dark"
    assert (
        js(window, "const s = document.getElementById('colour'); return s.options[s.selectedIndex].text") == "cluster"
    )
    assert js(window, "return location.hash").lstrip("#") == link


def test_a_link_with_search_category_and_hostile_node(window, example):
    visit(window, example, f"search=node+1&only=cat&node={quote(HOSTILE)}&zoom=2&x=0.2&y=0.1&map=turned&labels=no")
    assert text(window, "#node-id") == HOSTILE
    assert js(window, "return document.getElementById('search').value") == "node 1"
    assert texts(window, ".entry[aria-pressed=true] .entry-name") == ["cat"]
    found = link_of(window)
    assert (float(found["zoom"]), float(found["x"]), found["map"]) == (2, 0.2, "turned")
    assert js(window, "return window.hacked") is None


@pytest.mark.parametrize("link", ["node=nobody", "zoom=abc&x=NaN&colour=%3Cb%3E&map=none", "%%%", "only=zebra&with=x"])
def test_a_link_that_makes_no_sense(window, example, link):
    window.get_log("browser")
    visit(window, example, link)
    if link == "node=nobody":
        assert "no node “nobody”" in text(window, "#status")
    click(window, 36, zoom=0.92, centre=home(window))
    assert text(window, "#node-id") == IDS[36]
    assert browser.complaints(window) == []


def home(window):
    """The centre of the map when the page opens: beside the legend."""
    stage, legend = box_of(window, "stage"), box_of(window, "legend")["width"] + 28
    width, height = stage["width"], stage["height"]
    side = min(width, height) * 0.92
    shift = min(legend / 2, max(0, legend - (width - side) / 2)) if width - legend >= 0.9 * side else 0
    return -2 * shift / side, 0


# --- themes and windows -------------------------------------------------------------------------------------


def test_the_theme_follows_the_system(window, example):
    visit(window, example, dark=True)
    assert js(window, "return document.documentElement.dataset.theme") == "dark"
    assert close_to(colour_at(window, *place_of(window, 0.1, 0.1)), (19, 22, 25), 12)
    browser.set_scheme(window, dark=False)
    wait(window, "return document.documentElement.dataset.theme === 'light'")
    js(window, "document.getElementById('theme').click()")
    wait(window, "return document.documentElement.dataset.theme === 'dark'")
    browser.set_scheme(window, dark=True)
    js(window, "document.getElementById('theme').click()")
    wait(window, "return document.documentElement.dataset.theme === 'light'")
    time.sleep(0.5)
    assert close_to(colour_at(window, *place_of(window, 0.1, 0.1)), (251, 250, 248), 12)
    js(window, "document.getElementById('theme').click()")


@pytest.mark.parametrize(("width", "height"), [(390, 780), (320, 560), (760, 480)])
def test_small_windows(window, example, width, height):
    visit(window, example, width=width, height=height, mobile=True)
    assert js(window, "return document.documentElement.scrollWidth") <= width
    assert js(window, "return document.getElementById('legend').classList.contains('folded')")
    at = place_of(window, *positions()[38])
    for kind in ("touchStart", "touchEnd"):
        points = [{"x": at[0], "y": at[1]}] if kind == "touchStart" else []
        window.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    wait(window, "return document.getElementById('node-id')")
    assert text(window, "#node-id") in {
        IDS[k] for k in range(N) if np.abs(positions()[k] - positions()[38]).max() < 0.41
    }
    assert box_of(window, "stage")["bottom"] <= box_of(window, "panel")["top"] + 1
    assert js(
        window, "return document.getElementById('panel').scrollWidth <= document.getElementById('panel').clientWidth"
    )


def test_two_fingers_zoom(window, example):
    visit(window, example, width=600, height=700, mobile=True)
    before = float(link_of(window)["zoom"])

    def touch(kind, *points):
        window.execute_cdp_cmd(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]},
        )

    touch("touchStart", (250, 350), (350, 350))
    touch("touchMove", (200, 350), (400, 350))
    touch("touchEnd")
    assert float(link_of(window)["zoom"]) == pytest.approx(2 * before, rel=0.05)


def test_wheel_and_drag_move_the_map(opened):
    at = place_of(opened, 0, 0)
    opened.execute_cdp_cmd(
        "Input.dispatchMouseEvent", {"type": "mouseWheel", "x": at[0], "y": at[1], "deltaX": 0, "deltaY": -100}
    )
    wait(opened, "return !location.hash.includes('zoom=0.8')")
    assert float(link_of(opened)["zoom"]) > 0.85
    drag(opened, [(0.1, 0.1), (0.2, 0.1), (0.3, 0.1)])
    assert float(link_of(opened)["x"]) < -0.05


# --- elsewhere ----------------------------------------------------------------------------------------------


def test_a_notebook_frame(window, example, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>notebook</title>{frame(example.page.html)}", encoding="utf-8")
    window.get_log("browser")
    browser.set_window(window, 1000, 760)
    window.get(path.as_uri())
    window.switch_to.frame(0)
    wait(window, "return document.documentElement.dataset.ready === 'true'")
    press(window, "/")
    js(window, "document.getElementById('search').focus()")
    press(window, "node 38")
    press(window, "\ue007")
    assert text(window, "#node-id") == "node 38"
    assert browser.complaints(window) == []
    window.switch_to.default_content()


def test_a_served_page(window, example):
    with example.page.show(browser=False) as served:
        browser.set_window(window, 1200, 700)
        browser.open_page(window, served.url)
        assert text(window, "#title") == "A & B </title>"
        assert js(window, "return performance.getEntriesByType('resource').map((entry) => entry.name)") == []


def test_an_embedding_alone_has_empty_states(window, tmp_path):
    page = explore(np.random.default_rng(0).normal(size=(8, 3)), maps={"line": [[k / 4 - 1, 0] for k in range(8)]})
    window.get_log("browser")
    browser.set_window(window, 1200, 700)
    browser.open_page(window, f"{page.save(tmp_path / 'page.html').as_uri()}#node=3")
    assert text(window, "#node-id") == "3"
    assert "without a graph" in text(window, "#panel")
    press(window, "w")
    assert "nothing about this pair" in text(window, "#why")
    assert browser.complaints(window) == []


def test_one_node(window, tmp_path):
    page = explore(np.ones((1, 3)))
    window.get_log("browser")
    browser.open_page(window, f"{page.save(tmp_path / 'page.html').as_uri()}#node=0")
    assert text(window, "#node-id") == "0"
    assert browser.complaints(window) == []


def inked(window):
    """How many pixels of the shading are seen."""
    script = """
        const canvas = document.getElementById("density");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 3; i < data.length; i += 4) if (data[i] > 8) count++;
        return count;
    """
    return js(window, script)


def test_a_sample_is_said_on_the_page(window, tmp_path):
    rng = np.random.default_rng(0)
    page = explore(rng.normal(size=(9000, 3)).astype(np.float32), maps="pca", max_points=1000)
    browser.set_window(window, 1200, 700)
    browser.open_page(window, page.save(tmp_path / "page.html").as_uri())
    assert "of 9,000 nodes" in text(window, "#facts")
    assert "of 9,000" in text(window, ".facts")
    assert "sample" in text(window, ".notes")
    assert inked(window) > 1000
    js(window, "history.replaceState(null, '', '#zoom=40'); dispatchEvent(new HashChangeEvent('hashchange'))")
    time.sleep(0.5)
    assert inked(window) == 0


def test_ids_with_entities_are_shown_as_they_are(window, tmp_path):
    ids = ["&amp;", "<b>bold</b>", html.escape("<x>"), "100%", "a+b", "#hash", "ünïcödé 😀", "x&node=y"]
    page = explore(np.random.default_rng(0).normal(size=(8, 3)), ids=ids, maps="pca")
    path = page.save(tmp_path / "page.html")
    for name in ids:
        window.get("about:blank")
        browser.open_page(window, f"{path.as_uri()}#node={quote(name)}")
        assert text(window, "#node-id") == name


def test_the_kind_of_an_edge_is_beside_its_neighbour(window, tmp_path):
    graph = {
        "cites": [("a", "b"), ("c", "b")],
        HOSTILE: [("a", "b")],
        "likes": [("b", "a")],
    }
    ids = list("abcd")
    page = explore(np.eye(4), graph, ids=ids, maps={"line": [[k / 2 - 1, 0] for k in range(4)]})
    window.get_log("browser")
    browser.set_window(window, 1200, 700)
    browser.open_page(window, f"{page.save(tmp_path / 'page.html').as_uri()}#node=b")
    names = texts(window, "#linked .neighbour .name")
    kinds = dict(zip(names, texts(window, "#linked .neighbour .kind"), strict=True))
    assert set(kinds["a"].split(", ")) == {"cites", HOSTILE, "likes"}
    assert kinds["c"] == "cites"
    assert browser.complaints(window) == []
