"""Seconds that the first call after installation compiles: `FisherEmbedding(random_state=0).fit_transform` on Cora.

Every turn is a process of its own with an empty NUMBA_CACHE_DIR; it compiles for the first call less the second. Times
are those of the processor, which other programs disturb least. Beside them each function that was compiled, with its
callees: `--functions` prints those of the last turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from typing import Any

from common import Rows, load, parser, print_table, spread, spread_text, tiny_graph


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--functions", action="store_true", help="print the compiled functions too")
    options.add_argument("--child", action="store_true", help=SUPPRESS)
    args = options.parse_args()
    if args.child:
        print(json.dumps(measure(args)))
        return
    turns = [in_fresh_process(args) for _ in range(1 if args.quick else args.rounds)]
    row: dict[str, Any] = {}
    for name in ("first_s", "second_s", "compiled_s"):
        row |= spread([turn[name] for turn in turns], name)
    row = Rows("first_call", args).add(graph="cora", functions=len(turns[-1]["functions"]), **row)
    print_table(("first, s", "second, s", "compiled, s", "functions"), [[*cells(row), row["functions"]]])
    if args.functions:
        lines = sorted(turns[-1]["functions"], key=lambda line: -line[1])
        print_table(("function", "seconds", "arguments"), lines)


def cells(row: dict[str, Any]) -> list[str]:
    return [spread_text(row, name) for name in ("first_s", "second_s", "compiled_s")]


def in_fresh_process(args: Any) -> dict[str, Any]:
    """The measures of a process with an empty cache."""
    options = [*(["--quick"] if args.quick else []), *(["--data", str(args.data)] if args.data else [])]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--child", *options],
            env={**os.environ, "NUMBA_CACHE_DIR": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def measure(args: Any) -> dict[str, Any]:
    """Seconds of the processor of the first and the second call, and what numba compiled in the first."""
    from fishergraph import FisherEmbedding

    data = tiny_graph() if args.quick else load("cora", args.data)
    compiled: list[tuple[str, float, str]] = []
    times = []
    for turn in range(2):
        start = time.process_time()
        if turn == 0:
            listen(compiled)
        FisherEmbedding(random_state=0, n_jobs=1).fit_transform(data.X, graph=data.graph)
        times.append(time.process_time() - start)
    return {"first_s": times[0], "second_s": times[1], "compiled_s": times[0] - times[1], "functions": compiled}


def listen(compiled: list[tuple[str, float, str]]) -> None:
    """Append the name, the seconds and the argument types of every function that numba compiles from now on."""
    from numba.core import event

    class Listener(event.Listener):
        def __init__(self) -> None:
            self.begun: list[float] = []

        def on_start(self, event: Any) -> None:
            self.begun.append(time.process_time())

        def on_end(self, event: Any) -> None:
            spent = time.process_time() - self.begun.pop()
            function = event.data["dispatcher"].py_func
            compiled.append((f"{function.__module__}.{function.__name__}", spent, str(event.data["args"])[:200]))

    event.register("numba:compile", Listener())


if __name__ == "__main__":
    main()
