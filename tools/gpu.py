"""What only a GPU can tell, in under seven minutes: tests, every kernel, the same under compute-sanitizer, and epochs.

python tools/gpu.py -o FOLDER      # FOLDER gets a log of each step, and rows of benchmarks

Steps end after their time. The exit status is that of the tests and of the kernels; compute-sanitizer may be missing,
or refuse to run: its log says so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = [f"tests/{name}.py" for name in ("nn/test_capture", "nn/test_inverse_root", "ops/test_unit_rows")]
PARTS = 12  # of the kernels: compiling takes most of the time, on one core each


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("-o", "--output", type=Path, required=True, help="folder of logs and rows")
    options.add_argument("--only", nargs="*", help="names of steps: tests, kernels, epochs, sanitizer")
    args = options.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, (commands, seconds) in steps(args.output).items():
        if args.only and name not in args.only:
            continue
        start = time.perf_counter()
        codes = [ended(done, start + seconds) for done in begun(name, commands, args.output)]
        print(f"{name}: {codes} after {time.perf_counter() - start:.0f} s", flush=True)
        for k in [k for k, code in enumerate(codes) if code] or [0]:
            print("\n".join(log(name, k, args.output).read_text(errors="replace").splitlines()[-25:]), flush=True)
        failed += [name] * any(codes)
    sys.exit(int(bool({"tests", "kernels"} & set(failed))))


def steps(output: Path) -> dict[str, tuple[list[list[str]], float]]:
    """The commands of each step, which run side by side, and the seconds that they may take."""
    python = sys.executable
    kernels = [[python, "tools/check_kernels.py", f"{part}/{PARTS}"] for part in range(1, PARTS + 1)]
    folders = sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"))
    sanitizer = shutil.which("compute-sanitizer") or (str(folders[-1]) if folders else "compute-sanitizer")
    watched = [[sanitizer, "--tool", "memcheck", "--error-exitcode", "9", *command] for command in kernels]
    return {
        "tests": ([[python, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *TESTS]], 120),
        "epochs": ([[python, "benchmarks/bench_capture.py", "--results", str(output)]], 80),
        "kernels": (kernels, 110),
        "sanitizer": (watched, 90),
    }


def begun(name: str, commands: list[list[str]], output: Path) -> list[subprocess.Popen]:
    """The processes of a step; a program that is missing is one that fails."""
    paths = (str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    found = []
    for k, command in enumerate(commands):
        with log(name, k, output).open("w") as stream:
            if shutil.which(command[0]) is None:
                stream.write(f"{command[0]} is missing\n")
                stream.flush()
                command = ["false"]
            found.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=subprocess.STDOUT))
    return found


def ended(process: subprocess.Popen, at: float) -> int:
    """The status of a process, ended at that time."""
    try:
        return process.wait(max(at - time.perf_counter(), 0.1))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return 124


def log(name: str, number: int, output: Path) -> Path:
    return output / f"{name}-{number}.log"


if __name__ == "__main__":
    main()
