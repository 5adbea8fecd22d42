"""`fishergraph embed`: every format, ids kept, the run record, saved models, configs, and one sentence per failure."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import call, fails, ok, record_of, wrong
from fishergraph import EM, DiagonalMixture, FisherEmbedding, Neighbourhood, __version__
from fishergraph.io.npz import SUFFIXES
from fishergraph.io.tables import read_nodes
from fishergraph.structural import structural_features

try:
    import torch
except ImportError:
    GPU = True  # without torch the sentence is another one
else:
    GPU = torch.cuda.is_available()

FORMATS = list(SUFFIXES)
SMALL = ["--n-layers", "1", "--n-anchors", "2", "--dim", "4", "--directed", "--jobs", "1"]
embed_module = importlib.import_module("fishergraph.cli.embed")  # the package names the function by the same word


def write_frame(path: Path, frame: pd.DataFrame) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep=SUFFIXES["".join(path.suffixes)], index=False)
    return path


def graph_frames(n=12, d=3, seed=0, names=True):
    """A random directed graph; the last node has no edge, and ids are strings unless `names` is False."""
    rng = np.random.default_rng(seed)
    ids = np.array([f"node {k:02d}" for k in range(n)]) if names else np.arange(n) * 7 + 3
    ids = rng.permutation(ids)
    source, target = rng.integers(0, n - 1, (2, 4 * n))
    edges = pd.DataFrame({"source": ids[source], "target": ids[target]})
    nodes = pd.DataFrame({"id": ids, **{f"f{j}": rng.standard_normal(n).astype(np.float32) for j in range(d)}})
    return edges, nodes


@pytest.fixture
def files(tmp_path):
    """Paths of an edge file and a node file."""
    edges, nodes = graph_frames()
    return write_frame(tmp_path / "edges.csv", edges), write_frame(tmp_path / "nodes.csv", nodes)


# --- formats and ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("names", [True, False], ids=["strings", "integers"])
def test_every_format_in_and_out_keeps_the_ids(tmp_path, suffix, names):
    edges, nodes = graph_frames(names=names)
    ids = nodes["id"].to_numpy()
    X = nodes.drop(columns="id").to_numpy()
    edge_file, node_file, out = (tmp_path / f"{name}{suffix}" for name in ("edges", "nodes", "out"))
    if suffix == ".npz":
        row = {name: k for k, name in enumerate(ids)}
        ends = np.array([[row[name] for name in edges[column]] for column in ("source", "target")])
        np.savez(edge_file, edge_index=ends, ids=ids.astype(str) if names else ids)
        np.savez(node_file, x=X, ids=ids.astype(str) if names else ids)
    else:
        write_frame(edge_file, edges)
        write_frame(node_file, nodes)
    ok("embed", edge_file, "--nodes", node_file, "-o", out, "--seed", "3", *SMALL)

    found_ids, Z, columns = read_nodes(out)
    assert found_ids.tolist() == ids.tolist()
    expected = FisherEmbedding(n_layers=1, n_anchors=2, dim=4, random_state=3).set_output(transform="pandas")
    expected = expected.fit_transform(nodes.set_index("id").to_numpy(), graph=embedded_graph(edges, ids))
    assert columns == list(expected.columns)
    np.testing.assert_allclose(Z, expected.to_numpy(), rtol=1e-6, atol=1e-7)


def embedded_graph(edges, ids):
    from fishergraph import as_graph

    return as_graph(edges, node_ids=ids)


def test_one_npz_can_hold_edges_features_and_ids(tmp_path):
    edges, nodes = graph_frames(names=False)
    row = {name: k for k, name in enumerate(nodes["id"])}
    ends = np.array([[row[name] for name in edges[column]] for column in ("source", "target")])
    X = nodes.drop(columns="id").to_numpy()
    np.savez(tmp_path / "g.npz", edge_index=ends, ids=nodes["id"], x=X)
    ok("embed", tmp_path / "g.npz", "-o", tmp_path / "z.npz", *SMALL)
    with np.load(tmp_path / "z.npz") as out:
        assert out["ids"].tolist() == nodes["id"].tolist()
    assert record_of(tmp_path / "z.npz")["input"]["n_features"] == 3


def test_nodes_without_edges_are_embedded(files, tmp_path):
    edges, nodes = files
    table = pd.read_csv(edges)
    isolated = set(pd.read_csv(nodes)["id"]) - set(table["source"]) - set(table["target"])
    assert isolated
    ok("embed", edges, "-n", nodes, "-o", tmp_path / "z.csv", *SMALL)
    z = pd.read_csv(tmp_path / "z.csv").set_index("id")
    assert isolated <= set(z.index)
    assert np.isfinite(z.to_numpy()).all()


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_graph_without_features_gets_structural_ones(files, tmp_path, with_ids):
    edges, nodes = files
    out, ids = tmp_path / "z.npz", tmp_path / "ids.csv"
    pd.read_csv(nodes)[["id"]].to_csv(ids, index=False)
    ok("embed", edges, *(["--nodes", ids] if with_ids else []), "-o", out, "--seed", 5, "--structure", "degree", *SMALL)
    record = record_of(out)
    assert (record["structure"]["columns"], record["structure"]["width"]) == (["degree"], 4)
    assert record["input"]["n_nodes"] == (12 if with_ids else 11)
    assert np.load(out)["ids"].dtype.kind == "U"


def test_the_record_of_structural_features_makes_them_again(files, tmp_path):
    ok("embed", files[0], "-o", tmp_path / "z.npz", "--save", tmp_path / "m.safetensors", *SMALL)
    structure = record_of(tmp_path / "z.npz")["structure"]
    assert structure["columns"] == ["factors", "local"]
    graph = embedded_graph(pd.read_csv(files[0]), None)
    X = structural_features(graph, structure["columns"][0], structure["width"], structure["seed"])
    model = FisherEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(model.transform(X, graph=graph), np.load(tmp_path / "z.npz")["x"])


def test_a_model_of_structural_features_takes_no_others(files, tmp_path):
    edges, nodes = files[:2]
    model = tmp_path / "m.safetensors"
    ok("embed", edges, "-o", tmp_path / "z.npz", "--save", model, "--dim", 4, "--n-layers", 1, "--seed", 0)
    table = pd.read_csv(nodes)
    pd.DataFrame({"id": table["id"], **dict.fromkeys("abcd", 1.0)}).to_csv(tmp_path / "n.csv", index=False)
    arguments = ["embed", edges, "-n", tmp_path / "n.csv", "-o", tmp_path / "y.npz", "--model", model]
    fails(
        tmp_path, "was fitted on structural features and needs no others, got a node file with 4 features", *arguments
    )
    drop = [word for name in "abcd" for word in ("--drop", name)]
    ok(*arguments, *drop)


def test_id_column_and_drop(tmp_path):
    edges, nodes = graph_frames()
    nodes = nodes.rename(columns={"id": "paper"}).assign(label="red", year=1999)
    write_frame(tmp_path / "e.tsv", edges)
    write_frame(tmp_path / "n.tsv", nodes)
    out = tmp_path / "z.tsv"
    arguments = ["embed", tmp_path / "e.tsv", "-n", tmp_path / "n.tsv", "-o", out, *SMALL]
    arguments += ["--drop", "label", "--drop", "year", "--seed", 0]
    ok(*arguments, "--id-column", "paper")
    assert pd.read_csv(out, sep="\t")["id"].tolist() == nodes["paper"].tolist()
    assert record_of(out)["input"]["drop"] == ["label", "year"]
    assert record_of(out)["input"]["n_features"] == 3
    named = out.read_bytes()
    assert "id = paper" in ok(*arguments).stderr  # it names the ends of the edges
    assert out.read_bytes() == named
    assert record_of(out)["input"]["id_column"] == "paper"


# --- the run record and the seed ------------------------------------------------------------------------


def test_the_record_says_what_was_done(files, tmp_path, monkeypatch):
    out = tmp_path / "z.parquet"
    arguments = ["embed", *files[:1], "--nodes", files[1], "-o", out, "--seed", 11, "--multiset", "weights=symmetric"]
    arguments += SMALL
    monkeypatch.setattr(sys, "argv", ["fishergraph", *map(str, arguments)])
    ok(*arguments)
    record = record_of(out)
    assert record["seed"] == 11
    assert record["command"].startswith("fishergraph embed ")
    assert set(record["versions"]) >= {"fishergraph", "numpy", "scipy", "sklearn", "numba", "python"}
    assert record["versions"]["fishergraph"] == __version__
    assert record["versions"]["numpy"] == np.__version__
    multiset = Neighbourhood(weights="symmetric", undirected=False)
    parameters = FisherEmbedding(n_layers=1, n_anchors=2, dim=4, n_jobs=1, multiset=multiset).get_params()
    parameters["multiset"] = repr(multiset)
    parameters["structure__columns"] = ["factors", "local"]  # JSON has no tuples
    assert record["parameters"] == {k: v for k, v in parameters.items() if k not in ("verbose", "random_state")}
    assert record["parameters"]["multiset__weights"] == "symmetric"
    edges = record["input"]["edges"]
    summary = edges.pop("summary")
    assert edges == {"path": str(files[0]), "bytes": files[0].stat().st_size, "rows": 48}
    assert (summary["nodes"], summary["edges"], summary["parallel"], summary["isolated"]) == (12, 42, 6, 1)
    assert (record["input"]["n_nodes"], record["input"]["n_features"]) == (12, 3)
    assert {name: record["structure"][name] for name in ("columns", "width")} == {
        "columns": ["factors", "local"],
        "width": 4,
    }
    columns = len(pd.read_parquet(out)["embedding"][0])
    assert record["output"] == {"path": str(out), "rows": 12, "columns": columns, "dtype": "float32"}
    seconds = record["seconds"]
    assert set(seconds["parts_of_embed"]) >= {"input map", "layer 1/1"}
    assert all(seconds[stage] >= 0 for stage in ("import", "read", "embed", "write", "total"))
    assert pd.Timestamp(record["started"]).tzinfo is not None


@pytest.mark.parametrize("multiset", ["hops", "differences", "pairs", "paths", "tuples", "ppr", "heat", "s2gc"])
def test_another_multiset_is_an_option(files, tmp_path, multiset):
    arguments = ["embed", files[0], "-n", files[1], "--seed", 0, *SMALL]
    ok(*arguments, "-o", tmp_path / "z.npz", "--multiset", multiset, "--save", tmp_path / "m.safetensors")
    assert record_of(tmp_path / "z.npz")["parameters"]["multiset"] == multiset
    ok(*arguments, "-o", tmp_path / "plain.npz")
    found, plain = (np.load(tmp_path / f"{name}.npz")["x"] for name in ("z", "plain"))
    assert np.abs(found[:, 4:8] - plain[:, 4:8]).max() > 1e-3  # the layer
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "again.npz", "--model", tmp_path / "m.safetensors")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npz")["x"], found)


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_directions_are_an_option(files, tmp_path, direction):
    arguments = ["embed", files[0], "-n", files[1], "--seed", 0, *SMALL]
    option = ["--multiset", f"direction={direction}", "--save", tmp_path / "m.safetensors"]
    ok(*arguments, *option, "-o", tmp_path / "z.npz")
    assert record_of(tmp_path / "z.npz")["parameters"]["multiset"] == repr(Neighbourhood(direction=direction))
    ok(*arguments, "-o", tmp_path / "plain.npz")
    found, plain = (np.load(tmp_path / f"{name}.npz")["x"] for name in ("z", "plain"))
    assert np.array_equal(found, plain) == (direction == "in")
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "again.npz", "--model", tmp_path / "m.safetensors")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npz")["x"], found)


@pytest.mark.parametrize(("word", "value", "columns"), [("0.5", 0.5, 23), ("none", None, 16), (None, 0.1, 23)])
def test_walks_are_an_option(files, tmp_path, word, value, columns):
    arguments = ["embed", files[0], "-n", files[1], "-o", tmp_path / "z.npz", *SMALL]
    ok(*arguments, *([] if word is None else ["--walk", word]))
    assert record_of(tmp_path / "z.npz")["parameters"]["walk"] == value
    assert np.load(tmp_path / "z.npz")["x"].shape == (12, columns)


@pytest.mark.parametrize("word", ["0", "-1", "2", "nan", "never"])
def test_walks_that_are_none(files, tmp_path, word):
    arguments = ["embed", files[0], "-n", files[1], "-o", tmp_path / "z.npz", *SMALL]
    wrong("--walk", *arguments, f"--walk={word}")


def test_walks_in_a_config_file(files, tmp_path):
    (tmp_path / "c.toml").write_text('walk = "none"\n')
    arguments = ["embed", files[0], "-n", files[1], *SMALL, "--config", tmp_path / "c.toml"]
    ok(*arguments, "-o", tmp_path / "z.npz")
    assert record_of(tmp_path / "z.npz")["parameters"]["walk"] is None
    (tmp_path / "c.toml").write_text("walk = 0.25\n")
    ok(*arguments, "-o", tmp_path / "z.npz")
    assert record_of(tmp_path / "z.npz")["parameters"]["walk"] == 0.25


def test_the_e_step_the_device_and_the_precision_are_options(files, tmp_path):
    arguments = ["embed", files[0], "-n", files[1], "--seed", 0, *SMALL]
    ok(*arguments, "-o", tmp_path / "plain.npz", "--save", tmp_path / "m.safetensors")
    ok(*arguments, "-o", tmp_path / "z.npz", "--em", "em(e_step=unbalanced, column_penalty=3.0)", "--device", "cpu")
    parameters = record_of(tmp_path / "z.npz")["parameters"]
    assert parameters["em"] == repr(EM(e_step="unbalanced", column_penalty=3.0))
    assert parameters["device"] == "cpu"
    found, plain = (np.load(tmp_path / f"{name}.npz")["x"] for name in ("z", "plain"))
    assert np.abs(found - plain).max() > 1e-3
    saved = ["embed", files[0], "-n", files[1], "--model", tmp_path / "m.safetensors"]
    ok(*saved, "-o", tmp_path / "again.npz", "--device", "cpu")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npz")["x"], plain)
    out = ["-o", tmp_path / "y.csv"]
    wrong("'--em'.*posterior.*balanced.*unbalanced.*'hard'", *arguments, *out, "--em", "e_step=hard")
    wrong("'--device'.*precision.*'float32'", *arguments, *out, "--device", "cpu(precision=tf32)")
    wrong("'--device'.*precision.*'float32'", *arguments, *out, "--device", "precision=tf32")
    wrong("'--device'.*'cpu'.*'gpu'", *saved, *out, "--device", "gpu")
    wrong("'--device'.*float32.*tf32.*bf16.*'half'", *arguments, *out, "--device", "cuda(precision=half)")


@pytest.mark.parametrize(
    ("name", "made"), [("paper", FisherEmbedding.preset("paper")), ("published-code", FisherEmbedding.published_code())]
)
def test_presets_are_options(files, tmp_path, name, made):
    arguments = ["embed", files[0], "-n", files[1], "--seed", 0, "--preset", name, *SMALL]
    ok(*arguments, "-o", tmp_path / "z.npz", "--save", tmp_path / "m.safetensors")
    assert record_of(tmp_path / "z.npz")["parameters"]["walk"] is None
    edges, nodes = graph_frames()
    made.set_params(n_layers=1, n_anchors=2, dim=4, random_state=0)
    Z = made.fit_transform(nodes.set_index("id").to_numpy(), graph=embedded_graph(edges, nodes["id"].to_numpy()))
    np.testing.assert_allclose(np.load(tmp_path / "z.npz")["x"], Z, rtol=1e-5, atol=1e-6)
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "again.npz", "--model", tmp_path / "m.safetensors")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npz")["x"], np.load(tmp_path / "z.npz")["x"])


def test_the_engine_is_an_option(files, tmp_path):
    pytest.importorskip("fishergraph.config")
    arguments = ["embed", files[0], "-n", files[1], "--seed", 0, *SMALL]
    ok(*arguments, "-o", tmp_path / "a.npz")
    ok(*arguments, "-o", tmp_path / "b.npz", "--engine", "scipy")
    assert record_of(tmp_path / "b.npz")["engine"] == "scipy"
    np.testing.assert_allclose(np.load(tmp_path / "a.npz")["x"], np.load(tmp_path / "b.npz")["x"], atol=1e-5)
    wrong("engine.*'numba'.*'abacus'", *arguments, "-o", tmp_path / "c.npz", "--engine", "abacus")


def test_the_family_and_its_metric_are_options(files, tmp_path):
    arguments = ["embed", files[0], "-n", files[1], "--seed", 0, *SMALL]
    ok(*arguments, "-o", tmp_path / "plain.npz")
    family = "diagonal-mixture(fisher=exact, tangent=score)"
    ok(*arguments, "-o", tmp_path / "z.npz", "--family", family, "--save", tmp_path / "m.safetensors")
    written = repr(DiagonalMixture(fisher="exact", tangent="score"))
    assert record_of(tmp_path / "z.npz")["parameters"]["family"] == written
    ok(*arguments, "-o", tmp_path / "python.npz", "--family", written)  # as the record has it
    assert (tmp_path / "python.npz").read_bytes() == (tmp_path / "z.npz").read_bytes()
    found, plain = (np.load(tmp_path / f"{name}.npz")["x"] for name in ("z", "plain"))
    assert np.abs(found - plain).max() > 1e-3
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "again.npz", "--model", tmp_path / "m.safetensors")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npz")["x"], found)
    wrong("--family.*gaussian-mixture, gaussian.*'normal'", *arguments, "-o", "y.csv", "--family", "normal")
    fails(tmp_path, "must hold counts of at least 0", *arguments, "-o", tmp_path / "y.csv", "--family", "multinomial")


@pytest.mark.skipif(GPU, reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_one_sentence(files, tmp_path):
    arguments = ["embed", files[0], "-n", files[1], "-o", tmp_path / "y.csv", "--device", "cuda", *SMALL]
    fails(tmp_path, "error: .*cuda", *arguments)


def test_a_seed_is_drawn_and_recorded(files, tmp_path):
    for name in ("a", "b"):
        ok("embed", files[0], "-n", files[1], "-o", tmp_path / f"{name}.npz", *SMALL)
    seeds = [record_of(tmp_path / f"{name}.npz")["seed"] for name in ("a", "b")]
    assert seeds[0] != seeds[1]
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "again.npz", "--seed", seeds[0], *SMALL)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()


def test_the_same_seed_gives_the_same_bytes_at_any_number_of_jobs(tmp_path):
    edges, nodes = graph_frames(n=3000, d=8)
    write_frame(tmp_path / "e.parquet", edges)
    write_frame(tmp_path / "n.parquet", nodes)
    outputs = []
    for jobs in (1, 2):
        out = tmp_path / f"z{jobs}.npz"
        arguments = ["--n-layers", 2, "--dim", 16, "--seed", 0, "--jobs", jobs, "--undirected"]
        ok("embed", tmp_path / "e.parquet", "-n", tmp_path / "n.parquet", "-o", out, *arguments)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]


# --- models and configs ---------------------------------------------------------------------------------


def test_a_saved_model_embeds_without_learning(files, tmp_path):
    edges, nodes = files
    model = tmp_path / "m.safetensors"
    ok("embed", edges, "-n", nodes, "-o", tmp_path / "a.npz", "--save", model, "--seed", 1, *SMALL)
    frame = pd.read_csv(nodes)
    frame[["id", "f2", "f0", "f1"]].to_csv(nodes, index=False)  # the columns are found by their names
    ok("embed", edges, "-n", nodes, "-o", tmp_path / "b.npz", "--model", model)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    record = record_of(tmp_path / "b.npz")
    assert (record["seed"], record["model"]["used"]) == (1, str(model))
    assert record["parameters"]["dim"] == 4


@pytest.mark.parametrize("columns", [["id", "f0", "f1"], ["id", "f0", "f1", "g"], ["id"]])
def test_a_saved_model_asks_for_its_features(files, tmp_path, columns):
    edges, nodes = files
    ok("embed", edges, "-n", nodes, "-o", tmp_path / "a.npz", "--save", tmp_path / "m", *SMALL)
    pd.read_csv(nodes).assign(g=1.0)[columns].to_csv(nodes, index=False)
    fails(tmp_path, "'f2' among them", "embed", edges, "-n", nodes, "--model", tmp_path / "m", "-o", tmp_path / "b.npz")


def test_a_config_file_answers_and_the_command_line_wins(files, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        f'nodes = "{files[1].as_posix()}"\noutput = "{(tmp_path / "z.npz").as_posix()}"\nn_layers = 2\ndim = 5\n'
        'family = "variance=0.05"\ndrop = ["f1"]\ncounts = true\nundirected = true\nem = "n_iter=2"\nquiet = true\n'
        "seed = 4\n"
    )
    result = ok("embed", files[0], "--config", config, "--n-layers", 1, "--n-anchors", 2)
    assert result.output == ""
    record = record_of(tmp_path / "z.npz")
    expected = {"n_layers": 1, "n_anchors": 2, "dim": 5, "counts": True, "em": "EM(n_iter=2)"}
    expected |= {"family": "GaussianMixture(variance=0.05)", "multiset": "Neighbourhood(undirected=True)"}
    assert {key: record["parameters"][key] for key in expected} == expected
    assert (record["seed"], record["config"], record["input"]["n_features"]) == (4, str(config), 2)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("layer = 2", "'layer'.*n-layers.*n-anchors"),
        ("[embed]\nn_layers = 2", "'embed'.*table"),
        ("n_layers = 2.5", "--n-layers"),
        ("n_layers = 'two'", "--n-layers"),
        ("n_layers = true", "--n-layers"),
        ("family = 'variance=big'", "big"),
        ("em = 'n_iter=' ", "--em"),
        ("n_layers = ", "not TOML"),
        ("n_layers = 1\nn-layers = 2", "'n_layers' and 'n-layers' in .* are one option"),
        ("directed = true\nundirected = true", "'directed' and 'undirected' in .* are one option"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_config_is_a_wrong_call(files, tmp_path, text, pattern):
    config = tmp_path / "c.toml"
    if text is not None:
        config.write_text(text)
    wrong(pattern, "embed", files[0], "-n", files[1], "-o", tmp_path / "z.npz", "--config", config)


ODD_CONFIGS = {
    "deep lists": ("n_layers = " + "[" * 5000 + "]" * 5000, r"is nested too deeply"),
    "deep tables": ("n_layers = " + "{a = " * 5000 + "1" + "}" * 5000, r"is nested too deeply"),
    "lists in a list": ("n_layers = [[1], [2]]", r"'n_layers' .* must be text of at most 1000"),
    "many digits": ("seed = 0x" + "f" * 5000, r"'seed' .* must be text of at most 1000"),
    "NUL": ('save = "a\\u0000b"', r"'save' .* must be text of at most 1000"),
    "large": ("# " + "x" * 2_000_000, r"more than 1,048,576 bytes"),
    "no TOML": ("{", r"is not TOML"),
}


@pytest.mark.parametrize("case", ODD_CONFIGS)
def test_an_odd_config_is_a_wrong_call(files, tmp_path, case):
    text, pattern = ODD_CONFIGS[case]
    (tmp_path / "c.toml").write_text(text)
    call_it = ["embed", files[0], "-n", files[1], "-o", tmp_path / "z.npz", "--config", tmp_path / "c.toml"]
    wrong(pattern, *call_it)
    assert not (tmp_path / "z.npz").exists()


def test_an_empty_config_says_nothing(files, tmp_path):
    (tmp_path / "c.toml").touch()
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "z.npz", *SMALL, "--config", tmp_path / "c.toml")


def test_an_npz_of_another_byte_order_gives_the_same_embedding(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "edge_index": rng.integers(0, 9, (2, 30)),
        "x": rng.normal(size=(9, 3)),
        "ids": np.array(list("abcdefghi")),
    }
    np.savez(tmp_path / "little.npz", **arrays)
    np.savez(tmp_path / "big.npz", **{key: a.astype(a.dtype.newbyteorder(">")) for key, a in arrays.items()})
    for name in ("little", "big"):
        ok("embed", tmp_path / f"{name}.npz", "-o", tmp_path / f"{name}.csv", "--seed", 0, *SMALL)
    assert (tmp_path / "little.csv").read_bytes() == (tmp_path / "big.csv").read_bytes()


def test_times_reach_the_estimator_with_all_their_digits(tmp_path):
    edges, nodes = graph_frames()
    write_frame(tmp_path / "e.csv", edges)
    times = 1_700_000_000 + np.arange(len(nodes))
    write_frame(tmp_path / "n.csv", nodes[["id"]].assign(time=times, one=1.0))
    arguments = [tmp_path / "e.csv", "-n", tmp_path / "n.csv", "-o", tmp_path / "z.npz", *SMALL, "--no-normalize"]
    ok("embed", *arguments, "--seed", 0)
    assert record_of(tmp_path / "z.npz")["output"]["dtype"] == "float64"


def test_a_loop_of_links_is_one_sentence(files, tmp_path):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    fails(tmp_path, "loop.csv", "embed", tmp_path / "loop.csv", "-o", tmp_path / "z.csv")
    fails(tmp_path, "loop.csv", "embed", files[0], "-n", tmp_path / "loop.csv", "-o", tmp_path / "z.csv")


def test_ids_that_the_output_cannot_keep_are_found_before_the_work(tmp_path, monkeypatch):
    edges = pd.DataFrame({"source": [" a", "b"], "target": ["b", "c"]})
    edges.to_parquet(tmp_path / "e.parquet")
    ok("embed", tmp_path / "e.parquet", "-o", tmp_path / "z.parquet", *SMALL)
    assert read_nodes(tmp_path / "z.parquet")[0].tolist() == [" a", "b", "c"]
    monkeypatch.setattr(FisherEmbedding, "fit_transform", None)
    pattern = r"no blanks around its words in a \.csv file, got ' a'; remove them, or write a \.parquet"
    fails(tmp_path, pattern, "embed", tmp_path / "e.parquet", "-o", tmp_path / "z.csv", *SMALL)


def test_directed_in_a_config_is_the_other_side_of_undirected(files, tmp_path):
    (tmp_path / "c.toml").write_text('directed = true\ndrop = "f0"', encoding="utf-8-sig")  # as Windows saves it
    ok("embed", files[0], "-n", files[1], "-o", tmp_path / "z.csv", "--config", tmp_path / "c.toml", "--dim", 4)
    assert record_of(tmp_path / "z.csv")["parameters"]["multiset"] == "neighbourhood"


# --- what people see ------------------------------------------------------------------------------------


def test_a_hint_where_every_edge_goes_one_way(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\nc,c\n")
    arguments = ["embed", tmp_path / "e.csv", "-o", tmp_path / "z.csv", "--dim", 4, "--n-layers", 1]
    result = ok(*arguments)
    (hint,) = [line for line in result.stderr.splitlines() if line.startswith("hint:")]
    assert "--undirected" in hint
    assert "--directed" in hint
    texts = ("hops(undirected=false)", "direction=in")
    for said in (["--undirected"], ["--directed"], ["--quiet"], *(["--multiset", text] for text in texts)):
        assert "hint:" not in ok(*arguments, *said).stderr
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,a\nb,c\n")
    assert "hint:" not in ok(*arguments).stderr


def test_warnings_are_lines_and_are_recorded(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,a\n")
    (tmp_path / "n.csv").write_text("id,x\na,1\nb,1\n")
    result = ok("embed", tmp_path / "e.csv", "-n", tmp_path / "n.csv", "-o", tmp_path / "z.csv", "--dim", 4, "-q")
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("warning: ") for line in lines)
    assert record_of(tmp_path / "z.csv")["warnings"] == [line.removeprefix("warning: ") for line in lines]
    assert np.isfinite(pd.read_csv(tmp_path / "z.csv").set_index("id").to_numpy()).all()


def test_quiet_is_quiet_and_the_summary_names_the_files(files, tmp_path):
    arguments = ["embed", files[0], "-n", files[1], "-o", tmp_path / "z.csv", "--seed", 0, *SMALL]
    assert str(tmp_path / "z.csv.run.json") in ok(*arguments).stdout
    assert ok(*arguments, "--quiet").output == ""


# --- failures: exit code 1, one sentence, nothing left behind -------------------------------------------


EDGES, NODES = "source,target\na,b\nb,c\n", "id,x,y\na,1,2\nb,3,4\nc,5,6\n"
BROKEN = {
    "repeated id": (EDGES, NODES + "a,1,2\n", r"'id' of .*nodes.csv' must be distinct, got 'a' again .*line 5"),
    "missing id": (EDGES, NODES + ",1,2\n", r"'id' of .*nodes.csv' must be complete"),
    "missing endpoint": ("source,target\na,b\n,c\n", NODES, r"'source' .*missing value in row 1"),
    "stranger in the edges": (EDGES + "c,zed\n", NODES, r"ids of '.*nodes.csv' must hold every node.*'zed'"),
    "edge columns": ("head,tail\na,b\n", NODES, r"got 'head', 'tail'"),
    "infinity": (EDGES, "id,x\na,1\nb,2\nc,inf\n", r"got infinity in row 2"),
    "negative weight": ("source,target,weight\na,b,-1\n", NODES, r"not negative, got -1 on edge a -> b"),
    "NaN weight": ("source,target,weight\na,b,nan\n", NODES, r"'weight' .*missing value in row 0"),
    "empty file": ("", NODES, r"it is empty"),
    "parquet called csv": (b"PAR1\0\0\0\0", NODES, r"looks like parquet"),
    "web page called csv": (EDGES, "<html><body>404</body></html>", r"looks like HTML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_input_is_one_sentence(tmp_path, case):
    edges, nodes, pattern = BROKEN[case]
    (tmp_path / "edges.csv").write_bytes(edges if isinstance(edges, bytes) else edges.encode())
    (tmp_path / "nodes.csv").write_text(nodes)
    arguments = ["embed", tmp_path / "edges.csv", "-n", tmp_path / "nodes.csv", "-o", tmp_path / "z.csv", "--directed"]
    fails(tmp_path, pattern, *arguments)


DEGENERATE = {
    "no edges": ("source,target\n", NODES),
    "one node": ("source,target\na,a\n", "id,x,y\na,1,2\n"),
    "constant features": (EDGES, "id,x\na,1\nb,1\nc,1\n"),
    "zero features": (EDGES, "id,x\na,0\nb,0\nc,0\n"),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_a_degenerate_graph_is_embedded(tmp_path, case):
    (tmp_path / "e.csv").write_text(DEGENERATE[case][0])
    (tmp_path / "n.csv").write_text(DEGENERATE[case][1])
    ok("embed", tmp_path / "e.csv", "-n", tmp_path / "n.csv", "-o", tmp_path / "z.csv")
    table = pd.read_csv(tmp_path / "z.csv").set_index("id")
    assert len(table) == DEGENERATE[case][1].count("\n") - 1
    assert np.isfinite(table.to_numpy()).all()


def test_graphs_without_nodes_or_with_endpoints_out_of_range(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n")
    fails(tmp_path, "at least one node", "embed", tmp_path / "e.csv", "-o", tmp_path / "z.csv")
    np.savez(tmp_path / "e.npz", edge_index=[[0, 1], [1, 5]], ids=["a", "b", "c"])
    fails(tmp_path, "nodes 0 to 2, got 5 in edge 1", "embed", tmp_path / "e.npz", "-o", tmp_path / "z.csv")
    np.savez(tmp_path / "e.npz", edge_index=[[0, 1], [1, 5]], x=np.ones((3, 2)))
    fails(tmp_path, "no entry for 5", "embed", tmp_path / "e.npz", "-o", tmp_path / "z.csv")


def test_the_first_row_with_nan_of_an_array_is_named(files, tmp_path):
    X = np.ones((12, 2), dtype=np.float32)
    X[[4, 7], 1] = np.nan
    ids, nodes = pd.read_csv(files[1])["id"], tmp_path / "nan.npz"
    np.savez(nodes, x=X, ids=ids.to_numpy().astype(str))
    fails(tmp_path, "got NaN in row 4", "embed", files[0], "-n", nodes, "-o", tmp_path / "z.csv")


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv.gz"])
def test_a_text_under_another_name_is_one_sentence(files, tmp_path, suffix):
    (tmp_path / f"fake{suffix}").write_text(EDGES)
    fails(tmp_path, "cannot be read", "embed", tmp_path / f"fake{suffix}", "-o", tmp_path / "z.csv")


def test_other_paths_and_columns_that_are_not_there(files, tmp_path):
    edges, nodes = files
    out = tmp_path / "z.csv"
    fails(tmp_path, "does not exist", "embed", tmp_path / "absent.csv", "-o", out)
    fails(tmp_path, "does not exist", "embed", edges, "-n", tmp_path / "absent.csv", "-o", out)
    fails(tmp_path, r"must end in .csv, .*'edges.docx'", "embed", tmp_path / "edges.docx", "-o", out)
    fails(tmp_path, "no column 'paper'", "embed", edges, "-n", nodes, "-o", out, "--id-column", "paper")
    fails(tmp_path, "no column 'label'", "embed", edges, "-n", nodes, "-o", out, "--drop", "label")
    fails(tmp_path, "absent", "embed", edges, "-n", nodes, "-o", out, "--model", tmp_path / "absent")
    fails(tmp_path, "truncated or foreign", "embed", edges, "-n", nodes, "-o", out, "--model", edges)


@pytest.mark.parametrize(
    "place", ["absent/z.csv", "edges.csv/z.csv", "folder.csv", "z.docx", "edges.csv", "sealed/z.csv"]
)
@pytest.mark.parametrize("option", ["-o", "--save"])
def test_an_unwritable_output_is_found_before_the_work(files, tmp_path, monkeypatch, place, option):
    def never(*args, **kwargs):
        raise AssertionError("the work began")

    monkeypatch.setattr(embed_module, "read_inputs", never)
    monkeypatch.setattr(embed_module, "make_estimator", never)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "sealed").mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "sealed" and real(path, mode))
    if place == "z.docx" and option == "--save":
        pytest.skip("a model may have any name")
    paths = {"-o": tmp_path / "z.csv", "--save": tmp_path / "m", option: tmp_path / place}
    pattern = "writable|does not exist|is a folder|must end in|own path"
    fails(tmp_path, pattern, "embed", files[0], "-o", paths["-o"], "--save", paths["--save"])


@pytest.mark.skipif(sys.platform == "win32", reason="asks the file system for its longest name")
def test_names_as_long_as_the_file_system_takes_them(files, tmp_path, monkeypatch):
    arguments = ["embed", files[0], "-n", files[1], *SMALL, "-q"]
    out = tmp_path / ("z" * (os.pathconf(tmp_path, "PC_NAME_MAX") - len(".npz.run.json")) + ".npz")
    ok(*arguments, "-o", out)
    assert out.with_name(out.name + ".run.json").is_file()
    monkeypatch.setattr(embed_module, "make_estimator", None)  # which is not called
    fails(tmp_path, "cannot be written.*shorter", *arguments, "-o", out.with_name("z" + out.name))


def test_an_unexpected_error_points_to_debug(files, tmp_path, monkeypatch):
    def break_down(*args, **kwargs):
        raise RuntimeError("the\nroof leaks")

    monkeypatch.setattr(FisherEmbedding, "fit_transform", break_down)
    arguments = ["embed", files[0], "-n", files[1], "-o", tmp_path / "z.csv", *SMALL]
    fails(tmp_path, "unexpected RuntimeError: the roof leaks; add --debug", *arguments)
    result = call(*arguments, "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_a_failed_write_leaves_the_old_output(files, tmp_path, monkeypatch):
    arguments = ["embed", files[0], "-n", files[1], "-o", tmp_path / "z.npz", *SMALL]
    ok(*arguments)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "open", full)
    fails(tmp_path, "No space left", *arguments)


# --- wrong calls: exit code 2 ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ([], "Missing argument"),
        (["e.csv"], "--output"),
        (["e.csv", "-o", "z.csv", "--nonsense"], "nonsense"),
        (["e.csv", "-o", "z.csv", "--n-layers", "-1"], "--n-layers"),
        (["e.csv", "-o", "z.csv", "--n-layers", "x"], "--n-layers"),
        (["e.csv", "-o", "z.csv", "--family", "sharpness=2"], "'--family'.*sharpness"),
        (["e.csv", "-o", "z.csv", "--family", "sharpness=0"], "'--family'.*sharpness"),
        (["e.csv", "-o", "z.csv", "--kernel", "bandwidth=nan"], "'--kernel'.*bandwidth"),
        (["e.csv", "-o", "z.csv", "--family", "gaussian-mixture(variance=-1)"], "'--family'.*variance"),
        (["e.csv", "-o", "z.csv", "--seed", str(2**32)], "seed"),
        (["e.csv", "-o", "z.csv", "--preset", "full"], "'--preset'.*published-code.*'full'"),
        (["e.csv", "-o", "z.csv", "--multiset", "all"], "--multiset.*neighbourhood.*'all'"),
        (["e.csv", "-o", "z.csv", "--multiset", "hops(weights=w)"], "'--multiset'.*uniform.*symmetric.*'w'"),
        (["e.csv", "-o", "z.csv", "--multiset", "hops(q=1)"], "hops has no option 'q'.*decay"),
        (["e.csv", "-o", "z.csv", "--multiset", "direction=up"], "'--multiset'.*'in', 'out', 'both'.*'up'"),
        (["e.csv", "-o", "z.csv", "--multiset", "direction=both", "--undirected"], "undirected"),
        (["e.csv", "-o", "z.csv", "--multiset", "q=1"], "--multiset has no option 'q'.*closed"),
        (["e.csv", "-o", "z.csv", "--multiset", "hops(k=print(1))"], "--multiset must be a name"),
        (["e.csv", "-o", "z.csv", "--multiset", "hops(" + "(" * 900], "--multiset must be a name"),
        (["e.csv", "-o", "z.csv", "--multiset", "h" * 1001], "--multiset must have at most 1000 characters"),
        (["e.csv", "-o", "z.csv", "--block-weights", "1,2"], "--block-weights"),
        (["e.csv", "-o", "z.csv", "--structure", "all"], "factors, spectral,.*projection, local, degree"),
        (["e.csv", "-o", "z.csv", "--drop", "label"], "need a node table"),
        (["e.csv", "-o", "z.csv", "-n", "n.npz", "--id-column", "id"], "need a node table"),
        (["e.csv", "-o", "z.csv", "--model", "m", "--em", "n_iter=1"], "--em belongs to fitting"),
        (["e.csv", "-o", "z.csv", "--model", "m", "--seed", "1", "--save", "s"], "--seed, --save belong"),
        (["e.csv", "-o", "z.csv", "--model", "m", "--undirected"], "--undirected belongs to fitting"),
    ],
)
def test_a_wrong_call(arguments, pattern, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong(pattern, "embed", *arguments)
    assert not list(tmp_path.iterdir())


# --- the real command -----------------------------------------------------------------------------------


def command(*arguments, **more):
    line = [sys.executable, "-m", "fishergraph", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **more)


def test_the_command_as_people_call_it(files, tmp_path):
    done = command("embed", "edges.csv", "--nodes", "nodes.csv", "-o", "z.parquet", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("z.parquet: 12 nodes x 23 columns")
    assert done.stderr.startswith("read edges.csv: 12 nodes, 42 edges with direction")
    assert done.stderr.splitlines()[1:] == ["columns: 3 numbers (f0, f1, f2) as they are."]
    assert record_of(tmp_path / "z.parquet")["command"].startswith("fishergraph embed edges.csv --nodes nodes.csv")
    broken = command("embed", "edges.csv", "--nodes", "edges.csv", "-o", "y.csv", cwd=tmp_path)
    assert broken.returncode == 1
    assert broken.stderr.count("\n") == 1
    assert command("embed", "edges.csv", cwd=tmp_path).returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a reader who leaves is seen otherwise there")
@pytest.mark.parametrize("arguments", [["data", "list"], ["data", "info", "cora"], ["--version"]])
def test_a_reader_who_leaves_is_no_failure(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-m", "fishergraph", *arguments]
    done = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.stderr == ""
    if arguments[0] == "data":
        assert done.returncode == 0


def test_the_work_goes_on_where_nobody_reads_what_is_said(files, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-m", "fishergraph", "embed", files[0], "-n", files[1], "-o", tmp_path / "z.csv", *SMALL]
    done = subprocess.run([str(word) for word in line], stderr=writer, stdout=writer, check=False)
    os.close(writer)
    assert done.returncode == 0
    assert (tmp_path / "z.csv").is_file()


def test_an_interrupt_while_commands_are_imported():
    code = (
        "import sys; from importlib.abc import MetaPathFinder\n"
        "class Stop(MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from fishergraph.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_version_and_a_light_start():
    assert command("--version").stdout == f"fishergraph {__version__}\n"
    code = (
        "import sys; from fishergraph.cli import app; from typer.testing import CliRunner; "
        "assert CliRunner().invoke(app, ['embed', '--help']).exit_code == 0; "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'numpy', 'pyarrow', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is not a signal there")
def test_interrupted(tmp_path):
    # Two million edges, each one way, keep it busy after the hint has been read.
    ends = np.sort(np.random.default_rng(0).integers(0, 100_000, (2, 2_000_000)), axis=0)
    np.savez(tmp_path / "e.npz", edge_index=ends)
    line = [sys.executable, "-m", "fishergraph", "embed", "e.npz", "-o", "z.csv", "--dim", "64"]
    process = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("read e.npz: 100,000 nodes")
        assert process.stderr.readline().startswith("hint: ")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert stderr == "interrupted; no file was left half-written.\n"
    assert os.listdir(tmp_path) == ["e.npz"]
