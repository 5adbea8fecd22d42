"""Files of edges as people have them: every separator, header, comment, packing and encoding; all faults together."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fishergraph import as_graph, as_graphs
from fishergraph._errors import EdgeFaultsError, FileFormatError, FishergraphWarning, InputError, UnknownNodeError
from fishergraph.io.edge_columns import EdgeOptions, find_columns
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.tables import read_edges


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(table: pa.Table) -> list[tuple]:
    return list(zip(*(table.column(name).to_pylist() for name in ("source", "target")), strict=True))


def notes(table: pa.Table) -> str:
    reading = EdgeReading.of(table)
    assert reading is not None
    return ", ".join(reading.notes)


def zstd(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content).to_pybytes()


# --- layouts --------------------------------------------------------------------------------------------

LAYOUTS = {
    "tabs": ("e.txt", "a\tb\nb\tc\n", "separated by tabs"),
    "blanks": ("e.edges", "a b\nb c\n", "separated by blanks"),
    "runs of blanks": ("e.el", "a   b\n b\tc \n", "separated by blanks"),
    "a run of blanks later": ("e.el", "a b\nb  c\n", "separated by blanks"),
    "semicolons": ("e.edgelist", "a;b\nb;c\n", "separated by semicolons"),
    "bars": ("e.txt", "a|b\nb|c\n", "separated by bars"),
    "commas": ("e.txt", "a,b\nb,c\n", "no header"),
    "semicolons in a CSV file": ("e.csv", "source;target\na;b\nb;c\n", "separated by semicolons"),
    "tabs in a CSV file": ("e.csv", "source\ttarget\na\tb\nb\tc\n", "separated by tabs"),
    "SNAP": ("e.txt", "# Nodes: 3\n# FromNodeId\tToNodeId\na\tb\nb\tc\n", "2 lines of comments"),
    "KONECT": ("e.txt", "% sym\na b\nb c\n", "1 line of comments"),
    "comments between": ("e.txt", "a b\n# half\nb c\n", "separated by blanks"),
    "comments of as many cells": ("e.txt", "a b\n# c\nb c\n", "separated by blanks"),
    "comments in a CSV file": ("e.csv", "# made by hand\nsource,target\na,b\nb,c\n", "1 line of comments"),
    "names in the comment": ("e.txt", "# source target\na b\nb c\n", "names from the comment"),
    "a header": ("e.txt", "from to\na b\nb c\n", "separated by blanks"),
    "UTF-16": ("e.csv", "source,target\na,b\nb,c\n".encode("utf-16"), "encoding utf-16"),
    "UTF-16, another order": ("e.csv", b"\xfe\xff" + "source,target\na,b\nb,c\n".encode("utf-16-be"), "utf-16"),
    "a byte-order mark": ("e.txt", b"\xef\xbb\xbfa b\nb c\n", "no header"),
    "line ends of Windows": ("e.txt", "a b\r\nb c\r\n", "no header"),
    "no line end": ("e.txt", "a b\nb c", "no header"),
    "empty lines": ("e.txt", "\na b\n\n\nb c\n\n", "no header"),
    "gzip": ("e.txt.gz", gzip.compress(b"a b\nb c\n"), "no header"),
    "zstd": ("e.txt.zst", zstd(b"a b\nb c\n"), "no header"),
    "zstd of a CSV file": ("e.csv.zst", zstd(b"source,target\na,b\nb,c\n"), ""),
    "packed UTF-16": ("e.txt.gz", gzip.compress("a b\nb c\n".encode("utf-16")), "encoding utf-16"),
    "packed comments": ("e.edges.zst", zstd(b"# x\na  b\n# y\nb c\n"), "1 line of comments"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_edges(tmp_path, name):
    file, content, said = LAYOUTS[name]
    table = read_edges(put(tmp_path, file, content))
    assert pairs(table) == [("a", "b"), ("b", "c")]
    assert said in notes(table)


GIVEN = {
    "separator": ("e.txt", "a:b\nb:c\n", {"separator": ":"}),
    "separator by its name": ("e.txt", "a b\tb\nb c\tc\n", {"separator": "tab", "source": 1}),
    "no header": ("e.csv", "a,b\nb,c\n", {"header": False}),
    "a header": ("e.txt", "x y\na b\nb c\n", {"header": True, "source": "x", "target": "y"}),
    "encoding": ("e.csv", "source,target\na,b\nb,c\n".encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "columns": ("e.csv", "k,payee,payer\n1,b,a\n2,c,b\n", {"source": "payer", "target": "payee"}),
    "one column": ("e.csv", "k,target,payer\n1,b,a\n2,c,b\n", {"source": "payer"}),
    "columns by number": ("e.txt", "1 b a\n2 c b\n", {"source": 3, "target": "2"}),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_is_obeyed(tmp_path, name):
    file, content, options = GIVEN[name]
    table = read_edges(put(tmp_path, file, content), **options)
    expected = [("a b", "b"), ("b c", "c")] if name == "separator by its name" else [("a", "b"), ("b", "c")]
    assert pairs(table) == expected


def test_an_encoding_that_is_not_utf8_is_named(tmp_path):
    path = put(tmp_path, "e.csv", "source,target\na,b\nä,b\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"encoding=.*iconv") as caught:
        read_edges(path)
    assert caught.value.line == 3
    assert pairs(read_edges(path, encoding="latin-1")) == [("a", "b"), ("ä", "b")]
    with pytest.raises(InputError, match="encoding"):
        read_edges(path, encoding="klingon")
    wide = put(tmp_path, "w.csv", "source,target\na,b\n".encode("utf-16-le"))
    with pytest.raises(FileFormatError, match="utf-16-le"):
        read_edges(wide)


def test_a_byte_that_is_not_utf8_far_below(tmp_path):
    lines = ["source,target", *(f"n{k},n{k + 1}" for k in range(20_000))]
    path = put(tmp_path, "e.csv", "\n".join(lines).encode() + b"\n\xe4,b\n")
    with pytest.raises(FileFormatError, match="UTF-8") as caught:
        read_edges(path)
    assert caught.value.line == 20_002


def test_a_third_column_of_numbers_are_weights_and_a_fourth_is_left_aside(tmp_path):
    path = put(tmp_path, "e.txt", "1 2 0.5 1700000000\n2 3 2 1700000001\n")
    table = read_edges(path)
    assert table.column_names == ["source", "target", "weight", "4"]
    summary = as_graph(table).summary()
    assert summary.columns == {"source": "1", "target": "2", "weight": "3"}
    assert summary.left == ("4",)
    assert read_edges(path, weight="none").column_names == ["source", "target", "3", "4"]
    timed = read_edges(path, weight=False, time=4)
    assert timed.column("time").to_pylist() == [1700000000, 1700000001]
    assert "weight" not in timed.column_names


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["7", "-3"], [7, -3]),
        (["0.5", "2"], [0.5, 2.0]),
        (["1970-01-02", "1970-01-01"], [86400.0, 0.0]),
        (["1970-01-01 00:00:01", "1970-01-01 00:01:00"], [1.0, 60.0]),
        (["1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00Z"], [0.0, 0.0]),
        (["1970-01-02", "5"], [86400.0, 5.0]),
    ],
)
def test_times_are_numbers_or_seconds(tmp_path, cells, expected):
    text = "source,target,when\n" + "".join(f"a,b,{cell}\n" for cell in cells)
    assert read_edges(put(tmp_path, "e.csv", text), time="when").column("time").to_pylist() == expected


def test_a_time_that_is_none_is_a_fault_with_its_line(tmp_path):
    path = put(tmp_path, "e.csv", "source,target,when\na,b,soon\na,c,2020-01-01\na,d,\n")
    with pytest.raises(EdgeFaultsError, match="'soon' in line 2") as caught:
        read_edges(path, time="when")
    assert [fault["count"] for fault in caught.value.faults] == [1, 1]


def test_columns_of_a_role_never_take_the_name_of_another(tmp_path):
    table = read_edges(put(tmp_path, "e.csv", "a,b,source,weight\n1,2,x,9\n"), source="a", target="b", weight="weight")
    assert table.column_names == ["source", "target", "weight", "source (file)"]
    assert pairs(table) == [(1, 2)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_order_of_the_columns(seed):
    """Roles are found by name wherever the columns are, and a named one wins over the usual names."""
    rng = random.Random(seed)
    names = ["source", "dst", "target", "weight", "km", "when"]
    rng.shuffle(names)
    roles = find_columns(names, EdgeOptions(weight="km"))
    assert [names[place] for place in (roles.source, roles.target, roles.weight)] == ["source", "target", "km"]
    assert set(roles.left(names)) == {"dst", "weight", "when"}


def test_a_column_that_is_not_there(tmp_path):
    path = put(tmp_path, "e.csv", "payer,payee\na,b\n")
    with pytest.raises(InputError, match="'payer'") as caught:
        read_edges(path, source="payr", target="payee")
    assert caught.value.parameter == "source"
    with pytest.raises(InputError, match="different columns"):
        read_edges(path, source="payer", target="payer")
    with pytest.raises(InputError, match="--target"):
        read_edges(path, source="payer")
    with pytest.raises(InputError, match="separator"):
        read_edges(path, separator="::")


# --- NetworkX as the reference --------------------------------------------------------------------------


@st.composite
def lists_of_edges(draw):
    names = draw(st.sampled_from([["a", "b", "c", "dd"], ["1", "2", "3", "40"], ["x1", "007", "7", "é"]]))
    edges = draw(st.lists(st.tuples(*[st.sampled_from(names)] * 2), min_size=1, max_size=12))
    weights = draw(st.lists(st.integers(1, 5), min_size=len(edges), max_size=len(edges)))
    return edges, weights, draw(st.sampled_from([" ", "\t", ";"])), draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(lists_of_edges())
def test_edge_lists_are_read_as_networkx_reads_them(tmp_path_factory, case):
    edges, weights, separator, weighted = case
    lines = ["# a comment"]
    for (u, v), w in zip(edges, weights, strict=True):
        lines += [separator.join([u, v, str(w)] if weighted else [u, v])]
    path = put(tmp_path_factory.mktemp("lists"), "e.edgelist", "\n".join([*lines, "# the end", ""]))
    make = nx.MultiDiGraph if weighted else nx.DiGraph
    reference = nx.read_edgelist(
        path, create_using=make, delimiter=separator, data=(("weight", float),) if weighted else False
    )
    graph = as_graph(read_edges(path, header=False))
    ids = [str(node) for node in (range(graph.n_nodes) if graph.ids is None else graph.ids.tolist())]
    assert sorted(ids) == sorted(reference)
    expected = nx.to_numpy_array(reference, nodelist=ids, multigraph_weight=sum)
    if not weighted:  # NetworkX's simple graph forgets how often an edge was listed
        expected = np.array([[edges.count((u, v)) for v in ids] for u in ids], dtype=float)
    np.testing.assert_allclose(graph.adjacency.T.toarray(), expected)


# --- faults ---------------------------------------------------------------------------------------------


def test_all_faults_of_a_file_are_told_together_with_their_lines(tmp_path):
    text = "# c\nsource,target,weight\na,b,1\n\nb,c,-2\nc\n,a,1\na,zed,1\na,B ,x\nq,r,1\n"
    path = put(tmp_path, "e.csv", text)
    with pytest.raises(EdgeFaultsError) as caught:
        read_edges(path)
    kinds = {fault["what"]: fault for fault in caught.value.faults}
    assert kinds["lines without 3 columns"]["lines"] == [6]
    assert kinds["missing values in column 'source'"]["lines"] == [7]
    assert kinds["edge weights without a number of at least zero"]["lines"] == [5, 9]
    assert str(caught.value).count(".") <= 3
    assert "\n" not in str(caught.value)


def test_five_faults_of_many_are_listed(tmp_path):
    lines = [f"a,b,{-1 if k % 2 else 1}" for k in range(40)]
    path = put(tmp_path, "e.csv", "\n".join(["source,target,weight", *lines]))
    with pytest.raises(InputError, match=r"20 edge weights.*in line 3, .*in all 20") as caught:
        read_edges(path)
    assert caught.value.lines == [3, 5, 7, 9, 11]
    assert caught.value.count == 20


@pytest.mark.parametrize("header", [True, False])
def test_unknown_ids_have_lines_and_near_matches(tmp_path, header):
    text = ("source target\n" if header else "") + "ann bob\nAnn bob\n# half\nbob evelina\nbob  zoe\n"
    table = read_edges(put(tmp_path, "e.txt", text))
    with pytest.raises(UnknownNodeError) as caught:
        as_graph(table, node_ids=["ann", "bob", "eveline"])
    first = 3 if header else 2
    assert caught.value.lines == [first, first + 2, first + 3]
    assert caught.value.count == 3
    assert "'Ann' (near 'ann')" in str(caught.value)
    assert "'evelina' (near 'eveline')" in str(caught.value)


def test_unknown_ids_are_dropped_or_added(tmp_path):
    table = read_edges(put(tmp_path, "e.txt", "ann bob 2\nAnn bob 3\nbob eva 4\n"))
    dropped = as_graph(table, node_ids=["bob", "ann"], unknown="drop")
    assert dropped.adjacency.toarray().tolist() == [[0, 2], [0, 0]]
    assert (dropped.summary().dropped, dropped.summary().unknown) == (2, 2)
    assert "2 edges to 2 unknown ids left out" in str(dropped.summary())
    added = as_graph(table, node_ids=["bob", "ann"], unknown="add")
    assert added.ids is not None
    assert added.ids.tolist() == ["bob", "ann", "Ann", "eva"]
    assert added.adjacency.sum() == 9
    assert added.summary().added == 2
    with pytest.raises(InputError, match="unknown"):
        as_graph(table, node_ids=["bob"], unknown="ignore")
    with pytest.raises(InputError, match="node_ids"):
        as_graph(table, unknown="drop")


def test_a_record_that_a_file_brings_along_is_not_believed(tmp_path):
    table = pa.table({"source": ["a"], "target": ["b"]})
    forged = table.replace_schema_metadata({"fishergraph.edges": '{"path": "/etc/passwd", "rows": 9, "token": "0"}'})
    assert EdgeReading.of(forged) is None
    assert as_graph(forged).summary().path == ""


def test_ids_that_differ_by_case_blanks_or_zeros_are_told(tmp_path):
    with pytest.warns(FishergraphWarning, match="1 ids differ.*'Ann' and 'ann'"):
        as_graph(read_edges(put(tmp_path, "e.csv", "source,target\nann,bob\nAnn,bob\n")))
    with pytest.warns(FishergraphWarning, match="'007' and '7'"):
        as_graph([("007", "x"), ("7", "x")])


# --- lists, tables and objects --------------------------------------------------------------------------


def test_lists_of_dictionaries():
    edges = [{"from": "a", "to": "b", "km": 2}, {"from": "b", "to": "c", "km": 3, "note": "x"}]
    with pytest.warns(FishergraphWarning, match="'note'"):
        graph = as_graph(edges, weight="km")
    assert graph.adjacency.toarray().tolist() == [[0, 0, 0], [2, 0, 0], [0, 3, 0]]


def test_tuples_with_attributes_of_multigraphs():
    G = nx.MultiGraph()
    G.add_edge("a", "b", km=2)
    G.add_edge("a", "b", km=3)
    graph = as_graph(list(G.edges(keys=True, data=True)), weight="km", directed=False)
    same = as_graph(G, weight="km")
    assert (graph.adjacency != same.adjacency).nnz == 0
    assert graph.adjacency.max() == 5
    with pytest.raises(InputError, match="'miles' among 'km'"):
        as_graph(list(G.edges(data=True)), weight="miles")


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_parallel_edges_add_and_are_counted_as_networkx_counts_them(make):
    rng = np.random.default_rng(0)
    G = make()
    G.add_nodes_from(range(7))
    listed = [(int(u), int(v), float(w)) for u, v, w in rng.integers(1, 6, (30, 3))]
    G.add_weighted_edges_from(listed, weight="km")
    graph = as_graph(G, weight="km")
    expected = nx.to_numpy_array(G, nodelist=range(7), weight="km", multigraph_weight=sum)
    np.testing.assert_allclose(graph.adjacency.T.toarray(), expected)
    summary = graph.summary()
    simple = nx.DiGraph(G) if G.is_directed() else nx.Graph(G)
    assert summary.edges == simple.number_of_edges()
    assert summary.parallel == G.number_of_edges() - simple.number_of_edges()
    assert summary.self_loops == nx.number_of_selfloops(simple)
    assert summary.isolated == nx.number_of_isolates(simple)
    if G.is_directed():
        bare = nx.DiGraph((u, v) for u, v in simple.edges if u != v)
        assert summary.reciprocity == pytest.approx(nx.overall_reciprocity(bare))
        assert summary.directed
    else:
        assert not summary.directed


def test_directed_is_the_opposite_of_undirected():
    edges = [("a", "b", 2.0), ("b", "a", 3.0), ("b", "c", 1.0)]
    both = as_graph(edges, directed=False)
    assert (both.adjacency != as_graph(edges, undirected=True).adjacency).nnz == 0
    assert both.adjacency.toarray()[0, 1] == 3
    assert (as_graph(edges, directed=True).adjacency != as_graph(edges).adjacency).nnz == 0
    with pytest.raises(InputError, match="directed"):
        as_graph(edges, directed=True, undirected=True)
    with pytest.raises(InputError, match="to_directed"):
        as_graph(nx.path_graph(3), directed=True)


def test_weights_of_igraph_and_pyg_have_names():
    igraph, torch = pytest.importorskip("igraph"), pytest.importorskip("torch")
    from torch_geometric.data import Data

    g = igraph.Graph(n=3, edges=[(0, 1), (1, 2)], edge_attrs={"km": [2.0, 3.0]}, directed=True)
    assert as_graph(g, weight="km").adjacency.T.toarray().tolist() == [[0, 2, 0], [0, 0, 3], [0, 0, 0]]
    with pytest.warns(FishergraphWarning, match="weight='km'"):
        assert as_graph(g).weights is None
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), km=torch.tensor([2.0, 3.0]), num_nodes=3)
    data.edge_attr = torch.ones(2, 4)
    assert as_graph(data, weight="km").adjacency.T.toarray().tolist() == [[0, 2, 0], [0, 0, 3], [0, 0, 0]]
    assert as_graph(data, weight=False).weights is None
    for name in ("edge_attr", "kn"):
        with pytest.raises(InputError, match=name):
            as_graph(data, weight=name)


@pytest.mark.parametrize("graph", [sp.eye_array(3).tocsr(), np.array([[0], [1]]), as_graph([(0, 1)])])
def test_names_of_columns_need_columns(graph):
    for options in ({"weight": "km"}, {"source": "a"}, {"weight": False}):
        with pytest.raises(InputError, match="belong to a table"):
            as_graph(graph, **options)
    with pytest.raises(InputError, match="source"):
        as_graph(nx.path_graph(3), source="a")
    with pytest.raises(InputError, match="target"):
        as_graph([(0, 1)], target="b")


def test_columns_that_are_not_used_are_told_once():
    table = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "km": [1.0, 2.0], "note": ["x", "y"]})
    with pytest.warns(FishergraphWarning, match=r"'km', 'note'.*weight='km'") as caught:
        graph = as_graph(table)
    assert len(caught) == 1
    assert graph.summary().left == ("km", "note")
    assert "left aside: km, note" in str(graph.summary())


def test_tags_of_edges_are_no_columns_that_were_left_aside(recwarn):
    G = nx.Graph()
    G.add_edge(0, 1, label=1)
    G.add_edge(1, 2, label=5)
    assert as_graphs([G, G]).edge_tags is not None
    assert not [w for w in recwarn if "not read" in str(w.message)]
    with pytest.warns(FishergraphWarning, match="'label' of the edges"):
        as_graph(G)


def test_a_summary_is_a_record_and_a_table():
    summary = as_graph([("a", "b", 2), ("a", "b", 1), ("c", "c", 0)], node_ids=["c", "b", "a", "<z>"]).summary()
    assert summary.as_dict() | {"columns": {}} == {
        "nodes": 4,
        "edges": 1,
        "directed": True,
        "reciprocity": 0.0,
        "weights": (3.0, 3.0),
        "self_loops": 0,
        "isolated": 2,
        "path": "",
        "parallel": 1,
        "zero_weights": 1,
        "dropped": 0,
        "unknown": 0,
        "added": 0,
        "columns": {},
        "left": (),
        "notes": (),
    }
    assert "1 edge of weight zero left out" in summary._repr_html_()
