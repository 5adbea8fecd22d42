"""The one seam for speed: a backend is a frozen record, looked up by name or chosen by what it supports."""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fishergraph._repr import short_repr
from fishergraph._validation import look_up

logger = logging.getLogger(__name__)


class Responsibilities(NamedTuple):
    """The responsibilities of the first E-step, (point, anchor): log α and α, so that exp runs once per point."""

    log: np.ndarray
    plain: np.ndarray

    __repr__ = short_repr


@dataclass(frozen=True)
class Backend:
    """One way to compute `em_means` on a row block.

    run(points, responsibilities, sets, anchors, *, variance, prior, n_em_iter, means, mass[, slack]) fills `means`
    (set, anchor, feature) and `mass` (set, anchor). The responsibilities of the first E-step belong to the points,
    so they are computed once for all blocks.
    """

    name: str
    devices: frozenset[str]
    several_iterations: bool
    run: Callable[..., None]
    tensors: bool = False  # whether it takes torch tensors; NumPy arrays otherwise
    transports: bool = False  # whether `run` takes the slack of a balanced or unbalanced E-step


# The modules are imported when they are first asked for: numba is not part of `import fishergraph`.
_MODULES = {
    "numba": "fishergraph.ops.numba_cpu",
    "scipy": "fishergraph.ops.spmm",
    "triton": "fishergraph.ops.triton_gpu",
    "torch": "fishergraph.ops.torch_plain",
}


def known_backends() -> list[str]:
    """The names of all backends, in order of preference."""
    return list(_MODULES)


def choose_backend(
    name: str | None = None,
    *,
    device: str = "cpu",
    n_em_iter: int = 1,
    slack: float = math.inf,
    tensors: bool | None = None,
) -> Backend:
    """The named backend, or the first that can do the work; a named one obeys or raises, a fallback is logged.

    `slack` is that of the E-step, ∞ for the posterior. `tensors` says what it must take, torch tensors or NumPy arrays;
    None is either.
    """
    names = known_backends() if name is None else [name]
    for candidate in names:
        module = look_up(_MODULES, candidate, "backend")
        try:
            backend: Backend = importlib.import_module(module).BACKEND
        except ImportError as error:
            if name is not None:
                raise ImportError(
                    f"backend {name!r} needs a package that is missing ({error}); run: pip install 'fishergraph[gpu]'"
                ) from error
            logger.info("backend %s is not used: %s", candidate, error)
            continue
        fits = device in backend.devices and (tensors is None or tensors == backend.tensors)
        able = (n_em_iter <= 1 or backend.several_iterations) and (slack == math.inf or backend.transports)
        if fits and able:
            return backend
    asked = f"device={device!r} and n_em_iter={n_em_iter}" + ("" if slack == math.inf else " with a transport E-step")
    asked += "" if tensors is None else f" on {'tensors' if tensors else 'NumPy arrays'}"
    raise ValueError(
        f"backend {'(automatic)' if name is None else repr(name)} does not support {asked}; "
        f"leave backend=None, or use another of {', '.join(map(repr, known_backends()))}."
    )
