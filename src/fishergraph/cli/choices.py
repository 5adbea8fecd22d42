"""Wrong choices as wrong calls: exit code 2, and a message that lists what is possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from fishergraph._errors import InputTypeError
from fishergraph.cli.options import in_options


@contextmanager
def wrong_call(flag: str | None = None) -> Iterator[None]:
    """Turn an error about a setting into a wrong call, of an option if it is named."""
    try:
        yield
    except (ValueError, InputTypeError) as error:
        hint = None if flag is None else f"'{flag}'"
        raise typer.BadParameter(in_options(error, inside=flag is not None), param_hint=hint) from None


def device(name: str | None) -> str | None:
    """Check the name of a device, whether there is one or not."""
    if name is not None:
        from fishergraph.device import choose_device

        with wrong_call():
            choose_device(name)
    return name
