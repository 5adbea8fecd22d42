"""The processor and the libraries that the bits of a result depend on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from typing import Any

import llvmlite.binding
import numba
import numpy
import scipy
from threadpoolctl import threadpool_info


@cache
def cpu_target() -> dict[str, Any]:
    """Return what compiled code and products depend on: equal targets give equal bits."""
    features = str(llvmlite.binding.get_host_cpu_features().flatten())
    blas = sorted({str(pool.get("architecture")) for pool in threadpool_info() if pool["user_api"] == "blas"})
    return {
        "machine": platform.machine(),
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "instructions": hashlib.sha256(features.encode()).hexdigest()[:12],
        "blas": blas,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
