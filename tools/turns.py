"""Time two source trees in turns: is the new one slower?

    python tools/turns.py OLD_SRC NEW_SRC [--bench layer arxiv cora training] [--turns 5] [--size short]

Each turn runs every benchmark once per tree, each in a fresh process; the tree that goes first changes from turn to
turn, so that what else the machine does falls on both. A tree runs its own benchmarks/, which lies beside its src.
Rows go to a temporary folder, nothing is kept. FISHERGRAPH_DATA names the folder of the larger graphs.

The table has the medians of both trees, their ratio new / old, the ratio of the smallest values of both, which other
work on the machine disturbs least, and the least and largest ratio of a single turn. A row whose seconds are more than
5 % worse is marked. Use a quiet machine: on a busy one a tree differs from itself by a factor of two.

Sizes: "quick", tiny data, shows that the scripts start; "short", one to two minutes a turn on two quiet cores, has
smaller widths and our own rows alone; "full" has the sizes of the committed results, and takes hours.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

BENCHMARKS = ("layer", "arxiv", "cora", "training")
LAYER_ROWS = ("fishergraph, row blocks", "fishergraph, E-step", "fishergraph, em_means")
SIZES: dict[str, dict[str, list[str]]] = {
    "quick": {name: ["--quick"] for name in BENCHMARKS},
    "short": {
        "layer": ["--repeat", "3", "--only", *LAYER_ROWS],
        "arxiv": ["--repeat", "1", "--layers", "2", "--dim", "128"],
        "cora": ["--seeds", "1", "--dim", "128", "--anchors", "4", "--layers", "2"],
        "training": ["--graphs", "pubmed", "--models", "fisher", "--rounds", "1", "--hidden", "64"],
    },
    "full": {name: [] for name in BENCHMARKS},
}
# What names a row, and what is measured. Several rows of one name in one run (seeds, repetitions) give their median.
NAMES = ("graph", "model", "method")
MEASURES = ("seconds", "epoch_s", "ours_fit_s", "ours_transform_s", "ours_fit_transform_s", "extra_gb", "peak_gb")
SLOWER = 1.05

Key = tuple[str, str]  # row, measure


def check_tree(src: Path) -> None:
    """End with a sentence unless Python imports the library from this tree."""
    command = [sys.executable, "-c", "import fishergraph; print(fishergraph.__file__)"]
    done = subprocess.run(command, env=environment(src), capture_output=True, text=True)
    if done.returncode or not Path(done.stdout.strip()).is_relative_to(src):
        sys.exit(f"{src} must hold the package fishergraph, got {done.stdout.strip() or done.stderr.strip()!r}.")


def environment(src: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(src)}


def run(src: Path, name: str, arguments: list[str], threads: int) -> dict[Key, float]:
    """What one run of a benchmark of the tree measures."""
    script = src.parent / "benchmarks" / f"bench_{name}.py"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", script, "--results", folder, "--threads", str(threads), *arguments]
        done = subprocess.run(command, env=environment(src), cwd=src.parent, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{script} ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        rows = [row for path in sorted(Path(folder).glob("*.csv")) for row in read(path)]
    values: defaultdict[Key, list[float]] = defaultdict(list)
    for row in rows:
        label = ", ".join([name, *(row[key] for key in NAMES if row.get(key))])
        for measure in MEASURES:
            if row.get(measure):
                values[label, measure].append(float(row[measure]))
    return {key: statistics.median(numbers) for key, numbers in values.items()}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def table(old: list[dict[Key, float]], new: list[dict[Key, float]]) -> list[list[str]]:
    """A line for each measure: medians, their ratio, and the spread of the ratio over the turns."""
    lines = [["", "measure", "old", "new", "new / old", "of the least", "single turns", ""]]
    for key in dict.fromkeys(key for turn in (*old, *new) for key in turn):
        sides = [[turn[key] for turn in turns if key in turn] for turns in (old, new)]
        if not all(len(side) == len(old) for side in sides):
            lines.append([*key, *("yes" if side else "" for side in sides), "", "", "", "not in both"])
            continue
        medians = [statistics.median(side) for side in sides]
        ratio = medians[1] / medians[0]
        single = [b / a for a, b in zip(*sides, strict=True)]
        mark = "slower" if ratio > SLOWER and not key[1].endswith("_gb") else ""
        cells = [*(f"{value:.4g}" for value in medians), f"{ratio:.3f}", f"{min(sides[1]) / min(sides[0]):.3f}"]
        lines.append([*key, *cells, f"{min(single):.3f} .. {max(single):.3f}", mark])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the src folder of the old tree")
    parser.add_argument("new", type=Path, help="the src folder of the new tree")
    parser.add_argument("--bench", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    trees = {side: getattr(options, side).resolve() for side in ("old", "new")}
    for src in dict.fromkeys(trees.values()):
        check_tree(src)
        for name in options.bench:  # machine code is compiled and cached before anything is timed
            run(src, name, SIZES["quick"][name], options.threads)
    measured: dict[str, list[dict[Key, float]]] = {"old": [], "new": []}
    for turn in range(options.turns):
        results: dict[str, dict[Key, float]] = {"old": {}, "new": {}}
        for name in options.bench:
            start = time.perf_counter()
            for side in list(trees)[:: -1 if turn % 2 else 1]:
                results[side] |= run(trees[side], name, SIZES[options.size][name], options.threads)
            print(f"turn {turn + 1}, {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        for side, turns in measured.items():
            turns.append(results[side])
    lines = table(measured["old"], measured["new"])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
