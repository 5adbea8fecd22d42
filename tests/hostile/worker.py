"""The child process of `sandbox`: makes each case, runs it, and prints a line of JSON before and after it."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import warnings
from pathlib import Path


def main(suite: str, gigabytes: int, seeds: list[int]) -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from hostile.rule import judge

    # What a case prints must not mix with the verdicts.
    verdicts = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    make = importlib.import_module(f"hostile.{suite}").make
    limit = gigabytes * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print(json.dumps({"label": "ready"}), file=verdicts, flush=True)
    for seed in seeds:
        label, action = make(seed)
        print(json.dumps({"label": label}), file=verdicts, flush=True)
        outcome, seen = judge(action)
        print(json.dumps({"label": label, "outcome": outcome, "seen": seen[-3000:]}), file=verdicts, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [int(seed) for seed in sys.argv[3:]])
