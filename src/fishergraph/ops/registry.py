"""The one seam for speed: a backend is a frozen record, looked up by name or chosen by what it supports."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fishergraph._checks import look_up


class Responsibilities(NamedTuple):
    """The responsibilities of the first E-step, (point, anchor): log α and α, so that exp runs once per point."""

    log: np.ndarray
    plain: np.ndarray


@dataclass(frozen=True)
class Backend:
    """One way to compute `em_means` on a row block.

    run(points, responsibilities, sets, anchors, *, variance, prior, n_em_iter, means, mass) fills `means`
    (set, anchor, feature) and `mass` (set, anchor). The responsibilities of the first E-step belong to the points,
    so they are computed once for all blocks.
    """

    name: str
    devices: frozenset[str]
    several_iterations: bool
    run: Callable[..., None]


# The modules are imported when they are first asked for: numba is not part of `import fishergraph`.
_MODULES = {"numba": "fishergraph.ops.numba_cpu", "scipy": "fishergraph.ops.spmm"}


def known_backends() -> list[str]:
    """The names of all backends, in order of preference."""
    return list(_MODULES)


def choose_backend(name: str | None = None, *, device: str = "cpu", n_em_iter: int = 1) -> Backend:
    """The named backend, or the first that can do the work; a named one obeys or raises."""
    names = known_backends() if name is None else [name]
    for candidate in names:
        backend: Backend = importlib.import_module(look_up(_MODULES, candidate, "backend")).BACKEND
        if device in backend.devices and (n_em_iter <= 1 or backend.several_iterations):
            return backend
    asked = f"device={device!r} and n_em_iter={n_em_iter}"
    raise ValueError(
        f"backend {'(automatic)' if name is None else repr(name)} does not support {asked}; "
        f"leave backend=None, or use another of {', '.join(map(repr, known_backends()))}."
    )
