"""The bundled tables hold what their page says."""

from __future__ import annotations

import pytest

from fishergraph import as_graph
from fishergraph._errors import InputError
from fishergraph.datasets import load_tables


def test_penguins_are_joined_by_island_and_day():
    data = load_tables("penguins")
    table = data.nodes.to_pylist()
    place = {row["id"]: (row["Island"], row["Date Egg"]) for row in table}
    found = {(edge["source"], edge["target"]) for edge in data.edges.to_pylist()}
    names = sorted(place)
    expected = {(u, v) for u in names for v in names if u < v and place[u] == place[v]}
    assert len(table) == len(place) == 344
    assert found == expected
    assert len(data.edges) == len(found)


def test_flights_have_three_types_of_nodes():
    data = load_tables("flights")
    ids = {kind: set(table.column("id").to_pylist()) for kind, table in data.nodes.items()}
    ends = {"flies_to": ("planes", "airports"), "flown_by": ("planes", "airlines"), "serves": ("airlines", "airports")}
    assert sum(map(len, ids.values())) == len(set().union(*ids.values())) == 3442
    for edge in data.edges.to_pylist():
        source, target = ends[edge["type"]]
        assert edge["source"] in ids[source]
        assert edge["target"] in ids[target]
    everyone = [name for table in data.nodes.values() for name in table.column("id").to_pylist()]
    assert as_graph(data.edges, node_ids=everyone).n_edges == len(data.edges)


def test_files_are_those_of_the_tables():
    data = load_tables("flights")
    assert list(data.files) == ["planes", "airports", "airlines", "edges"]
    assert all(path.is_file() for path in data.files.values())


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="penguins"):
        load_tables("penguin")
