"""Options generated from the numpydoc docstrings of estimators and components.

A default and its help text are written once, in the docstring. Docstrings are read from the source files, so that
`--help` imports neither the library nor its dependencies. An option that is not given is None and leaves the
parameter to the estimator; the text of one that is given becomes a value in `components`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import typer

from fishergraph._errors import FishergraphError, InputTypeError

DATA, PICTURE, RUN = "Data", "Picture", "Run"  # panels of the help

# Parameters whose options have other names.
_FLAGS = {
    **{"random_state": "--seed", "n_jobs": "--jobs", "multiset__undirected": "--undirected"},
    **{"n_nodes": "--nodes", "n_edges": "--edges", "n_features": "--features"},
    "with_node": "--with",
}
# Parameters that no estimator's options set: those of every command, and of stores.
_OTHERS = {"random_state", "n_jobs", "memory", "overwrite", "unknown"}
_NEGATED = {"--undirected": "--directed"}
COMPONENTS = ("multiset", "family", "em", "kernel", "walk", "structure", "device")
# The components of the defaults, whose options the help lists.
_DEFAULTS = {
    "multiset": ("neighbourhood", "multiset/rule.py", "Neighbourhood"),
    "family": ("gaussian-mixture", "family/gaussian_mixture.py", "GaussianMixture"),
    "em": ("em", "em/settings.py", "EM"),
    "kernel": ("exp", "kernel_map.py", "Nystrom"),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter as a docstring describes it: its type in words, its default as written, and its description."""

    name: str
    kind: str
    default: str
    text: str


def read_parameters(docstring: str) -> dict[str, Parameter]:
    """Return the entries of the section "Parameters" of a numpydoc docstring, by name."""
    section = docstring.partition("\nParameters\n----------\n")[2]
    section = re.split(r"(?m)^\S.*\n-{3,}$", section)[0]
    entries = re.findall(r"(?m)^(\S.*)\n((?:[ \t]+.*\n?|\n)*)", section)
    parameters = {}
    for head, text in entries:
        names, _, kind = head.partition(" : ")
        kind, _, default = kind.partition(", default=")
        kind = kind.removesuffix(", optional")
        for name in names.split(", "):
            parameters[name] = Parameter(name, kind, default.strip("\"'"), " ".join(text.split()))
    return parameters


@cache
def documented(file: str, name: str) -> dict[str, Parameter]:
    """Return the parameters of a class or of one of its methods, read from a source file of the library."""
    nodes: Any = ast.parse((files("fishergraph") / file).read_text("utf-8"))
    for part in name.split("."):
        nodes = next(node for node in nodes.body if getattr(node, "name", None) == part)
    return read_parameters(ast.get_docstring(nodes) or "")


@dataclass(frozen=True)
class Setting:
    """An option that sets a parameter of an estimator; `owner` is the component that holds it, if any."""

    parameter: Parameter
    panel: str
    owner: str = ""

    @property
    def path(self) -> str:
        """The parameter as `set_params` names it."""
        return f"{self.owner}__{self.parameter.name}" if self.owner else self.parameter.name

    @property
    def annotation(self) -> Any:
        """The type of the option for typer."""
        parameter, flag = self.parameter, flag_of(self.path)
        if parameter.kind.startswith("bool"):
            names = f"{flag}/{negated(flag)}"
            return Annotated[bool | None, option(names, panel=self.panel, help=self._help)]
        metavar = "N" if parameter.kind.startswith("int") else "X" if parameter.kind.startswith("float") else "NAME"
        metavar = "N,N,…" if "sequence" in parameter.kind or "list" in parameter.kind else metavar
        more: dict[str, Any] = {"metavar": metavar}
        if parameter.name in COMPONENTS:
            more = {"metavar": "COMPONENT", "callback": _describe, "is_eager": True}
        return Annotated[str | None, option(flag, panel=self.panel, help=self._help, **more)]

    @property
    def _help(self) -> str:
        """The first sentence of the description, the choices unless it names them, and the default."""
        parameter, flag = self.parameter, flag_of(self.path)
        text = re.split(r"(?<=\.) (?=[A-Z\"`])", parameter.text)[0].replace("`", "")
        choices = re.match(r"\{(.*?)\}", parameter.kind)  # of a type such as {"data", "random"}
        if choices is not None and parameter.name not in COMPONENTS:
            names = [name.strip(" \"'") for name in choices[1].split(",")]
            names = [name for name in names if name != "None"]
            text += "" if all(name in text for name in names) else f" One of {', '.join(names)}."
        default = parameter.default
        if parameter.kind.startswith("bool"):
            default = (flag if default == "True" else negated(flag))[2:]
        elif parameter.name in _DEFAULTS:
            name, *source = _DEFAULTS[parameter.name]
            options = [f"{entry.name}={entry.default}" for entry in documented(*source).values() if entry.default]
            default = f"{name}({', '.join(options)})"
        return text if default in ("", "None") else f"{text} (default: {default})"


