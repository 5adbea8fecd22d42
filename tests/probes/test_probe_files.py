"""Probes in model files: the same bits after loading, and files that hold something else."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fishergraph import FisherEmbedding, GraphProbe, LogisticProbe
from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.array_file import read_file, write_file
from fishergraph.probes import BoostedProbe
from probe_problem import problem


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("names", [None, ["ape", "bee", "cat"]])
def test_a_logistic_probe(tmp_path, n_classes, names):
    Z, y, _, train, val = problem(n_classes=n_classes)
    y = y if names is None else np.array(names)[y]
    probe = LogisticProbe().fit(Z, y, train, val)
    probe.save(tmp_path / "p")
    copy = LogisticProbe.load(tmp_path / "p")
    assert_array_equal(copy.predict_proba(Z), probe.predict_proba(Z))
    assert_array_equal(copy.predict(Z), probe.predict(Z))
    assert_array_equal(copy.val_scores_, probe.val_scores_)
    assert (copy.C_, copy.val_score_) == (probe.C_, probe.val_score_)


@pytest.mark.parametrize("heads", ["auto", ("mlp",), ("smooth",)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_graph_probe(tmp_path, heads, dtype):
    Z, y, A, train, val = problem()
    Z = Z.astype(dtype)
    probe = GraphProbe(A, blocks=[("own", 6), ("near", 6)], heads=heads, random_state=0).fit(Z, y, train, val)
    probe.save(tmp_path / "p")
    copy = GraphProbe.load(tmp_path / "p")
    assert_array_equal(copy.predict_proba(), probe.predict_proba())
    assert_array_equal(copy.predict_proba(Z), probe.predict_proba())
    assert_array_equal(copy.predict_proba(Z[:9]), probe.predict_proba(Z[:9]))
    assert copy.chosen_ == probe.chosen_
    assert [r["weight"] for r in copy.report_] == [r["weight"] for r in probe.report_]
    assert (copy.blocks_, copy.val_score_, copy.val_ece_) == (probe.blocks_, probe.val_score_, probe.val_ece_)


def test_probes_that_a_file_cannot_hold(tmp_path):
    probe = BoostedProbe(time_budget=None, n_trials=1)
    probe.classes_, probe.n_features_in_, probe.val_score_ = np.arange(3), 12, 1.0  # fitted, if LightGBM is not there
    with pytest.raises(InputError, match="joblib"):
        probe.save(tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_files_of_other_things(tmp_path):
    Z, y, A, train, val = problem()
    LogisticProbe().fit(Z, y, train, val).save(tmp_path / "p")
    FisherEmbedding(1, 2, 4, random_state=0).fit(Z, graph=A).save(tmp_path / "e")
    for name, found in (("p", "LogisticProbe"), ("e", "FisherEmbedding")):
        with pytest.raises(FileFormatError, match=found):
            GraphProbe.load(tmp_path / name)
    with pytest.raises(FileFormatError, match="FisherEmbedding"):
        LogisticProbe.load(tmp_path / "e")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda entry, arrays: arrays.pop("weights"),
        lambda entry, arrays: arrays.update(weights=arrays["weights"] * 2),
        lambda entry, arrays: arrays.update(temperatures=0 * arrays["temperatures"]),
        lambda entry, arrays: arrays.update(extra=np.ones(3)),
        lambda entry, arrays: arrays.update(nodes=arrays["nodes"][:5]),
        lambda entry, arrays: arrays.update(nodes=2 * arrays["nodes"]),
        lambda entry, arrays: entry["parts"]["mixture"]["models"].pop(),
        lambda entry, arrays: entry["parts"]["mixture"]["models"][0].update(kind="tree"),
        lambda entry, arrays: entry["parts"]["mixture"]["models"][0].update(input=7),
        lambda entry, arrays: entry["parts"]["mixture"].update(temperature=0),
        lambda entry, arrays: entry["parts"].update(blocks=[["own", 5]]),
        lambda entry, arrays: entry["parts"].update(report=[{"head": "mlp"}]),
        lambda entry, arrays: entry.update(n_features=13),
        lambda entry, arrays: entry.update(classes=[0]),
        lambda entry, arrays: entry.update(val_score=2.0),
    ],
)
def test_spoiled_files(tmp_path, spoil):
    Z, y, A, train, val = problem()
    GraphProbe(A, heads=("sharpen",), random_state=0).fit(Z, y, train, val).save(tmp_path / "p")
    header, arrays = read_file(tmp_path / "p")
    spoil(header["probe"], arrays)
    write_file(tmp_path / "p", header, arrays)
    with pytest.raises(FileFormatError, match="p"):
        GraphProbe.load(tmp_path / "p")
