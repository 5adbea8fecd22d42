"""Options generated from the numpydoc docstrings of estimators and components.

A default and its help text are written once, in the docstring. Docstrings are read from the source files, so that
`--help` imports neither the library nor its dependencies. An option that is not given is None and leaves the
parameter to the estimator; the text of one that is given becomes a value in `components`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, wraps
from importlib.resources import files
from typing import Annotated, Any, get_type_hints

import typer

from fishergraph._errors import FishergraphError

# Parameters whose options have other names.
_FLAGS = {"random_state": "--seed", "n_jobs": "--jobs", "multiset__undirected": "--undirected"}
_NEGATED = {"--undirected": "--directed"}
_PANELS = (None, "Data", "Method", "Network", "Training", "Run")
_LAST = ("config", "quiet", "debug")  # fields of a job
COMPONENTS = ("multiset", "family", "em", "kernel", "walk", "device")
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

    @property
    def choices(self) -> list[str]:
        """The names of a type such as ``{"data", "random"}``."""
        names = re.match(r"\{(.*?)\}", self.kind)
        return [] if names is None else [name.strip(" \"'") for name in names[1].split(",")]


def read_parameters(docstring: str) -> dict[str, Parameter]:
    """Return the entries of the section "Parameters" of a numpydoc docstring, by name."""
    section = docstring.partition("\nParameters\n----------\n")[2]
    section = re.split(r"(?m)^\S.*\n-{3,}$", section)[0]
    entries = re.findall(r"(?m)^(\S.*)\n((?:[ \t]+.*\n?|\n)*)", section)
    found = {}
    for head, text in entries:
        names, _, kind = head.partition(" : ")
        kind, _, default = kind.partition(", default=")
        kind = kind.removesuffix(", optional")
        for name in names.split(", "):
            found[name] = Parameter(name, kind, default.strip("\"'"), " ".join(text.split()))
    return found


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
        component = parameter.name in COMPONENTS
        eager: Any = {"callback": _describe, "is_eager": True} if component else {}
        return Annotated[str | None, option(flag, metavar=self._metavar, panel=self.panel, help=self._help, **eager)]

    @property
    def _metavar(self) -> str:
        kind = self.parameter.kind
        if self.parameter.name in COMPONENTS:
            return "COMPONENT"
        if "sequence" in kind or "list" in kind:
            return "N,N,…"
        return "N" if kind.startswith("int") else "X" if kind.startswith("float") else "NAME"

    @property
    def _help(self) -> str:
        """The first sentence of the description, the choices unless it names them, and the default."""
        parameter, flag = self.parameter, flag_of(self.path)
        text = re.split(r"(?<=\.) (?=[A-Z\"`])", parameter.text)[0].replace("`", "")
        names = [] if parameter.name in COMPONENTS else parameter.choices
        if not all(name in text for name in names if name != "None"):
            text += f" One of {', '.join(name for name in names if name != 'None')}."
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


def with_options(settings: list[Setting]) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Turn a function of a job, a dataclass, into a command whose options are the fields of the job.

    The types of the fields are options, but for the field `settings`. That holds the generated options that were given,
    as a dict from paths, such as "n_layers" or "training__lr", to texts and flags.
    """

    def decorate(function: Callable[[Any], None]) -> Callable[..., None]:
        (job,) = inspect.signature(function, eval_str=True).parameters.values()
        kind, types = job.annotation, get_type_hints(job.annotation, include_extras=True)
        entries: list[tuple[str, Any, Any]] = []
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            generated = [(setting.parameter.name, None, setting.annotation) for setting in settings]
            entries += generated if field.name == "settings" else [(field.name, default, types[field.name])]

        entries.sort(key=_order)

        @wraps(function)
        def command(**values: Any) -> None:
            texts = {setting.path: values.pop(setting.parameter.name) for setting in settings}
            function(kind(**values, settings={path: text for path, text in texts.items() if text is not None}))

        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
                for name, default, annotation in entries
            ]
        )
        command.__annotations__ = {name: annotation for name, _, annotation in entries}
        return command

    return decorate


def _order(entry: tuple[str, Any, Any]) -> tuple[int, bool, bool]:
    """The rank of an option in the help: by panel, required ones first, those of every command last."""
    name, default, annotation = entry
    panel = annotation.__metadata__[0].rich_help_panel
    return _PANELS.index(panel), default is not inspect.Parameter.empty, name in _LAST


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
    return settings_of(kept, "Method", structure="Data", device="Run")


def _classifier() -> list[Setting]:
    """The options of `FisherClassifier`, with those of its network and its training as options of their own."""
    shared, parameters = documented(*_NODES), dict(documented("nn/classifier.py", "FisherClassifier"))
    for name, entry in parameters.items():
        if "as in `Fisher" in entry.text and name in shared:
            parameters[name] = replace(entry, text=shared[name].text)
    network, training = (documented("nn/settings.py", kind).values() for kind in ("Network", "Training"))
    return [
        *_estimator(parameters, "network", "training"),
        *settings_of(network, "Network", "network"),
        *settings_of(training, "Training", "training", validation_fraction="Data"),
    ]


_NODES = ("estimators/node.py", "FisherEmbedding")
EMBEDDING = _estimator(documented(*_NODES))
CLASSIFIER = _classifier()
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
    parameters = {setting.parameter.name for setting in [*EMBEDDING, *CLASSIFIER]} | {"random_state", "n_jobs"}

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
