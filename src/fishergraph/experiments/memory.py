"""The most memory that this process has held, counted anew for each job where the system can do that (Linux)."""

from __future__ import annotations

import sys
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Begin to count anew; where the system cannot, the peak stays that of the whole process."""
    try:
        _RESET.write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory() -> float | None:
    """The peak in MB since `reset_peak`; None where the system does not tell."""
    try:
        line = next(
            line
            for line in _STATUS.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.startswith("VmHWM")
        )
        return round(int(line.split()[1]) / 1024, 1)
    except (OSError, StopIteration):
        return _of_process()


def _of_process() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
