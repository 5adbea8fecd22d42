"""Packages that only some features need, asked for where they are used."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """The imported module, or an ImportError that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this feature needs the package '{module.split('.')[0]}', which is not installed; "
            f"run: pip install 'fishergraph[{extra}]'"
        ) from error
