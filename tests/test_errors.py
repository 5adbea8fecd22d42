"""Errors and warnings have fields, are caught as built-in types, and survive a pickle."""

from __future__ import annotations

import pickle

import pytest

from fishergraph import _errors
from fishergraph._errors import (
    ClusterError,
    EndpointError,
    FewPointsWarning,
    FileFormatError,
    FishergraphError,
    FishergraphWarning,
    InputError,
    InputTypeError,
    MissingExtra,
    NotConvergedWarning,
    NotEnoughMemory,
    UnknownNodeError,
)

EXAMPLES = [
    (InputError(parameter="dim", value=0, expected="be an integer of at least 1"), ValueError),
    (InputTypeError(parameter="graph", expected="be a graph", got="a dict", advice="convert it"), TypeError),
    (UnknownNodeError(parameter="node_ids", value="x", expected="hold every endpoint"), InputError),
    (EndpointError(parameter="edge endpoints", value=7, expected="be nodes", edge=2, n_nodes=5), InputError),
    (FileFormatError(path="a.csv", line=3, reason="two cells in a row of three"), ValueError),
    (NotEnoughMemory(purpose="the result", needed=3e9, available=1e9, settings={"dim": 8}), MemoryError),
    (NotEnoughMemory("a sentence", needed=2**300, available=1e9), MemoryError),
    (MissingExtra(package="torch", extra="nn"), ImportError),
    (ClusterError(where="tcp://a:1", reason="nobody answers", advice="start a scheduler"), RuntimeError),
]


@pytest.mark.parametrize(("error", "kind"), EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_error_keeps_its_fields(error, kind):
    assert isinstance(error, FishergraphError)
    assert isinstance(error, kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error) == error.text()
    assert vars(copy) == vars(error)


def test_a_message_has_its_three_parts():
    error = InputError(
        parameter="X", value=3, expected="be small", advice="rescale X", settings={"normalize": True, "dim": 2}
    )
    assert str(error) == "X must be small, got 3; rescale X, or set normalize=True, or set dim=2."
    assert str(InputError(parameter="X", expected="be small", got="a lot")) == "X must be small, got a lot."
    assert str(EXAMPLES[4][0]).startswith("line 3 of 'a.csv' cannot be read: two cells")
    assert "3.0 GB" in str(EXAMPLES[5][0])
    assert "2**270 GB" in str(NotEnoughMemory(needed=2**300, available=1))


def test_other_interfaces_have_other_names():
    error = InputError(parameter="n_jobs", value=0, expected="not be 0", settings={"device": "cuda"})
    text = error.text(lambda name: f"--{name}", lambda name, value: f"--{name} {value}")
    assert text == "--n_jobs must not be 0, got 0; set --device cuda."


def test_a_revised_error_is_of_the_same_type():
    error = EndpointError(parameter="edge", value=7, expected="be a node", advice="drop it", edge=2, n_nodes=5)
    other = error.revised(parameter="row 2", advice="add the node")
    assert type(other) is EndpointError
    assert (other.edge, other.n_nodes, other.value) == (2, 5, 7)
    assert str(other) == "row 2 must be a node, got 7; add the node."


def test_an_unknown_field_is_a_mistake():
    with pytest.raises(TypeError):
        FileFormatError(reasons="none")  # type: ignore[call-arg]


def test_warnings_have_fields():
    few = FewPointsWarning(what="anchors", asked=5, used=3)
    assert (few.kind, few.asked, few.used) == ("few anchors", 5, 3)
    unmet = NotConvergedWarning(n_iter=9, residual=0.1, tolerance=1e-6)
    assert (unmet.n_iter, unmet.kind) == (9, "NotConvergedWarning")
    for warning in (few, unmet):
        assert isinstance(warning, FishergraphWarning)
        assert isinstance(warning, UserWarning)
        assert vars(pickle.loads(pickle.dumps(warning))) == vars(warning)


def test_long_values_are_cut():
    assert len(_errors.shown("x" * 1000)) == 60
