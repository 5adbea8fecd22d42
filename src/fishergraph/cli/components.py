"""Values and components from the texts of options: ``ppr(teleport=0.05, members=32)``, ``sharpness=0.5``, ``10,5``."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from keyword import kwlist
from typing import TYPE_CHECKING, Any

import typer

from fishergraph.cli.options import COMPONENTS, flag_of, read_parameters, wrong_call

if TYPE_CHECKING:
    from fishergraph._component import Component

_WORDS = {"none": None, "None": None, "true": True, "True": True, "false": False, "False": False}
_LONGEST = 1000  # characters of a value
_WIDTH = 110  # of a page
_FLAT = ("network__", "training__")  # components whose options are options of the command line
_BY_NAME = ("multiset", "family", "kernel", "structure", "device")  # parameters that take names
# Words that Python reserves, as the value of an option: direction=in.
_RESERVED = re.compile(rf"(?<==)\s*({'|'.join(word for word in kwlist if word.islower())})\s*(?=,|$)")
_CALL = re.compile(r"([A-Za-z][\w:-]*)\s*(?:\((.*)\))?", re.DOTALL)


def configure(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """Return the estimator with these settings, texts and flags by parameter; a wrong one is a wrong call."""
    params: dict[str, Any] = {}
    for path, text in settings.items():
        params |= read_setting(path, text)
    nested = {path: value for path, value in params.items() if "__" in path}
    with wrong_call():
        estimator.set_params(**{path: value for path, value in params.items() if path not in nested})
        current = estimator.get_params()
        for path in nested:
            if path not in current:
                owner, _, key = path.partition("__")
                options = [name.partition("__")[2] for name in current if name.startswith(f"{owner}__")]
                raise _no_option(flag_of(owner), key, options)
    for path, value in nested.items():
        if current[path] == value:  # a component that is named keeps its name
            continue
        with wrong_call(None if path.startswith(_FLAT) else flag_of(path.partition("__")[0])):
            estimator.set_params(**{path: value})
    with wrong_call():
        estimator.check()
    return estimator


def read_setting(path: str, text: Any) -> dict[str, Any]:
    """Return the parameters that an option sets, as `set_params` takes them."""
    if not isinstance(text, str):
        return {path: text}
    name = path.rpartition("__")[2]
    if len(text) > _LONGEST:
        raise typer.BadParameter(f"{flag_of(path)} must have at most {_LONGEST} characters, got {len(text):,}.")
    return _read_component(path, text.strip()) if name in COMPONENTS else {path: read_value(text.strip())}


def read_value(text: str) -> Any:
    """Return the number, word or list of a text: "0.1", "auto", "none", "10,5"."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return list(value) if isinstance(value, tuple) else value


# --- components -----------------------------------------------------------------------------------------


def _kinds(parameter: str) -> dict[str, Callable[[], Component]]:
    """The components that an option takes, by name."""
    from fishergraph.device import Device
    from fishergraph.em.settings import EM
    from fishergraph.family import FAMILIES
    from fishergraph.kernel_map import KERNELS
    from fishergraph.multiset import MULTISETS
    from fishergraph.structural import STRUCTURES
    from fishergraph.walk import Walk

    tables: dict[str, Any] = {"multiset": MULTISETS, "family": FAMILIES, "kernel": KERNELS, "structure": STRUCTURES}
    return {**tables, "em": {"em": EM}, "walk": {"walk": Walk}, "device": {"cpu": Device}}.get(parameter, {})


def _read_component(path: str, text: str) -> dict[str, Any]:
    """Return {path: component or name}, or the options of the component that is there already by their paths."""
    flag, kinds, value, match = flag_of(path), _kinds(path), read_value(text), _CALL.fullmatch(text)
    if value is None:
        return {path: None}
    if isinstance(value, (int, float)) and path == "walk":
        with wrong_call(flag):
            kinds["walk"]().set_params(teleport=value)
        return {path: value}
    if match is None:
        args, options = _read_options(flag, text)
        if args:
            raise _unreadable(flag, text)
        return {f"{path}__{key}": value for key, value in options.items()}
    name, inside = match.groups()
    with wrong_call(flag):
        component = _find(path, name)()
    if inside is None:
        return {path: component if path not in _BY_NAME or name == type(component).__name__ else name}
    args, options = _read_options(flag, inside)
    names = [field.name for field in fields(component) if not field.kw_only]
    options |= dict(zip(names, args, strict=False))
    if len(args) > len(names):
        raise _unreadable(flag, text)
    for key in options:
        if key not in component.get_params():
            raise _no_option(name, key, list(component.get_params()))
    with wrong_call(flag):
        return {path: component.set_params(**options)}


