"""Hashes of the output bits of many settings: does a change of the code change a result?

    python tools/bits.py record FILE.json     write {name of the output: SHA-256 of its bits}
    python tools/bits.py compare FILE.json    run again and print what differs; exit code 1 on a difference

A case is one setting of one estimator on one kind of input, and has several outputs, each with a hash of its own:
"node/pagerank/float64/csr/transform". An output that raises is recorded as "error: TypeName".

Hashes depend on the processor and on the versions of NumPy, SciPy, numba and torch. Record and compare on one machine
in one environment, and do not commit the file. Hashes do not depend on the number of threads (--jobs, OMP_NUM_THREADS).
The library is the one that Python imports; PYTHONPATH=TREE/src chooses another tree.

bits_settings.py holds the settings, bits_data.py the data, bits_cases.py the cases, bits_builders.py the calls of the
library. When the interface changes, translate bits_builders.py alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from bits_builders import THREADS
from bits_cases import Case, Unordered, all_cases

import fishergraph


def digest(output: Any) -> str:
    """SHA-256 of the types, shapes and bytes of an array, or of a list of them."""
    content = hashlib.sha256()
    if isinstance(output, (list, tuple)):
        digests = [digest(part) for part in output]
        content.update(" ".join(sorted(digests) if isinstance(output, Unordered) else digests).encode())
    else:
        array = np.ascontiguousarray(output.detach().numpy() if hasattr(output, "detach") else output)
        content.update(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return content.hexdigest()


def hashes(case: Case) -> dict[str, str]:
    """The hash of each output of a case; an error stands for its output and for those after it."""
    found: dict[str, str] = {}
    try:
        for name, output in zip(case.outputs, case.run(), strict=True):
            found[f"{case.name}/{name}"] = digest(output)
    except Exception as error:  # whatever it is, it is the result of the case
        print(f"{case.name}: {type(error).__name__}: {error}", file=sys.stderr)
        found |= {f"{case.name}/{name}": f"error: {type(error).__name__}" for name in case.outputs[len(found) :]}
    return found


def run_all(only: str) -> dict[str, str]:
    """The hashes of all cases whose name holds the word."""
    import torch

    torch.set_num_threads(1)  # sums of PyTorch's own operators round differently with several
    start, found = time.perf_counter(), {}
    cases = [case for case in all_cases() if only in case.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            found |= hashes(case)
    errors = sum(value.startswith("error") for value in found.values())
    print(f"{len(cases)} cases, {len(found)} hashes, {errors} errors, {time.perf_counter() - start:.0f} s")
    print(f"library: {Path(fishergraph.__file__).parent}")
    return found


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """A line for each output that differs, is missing, or is new."""
    lines = [f"differs  {name}" for name in old if name in new and old[name] != new[name]]
    lines += [f"missing  {name}" for name in old if name not in new]
    return lines + [f"new      {name}" for name in new if name not in old]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name, without the output, holds it")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default 1); no hash depends on it")
    options = parser.parse_args()
    THREADS["n_jobs"] = options.jobs
    if options.action == "record":
        options.file.write_text(json.dumps(run_all(options.only), indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    old = json.loads(options.file.read_text(encoding="utf-8"))
    old = {name: value for name, value in old.items() if options.only in name.rpartition("/")[0]}
    lines = differences(old, run_all(options.only))
    print("\n".join([*lines, f"{len(lines)} differences"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
