"""Sizes of memory as people write them, and what this machine and this process have of it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from fishergraph._errors import InputError
from fishergraph._validation import host_bytes

_UNKNOWN = 8 * 10**9  # bytes that are taken to be there if the system does not tell
_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_memory(memory: int | float | str | None) -> int:
    """Return a number of bytes: "4G", "500M" or a number; None is half of the free memory, beside what is in use."""
    if memory is None:
        return int(free_bytes() / 2) + resident_bytes()
    if isinstance(memory, (int, float)) and not isinstance(memory, bool) and memory > 0:
        return int(memory)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(memory).lower())
    if found is None or isinstance(memory, bool) or float(found[1]) == 0:
        expected = "be a number of bytes, or a text such as '4G' or '500M'"
        raise InputError(parameter="memory", value=memory, expected=expected)
    return int(float(found[1]) * _SIZES[found[2]])


def memory_text(n_bytes: float) -> str:
    """A size as `parse_memory` reads it, rounded up."""
    return f"{-(-n_bytes // 10**8) / 10:.1f}G"


def free_bytes() -> float:
    """The memory that new arrays may take without displacing others, as far as the system tells."""
    try:
        words = Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()
        return min(int(words[0]) * 1024, host_bytes())
    except (OSError, IndexError, ValueError):
        return min(host_bytes(), _UNKNOWN)


def resident_bytes() -> int:
    """The memory of this process, or 0 if the system does not tell."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def taken_bytes(least: int, buffers: int) -> int:
    """What libraries and buffers take: the memory of this process now and the buffers, at least `least`."""
    return max(least, resident_bytes() + buffers)
