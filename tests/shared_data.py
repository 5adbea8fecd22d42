"""Where the tests look for the larger graphs, which are not part of the package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_data() -> Path | None:
    """The folder of larger graphs: $FISHERGRAPH_DATA, else ../shared/data from the root, else None."""
    named = os.environ.get("FISHERGRAPH_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


needs_shared_data = pytest.mark.skipif(
    shared_data() is None,
    reason="needs the larger graphs: set FISHERGRAPH_DATA to a folder that holds them",
)
