"""GraphML, GML, JSON and MatrixMarket: what NetworkX and SciPy write comes back, and nothing is trusted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fishergraph import as_graph, node_table
from fishergraph._errors import FileFormatError
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.tables import read_edges, read_nodes

NAMES = ["ann", "bob", "eve & co", 'dan "d"', "é <x>"]
SUFFIXES = [".graphml", ".gml", ".json"]


def write(G: nx.Graph, path: Path) -> Path:
    """The graph as NetworkX writes it."""
    plain = path.name.removesuffix(".gz")
    if plain.endswith(".graphml"):
        nx.write_graphml(G, path)
    elif plain.endswith(".gml"):
        nx.write_gml(G, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(G, edges="links")), encoding="utf-8")
    return path


def read(path: Path):
    """The graph of a file with all its nodes."""
    return as_graph(read_edges(path), node_ids=node_table(path)["id"])


def same(graph, G: nx.Graph, weight: str = "weight") -> None:
    """The graph is that of NetworkX, by the names of the nodes."""
    ids = list(range(graph.n_nodes)) if graph.ids is None else graph.ids.tolist()
    name = {str(node): node for node in G}
    expected = nx.to_numpy_array(G, nodelist=[name[str(node)] for node in ids], weight=weight, multigraph_weight=sum)
    np.testing.assert_allclose(graph.adjacency.T.toarray(), expected, rtol=1e-6)


@st.composite
def graphs(draw):
    make = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    names = NAMES if draw(st.booleans()) else [3, 0, 12, 7, 5]
    G = make()
    for node in names[: draw(st.integers(1, 5))]:
        G.add_node(node, **({"age": draw(st.integers(-5, 99))} if draw(st.booleans()) else {}))
    nodes = list(G)
    for u, v, w in draw(st.lists(st.tuples(*[st.sampled_from(nodes)] * 2, st.integers(1, 9)), max_size=8)):
        G.add_edge(u, v, weight=w / 2)
    return G


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from(SUFFIXES))
def test_what_networkx_writes_is_read_as_it_was(tmp_path_factory, G, suffix):
    path = write(G, tmp_path_factory.mktemp("graphs") / f"g{suffix}")
    if G.number_of_edges() == 0:
        assert read_edges(path).num_rows == 0
        return
    same(read(path), G)
    table = node_table(path)
    assert [str(node) for node in table["id"].to_pylist()] == [str(node) for node in G]
    ages = table["age"].to_pylist() if "age" in table.column_names else [None] * len(G)
    assert ages == [G.nodes[node].get("age") for node in G]
    reading = EdgeReading.of(read_edges(path))
    assert reading is not None
    assert reading.both_ways == (not G.is_directed())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_packed_files_and_their_nodes(tmp_path, suffix):
    G = nx.karate_club_graph()
    plain = write(G, tmp_path / f"g{suffix}")
    packed = tmp_path / f"p{suffix}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    same(read(packed), G)
    modern = tmp_path / f"z{suffix}.zst"
    modern.write_bytes(pa.Codec("zstd").compress(plain.read_bytes()).to_pybytes())
    same(read(modern), G)
    ids, _, names = read_nodes(packed, drop=["club"])
    assert len(ids) == 34
    assert names == []
    with pytest.raises(ValueError, match="'club'"):
        read_nodes(packed)


def test_graphml_of_other_programs(tmp_path):
    """Defaults, booleans, prefixes, elements of drawing programs, and nodes that only edges name."""
    path = tmp_path / "g.graphml"
    path.write_text(
        """<?xml version="1.0" encoding="UTF-8"?>
