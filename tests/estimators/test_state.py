"""Model files: the same bits after reload, and a `FileFormatError` for every file that is not one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError

from fishergraph import (
    EM,
    DiagonalMixture,
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    HeatKernel,
    Hops,
    MultinomialMixture,
    Neighbourhood,
    Nystrom,
    PageRank,
    Readout,
    Structure,
    Tuples,
    VonMisesFisherMixture,
    Walk,
)
from fishergraph._errors import FileFormatError, InputError
from fishergraph.device import Device
from fishergraph.io import array_file
from models import PUBLISHED

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


def header_of(path) -> dict:
    with safe_open(str(path), framework="numpy") as file:
        return json.loads(file.metadata()["model"])


def rewrite_model(path, **changes) -> None:
    """The same file with other entries in the model's header; None removes one."""
    header = {**header_of(path), **changes}
    rewrite(path, model=json.dumps({key: value for key, value in header.items() if value is not None}))


def rewrite_entry(path, place: str, value) -> None:
    """The same file with another value at a path of the header, such as "params.dim"; None removes it."""
    header = header_of(path)
    *parents, last = place.split(".")
    entry = header
    for name in parents:
        entry = entry[int(name) if isinstance(entry, list) else name]
    if value is None:
        del entry[last]
    else:
        entry[last] = value
    rewrite(path, model=json.dumps(header))


def refused(path, word: str, kind=FisherEmbedding) -> FileFormatError:
    """The error of a file that is refused, which names the file."""
    with pytest.raises(FileFormatError, match=word) as error:
        kind.load(path)
    assert error.value.path == path
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return error.value


# --- there and back -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        PUBLISHED,
        {"kernel": "identity"},
        {"n_layers": 0},
        {"em": EM(n_iter=2, prior=0.5), "counts": True, "family": GaussianMixture(variance=np.float32(0.25))},
        {"block_weights": np.array([0.0, 1.0, 2.0, 1.0, 0.5, 0.0, 1.0]), "dim": np.int64(3)},
        {"block_weights": {"walk": np.float32(0.5), "psi0": 0, "local": 1}},
        {"structure": None},
        {"structure": Structure(["spectral", "degree"], n_factors=np.int64(4), weight=np.float64(0.2))},
        {"random_state": np.random.RandomState(3)},
        {"multiset": HeatKernel(weights="symmetric")},
        {"multiset": Neighbourhood(closed=False, undirected=True), "walk": Walk(teleport=0.3), "device": Device()},
        {"family": DiagonalMixture(power=0.5, unit=True), "kernel": Nystrom(bandwidth=np.float64(0.9))},
        {"family": VonMisesFisherMixture(tangent="score"), "em": EM(init="random", max_samples=np.int32(20))},
        {"multiset": Tuples(k=2, s=None), "n_layers": 1},
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


@pytest.mark.parametrize("structure", ["projection", "degree", "spectral", "factors", "local"])
@pytest.mark.parametrize("random_state", [None, 4])
@pytest.mark.filterwarnings("ignore::fishergraph._errors.FewPointsWarning")
def test_a_model_of_structure_keeps_its_seed(tmp_path, structure, random_state):
    model = small(structure=structure, random_state=random_state).fit(None, graph=A)
    model.save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(None, graph=A), model.transform(None, graph=A))


def test_parameters_come_back(tmp_path):
    model = small(
        family=GaussianMixture(variance=0.5),
        em=EM(n_iter=2),
        multiset=Neighbourhood(weights="symmetric", undirected=True),
        walk=Walk(teleport=0.3),
        structure=Structure(("local", "projection"), n_factors=5),
        block_weights={"walk": 0, "local": 2},
        n_jobs=1,
    )
    model.fit(X, graph=A).save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(str(tmp_path / "m.safetensors"))
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.fit_transform(X, graph=A), model.transform(X, graph=A))


def test_components_come_back_as_they_were(tmp_path):
    family = MultinomialMixture(smoothing=0.1, following=DiagonalMixture(power=0.5))
    model = small(multiset=PageRank(teleport=0.2, members=None), family=family).fit(np.abs(X), graph=A)
    model.save(tmp_path / "m.safetensors")
    again = FisherEmbedding.load(tmp_path / "m.safetensors")
    assert again.multiset == PageRank(teleport=0.2, members=None)
    assert again.family == family
    assert again.kernel == "exp"  # a name stays a name


