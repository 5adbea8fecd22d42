"""A TOML file with values for the options that the command line leaves out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer

from fishergraph.io.files import check_regular

_NOT_KEYS = ("config", "help", "debug")
_MOST_BYTES = 1 << 20
_LONGEST = 1000  # characters of a value


def load_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Make the values of the file the defaults of this call, and return its path; a wrong key is a wrong call."""
    if path is None or ctx.resilient_parsing:
        return path
    entries = _entries(path)
    params = {name: param for param in ctx.command.params for name in (*param.opts, *param.secondary_opts)}
    options = {name[2:]: param for name, param in params.items() if name.startswith("--") and name[2:] not in _NOT_KEYS}
    values: dict[str, Any] = {}
    keys: dict[Any, str] = {}  # of the options so far
    for key, value in entries.items():
        param = options.get(key.replace("_", "-"))
        if param is None or isinstance(value, dict):
            what = "a table, which" if isinstance(value, dict) else "a key that"
            raise typer.BadParameter(f"{key!r} in '{path}' is {what} is not known; keys are {', '.join(options)}.")
        if param.name in keys:
            raise typer.BadParameter(
                f"{keys[param.name]!r} and {key!r} in '{path}' are one option: leave one of them out."
            )
        keys[param.name] = key
        values[str(param.name)] = _words(param, key, value)
    ctx.default_map = {**(ctx.default_map or {}), **values}
    return path


def _entries(path: Path) -> dict[str, Any]:
    try:
        check_regular(path)
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise typer.BadParameter(f"'{path}' cannot be read ({error.strerror or error}).") from None
    except RecursionError:
        raise typer.BadParameter(f"'{path}' is nested too deeply; a key has a value or a list of values.") from None
    except ValueError as error:  # of the TOML or of its encoding
        raise typer.BadParameter(f"'{path}' is not TOML ({error}).") from None


def _words(param: Any, key: str, value: Any) -> Any:
    """A TOML value as the command line would have it: text, which is then parsed with the same strictness."""
    if f"--{key.replace('_', '-')}" in param.secondary_opts:  # directed = true is undirected = false
        value = (not value) if isinstance(value, bool) else value
    if getattr(param, "multiple", False):
        return [_word(entry, key) for entry in (value if isinstance(value, list) else [value])]
    return ",".join(_word(entry, key) for entry in value) if isinstance(value, list) else _word(value, key)


def _word(value: Any, key: str) -> str:
    try:
        word = str(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        word = "\0"
    if isinstance(value, (list, dict)) or "\0" in word or len(word) > _LONGEST:
        raise typer.BadParameter(
            f"{key!r} in the config file must be text of at most {_LONGEST} characters, a number, true or false, or a "
            "list of these."
        )
    return word
