"""Many hostile cases of a suite: `python tools/hostile.py files --cases 2000 --start 0`.

Prints how many cases ended in a result, were refused or broke the rule, and each fault with its seed. The exit code is
1 where there is a fault. `--show refused` prints the sentences of the refused ones too.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent / "tests")  # in place of this folder, in which this file is `hostile`

from hostile.sandbox import SECONDS, run_suite  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="a module of tests/hostile: api, files, models, …")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="after which a case hangs")
    parser.add_argument("--show", choices=("result", "refused"), help="print these cases too")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    for verdict in run_suite(
        options.suite, range(options.start, options.start + options.cases), seconds=options.seconds
    ):
        outcomes[verdict.outcome] += 1
        if verdict.outcome in ("fault", options.show):
            print(
                f"{verdict.outcome} {verdict.suite} seed {verdict.seed} ({verdict.label})\n{verdict.seen}\n", flush=True
            )
    print(f"{options.suite}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return 1 if outcomes["fault"] else 0


if __name__ == "__main__":
    sys.exit(main())
