"""The table of engines: who computes the operations, chosen by what each can do, or by name.

An engine has two faces. Its row-block face, `em_block`, fills the means of one row block of NumPy arrays or of tensors.
Its tensor face, `tensor_ops`, holds the operations on whole tensors with their gradients. The modules behind both are
imported when they are first used: numba, torch and triton are not part of `import fishergraph`.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fishergraph._errors import InputError, MissingExtra
from fishergraph._repr import short_repr
from fishergraph._validation import look_up
from fishergraph.config import engine_setting

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
    """What one engine takes, and the modules that hold its functions.

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

        em_block(points, responsibilities, sets, anchors, *, variance, prior, n_em_iter, means, mass[, slack]) fills
        `means` (set, anchor, feature) and `mass` (set, anchor). The responsibilities of the first E-step belong to the
        points, so they are computed once for all blocks.
        """
        return importlib.import_module(self.block_module).em_block

    @property
    def tensor_ops(self) -> TensorOps:
        """The operations on tensors."""
        assert self.tensor_module is not None
        return importlib.import_module(self.tensor_module).OPERATIONS


_FLOATS = frozenset({"float32", "float64"})
_HALVES = frozenset({"float16", "bfloat16"})
# Under its interpreter Triton takes tensors of the CPU too; tests name it.
_TRITON_DEVICES = frozenset({"cpu", "cuda"} if os.environ.get("TRITON_INTERPRET") == "1" else {"cuda"})

# In order of preference.
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "numba",
            frozenset({"cpu"}),
            "fishergraph.ops.iterate.numba",
            tensor_module="fishergraph.ops._numba.tensors",
            dtypes=_FLOATS,
        ),
        Engine(
            "scipy",
            frozenset({"cpu"}),
            "fishergraph.ops.attend.scipy",
            several_iterations=False,
            transports=False,
        ),
        Engine(
            "triton",
            _TRITON_DEVICES,
            "fishergraph.ops._triton.tensors",
            tensors=True,
            tensor_module="fishergraph.ops._triton.tensors",
            dtypes=_FLOATS | _HALVES,
        ),
        Engine(
            "torch",
            frozenset({"cpu", "cuda"}),
            "fishergraph.ops.iterate.torch",
            tensors=True,
            tensor_module="fishergraph.ops.iterate.torch",
            dtypes=_FLOATS | _HALVES,
        ),
    )
}


def named_engine(name: str | None = None) -> str | None:
    """The name, or else that of `set_config` or `config_context`; None leaves the choice open."""
    return engine_setting.get() if name is None else name


def find_engine(name: str) -> Engine:
    """The engine of that name."""
    return look_up(ENGINES, name, "engine")


def choose_engine(
    name: str | None = None,
    *,
    device: str = "cpu",
    n_em_iter: int = 1,
    slack: float = math.inf,
    tensors: bool | None = None,
) -> Engine:
    """The engine for row blocks: the named one, the configured one, or the first that can do the work.

    Parameters
    ----------
    name : str or None, default=None
        An engine that must do it; None is the one of `set_config` or `config_context`, or else any.
    device : {'cpu', 'cuda'}, default='cpu'
        Where the arrays are.
    n_em_iter : int, default=1
        Iterations of EM.
    slack : float, default=inf
        1/τ of the E-step; ∞ is the posterior.
    tensors : bool or None, default=None
        Whether the row blocks are tensors or NumPy arrays; None is either.

    Raises
    ------
    ValueError
        If the named engine, or any engine, cannot do the work.
    ImportError
        If the named engine needs a package that is not installed.
    """

    def unable(engine: Engine) -> str | None:
        if device not in engine.devices:
            return _wrong_device(engine, device)
        if tensors is not None and tensors != engine.tensors:
            return f"its row blocks are {_kind(engine.tensors)}, and these are {_kind(tensors)}"
        if n_em_iter > 1 and not engine.several_iterations:
            return f"it runs one iteration, and n_em_iter={n_em_iter}"
        if slack < math.inf and not engine.transports:
            return "it has no balanced or unbalanced E-step"
        return None

    return _choose(name, ENGINES, device, unable, lambda engine: engine.em_block, logging.INFO)


def choose_operations(name: str | None, device: str, dtype: str) -> Engine:
    """The engine for operations on tensors of a device and dtype, chosen in the same way."""

    def unable(engine: Engine) -> str | None:
        if engine.tensor_module is None:
            return "it takes NumPy arrays, and these are tensors"
        if device not in engine.devices:
            return _wrong_device(engine, device)
        if dtype not in engine.dtypes:
            return f"it takes {', '.join(sorted(engine.dtypes))}, and these are {dtype}"
        return None

    candidates = {known: engine for known, engine in ENGINES.items() if engine.tensor_module is not None}
    return _choose(name, candidates, device, unable, lambda engine: engine.tensor_ops, logging.WARNING)


def _choose(
    name: str | None,
    candidates: Mapping[str, Engine],
    device: str,
    unable: Callable[[Engine], str | None],
    load: Callable[[Engine], object],
    level: int,
) -> Engine:
    """The first engine that is able and can be imported; a named one, or an error."""
    name = named_engine(name)
    for engine in candidates.values() if name is None else [find_engine(name)]:
        if name is None and (engine.name, device) == ("triton", "cpu"):
            continue
        reason = unable(engine)
        try:
            if reason is None:
                load(engine)
                return engine
        except ImportError as error:
            if name is not None:
                raise MissingExtra(
                    f"engine {name!r} needs a package that is missing ({error}); run: pip install 'fishergraph[gpu]'.",
                    package=error.name or "",
                    extra="gpu",
                ) from error
            reason = str(error)
        if name is not None:
            raise InputError(
                f"engine {name!r} cannot do this: {reason}; name another of {', '.join(map(repr, ENGINES))}, "
                "or engine=None to choose one.",
                parameter="engine",
                value=name,
            )
        if device in engine.devices:
            logger.log(level, "engine %s is not used: %s", engine.name, reason)
    raise InputError(
        f"no engine can do this on device {device!r}; use a CPU or CUDA device.", parameter="device", value=device
    )


def _wrong_device(engine: Engine, device: str) -> str:
    return f"it runs on {' and '.join(sorted(engine.devices))}, and these are on {device}"


def _kind(tensors: bool) -> str:
    return "tensors" if tensors else "NumPy arrays"
