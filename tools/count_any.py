"""Count the parameters typed Any in the core: `python tools/count_any.py [file or folder of src/fishergraph …]`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "fishergraph"
CORE = (
    "multiset",
    "family",
    "em",
    "embedding.py",
    "kernel_map.py",
    "layer.py",
    "stack.py",
    "passes.py",
    "walk.py",
    "estimators",
)


def parameters(path: Path) -> Iterator[tuple[str, str]]:
    """(place, annotation) of every annotated parameter of the functions of a file; kernels have no annotations."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for argument in [*arguments, node.args.vararg, node.args.kwarg]:
                if argument is not None and argument.annotation is not None:
                    yield f"{path.name}:{argument.lineno} {argument.arg}", ast.unparse(argument.annotation)


def count(names: tuple[str, ...] = CORE) -> tuple[list[str], int]:
    """The parameters typed Any, or Any | None, and the number of all parameters."""
    paths = [path for name in names for path in sorted((ROOT / name).rglob("*.py")) or [ROOT / name]]
    found = [entry for path in paths for entry in parameters(path)]
    return [place for place, annotation in found if "Any" in annotation.split(" | ")], len(found)


if __name__ == "__main__":
    for name in tuple(sys.argv[1:]) or CORE:
        any_typed, total = count((name,))
        print(f"{name:<16} {len(any_typed):>4} of {total:>4} parameters, {len(any_typed) / max(total, 1):.1%}")
    any_typed, total = count(tuple(sys.argv[1:]) or CORE)
    print(f"{'together':<16} {len(any_typed):>4} of {total:>4} parameters, {len(any_typed) / max(total, 1):.1%}")