def test_a_model_of_sets_comes_back(tmp_path):
    sets = [rng.normal(size=(n, 3)) for n in (3, 5, 1, 4)]
    model = FisherSetEmbedding(n_anchors=2, dim=3, em=EM(n_iter=2), counts=True, random_state=0).fit(sets)
    model.save(tmp_path / "m.safetensors")
    again = FisherSetEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(sets), model.transform(sets))
    assert again.get_params() == model.get_params()
    assert again.layer_.family == model.layer_.family


def test_a_model_of_graphs_comes_back(tmp_path):
    graphs = [(rng.normal(size=(n, 2)), np.array([[0, 1], [1, 0]])) for n in (3, 4, 2)]
    nodes = FisherEmbedding(n_layers=1, n_anchors=2, dim=3, em=EM(prior=0.5), block_weights=(1, 0, 2, 1))
    readout = Readout(n_anchors=2, reading="both", family=GaussianMixture(sharpness=0.2), unit=True)
    model = FisherGraphEmbedding(nodes, readout, inputs=["features", "degrees"], random_state=0).fit(graphs)
    model.save(tmp_path / "m.safetensors")
    again = FisherGraphEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(graphs), model.transform(graphs))
    assert again.readout == readout
    assert again.nodes.get_params() == nodes.get_params()
    assert [layer is None for layer in again.readouts_] == [False, True, False, False]


@pytest.mark.parametrize(
    ("change", "parameter"), [({"multiset": "hops"}, "multiset"), ({"em": EM(n_iter=2)}, "em"), ({"dim": 4}, "dim")]
)
def test_parameters_of_a_loaded_model_may_not_change(saved, change, parameter):
    model = FisherEmbedding.load(saved).set_params(**change)
    with pytest.raises(InputError) as error:
        model.transform(X, graph=A)
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("multiset", {"kind": "Route", "length": 3}),
        ("multiset", {"kind": "Hops", "colour": 3}),
        ("multiset", {"kind": "Hops", "k": -1}),
        ("multiset", {"kind": "EM"}),
        ("multiset", {"length": 3}),
        ("multiset", {"kind": ["Hops"]}),
        ("family", {"kind": "GaussianMixture", "sharpness": {"kind": "Hops"}}),
        ("family", {"kind": "FisherEmbedding"}),
        ("em", {"kind": "EM", "n_iter": 10**30}),
        ("em", {}),
        ("walk", {"kind": "Walk", "teleport": 0}),
        ("kernel", {"kind": "PublishedNystrom"}),
    ],
)
def test_a_component_that_does_not_fit(saved, name, component):
    rewrite_entry(saved, f"params.{name}", component)
    refused(saved, "file|model")


def test_invalid_values_become_the_default(tmp_path):
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
    with pytest.raises(ValueError, match="feature names"):  # of scikit-learn
        again.transform(frame[frame.columns[::-1]], graph=A)


def test_the_file_is_an_ordinary_one(saved, tmp_path):
    (tmp_path / "plain").write_text("")
    assert saved.stat().st_mode == (tmp_path / "plain").stat().st_mode
    with safe_open(str(saved), framework="numpy") as file:
        assert file.metadata()["format"] == "fishergraph-model"
        assert file.metadata()["format_version"] == "2"
    header = header_of(saved)
    assert set(header) == {"class", "fishergraph", "params", "fitted", "state"}
    assert header["params"]["dim"] == 5


# --- files that are not models --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    refused(saved, "truncated")


@pytest.mark.parametrize("content", [b"source,target\n1,2\n", b"\x80\x04\x95pickle", b"PK\x03\x04", bytes(64)])
def test_a_file_of_another_kind(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    refused(path, "foreign")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "fishergraph-model"}])
def test_a_safetensors_file_of_another_program(tmp_path, metadata):
    path = tmp_path / "weights.safetensors"
    save_file({"weight": X}, str(path), metadata=metadata)
    refused(path, "another program")


@pytest.mark.parametrize("missing", ["nothing", "folder"])
def test_no_file(tmp_path, missing):
    path = tmp_path if missing == "folder" else tmp_path / "none.safetensors"
    with pytest.raises(FileNotFoundError, match="model file"):
        FisherEmbedding.load(path)


