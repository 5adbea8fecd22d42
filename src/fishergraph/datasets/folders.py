"""Where data is looked for, and where downloads go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fishergraph.datasets.sources import Source


def data_folders(data_home: str | Path | None = None) -> list[Path]:
    """The folders to look in, in order; the last one receives downloads."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get("FISHERGRAPH_DATA")
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def cache_folder() -> Path:
    """The folder for downloads: `fishergraph` in $XDG_CACHE_HOME, else in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fishergraph"


def existing_folders(data_home: str | Path | None = None) -> list[Path]:
    """Those of the data folders that are there; one that may not be read is an error."""
    found = []
    for folder in data_folders(data_home):
        try:
            there = folder.exists()
            readable = not there or (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK))
        except OSError:  # a folder above it is closed
            there, readable = True, False
        if not readable:
            raise PermissionError(
                f"a data folder must be a folder that can be read, got '{folder}', which is not; change its rights, or "
                "name another with FISHERGRAPH_DATA or data_home."
            )
        found += [folder] if there else []
    return found


def npz_files(data_home: str | Path | None = None) -> dict[str, Path]:
    """The `.npz` files that lie in the data folders, by name; the first folder wins."""
    files = [path for folder in existing_folders(data_home) for path in sorted(folder.glob("*.npz"))]
    return {path.stem: path for path in reversed(files)}


def places(source: Source, data_home: str | Path | None = None) -> Iterator[Path]:
    """The paths at which the data folders may have a dataset."""
    for folder in existing_folders(data_home):
        for place in source.places:
            if (folder / place).exists():
                yield folder / place