<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <g:key id="c" for="node" attr.name="colour" attr.type="string"><g:default>yellow</g:default></g:key>
  <g:key id="b" for="node" attr.name="kept" attr.type="boolean"/>
  <g:key id="d1" for="node" yfiles.type="nodegraphics"/>
  <g:key id="w" for="edge" attr.name="weight" attr.type="double"/>
  <g:graph edgedefault="undirected">
    <g:desc>text that is no value</g:desc>
    <g:node id="n0"><g:data key="c">green</g:data><g:data key="b">true</g:data></g:node>
    <g:node id="n1"><g:data key="d1"><y:ShapeNode><y:NodeLabel>x</y:NodeLabel></y:ShapeNode></g:data></g:node>
    <g:edge source="n0" target="n1"><g:data key="w">1.5</g:data></g:edge>
    <g:edge source="n1" target="n2" directed="true"/>
  </g:graph>
</g:graphml>""",
        encoding="utf-8",
    )
    table = node_table(path)
    assert table["id"].to_pylist() == ["n0", "n1", "n2"]
    assert table["colour"].to_pylist() == ["green", "yellow", None]
    assert table["kept"].to_pylist() == [True, None, None]
    edges = read_edges(path)
    ends = list(zip(edges["source"].to_pylist(), edges["target"].to_pylist(), strict=True))
    assert ends == [("n0", "n1"), ("n1", "n2"), ("n1", "n0")]
    assert edges["weight"].to_pylist() == [1.5, 1, 1.5]


def test_gml_without_labels_has_numbers_as_ids(tmp_path):
    path = tmp_path / "g.gml"
    path.write_text(
        'Creator "x"\ngraph [\n directed 1\n node [ id 4 ]\n node [ id 9 x 2.5 ]\n edge [ source 4 target 9 ]\n]'
    )
    assert node_table(path).to_pydict() == {"id": [4, 9], "x": [None, 2.5]}
    reference = nx.parse_gml(path.read_text(), label="id")
    same(read(path), reference)


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        ({"nodes": [{"name": "a"}, {"name": "b"}], "links": [{"source": 0, "target": 1}]}, ["a", "b"]),
        ({"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}, ["a", "b"]),
        ({"nodes": ["a", "b"], "links": [{"source": {"id": "a"}, "target": "b"}]}, ["a", "b"]),
        ({"nodes": [{"x": 1}, {"x": 2}], "links": [{"source": 0, "target": 1}]}, [0, 1]),
        ({"nodes": [{"name": "a"}, {"name": "a"}], "links": [{"source": 0, "target": 1}]}, [0, 1]),
    ],
)
def test_json_of_d3(tmp_path, data, ids):
    path = tmp_path / "g.json"
    path.write_text(json.dumps(data))
    assert node_table(path)["id"].to_pylist() == ids
    edges = read_edges(path)
    assert edges["source"].to_pylist() == ids
    assert edges["target"].to_pylist() == ids[::-1]


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "pattern", "integer"])
def test_matrix_market_is_what_scipy_writes(tmp_path, symmetry, field):
    rng = np.random.default_rng(0)
    A = np.triu(rng.integers(0, 4, (9, 9)) * (rng.random((9, 9)) < 0.3))
    A = A + np.triu(A, 1).T if symmetry == "symmetric" else A
    A = (A > 0).astype(int) if field == "pattern" else A
    scipy.io.mmwrite(tmp_path / "g.mtx", sp.coo_array(A), field=field, symmetry=symmetry, comment="made here")
    graph = read(tmp_path / "g.mtx")
    np.testing.assert_allclose(graph.adjacency.T.toarray(), scipy.io.mmread(tmp_path / "g.mtx").toarray())
    assert graph.ids is not None
    assert graph.ids.tolist() == list(range(1, 10))


# --- bad files ------------------------------------------------------------------------------------------

XML = '<graphml><graph edgedefault="directed">{}</graph></graphml>'
BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>' + XML.format('<node id="&b;"/>')
BAD = {
    "an entity": (".graphml", BOMB, "entities"),
    "an outer entity": (".graphml", '<!DOCTYPE x [<!ENTITY a SYSTEM "/etc/passwd">]>' + XML.format(""), "entities"),
    "an unknown entity": (".graphml", XML.format('<node id="a"><data key="c">&x;</data></node>'), "XML"),
    "other XML": (".graphml", "<html><body/></html>", "graphml"),
    "half": (".graphml", "<graphml><graph>", "XML"),
    "no graph": (".graphml", "<graphml/>", "no graph"),
    "two graphs": (".graphml", "<graphml><graph/><graph/></graphml>", "more than one"),
    "a graph in a node": (".graphml", XML.format('<node id="a"><graph/></node>'), "more than one"),
    "a hyperedge": (".graphml", XML.format("<hyperedge/>"), "hyperedge"),
    "no id": (".graphml", XML.format("<node/>"), "id"),
    "two nodes of one id": (".graphml", XML.format('<node id="a"/><node id="a"/>'), "'a'"),
    "no target": (".graphml", XML.format('<edge source="a"/>'), "target"),
    "an unknown key": (".graphml", XML.format('<node id="a"><data key="k">1</data></node>'), "key"),
    "a bad number": (
        ".graphml",
        '<graphml><key id="k" for="node" attr.name="k" attr.type="int"/><graph>'
        '<node id="a"><data key="k">one</data></node></graph></graphml>',
        "'k'.*'one'",
    ),
    "too deep": (".graphml", "<graphml>" + "<a>" * 300 + "</a>" * 300 + "</graphml>", "inside each other"),
    "GML: half": (".gml", "graph [ node [ id 1", "ends"),
    "GML: closed too often": (".gml", "graph [ ] ]", "bracket"),
    "GML: no graph": (".gml", "x 1", "one graph"),
    "GML: too deep": (".gml", "graph [ " * 200, "inside each other"),
    "GML: a word": (".gml", "graph [ node [ id one ] ]", "'id'"),
    "GML: odd": (".gml", "graph { }", "expected"),
    "GML: an edge to nobody": (".gml", "graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "2 of edge 0"),
    "GML: two nodes of one id": (".gml", "graph [ node [ id 1 ] node [ id 1 ] ]", "1"),
    "JSON: none": (".json", "{nodes", "JSON"),
    "JSON: a list": (".json", "[1]", "'nodes'"),
    "JSON: too deep": (".json", "[" * 100_000, "JSON"),
    "JSON: no links": (".json", '{"nodes": []}', "'links'"),
    "JSON: an edge to nobody": (".json", '{"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]}', "'b'"),
    "JSON: a node that is none": (".json", '{"nodes": [{"id": 1}, 3.5], "links": []}', "node number 1"),
    "JSON: twice": (".json", '{"nodes": [{"id": 1}, {"id": 1}], "links": []}', "1"),
    "JSON: a long number": (".json", '{"nodes": [{"id": ' + "9" * 6000 + '}], "links": []}', "JSON"),
    "mtx: dense": (".mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "coordinate"),
    "mtx: complex": (".mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 3\n", "complex"),
    "mtx: not square": (".mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n", "square"),
    "mtx: outside": (".mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 3\n", "entry 1"),
    "mtx: cut": (".mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 3\n1 2\n", "3 complete"),
    "mtx: huge": (".mtx", "%%MatrixMarket matrix coordinate pattern general\n999999999 999999999 1\n1 2\n", "declares"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_end_in_a_sentence(tmp_path, name):
    suffix, content, pattern = BAD[name]
    path = tmp_path / f"g{suffix}"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=pattern) as caught:
        read_edges(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(FileFormatError):
        node_table(path)


def test_text_in_another_encoding(tmp_path):
    for suffix, text in ((".gml", 'graph [ node [ id 1 label "ä" ] ]'), (".json", '{"nodes": ["ä"], "links": []}')):
        path = tmp_path / f"g{suffix}"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(FileFormatError, match="iconv"):
            read_edges(path)
        path.write_bytes(text.encode("utf-16"))
        assert len(node_table(path)) == 1


def test_attributes_that_nobody_has_take_no_memory(tmp_path):
    """A column per node would be the square of the file."""
    nodes = [{"id": k, f"a{k}": 1} for k in range(30_000)]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": nodes, "links": []}))
    with pytest.raises(FileFormatError, match="mostly missing"):
        node_table(path)
