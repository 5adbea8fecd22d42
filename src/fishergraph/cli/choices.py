"""Choices by name: what is no choice is a wrong call, which lists those there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

import typer


@contextmanager
def wrong_call() -> Iterator[None]:
    """Turn the error for a choice that does not exist into a wrong call."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def one_of(*names: str) -> Callable[[str | None], str | None]:
    """A callback that admits these names."""

    def check(name: str | None) -> str | None:
        if name is not None and name not in names:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(names)}.")
        return name

    return check


def one_in(module: str, table: str) -> Callable[[str | None], str | None]:
    """A callback that admits the names of a table of the library, which is imported only when there is one to check."""

    def check(name: str | None) -> str | None:
        return None if name is None else one_of(*getattr(import_module(module), table))(name)

    return check


def structure(name: str | None) -> str | None:
    """The name of structural features."""
    if name is not None:
        from fishergraph.structural import describe_structure

        with wrong_call():
            describe_structure(name)
    return name


def device(name: str | None) -> str | None:
    """The name of a device, there or not."""
    if name is not None:
        from fishergraph._validation import check_device

        with wrong_call():
            check_device(name, "float32")
    return name
