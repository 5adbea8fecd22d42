"""The rules a parser can check: imports go one way, modules stay small, the library is quiet and documented."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fishergraph

ROOT = Path(fishergraph.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# A module or package imports itself and what comes before it; the package's __init__ lists all of them.
ORDER = [
    *(
        "_version",
        "_typing",
        "_errors",
        "_optional",
        "_listing",
        "_repr",
        "_diagram",
        "_warn",
        "_compile",
        "_parallel",
        "_progress",
        "_validation",
    ),
    *("_arrays", "_component", "config", "device", "_records", "times", "io", "tables"),
    *("graph_summary", "graph_readers", "graph", "graphs"),
    *("counters", "cores", "diffusion", "structural", "multiset", "family", "ops", "em"),
    *("embedding", "bounds", "kernel_map", "published", "walk", "axes", "layer", "stack", "passes", "part", "costs"),
    *("relational", "presets"),
    *("nn", "exchange", "datasets", "probes", "estimators", "auto", "kernels", "scale", "vectors", "tabular"),
    *("explain", "plots", "explore", "cli", "lab", "__main__"),
]

# torch appears here and nowhere else.
TORCH = re.compile(r"nn/|lab/|ops/(tensor_|torch_|_torch/|_triton/|_numba/tensors|\w+/(torch|triton))")

MODULE_LINES, FUNCTION_LINES, KERNEL_LINES = 400, 50, 80
# Budgets of modules that are longer; the numbers only fall.
LONG_MODULES = {"estimators/graphs.py": 414}
COMPILERS = {"compiled", "compiled_sum", "inlined", "inner", "inner_sum", "njit", "intrinsic", "jit"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, inside functions too; `from a import b` counts as a.b."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} has a relative import; name the package"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def decorators(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The last parts of the decorators' names."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return {d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in calls}


each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


@each_module
def test_every_module_is_in_the_order(path):
    assert package_of(path) in ["__init__", *ORDER], f"add {package_of(path)} to ORDER"


@each_module
def test_imports_go_one_way(path):
    if path == ROOT / "__init__.py":
        return
    here = ORDER.index(package_of(path))
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "fishergraph":
            continue
        assert len(parts) > 1, f"{name_of(path)}:{line} imports the whole package; name the module"
        # A lazy name of the package counts as the module it comes from.
        package = fishergraph._HOMES.get(parts[1], name).split(".")[1]
        assert package in ORDER, f"{name_of(path)}:{line} imports {name}, which is not in ORDER"
        assert ORDER.index(package) <= here, f"{name_of(path)}:{line} imports {package}, which comes later"


def test_the_import_test_sees_through_functions(tmp_path, monkeypatch):
    (tmp_path / "graph.py").write_text("def f():\n    from fishergraph.estimators import FisherEmbedding\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"graph\.py:2 imports estimators"):
        test_imports_go_one_way(tmp_path / "graph.py")


@each_module
def test_torch_stays_in_its_modules(path):
    if TORCH.match(name_of(path)):
        return
    found = [line for line, name in imports(path) if name.split(".")[0] in ("torch", "torch_geometric", "triton")]
    assert not found, f"{name_of(path)} imports torch in lines {found}"


@each_module
def test_a_module_fits_its_budget(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    most = LONG_MODULES.get(name_of(path), MODULE_LINES)
    assert lines <= most, f"{name_of(path)} has {lines} lines, at most {most}; split it by idea"


def test_long_modules_become_shorter():
    """An exception that is not needed any more, or could be smaller, goes."""
    for name, most in LONG_MODULES.items():
        lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
        assert lines > MODULE_LINES, f"{name} has {lines} lines: take it off LONG_MODULES"
        assert most - lines < 20, f"{name} has {lines} lines: lower its budget of {most}"


@each_module
def test_a_function_fits_its_budget(path):
    for function in functions(path):
        budget = KERNEL_LINES if decorators(function) & COMPILERS else FUNCTION_LINES
        lines = body_lines(function)
        assert lines <= budget, f"{name_of(path)}:{function.lineno} {function.name} has {lines} lines, at most {budget}"


@each_module
def test_the_library_never_prints(path):
    if package_of(path) == "cli":
        return
    calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    lines = [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert not lines, f"{name_of(path)} prints in lines {lines}"


@each_module
def test_what_is_public_has_a_docstring(path):
    tree = tree_of(path)
    assert ast.get_docstring(tree) or package_of(path) == "_version", f"{name_of(path)} has no docstring"
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name_of(path)}:{node.lineno} {node.name} has no docstring"


@each_module
def test_nothing_touches_the_global_random_state(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            allowed = ("default_rng", "Generator", "SeedSequence", "RandomState")
            assert node.attr in allowed, f"{name_of(path)}:{node.lineno} uses np.random.{node.attr}"


def test_few_parameters_are_typed_any():
    count = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "count_any.py"))["count"]
    places, total = count()
    assert total > 1000
    assert len(places) < 0.05 * total, f"{len(places)} of {total} parameters are typed Any: {places}"


# --- import fishergraph ---------------------------------------------------------------------------------


def run_python(code: str, **environment: str) -> str:
    more = {"env": {**os.environ, **environment}}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_importing_the_package_loads_nothing_heavy():
    heavy = "['numba', 'torch', 'sklearn', 'pandas', 'pyarrow', 'polars', 'scipy', 'numpy', 'matplotlib', 'tqdm']"
    assert run_python(f"import sys, fishergraph; print([m for m in {heavy} if m in sys.modules])") == "[]\n"


def test_a_graph_loads_no_engine():
    heavy = "['numba', 'torch', 'sklearn', 'pandas', 'pyarrow']"
    code = f"import sys; from fishergraph import as_graph; print([m for m in {heavy} if m in sys.modules])"
    assert run_python(code) == "[]\n"


def test_the_estimator_needs_neither_torch_nor_plots():
    heavy = "['torch', 'matplotlib', 'networkx']"
    code = f"import sys; from fishergraph import FisherEmbedding; print([m for m in {heavy} if m in sys.modules])"
    assert run_python(code) == "[]\n"


def test_lazy_names_are_listed_and_work():
    assert dir(fishergraph) == sorted(["__version__", *fishergraph._HOMES])
    assert set(dir(fishergraph)) == set(fishergraph.__all__)
    for name in dir(fishergraph):
        assert getattr(fishergraph, name) is not None
    namespace: dict = {}
    exec("from fishergraph import *", namespace)
    assert set(fishergraph.__all__) <= set(namespace)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match="FisherEmbedding"):
        _ = fishergraph.FisherEmbeding
    with pytest.raises(ImportError, match="FisherEmbeding"):
        exec("from fishergraph import FisherEmbeding")


def test_the_first_embedding_compiles_no_transport_and_no_second_iteration(tmp_path):
    """Half of what a newcomer would wait for, and the default never calls them."""
    code = """
import numpy as np, scipy.sparse as sp
from fishergraph import FisherEmbedding
from fishergraph.ops.iterate.numba import _e_step_row, em_rows, plain_rows
from fishergraph.ops.transport.numba import transport_row
X, A = np.eye(6, dtype=np.float32), sp.csr_array(np.eye(6, k=1))
FisherEmbedding(1, 2, 4, random_state=0).fit_transform(X, graph=A)
print(*(len(function.signatures) for function in (plain_rows, em_rows, transport_row, _e_step_row)))
"""
    assert run_python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0 0 0\n"
