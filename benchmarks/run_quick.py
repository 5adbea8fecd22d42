"""Start every benchmark in its quick mode: it shows that they run, it measures nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from common import SKIPPED


def main() -> None:
    failed = []
    for script in sorted(Path(__file__).resolve().parent.glob("bench_*.py")):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(script), "--quick"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        verdict = {0: "ok", SKIPPED: "skipped"}.get(done.returncode, "FAILED")
        print(f"{script.name:<20} {verdict:<8} {time.perf_counter() - start:5.1f} s", flush=True)
        if verdict == "skipped":
            print(done.stdout.strip())
        if verdict == "FAILED":
            failed.append(script.name)
            print(done.stdout)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
