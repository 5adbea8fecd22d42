"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
from types import ModuleType

from fishergraph._errors import MissingExtra


def require(module: str, *, extra: str) -> ModuleType:
    """The imported module; if it is not installed, the error names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(package=module.partition(".")[0], extra=extra) from error
