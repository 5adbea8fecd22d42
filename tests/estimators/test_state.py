"""Model files: the same bits after reload, and a sentence for every file that is not one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError

from fishergraph import FisherEmbedding, Hops, PageRank
from fishergraph.estimators import model_file

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 6)).astype(np.float32)
A = sp.random_array((30, 30), density=0.1, rng=rng, format="csr")


def small(**changes) -> FisherEmbedding:
    return FisherEmbedding(**{"n_layers": 2, "n_anchors": 2, "dim": 5, "random_state": 0, **changes})


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    small().fit(X, graph=A).save(path)
    return path


def rewrite(path, **changes) -> None:
    """The same file with other metadata, without a checksum; None removes an entry."""
    with safe_open(str(path), framework="numpy") as file:
        metadata = {**file.metadata(), "checksum": None, **changes}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(arrays, str(path), metadata={key: value for key, value in metadata.items() if value is not None})


def rewrite_model(path, **changes) -> None:
    """The same file with other entries in the model's header; None removes one."""
    with safe_open(str(path), framework="numpy") as file:
        header = {**json.loads(file.metadata()["model"]), **changes}
    rewrite(path, model=json.dumps({key: value for key, value in header.items() if value is not None}))


def one_sentence(error) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert ";" in message  # expected and got; what to do
    return message


# --- there and back -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention": "reference"},
        {"kernel": "identity"},
        {"n_layers": 0},
        {"n_em_iter": 2, "counts": True, "prior": 0.5, "variance": np.float32(0.25)},
        {"block_weights": np.array([0.0, 1.0, 2.0, 1.0]), "dim": np.int64(3)},
        {"random_state": np.random.RandomState(3)},
        {"multiset": "heat", "weights": "symmetric"},
        {"multiset": PageRank(teleport=np.float64(0.2), members=np.int64(5))},
    ],
    ids=lambda value: ",".join(value) or "defaults" if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_model_comes_back_bit_for_bit(tmp_path, changes, dtype):
    model = small(**changes).fit(X.astype(dtype), graph=A)
    model.save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(tmp_path / "m.safetensors")
    for data in (X.astype(dtype), sp.csr_array(X.astype(dtype))):
        np.testing.assert_array_equal(again.transform(data, graph=A), model.transform(data, graph=A))
    assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())
    assert again.n_features_in_ == 6


@pytest.mark.parametrize("structure", ["projection", "degree", "spectral"])
@pytest.mark.parametrize("random_state", [None, 4])
@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
def test_a_model_of_structure_keeps_its_seed(tmp_path, structure, random_state):
    model = small(structure=structure, random_state=random_state).fit(None, graph=A)
    model.save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(None, graph=A), model.transform(None, graph=A))


def test_parameters_come_back(tmp_path):
    model = small(variance=0.5, weights="symmetric", undirected=True, block_weights=(1, 0, 2, 1), n_jobs=1)
    model.fit(X, graph=A).save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(str(tmp_path / "m.safetensors"))
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.fit_transform(X, graph=A), model.transform(X, graph=A))


def test_a_record_comes_back_as_one(tmp_path):
    model = small(multiset=PageRank(teleport=0.2, members=None)).fit(X, graph=A)
    model.save(tmp_path / "m.safetensors")
    assert FisherEmbedding.load(tmp_path / "m.safetensors").multiset == PageRank(teleport=0.2, members=None)


def test_an_unknown_record_is_a_foreign_file(saved):
    rewrite_model(saved, params={**small().get_params(), "multiset": {"record": "Walk", "length": 3}})
    with pytest.raises(ValueError, match="must be a model file written by save") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


def test_what_is_no_value_becomes_the_default(tmp_path):
    class Bar:
        def __init__(self, title, steps): ...
        def __enter__(self):
            return self

        def __exit__(self, *error): ...
        def update(self, n): ...

    model = small(random_state=np.random.RandomState(0), verbose=Bar).fit(X, graph=A)
    model.save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(tmp_path / "m.safetensors")
    assert again.random_state is None
    assert again.verbose is False


def test_feature_names_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=[f"word {k}" for k in range(6)])
    model = small().fit(frame, graph=A)
    model.save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(tmp_path / "m.safetensors")
    assert list(again.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(again.transform(frame, graph=A), model.transform(frame, graph=A))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[frame.columns[::-1]], graph=A)


