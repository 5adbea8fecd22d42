"""Graphs of PyTorch Geometric: objects, datasets of one graph, processed files; nothing in a file is run."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fishergraph._errors import InputError, InputTypeError
from fishergraph.datasets import load_graph, read_graph
from published import N, both_ways, example, reddit_files, write_files

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
from torch_geometric.data import Data, HeteroData, InMemoryDataset  # noqa: E402
from torch_geometric.datasets import Reddit  # noqa: E402

DATA = example()


def mask(*parts):
    marks = np.zeros((N, len(parts)), dtype=bool)
    for k, part in enumerate(parts):
        marks[part, k] = True
    return torch.from_numpy(marks[:, 0] if len(parts) == 1 else marks)


def pyg(**changes):
    fields = {
        "x": torch.from_numpy(DATA["x"]),
        "edge_index": torch.from_numpy(DATA["edges"].T.copy()),
        "y": torch.from_numpy(DATA["y"]),
        **{f"{part}_mask": mask(DATA[part]) for part in ("train", "val", "test")},
    }
    return Data(**{key: value for key, value in {**fields, **changes}.items() if value is not None})


def same(data):
    np.testing.assert_array_equal(data.graph.toarray(), both_ways(DATA["edges"]))
    np.testing.assert_array_equal(data.X.toarray() if hasattr(data.X, "toarray") else data.X, DATA["x"])
    np.testing.assert_array_equal(data.y, DATA["y"])
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(data, part), DATA[part])


class Saved(InMemoryDataset):
    """A dataset of PyTorch Geometric with the given graphs."""

    def __init__(self, root, graphs):
        self.graphs = graphs
        super().__init__(str(root))
        self.load(self.processed_paths[0])

    processed_file_names = ("data.pt",)

    def process(self):
        self.save(self.graphs, self.processed_paths[0])


def test_an_object():
    same(load_graph(pyg()))
    same(read_graph(pyg(y=torch.from_numpy(DATA["y"])[:, None])))  # labels as OGB shapes them
    same(read_graph(pyg(x=torch.from_numpy(DATA["x"]).to_sparse_csr())))
    assert read_graph(pyg(), "mine").name == "mine"


def test_a_dataset_its_folder_and_its_file(tmp_path):
    dataset = Saved(tmp_path / "small", [pyg()])
    for source in (dataset, tmp_path / "small", tmp_path / "small" / "processed" / "data.pt"):
        same(load_graph(source))
    assert load_graph(dataset).name == "saved"
    assert load_graph(tmp_path / "small").name == "small"


def test_the_older_form_of_a_file(tmp_path):
    torch.save((pyg(), None), tmp_path / "data.pt")
    before = set(torch.serialization.get_safe_globals())
    same(read_graph(tmp_path / "data.pt"))
    assert set(torch.serialization.get_safe_globals()) == before


def test_the_raw_files_win_over_the_processed_ones(tmp_path):
    write_files(tmp_path / "raw", reddit_files(DATA))
    Reddit(str(tmp_path))
    same(read_graph(tmp_path))
    same(read_graph(tmp_path / "processed"))


def test_several_splits_and_none():
    two = {f"{part}_mask": mask(DATA[part], DATA[part][:2]) for part in ("train", "val", "test")}
    data = read_graph(pyg(**two))
    assert data.n_splits == 2
    np.testing.assert_array_equal(data.split(1)[2], DATA["test"][:2])
    assert read_graph(pyg(train_mask=None, val_mask=None, test_mask=None)).n_splits == 0


def test_a_split_of_ogb():
    class Benchmark(InMemoryDataset):
        name = "ogbn-small"

        def __init__(self):
            super().__init__(None)
            self.data, self.slices = self.collate([pyg(train_mask=None, val_mask=None, test_mask=None)])

        def get_idx_split(self):
            return {
                name: torch.from_numpy(DATA[part])
                for name, part in zip(("train", "valid", "test"), ("train", "val", "test"), strict=True)
            }

    data = read_graph(Benchmark())
    same(data)
    assert data.name == "ogbn-small"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pyg(y=None), "have y"),
        (pyg(edge_index=None), "must have edge_index"),
        (pyg(y=torch.ones(N, 3)), "label"),
        (pyg(edge_index=torch.zeros(3, 4).long()), "edge_index"),
        (pyg(edge_index=torch.tensor([[0.5], [1.0]])), "integers"),
        (pyg(edge_index=torch.tensor([[0], [99]])), "nodes 0 to 29"),
        (pyg(x=torch.full((N, 2), torch.nan)), "NaN in row 0"),
        (HeteroData(), "to_homogeneous"),
    ],
)
def test_objects_that_do_not_fit(source, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        read_graph(source)


def test_a_set_of_graphs(tmp_path):
    dataset = Saved(tmp_path, [pyg(), pyg()])
    with pytest.raises(ValueError, match="2 graphs"):
        read_graph(dataset)
    with pytest.raises(ValueError, match="got 2"):
        read_graph(tmp_path)


class Calls:
    """A pickle of this calls a function when it is read."""

    def __reduce__(self):
        return _must_not_run, ()


def _must_not_run():
    raise AssertionError("the file ran code")


@pytest.mark.parametrize("content", [{"edge_index": Calls()}, (Calls(), None)])
def test_a_file_runs_nothing(tmp_path, content):
    torch.save(content, tmp_path / "data.pt")
    with pytest.raises(
        ValueError,
        match="_must_not_run",
    ) as caught:
        read_graph(tmp_path / "data.pt")
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value)


def pickled(obj) -> bytes:
    return pickle.dumps(obj)


def zipped(method) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("data/data.pkl", pickled({"edge_index": 1}))
    return file.getvalue()


DAMAGED = {
    "text": b"no such file",
    "cut": b"PK\x03\x04 cut",
    "a pickle": pickled({"edge_index": 1}),
    "a pickle of a class": pickled(Path("x")),
    "another zip file": zipped(zipfile.ZIP_STORED),
    "packed": zipped(zipfile.ZIP_DEFLATED),
    "empty pickle": b"\x80\x02.",
    "html": b"<!DOCTYPE html>",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_in_our_words(tmp_path, content):
    (tmp_path / "data.pt").write_bytes(content)
    with pytest.raises(ValueError, match="processed") as caught:
        read_graph(tmp_path)
    assert "weights_only" not in str(caught.value)
    assert "torch.load" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edge_index": [[0], [1]]}, "edge_index"),
        ({"y": "text"}, "y of data"),
        ({"y": torch.full((N,), 0.5)}, "0.5"),
        ({"y": torch.full((N,), 1e30)}, "class numbers"),
        (
            {"y": torch.zeros(N, dtype=torch.complex64)},
            "complex",
        ),
        (
            {"x": torch.ones(N + 1, 2), "num_nodes": N},
            "30 nodes",
        ),
        ({"x": torch.tensor(1.0)}, "num_nodes"),
        ({"x": [1, 2]}, "num_nodes|x of data"),
        ({"num_nodes": -3, "x": None}, "num_nodes"),
        ({"num_nodes": "many", "x": None}, "num_nodes"),
        ({"train_mask": torch.arange(N)}, "train_mask"),
        ({"train_mask": torch.ones(3).bool()}, "train_mask"),
    ],
)
def test_a_file_of_other_fields(tmp_path, fields, message):
    torch.save((pyg().to_dict() | fields, {}), tmp_path / "data.pt")
    with pytest.raises(ValueError, match=message):
        read_graph(tmp_path / "data.pt")


@pytest.mark.parametrize("slices", [{"x": torch.tensor([0, 1])}, [1], torch.zeros(3), "a"])
def test_a_file_of_other_borders(tmp_path, slices):
    torch.save((pyg().to_dict(), slices), tmp_path / "data.pt")
    with pytest.raises(ValueError, match="got 0"):
        read_graph(tmp_path / "data.pt")


def test_times_and_small_floats_keep_their_digits(tmp_path):
    times = torch.arange(1_700_000_000, 1_700_000_000 + N).reshape(-1, 1)
    np.testing.assert_array_equal(read_graph(pyg(x=times)).X, times.numpy())
    halves = torch.randn(N, 3).bfloat16()
    np.testing.assert_array_equal(read_graph(pyg(x=halves)).X, halves.float().numpy())


def test_a_file_of_something_else(tmp_path):
    torch.save({"weights": torch.ones(3)}, tmp_path / "data.pt")
    with pytest.raises(ValueError, match="dict"):
        read_graph(tmp_path / "data.pt")