def _find(path: str, name: str) -> Callable[[], Component]:
    """The maker of the component of that name, or of the class of that name."""
    kinds = _kinds(path)
    classes = {type(make()).__name__: make for make in reversed(kinds.values())}
    if name in kinds or name in classes:
        return kinds.get(name) or classes[name]
    if path == "device":
        from fishergraph.device import Device

        return partial(Device, name)
    flag = flag_of(path)
    raise typer.BadParameter(
        f"{flag} must be one of {', '.join(kinds)}, got {name!r}; {flag} help describes them with their options."
    )


def _read_options(flag: str, text: str) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named values of "0.05, members=32"; words need no quotes."""
    try:
        call = ast.parse("f(" + _RESERVED.sub(r"'\1'", text) + ")", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError(text)
        values = {key.arg: _literal(key.value) for key in call.keywords}
        if None in values:
            raise ValueError(text)
        return [_literal(node) for node in call.args], {str(key): value for key, value in values.items()}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _unreadable(flag, text) from None


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id, node.id)
    return ast.literal_eval(node)


def _unreadable(flag: str, text: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"{flag} must be a name, name(option=value, …) or option=value, …, got {text!r}; {flag} help lists them."
    )


def _no_option(owner: str, key: str, options: list[str]) -> typer.BadParameter:
    has = f"its options are {', '.join(options)}" if options else "it has no options"
    return typer.BadParameter(f"{owner} has no option {key!r}; {has}.")


# --- descriptions ---------------------------------------------------------------------------------------


def owner_of(option: str) -> str | None:
    """Return the parameter whose components have an option of that name, the first of several."""
    for parameter in COMPONENTS:
        if any(option in make().get_params(deep=False) for make in _kinds(parameter).values()):
            return parameter
    return None


def describe(parameter: str) -> str:
    """Return the page of an option: every component it takes, with its options and their defaults."""
    components = {name: make() for name, make in _kinds(parameter).items()}
    pages = {name: _options(component) for name, component in components.items()}
    shared = set.intersection(*map(set, pages.values())) if len(pages) > 1 else set()
    others = {name: {key: text for key, text in page.items() if key not in shared} for name, page in pages.items()}
    name, page = next(((name, page) for name, page in others.items() if page))
    example = next(iter(page)).split()[0]
    lines = [f"{flag_of(parameter)} takes a name, a name with options such as {name}({example}), or options alone,"]
    lines.append(f"such as {example}, which change the default.")
    for name, component in components.items():
        summary = (type(component).__doc__ or "").strip().partition("\n")[0].replace("`", "")
        lines += ["", *textwrap.wrap(f"{name}: {summary}", _WIDTH, subsequent_indent="  "), *others[name].values()]
    if shared:
        lines += ["", "All of them have these options:", *(pages[name][key] for key in pages[name] if key in shared)]
    return "\n".join(lines)


def _options(component: Component) -> dict[str, str]:
    """The lines of a page about the options of a component, by option and default, from docstrings."""
    texts: dict[str, str] = {}
    for base in reversed(type(component).__mro__):
        parameters = read_parameters(inspect.cleandoc(base.__doc__ or "")).values()
        texts |= {entry.name: entry.text.replace("`", "") for entry in parameters if not entry.text.startswith("See ")}
    lines = {}
    for key, value in component.get_params(deep=False).items():
        if key != "name":
            line = f"{key + '=' + str(value):<24} {texts.get(key, '')}"
            page = textwrap.TextWrapper(_WIDTH, initial_indent="    ", subsequent_indent=" " * 29)
            lines[f"{key}={value}"] = page.fill(line)
    return lines
