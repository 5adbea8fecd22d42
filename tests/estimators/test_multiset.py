"""FisherSetEmbedding: what a set may be, what its row is, and scikit-learn's contract."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference as ref
from fishergraph import (
    EM,
    DiagonalMixture,
    FisherEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    Multisets,
    em_means,
    fisher_embedding,
)
from fishergraph._errors import InputError
from fishergraph.family import choose_family
from fishergraph.kernel_map import fit_standard
from models import set_model

rng = np.random.default_rng(0)
SETS = [rng.normal(size=(n, 3)) for n in (5, 2, 7, 4, 1, 30)]
WEIGHTS = [rng.random(len(s)) for s in SETS]
POINTS = np.concatenate(SETS)
INDPTR = np.concatenate([[0], np.cumsum([len(s) for s in SETS])])


def small(**changes) -> FisherSetEmbedding:
    return set_model(**{"n_anchors": 3, "dim": 4, "kernel": "identity", "counts": True, "random_state": 0, **changes})


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
@parametrize_with_checks(
    [
        FisherSetEmbedding(),
        FisherSetEmbedding(n_anchors=2, dim=4, kernel="exp", input_map="exp", normalize=True),
        FisherSetEmbedding(n_anchors=2, family="diagonal-mixture", kernel="identity"),
        FisherSetEmbedding(n_anchors=2, dim=4, family="multinomial"),
        FisherSetEmbedding(
            n_anchors=3, input_map="identity", kernel="identity", counts=True, n_jobs=1, em=EM(prior=0.0, n_iter=2)
        ),
    ],
    # scikit-learn knows a few types that cannot be changed; components are frozen too (tests/test_components.py).
    expected_failed_checks=lambda _: {"check_parameters_default_constructible": "a component is a default"},
)
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


# --- what a row is --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("input_map", ["identity", "standardize"])
def test_a_row_is_phi_of_the_set(weights, input_map):
    model = small(input_map=input_map, em__prior=0.5)
    Z = model.fit_transform(SETS, weights=weights)
    layer = model.layer_
    points = SETS
    if input_map == "standardize":
        centre, scale = POINTS.mean(axis=0), POINTS.std(axis=0)
        points = [(s - centre) / scale for s in SETS]
    for k, (members, row) in enumerate(zip(points, Z, strict=True)):
        w = np.ones(len(members)) if weights is None else weights[k]
        means, mass = ref.em_means(members, [list(enumerate(w))], layer.theta.anchors, layer.theta.variance, prior=0.5)
        phi = np.concatenate([(means[0] - layer.theta.anchors).ravel() / np.sqrt(3), np.log1p(mass[0])])
        np.testing.assert_allclose(row, phi, atol=1e-10)


def test_one_anchor_is_mean_pooling():
    Z = small(n_anchors=1, input_map="identity", em__prior=0.0, counts=False).fit_transform(SETS)
    means = np.array([s.mean(axis=0) for s in SETS])
    np.testing.assert_allclose(Z - Z[0], means - means[0], atol=1e-12)


def test_kernel_maps_of_points_and_sets():
    Z = small(input_map="exp", kernel="exp", normalize=True, dim=4).fit_transform(SETS)
    assert Z.shape == (6, 4)
    assert small(input_map="exp", dim=5, counts=False).fit_transform(SETS).shape == (6, 3 * 5)


def test_sets_that_are_neighbourhoods_give_what_the_node_estimator_gives():
    """One layer of FisherEmbedding on a graph is the set embedding of the neighbourhoods."""
    A = sp.random_array((40, 40), density=0.15, rng=np.random.default_rng(5), format="csr") + sp.eye_array(40)
    A.data[:] = 1
    X = np.random.default_rng(6).normal(size=(40, 3))
    alone = {"walk": None, "structure": None}
    family = GaussianMixture(variance=0.5)
    model = FisherEmbedding(1, 3, kernel="identity", normalize=False, family=family, random_state=0, **alone)
    Z = model.fit_transform(X, graph=A)[:, 3:]
    layer = model.stack_.layers[0]
    sets = small(input_map="identity", family__variance=0.5, em__prior=0.0, counts=False).fit(X)
    sets.layer_ = replace(layer, n_anchors=sets.layer_.n_anchors, dim=sets.layer_.dim)
    neighbours = [X[A.indices[start:end]] for start, end in itertools.pairwise(A.indptr)]
    np.testing.assert_allclose(sets.transform(neighbours), Z, atol=1e-12)


def test_the_rooms_behind_it_are_the_same():
    model = small(input_map="identity", counts=False)
    Z = model.fit_transform(SETS)
    layer = model.layer_
    sets = Multisets(INDPTR, np.arange(len(POINTS)), None, len(POINTS))
    means, _ = em_means(POINTS, sets, layer.theta.anchors, variance=layer.theta.variance, prior=1.0)
    np.testing.assert_allclose(Z, fisher_embedding(means, layer.theta.anchors), atol=1e-12)


def test_order_of_members_does_not_matter_and_counts_tell_doubles_apart():
    model = small().fit(SETS)
    shuffled = [s[::-1] for s in SETS]
    np.testing.assert_allclose(model.transform(shuffled), model.transform(SETS), atol=1e-12)
    doubled = [np.concatenate([s, s]) for s in SETS]
    plain = small(counts=False, em__prior=0.0).fit(SETS)
    np.testing.assert_allclose(plain.transform(doubled), plain.transform(SETS), atol=1e-12)
    assert np.abs(model.transform(doubled) - model.transform(SETS))[:, -3:].min() > 1e-6


def test_whole_weights_are_copies():
    copies = [np.random.default_rng(k).integers(1, 4, size=len(s)) for k, s in enumerate(SETS)]
    model = small(input_map="identity").fit(SETS)
    repeated = [np.repeat(s, c, axis=0) for s, c in zip(SETS, copies, strict=True)]
    np.testing.assert_allclose(model.transform(SETS, weights=copies), model.transform(repeated), atol=1e-12)


def test_a_member_of_weight_zero_is_none():
    model = small().fit(SETS)
    weights = [np.arange(len(s)) > 0 for s in SETS]
    np.testing.assert_allclose(
        model.transform(SETS, weights=weights)[:4], model.transform([s[1:] for s in SETS])[:4], atol=1e-12
    )
    np.testing.assert_array_equal(model.transform(SETS, weights=weights)[4], 0)  # nothing is left of {x}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kernel", ["identity", "exp"])
def test_fit_transform_is_fit_then_transform_bit_for_bit(kernel, n_jobs):
    many = [np.random.default_rng(k).normal(size=(1 + k % 5, 3)).astype(np.float32) for k in range(1200)]
    Z = small(kernel=kernel, n_jobs=1).fit_transform(many)
    model = small(kernel=kernel, n_jobs=n_jobs).fit(many)
    np.testing.assert_array_equal(model.transform(many), Z)
    np.testing.assert_array_equal(model.transform(many[700:900]), Z[700:900])
    assert Z.dtype == np.float32


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    np.testing.assert_array_equal(small().fit_transform(SETS), small().fit_transform(SETS))
    assert np.abs(small(random_state=1).fit_transform(SETS) - small().fit_transform(SETS)).max() > 1e-3


# --- containers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        (POINTS, INDPTR),
        (POINTS, INDPTR.tolist()),
        (POINTS.tolist(), INDPTR.astype(np.int32)),
        (sp.csr_array(POINTS), INDPTR),
        tuple(SETS),
        [s.tolist() for s in SETS],
        [sp.csr_array(s) for s in SETS],
        [pd.DataFrame(s) for s in SETS],
        [pl.DataFrame(s) for s in SETS],
        [np.asfortranarray(s) for s in SETS],
    ],
    ids=["pair", "pair of lists", "nested pair", "sparse pair", "tuple", "lists", "sparse", "pandas", "polars", "F"],
)
def test_every_container_of_sets_is_the_same(given):
    expected = small().fit_transform(SETS)
    np.testing.assert_allclose(small().fit_transform(given), expected, atol=1e-12)


def test_an_array_of_objects_can_be_cut_by_rows():
    objects = np.empty(len(SETS), dtype=object)
    objects[:] = SETS
    model = small().fit(objects)
    np.testing.assert_array_equal(model.transform(objects[[3, 1]]), model.transform([SETS[3], SETS[1]]))
    np.testing.assert_array_equal(model.transform(pd.Series(SETS)), model.transform(SETS))


def test_an_array_of_sets_of_one_size():
    cube = np.random.default_rng(3).normal(size=(8, 5, 3))
    np.testing.assert_array_equal(small().fit_transform(cube), small().fit_transform(list(cube)))


def test_a_matrix_is_a_set_per_row():
    matrix = SETS[-1]
    expected = small().fit_transform([row[None] for row in matrix])
    np.testing.assert_array_equal(small().fit_transform(matrix), expected)
    np.testing.assert_allclose(small().fit_transform(matrix.tolist()), expected, atol=1e-6)  # lists become float32


def test_flat_weights_and_weights_by_set():
    expected = small().fit_transform(SETS, weights=WEIGHTS)
    np.testing.assert_array_equal(small().fit_transform(SETS, weights=np.concatenate(WEIGHTS)), expected)
    np.testing.assert_array_equal(small().fit_transform((POINTS, INDPTR), weights=np.concatenate(WEIGHTS)), expected)
    np.testing.assert_array_equal(small().fit_transform(SETS, weights=pd.Series(WEIGHTS)), expected)
    np.testing.assert_array_equal(small().fit_transform(SETS, weights=np.concatenate(WEIGHTS).tolist()), expected)
    three = [SETS[0][:2], np.empty((0, 3)), SETS[1][:1]]  # as many members as sets
    np.testing.assert_array_equal(
        small().fit_transform(three, weights=[1.0, 2.0, 3.0]), small().fit_transform(three, weights=[[1, 2], [], [3]])
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_floats_keep_their_type(dtype):
    sets = [np.round(3 * s).astype(dtype) for s in SETS]
    assert small().fit_transform(sets).dtype == ("float32" if dtype == "int64" else dtype)


def test_pandas_output_and_names():
    Z = small().set_output(transform="pandas").fit_transform(SETS)
    assert list(Z.columns) == [f"phi_{k}" for k in range(3 * 4)]
    assert list(small(kernel="exp").fit(SETS).get_feature_names_out()) == [f"psi_{k}" for k in range(4)]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kernel", ["identity", "exp"])
def test_tensors_stay_tensors(device, kernel):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    model = small(kernel=kernel).fit(SETS)
    expected = model.transform(SETS, weights=WEIGHTS)
    model.set_params(device=device)
    np.testing.assert_allclose(model.transform(SETS, weights=WEIGHTS), expected, atol=1e-8)  # NumPy in, NumPy out
    tensors = [torch.from_numpy(s).to(device) for s in SETS]
    pair = (torch.cat(tensors), torch.from_numpy(INDPTR).to(device))
    for given in (tensors, pair, tuple(tensors)):
        Z = model.transform(given, weights=WEIGHTS)
        assert isinstance(Z, torch.Tensor)
        assert Z.device.type == device
        np.testing.assert_allclose(Z.cpu().numpy(), expected, atol=1e-8)
    fitted = small(kernel=kernel, device=device).fit_transform(tensors)
    assert fitted.shape == expected.shape
    assert fitted.device.type == device
    assert (model.transform([torch.zeros(0, 3, device=device)]) == 0).all()


# --- copies and files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{}, {"input_map": "exp", "kernel": "exp"}, {"input_map": "identity", "counts": False}]
)
def test_a_model_comes_back_bit_for_bit(tmp_path, changes):
    model = small(**changes).fit(SETS, weights=WEIGHTS)
    expected = model.transform(SETS)
    model.save(tmp_path / "m.safetensors")
    again = FisherSetEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(SETS), expected)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(SETS), expected)
    with pytest.raises(ValueError, match="FisherSetEmbedding"):
        FisherEmbedding.load(tmp_path / "m.safetensors")
    assert not hasattr(clone(model), "stack_")


def test_pipelines_and_folds():
    sets = [np.random.default_rng(k).normal(size=(4 + k % 3, 2)) * (1 + k % 2) for k in range(60)]
    y = np.arange(60) % 2
    pipeline = Pipeline([("embed", small()), ("probe", LogisticRegression())])
    search = GridSearchCV(pipeline, {"embed__n_anchors": [1, 2]}, cv=3, error_score="raise").fit(sets, y)
    assert search.predict(sets).shape == (60,)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = small().set_fit_request(weights=True).set_transform_request(weights=True)
        weights = [np.ones(len(s)) for s in sets]
        scores = cross_val_score(
            make_pipeline(routed, LogisticRegression()),
            sets,
            y,
            cv=3,
            params={"weights": weights},
            error_score="raise",
        )
    np.testing.assert_allclose(scores, cross_val_score(make_pipeline(small(), LogisticRegression()), sets, y, cv=3))


def test_progress_is_shown_in_blocks():
    steps = []

    class Bar:
        def __init__(self, title, total):
            self.title = title

        def __enter__(self):
            return self

        def __exit__(self, *error): ...
        def update(self, n):
            steps.append(self.title)

    small(verbose=Bar, n_jobs=1).fit_transform([np.ones((2, 3))] * 700)
    shown = [title for title in steps if not title.startswith("learning")]
    assert shown == ["input map", "input map", "sets", "sets"]
    assert {"learning input map", "learning sets"} <= set(steps)


def test_phi_exists_by_blocks_where_there_is_a_kernel_map(monkeypatch):
    """Only the sample that the landmarks are learned from is ever whole."""
    shapes, original = [], GaussianMixture.block_phi

    def watched(self, means, *args, **kwargs):
        shapes.append(means.shape)
        return original(self, means, *args, **kwargs)

    monkeypatch.setattr(GaussianMixture, "block_phi", watched)
    many = [np.random.default_rng(k).normal(size=(2, 3)).astype(np.float32) for k in range(1500)]
    small(kernel="exp", em__max_samples=100).fit_transform(many)
    assert max(shape[0] for shape in shapes) == 375  # four blocks of at most 512


# --- sets that are not valid ---------------------------------------------------------------------------------


def one_sentence(error) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize("kernel", ["identity", "exp"])
@pytest.mark.parametrize("empty", [np.empty((0, 3)), []], ids=["no rows", "empty list"])
def test_an_empty_set_is_a_row_of_zeros(kernel, empty):
    sets = [*SETS[:2], empty, *SETS[2:]]
    model = small(kernel=kernel, dim=3)
    Z = model.fit_transform(sets)
    np.testing.assert_array_equal(Z[2], 0)
    assert (np.abs(Z).max(axis=1) > 0).sum() == len(SETS)
    np.testing.assert_array_equal(model.transform([empty, empty]), np.zeros((2, Z.shape[1])))
    assert model.transform([s.astype(np.float32) for s in SETS[:1]] + [empty])[1].max() == 0
    np.testing.assert_array_equal(model.transform([sp.csr_array((0, 3))]), 0)
    np.testing.assert_array_equal(model.transform((np.empty((0, 3)), [0, 0, 0])), np.zeros((2, Z.shape[1])))


@pytest.mark.parametrize(
    "family",
    ["diagonal-mixture", "gaussian", "von-mises-fisher", DiagonalMixture(tangent="score", power=0.5, unit=True)],
    ids=["diagonal", "gaussian", "directions", "Fisher vector"],
)
@pytest.mark.parametrize("kernel", ["identity", "exp"])
def test_every_family_embeds_sets(tmp_path, family, kernel):
    sets = [np.random.default_rng(k).normal(size=(1 + k % 7, 3)) for k in range(40)]
    model = FisherSetEmbedding(3, 6, family=family, kernel=kernel, random_state=0)
    Z = model.fit_transform([*sets, []])
    assert np.isfinite(Z).all()
    assert np.linalg.matrix_rank(Z) > 2
    np.testing.assert_array_equal(Z[-1], 0)
    model.save(tmp_path / "m.safetensors")
    again = FisherSetEmbedding.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform([*sets, []]), Z)


def test_counts_are_read_as_they_are():
    sets = [np.random.default_rng(k).poisson(2, size=(3, 4)) + 1 for k in range(30)]
    model = FisherSetEmbedding(3, family="multinomial", kernel="identity", random_state=0)
    assert np.isfinite(model.fit_transform(sets)).all()
    sets[4] = sets[4] - 9
    with pytest.raises(ValueError, match="row 0 of set 4"):
        model.fit(sets)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], "4 in set 1"),
        ([[], np.ones((2, 3)), np.ones((1, 2))], "2 in set 2"),
        ([np.ones((2, 3)), np.ones(3)], "set 1"),
        ([np.ones((2, 3)), np.ones((2, 3, 1))], "set 1"),
        ([np.ones(4), np.ones(3)], "lists"),
        ([[], []], "empty"),
        ([np.empty((0, 3))], "empty"),
        ((np.ones((4, 2)), [0, 2, 3]), "4 points"),
        ((np.ones((4, 2)), [0, 3, 2, 4]), "rise from 0"),
        ((np.ones((4, 2)), [0.0, 4.0]), "float64"),
        ((np.ones((4, 2)), [4]), "one more"),
        ([np.ones((2, 3)), [[1, 2, 3], [1, 2]]], "set 1"),
        ([np.ones((2, 3)), np.array([["a", "b", "c"]])], "column 0 of set 1"),
        ([], "empty"),
    ],
)
def test_sets_that_are_not_valid(sets, message):
    with pytest.raises(ValueError, match=message) as error:
        small().fit(sets)
    one_sentence(error)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_number_is_named_by_set_and_row(value):
    sets = [s.copy() for s in SETS]
    sets[2][4, 1] = value
    with pytest.raises(ValueError, match="row 4 of set 2") as error:
        small().fit(sets)
    one_sentence(error)
    model = small().fit(SETS)
    with pytest.raises(ValueError, match="row 4 of set 2"):
        model.transform(sets)


def test_no_sets_at_all():
    for nothing in ([], np.empty((0, 3))):
        with pytest.raises(ValueError):
            small().fit(nothing)


def test_other_features_than_fitted():
    with pytest.raises(ValueError, match="4 features"):
        small().fit(SETS).transform([np.ones((2, 4))])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([np.ones(5)] * 6, "set 1"),
        (np.ones(4), "49 members"),
        ([*WEIGHTS[:-1], -WEIGHTS[-1]], "row 0 of set 5"),
        ([*WEIGHTS[:1], np.array([1, np.nan]), *WEIGHTS[2:]], "row 1 of set 1"),
        (np.full(49, 1e-320), "weights"),
        ([np.ones(5), np.ones(44)], "6 sets"),
        (2.0, "float"),
        (["heavy"] * 49, "list"),
    ],
)
def test_weights_that_are_not_valid(weights, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        small().fit(SETS, weights=weights)
    one_sentence(error)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_map": "scale"}, "input_map"),
        ({"kernel": "standardize"}, "kernel"),
        ({"n_anchors": 0}, "n_anchors"),
        ({"em__init": "spherical"}, "set normalize=True"),
    ],
)
def test_parameters_are_checked(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        small(**changes).fit(SETS)
    one_sentence(error)


def test_tensors_and_arrays_do_not_mix():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="tensors") as error:
        small().fit([SETS[0], torch.from_numpy(SETS[1])])
    one_sentence(error)


# --- tables, and what is gone through once --------------------------------------------------------------

FRAMES = [pd.DataFrame(s, columns=list("abc")) for s in SETS]


@pytest.mark.parametrize("table", [pd.DataFrame, lambda s, columns: pl.DataFrame(s, schema=columns)])
def test_columns_of_tables_are_compared(table):
    frames = [table(s, columns=list("abc")) for s in SETS]
    model = small().fit(frames)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.transform(frames), small().fit_transform(SETS))
    with pytest.raises(ValueError, match="same order"):
        model.transform([frame[["c", "b", "a"]] for frame in frames])
    with pytest.raises(ValueError, match="set 1"):
        small().fit([frames[0], frames[1][["b", "a", "c"]]])
    assert not hasattr(model.fit(SETS), "feature_names_in_")


@pytest.mark.parametrize("value", ["text", pd.Timestamp("2020-01-01"), pd.NA])
def test_a_column_without_numbers_is_named(value):
    frames = [frame.copy() for frame in FRAMES]
    frames[2]["b"] = value
    with pytest.raises(ValueError, match="column 'b' of set 2") as error:
        small().fit(frames)
    one_sentence(error)


def test_sets_may_be_gone_through_once():
    expected = small().fit_transform(SETS)
    named = dict(enumerate(SETS))
    for given in ((s for s in SETS), map(np.asarray, SETS), named.values()):
        np.testing.assert_array_equal(small().fit_transform(given), expected)


def test_errors_of_dictionaries_and_groups_say_what_to_pass():
    table = pd.DataFrame(POINTS, columns=list("abc")).assign(k=np.repeat(range(6), np.diff(INDPTR)))
    for given in (dict(enumerate(SETS)), table.groupby("k"), list(table.groupby("k")), list(table.groupby(["k"]))):
        with pytest.raises(TypeError, match="groupby") as error:
            small().fit(given)
        one_sentence(error)


# --- scales, and parameters after fit -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_far_outside_the_scale_of_fit(dtype):
    rise = 1e24 if dtype == "float32" else 1e200
    tiny = [(s / np.sqrt(rise)).astype(dtype) for s in SETS]
    model = small(kernel="exp").fit(tiny)
    far = [tiny[0], (SETS[1] * np.sqrt(rise)).astype(dtype)]
    with pytest.raises(ValueError, match="row 0 of set 1") as error:
        model.transform(far)
    one_sentence(error)
    assert np.isfinite(model.transform([1000 * s for s in tiny])).all()
    np.testing.assert_array_equal(model.transform([[], []]), 0)


@pytest.mark.parametrize("family", ["diagonal-mixture", "gaussian"])
def test_squares_have_half_the_range(family):
    sets = [s.astype(np.float32) for s in SETS]
    model = FisherSetEmbedding(3, 4, family=family, random_state=0).fit(sets)
    assert np.isfinite(model.transform([np.float32(1e6) * s for s in sets])).all()
    with pytest.raises(ValueError, match="standardised"):
        model.transform([np.float32(1e10) * s for s in sets])


def test_counts_too_large_to_be_added_up():
    model = FisherSetEmbedding(3, family="multinomial", normalize=True)
    with pytest.raises(ValueError, match="largest entry"):
        model.fit([np.full((2, 3), 1e37, np.float32)] * 4)


def test_an_empty_set_has_no_member_that_is_zero():
    model = FisherSetEmbedding(3, family="von-mises-fisher", random_state=0).fit(SETS)
    np.testing.assert_array_equal(model.transform([np.empty((0, 3))]), 0)


@pytest.mark.parametrize("change", [{"family": "diagonal-mixture"}, {"family__fisher": "exact"}, {"counts": False}])
def test_parameters_that_shape_the_layer_are_those_of_the_fit(change):
    model = small().fit(SETS).set_params(**change)
    with pytest.raises(InputError) as error:
        model.transform(SETS)
    (name,) = change
    assert error.value.parameter == name.partition("__")[0]
    assert error.value.value == (change[name] if name == "counts" else choose_family(model.family))


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_a_scale_is_what_a_type_can_tell_from_rounding(wrap):
    seconds = (1.6e9 + np.random.default_rng(0).uniform(0, 1800, size=5000)).astype(np.float32)
    columns = [seconds, np.full(5000, 0.1, np.float32), np.full(5000, 3e9, np.float32), np.zeros(5000, np.float32)]
    scale = fit_standard(wrap(np.stack(columns, axis=1))).scale
    np.testing.assert_allclose(scale, [520, 1, 1, 1], rtol=0.05)
    np.testing.assert_array_equal(fit_standard(wrap(np.full((9000, 1), 0.1))).scale, 1)


def test_a_memoryview_is_the_array_it_shows():
    cube = np.random.default_rng(0).normal(size=(6, 4, 3))
    np.testing.assert_array_equal(small().fit_transform(memoryview(cube)), small().fit_transform(cube))
