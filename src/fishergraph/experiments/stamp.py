"""What a number was made with: the versions of the packages, and the commit of the source."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fishergraph._version import __version__

PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "numba": "numba",
    "pyarrow": "pyarrow",
    "torch": "torch",
    "torch_geometric": "torch_geometric",
}


def versions() -> dict[str, str | None]:
    """The versions of what the numbers depend on; None for what is not installed."""
    found: dict[str, str | None] = {"fishergraph": __version__, "python": platform.python_version()}
    for name, distribution in PACKAGES.items():
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            found[name] = None
    return found


@cache
def git_hash() -> str | None:
    """The commit of the checkout that the package is imported from, with + where tracked files differ from it.

    None for an installed package.
    """
    here = Path(__file__).resolve().parents[3]
    if not (here / ".git").exists():
        return None
    try:
        commit = _git(here, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(here, "status", "--porcelain", "--untracked-files=no", "--", "src") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, check=True, timeout=10)
    return done.stdout.decode("utf-8", errors="replace").strip()
