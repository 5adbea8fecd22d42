"""Kill commands at random times and repeat them: `python tools/kill.py --kills 100`.

A repeated command must leave what an undisturbed one leaves: the same bytes, apart from seconds, memory and dates, and
no other file. Prints each fault with its seed, and the counts per command; the exit code is 1 where there is a fault.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent / "tests")

from kills.commands_to_kill import COMMANDS  # noqa: E402
from kills.killing import Processes, Stage, kills  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument(
        "--processes", action="store_true", help="start Python anew for each command, as a shell does: slower"
    )
    options = parser.parse_args()
    stage = Processes() if options.processes else Stage()
    counts: Counter[tuple[str, str]] = Counter()
    faults = 0
    for outcome in kills(options.commands, options.kills, start=options.start, stage=stage):
        counts[outcome.command, "killed" if outcome.killed else "ended before"] += 1
        if outcome.fault:
            faults += 1
            print(f"fault {outcome.command} seed {outcome.seed}, killed after {outcome.after:.3f} s: {outcome.fault}\n")
    for (name, what), count in sorted(counts.items()):
        print(f"{name}: {count} {what}")
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
