"""Milliseconds of an epoch of `train` on a small graph, captured as CUDA graphs and kernel by kernel, on a GPU.

The graph is random and has the size of Pubmed (19,717 nodes, 88,648 edges, 500 features): the time does not depend on
the data. Networks have three layers of 128, p = 4 and dropout 0.5. Both ways take turns; "same" says whether the losses
of all epochs agree to the last bit. Beside it the inverse root of Nyström heads, forward and backward: by products,
four heads at once, and by eigenvalues, one by one.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from common import Rows, parser, print_table, require, spread, spread_text

torch = require("torch")
require("torch_geometric")
from fishergraph.nn import FisherNet, loop, train  # noqa: E402
from fishergraph.nn.charts import inverse_sqrt  # noqa: E402
from fishergraph.nn.inverse_root import inverse_root  # noqa: E402

CASES = {  # head, and whether x is sparse
    "head='nystrom', the default": ("nystrom", False),
    "head='relu'": ("relu", False),
    "head='linear'": ("linear", False),
    "head='nystrom', x sparse": ("nystrom", True),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cuda")
    options.add_argument("--rounds", type=int, default=3, help="turns of each way (default 3)")
    options.add_argument("--epochs", type=int, default=60)
    args = options.parse_args()
    if args.quick:
        args.rounds, args.epochs, args.device = 1, 4, "cpu"
    torch.set_num_threads(args.threads)
    rows = Rows("capture", args)
    data = problem(300 if args.quick else 19_717, 900 if args.quick else 88_648, 20 if args.quick else 500)
    for name, case in CASES.items():
        rows.add(work="epoch", case=name, device=device_name(args), epochs=args.epochs, **epochs(case, data, args))
    for landmarks in (16,) if args.quick else (64, 128, 256, 512):
        name = f"inverse roots of four heads of {landmarks}, forward + backward"
        rows.add(work="root", case=name, device=device_name(args), **roots(landmarks, args))
    cells = [
        (row["case"], spread_text(row, "eager_ms"), spread_text(row, "captured_ms"), row.get("same", ""))
        for row in rows.rows
    ]
    print_table(("case", "kernel by kernel or eigenvalues, ms", "captured or products, ms", "same"), cells)


def device_name(args: Namespace) -> str:
    return torch.cuda.get_device_name(0) if args.device == "cuda" else args.device


def problem(n: int, edges: int, features: int) -> tuple[Any, Any, Any]:
    """Random x, a tenth of it not zero, labels and edges."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(n, features, generator=generator) * (torch.rand(n, features, generator=generator) < 0.1)
    return x, torch.arange(n) % 3, torch.randint(n, (2, edges), generator=generator)


@contextmanager
def not_captured(without: bool) -> Iterator[None]:
    """Within it `train` captures nothing, if `without`."""
    before = loop.can_capture
    loop.can_capture = (lambda *_: False) if without else before
    try:
        yield
    finally:
        loop.can_capture = before


def epochs(case: tuple[str, bool], data: tuple[Any, Any, Any], args: Namespace) -> dict[str, Any]:
    """The median milliseconds of both ways, over the rounds, and whether their losses agree."""
    times: dict[bool, list[float]] = {True: [], False: []}
    losses: dict[bool, list[Any]] = {}
    for turn in range(args.rounds):
        for eager in (True, False) if turn % 2 else (False, True):
            with not_captured(eager):
                history = one_run(case, data, args)
            losses[eager] = [(row["loss"], row["val_loss"]) for row in history.rows]
            seconds = sorted(row["seconds"] for row in history.rows[args.epochs // 4 :])
            times[eager].append(1e3 * seconds[len(seconds) // 2])
    same = "yes" if losses[True] == losses[False] else "no"
    return {**spread(times[True], "eager_ms"), **spread(times[False], "captured_ms"), "same": same}


def one_run(case: tuple[str, bool], data: tuple[Any, Any, Any], args: Namespace) -> Any:
    """The history of a training."""
    (head, sparse), (x, y, edges) = case, data
    torch.manual_seed(0)
    net = FisherNet(x.shape[1], 128, 3, 3, head=head, dropout=0.5)
    x = x.to_sparse_csr() if sparse else x
    nodes = {"train": range(60), "val": range(60, 300)}
    return train(net, x, y, edges, **nodes, epochs=args.epochs, patience=None, device=args.device)


def roots(landmarks: int, args: Namespace) -> dict[str, Any]:
    """Milliseconds of the inverse roots of four heads."""
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(4, landmarks, 128, generator=generator, dtype=torch.float64)
    w = torch.nn.functional.normalize(w, dim=2)
    grams = torch.exp((w @ w.mT - 1) / 0.49).to(args.device).requires_grad_()
    ways: dict[str, Callable[[], Any]] = {
        "eager_ms": lambda: torch.stack([inverse_sqrt(gram) for gram in grams]),
        "captured_ms": lambda: inverse_root(grams),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds + 2):
        for name, run in ways.items():
            times[name].append(milliseconds(lambda: torch.autograd.grad(run().square().sum(), grams), args))  # noqa: B023
    result: dict[str, Any] = {}
    for name, found in times.items():
        result |= spread(found[2:], name)
    errors = (ways["eager_ms"]() - ways["captured_ms"]()).abs().max() / ways["eager_ms"]().abs().max()
    return {**result, "error": float(errors.detach())}


def milliseconds(run: Callable[[], Any], args: Namespace) -> float:
    """Milliseconds of a call, the device included; the mean of ten."""
    import time

    calls = 1 if args.quick else 10
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return 1e3 * (time.perf_counter() - start) / calls


if __name__ == "__main__":
    main()
