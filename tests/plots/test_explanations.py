"""Figures of explanations: every number of the record is drawn, or in the sum of the others."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from fishergraph import Explainer, FisherEmbedding, Neighbourhood
from fishergraph._errors import InputError, InputTypeError
from fishergraph.plots import PALETTE, anchors, attention, similarity
from fishergraph.plots.style import OTHER

rng = np.random.default_rng(0)
N = 40
X = rng.random((N, 6)).astype(np.float32)
GRAPH = nx.gnm_random_graph(N, 120, seed=0)
GRAPH.add_edges_from((0, v) for v in range(1, 30))  # node 0 has many neighbours
A = nx.to_scipy_sparse_array(GRAPH)
IDS = np.array([f"node {v}" for v in range(N)])
NAMES = ["<b>", "$x$", *(f"column {k}" for k in range(4))]


def explainer_of(X=X, A=A, **options):
    model = FisherEmbedding(**{"n_layers": 2, "n_anchors": 3, "dim": 8, "random_state": 0, **options}).fit(X, graph=A)
    return Explainer(model, X, graph=A, ids=IDS, feature_names=NAMES if X is not None else None)


@pytest.fixture(scope="module")
def explainer():
    return explainer_of()


def drawn_to_nothing(ax):
    ax.figure.draw_without_rendering()


def labels_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def bars_of(ax):
    return [(bar.get_width(), to_hex(bar.get_facecolor()).upper()) for bar in ax.patches]


# --- attention ------------------------------------------------------------------------------------------


def test_all_of_the_attention_is_drawn(explainer):
    record = next(
        record for v in range(30, 40) if (record := explainer.explain(f"node {v}")).anchors.tolist() != [0, 1, 2]
    )
    ax = attention(record)
    drawn_to_nothing(ax)
    shades, names = np.asarray(ax.images[0].get_array()), labels_of(ax.yaxis)
    heads = [int(head.split("\n")[0]) for head in labels_of(ax.xaxis)]
    assert heads == record.anchors.tolist()
    assert sorted(names) == sorted(record.members)
    for row, name in enumerate(names):
        (member,) = np.flatnonzero(record.members == name)
        np.testing.assert_allclose(shades[row], record.attention[member][record.anchors])
    np.testing.assert_allclose(shades.sum(axis=0), 1)
    share = record.mass / record.mass.sum()
    received = [record.attention[np.flatnonzero(record.members == name)[0]] @ share for name in names]
    assert np.diff(received).max() < 1e-9
    assert ax.get_title(loc="left") == f"{record.node}, psi1"


def test_the_least_attended_members_are_one_row(explainer):
    record = explainer.explain("node 0")
    ax = attention(record, top=5, title="hub")
    shades = ax.images[0].get_array()
    n_others = len(record.members) - 5
    assert labels_of(ax.yaxis)[-1] == f"{n_others} others"
    assert shades.mask[5].all()
    assert not shades.mask[:5].any()
    np.testing.assert_allclose(shades.data.sum(axis=0), 1)
    written = [text.get_text() for text in ax.texts if text.get_position()[1] == 5]
    assert [float(text) for text in written] == pytest.approx((100 * shades.data[5]).tolist(), abs=0.5)
    whole = attention(record, top=len(record.members) - 1)  # one other has a row of its own
    assert "other" not in labels_of(whole.yaxis)[-1]


def test_the_lightest_anchors_are_left_out_and_counted():
    record = explainer_of(n_anchors=9).explain("node 3")
    ax = attention(record, most_anchors=4)
    assert ax.images[0].get_array().shape[1] == 4
    assert f"{len(record.anchors) - 4} lighter anchors" in ax.get_xlabel()


@pytest.mark.parametrize("options", [{"n_anchors": 1}, {"multiset": Neighbourhood(direction="both")}])
def test_other_models(options):
    record = explainer_of(**options).explain("node 3")
    shades = attention(record).images[0].get_array()
    np.testing.assert_allclose(np.asarray(shades).sum(axis=0), 1, rtol=1e-6)


def test_a_node_without_members():
    alone = nx.Graph(GRAPH)
    alone.remove_edges_from(list(alone.edges(7)))
    A = nx.to_scipy_sparse_array(alone)
    record = explainer_of(A=A, multiset=Neighbourhood(closed=False)).explain("node 7")
    ax = attention(record)
    drawn_to_nothing(ax)
    assert ax.get_xlabel() == "no members"


# --- similarity -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cosine", [False, True])
def test_the_bars_of_a_part_add_up(explainer, cosine):
    record = explainer.explain("node 0", "node 35", cosine=cosine)
    parts = ("blocks", "members", "columns", "nodes")
    blocks, members, columns, nodes = similarity(record, parts=parts, top=3)
    drawn_to_nothing(blocks)
    assert labels_of(blocks.yaxis) == record.blocks["block"].tolist()
    np.testing.assert_allclose([width for width, _ in bars_of(blocks)], record.blocks["value"])
    for ax, listing in ((columns, record.columns), (nodes, record.nodes)):
        assert sum(width for width, _ in bars_of(ax)) == pytest.approx(listing["value"].sum(), abs=1e-9)
        assert [colour for _, colour in bars_of(ax)] == [PALETTE[0]] * 3 + [OTHER]
    for side in (1, 2):
        own = record.members["value"][record.members["of"] == side].sum()
        colours = (PALETTE[0], OTHER) if side == 1 else (PALETTE[1], "#CCCCCC")
        assert sum(width for width, colour in bars_of(members) if colour in colours) == pytest.approx(own, abs=1e-9)
    assert [text.get_text() for text in members.get_legend().get_texts()] == ["of node 0", "of node 35"]
    kind = "cosine" if cosine else "similarity"
    assert blocks.get_title(loc="left") == f"node 0 and node 35: {kind} {record.value:.3g}"


def test_columns_of_several_blocks_are_added_by_name(explainer):
    record = explainer.explain("node 1", "node 2")
    (ax,) = similarity(record, parts="columns", top=100)
    expected = {name: record.columns["value"][record.columns["name"] == name].sum() for name in record.columns["name"]}
    found = dict(zip(labels_of(ax.yaxis), (width for width, _ in bars_of(ax)), strict=True))
    assert found["column 2"] == pytest.approx(expected["column 2"])
    assert found[r"\$x\$"] == pytest.approx(expected["$x$"])
    assert "<b>" in found
    sizes = [abs(width) for width, _ in bars_of(ax)]
    assert sizes == sorted(sizes, reverse=True)


def test_parts_that_a_record_lacks_are_left_out():
    record = explainer_of(n_layers=0).explain("node 1", "node 2")
    assert len(similarity(record)) == 2
    with pytest.raises(InputError, match="parts"):
        similarity(record, parts="members")
    drawn_to_nothing(similarity(record, parts="members", ax=Figure().subplots())[0])  # empty axes
    drawn_to_nothing(similarity(explainer_of(X=None).explain("node 1", "node 2"))[0])


def test_axes_of_the_caller(explainer):
    record = explainer.explain("node 1", "node 2")
    axes = Figure().subplots(2, 2).ravel()
    assert similarity(record, parts=("blocks", "nodes"), ax=axes[:2]) == tuple(axes[:2])
    assert attention(explainer.explain("node 1"), ax=axes[2]) is axes[2]
    assert anchors(explainer.describe_anchors(), ax=axes[3]) is axes[3]
    drawn_to_nothing(axes[0])
    with pytest.raises(InputError, match="1 for 3 parts"):
        similarity(record, ax=axes[0])


# --- anchors --------------------------------------------------------------------------------------------


def test_the_columns_and_shares_of_anchors(explainer):
    record = explainer.describe_anchors(n_columns=2)
    ax = anchors(record, title="psi1")
    drawn_to_nothing(ax)
    shares = record.anchors["n_nodes"] / N
    order = np.argsort(-shares, kind="stable")
    assert [text.get_text() for text in ax.texts] == [f"anchor {j}, {shares[j]:.0%} of the nodes" for j in order]
    rows = np.concatenate([np.flatnonzero(record.columns["anchor"] == j) for j in order])
    np.testing.assert_allclose([width for width, _ in bars_of(ax)], record.columns["z"][rows])
    assert labels_of(ax.yaxis) == [name.replace("$", r"\$") for name in record.columns["name"][rows]]


def test_the_lightest_anchors_are_one_line():
    record = explainer_of(n_anchors=7).describe_anchors(n_columns=3)
    ax = anchors(record, top=2)
    assert len(ax.patches) == 6
    rest = np.sort(record.anchors["n_nodes"])[:-2].sum() / N
    assert ax.texts[-1].get_text() == f"5 other anchors, {rest:.0%} of the nodes"


@pytest.mark.parametrize(
    ("function", "options", "pattern"),
    [
        (attention, {"top": 0}, "top"),
        (attention, {"most_anchors": 0}, "most_anchors"),
        (similarity, {"top": "x"}, "top"),
        (similarity, {"parts": ("blocks", "words")}, "'blocks', 'members', 'columns', 'nodes'"),
        (anchors, {"top": 0}, "top"),
    ],
)
def test_bad_options(explainer, function, options, pattern):
    records = {attention: ("node 1",), similarity: ("node 1", "node 2")}
    record = explainer.describe_anchors() if function is anchors else explainer.explain(*records[function])
    with pytest.raises(InputError, match=pattern):
        function(record, **options)


def test_other_records(explainer):
    one, two, three = explainer.explain("node 1"), explainer.explain("node 1", "node 2"), explainer.describe_anchors()
    wrong = ((attention, two), (attention, explainer.attention_all()["psi1"]), (similarity, one), (similarity, three))
    for function, record in (*wrong, (anchors, one), (anchors, X)):
        with pytest.raises(InputTypeError, match="Explainer"):
            function(record)