def test_the_file_is_an_ordinary_one(saved, tmp_path):
    (tmp_path / "plain").write_text("")
    assert saved.stat().st_mode == (tmp_path / "plain").stat().st_mode
    with safe_open(str(saved), framework="numpy") as file:
        assert file.metadata()["format"] == "fishergraph-model"
        assert json.loads(file.metadata()["model"])["params"]["dim"] == 5


# --- files that are not models --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match="model file written by save, got a truncated or foreign file") as error:
        FisherEmbedding.load(saved)
    assert str(saved) in one_sentence(error)


@pytest.mark.parametrize("content", [b"source,target\n1,2\n", b"\x80\x04\x95pickle", b"PK\x03\x04", bytes(64)])
def test_a_file_of_another_kind(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="got a truncated or foreign file") as error:
        FisherEmbedding.load(path)
    one_sentence(error)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "fishergraph-model"}])
def test_a_safetensors_file_of_another_program(tmp_path, metadata):
    path = tmp_path / "weights.safetensors"
    save_file({"weight": X}, str(path), metadata=metadata)
    with pytest.raises(ValueError, match="got a safetensors file of another program") as error:
        FisherEmbedding.load(path)
    one_sentence(error)


@pytest.mark.parametrize("missing", ["nothing", "folder"])
def test_no_file(tmp_path, missing):
    path = tmp_path if missing == "folder" else tmp_path / "none.safetensors"
    with pytest.raises(FileNotFoundError, match=r"a model file is expected at .*, got none; check the path") as error:
        FisherEmbedding.load(path)
    one_sentence(error)


def test_a_newer_format(saved):
    rewrite(saved, format_version=str(model_file.FORMAT_VERSION + 1))
    with pytest.raises(ValueError, match=r"format 1 or older, got format 2; upgrade fishergraph") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


def test_an_unreadable_version_or_header(saved):
    rewrite(saved, format_version="one")
    with pytest.raises(ValueError, match="another program"):
        FisherEmbedding.load(saved)
    rewrite(saved, format_version="1", model="{not json")
    with pytest.raises(ValueError, match="header cannot be read") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


def test_a_model_of_another_class(saved):
    rewrite_model(saved, **{"class": "FisherSetEmbedding"})
    with pytest.raises(ValueError, match=r"a FisherEmbedding, got a FisherSetEmbedding; load it with") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


@pytest.mark.parametrize("change", [{"params": {"no_such": 1}}, {"layers": None}, {"layers": [{}]}, {"class": None}])
def test_a_header_with_parts_missing(saved, change):
    rewrite_model(saved, **change)
    with pytest.raises(ValueError, match="parts missing or unknown") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


# --- writing --------------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("safetensors.numpy.save", fail)
    with pytest.raises(OSError, match="disk full"):
        small(dim=3).fit(X, graph=A).save(saved)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_an_interrupted_move_leaves_nothing_behind(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupt(*args):
        raise KeyboardInterrupt

    model = small(dim=3).fit(X, graph=A)
    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.save(saved)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_saving_replaces_the_old_file(saved):
    model = small(dim=3).fit(X, graph=A)
    model.save(saved)
    np.testing.assert_array_equal(FisherEmbedding.load(saved).transform(X, graph=A), model.transform(X, graph=A))


def test_saving_nowhere(tmp_path):
    model = small().fit(X, graph=A)
    with pytest.raises(FileNotFoundError, match=r"the folder of .* must exist") as error:
        model.save(tmp_path / "no" / "m.safetensors")
    one_sentence(error)
    with pytest.raises(IsADirectoryError, match="the output must be a file, got the folder") as error:
        model.save(tmp_path)
    one_sentence(error)


def test_only_a_fitted_model_is_saved(tmp_path):
    with pytest.raises(NotFittedError, match="not fitted"):
        small().save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_record_that_load_could_not_find_is_not_written(tmp_path):
    class Own(Hops):
        pass

    model = small(multiset=Own()).fit(X, graph=A)
    with pytest.raises(ValueError, match=r"a record in a model file must be one of .* got Own") as error:
        model.save(tmp_path / "m.safetensors")
    one_sentence(error)
    assert not list(tmp_path.iterdir())
