"""A TOML file that answers for the options which the command line leaves out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer

from fishergraph._file_checks import check_regular

_NOT_KEYS = ("config", "help", "debug")


def load_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """The path, after its answers have become the defaults of this call; a wrong key is a wrong call."""
    if path is None or ctx.resilient_parsing:
        return path
    try:
        check_regular(path)
        entries = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise typer.BadParameter(f"'{path}' cannot be read ({error.strerror or error}).") from None
    except ValueError as error:  # of the TOML or of its encoding
        raise typer.BadParameter(f"'{path}' is not TOML ({error}).") from None
    params = {name: param for param in ctx.command.params for name in (*param.opts, *param.secondary_opts)}
    known = {name[2:]: param for name, param in params.items() if name.startswith("--") and name[2:] not in _NOT_KEYS}
    answers: dict[str, Any] = {}
    said: dict[Any, str] = {}  # by which key
    for key, value in entries.items():
        param = known.get(key.replace("_", "-"))
        if param is None or isinstance(value, dict):
            what = "a table, which" if isinstance(value, dict) else "a key that"
            raise typer.BadParameter(f"{key!r} in '{path}' is {what} is not known; keys are {', '.join(known)}.")
        if param.name in said:
            raise typer.BadParameter(
                f"{said[param.name]!r} and {key!r} in '{path}' are one option: leave one of them out."
            )
        said[param.name] = key
        answers[str(param.name)] = _answer(param, key, value)
    ctx.default_map = {**(ctx.default_map or {}), **answers}
    return path


def _answer(param: Any, key: str, value: Any) -> Any:
    """A TOML value as the command line would have it: text, which is then parsed with the same strictness."""
    if f"--{key.replace('_', '-')}" in param.secondary_opts:  # directed = true is undirected = false
        value = (not value) if isinstance(value, bool) else value
    if getattr(param, "multiple", False):
        return [str(entry) for entry in (value if isinstance(value, list) else [value])]
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
