"""Options generated from docstrings: they agree with the signatures, and components are read from texts."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import fishergraph
from commands import ok
from fishergraph import EM, FisherEmbedding, Neighbourhood, Nystrom, PageRank, Walk
from fishergraph._errors import InputError
from fishergraph.cli.components import configure, describe, read_setting, read_value
from fishergraph.cli.options import _DEFAULTS, EMBEDDING, documented, in_options, read_parameters, wrong_call
from fishergraph.device import Device
from fishergraph.family import FAMILIES
from fishergraph.kernel_map import KERNELS
from fishergraph.multiset import MULTISETS
from fishergraph.presets import PRESETS

DOCUMENTED = {
    "estimators/node.py": FisherEmbedding,
    "em/settings.py": EM,
    "kernel_map.py": Nystrom,
    "walk.py": Walk,
    "device.py": Device,
}


@pytest.mark.parametrize("file", DOCUMENTED)
def test_docstrings_have_the_defaults_of_the_signature(file):
    kind = DOCUMENTED[file]
    described = documented(file, kind.__name__)
    signature = inspect.signature(kind).parameters
    assert list(described) == list(signature)
    for name, entry in described.items():
        default = signature[name].default
        shown = entry.default.replace("_", "") or "None"
        assert shown == str(default).replace("_", ""), name


@pytest.mark.parametrize("kind", [*MULTISETS.values(), *FAMILIES.values(), *KERNELS.values()])
def test_every_option_of_a_component_is_described(kind):
    component = kind()
    described: dict = {}
    for base in reversed(type(component).__mro__):
        described |= read_parameters(inspect.cleandoc(base.__doc__ or ""))
    for field in fields(component):
        assert described[field.name].text, f"{type(component).__name__} does not describe {field.name}"
    own = read_parameters(inspect.cleandoc(type(component).__doc__ or ""))
    for name, entry in own.items():
        if entry.default:
            value = getattr(type(component)(), name)
            assert read_value(entry.default) == value or str(value) == entry.default, name


def test_the_help_names_the_components_of_the_defaults():
    estimator = FisherEmbedding()
    for parameter, (name, file, kind) in _DEFAULTS.items():
        component = type(next(iter(read_setting(parameter, kind).values())))
        assert component.__name__ == kind
        assert documented(file, kind)
        assert name == (getattr(estimator, parameter) or parameter)


def test_every_parameter_of_the_estimator_is_an_option():
    text = ok("embed", "--help").output
    assert {setting.path for setting in EMBEDDING} | {"random_state", "n_jobs", "verbose"} == set(
        inspect.signature(FisherEmbedding).parameters
    )
    for word in ("--n-layers", "--no-normalize", "--multiset", "--block-weights", "sharpness=0.9", "n_iter=1"):
        assert word in text
    assert all(name in text for name in PRESETS if name != "default")


@pytest.mark.parametrize("parameter", ["multiset", "family", "em", "kernel", "walk", "device"])
def test_help_of_a_component(parameter):
    assert ok("embed", f"--{parameter}", "help").output == describe(parameter) + "\n"


def test_the_page_of_the_multisets_has_all_of_them():
    page = describe("multiset")
    assert all(f"\n{name}: " in page for name in MULTISETS)
    assert page.count("undirected=False") == 1
    assert "teleport=0.2" in page


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("-1", -1),
        ("none", None),
        ("true", True),
        ("auto", "auto"),
        ("10,5", [10, 5]),
        ("[1, 2]", [1, 2]),
        ("08", "08"),
        ("print(1)", "print(1)"),
    ],
)
def test_values(text, value):
    assert read_value(text) == value


@pytest.mark.parametrize(
    ("path", "text", "params"),
    [
        ("multiset", "ppr", {"multiset": "ppr"}),
        ("multiset", "ppr(teleport=0.05, members=32)", {"multiset": PageRank(teleport=0.05, members=32)}),
        ("multiset", "PageRank(members=None)", {"multiset": PageRank(members=None)}),
        ("multiset", "open-neighbourhood(weights='uniform')", {"multiset": Neighbourhood(False, weights="uniform")}),
        (
            "multiset",
            "weights=uniform, undirected=true",
            {"multiset__weights": "uniform", "multiset__undirected": True},
        ),
        ("em", "em(3, balanced)", {"em": EM(3, "balanced")}),
        ("em", "none", {"em": None}),
        ("walk", "0.2", {"walk": 0.2}),
        ("walk", "none", {"walk": None}),
        ("walk", "Walk(teleport=0.2)", {"walk": Walk(teleport=0.2)}),
        ("kernel", " exp( bandwidth = 2 ) ", {"kernel": Nystrom(bandwidth=2)}),
        ("device", "cuda:1", {"device": "cuda:1"}),
        ("device", "cuda(precision=bf16)", {"device": Device("cuda", "bf16")}),
        ("device", 'Device("cuda", precision="bf16")', {"device": Device("cuda", "bf16")}),
        ("family", "multinomial(following__sharpness=0.5)", None),
        ("normalize", False, {"normalize": False}),
    ],
)
def test_components(path, text, params):
    found = read_setting(path, text)
    if params is None:
        assert found["family"].following.sharpness == 0.5
    else:
        assert found == params


def test_options_alone_change_what_is_there():
    estimator = configure(
        FisherEmbedding.preset("paper"),
        {"family": "fisher=exact", "multiset": "hops(k=1)", "multiset__undirected": True},
    )
    assert (estimator.family.variance, estimator.family.fisher) == (1.0, "exact")
    assert (estimator.multiset.k, estimator.multiset.undirected) == (1, True)
    assert configure(FisherEmbedding(), {"multiset": "hops", "multiset__undirected": False}).multiset == "hops"


@pytest.mark.parametrize(
    "settings",
    [{"walk": "x"}, {"em": "3"}, {"multiset": "3"}, {"multiset": "ppr(1, 2, 3, 4)"}, {"dim": "0"}, {"dim": "none"}],
)
def test_wrong_settings(settings):
    with pytest.raises(typer.BadParameter, match="|".join(settings)):
        configure(FisherEmbedding(), settings)


def test_messages_have_the_names_of_options():
    assert in_options(InputError(parameter="n_anchors", value=0, expected="be 1")) == "--n-anchors must be 1, got 0."
    error = InputError(parameter="X", value=0, expected="be 1", settings={"normalize": False, "weights": "uniform"})
    assert in_options(error) == "X must be 1, got 0; set --no-normalize, or set --multiset weights=uniform."
    error = InputError(parameter="n_jobs", value=0, expected="be 1", settings={"walk": None, "counts": True})
    assert in_options(error) == "--jobs must be 1, got 0; set --walk none, or set --counts."
    assert in_options(error.revised(parameter="dim (or None)", settings={})) == "--dim (or None) must be 1, got 0."
    assert in_options(ValueError("n_jobs=3 is a text")) == "n_jobs=3 is a text"
    with pytest.raises(typer.BadParameter, match="prior"), wrong_call("--em"):
        raise InputError(parameter="prior", value=0, expected="be 1")


def test_no_private_name_of_another_object_is_used():
    for path in (Path(fishergraph.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
                assert ast.unparse(node.value) == "self", f"{path.name}:{node.lineno} uses .{node.attr}"
