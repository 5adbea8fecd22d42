"""Thirty faults put into the code on purpose, one at a time: does a test fail for each?

`python tools/mutations.py` copies the source and the tests to a temporary folder, so that machine code is compiled anew
there, and prints a line per fault. The exit code is 1 where one survives. `--only WORD` takes the faults whose file or
text has that word.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Fault(NamedTuple):
    """A text of one file, what takes its place, and the tests that should notice."""

    file: str
    old: str
    new: str
    tests: str


FAULTS = (
    # sums, E-steps and rows: compiled code
    Fault(
        "ops/_numba/members.py",
        "CHUNK if long else GROUP // stride + 1",
        "GROUP // stride + 1",
        "ops/test_backends.py",
    ),
    Fault(
        "ops/_numba/members.py",
        "value = builder.fsub(load(pointer), load(centres[t])) if centres else load(pointer)",
        "value = load(pointer)",
        "ops/test_numba_backward.py",
    ),
    Fault("ops/_numba/members.py", "total += chunk", "total = chunk", "ops/test_backends.py"),
    Fault(
        "ops/iterate/numba.py",
        "in_logs = in_logs or not least_mass <= totals[v, j] < np.inf\n        normalise",
        "in_logs = in_logs\n        normalise",
        "ops/test_backends.py",
    ),
    Fault(
        "ops/_numba/members.py",
        "row[k] += coefficient / total * anchor[k]",
        "row[k] += coefficient * anchor[k]",
        "ops/test_backends.py",
    ),
    Fault(
        "ops/transport/numba.py",
        "abs(reached - goal) / (goal * ",
        "abs(reached - goal) / (1.0 * ",
        "ops/test_transport.py",
    ),
    Fault(
        "ops/transport/numba.py",
        "plain[j] = (plain[j] - mean) / (1 + slack)",
        "plain[j] = (plain[j] - mean)",
        "ops/test_transport.py",
    ),
    Fault(
        "ops/unit_rows/numba.py", "divisor = largest if largest > 0 else 1.0", "divisor = 1.0", "ops/test_unit_rows.py"
    ),
    Fault("ops/attend/numba.py", "offsets[j] *= alpha[j]", "offsets[j] *= 1", "ops/test_numba_backward.py"),
    Fault(
        "ops/attend/numba.py",
        "shift = np.where(totals > 0, shift, -np.inf)",
        "shift = shift + 0.0",
        "ops/test_backends.py ops/test_numba_backward.py",
    ),
    Fault("ops/attend/scipy.py", "-(-np.diff(indptr) // _CHUNK)", "np.diff(indptr) // _CHUNK", "ops/test_backends.py"),
    Fault(
        "ops/segment_sums/torch.py",
        "(entries - starts[sets.rows]) // _CHUNK",
        "entries // _CHUNK",
        "ops/test_backends.py",
    ),
    Fault("ops/unit_rows/triton.py", "extreme = live & ~(", "extreme = (rows < 0) & ~(", "ops/test_unit_rows.py"),
    Fault(
        "ops/attend/triton.py",
        "sums += tl.sum(values, axis=0).to(tl.float64)",
        "sums = tl.sum(values, axis=0).to(tl.float64)",
        "ops/test_backends.py",
    ),
    Fault(
        "counters.py",
        "(state ^ (state >> _27)) * _SECOND",
        "(state ^ (state >> _27)) * _FIRST",
        "test_counters.py",
    ),
    # the mathematics in plain arrays
    Fault("diffusion.py", "x *= scale[u]", "x *= 1.0", "test_diffusion.py"),
    Fault("multiset/members.py", "received, sent = degrees(", "sent, received = degrees(", "test_multiset.py"),
    Fault("family/multinomial.py", "means + self.smoothing", "means + 0.5", "family"),
    Fault("kernel_map.py", "1 / xp.sqrt(xp.where(kept, values", "1 / (xp.where(kept, values", "test_kernel_map.py"),
    Fault("walk.py", "math.ceil(math.log(_UNDER_WAY)", "math.floor(math.log(_UNDER_WAY)", "test_walk.py"),
    # what is read and checked
    Fault("datasets/pickled.py", "if len(part) < count:", "if len(part) < 0:", "datasets/test_pickled.py"),
    Fault(
        "datasets/pickled.py",
        "if math.prod(shape) * kind.dtype.itemsize != len(content):",
        "if math.prod(shape) * kind.dtype.itemsize > len(content):",
        "datasets/test_pickled.py",
    ),
    Fault("io/files.py", 'if kind != "a file":', 'if kind == "a socket":', "test_files.py"),
    Fault("io/archives.py", "if declared != member.file_size:", "if declared < 0:", "test_archives.py"),
    Fault(
        "_records.py",
        "used.min() < 0 or used.max() >= n_points",
        "used.min() < 0 or used.max() > n_points",
        "test_records.py",
    ),
    Fault(
        "_records.py",
        "array.astype(np.int32 if array.dtype.itemsize < 4 else np.int64)",
        "array.astype(array.dtype)",
        "test_records.py",
    ),
    Fault(
        "_arrays.py",
        "EXACT_IN_SINGLE, _EXACT_64 = 2**24, 2**53",
        "EXACT_IN_SINGLE, _EXACT_64 = 2**40, 2**53",
        "test_arrays.py",
    ),
    Fault(
        "io/text_table.py",
        "parse.invalid_row_handler, handled = handler, weakref.ref(handler)",
        "handled = weakref.ref(handler)",
        "test_node_files.py",
    ),
    Fault(
        "estimators/model_checks.py",
        "if not np.abs(np.asarray(array)).max() <= most:",
        "if np.abs(array).max() < 0:",
        "estimators/test_state.py hostile/test_models.py",
    ),
    Fault("_compile.py", "content = hashlib.sha256()", "return ''; content = hashlib.sha256()", "test_compile.py"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose file or text has this word")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if options.only in " ".join(fault)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        unwanted = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
        for name in ("src", "tests", "tools", "docs"):
            shutil.copytree(ROOT / name, tree / name, ignore=unwanted)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, tree / name)
        survivors = [fault for fault in chosen if not _killed(tree, fault)]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults were noticed")
    return 1 if survivors else 0


def _killed(tree: Path, fault: Fault) -> bool:
    """Whether a test fails in the copy with this fault; the copy is as before afterwards."""
    path = tree / "src" / "fishergraph" / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.file} must hold {fault.old!r} once; repair the table.")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    tests = [str(tree / "tests" / name) for name in fault.tests.split()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(tree), *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    try:
        result = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    finally:
        path.write_text(text, encoding="utf-8")
    killed = result.returncode == 1  # 1 is a failed test; others are errors of the run itself
    last = next((line for line in reversed(result.stdout.splitlines()) if line.startswith("FAILED")), "")
    print(f"{'noticed ' if killed else 'SURVIVED'} {fault.file}: {fault.old[:60]!r} {last[:90]}", flush=True)
    return killed


if __name__ == "__main__":
    sys.exit(main())
