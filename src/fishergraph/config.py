"""Settings that hold for every call inside a context: which engine computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypedDict

from fishergraph._validation import look_up

# The names of `fishergraph.ops.engine.ENGINES`.
ENGINE_NAMES = ("numba", "scipy", "triton", "torch")


class Config(TypedDict):
    """The settings by name."""

    engine: str | None


engine_setting: ContextVar[str | None] = ContextVar("engine", default=None)


def get_config() -> Config:
    """Return the settings of this context.

    Returns
    -------
    dict
        ``{"engine": None}`` unless it was changed.

    See Also
    --------
    config_context : Settings for the length of a block.
    set_config : Settings from here on.

    Examples
    --------
    >>> import fishergraph
    >>> fishergraph.get_config()
    {'engine': None}
    """
    return {"engine": engine_setting.get()}


def set_config(*, engine: str | None = None) -> None:
    """Change the settings of this context from here on.

    The settings belong to the current thread and context. The threads that fishergraph starts take them over.

    Parameters
    ----------
    engine : {'numba', 'scipy', 'triton', 'torch'} or None, default=None
        What computes EM. A named engine does the work or raises an error. None chooses the first engine that can do
        it: "numba" for NumPy arrays and for tensors on the CPU, "triton" on CUDA, "torch" where these are missing.

    See Also
    --------
    config_context : Settings for the length of a block.
    get_config : The settings of this context.

    Examples
    --------
    >>> import fishergraph
    >>> fishergraph.set_config(engine="scipy")
    >>> fishergraph.get_config()
    {'engine': 'scipy'}
    >>> fishergraph.set_config(engine=None)
    """
    engine_setting.set(_checked(engine))


@contextmanager
def config_context(*, engine: str | None = None) -> Iterator[None]:
    """Change the settings inside a ``with`` block.

    A function that `torch.compile` compiles keeps the engine that was chosen when it was compiled.

    Parameters
    ----------
    engine : {'numba', 'scipy', 'triton', 'torch'} or None, default=None
        What computes EM, as in `set_config`.

    Yields
    ------
    None
        Nothing; the settings before the block are restored after it.

    See Also
    --------
    set_config : Settings from here on.
    get_config : The settings of this context.

    Examples
    --------
    >>> import fishergraph
    >>> with fishergraph.config_context(engine="scipy"):
    ...     fishergraph.get_config()
    {'engine': 'scipy'}
    >>> fishergraph.get_config()
    {'engine': None}
    """
    token = engine_setting.set(_checked(engine))
    try:
        yield
    finally:
        engine_setting.reset(token)


def _checked(engine: str | None) -> str | None:
    return None if engine is None else look_up(dict.fromkeys(ENGINE_NAMES, engine), engine, "engine")
