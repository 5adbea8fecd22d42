"""Folders that appear complete or not at all, and their JSON files."""

from __future__ import annotations

import glob
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fishergraph._errors import FileFormatError
from fishergraph.io.files import naming

HIDDEN, ASIDE = ".ingest", ".old.ingest"  # the ends of the names of stores that are written, and of those replaced


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A new folder with a hidden name beside `path`, which gets that name at the end, and is removed on failure.

    Those of killed writers are removed.
    """
    remove_left(path)
    part = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}{HIDDEN}")
    try:
        with naming(path):
            part.mkdir()
            yield part
            os.replace(part, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove_left(path: Path) -> None:
    """Remove what killed writers of a store left; a store that one of them had moved aside comes back."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{HIDDEN}"):
        if writer_lives(left, path):
            continue
        if left.name.endswith(ASIDE) and not path.exists():
            os.replace(left, path)
        shutil.rmtree(left, ignore_errors=True)


def writer_lives(folder: Path, path: Path) -> bool:
    """Whether the process that writes to a hidden folder, which will be at `path`, still runs."""
    process = folder.name.removeprefix(f".{path.name}.").partition("-")[0]
    if not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a store."""
    try:
        content = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path=path, reason=f"it is not JSON ({error})", advice="delete its folder") from None
    if not isinstance(content, dict):
        raise FileFormatError(path=path, reason="it is not a JSON object", advice="delete its folder")
    return content


@contextmanager
def scratch_folder(path: Path, kind: str) -> Iterator[Path]:
    """A new folder with a hidden name beside `path`, which is removed at the end; those of killed processes too."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.{kind}"):
        if not writer_lives(left, path):
            shutil.rmtree(left, ignore_errors=True)
    part = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.{kind}")
    try:
        with naming(path):
            part.mkdir()
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
