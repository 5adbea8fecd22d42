"""A process that has imported everything, and forks a child for every command: kills then meet work, not imports.

Reads lines of JSON {"folder": …, "arguments": […]} and answers with the child's process id, then with its exit code.
"""

from __future__ import annotations

import json
import os
import sys
import traceback


def main() -> None:
    import fishergraph.cli.commands
    import fishergraph.datasets
    import fishergraph.estimators
    import fishergraph.io.tables  # noqa: F401

    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _perform(order)
        print(json.dumps(child), flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


def _perform(order: dict) -> None:
    """Run a command as a process of its own would, and end."""
    code = 1
    try:
        os.chdir(order["folder"])
        log = os.open("../said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = ["fishergraph", *order["arguments"]]
        fishergraph_cli = sys.modules["fishergraph.cli"]
        fishergraph_cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
