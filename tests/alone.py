"""A process of its own for tests of budgets of memory, which count all that a process has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CALL = """
import importlib, pathlib, sys
module, function, path = sys.argv[1:]
getattr(importlib.import_module(module), function)(pathlib.Path(path))
"""


def call_alone(module: str, function: str, path: Path) -> None:
    """Call a function of a module of tests with a path, in a new process in the current folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CALL, module, function, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
