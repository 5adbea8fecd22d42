"""The hidden folders of stores that are being written, and what killed writers left of them."""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path

HIDDEN, ASIDE = ".ingest", ".old.ingest"  # the ends of their names


def clean(path: Path) -> None:
    """Remove what killed writers of a store left; a store that one of them had moved aside comes back."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{HIDDEN}"):
        if _is_alive(left, path):
            continue
        if left.name.endswith(ASIDE) and not path.exists():
            os.replace(left, path)
        shutil.rmtree(left, ignore_errors=True)


def _is_alive(folder: Path, path: Path) -> bool:
    """Whether the process that writes to a hidden folder still runs."""
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
