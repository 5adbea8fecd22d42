"""The cache of machine code: never stale, never somebody else's, and never a reason to fail."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import fishergraph
from fishergraph import _compile

ROOT = Path(fishergraph.__file__).parent
DECORATORS = {
    *("compiled", "compiled_exactly", "compiled_sum"),
    *("inlined", "intrinsic", "inner", "inner_exactly", "inner_sum"),
}

# A caller in another file than what it calls: its machine code contains that of `counters`.
CALLER = """
from fishergraph._compile import compiled
from fishergraph.counters import below, row_state

@compiled
def draw(key):
    return below(row_state(key, 3), 1000)
"""
DRAW = """
from fishergraph.ops._numba.caller import draw
print(draw(5), sum(draw.stats.cache_hits.values()), draw.stats.cache_path)
"""


class Drawn(NamedTuple):
    """What a process printed: the number, whether its machine code came from the cache, and from which folder."""

    number: str
    cached: str
    folder: str


@pytest.fixture
def package(tmp_path):
    """A copy of the package with such a caller, whose cache is its own."""
    shutil.copytree(ROOT, tmp_path / "lib" / "fishergraph", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "lib" / "fishergraph" / "ops" / "_numba" / "caller.py").write_text(CALLER, encoding="utf-8")
    return tmp_path / "lib"


def run(package: Path, **environment: str) -> Drawn:
    clean = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", DRAW],
        capture_output=True,
        text=True,
        check=False,
        env={**clean, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return Drawn(*done.stdout.split())


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_change_in_one_file_reaches_the_compiled_callers_in_others(package):
    first, second = run(package), run(package)
    assert (second.number, second.cached, first.cached) == (first.number, "1", "0")
    before = set((package / "fishergraph/ops/_numba/__pycache__").glob("*.nbc"))
    change(package / "fishergraph/counters.py", "(bound * 2.0**-53)", "0.0")
    third = run(package)
    assert (first.number != "0", third.number, third.cached) == (True, "0", "0")
    after = set((package / "fishergraph/ops/_numba/__pycache__").glob("*.nbc"))
    assert before
    assert not before & after, "stale machine code is removed"


def test_damaged_machine_code_is_compiled_again(package):
    first = run(package)
    for path in (package / "fishergraph/ops/_numba/__pycache__").glob("*.nb[ci]"):
        path.write_bytes(path.read_bytes()[:100])
    again = run(package)
    assert (again.number, again.cached) == (first.number, "0")
    assert run(package).cached == "1"


def test_a_read_only_installation_without_a_home_keeps_its_code_in_a_folder_of_its_own(package, tmp_path):
    for module in [package / "fishergraph", *(package / "fishergraph").rglob("*/")]:
        (module / "__pycache__").touch()  # a file there cannot be a folder, not even for root
    (tmp_path / "tmp").mkdir()
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "TMPDIR": str(tmp_path / "tmp")}
    first, second = run(package, **nowhere), run(package, **nowhere)
    own = tmp_path / "tmp" / f"fishergraph-{os.getuid()}"
    assert first.folder.startswith(str(own))
    assert own.stat().st_mode & 0o777 == 0o700
    assert (first.cached, second.cached, second.number) == ("0", "1", first.number)

    own.chmod(0o777)  # others could have written there
    third = run(package, **nowhere)
    assert (third.number, third.folder) == (first.number, "None")

    named = run(package, **nowhere, NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert named.folder.startswith(str(tmp_path / "named"))


@pytest.mark.parametrize("found", ["file", "link", "foreign", "missing"])
def test_a_temporary_folder_that_is_not_ours_is_not_used(tmp_path, monkeypatch, found):
    monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: str(tmp_path))
    own = tmp_path / f"fishergraph-{os.getuid()}"
    if found == "file":
        own.touch()
    elif found == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        own.symlink_to(tmp_path / "elsewhere")
    elif found == "foreign":
        own.mkdir(mode=0o700)
        somebody = os.getuid() + 1
        own.rename(tmp_path / f"fishergraph-{somebody}")
        monkeypatch.setattr(_compile.os, "getuid", lambda: somebody)
    else:
        monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: str(tmp_path / "no" / "folder"))
    assert _compile.private_temporary_folder() is None


def test_a_full_disk_costs_the_cache_alone(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_compile._Files, "_save_data", full)
    source = tmp_path / "added.py"
    source.write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    namespace: dict = {}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), namespace)
    assert _compile.compiled(namespace["add"])(1, 2) == 3


# --- the list of files ----------------------------------------------------------------------------------


def decorated(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(mark, ast.Name) and mark.id in DECORATORS for mark in node.decorator_list
    )


def names_in(nodes) -> set[str]:
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def sources(tree: ast.Module) -> dict[str, str]:
    """The module of every name that is imported from the package."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: node.module or ""
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("fishergraph")
    }


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_stamp_covers_every_file_that_machine_code_is_made_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kernels = [node for node in ast.walk(tree) if decorated(node)]
    if not kernels:
        return
    covered = set(_compile.kernel_files())
    assert path in covered, f"add {path.name} to KERNELS"
    used, assigned = names_in(kernels), [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    for node in reversed(assigned):  # a constant may be made of others before it
        if names_in(getattr(node, "targets", None) or [getattr(node, "target", node)]) & used:
            used |= names_in([node])
    for name in used & sources(tree).keys():
        module = ROOT.parent / (sources(tree)[name].replace(".", "/") + ".py")
        assert module in covered, f"{path.name} uses {name}: add {module.name} to KERNELS"
