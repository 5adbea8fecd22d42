"""The table of engines, which compute the operations; an engine is chosen by what it can do, or by name.

An engine has two interfaces. `em_block` fills the means of one row block of NumPy arrays or of tensors. `tensor_ops`
holds the operations on whole tensors with their gradients. The modules behind both are imported when they are first
used: `import fishergraph` imports neither numba nor torch nor triton.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fishergraph._errors import InputError, MissingExtra
from fishergraph._repr import short_repr
from fishergraph._validation import look_up
from fishergraph.config import config_context, engine_setting

if TYPE_CHECKING:
    from fishergraph.ops.tensor_ops import TensorOps

logger = logging.getLogger(__name__)


class Responsibilities(NamedTuple):
    """The responsibilities of the first E-step, (point, anchor): log α and α, so that exp runs once per point."""

    log: np.ndarray
    plain: np.ndarray

    __repr__ = short_repr


@dataclass(frozen=True)
class Engine:
    """What one engine can do, and the modules that hold its functions.

    Parameters
    ----------
    name : {'numba', 'scipy', 'triton', 'torch'}
        How `config_context` names it.
    devices : frozenset of str
        The devices it runs on, "cpu" or "cuda".
    block_module : str
        The module of `em_block`.
    tensors : bool, default=False
        Whether row blocks are torch tensors; NumPy arrays otherwise.
    several_iterations : bool, default=True
        Whether `em_block` runs more than one EM iteration.
    transports : bool, default=True
        Whether `em_block` takes the slack of a balanced or unbalanced E-step.
    tensor_module : str or None, default=None
        The module of `tensor_ops`; None if the engine has no operations on tensors.
    dtypes : frozenset of str
        The tensors that `tensor_ops` takes, by the names of their dtypes.
    """

    name: str
    devices: frozenset[str]
    block_module: str
    tensors: bool = False
    several_iterations: bool = True
    transports: bool = True
    tensor_module: str | None = None
    dtypes: frozenset[str] = frozenset()

    @property
    def em_block(self) -> Callable[..., None]:
        """The function that computes `em_means` on a row block.

        em_block(points, responsibilities, sets, anchors, *, variance, prior, n_iter, means, mass[, slack]) fills
        `means` (set, anchor, feature) and `mass` (set, anchor). The responsibilities of the first E-step belong to the
        points, so they are computed once for all blocks.
        """
        return importlib.import_module(self.block_module).em_block

    @property
    def tensor_ops(self) -> TensorOps:
        """The operations on tensors."""
        assert self.tensor_module is not None
        return importlib.import_module(self.tensor_module).OPERATIONS


_OPS = "fishergraph.ops."
_CPU, _CUDA = frozenset({"cpu"}), frozenset({"cuda"})
_FLOATS = frozenset({"float32", "float64"})
_ALL = _FLOATS | {"float16", "bfloat16"}
# Under its interpreter Triton takes tensors of the CPU too; tests name it.
_TRITON = _CPU | _CUDA if os.environ.get("TRITON_INTERPRET") == "1" else _CUDA

# In order of preference.
ENGINES = {
    engine.name: engine
    for engine in (
        Engine("numba", _CPU, _OPS + "iterate.numba", tensor_module=_OPS + "_numba.tensors", dtypes=_FLOATS),
        Engine("scipy", _CPU, _OPS + "attend.scipy", several_iterations=False, transports=False),
        Engine("triton", _TRITON, _OPS + "_triton.tensors", True, tensor_module=_OPS + "_triton.tensors", dtypes=_ALL),
        Engine("torch", _CPU | _CUDA, _OPS + "iterate.torch", True, tensor_module=_OPS + "iterate.torch", dtypes=_ALL),
    )
}


def named_engine() -> str | None:
    """The engine of `set_config` or `config_context`; None leaves the choice open."""
    return engine_setting.get()


@contextmanager
def array_engine() -> Iterator[None]:
    """Compute NumPy arrays whatever is configured: by the configured engine if it takes them, or by any that does."""
    name = engine_setting.get()
    tensors = name is not None and ENGINES[name].tensors
    with config_context(engine=None if tensors else name):
        yield


def find_engine(name: str) -> Engine:
    """The engine of that name."""
    return look_up(ENGINES, name, "engine")


def choose_engine(
    name: str | None = None,
    *,
    device: str = "cpu",
    n_iter: int = 1,
    slack: float = math.inf,
    tensors: bool | None = None,
    dtype: str | None = None,
) -> Engine:
    """The engine for row blocks, or for operations on tensors: the named or configured one, or the first able.

    Parameters
    ----------
    name : str or None, default=None
        An engine that must do it; None is the one of `set_config` or `config_context`, or else any.
    device : {'cpu', 'cuda'}, default='cpu'
        Where the arrays are.
    n_iter : int, default=1
        Iterations of EM.
    slack : float, default=inf
        1/τ of the E-step; ∞ is the posterior.
    tensors : bool or None, default=None
        Whether the row blocks are tensors or NumPy arrays; None is either.
    dtype : str or None, default=None
        The dtype of tensors whose operations are to be computed; None is for row blocks.

    Raises
    ------
    ValueError
        If the named engine, or any engine, cannot do the work.
    ImportError
        If the named engine needs a package that is not installed.
    """
    name = engine_setting.get() if name is None else name
    for engine in ENGINES.values() if name is None else [find_engine(name)]:
        if name is None and ((engine.name, device) == ("triton", "cpu") or (dtype and engine.tensor_module is None)):
            continue
        reason = _objection(engine, device, n_iter, slack, tensors, dtype)
        if reason is None:
            try:
                importlib.import_module(engine.block_module if dtype is None else str(engine.tensor_module))
                return engine
            except ImportError as error:
                if name is not None:
                    text = f"engine {name!r} needs a missing package ({error}); run: pip install 'fishergraph[gpu]'."
                    raise MissingExtra(text, package=error.name or "", extra="gpu") from error
                reason = str(error)
        if name is not None:
            text = (
                f"engine {name!r} cannot do this: {reason}; name another of {', '.join(map(repr, ENGINES))}, "
                "or engine=None to choose one."
            )
            raise InputError(text, parameter="engine", value=name)
        if device in engine.devices:
            level = logging.INFO if dtype is None else logging.WARNING
            logger.log(level, "engine %s is not used: %s", engine.name, reason)
    text = f"no engine can do this on device {device!r}; use a CPU or CUDA device."
    raise InputError(text, parameter="device", value=device)


def _objection(
    engine: Engine, device: str, n_iter: int, slack: float, tensors: bool | None, dtype: str | None
) -> str | None:
    """Why the engine cannot do the work, or None."""
    if dtype is not None and engine.tensor_module is None:
        return "it takes NumPy arrays, and these are tensors"
    if device not in engine.devices:
        return f"it runs on {' and '.join(sorted(engine.devices))}, and these are on {device}"
    if dtype is not None:
        dtypes = ", ".join(sorted(engine.dtypes))
        return None if dtype in engine.dtypes else f"it takes {dtypes}, and these are {dtype}"
    if tensors is not None and tensors != engine.tensors:
        kinds = "NumPy arrays", "tensors"
        return f"its row blocks are {kinds[engine.tensors]}, and these are {kinds[tensors]}"
    if n_iter > 1 and not engine.several_iterations:
        return f"it runs one iteration, and n_iter={n_iter}"
    if slack < math.inf and not engine.transports:
        return "it has no balanced or unbalanced E-step"
    return None
