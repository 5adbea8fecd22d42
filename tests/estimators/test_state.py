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
    with pytest.raises(FileNotFoundError, match="does not exist") as error:
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


# --- parts that do not fit ------------------------------------------------------------------------------


def rewrite_arrays(path, change) -> None:
    """The same file with other arrays, without a checksum: `change(arrays)` changes them."""
    with safe_open(str(path), framework="numpy") as file:
        metadata = {key: value for key, value in file.metadata().items() if key != "checksum"}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(arrays)
    save_file({name: np.array(array, order="C") for name, array in arrays.items()}, str(path), metadata=metadata)


def put(name, value):
    """Change an array in its first entry, or all of it by a function."""

    def change(arrays):
        if callable(value):
            arrays[name] = value(arrays[name])
        else:
            arrays[name].reshape(-1)[0] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("layer2.anchors", np.nan), "array 'layer2.anchors' does not hold finite numbers"),
        (put("layer2.anchors", np.inf), "array 'layer2.anchors' does not hold finite numbers"),
        (put("layer2.anchors", 1e30), r"layer2.anchors must lie between -1e\+16 and 1e\+16"),
        (put("layer2.anchors", lambda a: a[:, :-1]), "counts must be that of the fit"),
        (
            put("layer2.anchors", lambda a: a[0]),
            r"must be floats of shape \(n, n\), got float32 of \(5,\)",
        ),
        (put("layer2.anchors", lambda a: a[:0]), r"layer2.anchors must be floats of shape"),
        (put("layer2.anchors", lambda a: a.astype(np.float16)), "layer2.anchors must be floats"),
        (put("layer2.anchors", lambda a: a.astype(np.int64)), "layer2.anchors must be floats"),
        (put("layer2.anchors", lambda a: a[:1]), "counts must be that of the fit"),
        (put("input.landmarks", 2.0), "input.landmarks must be unit vectors"),
        (put("input.landmarks", lambda a: a[:, :-1]), "input must take rows of 6 columns, got a map of 5"),
        (put("input.root", 1e9), "input.root must lie between -10000 and 10000"),
        (put("input.root", lambda a: a[:, :-1]), r"input.root must be floats of shape \(5, 5\)"),
        (lambda arrays: arrays.pop("layer1.root"), r"parts missing or unknown \('layer1.root'\)"),
        (lambda arrays: arrays.update(extra=X), r"parts missing or unknown \('extra'\)"),
    ],
)
def test_arrays_that_do_not_fit(saved, change, words):
    rewrite_arrays(saved, change)
    with pytest.raises(ValueError, match=words) as error:
        FisherEmbedding.load(saved)
    assert str(saved) in one_sentence(error)


@pytest.mark.parametrize(
    ("family", "change", "words"),
    [
        ("diagonal-mixture", put("layer2.variances", -1.0), "layer2.variances must be positive"),
        ("diagonal-mixture", put("layer2.variances", lambda a: a * np.float32(1e-20)), "layer2.means must be within"),
        ("diagonal-mixture", put("layer2.log_weights", 3.0), "logarithms of weights that sum to one"),
        ("diagonal-mixture", put("layer2.origin", lambda a: a[:-1]), "layer2.origin must be floats of shape"),
        ("gaussian", put("layer2.covariances", -9.0), "symmetric and positive definite"),
        (
            "gaussian",
            put("layer2.covariances", lambda a: a * np.float32(1e-20)),
            "of layer2 must be at least 1e-18",
        ),
        ("von-mises-fisher", put("layer2.means", 2.0), "layer2.means must be shorter than one"),
        ("von-mises-fisher", put("layer2.concentrations", 1e6), "concentrations must be those of the means"),
        ("multinomial", put("layer1.probabilities", 0.9), "probabilities must be positive and sum to one"),
    ],
)
def test_parameters_that_no_family_has(tmp_path, family, change, words):
    path = tmp_path / "m.safetensors"
    small(family=family).fit(np.abs(X), graph=A).save(path)
    rewrite_arrays(path, change)
    with pytest.raises(ValueError, match=words) as error:
        FisherEmbedding.load(path)
    one_sentence(error)


def layers(path) -> list:
    with safe_open(str(path), framework="numpy") as file:
        return json.loads(file.metadata()["model"])["layers"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_features_in": 7}, "input must take rows of 7 columns"),
        ({"n_features_in": "6"}, "n_features_in must be an integer"),
        ({"feature_names_in": ["a"]}, "the 6 features have 1 names"),
        ({"feature_names_in": [[]] * 6}, "feature_names_in is no list of names"),
        ({"structural": True, "structure_seed": None}, "structure_seed"),
        ({"input_map": {"kind": "identity", "n_outputs": 6}}, "parts missing or unknown|must have a NystromMap"),
        ({"input_map": {"kind": "nothing"}}, "parts missing or unknown"),
        ({"input_map": {"kind": "nystrom", "bandwidth": 1e-9}}, "bandwidth of input must be a finite number"),
        ({"input_map": {"kind": "nystrom", "bandwidth": 1.0, "more": 1}}, "parts missing or unknown"),
        ({"extra": 1}, "parts missing or unknown"),
        ({"walk_map": None}, "features must be walked or not as in the fit"),
        ({"params": {**small().get_params(), "n_layers": 10**9}}, "n_layers must be"),
        ({"params": {**small().get_params(), "dim": "5"}}, "dim must be an integer"),
        ({"params": {**small().get_params(), "device": "tpu"}}, "device must be one of"),
        ({"params": {**small().get_params(), "backend": "abacus"}}, "backend .or None. must be one of"),
        ({"params": {**small().get_params(), "kernel": "identity"}}, "must have|that of the fit"),
    ],
)
def test_headers_that_do_not_fit(saved, change, words):
    rewrite_model(saved, **change)
    with pytest.raises(ValueError, match=words) as error:
        FisherEmbedding.load(saved)
    assert str(saved) in one_sentence(error)


@pytest.mark.parametrize("variance", [0, -1.0, float("nan"), "1", None, True, 1e-300])
def test_a_variance_that_is_none(saved, variance):
    changed = layers(saved)
    changed[1]["variance"] = variance
    rewrite_model(saved, layers=changed)
    with pytest.raises(ValueError, match=r"variance of layer2 must be|layer2.anchors must be within"):
        FisherEmbedding.load(saved)


@pytest.mark.parametrize("model", ["[" * 100_000, "3", "null", "9" * 10_000, '{"class": ' * 5000, "{}"])
def test_a_header_that_is_no_object(saved, model):
    rewrite(saved, model=model)
    with pytest.raises(ValueError, match="must be a model file written by save") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


@pytest.mark.parametrize("version", ["9" * 5000, "²", "-1", ""])
def test_a_version_that_is_no_number(saved, version):
    rewrite(saved, format_version=version)
    with pytest.raises(ValueError, match="another program"):
        FisherEmbedding.load(saved)


def test_one_flipped_bit_is_found(saved):
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="got a damaged one, whose checksum differs") as error:
        FisherEmbedding.load(saved)
    one_sentence(error)


def test_a_file_without_a_checksum_is_read(saved):
    before = FisherEmbedding.load(saved).transform(X, graph=A)
    rewrite(saved)
    np.testing.assert_array_equal(FisherEmbedding.load(saved).transform(X, graph=A), before)


def test_a_model_of_an_absent_device_can_be_loaded(tmp_path):
    path = tmp_path / "m.safetensors"
    small().fit(X, graph=A).set_params(device="cuda", backend="triton").save(path)
    assert FisherEmbedding.load(path).backend == "triton"