def test_a_newer_format(saved):
    rewrite(saved, format_version=str(array_file.FORMAT_VERSION + 1))
    refused(saved, "upgrade")


@pytest.mark.parametrize("version", ["0", "1"])
def test_an_older_format(saved, version):
    rewrite(saved, format_version=version)
    refused(saved, "fit the model again")


def test_an_unreadable_version_or_header(saved):
    rewrite(saved, format_version="two")
    refused(saved, "another program")
    rewrite(saved, format_version="2", model="{not json")
    refused(saved, "header")


def test_a_model_of_another_class(saved):
    rewrite_model(saved, **{"class": "FisherSetEmbedding"})
    refused(saved, "FisherSetEmbedding.load")
    refused(saved, "parts missing", kind=FisherSetEmbedding)


@pytest.mark.parametrize(
    "change",
    [
        {"params": {"no_such": 1}},
        {"params": None},
        {"params": []},
        {"fitted": None},
        {"fitted": {}},
        {"state": None},
        {"state": {}},
        {"state": {"stack": {}}},
        {"state": {"stack": []}},
        {"class": None},
        {"class": 3},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_header_with_parts_missing(saved, change):
    rewrite_model(saved, **change)
    refused(saved, "parts missing or unknown")


# --- writing --------------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("fishergraph.io.array_file._write_safetensors", fail)
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
    with pytest.raises(FileNotFoundError, match="folder"):
        model.save(tmp_path / "no" / "m.safetensors")
    with pytest.raises(IsADirectoryError, match="folder"):
        model.save(tmp_path)


def test_only_a_fitted_model_is_saved(tmp_path):
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_component_that_load_could_not_find_is_not_written(tmp_path):
    class Own(Hops):
        pass

    model = small(multiset=Own()).fit(X, graph=A)
    with pytest.raises(InputError, match="Own"):
        model.save(tmp_path / "m.safetensors")
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


def narrower(name, *parts):
    """Take a column away from all of these parts, which fit each other then."""

    def change(arrays):
        for part in parts:
            array = arrays[f"{name}.{part}"]
            arrays[f"{name}.{part}"] = array[:-1] if part == "rotation" else array[..., :-1]

    return change


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (put("stack.layer2.anchors", np.nan), "finite"),
        (put("stack.layer2.anchors", np.inf), "finite"),
        (put("stack.layer2.anchors", 1e30), "between"),
        (put("stack.layer2.anchors", lambda a: a[:, :-1]), "columns"),
        (put("stack.layer2.anchors", lambda a: a[0]), "shape"),
        (put("stack.layer2.anchors", lambda a: a[:0]), "shape"),
        (put("stack.layer2.anchors", lambda a: a.astype(np.float16)), "floats"),
        (put("stack.layer2.anchors", lambda a: a.astype(np.int64)), "floats"),
        (put("stack.layer2.anchors", lambda a: a[:1]), "columns"),
        (put("stack.input.landmarks", 2.0), "unit vectors"),
        (put("stack.input.landmarks", lambda a: a[:, :-1]), "columns"),
        (put("stack.input.root", 1e9), "between"),
        (put("stack.input.root", lambda a: a[:, :-1]), "shape"),
        (put("stack.axes.column_weights", 100.0), "between"),
        (put("stack.axes.column_weights", lambda a: a[:-1]), "shape"),
        (put("stack.axes.directions", 1e30), "between"),
        (put("stack.axes.directions", lambda a: a[:, :-1]), "shape"),
        (put("stack.axes.spread", lambda a: a[:-1]), "shape"),
        (put("stack.walk.centre", 1e30), "between"),
        (put("stack.walk.centre", lambda a: a[:, :-1]), "shape"),
        (put("stack.walk.scale", 1e30), "between"),
        (put("stack.walk.kernel.landmarks", lambda a: a[:, :-1]), "columns"),
        (put("stack.smooth.rotation", 2.0), "between"),
        (put("stack.smooth.rotation", lambda a: a[:-1]), "shape"),
        (put("stack.factors.rotation", lambda a: a[:, :0]), "shape"),
        (put("stack.local.scale", lambda a: a[:-1]), "shape"),
        (put("structure.keys", lambda a: a[:-1]), "shape"),
        (put("structure.keys", lambda a: a[:0]), "distinct"),
        (put("structure.keys", lambda a: a[:, None]), "distinct"),
        (put("structure.keys", lambda a: a.astype(np.int64)), "distinct"),
        (put("structure.keys", lambda a: np.zeros_like(a)), "distinct"),
        (put("structure.factors.basis", np.nan), "finite"),
        (put("structure.factors.basis", 1e30), "between"),
        (put("structure.factors.basis", lambda a: a[1:]), "shape"),
        (put("structure.factors.basis", lambda a: a[:, 1:]), "shape"),
        (put("structure.factors.basis", lambda a: a.astype(np.float16)), "floats"),
        (put("structure.factors.values", 1e30), "between"),
        (lambda arrays: [arrays.pop(f"structure.{name}") for name in ("keys", "factors.basis")], "missing"),
        (narrower("structure.factors", "basis", "values"), "columns"),
        (narrower("stack.factors", "centre", "rotation"), "columns"),
        (narrower("stack.local", "centre", "scale", "kernel.landmarks"), "columns"),
        (lambda arrays: arrays.pop("stack.layer1.root"), "missing"),
        (lambda arrays: arrays.update(extra=X), "unknown"),
    ],
)
def test_arrays_that_do_not_fit(saved, change, word):
    rewrite_arrays(saved, change)
    refused(saved, word)


