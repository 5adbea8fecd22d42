"""How many functions of the library one call goes through: the numbers only fall."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fishergraph
from fishergraph import FisherEmbedding, load_graph

ROOT = str(Path(fishergraph.__file__).parent)

# call: (functions, files), lambdas and comprehensions included, in a call after the first one
BUDGETS = {"FisherEmbedding.fit_transform": (322, 46), "FisherConv.forward": (49, 20)}


def path_of(call: Callable[[], Any]) -> set[tuple[str, str, int]]:
    """The file, name and line of every function of the library that a call enters, in any thread."""
    entered = set()

    def profile(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            entered.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return entered


def embed() -> Callable[[], Any]:
    cora = load_graph("cora")
    return lambda: FisherEmbedding(random_state=0).fit_transform(cora.X, graph=cora.graph)


def forward() -> Callable[[], Any]:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from fishergraph.nn import FisherConv

    layer, x = FisherConv(8, 4), torch.randn(50, 8)
    edge_index = torch.randint(50, (2, 200))
    return lambda: layer(x, edge_index)


@pytest.mark.parametrize(("name", "make"), [("FisherEmbedding.fit_transform", embed), ("FisherConv.forward", forward)])
def test_a_call_fits_its_budget(name, make):
    call = make()
    call()
    entered = path_of(call)
    functions, files = BUDGETS[name]
    names = "\n".join(f"{path.removeprefix(ROOT)}:{line} {function}" for path, function, line in sorted(entered))
    assert len(entered) <= functions, f"{name} goes through {len(entered)} functions, at most {functions}:\n{names}"
    assert len({path for path, *_ in entered}) <= files, f"{name} goes through more than {files} files:\n{names}"


def test_the_path_has_lambdas_and_other_threads():
    def call() -> None:
        thread = threading.Thread(target=lambda: fishergraph.as_graph([(0, 1)]))
        thread.start()
        thread.join()

    assert {"as_graph"} <= {name for _, name, _ in path_of(call)}
