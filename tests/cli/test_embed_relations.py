"""`fishergraph embed` on several kinds of edges and types of nodes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from commands import fails, ok, record_of, wrong
from fishergraph import FisherEmbedding, Neighbourhood, as_relations

EDGES = pd.DataFrame(
    {
        "source": ["ann", "bob", "bob", "p1", "p2", "p4", "eve"],
        "target": ["p1", "p1", "p2", "p2", "p3", "p1", "p4"],
        "type": ["writes", "writes", "writes", "cites", "cites", "cites", "writes"],
        "weight": [1.0, 1, 2, 1, 1, 3, 1],
    }
)
PAPERS = pd.DataFrame({"id": ["p1", "p2", "p3", "p4"], "x": [1.0, 2, 0, 1], "y": [2.0, 1, 1, 0], "label": [0, 1, 0, 1]})
AUTHORS = pd.DataFrame({"id": ["ann", "bob", "eve"], "age": [30.0, 40, 50], "h": [1.0, 2, 9]})


@pytest.fixture
def folder(tmp_path):
    for name, frame in {"edges": EDGES, "papers": PAPERS, "authors": AUTHORS}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    EDGES.drop(columns="type").to_csv(tmp_path / "plain.csv", index=False)
    return tmp_path


def files(folder):
    return ("-n", f"paper={folder / 'papers.csv'}", "-n", f"author={folder / 'authors.csv'}")


def options():
    """The same settings in Python."""
    return {"dim": 4, "n_anchors": 2, "random_state": 0, "multiset": Neighbourhood(undirected=True)}


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "npz", "parquet"])
def test_two_types_of_nodes(folder, ending):
    arguments = ("embed", folder / "edges.csv", *files(folder), "--drop", "label", "--undirected")
    result = (
        ok(*arguments, "-o", folder / f"z.{ending}", "--dim", 4, "--seed", 0, "--n-anchors", 2, "--layout", "wide")
        if (ending == "parquet")
        else ok(*arguments, "-o", folder / f"z.{ending}", "--dim", 4, "--seed", 0, "--n-anchors", 2)
    )
    X = {"paper": PAPERS[["x", "y"]].to_numpy(), "author": AUTHORS[["age", "h"]].to_numpy()}
    relations = as_relations(EDGES, nodes={"paper": PAPERS.id.tolist(), "author": AUTHORS.id.tolist()})
    Z = FisherEmbedding(**options()).fit_transform({k: v.astype(float) for k, v in X.items()}, graph=relations)
    assert "'writes' 4 edges, 'cites' 3 edges" in result.output
    record = record_of(folder / f"z.{ending}")
    assert record["input"]["n_edges"] == {"author writes paper": 4, "paper cites paper": 3}
    for name, rows in Z.items():
        path = folder / f"z.{name}.{ending}"
        assert str(path) in result.output
        assert record["output"][name]["rows"] == len(rows)
        if ending == "npz":
            with np.load(path) as arrays:
                assert_array_equal(arrays["ids"], relations.ids[name])
        else:
            table = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
            assert table.id.tolist() == relations.ids[name].tolist()
            np.testing.assert_allclose(table.drop(columns="id").to_numpy(), rows, atol=1e-6)


def test_a_model_is_saved_and_used(folder):
    first = ("embed", folder / "edges.csv", *files(folder), "--drop", "label", "--seed", 0, "--dim", 4)
    ok(*first, "-o", folder / "z.csv", "--save", folder / "m.safetensors")
    ok(
        "embed",
        folder / "edges.csv",
        *files(folder),
        "--drop",
        "label",
        "--model",
        folder / "m.safetensors",
        "-o",
        folder / "y.csv",
    )
    for name in ("paper", "author"):
        one, two = (pd.read_csv(folder / f"{stem}.{name}.csv").set_index("id") for stem in "zy")
        pd.testing.assert_frame_equal(one, two, atol=1e-5)
    turned = PAPERS[["id", "y", "x", "label"]]
    turned.to_csv(folder / "papers.csv", index=False)
    fails(
        *(folder, "features of 'paper'", "embed", folder / "edges.csv", *files(folder)),
        *("--drop", "label", "--model", folder / "m.safetensors", "-o", folder / "x.csv"),
    )


def test_one_type_of_nodes(folder):
    result = ok("embed", folder / "edges.csv", "-o", folder / "z.csv", "--dim", 4, "--seed", 0)
    assert pd.read_csv(folder / "z.csv").id.tolist() == ["ann", "bob", "eve", "p1", "p2", "p3", "p4"]
    assert "psi1:cites_0" in pd.read_csv(folder / "z.csv").columns
    assert "7 nodes" in result.output


def test_a_column_type_with_one_value_is_one_graph(folder):
    EDGES.assign(type="x").to_csv(folder / "same.csv", index=False)
    ok("embed", folder / "same.csv", "-o", folder / "z.csv", "--dim", 4, "--seed", 0)
    ok("embed", folder / "plain.csv", "-o", folder / "y.csv", "--dim", 4, "--seed", 0)
    assert (folder / "z.csv").read_bytes() == (folder / "y.csv").read_bytes()


def test_wrong_calls(folder):
    edges, output = folder / "edges.csv", ("-o", folder / "z.csv")
    papers = folder / "papers.csv"
    wrong("names of their types", "embed", edges, "-n", papers, "-n", folder / "authors.csv", *output)
    wrong("name of its type", "embed", edges, "-n", f"paper={papers}", "-n", folder / "authors.csv", *output)
    wrong("a type twice", "embed", edges, "-n", f"paper={papers}", "-n", f"paper={papers}", *output)
    fails(folder, "ann", "embed", edges, "-n", f"paper={papers}", "--drop", "label", *output)
    fails(folder, "drop", "embed", edges, *files(folder), "--drop", "lable", *output)
    fails(folder, "own path", "embed", edges, *files(folder), "-o", edges)
