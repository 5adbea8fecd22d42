"""The docstrings of public objects pass numpydoc's validation, and their examples run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fishergraph
from fishergraph._component import Component

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
validation = pytest.importorskip("numpydoc.validate")

ROOT = str(Path(fishergraph.__file__).parent)

# numpydoc's names of its checks. Four are left out: ES01, as many objects need no second paragraph; GL02, as one-line
# docstrings end in their line; GL09, as nothing is deprecated; SS05, which takes plural nouns for verbs.
LAYOUT = {"GL01", "GL03", "GL05", "GL06", "GL07", "GL08", "GL10", "SS01", "SS03", "SS04", "SS06"}
SECTIONS = {*(f"PR{number:02}" for number in range(2, 11)), *(f"RT{number:02}" for number in range(2, 6))}
SECTIONS |= {"SA02", "SA03", "SA04"}
METHOD = LAYOUT | SECTIONS | {"SS02", "PR01", "RT01", "YD01"}
OBJECT = METHOD | {"SA01", "EX01"}
SUMMARY_LENGTH = 79

# Methods of networks that users call; the library calls the others.
NETWORK_METHODS = {"forward", "inference", "init_from_data", "reset_parameters"}


def public_objects() -> dict[str, Any]:
    """The public classes and functions, by dotted name, each once."""
    names = [f"{home}.{name}" for name, home in fishergraph._HOMES.items()]
    for module in (
        "fishergraph.nn",
        "fishergraph.datasets",
        "fishergraph.explain",
        "fishergraph.explore",
        "fishergraph.plots",
        "fishergraph.scale",
    ):
        names += [f"{module}.{name}" for name in import_module(module).__all__]
    objects: dict[int, tuple[str, Any]] = {}
    for name in names:
        module, _, attribute = name.rpartition(".")
        value = getattr(import_module(module), attribute)
        if inspect.isclass(value) or inspect.isroutine(value):
            objects.setdefault(id(value), (name, value))
    return dict(objects.values())


def public_methods(name: str, kind: type) -> Iterator[str]:
    """The dotted names of the methods and properties of a class that this library defines and documents."""
    owners: dict[str, type] = {}
    for base in reversed(kind.__mro__):
        owners |= dict.fromkeys((attribute for attribute in vars(base) if not attribute.startswith("_")), base)
    for attribute, owner in owners.items():
        value = vars(owner)[attribute]
        function = getattr(value, "__func__", value)
        # A method without a docstring has that of the class it overrides.
        inherits = inspect.isfunction(function) and not function.__doc__ and inspect.getdoc(function) is not None
        # PyTorch Geometric writes methods into temporary files.
        ours = inspect.isfunction(function) and inspect.unwrap(function).__code__.co_filename.startswith(ROOT)
        documented = ours or isinstance(function, (property, cached_property))
        if owner.__module__.startswith("fishergraph") and documented and not inherits:
            yield f"{name}.{attribute}"


def checks_of_method(kind: type, name: str) -> set[str]:
    """Methods of components, of sets, and most methods of networks are called by the library alone."""
    if issubclass(kind, torch.nn.Module):
        return METHOD if name in NETWORK_METHODS else LAYOUT | SECTIONS
    return LAYOUT | SECTIONS if issubclass(kind, Component) or hasattr(kind, "n_sets") else METHOD


def failures(name: str, checks: set[str]) -> list[str]:
    """What numpydoc finds wrong, and a summary that is too long."""
    report = validation.validate(name)
    wrong = [f"{code} {text}" for code, text in report["errors"] if code in checks]
    summary = report["docstring"].strip().partition("\n")[0]
    if "PR01" in checks and len(summary) > SUMMARY_LENGTH:
        wrong.append(f"the summary has {len(summary)} characters, at most {SUMMARY_LENGTH}")
    return [f"{report['file']}:{report['file_line']} {name}: {text}" for text in wrong]


OBJECTS = public_objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_numpydoc_finds_nothing_wrong(name):
    kind = OBJECTS[name]
    # Options of components are keywords, and those that several components share are documented together.
    component = inspect.isclass(kind) and issubclass(kind, Component)
    wrong = failures(name, OBJECT - {"PR03"} if component else OBJECT)
    if inspect.isclass(kind):
        for method in public_methods(name, kind):
            wrong += failures(method, checks_of_method(kind, method.rpartition(".")[2]))
    assert not wrong, "\n".join(wrong)


def test_the_validation_sees_a_bad_docstring(monkeypatch):
    monkeypatch.setattr(
        fishergraph.load_graph, "__doc__", f"{'a' * 80}\n\n    Parameters\n    ----------\n    nam : str"
    )
    codes = {line.split(": ")[1][:4] for line in failures("fishergraph.datasets.load_graph", OBJECT)}
    assert codes >= {"SS02", "SS03", "PR01", "PR02", "PR07", "RT01", "SA01", "EX01", "the "}


@pytest.mark.parametrize("name", OBJECTS)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(recurse=False).find(OBJECTS[name], name, globs={}):
        report: list[str] = []
        runner.run(test, out=report.append)
        assert not runner.failures, "".join(report)
