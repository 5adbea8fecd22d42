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
    assert "read writes: 4 edges from author to paper, weights 1 to 2" in result.output
    assert "read cites: 3 edges with direction (0.0 % reciprocated), weights 1 to 3" in result.output
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
    wrong("--kind needs", "embed", edges, "--kind", "x=category", *output)
    wrong("--unknown needs", "embed", edges, "--unknown", "drop", *output)
    wrong("--unknown must be one of", "embed", edges, *files(folder), "--unknown", "keep", *output)
    fails(folder, "--kind", "embed", edges, *files(folder), "--kind", "colour=category", *output)
    fails(folder, "drop", "embed", edges, *files(folder), "--drop", "lable", *output)
    fails(folder, "own path", "embed", edges, *files(folder), "-o", edges)


def test_columns_are_told_by_type(folder):
    PAPERS.assign(topic=["a", "b", "a", None]).to_csv(folder / "papers.csv", index=False)
    AUTHORS.assign(city=["x", "y", "x"]).to_csv(folder / "authors.csv", index=False)
    result = ok(
        *("embed", folder / "edges.csv", *files(folder), "--drop", "label", "--kind", "age=category"),
        *("-o", folder / "z.csv", "--dim", 4, "--seed", 0),
    )
    assert "columns of paper: 2 numbers (x, y), 1 category (topic)." in result.output
    assert "columns of author: 2 categories (age, city), 1 number (h)." in result.output
    assert [one["name"] for one in record_of(folder / "z.csv")["input"]["columns"]["author"]] == ["age", "h", "city"]


@pytest.fixture
def faulty(folder):
    """Edges to two papers that do not exist, one of which nearly does, in lines 6 and 8."""
    EDGES.assign(
        source=EDGES.source.replace({"p2": "P2"}), target=EDGES.target.where(EDGES.source != "eve", "p9")
    ).to_csv(folder / "edges.csv", index=False)
    return folder


def test_unknown_ids_are_reported_together(faulty):
    words = r"2 faults.*'writes'.*'p9' in line 8.*'cites'.*'P2' \(near 'p2'\) in line 6.*--unknown"
    fails(faulty, words, "embed", faulty / "edges.csv", *files(faulty), "-o", faulty / "z.csv")


def test_unknown_ids_are_dropped_or_added(faulty):
    plain = ("embed", faulty / "edges.csv", *files(faulty), "--drop", "label", "--dim", 4, "--seed", 0)
    dropped = ok(*plain, "-o", faulty / "z.csv", "--unknown", "drop")
    assert "2 edges" in dropped.output
    assert dropped.output.count("1 edge to 1 unknown id left out") == 2
    assert len(pd.read_csv(faulty / "z.paper.csv")) == 4
    added = ok(*plain, "-o", faulty / "y.csv", "--unknown", "add")
    assert added.output.count("1 unknown id added as nodes") == 2
    assert pd.read_csv(faulty / "y.paper.csv").id.tolist() == ["p1", "p2", "p3", "p4", "P2", "p9"]


def test_a_type_without_a_node_file_comes_from_the_edges(folder):
    only = ("-n", f"paper={folder / 'papers.csv'}", "--drop", "label", "--dim", 4, "--seed", 0)
    result = ok("embed", folder / "edges.csv", *only, "-o", folder / "z.csv")
    assert "'writes'" in result.output
    assert "node: no node file, so its 3 nodes" in result.output
    assert pd.read_csv(folder / "z.node.csv").id.tolist() == ["ann", "bob", "eve"]
    authors = EDGES.source.isin(AUTHORS.id)
    EDGES.assign(source_type=np.where(authors, "author", "paper"), target_type="paper").to_csv(
        folder / "typed.csv", index=False
    )
    result = ok("embed", folder / "typed.csv", *only, "-o", folder / "y.csv")
    assert "author: no node file, so its 3 nodes" in result.output
    np.testing.assert_array_equal(
        pd.read_csv(folder / "y.author.csv").iloc[:, 1:], pd.read_csv(folder / "z.node.csv").iloc[:, 1:]
    )


def test_some_nodes_alone_are_refused(folder):
    ok("embed", folder / "edges.csv", *files(folder), "-o", folder / "z.csv", "--dim", 4, "--save", folder / "m.st")
    (folder / "few.txt").write_text("p1\n")
    only = ("--model", folder / "m.st", "--only", folder / "few.txt")
    wrong("--only", "embed", folder / "edges.csv", *files(folder), *only, "-o", folder / "y.csv")


@pytest.mark.parametrize("command", ["train", "links", "table", "explain", "anomalies"])
def test_other_commands_take_one_type_of_nodes(folder, command):
    more = {
        "train": ("--label", "label", "-o", folder / "m.st"),
        "table": ("-o", folder / "t.csv"),
        "explain": ("--model", folder / "m.st"),
        "anomalies": ("--model", folder / "m.st", "-o", folder / "o.csv"),
    }
    papers = ("-n", f"paper={folder / 'papers.csv'}")
    wrong("fishergraph embed", command, folder / "edges.csv", *papers, *more.get(command, ()))


def test_a_model_of_relations_is_not_explained(folder):
    (folder / "papers.csv").write_text(PAPERS.assign(topic=list("abab")).to_csv(index=False))
    ok("embed", folder / "edges.csv", *files(folder), "-o", folder / "z.csv", "--dim", 4, "--save", folder / "m.st")
    one = ("-n", folder / "papers.csv", "--model", folder / "m.st")
    fails(folder, "one of several kinds of edges", "explain", folder / "edges.csv", *one)
    with_model = ("--graph", folder / "edges.csv", *one, "-o", folder / "page.html")
    fails(folder, "one of several kinds of edges", "explore", folder / "z.paper.csv", *with_model)


def test_a_page_of_one_type_names_its_relations(folder):
    ok("embed", folder / "edges.csv", *files(folder), "-o", folder / "z.csv", "--dim", 4, "--drop", "label")
    page = ("-o", folder / "page.html", "--map", "pca")
    result = ok("explore", folder / "z.paper.csv", "--graph", folder / "edges.csv", *page)
    assert "2 kinds of edges, writes, cites" in result.output
    assert "writes: from others" in (folder / "page.html").read_text()