@pytest.mark.parametrize(
    ("family", "change", "word"),
    [
        ("diagonal-mixture", put("stack.layer2.variances", -1.0), "positive"),
        ("diagonal-mixture", put("stack.layer2.variances", lambda a: a * np.float32(1e-20)), "means"),
        ("diagonal-mixture", put("stack.layer2.log_weights", 3.0), "sum to one"),
        ("diagonal-mixture", put("stack.layer2.origin", lambda a: a[:-1]), "shape"),
        ("gaussian", put("stack.layer2.covariances", -9.0), "positive definite"),
        ("gaussian", put("stack.layer2.covariances", lambda a: a * np.float32(1e-20)), "variances"),
        ("von-mises-fisher", put("stack.layer2.means", 2.0), "shorter"),
        ("von-mises-fisher", put("stack.layer2.concentrations", 1e6), "concentrations"),
        ("multinomial", put("stack.layer1.probabilities", 0.9), "sum to one"),
    ],
)
def test_parameters_that_no_family_has(tmp_path, family, change, word):
    path = tmp_path / "m.safetensors"
    small(family=family).fit(np.abs(X), graph=A).save(path)
    rewrite_arrays(path, change)
    refused(path, word)


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        ("fitted.n_features_in_", 7, "7 columns"),
        ("fitted.n_features_in_", "6", "n_features_in_"),
        ("fitted.feature_names_in_", ["a"], "names"),
        ("fitted.feature_names_in_", [[]] * 6, "name"),
        ("fitted.structural_", 1, "structural_"),
        ("fitted.structural_", True, "stages|unknown|missing"),
        ("fitted.needs_graph_", False, "unknown"),
        ("state.stack.input", {"kind": "identity", "n_outputs": 6}, "Nystrom|unknown"),
        ("state.stack.input", {"kind": "nothing"}, "nothing"),
        ("state.stack.input", {"kind": "nystrom", "bandwidth": 1e-9}, "bandwidth"),
        ("state.stack.input", {"kind": "nystrom", "bandwidth": 1.0, "more": 1}, "more"),
        ("state.stack.axes", False, "stages"),
        ("state.stack.columns", {}, "missing"),
        ("state.stack.columns.more", {}, "more"),
        ("state.stack.columns.walk.unit", 1, "unit"),
        ("state.stack.columns.smooth.map", {"kind": "identity", "n_outputs": 5}, "scale"),
        ("state.stack.columns.local.map", {"kind": "identity", "n_outputs": 22}, "Nystrom"),
        ("state.structure.seed", -1, "seed"),
        ("state.structure.seed", 1.5, "seed"),
        ("state.structure.width", 0, "width"),
        ("state.structure.width", 5, "columns must be 4"),
        ("state.structure.more", 1, "more"),
        ("state", {"structure": None}, "missing"),
        ("state.stack.layers", [], "stages"),
        ("state.stack.layers", [{}, {}], "missing"),
        ("state.stack.layers.0.family", "diagonal-mixture", "unknown"),
        ("state.other", 1, "other"),
        ("params.n_layers", 10**9, "n_layers"),
        ("params.n_layers", 1, "stages"),
        ("params.dim", "5", "dim"),
        ("params.device", "tpu", "device"),
        ("params.structure", "colour", "structure"),
        ("params.kernel", "identity", "Identity"),
        ("params.family", "diagonal-mixture", "DiagonalMixture"),
        ("params.multiset", "paths", "unknown"),
        ("params.structure", "local", "unknown"),
        (
            "params.structure",
            {"kind": "Structure", "columns": ["factors", "local"], "n_factors": 5},
            "columns must be 5",
        ),
        ("params.structure", {"kind": "Structure", "columns": "walks"}, "columns"),
        ("params.block_weights", {"kind": "mapping", "psi9": 1}, "psi9"),
        ("params.block_weights", {"kind": "mapping", "psi1": {"kind": "Hops"}}, "weight"),
    ],
)
def test_headers_that_do_not_fit(saved, place, value, word):
    rewrite_entry(saved, place, value)
    refused(saved, word)


