"""Node files with words, dates and gaps go straight through the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commands import fails, ok, record_of, wrong
from fishergraph import FisherEmbedding, Neighbourhood, as_graph
from fishergraph.datasets import load_tables
from fishergraph.io.tables import read_embedding, read_nodes

PENGUINS = load_tables("penguins")
EDGES, NODES = PENGUINS.files["edges"], PENGUINS.files["nodes"]
SMALL = ("--n-layers", 1, "--n-anchors", 2, "--dim", 8, "--seed", 0, "--undirected", "--jobs", 1)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """The folder of an embedding and its model, and what the command said."""
    folder = tmp_path_factory.mktemp("penguins")
    files = ("-o", folder / "z.parquet", "--save", folder / "m.safetensors")
    return folder, ok("embed", EDGES, "-n", NODES, "--drop", "Species", *SMALL, *files)


def test_no_preparation_and_one_line_about_the_columns(embedded):
    folder, said = embedded
    lines = [line for line in said.stderr.splitlines() if line.startswith("columns: ")]
    assert len(lines) == 1
    assert "1 date (Date Egg)" in lines[0]
    assert "left aside: Region, Stage (one value), Individual ID (an id)" in lines[0]
    assert "warning" not in said.stderr
    columns = {column["name"]: column["kind"] for column in record_of(folder / "z.parquet")["input"]["columns"]}
    assert columns["Sex"] == "category"
    assert columns["Region"] is None
    assert "Species" not in columns


def test_the_file_is_the_table(embedded):
    folder, _ = embedded
    z = read_embedding(folder / "z.parquet")
    frame = pd.read_csv(NODES).set_index("id").drop(columns="Species")
    graph = as_graph(PENGUINS.edges, node_ids=frame.index, undirected=True)
    model = FisherEmbedding(1, 2, 8, random_state=0, multiset="neighbourhood")

    model.set_params(multiset=Neighbourhood(undirected=True))
    expected = model.fit_transform(frame, graph=PENGUINS.edges)
    np.testing.assert_allclose(z.Z, expected, atol=1e-5)
    assert z.ids.tolist() == frame.index.tolist()
    assert graph.n_nodes == len(z.ids)


def test_a_saved_model_embeds_a_file_of_any_order_and_more_columns(embedded, tmp_path):
    folder, _ = embedded
    said = ok("embed", EDGES, "-n", NODES, "--model", folder / "m.safetensors", "-o", tmp_path / "z.parquet")
    assert "'Species'" in said.stderr  # the fit had none
    first, second = read_embedding(folder / "z.parquet").Z, read_embedding(tmp_path / "z.parquet").Z
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_another_schema_is_named_column_by_column(embedded, tmp_path):
    folder, _ = embedded
    frame = pd.read_csv(NODES).drop(columns=["Sex", "Island"]).assign(**{"Body Mass (g)": "heavy"})
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    files = ("-n", tmp_path / "nodes.csv", "--model", folder / "m.safetensors", "-o", tmp_path / "z.parquet")
    fails(
        tmp_path,
        "3 faults: 'Island' is missing.*'Sex' is missing.*'Body Mass \\(g\\)' holds words",
        "embed",
        EDGES,
        *files,
    )


def test_quiet_says_nothing(tmp_path):
    said = ok("embed", EDGES, "-n", NODES, *SMALL, "--quiet", "-o", tmp_path / "z.npz")
    assert said.stderr == said.stdout == ""


def test_kinds_can_be_named(tmp_path):
    out = tmp_path / "z.npz"
    kinds = ("--kind", "Sample Number=category", "--kind", "Individual ID=text")
    ok("embed", EDGES, "-n", NODES, *kinds, *SMALL, "-o", out)
    columns = {column["name"]: column["kind"] for column in record_of(out)["input"]["columns"]}
    assert (columns["Sample Number"], columns["Individual ID"]) == ("category", "text")
    call = ("embed", EDGES, "-n", NODES, *SMALL, "-o", out)
    wrong("'number', 'boolean', 'category'", *call, "--kind", "Sex=word")
    wrong("NAME=KIND", *call, "--kind", "Sex")
    fails(tmp_path, "no column 'Sx'", *call, "--kind", "Sx=text")
    wrong("--kind needs a node table", "embed", EDGES, *SMALL, "-o", out, "--kind", "Sex=text")


def test_numbers_can_be_named_categories(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    (tmp_path / "n.csv").write_text("id,zip,size\n0,1,1.5\n1,2,2.5\n2,1,0.5\n3,2,1.0\n")
    out = tmp_path / "z.npz"
    ok("embed", tmp_path / "e.csv", "-n", tmp_path / "n.csv", "--kind", "zip=category", *SMALL, "-o", out)
    assert [column["kind"] for column in record_of(out)["input"]["columns"]] == ["category", "number"]
    ok("embed", tmp_path / "e.csv", "-n", tmp_path / "n.csv", *SMALL, "-o", out)
    assert record_of(out)["input"]["columns"] is None


def test_numbers_with_gaps_are_encoded_and_numbers_keep_their_bits(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "e.csv").write_text("source,target\n" + "\n".join(f"{k},{(k + 1) % 9}" for k in range(9)))
    frame = pd.DataFrame({"id": range(9), "a": rng.normal(size=9), "b": rng.normal(size=9)})
    for suffix in (".csv", ".parquet"):
        path, out = tmp_path / f"n{suffix}", tmp_path / f"z{suffix}.npz"
        write = frame.to_csv if suffix == ".csv" else frame.to_parquet
        write(path, index=False)
        said = ok("embed", tmp_path / "e.csv", "-n", path, *SMALL, "-o", out)
        assert "columns: 2 numbers (a, b) as they are." in said.stderr
        ids, X, _ = read_nodes(path)
        graph = as_graph(pd.read_csv(tmp_path / "e.csv"), node_ids=ids, undirected=True)

        model = FisherEmbedding(1, 2, 8, random_state=0, multiset=Neighbourhood(undirected=True))
        np.testing.assert_array_equal(read_embedding(out).Z, model.fit_transform(X, graph=graph))
        frame.assign(a=frame.a.where(frame.id != 4)).to_csv(path, index=False) if suffix == ".csv" else frame.assign(
            a=frame.a.where(frame.id != 4)
        ).to_parquet(path, index=False)
        said = ok("embed", tmp_path / "e.csv", "-n", path, *SMALL, "-o", out)
        assert "columns: 2 numbers (a, b)." in said.stderr


def test_words_for_missing_are_named(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    (tmp_path / "n.csv").write_text("id,land,x\n0,DE,1\n1,NA,2\n2,FR,5\n3,DE,4\n")
    said = ok("embed", tmp_path / "e.csv", "-n", tmp_path / "n.csv", *SMALL, "-o", tmp_path / "z.npz")
    assert "'land'" in said.stderr
    assert "'NA'" in said.stderr
    learned = {c["name"]: c["learned"] for c in record_of(tmp_path / "z.npz")["input"]["columns"]}
    assert "1 missing" in learned["land"]


def test_text_of_another_encoding_is_named(tmp_path):
    (tmp_path / "n.csv").write_bytes("id,name\n1,Müller\n".encode("latin-1"))
    call = ("embed", EDGES, "-n", tmp_path / "n.csv", *SMALL, "-o", tmp_path / "z.npz")
    fails(tmp_path, "line 2 of .*byte 0xfc.*--encoding", *call)
    lines = ["id,name", *(f"{k},Smith" for k in range(20_000)), "x,Müller"]
    (tmp_path / "n.csv").write_bytes("\n".join(lines).encode("latin-1"))
    fails(tmp_path, "line 20002 of .*byte 0xfc", *call)


def test_a_node_that_is_twice_in_the_file(tmp_path):
    frame = pd.read_csv(NODES)
    pd.concat([frame, frame.iloc[[5]]]).to_csv(tmp_path / "n.csv", index=False)
    pattern = f"'{frame.id[5]}' again in row 344"
    fails(tmp_path, pattern, "embed", EDGES, "-n", tmp_path / "n.csv", *SMALL, "-o", tmp_path / "z.npz")


def test_train_predict_and_explain(tmp_path):
    model, said = tmp_path / "c.safetensors", None
    probe = ("--mode", "probe", "--n-layers", 1, "--n-anchors", 2, "--dim", 8, "--seed", 0, "--undirected")
    said = ok("train", EDGES, "-n", NODES, "--label", "Species", *probe, "-o", model)
    assert "columns: " in said.stderr
    assert record_of(model)["input"]["columns"]
    ok("predict", EDGES, "-n", NODES, "--model", model, "-o", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv").merge(pd.read_csv(NODES), on="id")
    assert (predicted.prediction == predicted.Species).mean() > 0.9


def test_explain_reads_the_columns_of_the_model(embedded):
    folder, _ = embedded
    said = ok("explain", EDGES, "-n", NODES, "--model", folder / "m.safetensors", "--node", "PAL0708-A001")
    assert "PAL0708-A002" in said.stdout


def test_links(tmp_path):
    said = ok("links", EDGES, "-n", NODES, *SMALL, "-k", 5, "-o", tmp_path / "l.csv")
    assert "columns: " in said.stderr
    assert len(pd.read_csv(tmp_path / "l.csv")) == 5


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"age": [30, 41, 52], "income": [30000, 70000, 20000]}, "columns: 2 numbers (age, income)."),
        ({"x0": [0.1, 1, 0], "x1": [0, 1, 1], "x2": [3, 3, 3]}, "3 numbers (x0, x1, x2) as they are; 'x2' is the same"),
        ({"x0": [1, 2, 3], "x1": [10**6, 2 * 10**6, 10**6]}, "'x1' is 100.0% of the squared length"),
    ],
)
def test_the_line_about_columns_is_always_there(tmp_path, columns, said):
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    pd.DataFrame({"id": ["a", "b", "c"], **columns}).to_csv(nodes, index=False)
    edges.write_text("source,target\na,b\nb,c\n")
    assert said in ok("embed", edges, "-n", nodes, "-o", tmp_path / "z.npz", *SMALL).stderr


def test_encoding_and_separator_are_those_of_the_node_file_too(tmp_path):
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.parquet"
    nodes.write_bytes("id;town;age\na;Zürich;8,5\nb;Rom;7,25\nc;Rom;6\n".encode("latin-1"))
    pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}).to_parquet(edges)
    said = ok("embed", edges, "-n", nodes, "--encoding", "latin-1", "-o", tmp_path / "z.npz", *SMALL).stderr
    assert "decimal commas in age" in said
    assert "1 category (town), 1 number (age)" in said
