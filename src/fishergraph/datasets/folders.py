"""Data folders: where graphs are searched, and where downloads go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fishergraph.datasets.sources import Source


def data_folders(data_home: str | Path | None = None) -> list[Path]:
    """List the folders that are searched for graphs.

    Parameters
    ----------
    data_home : str or path, default=None
        The only folder; None is that of the environment variable FISHERGRAPH_DATA, if it is set, and the cache folder.

    Returns
    -------
    list of path
        The folders in the order of the search. Downloads go into the last one.

    See Also
    --------
    cache_folder : The folder for downloads.

    Examples
    --------
    >>> from fishergraph.datasets import data_folders
    >>> [str(folder) for folder in data_folders("data")]
    ['data']
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get("FISHERGRAPH_DATA")
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def cache_folder() -> Path:
    """Return the folder for downloads: `fishergraph` in $XDG_CACHE_HOME or ~/.cache.

    Returns
    -------
    path
        The folder; it need not exist.

    See Also
    --------
    data_folders : All folders that are searched.

    Examples
    --------
    >>> from fishergraph.datasets import cache_folder
    >>> cache_folder().name
    'fishergraph'
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fishergraph"


def existing_folders(data_home: str | Path | None = None) -> list[Path]:
    """The data folders that exist; one that is not readable is an error."""
    folders = []
    for folder in data_folders(data_home):
        try:
            exists = folder.exists()
            readable = not exists or (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK))
        except OSError:  # a parent folder is not readable
            exists, readable = True, False
        if not readable:
            raise PermissionError(
                f"the data folder '{folder}' is not a readable folder; change its permissions, or name another with "
                "FISHERGRAPH_DATA or data_home."
            )
        folders += [folder] if exists else []
    return folders


def npz_files(data_home: str | Path | None = None) -> dict[str, Path]:
    """The `.npz` files in the data folders, by name; the first folder takes precedence."""
    files = [path for folder in existing_folders(data_home) for path in sorted(folder.glob("*.npz"))]
    return {path.stem: path for path in reversed(files)}


def source_paths(source: Source, data_home: str | Path | None = None) -> Iterator[Path]:
    """The existing paths at which the data folders may have a dataset."""
    for folder in existing_folders(data_home):
        yield from (folder / path for path in source.paths if (folder / path).exists())