def test_structure_that_is_missing_or_too_much(saved, tmp_path):
    """A model would learn it anew from the graph of `transform`, or never look at it."""
    header = header_of(saved)

    def without(arrays):
        for name in [name for name in arrays if name.startswith("structure.")]:
            del arrays[name]

    rewrite_model(saved, state={**header["state"], "structure": None})
    rewrite_arrays(saved, without)
    refused(saved, "exactly")
    path = tmp_path / "pairs.safetensors"  # of nodes, which have no structure of their own
    small(multiset=Tuples(k=2), n_layers=1, structure="local").fit(X, graph=A).save(path)
    rewrite_model(path, state={**header_of(path)["state"], "structure": {"width": 4, "seed": 0}})
    rewrite_arrays(path, lambda arrays: arrays.update({"structure.keys": np.arange(30, dtype=np.uint64)}))
    refused(path, "exactly")


def test_structure_of_features_that_are_not_as_wide(tmp_path):
    path = tmp_path / "m.safetensors"
    small(n_layers=0, kernel="identity", structure=Structure(("local", "degree"))).fit(graph=A).save(path)
    rewrite_entry(path, "fitted.n_features_in_", 21)
    rewrite_entry(path, "state.stack.input", {"kind": "identity", "n_outputs": 21})
    refused(path, "21 columns")


@pytest.mark.parametrize("name", ["n_features_in_", "structural_", "needs_graph_"])
def test_a_model_that_has_forgotten_something(saved, name):
    rewrite_entry(saved, f"fitted.{name}", None)
    refused(saved, name)


@pytest.mark.parametrize("variance", [0, -1.0, float("nan"), "1", [], True, 1e-300])
def test_a_variance_that_is_impossible(saved, variance):
    rewrite_entry(saved, "state.stack.layers.1.variance", variance)
    refused(saved, "variance|anchors")


@pytest.mark.parametrize("model", ["[" * 100_000, "3", "null", "9" * 10_000, '{"class": ' * 5000, "{}"])
def test_a_header_that_is_not_an_object(saved, model):
    rewrite(saved, model=model)
    refused(saved, "model file")


@pytest.mark.parametrize("version", ["9" * 5000, "²", "-1", ""])
def test_a_version_that_is_not_a_number(saved, version):
    rewrite(saved, format_version=version)
    refused(saved, "another program")


def test_one_flipped_bit_is_found(saved):
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(bytes(data))
    refused(saved, "checksum")


def test_a_file_without_a_checksum_is_read(saved):
    before = FisherEmbedding.load(saved).transform(X, graph=A)
    rewrite(saved)
    np.testing.assert_array_equal(FisherEmbedding.load(saved).transform(X, graph=A), before)


def test_a_model_of_an_absent_device_can_be_loaded(tmp_path):
    path = tmp_path / "m.safetensors"
    gpu = Device("cuda", precision="bf16")
    model = small().fit(X, graph=A).set_params(device=gpu)
    model.save(path)
    assert FisherEmbedding.load(path).device == gpu
    again = FisherEmbedding.load(path, device="cpu")
    np.testing.assert_array_equal(again.transform(X, graph=A), model.set_params(device="cpu").transform(X, graph=A))