def settings_of(parameters: Iterable[Parameter], panel: str, owner: str = "", **panels: str) -> list[Setting]:
    """Return options for parameters, in a panel of the help; `panels` names other ones for single parameters."""
    return [Setting(parameter, panels.get(parameter.name, panel), owner) for parameter in parameters]


def option(*names: str, panel: str, help: str, default: str = "", **more: Any) -> Any:
    """Return a typer option whose default, if typer does not show it, is at the end of its help."""
    text = re.sub(r"\[(?=[a-z])", r"\\[", f"{help} (default: {default})" if default else help)
    # A file that cannot be read is a failure of the run, not a wrong call.
    return typer.Option(*names, rich_help_panel=panel, help=text, readable=False, **more)


def _describe(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """Show the components of an option if its value is "help"."""
    if value == "help" and not ctx.resilient_parsing:
        from fishergraph.cli.components import describe

        typer.echo(describe(str(param.name)))
        raise typer.Exit
    return value


# --- the options of the estimators ------------------------------------------------------------------------

_BY_COMMAND = ("random_state", "n_jobs", "verbose")  # --seed and --jobs are those of every command


def _estimator(parameters: dict[str, Parameter], *leave: str) -> list[Setting]:
    kept = [entry for entry in parameters.values() if entry.name not in (*_BY_COMMAND, *leave)]
    return settings_of(kept, "Method", device=RUN)


def _classifier() -> list[Setting]:
    """The options of `FisherClassifier`, with those of its network and its training as options of their own."""
    shared, parameters = documented(*_NODES), dict(documented("estimators/classifier.py", "FisherClassifier"))
    for name, entry in parameters.items():
        if "as in `Fisher" in entry.text and name in shared:
            parameters[name] = replace(entry, text=shared[name].text)
    network, training = (documented("nn/settings.py", kind).values() for kind in ("Network", "Training"))
    return [
        *_estimator(parameters, "network", "training"),
        *settings_of(network, "Network", "network"),
        *settings_of(training, "Training", "training", validation_fraction=DATA),
    ]


def _map() -> list[Setting]:
    """The options of `plots.embedding_map` that are not read from files."""
    parameters = documented("plots/maps.py", "embedding_map")
    names = ("method", "sample", "max_classes", "scale", "cmap", "size")
    return settings_of([parameters[name] for name in names], PICTURE)


_NODES = ("estimators/node.py", "FisherEmbedding")
EMBEDDING = _estimator(documented(*_NODES))
CLASSIFIER = _classifier()
MAP = _map()
DEVICE = [setting for setting in EMBEDDING if setting.path == "device"]


# --- the vocabulary of messages ---------------------------------------------------------------------------


def flag_of(path: str) -> str:
    """Return the option of a parameter."""
    return _FLAGS.get(path, "--" + path.rpartition("__")[2].replace("_", "-"))


def negated(flag: str) -> str:
    """Return the option that switches a flag off."""
    return _NEGATED.get(flag, f"--no-{flag[2:]}")


def in_options(error: Exception, *, inside: bool = False) -> str:
    """Return the message of an error, with options for the parameters that its fields name.

    `inside` is for errors about the options of one component, which keep their names.
    """
    if not isinstance(error, FishergraphError):
        return str(error)
    parameters = {setting.parameter.name for setting in [*EMBEDDING, *CLASSIFIER]} | _OTHERS

    def name(parameter: str) -> str:
        word, space, rest = parameter.partition(" ")
        return (flag_of(word) if word in parameters else word) + space + rest

    def setting(parameter: str, value: object) -> str:
        if parameter not in parameters:
            from fishergraph.cli.components import owner_of

            owner = owner_of(parameter)
            return f"{flag_of(owner)} {parameter}={value}" if owner else f"{parameter}={value!r}"
        if isinstance(value, bool):
            return flag_of(parameter) if value else negated(flag_of(parameter))
        return f"{flag_of(parameter)} {'none' if value is None else value}"

    return error.text(str if inside else name, setting)


@contextmanager
def wrong_call(flag: str | None = None) -> Iterator[None]:
    """Turn an error about a setting into a wrong call, of an option if it is named: exit code 2."""
    try:
        yield
    except (ValueError, InputTypeError) as error:
        hint = None if flag is None else f"'{flag}'"
        raise typer.BadParameter(in_options(error, inside=flag is not None), param_hint=hint) from None


def check_device(name: str | None) -> str | None:
    """Return the name of a device, whether this machine has it or not; another name is a wrong call."""
    if name is not None:
        from fishergraph.device import choose_device

        with wrong_call():
            choose_device(name)
    return name
